//! A run as browsers, Prometheus and other programs see it while it goes on.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;
use weir_schema::RunResult;

use crate::stage::{Running, Stage, until};

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A run that is seen at a port.
fn seen(stage: &Stage, port: u16, seconds: u32, more: &[&str]) -> Running {
    let job = "[a]\nioengine=null\nrw=randread\nsize=1m\nbs=4k\ntime_based\n";
    let file = stage.file("j.fio", format!("{job}runtime={seconds}\n"));
    let web = format!("--web={port}");
    let words: Vec<&str> = ["run", &web]
        .iter()
        .chain(more)
        .copied()
        .chain([&*file])
        .collect();
    let running = Running::start(stage.weir(&words));
    until("it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    running
}

/// Sends a request; everything that comes back.
fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    // One that is refused while it still sends may be cut off after the answer.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

fn get(port: u16, path: &str) -> String {
    ask(
        port,
        &format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
    )
}

/// The value of a metric whose line begins so.
fn value(page: &str, begin: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(begin));
    let line = line.unwrap_or_else(|| panic!("no {begin} in\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn counters_grow_and_the_result_is_there_at_the_end() {
    let stage = Stage::new();
    let port = free_port();
    let running = seen(&stage, port, 3, &["--web-linger=60"]);
    until("it measures", || {
        get(port, "/metrics").contains("kind=\"read\"} ")
    });
    let done = "weir_operations_total{group=\"0\",job=\"a\",kind=\"read\"}";
    let first = get(port, "/metrics");
    assert!(first.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
    let mut second = String::new();
    until("it has done more", || {
        second = get(port, "/metrics");
        value(&second, done) > value(&first, done)
    });
    let latency =
        |part: &str| format!("weir_latency_seconds_{part}job=\"a\",kind=\"read\",stage=\"lat\"");
    let all = value(&second, &format!("{},le=\"+Inf\"}}", latency("bucket{")));
    assert!(all > 0.0);
    assert_eq!(
        all.to_bits(),
        value(&second, &format!("{}}}", latency("count{"))).to_bits()
    );
    assert!(get(port, "/result.json").starts_with("HTTP/1.1 404 "));
    until("the result is there", || {
        get(port, "/result.json").starts_with("HTTP/1.1 200 ")
    });
    let page = get(port, "/result.json");
    let (_, text) = page.split_once("\r\n\r\n").unwrap();
    let result = RunResult::from_json(text).unwrap();
    let page = get(port, "/metrics");
    let operations = result.groups[0].rates[0].operations;
    assert!(page.contains(&format!("{done} {operations}\n")), "{page}");
    running.signal(Signal::INT);
    running
        .end()
        .code(130)
        .err(&format!("weir: http://127.0.0.1:{port}/ shows this run"));
}

#[test]
fn only_reading_is_served_and_only_to_so_many() {
    let stage = Stage::new();
    let port = free_port();
    let running = seen(&stage, port, 60, &[]);
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200"),
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        ("GET / HTTP/1.1\r\nHost: evil\r\n\r\n", "403"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("what\r\n\r\n", "400"),
    ] {
        let said = ask(port, request);
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {said}"
        );
    }
    let long = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(9000)
    );
    assert!(ask(port, &long).starts_with("HTTP/1.1 431 "));
    let follow = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream
            .write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        (stream, begin.ends_with(b"200"))
    };
    let mut all: Vec<(TcpStream, bool)> = Vec::new();
    until("the others are gone", || {
        all.clear();
        all.extend((0..16).map(|_| follow()));
        all.iter().all(|(_, is_good)| *is_good)
    });
    let said = get(port, "/healthz");
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    let mut stream = all.pop().unwrap().0;
    let mut text = String::new();
    until("an event comes", || {
        let mut piece = [0; 256];
        let count = stream.read(&mut piece).unwrap();
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
        text.contains("data: {\"elapsed_ns\":") && text.contains("\"name\":\"a\"")
    });
    running.signal(Signal::INT);
    running.end().code(130);
}

#[test]
fn a_port_behind_a_blank_is_told_from_a_job_file() {
    let stage = Stage::new();
    let job = "[a]\nioengine=null\nrw=read\nsize=4k\n";
    let file = stage.file("j.fio", job);
    let lost = stage.say(&["run", &file, "--web", "19999"]).code(2);
    lost.silent().err("help: --web=19999");
    stage.file("19999", job);
    stage.say(&["run", "--web", "19999"]).code(0);
}

#[test]
fn a_file_has_the_metrics_at_the_end() {
    let stage = Stage::new();
    let file = stage.file("j.fio", "[a]\nioengine=null\nrw=read\nsize=1m\nbs=4k\n");
    let said = stage.say(&["run", "--metrics-file=m.prom", &file]);
    said.code(0);
    let page = String::from_utf8(stage.read_bytes("m.prom")).unwrap();
    let done = "weir_operations_total{group=\"0\",job=\"a\",kind=\"read\"}";
    assert!((value(&page, done) - 256.0).abs() < 0.5, "{page}");
    let said = stage
        .say(&["run", "--metrics-file=no/m.prom", &file])
        .code(2);
    said.err("error: no/m.prom cannot be written");
    stage.say(&["run", "--web=x", &file]).code(2).err("--web x");
    let said = stage.say(&["run", "--web-linger=3", &file]).code(2);
    said.err("--web-linger acts only with `--web`");
}

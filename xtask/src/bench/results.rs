//! Bench `results`: what it costs to show, compare and keep results, and to watch a run.
//!
//! In: the example `results_cost`, the null engine with and without somebody who looks. Out: figures
//! beside their limits, and the ratio of the rates.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::side::Side;
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, child, in_turns, side, startup};

/// Cases that the example prints: name, title, and limit in milliseconds.
const LIMITS: [(&str, &str, f64); 6] = [
    ("text", "text of 16 jobs", 10.0),
    ("html", "page of 16 jobs", 200.0),
    ("compare", "comparison of 30 rounds, 5 figures", 100.0),
    ("insert", "a run into the history", 20.0),
    ("list", "a list of 10,000 runs", 50.0),
    ("trend", "trends of 100 runs", 1000.0),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn(usize) -> Result<Vec<Row>>| Case {
        name: name.to_owned(),
        run: Box::new(run),
    };
    vec![
        case("renderings", |_| limits()),
        case("web", web),
        case("live", live),
        case("start-history", start),
    ]
}

fn limits() -> Result<Vec<Row>> {
    let argv = vec![side::text(&side::built("examples/results_cost"))?];
    let said = child::run(&argv)?.stdout;
    let row = |(case, name, limit): (&str, &'static str, f64)| {
        let mut lines = said.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(of, _)| *of == case);
        let (_, millis) = found.with_context(|| format!("no line of {case}: {said}"))?;
        let metric = Metric {
            name,
            unit: "ms",
            target: Target::AtMost(1.0),
        };
        Ok(Row::counted(case, &metric, millis.parse()?, limit))
    };
    LIMITS.into_iter().map(row).collect()
}

/// Somebody asks for the metrics once a second.
fn web(rounds: usize) -> Result<Vec<Row>> {
    beside_itself("web", "metrics polled, beside itself", rounds, polled)
}

/// The live view on a terminal.
fn live(rounds: usize) -> Result<Vec<Row>> {
    beside_itself("live", "live view, beside itself", rounds, |argv| {
        // The report goes to the terminal as well: the result is read from a file.
        let file = format!("{FOLDER}/results-live.json");
        let line = format!("{} --live --output {file}", argv.join(" "));
        child::run(&["script", "-qefc", &line, "/dev/null"].map(str::to_owned))?;
        rate(&std::fs::read_to_string(file)?)
    })
}

/// The rate of the null engine while it is watched, and while it is not.
fn beside_itself(
    case: &str,
    name: &'static str,
    rounds: usize,
    watched: fn(&[String]) -> Result<f64>,
) -> Result<Vec<Row>> {
    let path = job(case, "time_based=1\nruntime=3\n")?;
    let weir = side::text(&side::weir())?;
    let argv = [&*weir, "run", "--history=off", "--format=json", &path];
    let alone: Vec<String> = argv.map(str::to_owned).to_vec();
    println!("$ {} --{case}", alone.join(" "));
    let metric = Metric {
        name,
        unit: "operations/s",
        target: Target::AtLeast(0.99),
    };
    in_turns(
        case,
        &[metric],
        rounds,
        &mut || Ok(vec![watched(&alone)?]),
        &mut || Ok(vec![rate(&child::run(&alone)?.stdout)?]),
    )
}

/// The rate of a run that is polled.
fn polled(argv: &[String]) -> Result<f64> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut argv = argv.to_vec();
    argv.push(format!("--web={port}"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(1));
                // It may not listen yet, or be over.
                let _ = poll(port);
            }
        });
        let ended = child::run(&argv);
        is_over.store(true, Ordering::Relaxed);
        rate(&ended?.stdout)
    })
}

fn poll(port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    std::io::copy(&mut stream.take(1 << 24), &mut std::io::sink())?;
    Ok(())
}

fn rate(said: &str) -> Result<f64> {
    let result: Value = serde_json::from_str(said)?;
    let rate = result["groups"][0]["rates"][0]["ops_per_s"].as_f64();
    rate.context("a run without a rate")
}

/// A whole process that reads 1 MiB and keeps its result, beside fio with the same job; weir is to take
/// 16 ms, whatever fio takes.
fn start(rounds: usize) -> Result<Vec<Row>> {
    let path = job("start", "")?;
    let words = |side: Side| -> Result<Vec<String>> {
        let program = match (side, side::other()) {
            (Side::Weir, _) => side::text(&side::weir())?,
            (Side::Fio, Some(other)) => other.to_owned(),
            (Side::Fio, None) => return Ok(vec!["fio".to_owned(), path.clone()]),
        };
        let history = format!("{FOLDER}/history-{}.db", side.name());
        let words = [&*program, "run", "--history", &history, &path];
        Ok(words.map(str::to_owned).to_vec())
    };
    for side in [Side::Weir, Side::Fio] {
        println!("$ {}", words(side)?.join(" "));
    }
    let wall = |side| Ok(1e3 * child::run(&words(side)?)?.wall.as_secs_f64());
    // The medians are of differences of a few milliseconds.
    startup::limited(
        "start-history",
        "wall time",
        "ms",
        16.0,
        rounds.max(20),
        &wall,
    )
}

/// Writes a job of the null engine; its file.
fn job(name: &str, more: &str) -> Result<String> {
    let cpu = side::cpu();
    let path = format!("{FOLDER}/results-{name}.fio");
    let text =
        format!("[bench]\nioengine=null\nrw=read\nbs=4k\nsize=1m\ncpus_allowed={cpu}\n{more}");
    std::fs::write(&path, text)?;
    Ok(path)
}

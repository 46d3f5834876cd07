//! `weir rpc serve`: how it starts, what it refuses, who finds it, and how it ends.

mod slow;

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::sched_getaffinity;
use weir_rpc::auth::Token;
use weir_rpc::client::{ControlStream, DialSetup, ServerEndpoint, open_control};
use weir_rpc::links::LinkGreeting;
use weir_rpc::wire::{FrameHeader, FrameKind, OpenRequest};
use weir_rpc::{DerCode, service::self_test as service};
use weir_schema::{EndpointSet, Members, RpcEndpoint, RpcPayloadKind, RpcWorkload};

use crate::faults::{adds_up, connected, count, endless};
use crate::servers::{S1, Server, masters, self_test, split};
use crate::stage::{Running, Said, Stage, WEIR, each_launcher, launch, said, skip, until};

const TABLE: &str = "daos_server.attach_info_tmp";

/// Output of a server that ends by itself when nobody asks anything.
pub(crate) fn serve(stage: &Stage, words: &str) -> Said {
    let words = format!("rpc serve --path . --exit-after idle:0.1 {words}");
    stage.say(&split(&words))
}

/// The table as far as it is there.
pub(crate) fn table(stage: &Stage) -> String {
    fs::read_to_string(stage.path(TABLE)).unwrap_or_default()
}

#[test]
fn in_line_payloads_above_the_servers_limit_are_refused_with_limit_and_remedy() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0 --max-msg 64k");
    let test = |sizes: &str| self_test(&stage, &format!("-e 0:0 -r 20 -s '{sizes}'"));
    for sizes in ["i65537", "0 i65537", "i65537 0", "b1m i65537", "i20m"] {
        let refused = test(sizes).code(3).err("the 65536 bytes").err("--max-msg");
        refused.out("No RPC for this message size was sent: in-line re");
    }
    test("i64k").code(0);
    test("b1m b1m").code(0);
    assert_eq!(server.end(), Some(0));
    let _server = Server::start(&stage, "--rank 0");
    test("i20m")
        .code(3)
        .err("20971520 bytes")
        .err("16777216 bytes");
    // Nobody else is there whom a server of the run's own has to mind.
    let own = "self_test --loopback --warmup 0 -e 0:0 -s i20m -r 3";
    stage.peer_says(&split(own)).code(0);
}

#[test]
fn a_rank_that_somebody_serves_is_not_taken_away() {
    let stage = Stage::new();
    let server = Server::start(&stage, S1);
    let before = table(&stage);
    let refused = |words: &str| {
        let refused = serve(&stage, words).code(3).silent();
        refused
            .err("rank 0 of group daos_server is that of the server at ")
            .err(&server.address);
        assert_eq!(table(&stage), before);
    };
    refused("--rank 0");
    refused("--ranks 0-2");
    refused("--rank 0 --transport shm://");
    server.signal(Signal::STOP);
    refused("--rank 0");
    server.signal(Signal::CONT);
    self_test(&stage, "-e 0:2 -s 0 -r 10").code(0);
    // A rank of its own it gets.
    serve(&stage, "").code(0).out("READY ");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_rank_of_a_server_that_has_crashed_or_asks_for_a_token_is_known_as_such() {
    let stage = Stage::new();
    let path = stage.file("token", "sixteen letters!");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    for words in [
        "--token-file token",
        "--table-format cart",
        "--transport shm://",
    ] {
        let server = Server::start(&stage, &format!("--rank 0 {words}"));
        serve(&stage, "--rank 0").code(3).err(&server.address);
        server.signal(Signal::KILL);
        assert_eq!(server.wait(), None);
        serve(&stage, "--rank 0").code(0).out("READY ");
    }
}

#[test]
fn a_launchers_size_is_said_until_all_are_there() {
    let stage = Stage::new();
    let mut first = stage.weir(&["rpc", "serve", "--path", "."]);
    first
        .env("OMPI_COMM_WORLD_RANK", "1")
        .env("OMPI_COMM_WORLD_SIZE", "3");
    let first = Server::of(first);
    let there = table(&stage);
    assert!(
        there.contains("size 3\n") && there.contains("\n1 tcp://"),
        "{there}"
    );
    let test = self_test(&stage, "-e 1:0 -s 0 -r 10").code(0);
    test.err("says 3 ranks and has 1");
    // Words go before what a launcher says.
    let mut second = stage.weir(&["rpc", "serve", "--path", ".", "--rank", "7"]);
    second.env("PMI_RANK", "1").env("PMI_SIZE", "3");
    let second = Server::of(second);
    assert!(table(&stage).contains("\n7 tcp://"), "{}", table(&stage));
    assert_eq!((second.end(), first.end()), (Some(0), Some(0)));
    assert!(table(&stage).contains("size 0\n"), "{}", table(&stage));
}

#[test]
fn cpus_are_those_of_the_process_and_pollers_stay_on_theirs() {
    let stage = Stage::new();
    serve(&stage, "--rank 0 --cpus 60000")
        .code(3)
        .err("CPUs 60000 are outside");
    let mask = sched_getaffinity(None).unwrap();
    let own: Vec<usize> = (0..1024).filter(|&cpu| mask.is_set(cpu)).collect();
    let (first, last) = (own[0], own[own.len() - 1]);
    if first != last {
        let mut command = stage.command("taskset");
        let serve = format!("rpc serve --path . --exit-after idle:0.1 --cpus {last}");
        command
            .args(["-c", &first.to_string(), WEIR])
            .args(split(&serve));
        let refused = said(command).code(3);
        refused.err(&format!("started with ({first})"));
    }
    let words = format!("--rank 0 --tags 2 --pollers 2 --cpus {first},{last}");
    let server = Server::start(&stage, &words);
    assert_eq!(server.cpus_of("weir-poller-0"), first.to_string());
    assert_eq!(server.cpus_of("weir-poller-1"), last.to_string());
}

/// The CPUs that each thread of a process may use.
fn cpus_of_threads(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten();
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    let lists = tasks.flatten().filter_map(status);
    let line = |status: String| {
        let mut lines = status.lines();
        let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.map(|list| list.trim().to_owned())
    };
    lists.filter_map(line).collect()
}

#[test]
fn as_many_threads_as_cpus_have_one_each() {
    let mask = sched_getaffinity(None).unwrap();
    let own = (0..1024).filter(|&cpu| mask.is_set(cpu));
    let own: Vec<String> = own.map(|cpu| cpu.to_string()).collect();
    let stage = Stage::new();
    let count = own.len();
    let server = Server::start(
        &stage,
        &format!("--rank 0 --tags {count} --pollers {count}"),
    );
    for (poller, cpu) in own.iter().enumerate() {
        assert_eq!(&server.cpus_of(&format!("weir-poller-{poller}")), cpu);
    }
    let client = endless(
        &stage,
        &format!("-e 0:0 -s 0 --poll block --threads {count}"),
    );
    let process = client.process().as_raw_pid().cast_unsigned();
    until("each thread of the client has one", || {
        let lists = cpus_of_threads(process);
        own.iter().all(|cpu| lists.contains(cpu))
    });
    client.signal(Signal::INT);
    client.end().code(130);
}

#[test]
fn a_descriptor_hears_that_a_server_is_ready() {
    let stage = Stage::new();
    let mut command = stage.command("sh");
    let serve =
        "exec \"$0\" rpc serve --path . --rank 0 --exit-after idle:0.1 --ready-fd 3 3>ready";
    command.args(["-c", serve, WEIR]);
    said(command).code(0).silent();
    let ready = stage.read("ready");
    assert!(ready.starts_with("READY tcp://127.0.0.1:"), "{ready}");
    let path = format!("rpc serve --path {} --ready-fd 77", stage.path("."));
    stage.say(&split(&path)).code(2).err("--ready-fd 77: ");
    // A supervisor's may be a socket, which cannot be opened by its path.
    let (own, theirs) = UnixStream::pair().unwrap();
    let words = "rpc serve --path . --rank 0 --exit-after idle:0.1 --ready-fd 1";
    let mut command = stage.weir(&split(words));
    command.stdout(OwnedFd::from(theirs));
    assert!(command.status().unwrap().success());
    // The other end is the command's as well.
    drop(command);
    let mut ready = String::new();
    (&own).read_to_string(&mut ready).unwrap();
    assert!(ready.starts_with("READY tcp://127.0.0.1:"), "{ready}");
    assert!(!table(&stage).contains("tcp://"));
}

#[test]
fn a_table_is_private_unless_it_shall_be_public() {
    let stage = Stage::new();
    for (words, mode) in [("", 0o600), ("--public", 0o644)] {
        let server = Server::start(&stage, &format!("--rank 0 {words}"));
        let facts = fs::metadata(stage.path(TABLE)).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, mode, "{words}");
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn a_port_that_somebody_has_ends_with_3_and_leaves_no_entry() {
    let stage = Stage::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", taken.local_addr().unwrap());
    let refused = serve(&stage, &format!("--rank 0 --transport {address}")).code(3);
    refused
        .err(&format!("cannot listen on {address}: "))
        .err("in use");
    assert!(!table(&stage).contains("tcp://"), "{}", table(&stage));
}

#[test]
fn listening_beyond_this_machine_without_a_token_has_to_be_asked_for() {
    let stage = Stage::new();
    let path = stage.file("token", "sixteen letters!");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let open = "--rank 0 --transport tcp://0.0.0.0:0";
    let refused = serve(&stage, open).code(2).silent();
    refused
        .err("tcp://0.0.0.0:0: whoever reaches it")
        .err("--open-to-anyone");
    let allowed = serve(&stage, &format!("{open} --open-to-anyone")).code(0);
    assert!(!allowed.out.contains("0.0.0.0"), "{allowed}");
    serve(&stage, &format!("{open} --token-file token")).code(0);
    let both = serve(
        &stage,
        &format!("{open} --token-file token --open-to-anyone"),
    )
    .code(2);
    both.err("--open-to-anyone acts only without `--token-file`");
    serve(&stage, "--rank 0 --transport tcp://127.0.0.1:0,shm://")
        .code(0)
        .calm();
}

/// A session of the self-test with one buffer of so many bytes for each of so many calls.
fn session(bytes: u32, buffers: u32) -> OpenRequest {
    OpenRequest {
        service: service::NAME.to_owned(),
        version: service::VERSION,
        send_size: bytes,
        send_kind: RpcPayloadKind::Bulk,
        buffers,
        credits: 1,
        ..OpenRequest::default()
    }
}

/// Answer to an order or a request of a frame of this kind: a code, or 0.
fn asked(control: &mut ControlStream, kind: FrameKind, body: &[u8]) -> (u16, String) {
    control.send(&FrameHeader::plain(kind), body).unwrap();
    let (answer, words) = control.receive(Duration::from_secs(20)).unwrap().unwrap();
    (answer.word, String::from_utf8_lossy(&words).into_owned())
}

fn opened(control: &mut ControlStream, request: &OpenRequest) -> (u16, String) {
    let mut body = Vec::new();
    request.encode(&mut body);
    asked(control, FrameKind::Open, &body)
}

#[test]
fn connections_and_sessions_have_limits_and_places_come_back() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0 --max-conns 2 --max-sessions 1");
    let mut first = connected(&server).unwrap();
    let mut second = connected(&server).unwrap();
    assert!(connected(&server).is_err());
    assert_eq!(opened(&mut first, &session(100, 1)).0, 0);
    let (code, words) = opened(&mut second, &session(100, 1));
    assert_eq!(DerCode::from_status(code), DerCode::NoMemory);
    assert!(
        words.contains("too many sessions: this server has 1"),
        "{words}"
    );
    drop(first);
    until("its session is free", || {
        opened(&mut second, &session(100, 1)).0 == 0
    });
    until("its place is free", || connected(&server).is_ok());
    assert_eq!(server.end(), Some(0));
}

#[test]
fn f10_a_session_that_asks_for_the_world_costs_the_server_nothing() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let mut control = connected(&server).unwrap();
    assert_eq!(opened(&mut control, &session(1 << 20, 1)).0, 0);
    let before = server.resident_kib();
    for _ in 0..20 {
        let (code, words) = opened(&mut control, &session(u32::MAX, 65_536));
        assert_eq!(DerCode::from_status(code), DerCode::NoMemory, "{words}");
    }
    let taken = server.resident_kib().saturating_sub(before);
    assert!(taken <= 256, "{taken} KiB");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn f11_an_order_to_call_ranks_that_are_not_in_the_table_is_refused() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let mut control = connected(&server).unwrap();
    let only = |number| Members {
        all: false,
        ranges: vec![(number, number)],
        except: Vec::new(),
    };
    for (rank, tag) in [(9, 0), (0, 9)] {
        let task = RpcWorkload {
            endpoints: vec![EndpointSet {
                ranks: only(rank),
                tags: only(tag),
            }],
            ..RpcWorkload::default()
        };
        let order = serde_json::to_vec(&task).unwrap();
        let (code, words) = asked(&mut control, FrameKind::Start, &order);
        assert_eq!(DerCode::from_status(code), DerCode::NotThere, "{words}");
        assert!(words.contains('9'), "{words}");
    }
    assert_eq!(server.end(), Some(0));
}

/// An address of this machine that is not the loopback's: connections to it stay here all the same.
fn other_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}

#[test]
fn f9_an_address_guesses_tokens_ten_times_a_second() {
    let Some(own) = other_address() else {
        return skip(
            "guessing tokens",
            "this machine has no address but the loopback's",
        );
    };
    let stage = Stage::new();
    let path = stage.file("token", "sixteen letters!");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let words = format!("--rank 0 --token-file token --transport tcp://{own}:0");
    let server = Server::start(&stage, &words);
    let attempt = |token: &str| {
        let setup = DialSetup {
            group: "daos_server".to_owned(),
            token: Some(Token::new(token.as_bytes().to_vec())),
            within: Duration::from_secs(10),
            from: Vec::new(),
        };
        let endpoint = ServerEndpoint {
            endpoint: RpcEndpoint { rank: 0, tag: 0 },
            address: server.address.parse().unwrap(),
            nonce: None,
        };
        open_control(&setup, &endpoint, LinkGreeting::default(), &|| false)
            .map_or_else(|e| e.code, |_| DerCode::Other)
    };
    let began = Instant::now();
    let codes: Vec<_> = (0..300).map(|_| attempt("some other secret")).collect();
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    let proved = codes
        .iter()
        .filter(|code| **code == DerCode::NoPermission)
        .count();
    assert!(
        (10..=10 * seconds).contains(&proved),
        "{proved} in {seconds} s"
    );
    assert!(
        codes[proved..].contains(&DerCode::Busy) || proved == 300,
        "{codes:?}"
    );
    // Whoever knows it gets in, later.
    until("it is forgiven", || {
        attempt("sixteen letters!") == DerCode::Other
    });
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_server_that_leaves_ends_the_calls_that_are_out_and_no_others_begin() {
    for transport in ["tcp", "shm"] {
        let stage = Stage::new();
        let serve = "--rank 0 --service-time const:1000 --transport tcp://127.0.0.1:0,shm://";
        let server = Server::start(&stage, serve);
        let words = format!("-e 0:0 -s '(i100 i100)' -i 8 --transport {transport}");
        let client = endless(&stage, &words);
        server.works_for(20);
        assert_eq!(server.end(), Some(0));
        let master = &masters(&client.end().code(1))[0][0];
        adds_up(master);
        assert!(
            count(master, "succeeded") > 0 && count(master, "not_sent") > 0,
            "{master}"
        );
        // Those in flight that the server had not seen when it left: a starved client hears of it late.
        assert!(count(master, "failed") <= 8, "{master}");
        assert!(!table(&stage).contains("tcp://"));
    }
}

//! Callers that harm a waiting server as much as they can: its memory, seen from outside, stays small, and its
//! client is served beside them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use weir_sys::token::{Protocol, ProvingSide, Token};

use crate::stage::{Running, Stage, until};
use crate::two_sides::{CONFIG, addresses, side};

/// Secret of both sides.
const TOKEN: &str = "sixteen letters!";
/// Memory that a server may have beyond what it had when it began to wait, in KiB.
const BEYOND: u64 = 64 << 10;
/// Callers at once.
const CALLERS: usize = 1024;

/// A stage with the configuration and the secret of both sides.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    let path = stage.file("token", TOKEN);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    stage
}

fn with_token(stage: &Stage, role: &str, test: u32) -> Command {
    let mut side = side(stage, role, test, &[]);
    side.args(["--token-file", "token"]);
    side
}

/// Where the server of a test is called.
fn place(test: u32) -> (String, u16) {
    (addresses(test)[1].clone(), 20086)
}

/// A server that waits for its client, and its memory then.
fn waiting(stage: &Stage, test: u32) -> (Running, u64) {
    let server = Running::start(with_token(stage, "--server", test));
    until("the server listens", || {
        TcpStream::connect(place(test)).is_ok()
    });
    let first = memory_kib(&server, "VmRSS:").unwrap();
    (server, first)
}

/// Memory of a server in KiB, by its line of `status`; none once it has ended.
fn memory_kib(server: &Running, line: &str) -> Option<u64> {
    let process = server.process().as_raw_pid();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|own| own.strip_prefix(line))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// The most memory that it had; none once it has ended.
fn peak(server: &Running) -> Option<u64> {
    memory_kib(server, "VmHWM:")
}

/// The greeting of a proper client, as somebody hears it who has the place of its server.
fn greeting(stage: &Stage, test: u32) -> Vec<u8> {
    let listener = TcpListener::bind(place(test)).unwrap();
    let client = Running::start(with_token(stage, "--client", test));
    let mut hello = Vec::new();
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    stream.read_until(b'\n', &mut hello).unwrap();
    drop((stream, listener));
    client.end().code(1).err("is lost");
    hello
}

/// A caller that knows the secret; its proof.
fn proved(hello: &[u8], test: u32) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(place(test)).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    stream.write_all(hello).unwrap();
    let mut reply = Vec::new();
    replies.read_until(b'\n', &mut reply).unwrap();
    let token = Token::new(TOKEN.as_bytes().to_vec());
    let proof = token.proof(Protocol::PacketPath, [hello, &reply], ProvingSide::Client);
    let proof = format!("{{\"proof\":{proof:?}}}\n").into_bytes();
    stream.write_all(&proof).unwrap();
    replies.read_until(b'\n', &mut Vec::new()).unwrap();
    (stream, proof)
}

/// Sends a line without an end until nobody takes it any more; the server's memory stays within its bounds.
fn gigabyte(mut stream: &TcpStream, server: &Running, first: u64) {
    let words = vec![b'x'; 1 << 16];
    for _ in 0..1 << 14 {
        if stream.write_all(&words).is_err() {
            return;
        }
        is_within(peak(server).unwrap_or(0), first);
    }
}

fn is_within(most: u64, first: u64) {
    assert!(most <= first + BEYOND, "{most} KiB, {first} at first");
}

#[test]
fn a_caller_that_knows_the_secret_is_heard_in_short_lines_alone() {
    let stage = stage();
    let hello = greeting(&stage, 90);
    let (server, first) = waiting(&stage, 90);
    let (stream, _) = proved(&hello, 90);
    gigabyte(&stream, &server, first);
    server.end().code(1).err("a line of more than 65536 bytes");
}

/// First words of hostile callers.
fn strange(hello: &[u8], replayed: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![b"\xff\0\x01\n".repeat(1000), replayed.to_vec()];
    let step = hello.len() / 20 + 1;
    for at in (0..hello.len()).step_by(step) {
        all.push(hello[..at].to_vec());
        let mut mutated = hello.to_vec();
        mutated[at] ^= 4;
        all.push(mutated);
    }
    all
}

/// A greeting with many parts, each larger in memory than as text.
fn with_sizes(hello: &[u8], count: usize) -> Vec<u8> {
    let sizes = ",1".repeat(count - 1);
    let sizes = format!(r#"\"request_cycle\":[1{sizes}],\"seed\""#);
    let hello = String::from_utf8(hello.to_vec()).unwrap();
    hello.replace(r#"\"seed\""#, &sizes).into_bytes()
}

#[test]
fn a_client_is_served_beside_a_thousand_hostile_callers() {
    weir_sys::limits::raise_open_files();
    let stage = stage();
    let hello = greeting(&stage, 91);
    let (server, _) = waiting(&stage, 91);
    let (stream, proof) = proved(&hello, 91);
    drop(stream);
    server.end().code(1).err("is lost");
    let (server, first) = waiting(&stage, 91);
    let call = || TcpStream::connect(place(91)).unwrap();
    for words in strange(&hello, &[hello.clone(), proof].concat()) {
        let mut stranger = call();
        // Who is sent away in mid-sentence sees an error here and below.
        let _ = stranger.write_all(&words);
        let _ = stranger.shutdown(Shutdown::Write);
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    gigabyte(&call(), &server, first);
    let [many, too_many] = [25_000, 120_000].map(|count| with_sizes(&hello, count));
    let crowd: Vec<TcpStream> = (0..CALLERS).map(|_| call()).collect();
    for (number, mut stream) in crowd.iter().enumerate() {
        // Silent, slow, or greeting and then without a proof.
        let cut = &hello[..number % hello.len()];
        let words = [&[][..], cut, &many, &too_many][number % 4];
        // What goes out before the server hears it.
        stream.set_nonblocking(true).unwrap();
        let _ = stream.write(words);
    }
    let client = Running::start(with_token(&stage, "--client", 91));
    let mut most = 0;
    while let Some(now) = peak(&server) {
        most = most.max(now);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.end().code(0);
    let server = server.end().code(0);
    drop(crowd);
    is_within(most, first);
    server
        .err("this is another token than the server's")
        .err("a line of more than 65536 bytes")
        .err("silent, and others wait");
}

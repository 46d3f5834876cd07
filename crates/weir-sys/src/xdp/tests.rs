//! Sockets at both ends of a wire, in a network of the test's own.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;

const PORTS: std::ops::RangeInclusive<u16> = 10010..=10025;

/// Set in the process that has a network of its own.
const INSIDE: &str = "WEIR_TEST_OWN_NETWORK";

/// Makes the wire, and becomes the test again.
const NETWORK: &str = "\
ip link add weirA type veth peer name weirB
ip link add weirC type veth peer name weirD
ip link set weirA mtu 2048 up
ip link set weirB mtu 2048 up
exec \"$0\" --exact \"$1\" --nocapture
";

/// Runs this very test again in a network of its own; true there.
fn has_own_network(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let name = format!("xdp::tests::{test}");
    let can = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let missing = if rustix::process::geteuid().is_root() {
        let program = ["unshare", "ip"].into_iter().find(|program| !can(program));
        program.map(|program| format!("no {program}"))
    } else {
        Some("network namespaces need root".to_owned())
    };
    if let Some(reason) = missing {
        skip(test, &reason);
        return false;
    }
    let done = Command::new("unshare")
        .args(["--net", "sh", "-ec", NETWORK])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(
        done.status.success() && out.contains("1 passed"),
        "{out}{err}"
    );
    false
}

fn skip(test: &str, reason: &str) {
    println!("SKIPPED: {test}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{test}: {reason}"));
    }
}

fn socket(interface: &str, mode: XdpMode) -> XdpSocket {
    let spec = XdpSocketSpec {
        interface,
        queue: 0,
        slots: 64,
        mode,
    };
    XdpSocket::open(&spec).unwrap()
}

/// A UDP packet to a port; its payload says its number.
fn frame(port: u16, number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![u8::try_from(number % 251).unwrap(); length];
    frame[..12].fill(0xff);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    frame
}

fn length(number: u32) -> usize {
    60 + number as usize * 37 % 2003
}

/// Sends so many frames to a port, and takes what comes at the other end until all are there.
fn exchange(
    sender: &mut XdpSocket,
    receiver: &mut XdpSocket,
    port: u16,
    frames: u32,
) -> Vec<Vec<u8>> {
    let (mut sent, mut came) = (0, Vec::new());
    let mut buffer = [0; 4096];
    let end = Instant::now() + Duration::from_secs(20);
    while came.len() < frames as usize && Instant::now() < end {
        // No more on the wire than the receiver has room for.
        while sent < frames
            && (sent as usize) < came.len() + 32
            && sender.push(&frame(port, sent, length(sent)))
        {
            sent += 1;
        }
        sender.flush().unwrap();
        while let Some(length) = receiver.pop(&mut buffer) {
            came.push(buffer[..length].to_vec());
        }
        receiver.release();
    }
    came
}

#[test]
fn frames_to_the_ports_of_a_program_come_whole_and_in_order_and_others_go_to_the_kernel() {
    if !has_own_network(
        "frames_to_the_ports_of_a_program_come_whole_and_in_order_and_others_go_to_the_kernel",
    ) {
        return;
    }
    for mode in [XdpMode::Generic, XdpMode::Native, XdpMode::Default] {
        let (mut sender, mut receiver) = (socket("weirA", mode), socket("weirB", mode));
        let program = XdpProgram::attach("weirB", mode, &PORTS).unwrap();
        program.serve(&receiver).unwrap();
        // Not to a port of the program, and no IPv4: they come first and are not delivered.
        let mut other = frame(10026, 0, 60);
        assert!(sender.push(&other));
        other = frame(10009, 0, 60);
        assert!(sender.push(&other));
        other = frame(10010, 0, 60);
        other[12..14].copy_from_slice(&[8, 6]);
        assert!(sender.push(&other));
        for port in [10010, 10025] {
            let came = exchange(&mut sender, &mut receiver, port, 1000);
            assert_eq!(came.len(), 1000, "{mode:?} dropped {}", receiver.drops());
            for (number, got) in (0..).zip(&came) {
                assert!(
                    got == &frame(port, number, length(number)),
                    "{mode:?}, frame {number}"
                );
            }
        }
        assert_eq!(receiver.drops(), 0);
        assert_eq!(sender.unsent(), 0);
    }
}

#[test]
fn frames_that_find_no_room_are_counted_as_dropped() {
    if !has_own_network("frames_that_find_no_room_are_counted_as_dropped") {
        return;
    }
    let mode = XdpMode::Generic;
    let (mut sender, mut receiver) = (socket("weirA", mode), socket("weirB", mode));
    let program = XdpProgram::attach("weirB", mode, &PORTS).unwrap();
    program.serve(&receiver).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut sent = 0_u32;
    while sent < 100 && Instant::now() < end {
        sent += u32::from(sender.push(&frame(10010, sent, 60)));
        sender.flush().unwrap();
    }
    while receiver.drops() < 36 && Instant::now() < end {
        sender.flush().unwrap();
    }
    assert_eq!((sent, receiver.waiting(), receiver.drops()), (100, 64, 36));
    let mut buffer = [0; 64];
    for number in 0..64 {
        assert_eq!(receiver.pop(&mut buffer), Some(60));
        assert_eq!(buffer[42..46], u32::to_be_bytes(number));
    }
    assert_eq!(receiver.pop(&mut buffer), None);
}

#[test]
fn an_interface_has_one_program_until_it_is_dropped() {
    if !has_own_network("an_interface_has_one_program_until_it_is_dropped") {
        return;
    }
    let first = XdpProgram::attach("weirB", XdpMode::Native, &PORTS).unwrap();
    let second = XdpProgram::attach("weirB", XdpMode::Native, &PORTS).unwrap_err();
    let why = second.to_string();
    assert!(
        why.contains("attach a program to weirB") && why.contains("xdp off"),
        "{why}"
    );
    drop(first);
    XdpProgram::attach("weirB", XdpMode::Native, &PORTS).unwrap();
}

#[test]
fn what_an_interface_cannot_do_is_refused_with_a_remedy() {
    if !has_own_network("what_an_interface_cannot_do_is_refused_with_a_remedy") {
        return;
    }
    let refused = |interface, queue, mode| {
        let spec = XdpSocketSpec {
            interface,
            queue,
            slots: 64,
            mode,
        };
        XdpSocket::open(&spec).unwrap_err().to_string()
    };
    let queue = refused("weirA", 7, XdpMode::Default);
    assert!(
        queue.contains("weirA, queue 7") && queue.contains("how many queues"),
        "{queue}"
    );
    let zero_copy = refused("weirA", 0, XdpMode::ZeroCopy);
    assert!(
        zero_copy.contains("os error 95") && zero_copy.contains("leave mode=zc away"),
        "{zero_copy}"
    );
    let down = refused("weirC", 0, XdpMode::Default);
    assert!(down.contains("is down"), "{down}");
    let _first = socket("weirA", XdpMode::Default);
    let second = refused("weirA", 0, XdpMode::Default);
    assert!(second.contains("another socket has this queue"), "{second}");
}

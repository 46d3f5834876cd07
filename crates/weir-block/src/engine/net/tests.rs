//! Settings that do not go together, and blocks over sockets of this machine.

use std::sync::atomic::AtomicU32;

use weir_schema::{EngineChoice, Setting};

use super::link::SocketSettings;
use super::*;

fn choice(settings: &[(&str, Setting)]) -> EngineChoice {
    EngineChoice::with("net", settings)
}

fn text(word: &str) -> Setting {
    Setting::Text(word.to_owned())
}

fn complaint(settings: &[(&str, Setting)], sends: bool) -> String {
    SocketSettings::read(&choice(settings), 0, sends)
        .unwrap_err()
        .message
}

#[test]
fn what_is_missing_or_does_not_fit_is_named() {
    let port = ("port", Setting::Number(9));
    let here = ("host", text("127.0.0.1"));
    let udp = ("protocol", text("udp"));
    let listen = ("listen", Setting::Bool(true));
    for (settings, sends, word) in [
        (vec![port.clone()], true, "no hostname="),
        (vec![port.clone()], false, "did you forget to set listen?"),
        (vec![here.clone()], true, "no port="),
        (vec![port.clone(), udp.clone()], true, "no hostname="),
        (
            vec![port.clone(), udp.clone(), listen.clone()],
            false,
            "a receiver of datagrams",
        ),
        (vec![("protocol", text("unix")), listen], false, "path"),
        (
            vec![
                port.clone(),
                here.clone(),
                udp.clone(),
                ("no_delay", Setting::Bool(true)),
            ],
            true,
            "for TCP",
        ),
        (
            vec![port, here, udp, ("interface", text("127.0.0.1"))],
            true,
            "multicast",
        ),
    ] {
        let said = complaint(&settings, sends);
        assert!(said.contains(word), "{settings:?}: {said}");
    }
}

#[test]
fn each_clone_has_a_port_of_its_own() {
    let settings = [
        ("port", Setting::Number(65_535)),
        ("listen", Setting::Bool(true)),
    ];
    assert!(SocketSettings::read(&choice(&settings), 0, false).is_ok());
    let beyond = SocketSettings::read(&choice(&settings), 1, false).unwrap_err();
    assert!(
        beyond.message.contains("no port is left"),
        "{}",
        beyond.message
    );
}

#[test]
fn a_block_that_no_datagram_holds_is_refused() {
    let settings = [
        ("port", Setting::Number(9)),
        ("protocol", text("udp")),
        ("host", text("127.0.0.1")),
    ];
    let settings = SocketSettings::read(&choice(&settings), 0, true).unwrap();
    assert!(settings.check_block(65_507).is_ok());
    assert!(settings.check_block(65_508).is_err());
}

/// Both ends of a Unix socket.
fn ends(name: &str) -> [(SocketSettings, NetSocket); 2] {
    let exe = std::env::current_exe().unwrap();
    let path = exe.with_file_name(format!("{name}-{}", std::process::id()));
    let path = text(path.to_str().unwrap());
    let stop = AtomicU32::new(0);
    let base = [("protocol", text("unix")), ("host", path)];
    let mut listens = base.to_vec();
    listens.push(("listen", Setting::Bool(true)));
    let receiver = SocketSettings::read(&choice(&listens), 0, false).unwrap();
    let sender = SocketSettings::read(&choice(&base), 0, true).unwrap();
    let listening = receiver.open().unwrap();
    let calling = sender.open().unwrap();
    let called = calling.meet(&sender, &stop).unwrap().unwrap();
    let accepted = listening.meet(&receiver, &stop).unwrap().unwrap();
    receiver.tidy();
    [(receiver, accepted), (sender, called)]
}

fn net(link: NetSocket, role: Role, stop: &AtomicU32) -> Net<'_> {
    Net {
        link,
        role,
        echoes: false,
        stop,
        end: None,
        received: 0,
        is_closed: false,
    }
}

#[test]
fn a_block_that_comes_in_pieces_is_received_whole() {
    let [(receiver, accepted), (_, called)] = ends("pieces");
    let sending = std::thread::spawn(move || {
        for piece in [&[1_u8; 1000][..], &[2; 3000], &[3; 96]] {
            assert_eq!(called.send(piece).unwrap(), piece.len());
        }
    });
    let stop = AtomicU32::new(0);
    let mut engine = net(accepted, Role::Receive, &stop);
    let mut block = [0; 4096];
    assert_eq!(engine.exchange(&mut block).unwrap(), 4096);
    assert_eq!((block[999], block[1000], block[4095]), (1, 2, 3));
    sending.join().unwrap();
    assert_eq!(
        engine.exchange(&mut block).unwrap(),
        0,
        "the peer has closed"
    );
    engine.link.close(&receiver);
}

#[test]
fn in_ping_pong_the_block_comes_back() {
    let [(receiver, accepted), (_, called)] = ends("ping-pong");
    let stop = AtomicU32::new(0);
    let echo = std::thread::spawn(move || {
        let stop = AtomicU32::new(0);
        let mut engine = net(accepted, Role::Receive, &stop);
        engine.echoes = true;
        let mut block = [0; 64];
        engine.exchange(&mut block).unwrap();
        engine.link.close(&receiver);
    });
    let mut engine = net(called, Role::Send, &stop);
    engine.echoes = true;
    let mut block = [7; 64];
    assert_eq!(engine.exchange(&mut block).unwrap(), 64);
    echo.join().unwrap();
}

#[test]
fn nobody_at_the_port_is_said_with_the_address() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = i64::from(free.local_addr().unwrap().port());
    drop(free);
    let settings = [("host", text("127.0.0.1")), ("port", Setting::Number(port))];
    let settings = SocketSettings::read(&choice(&settings), 0, true).unwrap();
    let stop = AtomicU32::new(0);
    let failed = settings.open().unwrap().meet(&settings, &stop).unwrap_err();
    assert_eq!(failed.errno, Some(libc::ECONNREFUSED));
    assert!(
        failed.message.contains(&format!("127.0.0.1:{port}")),
        "{}",
        failed.message
    );
}

#[test]
fn a_port_in_use_is_said_with_its_number() {
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = i64::from(taken.local_addr().unwrap().port());
    let settings = [
        ("port", Setting::Number(port)),
        ("listen", Setting::Bool(true)),
    ];
    let settings = SocketSettings::read(&choice(&settings), 0, false).unwrap();
    let failed = settings.open().unwrap_err();
    assert_eq!(failed.errno, Some(libc::EADDRINUSE));
    assert!(
        failed.message.contains(&port.to_string()),
        "{}",
        failed.message
    );
}

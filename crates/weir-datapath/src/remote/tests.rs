//! Both ends over loopback: tokens, one search at a time, strangers, lines beyond their bounds.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

fn token(text: &str) -> Token {
    Token::new(text.as_bytes().to_vec())
}

/// A daemon that ends each trial with the number of its settings, until a search asks it to keep some; the
/// notes of whom it has let go.
fn daemon() -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
    let (said, at) = mpsc::channel();
    let work = move || {
        // A port that is free, taken anew.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let facts = PathFacts {
            port: 7,
            workspaces: [(1, vec![0, 1])].into(),
        };
        let mut listener = TrialListener::open(at, token("secret"), facts).unwrap();
        said.send(at).unwrap();
        let mut notes = Vec::new();
        loop {
            match listener.next_event().unwrap() {
                None => thread::sleep(Duration::from_millis(1)),
                Some(TrialEvent::LetGo { why, .. }) => notes.push(why),
                Some(TrialEvent::Asked(TrialRequest::Trial(settings))) => {
                    let end = TrialEnd {
                        code: u8::try_from(settings.len()).unwrap(),
                        why: "x".repeat(10_000),
                        ..TrialEnd::default()
                    };
                    listener.reply(TrialReply::Ended(end));
                }
                Some(TrialEvent::Asked(TrialRequest::Keep(_))) => {
                    listener.reply(TrialReply::Kept("c.out".to_owned()));
                    return notes;
                }
                Some(_) => {}
            }
        }
    };
    let daemon = thread::spawn(work);
    (at.recv().unwrap(), daemon)
}

fn never() -> bool {
    false
}

#[test]
fn one_search_is_served_at_a_time_and_only_with_the_token() {
    let (at, daemon) = daemon();
    let wrong = TrialServer::call(at, &token("other"), &never).unwrap_err();
    assert!(wrong.message.contains("it has another token"), "{wrong:?}");
    let mut first = TrialServer::call(at, &token("secret"), &never).unwrap();
    assert_eq!(first.facts().workspaces[&1], [0, 1]);
    let second = TrialServer::call(at, &token("secret"), &never).unwrap_err();
    assert!(second.message.contains("is served"), "{second:?}");
    let settings: TrialSettings = [("a".to_owned(), "1".to_owned())].into();
    first.begin(settings.clone()).unwrap();
    let end = first.wait_for_end(&never).unwrap();
    assert_eq!((end.code, end.why.len()), (1, 4096));
    assert_eq!(first.keep(settings, &never).unwrap(), "c.out");
    let notes = daemon.join().unwrap();
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[test]
fn whoever_greets_otherwise_is_let_go_and_the_next_is_served() {
    let (at, daemon) = daemon();
    let long = vec![b'x'; 1 << 20];
    let strange: [&[u8]; 5] = [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\"stop\"\n",
        b"{\"trial\":{\"kAppTxMsgBatchSize\":\"1\"}}\n",
        b"\xff\0\x01\n",
        &long,
    ];
    for words in strange {
        let mut stranger = TcpStream::connect(at).unwrap();
        // What is let go in mid-sentence sees an error here and below.
        let _ = stranger.write_all(words);
        let mut heard = Vec::new();
        let _ = stranger.read_to_end(&mut heard);
        assert!(heard.is_empty(), "{heard:?}");
    }
    let mut served = TrialServer::call(at, &token("secret"), &never).unwrap();
    served.keep(TrialSettings::new(), &never).unwrap();
    let notes = daemon.join().unwrap();
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert!(notes[4].contains("more than 65536 bytes"), "{notes:?}");
}

#[test]
fn a_daemon_without_the_token_is_found_out() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let impostor = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let lines = [
            TrialReply::Daemon {
                form: FORM,
                packets: crate::peer::VERSION,
                nonce: [1; 16],
            },
            TrialReply::Accepted {
                proof: [2; 32],
                facts: PathFacts {
                    port: 1,
                    ..PathFacts::default()
                },
            },
        ];
        for line in lines {
            let text = serde_json::to_string(&line).unwrap() + "\n";
            stream.write_all(text.as_bytes()).unwrap();
        }
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let why = TrialServer::call(at, &token("secret"), &never).unwrap_err();
    assert!(why.message.contains("does not know the token"), "{why:?}");
    impostor.join().unwrap();
}

#[test]
fn lines_beyond_their_bounds_are_refused() {
    let many: TrialSettings = (0..65).map(|n| (n.to_string(), String::new())).collect();
    let long: TrialSettings = [("k".to_owned(), "1".repeat(65))].into();
    for settings in [many, long] {
        let line = serde_json::to_vec(&TrialRequest::Trial(settings)).unwrap();
        let why = read_request(&line).unwrap_err();
        assert!(why.contains("of at most"), "{why}");
    }
    let line = serde_json::to_vec(&TrialReply::Kept("x".repeat(5000))).unwrap();
    assert!(read_reply(&line).unwrap_err().contains("of at most 4096"));
    let mut deep = vec![b'['; 100_000];
    deep.push(b'\n');
    assert!(read_request(&deep).is_err() && read_reply(&deep).is_err());
}

//! Greetings of both sides: of servers of remote procedure calls, of both sides of a packet path, of streams between
//! ranks.
//!
//! The first byte says who listens to the input, the second whether it knows the token, how long the pieces are in
//! which bytes come, and whether the other side knows the token as well. Then come the bytes of the other side, as
//! they are or as changes (place, bits) to a good greeting, which is framed anew. Whoever does not know the token is
//! never in.

#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rustix::net::sockopt::set_socket_linger;
use weir_datapath::fuzzing::{MeetingServer, greeting, is_server};
use weir_net::fuzzing::{HELLO, is_rank};
use weir_rpc::auth::{Token, proof};
use weir_rpc::client::{DialSetup, ServerEndpoint, open_control};
use weir_rpc::links::{LinkGreeting, LinkSide};
use weir_rpc::server::fuzzing::{GreetingServer, PLACE, framed};
use weir_rpc::wire::{
    Auth, ClientHello, FrameHeader, FrameKind, HEADER, HelloReply, MAX_FRAME, PREAMBLE, Preamble,
    features,
};
use weir_schema::RpcEndpoint;
use weir_sys::token::{Protocol, ProvingSide};

/// Behaviour of a side.
#[derive(Clone, Copy)]
struct Ways {
    /// The side that listens knows the token.
    has_token: bool,
    /// The input is changes to a good greeting.
    is_changed: bool,
    /// The other side proves that it knows a token: the right one, or another.
    proves: Option<bool>,
    /// Bytes of a piece.
    piece: usize,
}

impl Ways {
    fn of(byte: u8) -> Self {
        Self {
            has_token: byte & 1 != 0,
            is_changed: byte & 2 != 0,
            proves: (byte & 4 != 0).then_some(byte & 8 != 0),
            piece: [1 << 14, 1, 7, 100][usize::from(byte >> 4 & 3)],
        }
    }

    fn token(self) -> Option<Token> {
        self.has_token.then(|| token(true))
    }

    /// The proof of the other side, if it sends one.
    fn proof(
        self,
        protocol: Protocol,
        greetings: [&[u8]; 2],
        side: ProvingSide,
    ) -> Option<[u8; 32]> {
        Some(token(self.proves?).proof(protocol, greetings, side))
    }

    /// True if the other side may be in, as far as the token goes.
    fn may_be_in(self) -> bool {
        !self.has_token || self.proves == Some(true)
    }
}

fn token(is_right: bool) -> Token {
    let text: &[u8] = if is_right {
        b"sixteen letters!"
    } else {
        b"sixteen letters?"
    };
    Token::new(text.to_vec())
}

/// Good bytes with these changes: two bytes of the place, one of the bits.
fn changed(good: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len().max(1);
        bytes[at] ^= change[2];
    }
    bytes
}

/// Both ends of a stream, which leave nothing behind when they end.
fn streams() -> Option<[TcpStream; 2]> {
    static LISTENER: OnceLock<TcpListener> = OnceLock::new();
    let listener = LISTENER.get_or_init(|| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let one = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    let other = listener.accept().ok()?.0;
    for stream in [&one, &other] {
        set_socket_linger(stream, Some(Duration::ZERO)).ok()?;
    }
    Some([one, other])
}

/// The preamble and the greeting of a client of remote procedure calls.
fn rpc_hello(called: &str) -> Vec<u8> {
    let hello = ClientHello {
        nonce: [7; 16],
        rank: 0,
        tag: 0,
        features: features::ALL,
        max_frame: MAX_FRAME,
        process: 1,
        boot: 0,
        group: "g".to_owned(),
        transports: "tcp".to_owned(),
        address: Vec::new(),
        called: called.to_owned(),
    };
    let mut body = Vec::new();
    hello.encode(&mut body);
    body
}

fn rpc_server(ways: Ways, input: &[u8]) {
    let preamble = Preamble {
        major: 1,
        minor: 0,
        flags: 0,
    };
    let body = changed(&rpc_hello(PLACE), input);
    let bytes = if ways.is_changed {
        [&preamble.encode()[..], &framed(FrameKind::Hello, &body)].concat()
    } else {
        input.to_vec()
    };
    let pieces: Vec<&[u8]> = bytes.chunks(ways.piece).collect();
    let known = ways.proves.map(token);
    let proves = known.as_ref().map(|known| (&body[..], known));
    let is_in = GreetingServer::new(ways.token()).greet(&pieces, proves);
    let is_called = ClientHello::decode(&body).is_ok_and(|hello| hello.called == PLACE);
    let may = ways.may_be_in() && (!ways.has_token || (ways.is_changed && is_called));
    assert!(may || !is_in, "a stranger is in");
    // The good greeting is one.
    let is_good = ways.is_changed && input.len() < 3;
    assert!(is_in || !is_good || ways.has_token != (ways.proves == Some(true)));
}

/// Words of a false server to the connection that comes next.
type Reply = Box<dyn FnOnce(&mut dyn ReadWrite) + Send>;

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

/// A thread that answers each connection as it is asked to.
struct FalseServer<A> {
    place: A,
    next: SyncSender<Reply>,
    done: Mutex<Receiver<()>>,
}

impl<A> FalseServer<A> {
    /// Answers the connection that `call` makes.
    fn answers<R>(&self, reply: Reply, call: impl FnOnce(&A) -> R) -> R {
        self.next.send(reply).expect("the thread is there");
        let result = call(&self.place);
        self.done
            .lock()
            .expect("one at a time")
            .recv()
            .expect("it has answered");
        result
    }

    fn start(place: A, mut serve: impl FnMut(Reply) + Send + 'static) -> Self {
        let (next, replies) = sync_channel::<Reply>(1);
        let (said, done) = sync_channel(1);
        std::thread::spawn(move || {
            for reply in replies {
                serve(reply);
                said.send(()).expect("somebody waits");
            }
        });
        Self {
            place,
            next,
            done: Mutex::new(done),
        }
    }
}

/// Takes the body of the next frame of a stream; empty where it ends.
fn next_body(stream: &mut dyn ReadWrite) -> Vec<u8> {
    let mut head = [0; HEADER];
    if stream.read_exact(&mut head).is_err() {
        return Vec::new();
    }
    let length = FrameHeader::decode(&head, true).map_or(0, |(_, length)| length as usize);
    let mut body = vec![0; length.min(1 << 16)];
    let read = stream.read_exact(&mut body);
    read.map_or(Vec::new(), |()| body)
}

fn rpc_client(ways: Ways, input: &[u8]) {
    static SERVER: OnceLock<FalseServer<String>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("weir-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        FalseServer::start(format!("shm://{}", path.display()), move |reply| {
            if let Ok((mut stream, _)) = listener.accept() {
                reply(&mut stream);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            }
        })
    });
    let setup = DialSetup {
        group: "g".to_owned(),
        token: ways.token(),
        from: Vec::new(),
        within: Duration::from_secs(5),
    };
    let endpoint = ServerEndpoint {
        endpoint: RpcEndpoint { rank: 0, tag: 0 },
        address: server.place.parse().expect("an address"),
        nonce: None,
    };
    let input = input.to_vec();
    let reply: Reply = Box::new(move |stream| {
        let _ = stream.read_exact(&mut [0; PREAMBLE]);
        let hello = next_body(stream);
        let ack = HelloReply {
            nonce: [3; 16],
            run: [4; 16],
            rank: 0,
            tags: 1,
            features: features::ALL,
            max_frame: MAX_FRAME,
            max_message: 1 << 20,
            credits: 16,
            authenticate: ways.has_token,
            transport: "shm".to_owned(),
            address: Vec::new(),
        };
        let mut body = Vec::new();
        ack.encode(&mut body);
        let body = changed(&body, &input);
        let mut bytes = framed(FrameKind::HelloAck, &body);
        if !ways.is_changed {
            bytes.clone_from(&input);
        }
        if let Some(is_right) = ways.proves {
            let proof = proof(&token(is_right), &hello, &body, LinkSide::Server);
            let mut auth = Vec::new();
            Auth { proof }.encode(&mut auth);
            bytes.extend_from_slice(&framed(FrameKind::Auth, &auth));
        }
        for piece in bytes.chunks(ways.piece) {
            let _ = stream.write_all(piece);
        }
    });
    let met = server.answers(reply, |_| {
        open_control(&setup, &endpoint, LinkGreeting::default(), &|| false).is_ok()
    });
    assert!(ways.may_be_in() || !met, "a stranger is believed");
}

/// Words that a side of a packet path sends: a good greeting with changes, or anything.
fn line(ways: Ways, good: &[u8], input: &[u8]) -> Vec<u8> {
    if ways.is_changed {
        changed(good, input)
    } else {
        input.to_vec()
    }
}

fn proof_line(proof: [u8; 32]) -> String {
    format!("{{\"proof\":{proof:?}}}\n")
}

fn path_server(ways: Ways, input: &[u8]) {
    let Some([mut client, server]) = streams() else {
        return;
    };
    let Ok(at) = server.local_addr() else {
        return;
    };
    let own = ways.token();
    let Some(mut meeting) = MeetingServer::new(server, own.as_ref()) else {
        return;
    };
    let hello = line(ways, &greeting(at, own.as_ref(), Some(at)), input);
    let mut end = None;
    for piece in hello.chunks(ways.piece) {
        let _ = client.write_all(piece);
        end = end.or_else(|| meeting.hear());
    }
    let mut reply = vec![0; 1 << 14];
    let _ = client.set_nonblocking(true);
    let came = client.read(&mut reply).unwrap_or(0);
    let greetings = [&hello[..], &reply[..came]];
    if let Some(proof) = ways.proof(Protocol::PacketPath, greetings, ProvingSide::Client) {
        let _ = client.write_all(proof_line(proof).as_bytes());
        end = end.or_else(|| meeting.hear());
    }
    assert!(ways.may_be_in() || end != Some(true), "a stranger is in");
    if ways.is_changed && input.len() < 3 && ways.has_token == (ways.proves == Some(true)) {
        assert_eq!(end, Some(true), "a proper client is in");
    }
}

fn path_client(ways: Ways, input: &[u8]) {
    static SERVER: OnceLock<FalseServer<std::net::SocketAddr>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("its address");
        FalseServer::start(at, move |reply| {
            if let Ok((mut stream, _)) = listener.accept() {
                reply(&mut stream);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
                let _ = set_socket_linger(&stream, Some(Duration::ZERO));
            }
        })
    });
    let own = ways.token();
    let good = line(ways, &greeting(server.place, own.as_ref(), None), input);
    let reply: Reply = Box::new(move |stream| {
        let mut hello = Vec::new();
        let mut byte = [0];
        while hello.last() != Some(&b'\n') && stream.read_exact(&mut byte).is_ok() {
            hello.push(byte[0]);
        }
        let greetings = [&hello[..], &good[..]];
        let proof = ways.proof(Protocol::PacketPath, greetings, ProvingSide::Server);
        let proof = proof.map(proof_line).unwrap_or_default();
        for piece in good.chunks(ways.piece).chain([proof.as_bytes()]) {
            let _ = stream.write_all(piece);
        }
    });
    let met = server.answers(reply, |at| is_server(*at, own.as_ref()));
    assert!(ways.may_be_in() || !met, "a stranger is believed");
}

fn rank(ways: Ways, input: &[u8], is_called: bool) {
    let Some([mut other, own]) = streams() else {
        return;
    };
    let (greeting, rest) = input.split_at(HELLO.min(input.len()));
    let mut known = [0; HELLO];
    known[..greeting.len()].copy_from_slice(greeting);
    if is_called {
        // Nobody else has said a number yet, so that no proof can be right.
        let _ = other.write_all(&[&known[..], rest].concat());
        assert!(!is_rank(own, &token(true), None), "a stranger is in");
        return;
    }
    let number = [9; 16];
    let proof = ways.proof(Protocol::Ranks, [&known, &number], ProvingSide::Server);
    let proof = proof.map_or(rest.to_vec(), |proof| changed(&proof, rest));
    let _ = other.write_all(&[&number[..], &proof].concat());
    let is_in = is_rank(own, &token(true), Some(&known));
    assert!(
        !is_in || ways.proves == Some(true),
        "a stranger is believed"
    );
    assert!(is_in || ways.proves != Some(true) || rest.len() >= 3);
}

fuzz_target!(|data: &[u8]| {
    let Some((&[who, ways], input)) = data.split_first_chunk::<2>() else {
        return;
    };
    let (ways, input) = (Ways::of(ways), &input[..input.len().min(1 << 13)]);
    match who % 6 {
        0 => rpc_server(ways, input),
        1 => rpc_client(ways, input),
        2 => path_server(ways, input),
        3 => path_client(ways, input),
        4 => rank(ways, input, true),
        _ => rank(ways, input, false),
    }
});

//! Rate of a bare fabric: messages there and back, one after the other or many in flight,
//! without frames, sums or statistics. What `weir selftest` reaches on the same provider is
//! compared with it.
//!
//! ```text
//! fabric_window server PROVIDER [CPU]
//! fabric_window client PROVIDER PORT DEPTH BYTES MESSAGES [CPU]
//! fabric_window both   PROVIDER DEPTH BYTES MESSAGES [CPU,CPU]
//! ```
//!
//! The server prints the port on loopback on which it takes a client's address. The client sends
//! MESSAGES messages, at most DEPTH of them unanswered, and prints nanoseconds per round trip and
//! round trips per second. `both` starts the server itself. DEPTH 1 is a ping-pong.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weir_rpc::links::ofi::{
    COMPLETIONS_AT_ONCE, EndpointSizes, FabricChoice, FabricCompletion, FabricEndpoint,
    FabricLibrary, FabricOffer, FabricPeer, FabricPosted, FabricWork,
};
use weir_schema::RpcPoll;
use weir_sys::CpuList;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Message that ends the server's part.
const LAST: &[u8] = b"the last message";
/// For a peer that says nothing.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| args.get(at).map(String::as_str).unwrap_or_default();
    match word(0) {
        "server" => server(word(1), word(2)),
        "client" => {
            let plan = Plan::of(&args[3..])?;
            client(word(1), word(2).parse()?, &plan, word(6))
        }
        "both" => {
            let plan = Plan::of(&args[2..])?;
            let cpus: Vec<&str> = word(5).split(',').collect();
            both(word(1), &plan, &cpus)
        }
        _ => Err("say `server`, `client` or `both`: see the head of this file".into()),
    }
}

/// Messages that the client sends.
struct Plan {
    depth: u64,
    bytes: usize,
    messages: u64,
}

impl Plan {
    fn of(args: &[String]) -> Outcome<Self> {
        let [depth, bytes, messages, ..] = args else {
            return Err("DEPTH BYTES MESSAGES".into());
        };
        Ok(Self {
            depth: depth.parse()?,
            bytes: bytes.parse()?,
            messages: messages.parse()?,
        })
    }
}

fn both(provider: &str, plan: &Plan, cpus: &[&str]) -> Outcome<()> {
    let cpu = |at: usize| cpus.get(at).copied().unwrap_or_default();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["server", provider, cpu(0)])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut port = String::new();
    let out = child.stdout.take().ok_or("no output of the server")?;
    BufReader::new(out).read_line(&mut port)?;
    let outcome = match port.trim().parse() {
        Ok(port) => client(provider, port, plan, cpu(1)),
        Err(_) => Err("the server did not start".into()),
    };
    if outcome.is_err() {
        child.kill()?;
    }
    child.wait()?;
    outcome
}

/// An endpoint with what passes through it.
struct Window {
    endpoint: FabricEndpoint,
    peer: FabricPeer,
    completions: Vec<FabricCompletion>,
    received: Vec<u32>,
}

impl Window {
    /// An endpoint that knows the other side, whose address comes through the stream.
    fn open(provider: &str, mut stream: TcpStream, cpu: &str) -> Outcome<Self> {
        if !cpu.is_empty() {
            weir_sys::pin::set_affinity(&cpu.parse::<CpuList>()?)?;
        }
        let library = FabricLibrary::open()?;
        let offer = FabricOffer::find(&library, &FabricChoice::on_loopback(provider))?;
        let sizes = EndpointSizes::default();
        let mut endpoint = FabricEndpoint::open(offer, sizes, RpcPoll::Busy)?;
        let own = endpoint.address()?;
        stream.write_all(&u32::try_from(own.len())?.to_le_bytes())?;
        stream.write_all(&own)?;
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let mut address = vec![0; u32::from_le_bytes(len) as usize];
        stream.read_exact(&mut address)?;
        let peer = endpoint.insert(&address)?;
        Ok(Self {
            endpoint,
            peer,
            completions: Vec::with_capacity(COMPLETIONS_AT_ONCE),
            received: Vec::with_capacity(COMPLETIONS_AT_ONCE),
        })
    }

    /// Lets the provider work, and keeps which messages came.
    fn look(&mut self) -> Outcome<()> {
        self.endpoint.poll(&mut self.completions)?;
        for completion in self.completions.drain(..) {
            match (completion.work, completion.result) {
                (FabricWork::Receive(slot), Ok(_)) => self.received.push(slot),
                (_, Err(failure)) => {
                    return Err(format!("the fabric failed: {failure:?}").into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends, and keeps polling while the provider cannot.
    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        loop {
            let posted = self.try_to_send(bytes)?;
            if posted == FabricPosted::Taken {
                return Ok(());
            }
            self.look()?;
        }
    }

    fn try_to_send(&mut self, bytes: &[u8]) -> Outcome<FabricPosted> {
        let Some(slot) = self.endpoint.take_send() else {
            return Ok(FabricPosted::Again);
        };
        self.endpoint.send_bytes(&slot)[..bytes.len()].copy_from_slice(bytes);
        if let Some(posted) = self.endpoint.inject_slot(&slot, bytes.len(), self.peer)? {
            self.endpoint.give_send_back(slot);
            return Ok(posted);
        }
        Ok(match self.endpoint.send(slot, bytes.len(), self.peer, 0)? {
            None => FabricPosted::Taken,
            Some(slot) => {
                self.endpoint.give_send_back(slot);
                FabricPosted::Again
            }
        })
    }
}

fn server(provider: &str, cpu: &str) -> Outcome<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    let (stream, _) = listener.accept()?;
    let mut window = Window::open(provider, stream, cpu)?;
    let mut answer = vec![0; window.endpoint.sizes().message_bytes];
    let mut last = Instant::now();
    let mut looks = 0_u32;
    loop {
        window.look()?;
        let mut is_last = false;
        while let Some(slot) = window.received.pop() {
            let messages = window.endpoint.lend_messages().ok_or("no messages")?;
            let bytes = messages.message(slot, answer.len());
            is_last |= bytes.starts_with(LAST);
            // The length is not kept: answers are as long as the client's first 4 bytes say.
            let len = bytes
                .first_chunk()
                .map_or(0, |len| u32::from_le_bytes(*len));
            let len = (len as usize).min(answer.len());
            answer[..len].copy_from_slice(&bytes[..len]);
            window.endpoint.take_messages_back(messages);
            window.endpoint.receive(slot)?;
            window.send(&answer[..len])?;
            looks = 0;
        }
        if is_last {
            return Ok(());
        }
        looks = looks.wrapping_add(1);
        if looks == 1 {
            last = Instant::now();
        } else if looks.is_multiple_of(1 << 16) && last.elapsed() > PATIENCE {
            return Err("the client says nothing any more".into());
        }
    }
}

fn client(provider: &str, port: u16, plan: &Plan, cpu: &str) -> Outcome<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let mut window = Window::open(provider, stream, cpu)?;
    let mut message = vec![0x5A; plan.bytes.max(4)];
    message[..4].copy_from_slice(&u32::try_from(plan.bytes.max(4))?.to_le_bytes());
    // Connections are made, and caches filled, before it is timed.
    turns(&mut window, &message, plan.depth, plan.messages / 10 + 1)?;
    let start = Instant::now();
    turns(&mut window, &message, plan.depth, plan.messages)?;
    let seconds = start.elapsed().as_secs_f64();
    let count = f64::from(u32::try_from(plan.messages)?);
    writeln!(
        std::io::stdout(),
        "{provider} depth {} bytes {}: {:.0} ns, {:.0} per second",
        plan.depth,
        message.len(),
        seconds * 1e9 / count,
        count / seconds
    )?;
    window.send(LAST)?;
    for _ in 0..1000 {
        window.look()?;
    }
    Ok(())
}

/// Sends messages, each of which is answered.
fn turns(window: &mut Window, message: &[u8], depth: u64, messages: u64) -> Outcome<()> {
    let (mut sent, mut answered) = (0, 0);
    while answered < messages {
        while sent < messages && sent - answered < depth {
            window.send(message)?;
            sent += 1;
        }
        window.look()?;
        while let Some(slot) = window.received.pop() {
            window.endpoint.receive(slot)?;
            answered += 1;
        }
    }
    Ok(())
}

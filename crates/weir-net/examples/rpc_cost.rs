//! What a call costs: nanoseconds per call on tcp over loopback, busy polling on both sides.
//!
//! `rpc_cost [SLOTS,... [SEND REPLY [MILLISECONDS [CPU CPU]]]]`
//!
//! SEND and REPLY are as in `b1048578`: kind (e, i, b) and bytes. Client and server run on the two
//! processors given, or where they like. Prints calls in flight, time per call, calls per second and
//! bytes per second. Beside it stands what one write and one read per batch of 24-byte frames take
//! without any of this (`raw`).
#![allow(clippy::cast_precision_loss, reason = "figures to look at")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_net::rpc::client::{
    CallPayload, ClientSetup, DialSetup, RpcClient, ServerEndpoint, VerifyMode,
};
use weir_net::rpc::self_test::{SelfTestService, ServiceTime};
use weir_net::rpc::server::{NoMasters, PollMode, RankSetup, RpcServer, ServerLimits, ServerSetup};
use weir_net::rpc::stream::StreamLink;
use weir_net::rpc::transport::RpcTransport;
use weir_net::rpc::wire::PayloadKind;
use weir_sys::CpuList;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &'static str| words.get(at).map_or(default, String::as_str);
    let (send_kind, send_size) = payload(word(1, "e0"))?;
    let (reply_kind, reply_size) = payload(word(2, "e0"))?;
    let payload = CallPayload {
        send_kind,
        send_size,
        reply_kind,
        reply_size,
    };
    let span = Duration::from_millis(word(3, "500").parse()?);
    let server_cpu = words.get(5).map(|cpu| cpu.parse()).transpose()?;
    if let Some(cpu) = words.get(4) {
        weir_sys::pin::set_affinity(
            &cpu.parse::<CpuList>()
                .map_err(|error| format!("{error:?}"))?,
        )?;
    }
    let mut out = std::io::stdout().lock();
    for slots in word(0, "1,16,64").split(',') {
        let slots = slots.parse()?;
        let (calls, taken) = calls(slots, payload, span, server_cpu)?;
        let each = taken.as_nanos() as f64 / calls as f64;
        let raw = raw(slots as usize, span, server_cpu)?;
        let bytes = f64::from(send_size) + f64::from(reply_size);
        writeln!(
            out,
            "{slots:4} {each:10.1} ns {:12.0} /s {:8.3} GiB/s  raw {raw:10.1} ns  {:.3}",
            1e9 / each,
            bytes / each * 1e9 / f64::from(1 << 30),
            raw / each,
        )?;
    }
    Ok(())
}

fn payload(word: &str) -> Result<(PayloadKind, u32), Box<dyn Error>> {
    let (kind, size) = word.split_at_checked(1).ok_or("expected kind and size")?;
    let kind = match kind {
        "e" => PayloadKind::Empty,
        "i" => PayloadKind::Inline,
        "b" => PayloadKind::Bulk,
        _ => return Err("expected e, i or b".into()),
    };
    Ok((kind, size.parse()?))
}

fn server(cpu: Option<u32>) -> Result<RpcServer, Box<dyn Error>> {
    Ok(RpcServer::start(ServerSetup {
        group: "cost".to_owned(),
        ranks: vec![RankSetup {
            rank: 0,
            tags: 1,
            addresses: vec!["tcp://127.0.0.1:0".parse()?],
        }],
        pollers: 1,
        cpus: cpu.into_iter().collect(),
        poll: PollMode::Busy,
        services: Box::new(|_, _| vec![Box::new(SelfTestService::new(ServiceTime::None, 1))]),
        domain: None,
        limits: ServerLimits::default(),
        token: None,
        masters: Arc::new(NoMasters),
        log: Box::new(|_| {}),
    })?)
}

fn calls(
    slots: u32,
    payload: CallPayload,
    span: Duration,
    cpu: Option<u32>,
) -> Result<(u64, Duration), Box<dyn Error>> {
    let server = server(cpu)?;
    let (rank, address) = server.addresses()[0].clone();
    let setup = ClientSetup {
        dial: DialSetup {
            group: "cost".to_owned(),
            token: None,
            from: Vec::new(),
            within: Duration::from_secs(5),
        },
        endpoints: vec![ServerEndpoint {
            rank,
            tag: 0,
            address,
            nonce: None,
        }],
        slots,
        payload,
        buffers: slots,
        credits: slots,
        credits_per_rank: 0,
        quota: 0,
        verify: VerifyMode::First,
        eager: false,
        timeout: Duration::from_secs(60),
        reconnect: None,
        low_byte: None,
        poll: PollMode::Busy,
    };
    let mut client = RpcClient::attach(StreamLink::new()?, setup)?;
    for slot in 0..slots {
        client.request(0, slot);
    }
    let mut done = Vec::with_capacity(slots as usize);
    let mut calls = 0;
    let mut began = Instant::now();
    let mut warm = false;
    loop {
        client.flush()?;
        client.poll(None, u32::MAX, |slot, result| {
            assert!(result >= 0, "{result}");
            done.push(slot);
        })?;
        calls += done.len() as u64;
        for slot in done.drain(..) {
            client.request(0, slot);
        }
        if calls & 63 < u64::from(slots).min(64) {
            let elapsed = began.elapsed();
            if !warm && elapsed > span / 10 {
                warm = true;
                calls = 0;
                began = Instant::now();
            } else if warm && elapsed > span {
                break;
            }
        }
    }
    let taken = began.elapsed();
    client.close()?;
    server.stop()?;
    Ok((calls, taken))
}

/// Nanoseconds per 24-byte frame, there and back, so many at a time.
fn raw(slots: usize, span: Duration, cpu: Option<u32>) -> Result<f64, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        if let Some(cpu) = cpu.and_then(|cpu| cpu.to_string().parse::<CpuList>().ok()) {
            // Outside the mask it stays where it is.
            let _ = weir_sys::pin::set_affinity(&cpu);
        }
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(came) => stream.write_all(&buffer[..came])?,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Ok(()),
            }
        }
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let mut buffer = vec![0; 64 << 10];
    stream.write_all(&buffer[..slots * 24])?;
    let began = Instant::now();
    let mut bytes = 0;
    let mut rounds = 0_u32;
    while !rounds.is_multiple_of(64) || began.elapsed() < span {
        match stream.read(&mut buffer) {
            Ok(came) => {
                bytes += came;
                rounds += 1;
                stream.write_all(&buffer[..came])?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    let each = began.elapsed().as_nanos() as f64 / (bytes as f64 / 24.0);
    drop(stream);
    echo.join().map_err(|_| "the echo panicked")??;
    Ok(each)
}

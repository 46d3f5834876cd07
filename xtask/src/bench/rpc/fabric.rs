//! Calls over libfabric beside what its provider gives a message with nothing around it.
//!
//! One in flight beside `fi_pingpong`, of which a call is two transfers; more beside the example
//! `fabric_window`, a window of messages there and back without frames or statistics. Not here: what
//! a provider is.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::served::Served;
use super::{Case, Cpus, Rate, beside, cpus, split};
use crate::bench::child;
use crate::bench::side::{self, text};
use crate::cmd::Cmd;

/// The provider, and weir's name of it.
const PROVIDER: &str = "tcp;ofi_rxm";
const TRANSPORT: &str = "ofi+tcp";
/// Bytes of a message: about those of a call with its frame.
const BYTES: u32 = 64;
/// Messages of a run, some tenths of a second.
const PINGS: u32 = 20_000;
const MESSAGES: u32 = 200_000;
/// A port for the two sides of a ping-pong to meet on.
const PORT: u16 = 47_612;
/// Longest time that the answering side may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn version() -> Result<String> {
    let said = Cmd::new("fi_info --version").read()?;
    let line = said.lines().find(|line| line.starts_with("libfabric: "));
    Ok(line.unwrap_or("libfabric of an unknown version").to_owned())
}

pub(super) fn cases() -> Vec<Case> {
    [(1, 0.95), (16, 0.85), (64, 0.85)]
        .map(|(depth, target)| {
            let calls = format!("-s 0 -i {depth}");
            let own = calls.clone();
            let mine = move || Served::calling(&text(&side::weir())?, TRANSPORT, &own);
            beside(&format!("ofi-{depth}"), target, mine, move || {
                match (side::other(), depth) {
                    (Some(other), _) => Served::calling(other, TRANSPORT, &calls),
                    (None, 1) => Ok(ping_pong()),
                    (None, _) => window(depth),
                }
            })
        })
        .into()
}

/// Round trips per second of `fi_pingpong`.
fn ping_pong() -> Rate {
    let Cpus { caller, answerer } = cpus();
    let argv = |cpu: usize, port: &str| {
        split(&format!(
            "taskset -c {cpu} fi_pingpong {port} {PORT} -p {PROVIDER} -e rdm -S {BYTES} -I {PINGS}"
        ))
    };
    let server = argv(answerer, "-B");
    let mut client = argv(caller, "-P");
    client.push("127.0.0.1".to_owned());
    println!("$ {} &\n$ {}", server.join(" "), client.join(" "));
    Box::new(move || {
        let mut answering = Answering::start(&server)?;
        let said = answering.called_by(&client)?;
        let line = said.lines().last().unwrap_or_default();
        let column = line.split_whitespace().nth(6);
        let micros: f64 = column
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("no time of a transfer: {said}"))?;
        Ok(1e6 / (2.0 * micros))
    })
}

/// The answering side of a ping-pong. It ends by itself, or with this value.
struct Answering(Child);

impl Answering {
    fn start(argv: &[String]) -> Result<Self> {
        let (program, args) = argv.split_first().context("a command has a program")?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| argv.join(" "))?))
    }

    /// Runs the calling side, again where the other did not listen yet.
    fn called_by(&mut self, argv: &[String]) -> Result<String> {
        let begin = Instant::now();
        loop {
            match child::run(argv) {
                Ok(ended) => {
                    self.0.wait()?;
                    return Ok(ended.stdout);
                }
                Err(error) if begin.elapsed() > PATIENCE => return Err(error),
                Err(_) => {}
            }
            if let Some(status) = self.0.try_wait()? {
                bail!("the answering side of a ping-pong ended early ({status})");
            }
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Round trips per second of the example.
fn window(depth: u32) -> Result<Rate> {
    let program = text(&side::built("examples/fabric_window"))?;
    let Cpus { caller, answerer } = cpus();
    let argv = split(&format!(
        "{program} both {PROVIDER} {depth} {BYTES} {MESSAGES} {answerer},{caller}"
    ));
    println!("$ {}", argv.join(" "));
    Ok(Box::new(move || {
        let said = child::run(&argv)?.stdout;
        let rate = said.trim().strip_suffix(" per second");
        let rate = rate.and_then(|said| said.rsplit(' ').next()?.parse().ok());
        rate.with_context(|| format!("no rate: {said}"))
    }))
}

//! `weir rpc serve` on one CPU and `self_test` on another.
//!
//! In: a build of weir, a transport, what is called. Out: calls per second, from weir's own result.
//! The server lives as long as its case and sleeps while nobody calls it, so that the peer of the
//! case has its CPU.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Cpus, Rate, cpus, split};
use crate::bench::side::{named, text};
use crate::bench::{FOLDER, child};

/// Length of the calls, and of the warm-up that does not count.
const TIMES: &str = "--duration 300ms --warmup 100ms";

/// A server with one tag.
pub(in crate::bench) struct Served {
    child: Child,
    folder: PathBuf,
    /// Where it is called.
    pub(in crate::bench) address: String,
    /// Kept open, so that the server can go on printing.
    output: BufReader<ChildStdout>,
}

impl Served {
    /// Starts a server and waits until it can be called. `before` is a command that starts
    /// it.
    pub(in crate::bench) fn start(before: &str, weir: &str, transport: &str) -> Result<Self> {
        Self::ready(transport, |place, folder| {
            let Cpus { answerer, .. } = cpus();
            format!(
                "{before} {weir} rpc serve --rank 0 --tags 1 --transport {place} --cpus {answerer} --path {folder}"
            )
        })
    }

    /// Starts the command that `argv` makes of a place to listen at and a folder, and waits until it is ready.
    pub(in crate::bench) fn ready(
        transport: &str,
        argv: impl FnOnce(&str, &str) -> String,
    ) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::current_dir()?
            .join(FOLDER)
            .join(format!("rpc-{next}"));
        std::fs::create_dir_all(&folder)?;
        let place = match transport {
            "shm" => format!("shm://{}/socket", folder.display()),
            other => format!("{other}://127.0.0.1:0"),
        };
        let argv = split(&argv(&place, &text(&folder)?));
        println!("$ {}", argv.join(" "));
        let (program, args) = argv.split_first().context("a command has a program")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| argv.join(" "))?;
        let output = child.stdout.take().context("no output of the server")?;
        let mut served = Self {
            child,
            folder,
            address: String::new(),
            output: BufReader::new(output),
        };
        let mut line = String::new();
        served.output.read_line(&mut line)?;
        let address = line.trim().strip_prefix("READY ");
        served.address = address
            .with_context(|| format!("the server is not ready: {line}"))?
            .to_owned();
        Ok(served)
    }

    /// Calls per second of `self_test` with a new server.
    pub(in crate::bench) fn calling(weir: &str, transport: &str, calls: &str) -> Result<Rate> {
        let served = Self::start("", weir, transport)?;
        let argv = served.caller(weir, calls)?;
        println!("$ {}", argv.join(" "));
        Ok(Box::new(move || {
            // It is stopped when nobody calls it any more.
            let _ = &served;
            rate(&argv)
        }))
    }

    /// The argv of a caller.
    pub(in crate::bench) fn caller(&self, weir: &str, calls: &str) -> Result<Vec<String>> {
        let argv = caller(weir, &format!("--target {} {calls}", self.address))?;
        Ok(split(&argv))
    }

    /// Resident memory in bytes.
    pub(super) fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: f64 = kib.context("no VmRSS")?.parse()?;
        Ok(kib * 1024.0)
    }
}

impl Drop for Served {
    /// In order, so that it takes its socket away; a server that does not end is killed.
    fn drop(&mut self) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").arg(id).status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The self-test on the caller's CPU.
pub(super) fn caller(weir: &str, calls: &str) -> Result<String> {
    let Cpus { caller, .. } = cpus();
    let self_test = named("self_test", weir)?;
    Ok(format!(
        "taskset -c {caller} {self_test} --group-name daos_server --endpoint 0:0 {calls} {TIMES} \
         --poll busy --history off --output json"
    ))
}

/// Calls per second of a run, none of which failed.
pub(in crate::bench) fn rate(argv: &[String]) -> Result<f64> {
    let said = child::run(argv)?.stdout;
    let result: Value = serde_json::from_str(&said).with_context(|| format!("no JSON: {said}"))?;
    let master = &result["groups"][0]["jobs"][0]["outcome"]["masters"][0];
    let count = |name: &str| {
        let count = master[name].as_u64();
        count.with_context(|| format!("no `{name}`"))
    };
    let (done, failed) = (count("succeeded")?, count("failed")?);
    ensure!(
        done > 0 && failed == 0,
        "{failed} calls failed, {done} did not"
    );
    Ok(done as f64 * 1e9 / count("duration_ns")? as f64)
}

//! `weir rpc serve`: servers that answer RPCs.
//!
//! In: the words after `rpc`. Out: the exit code. Once it can be called it says `READY` and its addresses,
//! a line for each rank; a signal ends it in order. Not here: what the words mean (`weir-doors`), serving
//! (`weir-rpc`).

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use weir_doors::Refusal;
use weir_doors::rpc::{Action, ServeEnd, ServeSettings, read};
use weir_doors::selftest::{TableDirectory, log_settings};
use weir_rpc::server::hosting::{Host, host};
use weir_rpc::{DerCode, RpcError};
use weir_schema::RpcServe;
use weir_world::Launcher;

use crate::{Outcome, output, printed, signals};

/// Pause between two looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);

/// The words after `rpc`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(log) = log_settings(&variable)? {
        output::log_to(&log)?;
    }
    match read(words, &variable)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Serve(settings) => serve(*settings, host),
    }
}

/// Takes lines about strange clients.
pub(crate) type ServerLog = Box<dyn Fn(&str) + Send + Sync>;

/// Serves until it is to end.
pub(crate) fn serve(
    settings: ServeSettings,
    host: impl FnOnce(RpcServe, ServerLog) -> Result<Host, RpcError>,
) -> Outcome {
    let caught = signals::catch(None, None)?;
    for note in &settings.notes {
        output::error(&format!("note: {note}\n"));
    }
    let ready = settings.ready_descriptor.map(open_descriptor).transpose()?;
    let end = settings.end;
    let log = |line: &str| output::error(&format!("note: {line}\n"));
    let host = host(asked(settings), Box::new(log)).map_err(|why| lacks(&why))?;
    for note in host.notes() {
        output::error(&format!("warning: {note}\n"));
    }
    let lines = host
        .addresses()
        .iter()
        .map(|(_, address)| format!("READY {address}\n"));
    let lines: String = lines.collect();
    let is_said = match ready {
        Some(mut file) => {
            // Who does not listen has missed it.
            let _ = file.write_all(lines.as_bytes());
            true
        }
        // It serves all the same, and its exit code says what was lost.
        None => output::print(&lines),
    };
    let mut end = EndWatch::new(end);
    while !caught.interrupted() && !end.is_reached(&host) {
        thread::sleep(LOOK);
    }
    host.stop().map_err(|why| lacks(&why))?;
    Ok(u8::from(!is_said))
}

fn lacks(why: &RpcError) -> Refusal {
    match why.code {
        DerCode::Invalid => Refusal::usage(why),
        _ => Refusal::lacks(why),
    }
}

fn open_descriptor(number: i32) -> Result<File, Refusal> {
    // A copy: no descriptor is taken from whoever has it.
    let this = pidfd_open(getpid(), PidfdFlags::empty());
    let copy = this.and_then(|this| pidfd_getfd(this, number, PidfdGetfdFlags::empty()));
    copy.map(File::from).map_err(|errno| {
        let why = match errno {
            Errno::BADF => "this descriptor is not open".to_owned(),
            other => other.to_string(),
        };
        Refusal::usage(format!("--ready-fd {number}: {why}"))
    })
}

/// The server that is asked for: its table's directory is chosen, and a launcher says its rank.
fn asked(settings: ServeSettings) -> RpcServe {
    let mut asked = settings.serve;
    if let Some(table) = &mut asked.table {
        table.directory = table_directory(&settings.directories);
    }
    // The flags win over the launcher; one process alone is no group.
    let launcher =
        Launcher::of_this_process().filter(|launcher| asked.ranks.is_none() && launcher.size > 1);
    if let Some(launcher) = launcher {
        asked.ranks = Some((launcher.rank, launcher.rank));
        asked.group_size = Some(launcher.size);
    }
    asked
}

/// The first that can be used; the only one is used whatever comes of it.
fn table_directory(all: &[TableDirectory]) -> PathBuf {
    let can_be_used = |one: &&TableDirectory| {
        // A session's own is made once it is needed.
        let is_made = one.variable.is_some() && std::fs::create_dir(&one.path).is_ok();
        is_made || access(&one.path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    };
    let chosen = match all {
        [only] => Some(only),
        several => several.iter().find(can_be_used).or(several.last()),
    };
    chosen.map_or_else(PathBuf::new, |one| PathBuf::from(&one.path))
}

/// When a server ends by itself.
struct EndWatch {
    end: ServeEnd,
    requests: u64,
    since: Instant,
}

impl EndWatch {
    fn new(end: ServeEnd) -> Self {
        Self {
            end,
            requests: 0,
            since: Instant::now(),
        }
    }

    fn is_reached(&mut self, host: &Host) -> bool {
        let requests = host.counters().requests.load(Relaxed);
        if requests != self.requests {
            (self.requests, self.since) = (requests, Instant::now());
        }
        match self.end {
            ServeEnd::Never => false,
            ServeEnd::Requests(count) => requests >= count,
            ServeEnd::Idle(span) => self.since.elapsed() >= Duration::from(span),
        }
    }
}

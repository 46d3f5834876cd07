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
use weir_doors::Refusal;
use weir_doors::rpc::{Action, BusyTime, ServeEnd, ServeSettings, read};
use weir_doors::selftest::TableDirectory;
use weir_rpc::RpcError;
use weir_rpc::group::address::RpcAddress;
use weir_rpc::group::table::TablePlace;
use weir_rpc::server::hosting::{Host, Hosting};
use weir_rpc::service::self_test::ServiceTime;
use weir_rpc::server::ServerLimits;
use weir_sys::Tree;
use weir_units::Nanos;
use weir_world::Launcher;

use crate::{Outcome, output, printed, selftest, signals};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(10);
/// The most that all buffers take where nothing says how much.
const MOST_MEMORY: u64 = 1 << 30;

/// The words after `rpc`.
pub(crate) fn run(words: &[String]) -> Outcome {
    selftest::start_log()?;
    match read(words, &|name| std::env::var(name).ok())? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Serve(settings) => serve(&settings),
    }
}

/// Serves until it is to end.
fn serve(settings: &ServeSettings) -> Outcome {
    let caught = signals::catch(None, None)?;
    for note in &settings.notes {
        output::error(&format!("note: {note}\n"));
    }
    let ready = settings.ready_descriptor.map(open_descriptor).transpose()?;
    let hosting = hosting(settings)?;
    let exposed = exposed(&hosting);
    let host = hosting.start(Box::new(|line| output::error(&format!("note: {line}\n"))));
    let host = host.map_err(|why| lacks(&why))?;
    // What is warned of is a server that there is.
    if let Some(note) = exposed {
        output::error(&note);
    }
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
    let mut end = EndWatch::new(settings.end);
    while !caught.interrupted() && !end.is_reached(&host) {
        thread::sleep(LOOK);
    }
    host.stop().map_err(|why| lacks(&why))?;
    Ok(u8::from(!is_said))
}

fn lacks(why: &RpcError) -> Refusal {
    Refusal::lacks(why.to_string())
}

fn open_descriptor(number: i32) -> Result<File, Refusal> {
    // Through /proc, which opens it anew: no descriptor is taken from whoever has it.
    let path = format!("/proc/self/fd/{number}");
    let file = File::options().write(true).open(&path);
    file.map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "this descriptor is not open".to_owned(),
            _ => error.to_string(),
        };
        Refusal::usage(format!("--ready-fd {number}: {why}"))
    })
}

fn hosting(settings: &ServeSettings) -> Result<Hosting, Refusal> {
    let addresses = settings
        .transports
        .iter()
        .map(|text| text.parse::<RpcAddress>());
    let addresses = addresses.map(|address| address.map(with_port));
    let addresses: Result<Vec<_>, RpcError> = addresses.collect();
    // What words say goes before; one process alone is no group.
    let launcher = Launcher::of_this_process()
        .filter(|launcher| settings.ranks.is_none() && launcher.size > 1);
    Ok(Hosting {
        group: settings.group.clone(),
        ranks: launcher
            .map(|launcher| (launcher.rank, launcher.rank))
            .or(settings.ranks),
        size: launcher.map(|launcher| launcher.size),
        tags: settings.tags,
        addresses: addresses.map_err(|why| lacks(&why))?,
        interface: settings.interface.clone(),
        domain: settings.domain.clone(),
        table: Some(TablePlace {
            directory: table_directory(&settings.directories),
            group: settings.group.clone(),
            is_public: settings.is_public,
            is_plain: settings.is_cart_table,
        }),
        pollers: settings.pollers,
        cpus: settings.cpus.clone(),
        poll: settings.poll,
        token_file: settings.token_file.as_ref().map(PathBuf::from),
        allows_masters: settings.allows_masters,
        limits: ServerLimits {
            max_message: settings.max_message.0,
            memory: settings
                .memory_limit
                .map_or_else(default_memory, |limit| limit.0),
            connections: settings.max_connections,
            sessions: settings.max_sessions,
            half_frame: time(settings.half_frame_timeout_ns),
            ..ServerLimits::default()
        },
        service_time: match settings.service_time {
            BusyTime::None => ServiceTime::None,
            BusyTime::Constant(span) => ServiceTime::Constant(time(span)),
            BusyTime::Exponential(mean) => ServiceTime::Exponential(time(mean)),
            BusyTime::Bimodal {
                first,
                probability,
                second,
            } => ServiceTime::Bimodal(time(first), probability, time(second)),
        },
    })
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

fn time(span: Nanos) -> Duration {
    Duration::from_nanos(span.0)
}

/// An address of the network without a port gets any.
fn with_port(mut address: RpcAddress) -> RpcAddress {
    let has_port = address
        .place
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if address.scheme != "shm" && !has_port {
        address.place.push_str(":0");
    }
    address
}

/// A quarter of the memory, at most a gibibyte.
fn default_memory() -> u64 {
    let text = Tree::real().text("proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(MOST_MEMORY, |kib| (kib * 1024 / 4).min(MOST_MEMORY))
}

/// What listening beyond this machine without a secret means.
fn exposed(hosting: &Hosting) -> Option<String> {
    let is_local = |address: &RpcAddress| {
        let host = address.place.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let is_loopback = host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback());
        address.scheme == "shm" || is_loopback || ["localhost", "lo"].contains(&host)
    };
    let open = hosting
        .addresses
        .iter()
        .find(|address| !is_local(address))?;
    hosting.token_file.is_none().then(|| {
        format!(
            "warning: {open}: everyone who reaches it can have this server use memory and start tests \
             against its group (--token-file FILE, --allow-master no)\n"
        )
    })
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
            ServeEnd::Idle(span) => self.since.elapsed() >= time(span),
        }
    }
}

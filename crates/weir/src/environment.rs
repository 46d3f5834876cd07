//! The environment of this process: variables, CPUs, files to read, facts for the result.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};

use weir_jobfile::Files;
use weir_report::Terminal;
use weir_schema::catalogue::Environment;
use weir_schema::{ClockFacts, ClockSource, HostFacts, ProgramFacts};
use weir_sys::Tree;
use weir_sys::clock::{self, TickSource};
use weir_sys::host;
use weir_sys::memory::MemoryFacts;
use weir_sys::topology::Topology;
use weir_world::Launcher;

/// Largest job file.
const LARGEST_FILE: u64 = 64 << 20;

/// The environment variables, as far as they are text.
pub(crate) fn variables() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect()
}

/// Facts about the machine that a parser may use.
pub(crate) fn read() -> Environment {
    let tree = Tree::real();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = MemoryFacts::read(&tree).total.map_or(0, |b| b.0);
    Environment {
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        page_bytes: rustix::param::page_size() as u64,
        memory_mib: memory >> 20,
        variables: variables(),
    }
}

/// Files of the real file system; `-` is standard input.
pub(crate) struct RealFiles;

impl Files for RealFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let source: Box<dyn Read> = if path == "-" {
            Box::new(io::stdin().lock())
        } else {
            let file = std::fs::File::open(path)?;
            if file.metadata()?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            Box::new(file)
        };
        source.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(io::Error::other("larger than 64 MiB: not a job file"));
        }
        Ok(bytes)
    }
}

/// Facts about the machine for the result.
pub(crate) fn host() -> HostFacts {
    let tree = Tree::real();
    let facts = host::DetectedHost::read(&tree, Topology::of_this_machine());
    HostFacts {
        hostname: Some(facts.hostname),
        kernel: Some(facts.kernel),
        os: facts.os,
        cpu_model: facts.cpu_model,
        cpus: u32::try_from(facts.cpus).ok(),
        governor: (!facts.governors.is_empty()).then(|| facts.governors.join(", ")),
        memory_bytes: facts.memory,
        numa_nodes: u32::try_from(facts.numa_nodes).ok(),
        load_average: facts.load_average,
        ..HostFacts::default()
    }
}

/// Facts about this program for the result.
pub(crate) fn program() -> ProgramFacts {
    ProgramFacts {
        built_unix_s: env!("WEIR_BUILT").parse().ok(),
        commit: Some(env!("WEIR_COMMIT"))
            .filter(|c| !c.is_empty())
            .map(str::to_owned),
        library_path: std::env::var("LD_LIBRARY_PATH").ok(),
    }
}

/// Facts about the clock for the result.
pub(crate) fn clock_facts(facts: clock::DetectedClock) -> ClockFacts {
    ClockFacts {
        source: match facts.source {
            TickSource::Counter if cfg!(target_arch = "aarch64") => ClockSource::Cntvct,
            TickSource::Counter => ClockSource::Tsc,
            TickSource::Monotonic => ClockSource::Monotonic,
        },
        reason: facts.reason,
        frequency_hz: facts.frequency_hz,
        read_ns: facts.read_cost_ns,
        ..ClockFacts::default()
    }
}

/// Facts about a stream for text. A launcher's stream cannot be drawn on: Open MPI gives a rank a terminal of
/// its own, and passes its text on to any destination.
pub(crate) fn terminal(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Terminal {
    let columns = rustix::termios::tcgetwinsize(stream.as_fd()).ok();
    Terminal {
        is_terminal: stream.is_terminal() && Launcher::of_this_process().is_none(),
        columns: columns
            .map(|size| usize::from(size.ws_col))
            .filter(|&c| c > 0),
    }
}

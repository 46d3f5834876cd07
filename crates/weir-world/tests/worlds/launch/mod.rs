//! Start of ranks in tests: the launchers of both families, and the output of a world.
//!
//! A launcher that is not here is told with [`skip`]; a world that does not end within a minute
//! is ended and fails its test.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, each file uses a part of them"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Program that the ranks run.
pub(crate) const RANKS: &str = env!("CARGO_BIN_EXE_weir-world-ranks");
const PATIENCE: Duration = Duration::from_secs(60);

/// A launcher, by the name that Debian gives it beside its alternatives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mpi {
    pub(crate) launcher: &'static str,
    flags: &'static [&'static str],
    pub(crate) library: &'static str,
    pub(crate) compiler: &'static str,
    package: &'static str,
}

pub(crate) const OPEN_MPI: Mpi = Mpi {
    launcher: "mpirun.openmpi",
    flags: &["--oversubscribe"],
    library: "libmpi.so.40",
    compiler: "mpicc.openmpi",
    package: "openmpi-bin",
};

pub(crate) const MPICH: Mpi = Mpi {
    launcher: "mpirun.mpich",
    flags: &[],
    library: "libmpich.so.12",
    compiler: "mpicc.mpich",
    package: "mpich",
};

/// Both families, as far as they are here.
pub(crate) fn families(test: &str) -> Vec<Mpi> {
    let both = [OPEN_MPI, MPICH].into_iter();
    both.filter(|mpi| is_here(*mpi, test)).collect()
}

/// True if a family is here; otherwise the test is skipped for it.
pub(crate) fn is_here(mpi: Mpi, test: &str) -> bool {
    let is_here = has(mpi.launcher);
    if !is_here {
        let reason = format!("no {} (Debian package {})", mpi.launcher, mpi.package);
        skip(test, &reason);
    }
    is_here
}

/// Says that a test could not be done here.
pub(crate) fn skip(name: &str, reason: &str) {
    println!("SKIPPED: {name}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{name}: {reason}"));
    }
}

/// True if the program can be started.
pub(crate) fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|p| p.join(program).is_file())
}

/// A place for files that the tests make.
pub(crate) fn scratch(name: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).unwrap();
    let file = folder.join(format!("{}-{name}", std::process::id()));
    file.to_str().unwrap().to_owned()
}

/// Exit code and output of a world.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn good(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:#?}");
        &self.out
    }

    /// Lines of standard error that hold these words.
    pub(crate) fn complaints(&self, args: &str) -> usize {
        self.err.lines().filter(|l| l.contains(args)).count()
    }
}

/// Runs the program of the ranks by itself.
pub(crate) fn ranks(args: &[&str]) -> Said {
    run(Command::new(RANKS).args(args))
}

/// A command to be run under a launcher.
pub(crate) fn under(mpi: Mpi, ranks: u32, args: &[&str]) -> Command {
    watched(mpi, ranks, &[], args)
}

/// The same, with each rank watched by a program.
pub(crate) fn watched(mpi: Mpi, ranks: u32, watcher: &[&str], args: &[&str]) -> Command {
    let mut command = Command::new(mpi.launcher);
    command
        .args(mpi.flags)
        .args(["-n", &ranks.to_string()])
        .args(watcher)
        .args([RANKS, "mpi", "1"])
        .args(args)
        // Open MPI asks administrators whether they mean it.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Said {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    let Ok(output) = wait.recv_timeout(PATIENCE) else {
        // A launcher ends its ranks when it is asked to end.
        let _ = kill_process(pid, Signal::TERM);
        panic!("{command:?} does not end");
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

//! The two programs that speak fio's command line, and what they say of a job.
//!
//! In: a side and the options of a job, the same arguments for both. Out: rate and
//! operations from its JSON output, with what the process used.
//! Not here: which jobs are measured.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::FOLDER;
use super::child::{self, Ended};
use crate::{ab, cmd};

/// A program with fio's command line.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    Weir,
    Fio,
}

static OTHER: OnceLock<String> = OnceLock::new();

/// Puts another build of weir in the place of every peer.
pub(super) fn set_other(program: &str) {
    // A process compares with one other program.
    let _ = OTHER.set(program.to_owned());
}

/// The other build of weir that is the peer, where it is one.
pub(super) fn other() -> Option<&'static str> {
    OTHER.get().map(String::as_str)
}

/// Result of the first reporting group.
pub(super) struct Done {
    pub(super) operations: u64,
    pub(super) bytes: u64,
    pub(super) iops: f64,
    pub(super) ended: Ended,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir",
            Self::Fio => "fio",
        }
    }

    /// The command line of a job.
    pub(super) fn argv(self, options: &str) -> Result<Vec<String>> {
        let mut argv = match self {
            Self::Weir => vec![named("fio", &text(&weir())?)?],
            Self::Fio => match other() {
                Some(other) => vec![named("fio", other)?],
                None => vec![text(&cmd::find("fio").context("fio is not installed")?)?],
            },
        };
        argv.extend(options.split_whitespace().map(str::to_owned));
        argv.push("--output-format=json".to_owned());
        Ok(argv)
    }

    /// CPU seconds that `options` take when they move one block: what starting costs.
    pub(super) fn start(self, options: &str, cpu: fn(&Ended) -> Duration) -> Result<f64> {
        let one = format!("{options} --time_based=0 --loops=1 --number_ios=1");
        let runs: Result<Vec<f64>> = (0..5)
            .map(|_| Ok(cpu(&child::run(&self.argv(&one)?)?).as_secs_f64()))
            .collect();
        Ok(ab::median(runs?))
    }

    /// Runs a group of jobs that read, or that write.
    pub(super) fn run(self, options: &str) -> Result<Done> {
        done(child::run(&self.argv(options)?)?)
    }
}

/// Reads what the JSON output says of the first group, which does one kind of I/O.
pub(super) fn done(ended: Ended) -> Result<Done> {
    // fio puts its notes before the document.
    let begin = ended.stdout.find('{').unwrap_or(0);
    let output: Value = serde_json::from_str(&ended.stdout[begin..])
        .with_context(|| format!("no JSON: {}", ended.stdout))?;
    let group = &output["jobs"][0];
    let reads = group["read"]["total_ios"].as_u64().unwrap_or(0) > 0;
    let of_kind = &group[if reads { "read" } else { "write" }];
    let operations = of_kind["total_ios"].as_u64().context("no `total_ios`")?;
    let bytes = of_kind["io_bytes"].as_u64().context("no `io_bytes`")?;
    let iops = of_kind["iops"].as_f64().context("no `iops`")?;
    let wall = ended.wall.as_secs_f64();
    ensure!(
        operations as f64 <= iops * wall,
        "{operations} operations in {wall} s are not {iops} per second"
    );
    Ok(Done {
        operations,
        bytes,
        iops,
        ended,
    })
}

/// Prints what both sides run, so that it can be repeated by hand.
pub(super) fn show(options: &str) -> Result<()> {
    for side in [Side::Weir, Side::Fio] {
        println!("$ {}", side.argv(options)?.join(" "));
    }
    Ok(())
}

/// The binary that `cargo build --release -p weir` made.
pub(super) fn weir() -> PathBuf {
    built("weir")
}

/// Link with a peer's name to a build of weir, by which it is that peer.
pub(super) fn named(peer: &str, weir: &str) -> Result<String> {
    // A folder for each build.
    let folder = Path::new(FOLDER).join("named").join(weir.replace('/', "+"));
    text(&crate::peers::link(&folder, peer, Path::new(weir))?)
}

/// Name that it gives itself.
pub(super) fn version() -> Result<String> {
    cmd::Cmd::new(&text(&weir())?).arg("--version").read()
}

/// A program from the folder of release builds.
pub(super) fn built(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    PathBuf::from(target).join("release").join(name)
}

pub(super) fn text(path: &Path) -> Result<String> {
    let text = path.to_str().context("a path that is not UTF-8")?;
    Ok(text.to_owned())
}

/// The CPU that pinned workers get: the last one, far from what the system
/// prefers.
pub(super) fn cpu() -> usize {
    std::thread::available_parallelism().map_or(0, |count| count.get() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(iops: f64) -> Ended {
        Ended {
            stdout: format!(
                "note: something\n{{\"jobs\":[{{\"read\":{{\"total_ios\":100,\"io_bytes\":800,\"iops\":{iops}}}}}]}}"
            ),
            wall: Duration::from_secs(1),
            cpu: Duration::from_secs(1),
            user: Duration::from_secs(1),
            resident_kib: 1,
        }
    }

    #[test]
    fn a_rate_is_read_past_the_notes() {
        let done = done(ended(125.0)).unwrap();
        assert_eq!((done.operations, done.iops), (100, 125.0));
    }

    #[test]
    fn a_rate_below_what_was_done_in_the_whole_time_is_refused() {
        assert!(done(ended(50.0)).is_err());
    }
}

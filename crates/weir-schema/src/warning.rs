//! Warnings as data: what spoils a measurement, with a stable id.
//!
//! In: nothing. Out: the type, and the table of all warnings: what each is about, how grave it is,
//! what helps. Not here: when one is raised (who measures knows), how it is printed.

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

use Gravity::{Disturbed, Uncertain, Wrong};

/// Something that spoils numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable id, for example `cpu-steal`.
    pub id: String,
    /// The job it concerns; the run as a whole when absent.
    pub job: Option<String>,
    /// One sentence of cause.
    pub cause: String,
    /// One sentence of remedy.
    pub remedy: String,
}

/// Part of the figures that a warning takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gravity {
    /// They are not of what was asked for.
    Wrong,
    /// Something else took part in what they say.
    Disturbed,
    /// They are right, and less sure or less fine than they could be.
    Uncertain,
}

/// A warning before it is raised.
#[derive(Clone, Copy, Debug)]
pub struct WarningKind {
    /// Stable id.
    pub id: &'static str,
    /// Order where not all warnings can be printed.
    pub gravity: Gravity,
    /// The condition that spoils the measurement, in general.
    pub meaning: &'static str,
    /// Remedy, in a sentence.
    pub remedy: &'static str,
}

/// Every warning that a run can raise, by id.
pub const WARNINGS: &[WarningKind] = &[
    kind(
        "cgroup-limit",
        Disturbed,
        "the control group's limit on processor time throttled the run",
        "Raise cpu.max of the group.",
    ),
    kind(
        "clock-fallback",
        Uncertain,
        "the processor's counter is not trustworthy; the kernel's clock was used",
        "Boot with a trusted TSC (clocksource=tsc) for cheaper and finer clock reads.",
    ),
    kind(
        "clock-residual",
        Disturbed,
        "counter and kernel clock disagreed by more than 1 µs, or by more than 10 ppm",
        "Repeat the run; look for a virtual machine that was moved or paused.",
    ),
    kind(
        "compressible",
        Disturbed,
        "zeros or a pattern are written, which a device or file system may not store at all",
        "Write random content (the default).",
    ),
    kind(
        "cpu-frequency",
        Uncertain,
        "the frequency governor is not `performance`",
        "Set it to performance.",
    ),
    kind(
        "cpu-shared",
        Disturbed,
        "a worker waited more than 5 % of its time for a processor that others had, or was switched \
         out more than 10 times per second",
        "Stop the other load, or pin the worker to a CPU of its own.",
    ),
    kind(
        "cpu-steal",
        Disturbed,
        "the hypervisor took more than 1 % of the time of a processor that a worker ran on",
        "Run on a machine of its own, or repeat and compare.",
    ),
    kind(
        "device-shared",
        Disturbed,
        "over 2 % of what the device moved was not the run's, and took over 1 % of its time (direct \
         I/O without a ramp or a latency target)",
        "Stop the other load on the device.",
    ),
    kind(
        "drive-status",
        Disturbed,
        "the drive refused or failed commands, and said why",
        "Look the status up in the drive's manual; `smartctl -a` has its log of errors.",
    ),
    kind(
        "dump-lost",
        Uncertain,
        "a dump of bad data could not be stored",
        "Have dumps stored in a directory that exists and has room.",
    ),
    kind(
        "ended-early",
        Uncertain,
        "the run was ended before its time by who watched it (`--live`): its figures are those until then",
        "Let it run to its end for the figures that the plan asks for.",
    ),
    kind(
        "exchange-bounds",
        Wrong,
        "a minimum of sizes or loops was above the maximum and was set to it",
        "give a minimum that is not above the maximum",
    ),
    kind(
        "exchange-no-time",
        Wrong,
        "a timed run took no time that the clock can tell",
        "make the loops longer, or ask for a minimum time",
    ),
    kind(
        "exchange-noisy",
        Disturbed,
        "the repetitions of a message size differ by more than 10 % of their mean; `weir net`: of most \
         pairs, or of most rings, the best measurement has no other within 10 %",
        "pin the ranks, leave CPUs to them, raise the repetitions",
    ),
    kind(
        "exchange-short",
        Uncertain,
        "a timed run was shorter than 20 barriers between the ranks",
        "make the loops longer, or ask for a minimum time",
    ),
    kind(
        "fault-idle",
        Wrong,
        "a fault of the emulated card struck no operation, so the run did not show what it was to show",
        "Place it where a job writes or reads: 2m is an offset, 2 an operation.",
    ),
    kind(
        "few-samples",
        Uncertain,
        "fewer than 10 samples lie beyond a percentile that was asked for",
        "Run longer, or ask for lower percentiles.",
    ),
    kind(
        "generator-limited",
        Wrong,
        "the tool was measured, not the target: more than 1 % of the operations of an open loop were \
         issued over 10 µs late although the queue was not nearly full, or never begun in a packet path, or \
         the loop's own cost kept it from its rate",
        "Lower the rate, use more workers, or pin them to free CPUs.",
    ),
    kind(
        "instrument-cost",
        Disturbed,
        "the loop's own cost is above 5 % of the median latency, or above a tenth of the time per \
         operation",
        "Take the latencies for upper bounds, or move more with each operation.",
    ),
    kind(
        "log",
        Wrong,
        "a log or trace could not be written whole, or operations are missing in it",
        "Write it to a faster or larger place, or log windows instead of operations.",
    ),
    kind(
        "max-time",
        Wrong,
        "`--max-time` was over before all sizes (`weir beff`) or all random rings (`weir net`) were \
         measured, or before a warm-up ended",
        "allow more time, or ask for fewer sizes",
    ),
    kind(
        "messages-lost",
        Disturbed,
        "messages of a packet path had no answer in time: its latencies are those of the others",
        "Lower the rate or the window, or look where they are dropped: `weir show --voice peer` has the counts.",
    ),
    kind(
        "never-written",
        Wrong,
        "parts of the file, or of an NVMe drive, were never written: reads of them reach no device or no medium",
        "Write all of the file first.",
    ),
    kind(
        "not-registered",
        Uncertain,
        "the kernel refused to register buffers or files of `io_uring`; they were used as they are",
        "Raise the limit of locked memory (`ulimit -l`), or switch the registration off.",
    ),
    kind(
        "not-steady",
        Disturbed,
        "the first tenth of the run differs from the rest by more than chance allows",
        "Use a ramp.",
    ),
    kind(
        "oversubscribed",
        Disturbed,
        "more workers than processors, some that never sleep or that waited for one; ranks that share a \
         processor",
        "Use no more workers than CPUs.",
    ),
    kind(
        "page-cache",
        Wrong,
        "reads through a page cache that has room for all of them, of which the disks did not deliver \
         all: they may come from there, not from the device",
        "Read with direct I/O, or from a region larger than memory.",
    ),
    kind(
        "pool-far",
        Disturbed,
        "the memory of a store's pool is on another node than the CPU that works on it",
        "Start it on the CPUs of the pool's node (taskset, numactl), or make the pool on another node.",
    ),
    kind(
        "program-failed",
        Wrong,
        "a program of the engine `exec` ended with an error; see what it wrote",
        "See what it wrote to its standard error.",
    ),
    kind(
        "ramp",
        Wrong,
        "the job ended within its ramp: the figures are those of the ramp",
        "Use a shorter ramp, or let it run longer.",
    ),
    kind(
        "rate-not-reached",
        Wrong,
        "an open loop did less than 99 % of its schedule: its response times are those of a growing \
         backlog",
        "Lower the rate, or use more workers or a greater depth.",
    ),
    kind(
        "rpc-fabric",
        Uncertain,
        "RPCs went through a provider of fabrics that has been given up, or that can hang",
        "Use another one (ofi+tcp), or the transport shm.",
    ),
    kind(
        "rpc-interface",
        Disturbed,
        "RPCs went through a network interface that is not near to the CPUs of this process, or what was \
         asked for had no effect",
        "Start it on the CPUs of the interface's node (taskset, numactl), or name another interface.",
    ),
    kind(
        "rpc-table",
        Uncertain,
        "the table of a group of servers says another size than it has",
        "Start a server whose entry is missing again; weir counts the entries.",
    ),
    kind(
        "runs-differ",
        Uncertain,
        "equal runs differ by more than twice what the interval of one of them allows for",
        "Trust the interval between runs, and look for what changes from run to run.",
    ),
    kind(
        "short-run",
        Uncertain,
        "too short for an interval",
        "Run for at least 0.2 s, better 30 s.",
    ),
    kind(
        "slow",
        Uncertain,
        "the rate changes slowly compared to the run: its `±` holds for this run only",
        "Use --repeat to see how runs differ.",
    ),
    kind(
        "source-warning",
        Disturbed,
        "the program whose figures were imported warned of them itself",
        "Read what it says of its own figures.",
    ),
    kind(
        "split-blocks",
        Disturbed,
        "the block layer splits each operation of the engine `kernel`: its latency is that of several",
        "Use a block size that the device takes in one request.",
    ),
    kind(
        "stopped",
        Wrong,
        "the process was stopped while it measured, by SIGSTOP or Ctrl-Z: its figures count that time",
        "Measure again, and let it run.",
    ),
    kind(
        "tag-waits",
        Uncertain,
        "the depth is larger than the device's queue: submission in the kernel includes waits for a place",
        "Use a smaller depth, or read the total latency.",
    ),
    kind(
        "too-hot",
        Wrong,
        "an NVMe drive was so hot that the run ended before its time: its figures are those until then",
        "Cool the drive, or allow it more.",
    ),
    kind(
        "unverified",
        Wrong,
        "the time was up before everything that was written had been read back: the rest was not \
         verified",
        "Give the job no time to run for, or verify in a job of its own.",
    ),
    kind(
        "wrong-data",
        Wrong,
        "messages did not arrive as they were sent, or not at all: at which sizes and ranks; the run \
         fails",
        "do not use these figures: look for what damages messages on their way",
    ),
];

const fn kind(
    id: &'static str,
    gravity: Gravity,
    meaning: &'static str,
    remedy: &'static str,
) -> WarningKind {
    WarningKind {
        id,
        gravity,
        meaning,
        remedy,
    }
}

impl WarningKind {
    /// The one of this id.
    pub fn of(id: &str) -> Option<&'static Self> {
        WARNINGS.iter().find(|kind| kind.id == id)
    }

    /// Every id.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        WARNINGS.iter().map(|kind| kind.id)
    }
}

impl Warning {
    /// A warning about a job, or about the run as a whole, with the remedy of its kind.
    pub fn new(id: &str, job: Option<&str>, cause: impl Into<String>) -> Self {
        let kind = WarningKind::of(id);
        debug_assert!(kind.is_some(), "`{id}` is not in the table of warnings");
        Self {
            id: id.to_owned(),
            job: job.map(str::to_owned),
            cause: cause.into(),
            remedy: kind.map_or(String::new(), |kind| kind.remedy.to_owned()),
        }
    }

    /// The same with a remedy that fits better than the one of its kind.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: remedy.into(),
            ..self
        }
    }

    /// Gravity of the warning; one of a newer weir has the highest.
    pub fn gravity(&self) -> Gravity {
        WarningKind::of(&self.id).map_or(Wrong, |kind| kind.gravity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_explains_every_warning_in_this_order() {
        let book = include_str!("../../../docs/book/src/how-weir-measures.md");
        let (_, section) = book.split_once("\n## Warnings\n").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let row = |kind: &WarningKind| format!("| `{}` | {} |", kind.id, kind.meaning);
        assert_eq!(
            rows.collect::<Vec<_>>(),
            WARNINGS.iter().map(row).collect::<Vec<_>>()
        );
    }

    #[test]
    fn each_kind_has_its_place_and_its_remedy() {
        assert!(WARNINGS.is_sorted_by_key(|kind| kind.id));
        assert!(WARNINGS.iter().all(|kind| !kind.remedy.is_empty()));
        let warning = Warning::new("cpu-shared", Some("a"), "Worker 0 waited.");
        assert_eq!(
            warning.remedy,
            WarningKind::of("cpu-shared").unwrap().remedy
        );
        assert_eq!(warning.with_remedy("Wait.").remedy, "Wait.");
    }
}

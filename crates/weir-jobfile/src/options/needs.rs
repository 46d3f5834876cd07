//! Needs of options: the values that other options of a job must have for one option to act.
//!
//! In: a draft with all its options applied, and its engine. Out: whether an option can act, and
//! the words that say when it does. Not here: who is told ([`crate::idle_options`]).

use weir_schema::catalogue::EngineInfo;
use weir_schema::{PerKind, Setting, Size, VerifyMethod};

use crate::Dialect;
use crate::draft::{Direction, Draft};
use crate::logs::Named;

/// Condition under which an option acts.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Condition in words; "acts only" goes before it.
    pub when: &'static str,
    is_met: fn(&Draft, &EngineInfo) -> bool,
}

impl Need {
    const fn new(when: &'static str, is_met: fn(&Draft, &EngineInfo) -> bool) -> Self {
        Self { when, is_met }
    }

    /// True if it is met in this job.
    pub(crate) fn is_met(&self, draft: &Draft, engine: &EngineInfo) -> bool {
        (self.is_met)(draft, engine)
    }
}

fn any(given: &PerKind<Option<u64>>) -> bool {
    let given = [given.read, given.write, given.trim];
    given.into_iter().flatten().any(|n| n > 0)
}

fn has_rate(draft: &Draft) -> bool {
    any(&draft.rate.bytes) || any(&draft.rate.ops)
}

fn is_replay(draft: &Draft) -> bool {
    draft.replay.path.is_some()
}

/// Operations of one job overlap.
fn is_deep(draft: &Draft, engine: &EngineInfo) -> bool {
    !engine.synchronous && draft.depth.queue_depth.0 > 1
}

fn writes(draft: &Draft) -> bool {
    is_replay(draft) || !matches!(draft.direction, Direction::Read | Direction::Trim)
}

fn has_several_files(draft: &Draft) -> bool {
    let listed = draft.filenames.len();
    let own = listed == 0 && draft.file_count > 1;
    own || listed > 1 || !draft.opened_below.is_empty() || is_replay(draft)
}

fn is_on(log: &Named) -> bool {
    !matches!(log, Named::Off)
}

/// Of bandwidth, operations or latencies.
fn has_series(draft: &Draft) -> bool {
    let logs = &draft.logs;
    [&logs.bandwidth, &logs.operations, &logs.latency]
        .into_iter()
        .any(is_on)
}

fn has_log(draft: &Draft) -> bool {
    has_series(draft) || is_on(&draft.logs.buckets)
}

/// A switch of the engine.
fn is_set(draft: &Draft, house: &str) -> bool {
    matches!(draft.engine.settings.get(house), Some(Setting::Bool(true)))
}

/// The network engine speaks one of these; `tcp` where nothing is said.
fn uses_protocol(draft: &Draft, protocols: &[&str]) -> bool {
    match draft.engine.settings.get("protocol") {
        Some(Setting::Text(name)) => protocols.contains(&name.as_str()),
        _ => protocols.contains(&"tcp"),
    }
}

pub(super) const SIZE_RANGE: Need = Need::new("with `bsrange`", |d, _| {
    d.sizes.range.is_some() && d.sizes.split.is_none()
});
pub(super) const MIX: Need = Need::new("with `rw=rw` or `rw=randrw`", |d, _| {
    d.direction == Direction::Mixed
});
pub(super) const RANDOM: Need = Need::new("with a random `rw`", |d, _| d.random);
pub(super) const STEPS: Need = Need::new("with `:N` after a random `rw`", |d, _| d.steps > 1);
pub(super) const WRITES: Need = Need::new("with a `rw` that writes", |d, _| writes(d));
pub(super) const ZONES: Need = Need::new("with `zonemode=strided`", |d, _| d.zones.on);
pub(super) const COMPRESSION: Need = Need::new("with `buffer_compress_percentage`", |d, _| {
    d.content.compress_percent > 0
});
pub(super) const DEDUPE: Need = Need::new("with `dedupe_percentage`", |d, _| {
    d.content.dedupe_percent > 0
});
pub(super) const WORKING_SET: Need = Need::new(
    "with `dedupe_percentage` and `dedupe_mode=working_set`",
    |d, _| d.content.dedupe_percent > 0 && d.dedupe_set,
);
pub(super) const OWN_FILES: Need = Need::new("without `filename` and `opendir`", |d, _| {
    d.filenames.is_empty() && d.opened_below.is_empty()
});
pub(super) const FILES: Need = Need::new("with several files", |d, _| has_several_files(d));
pub(super) const CLONES: Need = Need::new("with `numjobs` above 1", |d, _| d.clones > 1);
pub(super) const PERCENT_OFFSET: Need = Need::new("with an `offset` in percent", |d, _| {
    matches!(d.region.offset, Some(Size::Percent(_)))
});
pub(super) const LOOPS: Need = Need::new("with `loops` above 1", |d, _| d.passes.loops > 1);
pub(super) const QUEUE: Need = Need::new(
    "with an engine that has several operations in flight",
    |_, engine| !engine.synchronous,
);
pub(super) const DEPTH: Need = Need::new(
    "with `iodepth` above 1 and an engine that has several operations in flight",
    is_deep,
);
pub(super) const DEPTH_ABOVE: Need = Need::new(
    "below `iodepth`, and with an engine that has several operations in flight",
    |d, engine| {
        let low = d.depth.refill_below;
        is_deep(d, engine) && low.is_some_and(|low| low < d.depth.queue_depth.0)
    },
);
pub(super) const HUGE_PAGES: Need = Need::new("with `mem=mmaphuge` or `mem=shmhuge`", |d, _| {
    use weir_schema::MemoryKind::{Huge, SharedHuge};
    matches!(d.memory.kind, Huge | SharedHuge)
});
pub(super) const CPUS: Need = Need::new(
    "with `cpus_allowed`, `cpumask` or `numa_cpu_nodes`",
    |d, _| d.placement.cpus.is_some() || d.placement.nodes.is_some(),
);
pub(super) const RATE: Need = Need::new("with `rate` or `rate_iops`", |d, _| has_rate(d));
pub(super) const LEAST_RATE: Need = Need::new("with `rate_min` or `rate_iops_min`", |d, _| {
    any(&d.rate.min_bytes) || any(&d.rate.min_ops)
});
pub(super) const RATE_AND_PAUSE: Need = Need::new(
    "with `thinktime`, and with `rate` or `rate_iops`",
    |d, _| has_rate(d) && d.think.pause_ns.0 > 0,
);
pub(super) const PAUSE: Need = Need::new("with `thinktime`", |d, _| d.think.pause_ns.0 > 0);
pub(super) const STEADY: Need = Need::new("with `steadystate_duration`", |d, _| {
    d.feedback.steady().is_some()
});
pub(super) const TARGET: Need = Need::new("with `latency_target`", |d, _| {
    d.feedback.latency_target().is_some()
});
pub(super) const FLOW: Need = Need::new("with `flow`", |d, _| d.feedback.flow().is_some());
pub(super) const RECORDED: Need = Need::new("with `read_iolog`", |d, _| is_replay(d));
pub(super) const EXIT_ALL: Need = Need::new("with `exitall`", |d, _| d.exit_all);
pub(super) const ERRORS: Need = Need::new("with `continue_on_error` or `ignore_error`", |d, _| {
    let go_on = &d.errors.go_on;
    go_on.read || go_on.write || go_on.trim || d.errors.go_on_mismatch
});
pub(super) const VERIFY: Need = Need::new("with `verify` or `verify_pattern`", |d, _| d.verifies);
pub(super) const TRUE_DIGEST: Need =
    Need::new("with `verify=sha256` or `verify=sha512`", |d, _| {
        let method = d.verify.method;
        d.verifies && matches!(method, VerifyMethod::Sha256 | VerifyMethod::Sha512)
    });
pub(super) const BACKLOG: Need = Need::new("with `verify` and `verify_backlog`", |d, _| {
    d.verifies && d.verify.backlog > 0
});
pub(super) const VERIFY_THREADS: Need = Need::new("with `verify` and `verify_async`", |d, _| {
    d.verifies && d.verify.threads > 0
});
pub(super) const SERIES: Need = Need::new(
    "with `write_bw_log`, `write_iops_log` or `write_lat_log`",
    |d, _| has_series(d),
);
pub(super) const LOG: Need = Need::new(
    "with `write_bw_log`, `write_iops_log`, `write_lat_log` or `write_hist_log`",
    |d, _| has_log(d),
);
pub(super) const MEAN_LATENCIES: Need =
    Need::new("with `write_lat_log` and `log_avg_msec`", |d, _| {
        is_on(&d.logs.latency) && d.logs.window.0 > 0
    });
pub(super) const HISTOGRAMS: Need =
    Need::new("with `write_hist_log`", |d, _| is_on(&d.logs.buckets));
pub(super) const HISTOGRAM_WINDOW: Need =
    Need::new("with `log_hist_msec`", |d, _| d.logs.bucket_window.0 > 0);
pub(super) const EACH_OPERATION: Need =
    Need::new("with a log of each operation, or with `trace`", |d, _| {
        (has_series(d) && d.logs.window.0 == 0) || d.recording.trace.is_some()
    });
pub(super) const FIO_OUTPUT: Need = Need::new("where fio's output is printed", |d, _| {
    d.dialect == Dialect::Fio
});
pub(super) const POLLED: Need = Need::new("with `hipri`", |d, _| is_set(d, "polled"));
pub(super) const KERNEL_THREAD: Need = Need::new("with `sqthread_poll`", |d, _| {
    is_set(d, "kernel_poll_thread")
});
pub(super) const PRIORITIES: Need =
    Need::new("with `cmdprio_percentage` or `cmdprio_bssplit`", |d, _| {
        ["priority_percent", "priority_by_size"]
            .iter()
            .any(|house| d.engine.settings.contains_key(*house))
    });
pub(super) const TCP: Need = Need::new("with `protocol=tcp` or `protocol=tcpv6`", |d, _| {
    uses_protocol(d, &["tcp", "tcpv6"])
});
pub(super) const UDP: Need = Need::new("with `protocol=udp` or `protocol=udpv6`", |d, _| {
    uses_protocol(d, &["udp", "udpv6"])
});

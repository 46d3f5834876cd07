//! The rules: what may hold a packet path back, how that shows, and what to do about it.
//!
//! In: [`PathEvidence`]. Out: whether each of [`RULES`] holds, by which evidence, or which figure is
//! missing. The order is that in which verdicts are looked for. Not here: which verdict counts.

use weir_schema::PathStage;

use crate::evidence::PathEvidence;
use crate::reference::PathClass;
use crate::truth::Truth;

/// A rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleRecord {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) class: RuleClass,
    /// Advice where it holds.
    pub(crate) action: &'static str,
    /// Confidence where it holds.
    pub(crate) confidence: &'static str,
    pub(crate) test: fn(&PathEvidence) -> Truth,
}

/// Class of the reference that a rule explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleClass {
    /// None: it says what the figures are worth.
    Before,
    C1,
    C2,
    C4,
}

impl RuleClass {
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Before => None,
            Self::C1 => Some("C1"),
            Self::C2 => Some("C2"),
            Self::C4 => Some("C4"),
        }
    }

    pub(crate) fn explains(self, class: PathClass) -> bool {
        match self {
            Self::Before => false,
            Self::C1 => class == PathClass::Waiting,
            Self::C2 | Self::C4 => class == PathClass::Working,
        }
    }
}

/// Counted in the run itself.
const COUNTED: &str = "high";
/// Recorded beside it, or a sign only.
const SIGN: &str = "medium";

const fn rule(
    id: &'static str,
    name: &'static str,
    class: RuleClass,
    action: &'static str,
    confidence: &'static str,
    test: fn(&PathEvidence) -> Truth,
) -> RuleRecord {
    RuleRecord {
        id,
        name,
        class,
        action,
        confidence,
        test,
    }
}

/// All rules. The last one holds only where no other does.
pub(crate) const RULES: &[RuleRecord] = &[
    rule(
        "D1",
        "no traffic",
        RuleClass::Before,
        "a window of at least two batches; look for loss, and for the peer",
        COUNTED,
        |e| {
            let is_idle = |reading| Truth::below("packets a second", reading, f64::MIN_POSITIVE);
            match is_idle(&e.throughput_mpps).and(is_idle(&e.other_throughput_mpps)) {
                Truth::Yes(_) => Truth::Yes("no packets from end to end in two tables".to_owned()),
                other => other,
            }
        },
    ),
    rule(
        "D2",
        "generator-bound",
        RuleClass::Before,
        "more cores for the client; the result is a lower bound",
        COUNTED,
        |e| {
            Truth::below(
                "packets sent of those intended",
                &e.counted.sent_share,
                0.99,
            )
        },
    ),
    rule(
        "D3",
        "line rate",
        RuleClass::Before,
        "nothing: the link is full",
        COUNTED,
        |e| Truth::at_least("use of the link", &e.link_share, 0.97),
    ),
    rule(
        "D17",
        "preempted",
        RuleClass::Before,
        "isolate the cores; the result is unstable",
        COUNTED,
        |e| Truth::above("run delay and steal", &e.counted.lost_cpu_share, 0.01),
    ),
    rule(
        "D4",
        "window-bound",
        RuleClass::C1,
        "in flight: rate × p99 of the round trip × 1.5",
        COUNTED,
        |e| {
            let starved = Truth::above(
                "rounds without credit",
                &e.counted.share_without_credit,
                0.5,
            );
            starved.and(Truth::below("busiest stage", &e.counted.busiest_share, 0.7))
        },
    ),
    rule(
        "D5",
        "buffer-starved",
        RuleClass::C1,
        "a bigger pool, a smaller window",
        COUNTED,
        |e| {
            let stalls = stalls(e, PathStage::ApplicationTx);
            let full = stalls.and(Truth::above("pool use", &e.pool_use, 0.9));
            match Truth::above(
                "rounds without buffers",
                &e.counted.share_without_buffers,
                0.1,
            ) {
                Truth::Unknown(_) => full,
                starved => full.or(starved),
            }
        },
    ),
    rule(
        "D6",
        "pool contention",
        RuleClass::C1,
        "a cache of buffers a core, larger batches",
        SIGN,
        |e| stalls(e, PathStage::ApplicationTx).and(Truth::below("pool use", &e.pool_use, 0.5)),
    ),
    rule(
        "D7",
        "TX backpressure",
        RuleClass::C1,
        "more queues, a bigger ring",
        COUNTED,
        |e| {
            let full = Truth::above("retries at a full ring", &e.counted.tx_full_retries, 0.0);
            stalls(e, PathStage::DispatchTx).and(full)
        },
    ),
    rule(
        "D8",
        "doorbell-bound",
        RuleClass::C1,
        "larger post and dispatch batches",
        SIGN,
        |e| {
            let never_full =
                Truth::below("retries at a full ring", &e.counted.tx_full_retries, 1.0);
            let small = Truth::below("packets a flush", &e.counted.packets_per_flush, 16.0);
            stalls(e, PathStage::DispatchTx).and(never_full).and(small)
        },
    ),
    rule(
        "D9",
        "RX poll-bound",
        RuleClass::C1,
        "fewer queues a core",
        SIGN,
        |e| {
            stalls(e, PathStage::DispatchRx).and(Truth::below(
                "burst of a batch",
                &e.counted.burst_share,
                0.25,
            ))
        },
    ),
    rule(
        "D10",
        "RX overrun",
        RuleClass::C1,
        "more dispatchers",
        COUNTED,
        |e| {
            let missed = Truth::above("missed packets", &e.counted.missed_packets, 0.0);
            missed.or(Truth::above(
                "receive ring",
                &e.counted.receive_ring_use,
                0.9,
            ))
        },
    ),
    rule(
        "D11",
        "ring drop",
        RuleClass::C2,
        "more application cores a dispatcher",
        COUNTED,
        |e| Truth::above("packets dropped at full rings", &e.ring_drops, 0.0),
    ),
    rule(
        "D12",
        "handler-bound",
        RuleClass::C2,
        "more application cores, a cheaper handler",
        SIGN,
        |e| {
            let is_handler = is_critical(e, |stage, _| stage == PathStage::ApplicationRx);
            let cached = Truth::below("LLC misses", &e.llc_miss, 0.2);
            let busy = Truth::above("instructions a cycle", &e.instructions_per_cycle, 1.5);
            is_handler.and(cached.or(busy))
        },
    ),
    rule(
        "D13",
        "cache-bound",
        RuleClass::C4,
        "a smaller window, smaller rings",
        SIGN,
        |e| {
            let works = is_critical(e, |_, class| class == PathClass::Working);
            works.and(Truth::at_least("LLC misses", &e.llc_miss, 0.2))
        },
    ),
    rule(
        "D14",
        "DDIO thrash",
        RuleClass::C4,
        "rings half as big, fewer queues, smaller batches",
        SIGN,
        |e| Truth::at_least("IO write misses", &e.io_write_miss, 0.3),
    ),
    rule(
        "D15",
        "memory bandwidth",
        RuleClass::C4,
        "fewer copies",
        SIGN,
        |e| Truth::at_least("memory bandwidth of the triad's", &e.memory_share, 0.8),
    ),
    rule(
        "D16",
        "imbalance",
        RuleClass::C2,
        "other groups, another RSS table",
        COUNTED,
        |e| {
            Truth::above(
                "most over fewest packets of a workspace",
                &e.workspace_spread,
                1.3,
            )
        },
    ),
    rule(
        "D18",
        "core-bound",
        RuleClass::C2,
        "more cores, or split roles",
        SIGN,
        |e| Truth::at_least("busy shares together", &e.counted.total_busy_share, 0.95),
    ),
];

/// True if a stage waits more than half of its time.
fn stalls(e: &PathEvidence, stage: PathStage) -> Truth {
    let what = format!("waiting share of {}", stage.row());
    e.stall_shares
        .get(stage.row_place())
        .map_or(Truth::No, |share| Truth::above(&what, share, 0.5))
}

fn is_critical(e: &PathEvidence, fits: impl Fn(PathStage, PathClass) -> bool) -> Truth {
    match e.critical {
        None => Truth::Unknown("no stage has a time".to_owned()),
        Some((stage, class)) => {
            Truth::of(fits(stage, class), format!("{} is critical", stage.row()))
        }
    }
}

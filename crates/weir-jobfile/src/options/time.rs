//! Options about time, rates and pauses.

use weir_units::Nanos;

use super::needs;
use super::record::{Category, OptionRecord, option};
use super::{MAX_32, small};
use crate::draft::overlay;
use crate::value::list;
use crate::value::number::{MICROSECONDS, MILLISECONDS, NumberScale, SECONDS};

pub(super) static RECORDS: &[OptionRecord] = &[
    option("runtime", "End after this time")
        .of(Category::Time)
        .aliases(&["timeout"])
        .default("0")
        .long("Seconds without a suffix; 0 is no limit.")
        .duration(SECONDS, |d, t| d.bounds.runtime_ns = Some(t).filter(|t| t.0 > 0)),
    option("time_based", "Start over until the runtime is reached")
        .of(Category::Time)
        .flag(|d, on| d.passes.time_based = on),
    option("ramp_time", "Run for this long before counting")
        .of(Category::Time)
        .default("0")
        .duration(SECONDS, |d, t| d.bounds.ramp_ns = t),
    option("startdelay", "Start after this time")
        .of(Category::Time)
        .default("0")
        .long("Counted from the program's start; `a-b` draws a time between both.")
        .text(|d, v, _| {
            let (min, max) = list::range(v, NumberScale::Time { bare_ns: SECONDS })?;
            d.delay = (Nanos(min), Nanos(max));
            Ok(())
        }),
    option("rate", "Bytes per second")
        .of(Category::Time)
        .long("`read,write,trim`; paced on a fixed schedule.")
        .triple(0, u64::MAX, |d, r| overlay(&mut d.rate.bytes, r)),
    option("rate_min", "Bytes per second below which the job fails")
        .of(Category::Time)
        .aliases(&["ratemin"])
        .triple(0, u64::MAX, |d, r| overlay(&mut d.rate.min_bytes, r)),
    option("rate_iops", "Operations per second")
        .of(Category::Time)
        .triple(0, MAX_32, |d, r| overlay(&mut d.rate.ops, r)),
    option("rate_iops_min", "Operations per second below which the job fails")
        .of(Category::Time)
        .triple(0, MAX_32, |d, r| overlay(&mut d.rate.min_ops, r)),
    option("rate_process", "Gaps between paced operations")
        .needs(needs::RATE)
        .of(Category::Time)
        .default("linear")
        .long("`poisson`: exponential gaps, and latency from intended starts (open loop).")
        .words(
            &[("linear", "Linear rate of IO"), ("poisson", "Rate follows Poisson process")],
            |d, word| {
                d.rate.poisson = word == "poisson";
            },
        ),
    option("open_loop", "Latency counts from intended starts")
        .needs(needs::RATE)
        .of(Category::Time)
        .long("weir's own: the schedule of rate or rate_iops does not wait for a busy target. Always so with rate_process=poisson.")
        .bool(|d, on| d.rate.open_loop = on),
    option("rate_cycle", "Time between checks of the minimum rate")
        .needs(needs::LEAST_RATE)
        .of(Category::Time)
        .aliases(&["ratecycle"])
        .default("1000")
        .long("Milliseconds without a suffix.")
        .duration(MILLISECONDS, |d, t| d.rate.cycle = t),
    option("rate_ignore_thinktime", "Slots missed during think time are not made up for")
        .needs(needs::RATE_AND_PAUSE)
        .of(Category::Time)
        .bool(|d, on| d.rate.ignore_thinktime = on),
    option("max_latency", "An operation slower than this ends the job")
        .of(Category::Time)
        .default("0")
        .long("Microseconds without a suffix.")
        .duration(MICROSECONDS, |d, t| d.max_latency = Some(t).filter(|t| t.0 > 0)),
    option("thinktime", "Pause between blocks of operations")
        .of(Category::Time)
        .default("0")
        .long("Microseconds without a suffix.")
        .duration(MICROSECONDS, |d, t| d.think.pause_ns = t),
    option("thinktime_spin", "First part of the pause, spent on the CPU")
        .needs(needs::PAUSE)
        .of(Category::Time)
        .default("0")
        .duration(MICROSECONDS, |d, t| d.think.spin_ns = t),
    option("thinktime_blocks", "Operations between pauses")
        .needs(needs::PAUSE)
        .of(Category::Time)
        .default("1")
        .integer(1, MAX_32, |d, n| d.think.every = small(n)),
    option("thinktime_blocks_type", "Which operations are counted for pauses")
        .needs(needs::PAUSE)
        .of(Category::Time)
        .default("complete")
        .long("With one operation at a time they are the same.")
        .words(
            &[
                ("complete", "thinktime_blocks takes effect at the completion side"),
                ("issue", "thinktime_blocks takes effect at the issue side"),
            ],
            |d, word| d.think.completed = word == "complete",
        ),
    option("thinktime_iotime", "I/O time between pauses")
        .of(Category::Time)
        .default("0")
        .long("Microseconds without a suffix; without thinktime it is an error.")
        .duration(MICROSECONDS, |d, t| d.think.after_ns = Some(t).filter(|t| t.0 > 0)),
];

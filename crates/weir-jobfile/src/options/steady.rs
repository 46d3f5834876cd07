//! Options that end or steer a job by how it goes: steady state, latency targets, flows.

use weir_schema::{SteadyMeasure, SteadyRate};

use super::needs;
use super::record::{Applied, Category, OptionRecord, option};
use super::small;
use crate::diagnostic::Fault;
use crate::draft::Draft;
use crate::feedback::Criterion;
use crate::value::number::{MICROSECONDS, NumberScale, SECONDS, number};

fn criterion(draft: &mut Draft, word: &str, limit: Option<&str>) -> Applied {
    let (rate, measure) = match word {
        "iops" => (SteadyRate::Operations, SteadyMeasure::Deviation),
        "iops_slope" => (SteadyRate::Operations, SteadyMeasure::Slope),
        "bw" => (SteadyRate::Bytes, SteadyMeasure::Deviation),
        _ => (SteadyRate::Bytes, SteadyMeasure::Slope),
    };
    let Some(limit) = limit else {
        return Err(Fault::value(format!("`{word}` needs a limit"))
            .label("for example iops:2%")
            .peer("fio: steadystate threshold must be specified in addition to criterion"));
    };
    let wrong = || {
        let name = if rate == SteadyRate::Bytes {
            "BW"
        } else {
            "IOPS"
        };
        Fault::value(format!("bad limit `{limit}`"))
            .label("expected a rate, or a share of the mean such as 2%")
            .peer(format!(
                "fio: steadystate {name} threshold postfix parsing failed"
            ))
    };
    let (text, in_percent) = match limit.strip_suffix('%') {
        Some(share) => (share, true),
        None => (limit, false),
    };
    let scale = NumberScale::Count {
        kb_base: draft.kb_base,
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "a limit needs no more than 53 bits"
    )]
    let value = match text.parse::<f64>() {
        Ok(value) => value,
        Err(_) if !in_percent => number(text, scale).map_err(|_| wrong())? as f64,
        Err(_) => return Err(wrong()),
    };
    if !value.is_finite() || value < 0.0 {
        return Err(wrong());
    }
    draft.feedback.criterion = Some(Criterion {
        rate,
        measure,
        limit: value,
        in_percent,
    });
    Ok(())
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("steadystate", "End when the rate is steady")
        .needs(needs::STEADY)
        .of(Category::Time)
        .aliases(&["ss"])
        .default("iops_slope:0.01%")
        .long("`criterion:limit`, the limit in operations or bytes per second or in percent of the mean.")
        .words_with_tail(
            &[
                ("iops", "maximum mean deviation of IOPS measurements"),
                ("iops_slope", "slope calculated from IOPS measurements"),
                ("bw", "maximum mean deviation of bandwidth measurements"),
                ("bw_slope", "slope calculated from bandwidth measurements"),
            ],
            |d, word, tail, _| criterion(d, word, tail),
        ),
    option("steadystate_duration", "The stretch that must be steady")
        .of(Category::Time)
        .aliases(&["ss_dur"])
        .default("0")
        .long("Seconds without a suffix; one sample a second.")
        .duration(SECONDS, |d, t| d.feedback.window = t),
    option("steadystate_ramp_time", "Time before samples for steadystate are taken")
        .needs(needs::STEADY)
        .of(Category::Time)
        .aliases(&["ss_ramp"])
        .default("0")
        .duration(SECONDS, |d, t| d.feedback.ramp = t),
    option("latency_target", "Search for the depth of a latency")
        .of(Category::Time)
        .long("Microseconds without a suffix. The depth starts at 1 and doubles up to iodepth while the latency is kept, then the range is halved; the report is of the last window.")
        .duration(MICROSECONDS, |d, t| d.feedback.target = t),
    option("latency_window", "Time that a depth is tried")
        .needs(needs::TARGET)
        .of(Category::Time)
        .default("0")
        .long("Microseconds without a suffix.")
        .duration(MICROSECONDS, |d, t| d.feedback.target_window = t),
    option("latency_percentile", "Share of operations that must keep the latency")
        .needs(needs::TARGET)
        .of(Category::Time)
        .default("100")
        .numbers(0.0, 100.0, 1, |d, list| {
            d.feedback.target_share = list.first().copied().unwrap_or(100.0);
        }),
    option("latency_run", "Keep adjusting instead of ending with the depth found")
        .needs(needs::TARGET)
        .of(Category::Time)
        .bool(|d, on| d.feedback.keep_adjusting = on),
    option("flow", "Weight of the job in its flow")
        .of(Category::Time)
        .default("0")
        .long("Jobs of a flow do operations in the proportion of their weights; 0 is no flow.")
        .integer(0, 1000, |d, n| d.feedback.flow = small(n)),
    option("flow_id", "Which flow")
        .needs(needs::FLOW)
        .of(Category::Time)
        .default("0")
        .integer(0, super::MAX_32, |d, n| d.feedback.flow_id = small(n)),
    option("flow_sleep", "Pause of a job that is ahead in its flow")
        .needs(needs::FLOW)
        .of(Category::Time)
        .default("0")
        .long("Microseconds without a suffix; 0 only yields the CPU.")
        .duration(MICROSECONDS, |d, t| d.feedback.flow_pause = t),
];

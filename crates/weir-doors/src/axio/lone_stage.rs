//! A stage alone: `--stage`, flags without meaning beside it, and its table.
//!
//! In: arguments, a configuration; an iteration of a result. Out: a plan's stage; refusals; text.

use weir_schema::{PacketPathOutcome, PacketPathWorkload, PathIteration, PathStage};

use super::config::AxioConfig;
use super::output::{dashes, header, quotient};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// Words of stages: the names of their rows.
pub(super) const WORDS: [&str; 6] = [
    PathStage::ROWS[0].row(),
    PathStage::ROWS[1].row(),
    PathStage::ROWS[2].row(),
    PathStage::ROWS[3].row(),
    PathStage::ROWS[4].row(),
    PathStage::ROWS[5].row(),
];

/// Stage that the arguments name.
///
/// # Errors
/// Words and keys that mean nothing beside it.
pub(super) fn of_words(
    verb: &str,
    given: &GivenFlags,
    config: &AxioConfig,
) -> Result<Option<PathStage>, Refusal> {
    let Some(word) = given.text("stage") else {
        return Ok(None);
    };
    let refused = |what: &str, why: &str| {
        Err(Refusal::usage(format!(
            "{what}: it means nothing with --stage {word}, which {why}; leave one of them out"
        )))
    };
    if verb != "run" {
        return refused(&format!("`{verb}`"), "is a run");
    }
    let flags = [
        ("server", "has no other side"),
        ("client", "has no other side"),
        ("inject-loss", "has no link"),
        ("inject-pause", "has no other side"),
        ("sink-rate", "has no other side"),
        ("both", "prints its own row alone"),
        ("force", "waits for no window"),
        ("stage-timing", "times each call"),
    ];
    if let Some((flag, why)) = flags.iter().find(|(flag, _)| given.has(flag)) {
        return refused(&format!("--{flag}"), why);
    }
    let is = |key: &str, plain: &[&str]| config.text(key).is_none_or(|text| plain.contains(&text));
    let keys = [
        ("role", is("role", &["loopback"]), "has no other side"),
        ("backend", is("backend", &["ring"]), "has no link"),
        ("rate", is("rate", &[]), "takes what it can"),
        ("messages", is("messages", &[]), "takes what it can"),
        (
            "stage_timing",
            is("stage_timing", &["all"]),
            "times each call",
        ),
        (
            "loop_interval_ns",
            is("loop_interval_ns", &["0"]),
            "does not wait",
        ),
    ];
    if let Some((key, _, why)) = keys.iter().find(|(_, is_plain, _)| !is_plain) {
        return refused(&config.place_of(key), why);
    }
    let mut stages = PathStage::ROWS.into_iter();
    Ok(stages.find(|stage| stage.row() == word))
}

/// Note on the parts of a configuration with several workspaces that `--stage` leaves out.
pub(super) fn note(work: &PacketPathWorkload) -> Option<String> {
    work.only_stage?;
    let more = work.threads().len() > 1 || work.streams.len() > 1;
    let stream = work.streams.first()?;
    more.then(|| format!("--stage: one workspace of workload {} alone", stream.id))
}

/// Row of a stage alone. Its rate counts its own time only.
pub(super) fn table(iteration: &PathIteration, stage: PathStage) -> String {
    let mut out = dashes() + &header() + &dashes();
    for thread in &iteration.threads {
        let figures = thread.stage(stage);
        let average = figures.mean_us().unwrap_or(0.0);
        let rate = if average > 0.0 { 1.0 / average } else { 0.0 };
        push!(out, "{:<20}{:<20}", stage.row(), format!("{rate:.3}"));
        push!(out, "{:<20}", format!("{average:.3}"));
        if !matches!(stage, PathStage::LinkTx | PathStage::LinkRx) {
            let stall = figures.mean_stall_us().unwrap_or(0.0);
            push!(out, "{:<20}", format!("{stall:.3}"));
        }
        out.push('\n');
    }
    out + &dashes() + "\n"
}

/// Text after the tables of a single stage; empty for every other run.
pub(super) fn ending(done: &PacketPathOutcome) -> String {
    let Some(stage) = done.only_stage else {
        return String::new();
    };
    let threads = || done.iterations.iter().flat_map(|one| &one.threads);
    let packets: u64 = threads().map(|one| one.stage(stage).timed_packets).sum();
    let busy = threads().map(|one| one.stage(stage).busy_ns.0).sum();
    format!(
        "packets of the stage alone: {packets} in {:.3} s of its own time\n",
        quotient(busy, 1_000_000_000)
    )
}

/// Timed interval: a pass, or a call of a single stage.
pub(super) fn timing(done: &PacketPathOutcome, work: &PacketPathWorkload) -> String {
    match work.timed_pass {
        0 => "off".to_owned(),
        1 if done.only_stage.is_some() => "every call".to_owned(),
        1 => "every pass".to_owned(),
        n => format!("one pass of {n}"),
    }
}

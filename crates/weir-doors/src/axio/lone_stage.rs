//! A stage alone: `--stage`, flags without meaning beside it, and its table.
//!
//! In: arguments, a configuration; an iteration of a result. Out: a plan's stage; refusals; text.

use weir_schema::{PacketPathOutcome, PacketPathWorkload, PathIteration, PathStage};

use super::config::AxioConfig;
use super::output::{dashes, header, inverse, quotient, row};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// Flags that mean nothing beside a stage.
const FLAGS: &str = "server client inject-loss inject-pause sink-rate both force stage-timing";
/// Keys, and the only value that they may have beside it.
const KEYS: [(&str, &str); 6] = [
    ("role", "loopback"),
    ("backend", "ring"),
    ("rate", ""),
    ("messages", ""),
    ("stage_timing", "all"),
    ("loop_interval_ns", "0"),
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
    let verb = (verb != "run").then(|| format!("`{verb}`"));
    let mut flags = FLAGS.split(' ').filter(|flag| given.has(flag));
    let is_plain = |key, plain: &str| config.text(key).is_none_or(|text| text == plain);
    let mut keys = KEYS
        .into_iter()
        .filter(|(key, plain)| !is_plain(key, plain));
    let flag = || flags.next().map(|flag| format!("--{flag}"));
    let key = || keys.next().map(|(key, _)| config.place_of(key));
    if let Some(what) = verb.or_else(flag).or_else(key) {
        return Err(Refusal::usage(format!(
            "{what}: it means nothing with --stage {word}, which is a run without link and other side whose every call is timed; \
             leave one of them out"
        )));
    }
    Ok(PathStage::ROWS
        .into_iter()
        .find(|stage| stage.row() == word))
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
    let cells = 2 + usize::from(!matches!(stage, PathStage::LinkTx | PathStage::LinkRx));
    for thread in &iteration.threads {
        let figures = thread.stage(stage);
        let average = figures.mean_us().unwrap_or(0.0);
        let stall = figures.mean_stall_us().unwrap_or(0.0);
        row(
            &mut out,
            stage.row(),
            &[inverse(average), average, stall][..cells],
        );
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

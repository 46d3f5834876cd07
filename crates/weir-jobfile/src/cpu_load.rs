//! Busy processors: the share of the time that a job asks for becomes rounds and pauses.
//!
//! In: a draft whose engine loads processors. Out: the pause after each round of work, or what is
//! missing. Not here: the work itself, which the engine does.

use weir_schema::{Setting, Thinktime};
use weir_units::Nanos;

use crate::conflict::Conflict;
use crate::diagnostic::Fault;
use crate::draft::Draft;

/// The engine.
const ENGINE: &str = "cpuio";
/// Its round in microseconds, where none is given.
const ROUND_US: u64 = 50_000;

/// A load that is not given.
pub(crate) fn conflict(draft: &Draft) -> Option<Conflict> {
    if draft.engine.name != ENGINE || draft.cpu_load > 0 {
        return None;
    }
    let fault = Fault::new("job.conflict", "`cpuload` is missing")
        .label("how busy?")
        .help("add cpuload=50, for half of the time")
        .peer("fio: cpu thread needs rate (cpuload=)");
    Some((fault, &["ioengine"]))
}

/// The pause after each round that makes the rounds the share of the time asked for.
pub(crate) fn pause(draft: &Draft) -> Option<Thinktime> {
    let load = draft.cpu_load;
    if draft.engine.name != ENGINE || !(1..100).contains(&load) {
        return None;
    }
    let round = match draft.engine.settings.get("round_us") {
        Some(Setting::Number(us)) => u64::try_from(*us).unwrap_or(ROUND_US),
        _ => ROUND_US,
    };
    Some(Thinktime {
        pause_ns: Nanos((round * 1000).saturating_mul(100 - load) / load),
        spin_ns: Nanos(0),
        every: 1,
        completed: false,
        after_ns: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn draft(load: u64) -> Draft {
        let mut draft = Draft::new(Dialect::Fio);
        ENGINE.clone_into(&mut draft.engine.name);
        draft.cpu_load = load;
        draft
    }

    #[test]
    fn rounds_and_pauses_make_out_the_load() {
        let pause_ns = |load| pause(&draft(load)).map(|t| t.pause_ns.0);
        assert_eq!(pause_ns(50), Some(50_000_000));
        assert_eq!(pause_ns(20), Some(200_000_000));
        assert_eq!(pause_ns(100), None);
        let mut short = draft(25);
        let round = ("round_us".to_owned(), Setting::Number(1000));
        short.engine.settings.extend([round]);
        assert_eq!(pause(&short).map(|t| t.pause_ns.0), Some(3_000_000));
    }

    #[test]
    fn a_load_has_to_be_given() {
        assert!(conflict(&draft(0)).is_some());
        assert!(conflict(&draft(1)).is_none());
    }
}

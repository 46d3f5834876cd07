//! `--repeat`: several runs of each plan, which measure the differences between runs.
//!
//! In: the arguments, a plan. Out: how many runs and the pause between them; the plan as each of them
//! carries it out. Not here: carrying runs out.

use weir_schema::{BlockWorkload, Kind, Plan};
use weir_units::Nanos;

use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// Runs where their number is not given.
const USUAL: u32 = 5;

/// Several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Runs of each plan.
    pub runs: u32,
    /// Pause between two runs.
    pub pause: Nanos,
}

/// Reads the repetition that the flags ask for.
pub(super) fn read(given: &GivenFlags) -> Result<Option<Repeat>, Refusal> {
    let pause = given.text("pause");
    if !given.has("repeat") {
        return match pause {
            None => Ok(None),
            Some(pause) => Err(Refusal::usage(format!(
                "--pause {pause}: it is between the runs of --repeat, which is not given"
            ))),
        };
    }
    let flags = ["live", "web", "metrics-file"];
    if let Some(flag) = flags.into_iter().find(|flag| given.has(flag)) {
        let why = "shows one run, and here are several; leave one of them out";
        return Err(Refusal::usage(format!("--repeat: --{flag} {why}")));
    }
    let runs = given.whole("repeat").unwrap_or(USUAL);
    let pause = given.seconds("pause").unwrap_or_default();
    Ok(Some(Repeat { runs, pause }))
}

/// Joins the number of runs to its flag, `--repeat 10` as `--repeat=10`, since the flag may also come without
/// a number before a file.
pub(crate) fn joined(words: &[String]) -> Vec<String> {
    let is_number = |word: &String| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let mut joined: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        match joined.last_mut() {
            Some(last) if last == "--repeat" && is_number(word) => {
                *last = format!("--repeat={word}");
            }
            _ => joined.push(word.clone()),
        }
    }
    joined
}

/// Makes a plan that every run of `flag` meets as the first one did: caches are dropped. Whether the
/// files that weir lays out have to be made again, since the plan changes them.
///
/// # Errors
/// Files that other ranks write.
pub fn begin_anew(flag: &str, plan: &mut Plan, ranks: Option<u32>) -> Result<bool, Refusal> {
    let changes = |work: &BlockWorkload| [Kind::Write, Kind::Trim].map(|k| work.carries_out(k));
    let blocks = || plan.jobs().filter_map(|(_, job)| job.workload.blocks());
    let writes = blocks().any(|work| changes(work).contains(&true));
    let ranks = ranks.or(plan.ranks.map(|ranks| ranks.count)).unwrap_or(1);
    if writes && ranks > 1 {
        return Err(Refusal::usage(format!(
            "{flag}: the files that ranks write are not made again between runs; run the plan on one \
             rank, with more clones of its jobs"
        )));
    }
    for job in plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
        if let weir_schema::Workload::Block(work) = &mut job.workload {
            work.targets.open.drop_cache = true;
        }
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::read_run;
    use weir_schema::sample::{self, JobSample};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn repeat(text: &str) -> Option<Repeat> {
        read_run(&words(text)).unwrap().repeat
    }

    #[test]
    fn bare_it_means_five_runs_and_a_number_is_its_own() {
        let of = |runs, seconds| {
            Some(Repeat {
                runs,
                pause: Nanos::from_secs(seconds),
            })
        };
        assert_eq!(repeat("a.fio"), None);
        assert_eq!(repeat("--repeat a.fio"), of(5, 0));
        assert_eq!(repeat("--repeat 10 a.fio"), of(10, 0));
        assert_eq!(repeat("a.fio b.fio --repeat=3 --pause 2"), of(3, 2));
        assert_eq!(repeat("--repeat=3 --pause 0 a.fio"), of(3, 0));
    }

    #[test]
    fn what_has_no_effect_is_refused_by_name() {
        for (text, named) in [
            ("--repeat=1 a.fio", "from 2 to 1000"),
            ("--repeat=x a.fio", "--repeat x"),
            ("--pause 3 a.fio", "--pause 3"),
            ("--repeat --pause x a.fio", "--pause x"),
            (
                "--repeat --pause=-1 a.fio",
                "--pause -1: it takes seconds from 0",
            ),
            ("--repeat --show-plan a.fio", "--show-plan"),
            ("--repeat --calibrate", "--calibrate"),
        ] {
            let refusal = read_run(&words(text)).unwrap_err();
            assert!(refusal.message.contains(named), "{text}: {refusal}");
        }
    }

    #[test]
    fn each_run_finds_caches_empty_and_what_was_written_is_made_again() {
        let anew = |plan: &mut Plan, ranks| begin_anew("--repeat", plan, ranks);
        let of = |kind| {
            let job = sample::random_job("a", &[kind], 4096);
            sample::plan(vec![vec![
                job.blocks(|work| work.targets.open.drop_cache = false),
            ]])
        };
        let (mut reads, mut writes) = (of(Kind::Read), of(Kind::Write));
        assert!(!anew(&mut reads, Some(4)).unwrap());
        assert!(
            reads
                .jobs()
                .all(|(_, j)| j.blocks().unwrap().targets.open.drop_cache)
        );
        assert!(anew(&mut writes, None).unwrap());
        let refusal = anew(&mut writes, Some(4)).unwrap_err();
        assert!(refusal.message.contains("--repeat"), "{refusal}");
    }
}

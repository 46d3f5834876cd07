//! The words a plan came from, where fio's output depends on how something was said.

use weir_jobfile::{FioPlan, WordReach};
use weir_schema::{Job, Plan, Word};

/// The value of a job's option: the last one given, else the one given for all jobs below it.
pub(super) fn word<'a>(plan: &'a Plan, job: &'a Job, key: &str) -> Option<&'a str> {
    let place = plan.jobs().position(|(_, j)| std::ptr::eq(j, job));
    let is_for = |reach: WordReach| place.is_none_or(|place| reach.holds(place));
    let global = global_words(plan).into_iter();
    let all = global
        .filter(|(_, reach)| is_for(*reach))
        .map(|(word, _)| word);
    let all: Vec<&Word> = all.chain(&job.words).collect();
    all.into_iter()
        .rev()
        .find(|w| w.key == key)
        .and_then(|w| w.value.as_deref())
}

/// Words that are given for all, and the jobs that each is for.
pub(super) fn global_words(plan: &Plan) -> Vec<(&Word, WordReach)> {
    let reach = FioPlan::of(plan).global_words.into_iter();
    let reach = reach.chain(std::iter::repeat(WordReach::default()));
    plan.global_words.iter().zip(reach).collect()
}

/// The depth that was asked for, which fio repeats even where a synchronous engine stays at 1.
pub(super) fn asked_depth(plan: &Plan, job: &Job) -> u64 {
    let asked = word(plan, job, "iodepth").and_then(weir_jobfile::count);
    asked.unwrap_or(u64::from(job.load().depth.queue_depth.0))
}

/// True if a job of this name was opened on the command line: fio echoes its name then, and
/// only then, as an option of the job.
pub(super) fn opened_by_word(plan: &Plan, name: &str) -> bool {
    let option = |w: &str| w.trim_start_matches('-').to_owned();
    plan.command
        .iter()
        .any(|w| w.starts_with('-') && option(w) == format!("name={name}"))
        || plan
            .command
            .windows(2)
            .any(|w| w[0].starts_with('-') && option(&w[0]) == "name" && w[1] == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_in_every_spelling() {
        let mut plan = crate::fio::output::sample::mixed().plan;
        plan.command = ["fio", "--name=a", "-name", "b", "name=c"]
            .map(str::to_owned)
            .to_vec();
        assert!(opened_by_word(&plan, "a") && opened_by_word(&plan, "b"));
        assert!(!opened_by_word(&plan, "c"));
    }
}

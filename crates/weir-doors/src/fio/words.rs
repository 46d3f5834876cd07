//! The words a plan came from, where fio's output depends on how something was said.

use weir_schema::{Job, Plan};

/// The value of a job's option: the last one given, else the one given for all jobs.
pub(super) fn word<'a>(plan: &'a Plan, job: &'a Job, key: &str) -> Option<&'a str> {
    let all = plan.global_words.iter().chain(&job.words);
    all.rev()
        .find(|w| w.key == key)
        .and_then(|w| w.value.as_deref())
}

/// Whether a job of this name was opened on the command line: fio echoes its name then, and
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

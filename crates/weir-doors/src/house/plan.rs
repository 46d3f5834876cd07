//! Changes that the flags of `weir run` make to a plan, and exit codes of its results.
//!
//! In: a plan from job files or from a file of its own. Out: the same plan with what the
//! command line asks for; the exit code of a result.

use weir_schema::{
    ExitAll, FileNames, Job, JobResult, Kind, Load, ObjectOutcome, Plan, RpcOutcome, RunResult,
    State, TargetsPerRank, Timing, Workload,
};

use super::{Input, Mode, Run, RunFormat, Strict};
use crate::refusal::{LACKS, Refusal, USAGE};

impl Run {
    /// Puts the flags that concern a plan into it.
    ///
    /// # Errors
    /// `--readonly` and a stored plan that writes.
    pub fn adjust(&self, plan: &mut Plan) -> Result<(), Refusal> {
        if let Input::Plan {
            path,
            read_only,
            command,
        } = &self.input
        {
            if *read_only {
                forbid_writes(plan, path)?;
            }
            if self.mode != Mode::ShowPlan {
                // Whichever door has written the plan, this one prints what comes of it.
                "run".clone_into(&mut plan.door);
                plan.command.clone_from(command);
            }
        }
        self.refuse_idle_flags(plan)?;
        for job in plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
            if let Some(timeout) = self.rank_timeout {
                job.workload.set_timeout(timeout);
            }
            let Some(Load { recording, .. }) = job.workload.load_mut() else {
                continue;
            };
            if let Some(percentiles) = &self.options.percentiles {
                recording.percentiles.clone_from(percentiles);
            }
            if self.options.no_latency {
                recording.timing = Timing::EndsOnly;
                (recording.slat, recording.clat, recording.lat) = (false, false, false);
            }
        }
        Ok(())
    }
}

impl Run {
    /// Flags about loops over operations have no meaning for a plan that has none.
    fn refuse_idle_flags(&self, plan: &Plan) -> Result<(), Refusal> {
        const LATENCIES: &str = "measures the latency of operations";
        let given = [
            (
                "--percentiles",
                self.options.percentiles.is_some(),
                LATENCIES,
            ),
            ("--no-latency", self.options.no_latency, LATENCIES),
            (
                "--per-rank",
                self.targets != TargetsPerRank::Own,
                "has targets",
            ),
        ];
        let mut given = given.iter().filter(|(_, given, _)| *given);
        let outputs = self.options.outputs.iter().map(|file| file.format);
        let mut formats = outputs.chain([self.options.format]);
        let is_series = formats.any(|format| format == RunFormat::CsvSeries);
        // Ranks that work together have no operations one by one.
        if is_series
            && plan
                .jobs()
                .all(|(_, job)| job.workload.timeout_ns().is_some())
        {
            let why = "has intervals\n  help: csv has a row for each figure";
            return Err(Refusal::usage(format!(
                "csv-series: no job of {} {why}",
                plan.name
            )));
        }
        match given.next() {
            Some((flag, _, what)) if plan.jobs().all(|(_, job)| job.workload.load().is_none()) => {
                Err(Refusal::usage(format!(
                    "{flag} has no effect: no job of {} {what}; leave it out",
                    plan.name
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Work of a job on each of the targets that it names: `read and write`.
pub fn planned_work(job: &Job) -> Vec<(String, &str)> {
    let Some(work) = job.blocks() else {
        return Vec::new();
    };
    let FileNames::Listed { paths, .. } = &work.targets.files else {
        return Vec::new();
    };
    let kinds = Kind::DATA.into_iter().filter(|kind| work.mix.has(*kind));
    let mut names: Vec<&str> = kinds.map(Kind::name).collect();
    if work.bursts.is_some_and(|bursts| bursts.flush_only) {
        names = vec!["flush"];
    }
    let what = names.join(" and ");
    paths.iter().map(|path| (what.clone(), &**path)).collect()
}

fn forbid_writes(plan: &mut Plan, path: &str) -> Result<(), Refusal> {
    for job in plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
        // Workloads of other kinds join the enum together with their own answer.
        let Workload::Block(work) = &mut job.workload else {
            continue;
        };
        if work.mix.has(Kind::Write) || work.mix.has(Kind::Trim) {
            return Err(Refusal::usage(format!(
                "--readonly, and job `{}` of {path} writes or trims",
                job.name
            )));
        }
        work.targets.open.read_only = true;
    }
    Ok(())
}

/// Causes of failures that are found before a target is touched.
const PLAN_CAUSES: &[&str] = &[
    "bad_offset",
    "create",
    "direct_io",
    "in_use",
    "mounted",
    "no_size",
    "open",
    "plan",
    "too_small",
];
/// Causes that lie in the machine. An engine that fails before a worker begins was refused one of its
/// resources.
const MACHINE_CAUSES: &[&str] = &["authentication", "engine", "memory", "missing", "placement"];

/// Exit code: 0 good; 1 failures, errors, or warnings that `--strict` names; 2 and 3 where no job could run,
/// for a reason of the plan or the machine; 128 + signal.
pub fn exit_code(result: &RunResult, strict: &Strict) -> u8 {
    if let Some(end) = result.ended_by {
        return u8::try_from(end.signal).map_or(u8::MAX, |signal| signal.saturating_add(128));
    }
    let all_before = |causes: &[&str]| {
        let why = |j: &JobResult| {
            let mut of_workers = j.workers().iter().map(|w| w.failure.as_ref());
            let first = of_workers.next().flatten();
            j.failure.as_ref().or(first).map(|f| f.cause.clone())
        };
        let none_ran = result
            .jobs()
            .all(|j| j.workers().is_empty() || j.span.is_none());
        let known = |cause: String| causes.contains(&cause.as_str());
        let mut jobs = result.jobs().peekable();
        jobs.peek().is_some() && none_ran && jobs.all(|j| why(j).is_some_and(known))
    };
    if all_before(PLAN_CAUSES) {
        return USAGE;
    }
    if all_before(MACHINE_CAUSES) {
        return LACKS;
    }
    let mut workers = result.jobs().flat_map(JobResult::workers);
    let failed = result.failed_jobs() > 0
        || never_started(result)
        || result.jobs().any(has_wrong_data)
        || workers.any(|w| w.failure.is_some() || w.kinds.iter().any(|k| !k.errors.is_empty()))
        || result.warnings.iter().any(|w| strict.holds(&w.id));
    u8::from(failed)
}

/// Messages that did not arrive as they were sent.
fn has_wrong_data(job: &JobResult) -> bool {
    let exchange = job.exchange();
    let exchanged = exchange.is_some_and(|done| done.wrong_bytes() > 0 || done.lost() > 0);
    let measured = job.latency_bandwidth();
    let asked = job.rpc();
    let stored = job.object_store();
    exchanged
        || stored.is_some_and(ObjectOutcome::has_failed)
        || asked.is_some_and(RpcOutcome::has_failed)
        || measured.is_some_and(|done| done.wrong_bytes > 0)
}

/// True if a job never started, although neither the plan nor a user had ended the run before.
fn never_started(result: &RunResult) -> bool {
    let waits = |job: &JobResult| job.state == State::NotStarted;
    let ends_all = |job: &Job| job.end.exit_all == Some(ExitAll::Everything);
    let is_ended_early = result.warnings.iter().any(|w| w.id == "ended-early");
    result.jobs().any(waits) && !is_ended_early && !result.plan.jobs().any(|(_, job)| ends_all(job))
}

#[cfg(test)]
mod tests {
    use weir_schema::{EndedBy, EngineChoice, ExchangeWorkload, Job, Mix, Warning};
    use weir_units::Percent;

    use super::*;
    use crate::fio::output::sample;
    use crate::run::read_run;

    fn run(words: &[&str]) -> Run {
        read_run(&words.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn flags_about_recording_reach_every_job() {
        let mut plan = sample::mixed().plan;
        run(&["a.fio"]).adjust(&mut plan).unwrap();
        assert_eq!(plan, sample::mixed().plan);
        for flag in ["--percentiles=50", "--no-latency"] {
            run(&[flag, "a.fio"]).adjust(&mut plan).unwrap();
        }
        let recording = &plan.groups[0].jobs[0].load().recording;
        assert_eq!(recording.percentiles, [Percent(50.0)]);
        assert_eq!(recording.timing, Timing::EndsOnly);
        assert!(!recording.lat);
    }

    #[test]
    fn flags_about_latencies_are_refused_where_nothing_measures_any() {
        let exchange =
            Job::of_exchanges("e", EngineChoice::new("null"), ExchangeWorkload::default());
        let mut plan = Plan::new("e.json", "run", vec![exchange]);
        for flag in ["--percentiles=50", "--no-latency", "--per-rank=split"] {
            let refusal = run(&[flag, "e.json"]).adjust(&mut plan).unwrap_err();
            assert_eq!(refusal.code, USAGE);
            let name = flag.split('=').next().unwrap();
            assert!(refusal.message.contains(name), "{refusal}");
        }
        run(&["e.json"]).adjust(&mut plan).unwrap();
        // With one job that does it has an effect.
        let block = sample::mixed().plan.groups.remove(0);
        plan.groups.push(block);
        run(&["--no-latency", "e.json"]).adjust(&mut plan).unwrap();
    }

    #[test]
    fn a_stored_plan_that_writes_is_refused_when_read_only() {
        let only = run(&["p.json", "--readonly"]);
        let refusal = only.adjust(&mut sample::mixed().plan).unwrap_err();
        assert_eq!(refusal.code, USAGE);
        assert!(
            refusal.message.contains("job `mix` of p.json writes"),
            "{refusal}"
        );
        let job = sample::job("r", Mix::only(Kind::Read), &[]);
        let mut plan = sample::result(vec![vec![(job, Vec::new())]]).plan;
        only.adjust(&mut plan).unwrap();
        let Workload::Block(work) = &plan.groups[0].jobs[0].workload else {
            panic!("block I/O")
        };
        assert!(work.targets.open.read_only);
    }

    #[test]
    fn the_exit_code_tells_good_failed_strict_and_interrupted_apart() {
        let mut result = sample::mixed();
        assert_eq!(exit_code(&result, &Strict::All), 0);
        result.warnings.push(Warning::new("cpu-steal", None, ""));
        assert_eq!(exit_code(&result, &Strict::No), 0);
        assert_eq!(exit_code(&result, &Strict::All), 1);
        assert_eq!(
            exit_code(&result, &Strict::Ids(vec!["numa-far".to_owned()])),
            0
        );
        result.groups[0].jobs[0].workers_mut()[0].kinds[0].errors = [(5.into(), 1)].into();
        assert_eq!(exit_code(&result, &Strict::No), 1);
        result.groups[0].jobs[0].workers_mut()[0].kinds[0]
            .errors
            .clear();
        assert_eq!(exit_code(&result, &Strict::No), 0);
        result.groups[0].jobs[0].state = State::NotStarted;
        assert_eq!(exit_code(&result, &Strict::No), 1);
        let early = Warning::new("ended-early", None, "It was ended after 1 s.");
        result.warnings.push(early);
        assert_eq!(exit_code(&result, &Strict::No), 0);
        result.warnings.pop();
        assert_eq!(exit_code(&result, &Strict::No), 1);
        result.plan.groups[0].jobs[0].end.exit_all = Some(ExitAll::Everything);
        assert_eq!(exit_code(&result, &Strict::No), 0);
        result.ended_by = Some(EndedBy { signal: 2 });
        assert_eq!(exit_code(&result, &Strict::No), 130);
    }
}

//! The steps from a door's arguments to its report: the plan, the ranks, the run, the report.
//!
//! In: a [`MeasureRequest`], which is what a door knows. Out: the exit code. Rank 0 reads the plan and
//! reports; where ranks are processes the others come here too, get the plan from it, and say
//! nothing. Not here: what a plan is made of, and what a report looks like.

use weir_doors::Refusal;
use weir_run::execute::LiveView;
use weir_schema::{Announcement, Job, Plan, Ranks, RunResult, Spawn, TargetsPerRank, Warning};
use weir_units::Nanos;
use weir_world::{Launcher, RankHost, started_rank};

use crate::history::{self, Keep};
use crate::ranks::RankGroup;
use crate::session::{self, Choices};
use crate::world::{self, RankWorld};
use crate::{Outcome, output, signals};

/// Request of a door to measure. It may be used on another thread than the one that made it.
#[derive(Clone, Copy)]
pub(crate) struct MeasureRequest<'a> {
    /// Makes the plan, where rank 0 is. Arguments are refused here.
    pub(crate) plan: &'a (dyn Fn() -> Result<Plan, Refusal> + Sync),
    /// Processes on this machine, where the command line states their number.
    pub(crate) ranks: Option<u32>,
    /// Use of the targets by several ranks, where the command line states it.
    pub(crate) targets: TargetsPerRank,
    /// Silence after which a rank counts as lost, where the command line states it.
    pub(crate) timeout: Option<Nanos>,
    /// The file that gets the whole result.
    pub(crate) store: Option<&'a str>,
    /// Rule by which the history keeps the result.
    pub(crate) keep: Keep<'a>,
    /// Warnings about the arguments.
    pub(crate) warnings: &'a [Warning],
    /// Makes the door's observer, which also words refusals of jobs.
    pub(crate) observer: &'a (dyn Fn(&Plan) -> Box<dyn RunObserver + 'a> + Sync),
    /// Prints and stores a result, where rank 0 is; the exit code.
    pub(crate) report: &'a (dyn Fn(&RunResult) -> Outcome + Sync),
}

impl<'a> MeasureRequest<'a> {
    /// Request of a plan in this process, whose result is neither stored nor kept.
    pub(crate) const fn of(
        plan: &'a (dyn Fn() -> Result<Plan, Refusal> + Sync),
        observer: &'a (dyn Fn(&Plan) -> Box<dyn RunObserver + 'a> + Sync),
        report: &'a (dyn Fn(&RunResult) -> Outcome + Sync),
    ) -> Self {
        Self {
            plan,
            ranks: None,
            targets: TargetsPerRank::Own,
            timeout: None,
            store: None,
            keep: Keep::Never,
            warnings: &[],
            observer,
            report,
        }
    }
}

/// Observer that a door provides while its plan runs.
pub(crate) trait RunObserver {
    /// Observer that this one adds to, and that says what this one does not.
    fn shown(&self) -> Option<&dyn RunObserver> {
        None
    }
    /// Work before and during the run.
    fn announce(&self, announcement: &Announcement) {
        if let Some(shown) = self.shown() {
            shown.announce(announcement);
        }
    }
    /// Sees the running jobs.
    fn observe(&self, _view: &LiveView<'_>) {}
    /// True if the other jobs run where this one cannot; it has said why then.
    fn excuses(&self, job: &str, why: &str) -> bool {
        self.shown().is_some_and(|shown| shown.excuses(job, why))
    }
    /// Everything is measured. What showing it has cost becomes part of the result.
    fn done(&self, result: &mut RunResult) {
        if let Some(shown) = self.shown() {
            shown.done(result);
        }
    }
    /// Refusal of a job that cannot run.
    fn refusal(&self, job: &str, why: &str) -> String {
        self.shown()
            .map_or_else(|| refused(job, why), |shown| shown.refusal(job, why))
    }
}

/// Refusal of a job, which is not named twice where it is called like its target.
pub(crate) fn refused(job: &str, why: &str) -> String {
    let target = why.split_once(": ").map_or("", |(target, _)| target);
    if target == job || target.rsplit('/').next() == Some(job) {
        return format!("error: {why}\n");
    }
    format!("error: {job}: {why}\n")
}

/// Carries out a request and returns the exit code, which is 0 on ranks that print nothing.
pub(crate) fn measure(request: &MeasureRequest<'_>) -> Outcome {
    // Before any library is opened that takes signals itself.
    signals::claim()?;
    if let Some(launcher) = Launcher::of_this_process() {
        let world = world::join(launcher, request.timeout)?;
        let plan = || ranked(request, Some(&launcher));
        let outcome = carry_out(request, world, launcher.prints_for_all().then_some(&plan));
        return if launcher.prints_for_all() {
            outcome
        } else {
            Ok(0)
        };
    }
    if started_rank().is_some() {
        return carry_out(request, world::start(1)?, None);
    }
    let plan = ranked(request, None)?;
    let ranks = plan.ranks.unwrap_or(Ranks::ONE);
    let world = match ranks.spawn {
        Spawn::Threads => RankWorld::Threads(ranks.count),
        Spawn::Processes => {
            session::refuse_work_of_ranks(&plan, request)?;
            world::start(ranks.count)?
        }
        Spawn::Launcher => return Err(world::not_launched()),
    };
    carry_out(request, world, Some(&|| Ok(plan.clone())))
}

/// Carries out a request in this process, whatever started it, and returns the exit code.
pub(crate) fn measure_alone(request: &MeasureRequest<'_>) -> Outcome {
    carry_out(request, RankWorld::Threads(1), Some(request.plan))
}

/// The plan, with the ranks that carry it out; the launcher, the command line and the plan agree on them.
fn ranked(request: &MeasureRequest<'_>, launcher: Option<&Launcher>) -> Result<Plan, Refusal> {
    let mut plan = (request.plan)()?;
    let is_odd = |ranks: &Ranks| {
        ranks.count == 0 || (ranks.spawn != Spawn::Launcher && ranks.count > MOST_RANKS)
    };
    if let Some(ranks) = plan.ranks.filter(is_odd) {
        return Err(Refusal::usage(format!(
            "the plan says `ranks.count` {}: 1 to {MOST_RANKS} can carry it out",
            ranks.count
        )));
    }
    let asked = request
        .ranks
        .map(|count| (count, format!("--ranks {count}")));
    let planned = plan
        .ranks
        .map(|ranks| (ranks.count, format!("the plan says {}", words(ranks))));
    if let Some(launcher) = launcher {
        let started = format!("{} started {}", launcher.kind, launcher.size);
        if let Some((count, asked)) = &asked
            && *count != launcher.size
        {
            return Err(contradiction(asked, &started, "leave --ranks out"));
        }
        let fits = |ranks: &Ranks| ranks.spawn == Spawn::Launcher && ranks.count == launcher.size;
        let own = plan.ranks.filter(|ranks| ranks.spawn != Spawn::Launcher);
        if let Some(ranks) = own {
            let planned = format!("the plan says {} that weir starts itself", words(ranks));
            let remedy = "run the plan without a launcher, or take `ranks` out of it";
            return Err(contradiction(&planned, &started, remedy));
        }
        if let Some((_, planned)) = planned.filter(|_| !plan.ranks.as_ref().is_some_and(fits)) {
            let remedy = "run the plan without a launcher, or with as many ranks as it says";
            return Err(contradiction(&planned, &started, remedy));
        }
        plan.ranks = Some(Ranks {
            count: launcher.size,
            spawn: Spawn::Launcher,
            targets: targets(request, &plan),
        });
        return Ok(plan);
    }
    if let Some(((asked, text), (planned, plan))) = asked.as_ref().zip(planned)
        && *asked != planned
    {
        return Err(contradiction(text, &plan, "leave --ranks out"));
    }
    if let Some((count @ 2.., _)) = asked {
        let spawn = plan.ranks.map_or(Spawn::Processes, |ranks| ranks.spawn);
        plan.ranks = Some(Ranks {
            count,
            spawn,
            targets: targets(request, &plan),
        });
    }
    Ok(plan)
}

fn targets(request: &MeasureRequest<'_>, plan: &Plan) -> TargetsPerRank {
    match request.targets {
        TargetsPerRank::Own => plan.ranks.map(|r| r.targets).unwrap_or_default(),
        asked => asked,
    }
}

fn words(ranks: Ranks) -> String {
    let what = match ranks.spawn {
        Spawn::Threads => "threads",
        Spawn::Processes => "processes",
        Spawn::Launcher => "ranks of a launcher",
    };
    format!("{} {what}", ranks.count)
}

fn contradiction(one: &str, other: &str, remedy: &str) -> Refusal {
    Refusal::usage(format!("{one}, and {other}\n  help: {remedy}"))
}

/// Most ranks that weir starts itself.
const MOST_RANKS: u32 = 1024;

type MakePlan<'a> = Option<&'a (dyn Fn() -> Result<Plan, Refusal> + Sync)>;

/// The part of this process. `plan` is there where rank 0 is.
fn carry_out(request: &MeasureRequest<'_>, world: RankWorld, plan: MakePlan<'_>) -> Outcome {
    let outcome = world.serve(|host| {
        let outcome = match RankGroup::of(host, request.timeout) {
            None => alone(request, host, plan),
            Some(group) => together(request, host, &group, plan),
        };
        let code = match &outcome {
            Ok(code) => *code,
            Err(refusal) => refusal.code,
        };
        // Before the world ends, which may end this process.
        let outcome = outcome.map_err(|refusal| {
            output::error(&refusal.message);
            Refusal {
                message: String::new(),
                peer: None,
                ..refusal
            }
        });
        world::end_in_place(host, code);
        outcome
    });
    let outcome = outcome.map_err(|e| world::came_apart(&e))?;
    let left = world.leave();
    // A failure that the report shows is not reported again.
    if matches!(outcome, Ok(0)) {
        left?;
    }
    outcome
}

fn alone(request: &MeasureRequest<'_>, host: &RankHost, plan: MakePlan<'_>) -> Outcome {
    let plan = plan.map_or_else(|| Err(world::silent()), |plan| plan())?;
    if request.targets != TargetsPerRank::Own {
        let why = "--per-rank: it is for several ranks, and there is one";
        return Err(Refusal::usage(why));
    }
    if request.timeout.is_some() && !plan.jobs().any(|(_, job)| waits_for_ranks(job)) {
        let why = "--rank-timeout: it is for several ranks, and there is one";
        return Err(Refusal::usage(why));
    }
    let result = run(request, &plan, host, None)?;
    report(request, result)
}

/// A job of ranks together, however many.
fn waits_for_ranks(job: &Job) -> bool {
    job.workload.timeout_ns().is_some()
}

fn together(
    request: &MeasureRequest<'_>,
    host: &RankHost,
    group: &RankGroup,
    plan: MakePlan<'_>,
) -> Outcome {
    let plan = group.share(plan.map(|plan| plan()))?;
    let mine = run(request, &plan, host, Some(group))?;
    let all = group.merge(mine)?;
    all.map_or(Ok(0), |mut result| {
        session::add_metrics(&mut result);
        report(request, result)
    })
}

/// Ends several runs of [`measure_alone`], whose results are one.
pub(crate) fn conclude(
    mut result: RunResult,
    keep: Keep<'_>,
    store_in: Option<&str>,
    report: &dyn Fn(&RunResult) -> Outcome,
) -> Outcome {
    let mut kept = history::keep(&mut result, keep);
    let stored = store_in.map_or(Ok(()), |path| store(path, &result));
    if let Err(message) = &stored {
        output::error(message);
    }
    let code = report(&result)?;
    let code = if stored.is_ok() { code } else { code.max(1) };
    if let Some(kept) = &mut kept {
        kept.ended_with(code);
        kept.print_changes();
    }
    Ok(code)
}

/// Keeps and stores the result, then has the door report it. Storing comes first, as a launcher that ends the
/// ranks may no longer read their output.
fn report(request: &MeasureRequest<'_>, mut result: RunResult) -> Outcome {
    result
        .warnings
        .splice(0..0, request.warnings.iter().cloned());
    conclude(result, request.keep, request.store, request.report)
}

fn store(path: &str, result: &RunResult) -> Result<(), String> {
    let text = result
        .to_json()
        .map_err(|e| format!("error: --store-result {path}: {e}\n"))?;
    output::write_file(path, &text)
}

fn run(
    request: &MeasureRequest<'_>,
    plan: &Plan,
    host: &RankHost,
    group: Option<&RankGroup>,
) -> Result<RunResult, Refusal> {
    let observer: Box<dyn RunObserver + '_> = if host.has_first() {
        (request.observer)(plan)
    } else {
        Box::new(Silent)
    };
    let choices = Choices {
        observer: observer.as_ref(),
        ranks: host,
        group,
    };
    let mut result = session::run(plan, &choices)?;
    observer.done(&mut result);
    Ok(result)
}

/// Observer of ranks that only do their part: it prints nothing.
pub(crate) struct Silent;

impl RunObserver for Silent {}

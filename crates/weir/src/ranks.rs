//! One plan on several ranks: the first rank reads it, sends it to all, and prints the result of all.
//!
//! Ranks other than the first print nothing and exit with 0: a launcher ends all of them as soon as one exits
//! with another code. A lost rank takes its part of the result with it. The others send theirs to the first
//! rank directly, and they are reported as failed because of it.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use weir_doors::Refusal;
use weir_run::execute::{OtherRanks, TargetMaker};
use weir_schema::{Failure, JobResult, Plan, RankSummary, RunResult, State, TargetsPerRank};
use weir_units::Nanos;
use weir_world::{
    Collectives as _, First, RankHost, RankMonitor, RankProcesses, RemoteWorld, World as _,
};

use crate::session;
use crate::world::silent;

/// Ranks wait for each other as long as their jobs may take: a loss ends that.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Time for steps that need none, and silence after which a rank counts as lost, where the command line
/// states no other.
const SOON: Duration = Duration::from_secs(60);
/// Time for ranks that have nothing to add.
const HURRY: Duration = Duration::from_millis(500);
/// Exit code of a run whose ranks lost each other.
const APART: u8 = 1;

/// Ranks that have lost step in one still find each other in the next.
const MEETINGS: u8 = 0;
const RESULTS: u8 = 1;
const VERDICTS: u8 = 2;
const DIRECT: u8 = 3;

/// Reason why a rank cannot run: exit code and message.
type Word = (u8, String);

/// All ranks, as one of them sees them.
pub(crate) struct RankGroup {
    host: RankHost,
    meetings: RemoteWorld,
    results: RemoteWorld,
    verdicts: RemoteWorld,
    direct: RemoteWorld,
    targets: Cell<TargetsPerRank>,
    /// Time to wait for steps that need no time, and for a silent rank.
    limit: Cell<Duration>,
    /// The process of rank 0, for ranks of a launcher that see it.
    first: RefCell<Option<First>>,
    /// Reason why this rank no longer meets the others.
    apart: RefCell<Option<String>>,
    /// The joint work of the ranks has reported its end already.
    is_reported: Cell<bool>,
}

impl RankGroup {
    /// The ranks of a host; nothing where all of them are in this process.
    pub(crate) fn of(host: &RankHost, timeout: Option<Nanos>) -> Option<Self> {
        let group = Self {
            host: host.clone(),
            meetings: host.world_of_all(MEETINGS)?,
            results: host.world_of_all(RESULTS)?,
            verdicts: host.world_of_all(VERDICTS)?,
            direct: host.world(DIRECT)?,
            targets: Cell::default(),
            limit: Cell::default(),
            first: RefCell::default(),
            apart: RefCell::default(),
            is_reported: Cell::default(),
        };
        group.set_limit(timeout.map_or(SOON, Duration::from));
        Some(group)
    }

    fn set_limit(&self, limit: Duration) {
        self.limit.set(limit);
        if let Some(monitor) = self.monitor() {
            monitor.set_limit(limit);
        }
    }

    pub(crate) fn is_first(&self) -> bool {
        self.meetings.rank() == 0
    }

    /// The processes of the others, where this one has started them.
    pub(crate) fn processes(&self) -> Option<&RankProcesses> {
        self.meetings.processes()
    }

    /// Process of rank 0, returned once; its holder passes signals on to it.
    pub(crate) fn take_first(&self) -> Option<First> {
        self.first.take()
    }

    /// Monitor that finds lost ranks.
    pub(crate) fn monitor(&self) -> Option<&RankMonitor> {
        self.meetings.monitor()
    }

    /// Shares the plan of the first rank, and returns this rank's part; an error on all ranks where the plan
    /// was refused.
    pub(crate) fn share(&self, plan: Option<Result<Plan, Refusal>>) -> Result<Plan, Refusal> {
        let (rank, size) = (self.meetings.rank(), self.meetings.size());
        // What would be refused on every rank is refused here.
        let fits = |plan: Plan| session::part(plan.clone(), rank, size).map(|_| plan);
        let (bytes, refused) = match plan.map(|plan| plan.and_then(fits)) {
            Some(Ok(plan)) => (
                plan.to_json().map_err(|e| self.apart(&e))?.into_bytes(),
                None,
            ),
            Some(Err(refusal)) => (Vec::new(), Some(refusal)),
            None => (Vec::new(), None),
        };
        let shared = self.meetings.broadcast(0, bytes, SOON);
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        let bytes = shared.map_err(|e| self.apart(&e))?;
        if bytes.is_empty() {
            return Err(silent());
        }
        let text = String::from_utf8(bytes).map_err(|e| self.apart(&e))?;
        let plan = Plan::from_json(&text).map_err(|e| self.apart(&e))?;
        let first = self.meetings.broadcast(0, First::word(), SOON);
        let first = First::of(&first.map_err(|e| self.apart(&e))?);
        self.first
            .replace(first.filter(|_| self.processes().is_none() && !self.is_first()));
        self.targets
            .set(plan.ranks.map(|ranks| ranks.targets).unwrap_or_default());
        if let Some(limit) = timeout_of(&plan) {
            self.set_limit(limit.into());
        }
        session::part(plan, rank, size)
    }

    /// Agrees that every rank can run. Where some cannot, the first rank gets the reasons of all.
    pub(crate) fn agree(&self, mine: Result<(), Refusal>) -> Result<(), Refusal> {
        let rank = self.meetings.rank();
        let word: Option<Word> = mine
            .err()
            .map(|r| (r.code, format!("rank {rank}: {}", r.message)));
        let word = serde_json::to_vec(&word).map_err(|e| self.apart(&e))?;
        let words = self.meetings.gather(&word, SOON);
        let words = words.map_err(|e| self.apart(&e))?;
        let read = |word: &Vec<u8>| serde_json::from_slice::<Option<Word>>(word);
        let refusals: Result<Vec<_>, _> = words.iter().flatten().map(read).collect();
        let refusals: Vec<Word> = refusals
            .map_err(|e| self.apart(&e))?
            .into_iter()
            .flatten()
            .collect();
        let verdict = vec![u8::from(refusals.is_empty())];
        let verdict = self.meetings.broadcast(0, verdict, SOON);
        if verdict.map_err(|e| self.apart(&e))? == [1] {
            return Ok(());
        }
        let message = |(_, message): &Word| message.clone();
        Err(refusals.first().map_or_else(silent, |(code, _)| {
            Refusal::new(*code, refusals.iter().map(message).collect::<String>())
        }))
    }

    /// Meeting of the other ranks within the run of a job.
    pub(crate) fn other_ranks<'b>(
        &self,
        meet: &'b dyn Fn() -> Result<(), String>,
    ) -> OtherRanks<'b> {
        let makes = match (self.targets.get(), self.is_first()) {
            (TargetsPerRank::Own, _) => TargetMaker::Own,
            (_, true) => TargetMaker::First,
            (_, false) => TargetMaker::After,
        };
        OtherRanks { meet, makes }
    }

    pub(crate) fn meet(&self) -> Result<(), String> {
        if self.host.is_abandoned() {
            return Err("this rank hangs in a call".to_owned());
        }
        let met = self.meetings.barrier(PATIENCE).map_err(|e| e.to_string());
        *self.apart.borrow_mut() = met.clone().err();
        met
    }

    /// The result of all ranks, at the first.
    pub(crate) fn merge(&self, mut mine: RunResult) -> Result<Option<RunResult>, Refusal> {
        let rank = self.results.rank();
        if self.host.is_abandoned() {
            // The world can be asked nothing any more: this rank reports what it has.
            return Ok((rank == 0).then_some(mine));
        }
        let of_ranks = |job: &JobResult| job.failure.is_some() && job.workers().is_empty();
        self.is_reported.set(mine.jobs().any(of_ranks));
        mine.ranks = vec![RankSummary::of(rank, &mine)];
        // What all have alike stays here.
        let plan = std::mem::take(&mut mine.plan);
        let bytes = mine.to_json().map_err(|e| self.apart(&e))?.into_bytes();
        let patience = patience_with(&mine);
        let whole = self.merge_all(bytes.clone(), patience);
        if rank != 0 {
            if !self.is_whole(false, PATIENCE) {
                self.send_directly(&bytes)?;
            }
            return Ok(None);
        }
        self.is_whole(whole.is_some(), patience);
        let mut all = match whole {
            Some(all) => all,
            None => self.merge_directly(mine, patience)?,
        };
        all.plan = plan;
        all.conclude_batches();
        all.ranks.sort_by_key(|r| r.rank);
        // Ranks that a signal ended say nothing more.
        if let Some(why) = self.loss(&all).filter(|_| all.ended_by.is_none()) {
            fail(&mut all, &why);
        }
        Ok(Some(all))
    }

    /// Result of all ranks, merged in a tree; `None` on all ranks but the first, or where one is missing.
    fn merge_all(&self, bytes: Vec<u8>, patience: Duration) -> Option<RunResult> {
        let mut both = |mine: Vec<u8>, theirs: Vec<u8>| merged(&mine, &theirs);
        let merged = self.results.reduce(bytes, &mut both, patience).ok()??;
        let all = RunResult::from_rank(&merged).ok()?;
        (all.ranks.len() == self.results.size() as usize).then_some(all)
    }

    /// True if the result of all ranks is complete, as the first rank states it. It is not where a rank was
    /// lost before that statement: the results it had merged are lost with it.
    fn is_whole(&self, is_whole: bool, patience: Duration) -> bool {
        let verdict = self
            .verdicts
            .broadcast(0, vec![u8::from(is_whole)], patience);
        verdict.is_ok_and(|verdict| verdict == [1])
    }

    /// Sends this rank's result to the first rank directly.
    fn send_directly(&self, bytes: &[u8]) -> Result<(), Refusal> {
        if let Some(loss) = self.monitor().and_then(|monitor| monitor.loss_of(0)) {
            return Err(self.apart(&loss));
        }
        let until = Instant::now() + self.limit.get();
        let sent = self.direct.send(0, bytes, until);
        sent.map_err(|e| self.apart(&e))
    }

    /// The results of all ranks that are left.
    fn merge_directly(&self, mine: RunResult, patience: Duration) -> Result<RunResult, Refusal> {
        let until = Instant::now() + self.limit.get().min(patience);
        let mut all = mine;
        for rank in 1..self.direct.size() {
            // A rank that does not answer is left out, and `loss` reports it.
            let Ok(bytes) = self.direct.receive(rank, until) else {
                continue;
            };
            let theirs = RunResult::from_rank(&bytes).map_err(|e| self.apart(&e))?;
            all.merge(theirs).map_err(|e| self.apart(&e))?;
        }
        Ok(all)
    }

    /// Reason why this is not the result of all ranks, or not of their whole work.
    fn loss(&self, all: &RunResult) -> Option<String> {
        let lost = self.monitor().and_then(RankMonitor::lost);
        let lost = lost.map(|lost| lost.to_string());
        let missing = || {
            let present: Vec<u32> = all.ranks.iter().map(|r| r.rank).collect();
            let rank = (0..self.results.size()).find(|rank| !present.contains(rank))?;
            Some(format!("rank {rank} is gone"))
        };
        lost.or_else(|| self.apart.borrow().clone())
            .or_else(missing)
    }

    /// Refusal of this rank where ranks lost each other. Only the first rank has a message, or the second
    /// where the first is lost.
    fn apart(&self, error: &dyn std::fmt::Display) -> Refusal {
        let first = self.monitor().and_then(|monitor| monitor.loss_of(0));
        let rank = self.meetings.rank();
        let is_said = rank != 0 && self.is_reported.get();
        if is_said || rank != u32::from(first.is_some()) {
            return silent();
        }
        // Who is missed first need not be the one whose end all others come from.
        let lost = first.or_else(|| self.monitor().and_then(RankMonitor::lost));
        let message = lost.map_or_else(|| error.to_string(), |loss| loss.to_string());
        Refusal::new(APART, format!("error: {message}"))
    }
}

/// Time to wait for the results of others. The outcome of joint work is at the first rank already. Where
/// joint work ended early, others may hang in a call, and their results would add nothing.
fn patience_with(mine: &RunResult) -> Duration {
    let has_workers = mine.jobs().any(|job| !job.workers().is_empty());
    if has_workers || mine.complete {
        PATIENCE
    } else {
        HURRY
    }
}

/// Silence after which a rank counts as lost, where jobs of the plan state it.
pub(crate) fn timeout_of(plan: &Plan) -> Option<Nanos> {
    let of_jobs = plan.jobs().filter_map(|(_, job)| job.workload.timeout_ns());
    of_jobs.max()
}

/// Every job lacks the part of a rank.
fn fail(all: &mut RunResult, why: &str) {
    all.complete = false;
    for job in all.groups.iter_mut().flat_map(|g| &mut g.jobs) {
        job.state = State::Failed;
        let failure = || Failure::new("rank", why);
        job.failure.get_or_insert_with(failure);
    }
}

fn merged(mine: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    let read = |bytes: &[u8]| RunResult::from_rank(bytes).map_err(|e| e.to_string());
    let mut all = read(mine)?;
    all.merge(read(theirs)?).map_err(|e| e.to_string())?;
    Ok(all.to_json().map_err(|e| e.to_string())?.into_bytes())
}

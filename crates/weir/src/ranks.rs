//! One plan on several ranks: the first rank reads it, tells it to all, and prints what all of
//! them measured together.
//!
//! Who is not the first rank says nothing and exits with 0: a launcher ends everybody as soon as
//! one exits with another code. A rank that is lost takes its part of the result with it; those of
//! the others are reported, as failed by it: they send theirs to the first rank directly.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use weir_doors::Refusal;
use weir_doors::run::PerRank;
use weir_run::execute::{Makes, Others};
use weir_schema::{Failure, Plan, RankSummary, RunResult, State};
use weir_units::Nanos;
use weir_world::{Collectives as _, Crew, Lane, Lanes, RankMonitor, World};

use crate::world::silent;

/// Ranks wait for each other as long as their jobs may take: a loss ends that.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// For what takes no time, and the silence of a rank, where the command line does not say.
const SOON: Duration = Duration::from_secs(60);
/// The end of a run that came apart.
const APART: u8 = 1;

/// Ranks that have lost step in one still find each other in the next.
const MEETINGS: u8 = 0;
const RESULTS: u8 = 1;
const VERDICTS: u8 = 2;
const DIRECT: u8 = 3;

/// Why a rank cannot run: exit code and message.
type Word = (u8, String);

/// Everybody who takes part, as one rank sees it.
pub(crate) struct Ranks<'a> {
    lanes: Lanes<'a>,
    per_rank: PerRank,
    /// How long ranks wait for what takes no time.
    limit: Duration,
    /// Why this rank meets nobody any more.
    apart: RefCell<Option<String>>,
}

impl<'a> Ranks<'a> {
    pub(crate) fn new(world: &'a dyn World, per_rank: PerRank, timeout: Option<Nanos>) -> Self {
        let limit = timeout.map_or(SOON, Duration::from);
        if let Some(monitor) = world.monitor() {
            monitor.set_limit(limit);
        }
        Self {
            lanes: Lanes::new(world),
            per_rank,
            limit,
            apart: RefCell::default(),
        }
    }

    fn world(&self) -> Lane<'_> {
        self.lanes.lane_of_all(MEETINGS)
    }

    pub(crate) fn is_first(&self) -> bool {
        self.world().rank() == 0
    }

    /// The processes of the others, where this one has started them.
    pub(crate) fn crew(&self) -> Option<&Crew> {
        self.lanes.crew()
    }

    /// Which of the others is lost.
    pub(crate) fn monitor(&self) -> Option<&RankMonitor> {
        self.lanes.monitor()
    }

    /// This rank's part of what the first one read; an error on all where that was refused.
    pub(crate) fn share(&self, plan: Option<Result<Plan, Refusal>>) -> Result<Plan, Refusal> {
        let (rank, size) = (self.world().rank(), self.world().size());
        // What would be refused on every rank is refused here.
        let fits = |plan: Plan| {
            let mut mine = plan.clone();
            self.per_rank.adjust(&mut mine, rank, size).map(|()| plan)
        };
        let (bytes, refused) = match plan.map(|plan| plan.and_then(fits)) {
            Some(Ok(plan)) => (
                plan.to_json().map_err(|e| self.apart(&e))?.into_bytes(),
                None,
            ),
            Some(Err(refusal)) => (Vec::new(), Some(refusal)),
            None => (Vec::new(), None),
        };
        let told = self.world().broadcast(0, bytes, SOON);
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        let bytes = told.map_err(|e| self.apart(&e))?;
        if bytes.is_empty() {
            return Err(silent());
        }
        let text = String::from_utf8(bytes).map_err(|e| self.apart(&e))?;
        let mut plan = Plan::from_json(&text).map_err(|e| self.apart(&e))?;
        self.per_rank.adjust(&mut plan, rank, size)?;
        Ok(plan)
    }

    /// Whether every rank can run; what those say that cannot, at the first rank.
    pub(crate) fn agree(&self, mine: Result<(), Refusal>) -> Result<(), Refusal> {
        let world = self.world();
        let rank = world.rank();
        let word: Option<Word> = mine
            .err()
            .map(|r| (r.code, format!("rank {rank}: {}", r.message)));
        let word = serde_json::to_vec(&word).map_err(|e| self.apart(&e))?;
        let words = world.gather(&word, SOON).map_err(|e| self.apart(&e))?;
        let read = |word: &Vec<u8>| serde_json::from_slice::<Option<Word>>(word);
        let refusals: Result<Vec<_>, _> = words.iter().flatten().map(read).collect();
        let refusals: Vec<Word> = refusals
            .map_err(|e| self.apart(&e))?
            .into_iter()
            .flatten()
            .collect();
        let verdict = vec![u8::from(refusals.is_empty())];
        let verdict = world.broadcast(0, verdict, SOON);
        if verdict.map_err(|e| self.apart(&e))? == [1] {
            return Ok(());
        }
        let message = |(_, message): &Word| message.clone();
        Err(refusals.first().map_or_else(silent, |(code, _)| Refusal {
            code: *code,
            message: refusals.iter().map(message).collect(),
        }))
    }

    /// Where the run of a job meets the other ranks.
    pub(crate) fn others<'b>(&self, meet: &'b dyn Fn() -> Result<(), String>) -> Others<'b> {
        let makes = match (self.per_rank, self.is_first()) {
            (PerRank::Own, _) => Makes::Own,
            (_, true) => Makes::First,
            (_, false) => Makes::After,
        };
        Others { meet, makes }
    }

    pub(crate) fn meet(&self) -> Result<(), String> {
        let met = self.world().barrier(PATIENCE).map_err(|e| e.to_string());
        *self.apart.borrow_mut() = met.clone().err();
        met
    }

    /// The result of all ranks, at the first.
    pub(crate) fn merge(&self, mut mine: RunResult) -> Result<Option<RunResult>, Refusal> {
        let rank = self.world().rank();
        mine.ranks = vec![RankSummary::of(rank, &mine)];
        // What all have alike stays here.
        let plan = std::mem::take(&mut mine.plan);
        let bytes = serde_json::to_vec(&mine).map_err(|e| self.apart(&e))?;
        let whole = self.merge_all(bytes.clone());
        if rank != 0 {
            if !self.is_whole(false) {
                self.send_directly(&bytes)?;
            }
            return Ok(None);
        }
        self.is_whole(whole.is_some());
        let mut all = match whole {
            Some(all) => all,
            None => self.merge_directly(mine)?,
        };
        all.plan = plan;
        all.ranks.sort_by_key(|r| r.rank);
        if let Some(why) = self.loss(&all) {
            fail(&mut all, &why);
        }
        Ok(Some(all))
    }

    /// The result of all, merged up a tree; nothing elsewhere, or where one is missing.
    fn merge_all(&self, bytes: Vec<u8>) -> Option<RunResult> {
        let mut both = |mine: Vec<u8>, theirs: Vec<u8>| merged(&mine, &theirs);
        let results = self.lanes.lane_of_all(RESULTS);
        let merged = results.reduce(bytes, &mut both, PATIENCE).ok()??;
        let all: RunResult = serde_json::from_slice(&merged).ok()?;
        (all.ranks.len() == self.lanes.size() as usize).then_some(all)
    }

    /// Whether the result of all is whole, as the first rank knows. It is not where a rank was lost
    /// before that was told: what it had merged by then is lost with it.
    fn is_whole(&self, is_whole: bool) -> bool {
        let verdicts = self.lanes.lane_of_all(VERDICTS);
        let verdict = verdicts.broadcast(0, vec![u8::from(is_whole)], PATIENCE);
        verdict.is_ok_and(|verdict| verdict == [1])
    }

    /// This rank's result alone, past all others, to the first.
    fn send_directly(&self, bytes: &[u8]) -> Result<(), Refusal> {
        if let Some(loss) = self.monitor().and_then(|monitor| monitor.loss_of(0)) {
            return Err(self.apart(&loss));
        }
        let until = Instant::now() + self.limit;
        let sent = self.lanes.lane(DIRECT).send(0, bytes, until);
        sent.map_err(|e| self.apart(&e))
    }

    /// The results of all ranks that are left.
    fn merge_directly(&self, mine: RunResult) -> Result<RunResult, Refusal> {
        let direct = self.lanes.lane(DIRECT);
        let until = Instant::now() + self.limit;
        let mut all = mine;
        for rank in 1..self.lanes.size() {
            // Who does not answer is left out, and its absence told.
            let Ok(bytes) = direct.receive(rank, until) else {
                continue;
            };
            let theirs = serde_json::from_slice(&bytes).map_err(|e| self.apart(&e))?;
            all.merge(theirs).map_err(|e| self.apart(&e))?;
        }
        Ok(all)
    }

    /// Why this is not the result of all ranks, or not of all that they were to do.
    fn loss(&self, all: &RunResult) -> Option<String> {
        let lost = self.monitor().and_then(RankMonitor::lost);
        let lost = lost.map(|lost| lost.to_string());
        let missing = || {
            let told: Vec<u32> = all.ranks.iter().map(|r| r.rank).collect();
            let rank = (0..self.lanes.size()).find(|rank| !told.contains(rank))?;
            Some(format!("rank {rank} is gone"))
        };
        lost.or_else(|| self.apart.borrow().clone())
            .or_else(missing)
    }

    /// How this rank ends where ranks lost each other. The first says so, or the second where that is
    /// the lost one.
    fn apart(&self, error: &dyn std::fmt::Display) -> Refusal {
        let first = self.monitor().and_then(|monitor| monitor.loss_of(0));
        if self.world().rank() != u32::from(first.is_some()) {
            return silent();
        }
        let message = first.map_or_else(|| error.to_string(), |loss| loss.to_string());
        Refusal {
            message: format!("error: {message}\n"),
            code: APART,
        }
    }
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
    let read = |bytes: &[u8]| -> Result<RunResult, String> {
        serde_json::from_slice(bytes).map_err(|e| e.to_string())
    };
    let mut all = read(mine)?;
    all.merge(read(theirs)?).map_err(|e| e.to_string())?;
    serde_json::to_vec(&all).map_err(|e| e.to_string())
}

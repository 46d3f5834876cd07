//! One plan on several ranks: the first rank reads it, tells it to all, and prints what all of
//! them measured together.
//!
//! Who is not the first rank says nothing and exits with 0: a launcher ends everybody as soon as
//! one exits with another code. A rank that is lost takes its part of the result with it; those of
//! the others are told, as failed by it.

use std::cell::RefCell;
use std::time::Duration;

use weir_doors::Refusal;
use weir_doors::run::PerRank;
use weir_run::execute::{Makes, Others};
use weir_schema::{Failure, Plan, RankSummary, RunResult, State};
use weir_world::{Collectives as _, Crew, Lane, Lanes, RankMonitor, World};

use crate::world::silent;

/// Ranks wait for each other as long as their jobs may take; who is gone is noticed at once.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// For what takes no time.
const SOON: Duration = Duration::from_secs(60);
/// The end of a run that came apart.
const APART: u8 = 1;

/// Ranks that have lost step in the first still find each other in the second.
const MEETINGS: u8 = 0;
const RESULTS: u8 = 1;

/// Why a rank cannot run: exit code and message.
type Word = (u8, String);

/// Everybody who takes part, as one rank sees it.
pub(crate) struct Ranks<'a> {
    lanes: Lanes<'a>,
    per_rank: PerRank,
    /// Why this rank meets nobody any more.
    apart: RefCell<Option<String>>,
}

impl<'a> Ranks<'a> {
    pub(crate) fn new(world: &'a dyn World, per_rank: PerRank) -> Self {
        Self {
            lanes: Lanes::new(world),
            per_rank,
            apart: RefCell::default(),
        }
    }

    fn world(&self) -> Lane<'_> {
        self.lanes.lane(MEETINGS)
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
            Some(Ok(plan)) => (plan.to_json().map_err(|e| apart(&e))?.into_bytes(), None),
            Some(Err(refusal)) => (Vec::new(), Some(refusal)),
            None => (Vec::new(), None),
        };
        let told = self.world().broadcast(0, bytes, SOON);
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        let bytes = told.map_err(|e| apart(&e))?;
        if bytes.is_empty() {
            return Err(silent());
        }
        let text = String::from_utf8(bytes).map_err(|e| apart(&e))?;
        let mut plan = Plan::from_json(&text).map_err(|e| apart(&e))?;
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
        let word = serde_json::to_vec(&word).map_err(|e| apart(&e))?;
        let words = world.gather(&word, SOON).map_err(|e| apart(&e))?;
        let read = |word: &Vec<u8>| serde_json::from_slice::<Option<Word>>(word);
        let refusals: Result<Vec<_>, _> = words.iter().flatten().map(read).collect();
        let refusals: Vec<Word> = refusals
            .map_err(|e| apart(&e))?
            .into_iter()
            .flatten()
            .collect();
        let verdict = vec![u8::from(refusals.is_empty())];
        let verdict = world.broadcast(0, verdict, SOON);
        if verdict.map_err(|e| apart(&e))? == [1] {
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
        let results = self.lanes.lane(RESULTS);
        mine.ranks = vec![RankSummary::of(results.rank(), &mine)];
        // What all have alike stays here.
        let plan = std::mem::take(&mut mine.plan);
        let bytes = serde_json::to_vec(&mine).map_err(|e| apart(&e))?;
        let mut both = |mine: Vec<u8>, theirs: Vec<u8>| merged(&mine, &theirs);
        let merged = results.reduce(bytes, &mut both, PATIENCE);
        let Some(bytes) = merged.map_err(|e| apart(&e))? else {
            return Ok(None);
        };
        let mut all: RunResult = serde_json::from_slice(&bytes).map_err(|e| apart(&e))?;
        all.plan = plan;
        all.ranks.sort_by_key(|r| r.rank);
        if let Some(why) = self.loss(&all) {
            fail(&mut all, &why);
        }
        Ok(Some(all))
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

fn apart(error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        message: format!("error: {error}\n"),
        code: APART,
    }
}

//! One plan on several ranks: the first rank reads it, tells it to all, and prints what all of
//! them measured together.
//!
//! Who is not the first rank says nothing and exits with 0: a launcher ends everybody as soon as
//! one exits with another code.

use std::time::Duration;

use weir_doors::Refusal;
use weir_doors::run::PerRank;
use weir_run::execute::{Makes, Others};
use weir_schema::{Plan, RankSummary, RunResult};
use weir_world::{Collectives as _, World};

use crate::world::silent;

/// Ranks wait for each other as long as their jobs may take; who is gone is noticed at once.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);
/// For what takes no time.
const SOON: Duration = Duration::from_secs(60);
/// The end of a run that came apart.
const APART: u8 = 1;

/// Why a rank cannot run: exit code and message.
type Word = (u8, String);

/// Everybody who takes part, as one rank sees it.
pub(crate) struct Ranks<'a> {
    world: &'a dyn World,
    per_rank: PerRank,
}

impl<'a> Ranks<'a> {
    pub(crate) fn new(world: &'a dyn World, per_rank: PerRank) -> Self {
        Self { world, per_rank }
    }

    pub(crate) fn is_first(&self) -> bool {
        self.world.rank() == 0
    }

    /// This rank's part of what the first one read; an error on all where that was refused.
    pub(crate) fn share(&self, plan: Option<Result<Plan, Refusal>>) -> Result<Plan, Refusal> {
        let (rank, size) = (self.world.rank(), self.world.size());
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
        let told = self.world.broadcast(0, bytes, SOON);
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
        let rank = self.world.rank();
        let word: Option<Word> = mine
            .err()
            .map(|r| (r.code, format!("rank {rank}: {}", r.message)));
        let word = serde_json::to_vec(&word).map_err(|e| apart(&e))?;
        let words = self.world.gather(&word, SOON).map_err(|e| apart(&e))?;
        let read = |word: &Vec<u8>| serde_json::from_slice::<Option<Word>>(word);
        let refusals: Result<Vec<_>, _> = words.iter().flatten().map(read).collect();
        let refusals: Vec<Word> = refusals
            .map_err(|e| apart(&e))?
            .into_iter()
            .flatten()
            .collect();
        let verdict = vec![u8::from(refusals.is_empty())];
        let verdict = self.world.broadcast(0, verdict, SOON);
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
        self.world.barrier(PATIENCE).map_err(|e| e.to_string())
    }

    /// The result of all ranks, at the first.
    pub(crate) fn merge(&self, mut mine: RunResult) -> Result<Option<RunResult>, Refusal> {
        mine.ranks = vec![RankSummary::of(self.world.rank(), &mine)];
        // What all have alike stays here.
        let plan = std::mem::replace(&mut mine.plan, nothing());
        let bytes = serde_json::to_vec(&mine).map_err(|e| apart(&e))?;
        let mut both = |mine: Vec<u8>, theirs: Vec<u8>| merged(&mine, &theirs);
        let merged = self.world.reduce(bytes, &mut both, PATIENCE);
        let Some(bytes) = merged.map_err(|e| apart(&e))? else {
            return Ok(None);
        };
        let mut all: RunResult = serde_json::from_slice(&bytes).map_err(|e| apart(&e))?;
        all.plan = plan;
        all.ranks.sort_by_key(|r| r.rank);
        Ok(Some(all))
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

/// A plan without jobs, in the place of one that all have.
fn nothing() -> Plan {
    Plan {
        schema: weir_schema::PLAN_SCHEMA.to_owned(),
        name: String::new(),
        door: String::new(),
        command: Vec::new(),
        global_words: Vec::new(),
        groups: Vec::new(),
        total_log: None,
        ranks: None,
    }
}

fn apart(error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        message: format!("error: {error}\n"),
        code: APART,
    }
}

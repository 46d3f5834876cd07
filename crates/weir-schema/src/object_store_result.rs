//! Outcome of tests on an object store: ranks with their pools, and what each test did there.
//!
//! Latencies of operations are in the job's phases. Not here: the work (`object_store`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::error_code::ErrorCode;
use crate::object_store::ObjectDurability;
use crate::outcome::Metric;
use crate::result::Span;

/// Outcome of tests on an object store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectOutcome {
    /// Ranks, in their order.
    pub ranks: Vec<ObjectRank>,
}

/// The pool of a rank, and what its tests did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRank {
    /// Number of the rank.
    pub rank: u32,
    /// Number of the target, where the rank has several.
    #[serde(default, skip_serializing_if = "is_first")]
    pub target: u32,
    /// UUID of its pool.
    pub pool: String,
    /// UUID of its container.
    pub container: String,
    /// Its file, where the engine has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Library that holds it, where the engine is one that is opened at run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// File system of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Fate that acknowledged updates survive.
    pub durability: ObjectDurability,
    /// Time to make or open the pool and to map it in.
    pub setup_ns: Nanos,
    /// Iterations of tests, in the order in which they ran.
    pub runs: Vec<ObjectRun>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn is_first(target: &u32) -> bool {
    *target == 0
}

/// One iteration of a test on one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRun {
    /// Place of the test in the workload.
    pub test: u32,
    /// Name of its phase.
    pub name: String,
    /// Number of the iteration, from 0.
    pub iteration: u32,
    /// Time from its first operation to the end of its last.
    pub span: Span,
    /// Time that counts: that of all operations where each is waited for, else that of the span.
    pub busy_ns: Nanos,
    /// Sum of the operations' own times, where they are kept.
    #[serde(default)]
    pub operation_ns: Nanos,
    /// Time that counts in whole microseconds, each part that was timed cut off.
    pub truncated_us: u64,
    /// Operations.
    pub operations: u64,
    /// Bytes of values that were written, or found.
    pub bytes: Bytes,
    /// Operations that found something.
    #[serde(default)]
    pub hits: u64,
    /// Operations that found nothing.
    #[serde(default)]
    pub misses: u64,
    /// Versions that were freed.
    #[serde(default)]
    pub freed_versions: u64,
    /// Bytes that were freed.
    #[serde(default)]
    pub freed_bytes: Bytes,
    /// Greatest distribution key that queries found, where it is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greatest_dkey: Option<u64>,
    /// End of the last extent that queries found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent_end: Option<u64>,
    /// Objects that each call of a listing gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<u32>,
    /// The first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ObjectFailure>,
    /// Failed operations by code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<ErrorCode, u64>,
    /// Keys of each operation, where the test keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ObjectKeys>,
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectFailure {
    /// Id of the object, high and low word.
    pub object: String,
    /// Keys.
    pub keys: ObjectKeys,
    /// Epoch of the operation.
    pub epoch: u64,
    /// Code, a `DER_` name or an errno.
    pub code: ErrorCode,
    /// Further words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)?;
        if self.object.is_empty() {
            // The test as a whole could not be had.
            return Ok(());
        }
        let dkey = ("dkey", self.keys.dkey.as_ref());
        let akey = ("akey", self.keys.akey.as_ref());
        write!(f, " (object {}", self.object)?;
        for (name, key) in [dkey, akey] {
            match key {
                Some(ObjectKey::Name(key)) => write!(f, ", {name} {key}")?,
                Some(ObjectKey::Integer(key)) => write!(f, ", {name} {key}")?,
                None => {}
            }
        }
        write!(f, ", epoch {})", self.epoch)
    }
}

/// Keys of an operation; none where it is about what is above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectKeys {
    /// Distribution key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dkey: Option<ObjectKey>,
    /// Attribute key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub akey: Option<ObjectKey>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ObjectKey {
    /// A number of 8 bytes.
    Integer(u64),
    /// Text.
    Name(String),
}

impl ObjectOutcome {
    /// True if an operation of some test failed.
    pub fn has_failed(&self) -> bool {
        let mut runs = self.ranks.iter().flat_map(|rank| &rank.runs);
        runs.any(|run| run.failure.is_some())
    }

    /// Iterations of a test on each rank, by its place in the workload.
    pub fn of_test(&self, test: usize) -> Vec<Vec<&ObjectRun>> {
        let of = |rank: &'_ ObjectRank| -> Vec<usize> {
            let runs = rank.runs.iter().enumerate();
            let same = runs.filter(|(_, run)| usize::try_from(run.test) == Ok(test));
            same.map(|(place, _)| place).collect()
        };
        let ranks = self.ranks.iter();
        ranks
            .map(|rank| {
                of(rank)
                    .into_iter()
                    .map(|place| &rank.runs[place])
                    .collect()
            })
            .collect()
    }

    /// Figures of a test over its iterations and all ranks; none if no rank ran it.
    pub fn figures(&self, test: usize) -> Option<ObjectFigures> {
        let ranks = self.of_test(test);
        ranks.iter().any(|runs| !runs.is_empty()).then(|| {
            let mut all = ObjectFigures::default();
            for runs in ranks.iter().filter(|runs| !runs.is_empty()) {
                let sum = |of: fn(&ObjectRun) -> u64| -> u64 {
                    runs.iter().map(|run| of(run)).fold(0, u64::saturating_add)
                };
                all.operations += sum(|run| run.operations);
                all.bytes += sum(|run| run.bytes.0);
                all.hits += sum(|run| run.hits);
                all.misses += sum(|run| run.misses);
                all.freed_versions += sum(|run| run.freed_versions);
                all.freed_bytes += sum(|run| run.freed_bytes.0);
                all.busy.push(Nanos(sum(|run| run.busy_ns.0)));
                all.operation_time.0 += sum(|run| run.operation_ns.0);
                all.truncated
                    .push(Nanos(sum(|run| run.truncated_us) * 1000));
                for (code, count) in runs.iter().flat_map(|run| &run.errors) {
                    *all.errors.entry(code.clone()).or_default() += count;
                }
                let spans = runs.iter().map(|run| run.span);
                let whole = all.span.into_iter().chain(spans);
                all.span = whole.reduce(Span::hull);
            }
            all
        })
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.ranks.extend(other.ranks);
        self.ranks.sort_by_key(|rank| rank.rank);
    }

    pub(crate) fn spans_mut(&mut self) -> impl Iterator<Item = &mut Span> {
        let runs = self.ranks.iter_mut().flat_map(|rank| &mut rank.runs);
        runs.map(|run| &mut run.span)
    }

    /// Rates and mean latencies of tests by name; of several with one name the last.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let runs = self.ranks.iter().flat_map(|rank| &rank.runs);
        let mut tests: Vec<(usize, &str)> = Vec::new();
        for run in runs {
            let Ok(test) = usize::try_from(run.test) else {
                continue;
            };
            match tests.iter_mut().find(|(_, name)| *name == run.name) {
                Some((last, _)) => *last = test.max(*last),
                None => tests.push((test, &run.name)),
            }
        }
        let of =
            |(test, name): (usize, &str)| {
                let figures = self.figures(test)?;
                let mut all = Vec::new();
                if let Some(rate) =
                    per_s(figures.counted(), figures.duration()).filter(|rate| *rate > 0.0)
                {
                    let name = format!("{name} rate");
                    all.push(Metric::high(name, Metric::OPS_PER_S, rate));
                }
                if figures.bytes > 0 {
                    let bytes = per_s(figures.bytes, figures.duration())?;
                    all.push(Metric::high(
                        format!("{name} bandwidth"),
                        Metric::BYTES_PER_S,
                        bytes,
                    ));
                }
                all.extend(figures.mean_latency().map(|mean| {
                    Metric::low(format!("{name} mean latency"), Metric::SECONDS, mean)
                }));
                if figures.misses > 0 {
                    let name = format!("{name} operations that found nothing");
                    #[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
                    all.push(Metric::low(name, "", figures.misses as f64));
                }
                Some(all)
            };
        tests.into_iter().filter_map(of).flatten().collect()
    }
}

/// Figures of a test over its iterations and all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectFigures {
    /// Operations.
    pub operations: u64,
    /// Bytes written or found.
    pub bytes: u64,
    /// Operations that found something.
    pub hits: u64,
    /// Operations that found nothing.
    pub misses: u64,
    /// Versions freed.
    pub freed_versions: u64,
    /// Bytes freed.
    pub freed_bytes: u64,
    /// Time of each rank that counts.
    pub busy: Vec<Nanos>,
    /// Sum of the operations' own times, where they are kept.
    pub operation_time: Nanos,
    /// The same in whole microseconds of each operation.
    pub truncated: Vec<Nanos>,
    /// From the first start to the last end.
    pub span: Option<Span>,
    /// Failed operations by code.
    pub errors: BTreeMap<ErrorCode, u64>,
}

impl ObjectFigures {
    /// Time that rates count from: of one rank its own, of several from the first start to the last end.
    pub fn duration(&self) -> Nanos {
        match (&self.busy[..], self.span) {
            ([one], _) => *one,
            (_, Some(span)) => span.length(),
            _ => Nanos::ZERO,
        }
    }

    /// Operations that found what they looked for, or looked for nothing.
    pub fn counted(&self) -> u64 {
        self.operations.saturating_sub(self.misses)
    }

    /// Mean of the operations' own times, in seconds.
    fn mean_latency(&self) -> Option<f64> {
        if self.operation_time == Nanos::ZERO {
            return self.seconds_per_operation();
        }
        per_s(self.operations, self.operation_time)
            .filter(|rate| *rate > 0.0)
            .map(f64::recip)
    }

    /// Mean time of an operation on its rank.
    pub fn seconds_per_operation(&self) -> Option<f64> {
        let busy: u64 = self.busy.iter().map(|time| time.0).sum();
        per_s(self.operations, Nanos(busy))
            .filter(|rate| *rate > 0.0)
            .map(f64::recip)
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
fn per_s(count: u64, time: Nanos) -> Option<f64> {
    (time > Nanos::ZERO).then(|| count as f64 * 1e9 / time.0 as f64)
}

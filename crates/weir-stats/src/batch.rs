//! Batches: a run of unknown length in bounded memory, and its figures with intervals.
//!
//! In: what was done in each stretch of the run (after the ramp), with the stretch's histogram
//! and its length by the clock. Out: how the run went over time, and how sure throughput, mean and
//! percentiles are, as [`Estimate`]s. Whenever more than 200 batches are held, neighbours are joined
//! and the batches are twice as long from then on: any run past the first 200 stretches keeps between
//! 100 and 200, enough for a plot. Estimates come from at most 80, joined in the same way. What
//! several ranks did in the same stretches adds up, from the stored form as well.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use weir_units::{Bytes, JsonSchema, Nanos};

use crate::estimate::{Estimate, NoInterval};
use crate::histogram::{Histogram, HistogramError};
use crate::percentile_interval::{PercentileIntervals, excess};
use crate::series_mean::{MOST, SeriesMean};

/// Largest number of batches held.
const HELD: usize = 200;

/// Operations and values of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Stretches that it holds: more than one where they were joined, or seen at once.
    pub stretches: u64,
    /// Its length by the clock.
    pub length_ns: Nanos,
    /// Completed.
    pub operations: u64,
    /// Moved.
    pub bytes: Bytes,
    /// Of the latencies, or of another value per operation.
    pub histogram: Histogram,
}

impl Batch {
    /// Adds what came next.
    fn join(&mut self, next: Self) -> Result<(), HistogramError> {
        if self.stretches == 0 {
            *self = next;
            return Ok(());
        }
        self.stretches = self.stretches.saturating_add(next.stretches);
        self.length_ns = self.length_ns.saturating_add(next.length_ns);
        self.add(&next)
    }

    /// Adds what was done by others at the same time.
    fn add(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.histogram.merge(&other.histogram)?;
        self.operations = self.operations.saturating_add(other.operations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        Ok(())
    }

    /// Takes its first stretches off, with their part by time of everything.
    fn take(&mut self, stretches: u64) -> Self {
        if stretches >= self.stretches {
            return std::mem::take(self);
        }
        let whole = u128::from(self.stretches);
        let part = |of: u64| {
            let part = u128::from(of) * u128::from(stretches) / whole;
            u64::try_from(part).unwrap_or(of)
        };
        let histogram = self.histogram.share(part(self.histogram.count()));
        let first = Self {
            stretches,
            length_ns: Nanos(part(self.length_ns.0)),
            operations: part(self.operations),
            bytes: Bytes(part(self.bytes.0)),
            histogram: histogram.clone(),
        };
        // A histogram without a part of itself is one.
        self.histogram = self.histogram.since(&histogram).unwrap_or_default();
        self.stretches -= first.stretches;
        self.length_ns = Nanos(self.length_ns.0 - first.length_ns.0);
        self.operations -= first.operations;
        self.bytes = Bytes(self.bytes.0 - first.bytes.0);
        first
    }
}

/// The batches of one kind of operation, over all its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct BatchStore {
    stretch: Nanos,
    /// Stretches in a whole batch, or more where several were seen at once.
    per_batch: u64,
    /// Ranks whose batches these are together.
    members: u32,
    batches: Vec<Batch>,
    /// The batch that is being filled.
    current: Batch,
}

impl BatchStore {
    /// For stretches of about this length, so many to a batch at first.
    pub fn new(stretch: Nanos, per_batch: u64) -> Self {
        Self {
            stretch: stretch.max(Nanos(1)),
            per_batch: per_batch.max(1),
            members: 1,
            batches: Vec::new(),
            current: Batch::default(),
        }
    }

    /// Adds the next whole stretches. Leave out a part of one at the end: its rate counts as much
    /// as any other's.
    ///
    /// # Errors
    /// If its histogram's precision is not that of the others.
    pub fn push(&mut self, next: Batch) -> Result<(), HistogramError> {
        self.current.join(next)?;
        if self.current.stretches >= self.per_batch {
            self.batches.push(std::mem::take(&mut self.current));
        }
        if self.batches.len() > HELD {
            self.lengthen(self.per_batch.saturating_mul(2))?;
        }
        Ok(())
    }

    /// Adds what came after the last stretch that was whole to the batch before it. A run without one
    /// has no batch.
    ///
    /// # Errors
    /// As for [`Self::push`].
    pub fn extend(&mut self, rest: Batch) -> Result<(), HistogramError> {
        let last = if self.current.stretches > 0 {
            Some(&mut self.current)
        } else {
            self.batches.last_mut()
        };
        let rest = Batch {
            stretches: 0,
            ..rest
        };
        last.map_or(Ok(()), |last| last.join(rest))
    }

    /// The same in at most so many whole batches.
    #[must_use]
    pub fn joined(&self, most: usize) -> Self {
        let mut joined = self.clone();
        while joined.batches.len() > most {
            let longer = joined.per_batch.saturating_mul(2);
            if longer == joined.per_batch || joined.lengthen(longer).is_err() {
                return self.clone();
            }
        }
        joined
    }

    /// The same in as few batches as estimates are made from.
    #[must_use]
    pub fn for_estimates(&self) -> Self {
        self.joined(MOST)
    }

    /// Joins neighbours until each batch has so many stretches.
    fn lengthen(&mut self, per_batch: u64) -> Result<(), HistogramError> {
        self.per_batch = per_batch;
        let mut held = std::mem::take(&mut self.batches);
        held.push(std::mem::take(&mut self.current));
        for batch in held {
            self.current.join(batch)?;
            if self.current.stretches >= per_batch {
                self.batches.push(std::mem::take(&mut self.current));
            }
        }
        Ok(())
    }

    /// Everything that was done, in order; the last batch need not be whole.
    pub fn all(&self) -> impl Iterator<Item = &Batch> {
        let rest = (self.current.stretches > 0).then_some(&self.current);
        self.batches.iter().chain(rest)
    }

    /// The whole batches, in order.
    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Number of stretches, from the begin of the run, that make the present batch whole.
    pub fn next_end(&self) -> u64 {
        let missing = self.per_batch.saturating_sub(self.current.stretches);
        self.seen().saturating_add(missing)
    }

    /// Stretches so far.
    pub fn seen(&self) -> u64 {
        let all = self.batches.iter().chain([&self.current]);
        all.map(|batch| batch.stretches)
            .fold(0, u64::saturating_add)
    }

    /// Takes in what another rank did in the same stretches. One that ended by more than a batch
    /// earlier did nothing more; less is the chance of where a run ends, and part of the last batch,
    /// which is longer by the share of the ranks that ran on.
    ///
    /// # Errors
    /// If stretches or histograms differ in form.
    pub fn merge(&mut self, other: &Self) -> Result<(), BatchError> {
        if self.stretch != other.stretch {
            return Err(BatchError::StretchDiffers(self.stretch, other.stretch));
        }
        let per_batch = self.per_batch.max(other.per_batch);
        let mut sides = [self.clone(), other.clone()];
        for side in &mut sides {
            side.lengthen(per_batch)?;
        }
        let mut left = sides.map(|mut side| {
            let last = std::mem::take(&mut side.current);
            let all = side
                .batches
                .into_iter()
                .chain((last.stretches > 0).then_some(last));
            all.collect::<VecDeque<Batch>>()
        });
        let (seen, members) = ([self.seen(), other.seen()], [self.members, other.members]);
        let end = if seen[0].abs_diff(seen[1]) <= per_batch {
            seen[0].min(seen[1])
        } else {
            seen[0].max(seen[1])
        };
        let mut sum = Self {
            members: members[0].saturating_add(members[1]),
            ..Self::new(self.stretch, per_batch)
        };
        let mut at = 0;
        while at < end {
            let fronts = left.iter().filter_map(|side| side.front());
            let step = fronts.map(|batch| batch.stretches).min().unwrap_or(1);
            let step = step.clamp(1, end - at);
            let parts = left
                .each_mut()
                .map(|side| take_front(side, step, self.stretch));
            sum.push(beside(parts, members)?)?;
            at += step;
        }
        for (side, own) in left.into_iter().zip(members) {
            for rest in side {
                let length_ns = share_of(rest.length_ns, own, sum.members);
                sum.extend(Batch { length_ns, ..rest })?;
            }
        }
        *self = sum;
        Ok(())
    }

    /// Takes in what the same ranks did of another kind in the same stretches.
    ///
    /// # Errors
    /// If stretches or histograms differ in form.
    pub fn add_kind(&mut self, other: &Self) -> Result<(), BatchError> {
        let members = self.members;
        self.merge(other)?;
        self.members = members;
        Ok(())
    }

    /// Operations per second, whose interval lies about the rate of the whole run.
    pub fn operations_per_second(&self, of_run: f64) -> Estimate {
        // One operation more or less falls inside by chance of where the ends lie.
        let half = self
            .rate()
            .map(|rate| rate.half_width + 1.0 / self.seconds());
        Estimate::about(of_run, half)
    }

    /// Bytes per second, in the same way.
    pub fn bytes_per_second(&self, of_run: f64) -> Estimate {
        let [bytes, operations] = [of_bytes, of_operations].map(|count| self.total(count));
        let grain = bytes / operations.max(1.0) / self.seconds();
        let half = SeriesMean::of(&self.rates(of_bytes)).map(|rate| rate.half_width + grain);
        Estimate::about(of_run, half)
    }

    /// The mean rate of operations over the batches.
    ///
    /// # Errors
    /// With fewer than 10 batches.
    pub fn rate(&self) -> Result<SeriesMean, NoInterval> {
        SeriesMean::of(&self.rates(of_operations))
    }

    fn rates(&self, count: fn(&Batch) -> u64) -> Vec<f64> {
        let rate = |batch: &Batch| count(batch) as f64 / batch.length_ns.as_secs_f64();
        self.batches.iter().map(rate).collect()
    }

    fn seconds(&self) -> f64 {
        self.batches.iter().map(|b| b.length_ns.as_secs_f64()).sum()
    }

    fn total(&self, count: fn(&Batch) -> u64) -> f64 {
        self.batches.iter().map(|batch| count(batch) as f64).sum()
    }

    /// The mean of the recorded values of the whole run. Batches with more operations weigh more.
    pub fn mean(&self, of_run: f64) -> Estimate {
        let histograms = self.histograms();
        let count: u64 = histograms
            .iter()
            .map(|h| h.count())
            .fold(0, u64::saturating_add);
        let per_batch = count as f64 / histograms.len().max(1) as f64;
        let values = excess(of_run, &histograms, per_batch);
        let mean = SeriesMean::of(&values).and_then(|mean| self.seen_over_time().map(|()| mean));
        Estimate::about(of_run, mean.map(|mean| mean.half_width))
    }

    /// Percentiles of `whole`, the histogram of everything that was recorded, with intervals
    /// from the batches. A percentile that `whole` does not have is left out.
    pub fn percentiles(&self, whole: &Histogram, wanted: &[f64]) -> Vec<(f64, Estimate)> {
        let intervals = PercentileIntervals::new(whole, self.histograms(), self.seen_over_time());
        let estimates = wanted.iter().map(|p| Some((*p, intervals.percentile(*p)?)));
        estimates.flatten().collect()
    }

    /// Fails if values were not recorded while the operations were done. Where most batches have
    /// operations and no values, the few that hold the values of all say nothing about how the run
    /// went.
    ///
    /// # Errors
    /// [`NoInterval::SeenAtEnd`].
    pub fn seen_over_time(&self) -> Result<(), NoInterval> {
        let bare = self.batches.iter().filter(|b| b.histogram.is_empty());
        let bare: f64 = bare.map(|batch| batch.operations as f64).sum();
        if 2.0 * bare > self.total(of_operations) {
            return Err(NoInterval::SeenAtEnd);
        }
        Ok(())
    }

    fn histograms(&self) -> Vec<&Histogram> {
        self.batches.iter().map(|batch| &batch.histogram).collect()
    }
}

fn of_operations(batch: &Batch) -> u64 {
    batch.operations
}

fn of_bytes(batch: &Batch) -> u64 {
    batch.bytes.0
}

/// The next stretches of a rank; nothing was done in those after its end.
fn take_front(side: &mut VecDeque<Batch>, stretches: u64, stretch: Nanos) -> Batch {
    let Some(front) = side.front_mut() else {
        return Batch {
            stretches,
            length_ns: stretch.saturating_mul(stretches),
            ..Batch::default()
        };
    };
    let first = front.take(stretches);
    if front.stretches == 0 {
        side.pop_front();
    }
    first
}

/// The part of a time that these of all members make.
fn share_of(time: Nanos, own: u32, all: u32) -> Nanos {
    let part = u128::from(time.0) * u128::from(own) / u128::from(all).max(1);
    Nanos(u64::try_from(part).unwrap_or(time.0))
}

/// The same stretches of so many ranks each, as one: as long as they were on average.
fn beside(parts: [Batch; 2], members: [u32; 2]) -> Result<Batch, HistogramError> {
    let [mut sum, other] = parts;
    let [mine, theirs] = members.map(u128::from);
    let length = u128::from(sum.length_ns.0) * mine + u128::from(other.length_ns.0) * theirs;
    let length = length / (mine + theirs).max(1);
    sum.length_ns = Nanos(u64::try_from(length).unwrap_or(u64::MAX).max(1));
    sum.add(&other)?;
    Ok(sum)
}

/// Reason that the batches of two ranks cannot be one, or that stored ones are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Stretches of two lengths.
    #[error("batches of different stretches, {} ns and {} ns, cannot be added", .0.raw(), .1.raw())]
    StretchDiffers(Nanos, Nanos),
    /// Histograms of two forms.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// Stored batches that no run could have produced.
    #[error("not batches: {0}")]
    Invalid(&'static str),
}

/// The batches of a run in order, as they are sent.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BatchStore")]
struct Wire {
    /// The least length of a stretch.
    stretch_ns: Nanos,
    /// Stretches in a whole batch.
    per_batch: u64,
    /// Ranks whose batches these are together.
    members: u32,
    /// The last need not be whole.
    batches: Vec<Batch>,
}

impl From<BatchStore> for Wire {
    fn from(store: BatchStore) -> Self {
        Self {
            stretch_ns: store.stretch,
            per_batch: store.per_batch,
            members: store.members,
            batches: store.all().cloned().collect(),
        }
    }
}

impl TryFrom<Wire> for BatchStore {
    type Error = BatchError;

    fn try_from(wire: Wire) -> Result<Self, BatchError> {
        if wire.stretch_ns == Nanos::ZERO || wire.per_batch == 0 || wire.members == 0 {
            return Err(BatchError::Invalid("a length or a number is 0"));
        }
        if wire.batches.len() > HELD + 1 {
            return Err(BatchError::Invalid("there are more than 201"));
        }
        let mut store = Self {
            members: wire.members,
            ..Self::new(wire.stretch_ns, wire.per_batch)
        };
        for batch in wire.batches {
            if batch.stretches == 0 || batch.length_ns == Nanos::ZERO {
                return Err(BatchError::Invalid("a batch has no length"));
            }
            store.push(batch)?;
        }
        Ok(store)
    }
}

#[cfg(test)]
mod tests;

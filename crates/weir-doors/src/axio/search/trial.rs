//! A trial of a search, which runs the packet path at a rate: its request and its outcome.
//!
//! In: a plan's packet path, a job of a result. Out: the plan of a trial; its losses and latencies. Not here:
//! which trials there are.

use weir_schema::{Job, JobResult, PathSide, PathThread, Plan, RunResult, State, Workload};
use weir_stats::Histogram;
use weir_units::Nanos;

use crate::axio::traffic::{self, LineRate, MessageFrames, real, whole};
use crate::axio::work_of_job;

/// Share of the intended messages that a generator may leave out. Beyond it the generator was the limit, not
/// the path.
const SLACK: f64 = 0.01;
/// Time beyond the length of a trial after which it counts as stalled.
const STALL: Nanos = Nanos::from_secs(5);

/// Rate of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TrialRate {
    /// The rate of the line, or, without one, as fast as messages can be made.
    Most,
    /// Messages per second.
    PerSecond(f64),
}

/// Parameters of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrialRequest {
    /// Purpose, which is part of its job's name.
    pub(super) purpose: &'static str,
    /// Size of frames, where the search sets it.
    pub(super) frame: Option<u64>,
    pub(super) rate: TrialRate,
    /// Most messages; 0: as many as there is time for.
    pub(super) messages: u64,
    pub(super) duration: Nanos,
}

/// Outcome of a trial.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    /// Messages per second that were asked for; nothing where as many were sent as could be.
    pub(super) asked: Option<f64>,
    pub(super) duration: Nanos,
    /// Messages that the rate asked for, messages begun, and messages without an answer.
    pub(super) intended: u64,
    pub(super) begun: u64,
    pub(super) lost: u64,
    /// Time in which messages were begun, including the time after the end in which a late client caught up.
    pub(super) span: Nanos,
    /// The share of its rate that it may fall short of.
    pub(super) slack: f64,
    pub(super) latency: Histogram,
}

impl TrialRequest {
    /// The plan of the trial, made of that of the search.
    pub(super) fn plan(&self, base: &Plan, line: Option<LineRate>, residual: Nanos) -> Plan {
        let mut plan = base.clone();
        for job in plan.groups.iter_mut().flat_map(|group| &mut group.jobs) {
            let Workload::PacketPath(work) = &mut job.workload else {
                continue;
            };
            if let Some(frame) = self.frame {
                work.request_bytes = traffic::request_of_frame(frame);
                work.request_cycle.clear();
            }
            work.messages_per_s = match (self.rate, line) {
                (TrialRate::PerSecond(rate), _) => whole(rate).max(1),
                (TrialRate::Most, Some(line)) => {
                    whole(MessageFrames::of(work).messages_on(line)).clamp(1, 1_000_000_000)
                }
                (TrialRate::Most, None) => 0,
            };
            work.most_messages = self.messages;
            work.in_flight = 0;
            work.iterations = 1;
            work.duration_ns = self.duration;
            // Answers are waited for twice as long as a message may take.
            work.message_timeout_ns = Nanos((residual.0 / 2).max(1_000_000));
            let whole = self.duration.saturating_add(residual);
            work.stall_timeout_ns = whole.saturating_add(STALL);
            // What was found before decides on any other trial, which no other search has too.
            job.start.is_search_step = self.rate != TrialRate::Most || self.messages > 0;
            let frame = self.frame.map(|frame| format!(", frames of {frame}"));
            job.name = format!("{}{}", self.purpose, frame.unwrap_or_default());
            if !job.start.is_search_step {
                match work.messages_per_s {
                    0 => job.name += ", as fast as possible",
                    rate => push!(job.name, ", {rate} per second"),
                }
            }
        }
        plan
    }
}

impl Trial {
    /// Trial of a job and its result; `None` where it did not end.
    pub(super) fn of(job: &Job, done: &JobResult) -> Option<Self> {
        let work = work_of_job(job)?;
        let path = done.packet_path().filter(|_| done.state == State::Done)?;
        let packets = u64::from(work.packets(work.request_bytes).max(1));
        let sum = |of: fn(&PathThread) -> u64| path.sum(PathSide::Client, of);
        let begun = sum(|one| one.application_tx.packets) / packets;
        let lost = sum(|one| one.lost);
        let clients = path.iterations.iter().flat_map(|one| &one.threads);
        let clients = clients.filter(|one| one.side == PathSide::Client);
        let mut latency = Histogram::default();
        for one in clients.clone().filter_map(|one| one.latency.as_ref()) {
            // All are made alike.
            let _ = latency.merge(one);
        }
        Some(Self {
            asked: (work.messages_per_s > 0).then(|| real(work.messages_per_s)),
            duration: work.duration_ns,
            intended: sum(|one| one.intended),
            begun,
            lost: lost.min(begun),
            span: clients.map(|one| one.span_ns).max().unwrap_or_default(),
            slack: SLACK,
            latency,
        })
    }

    /// Sets the share of a rate below which two rates count as equal.
    pub(super) fn with_precision(self, precision: f64) -> Self {
        Self {
            slack: self.slack.max(precision),
            ..self
        }
    }

    /// Trial of a group of a result.
    pub(super) fn of_group(result: &RunResult, group: usize) -> Option<Self> {
        let job = result.plan.groups.get(group)?.jobs.first()?;
        Self::of(job, result.groups.get(group)?.jobs.first()?)
    }

    /// Share of the messages begun that have no answer.
    pub(super) fn loss(&self) -> f64 {
        real(self.lost) / real(self.begun.max(1))
    }

    /// Messages per second that were begun.
    pub(super) fn sent_per_s(&self) -> f64 {
        per_s(self.begun, self.span)
    }

    /// Answered messages per second.
    pub(super) fn received_per_s(&self) -> f64 {
        per_s(self.begun - self.lost, self.span)
    }

    /// Rate of the trial: the requested one, or the one at which messages were begun.
    pub(super) fn rate(&self) -> f64 {
        self.asked.unwrap_or_else(|| self.sent_per_s())
    }

    /// True if the generator and not the path was too slow: it began too few messages, or took too long for
    /// them.
    pub(super) fn is_behind(&self) -> bool {
        let in_time = real(self.intended) * self.span.as_secs_f64() / self.duration.as_secs_f64();
        !self.is_only_late() || real(self.begun) < (1.0 - self.slack) * in_time
    }

    /// True if the generator began all its messages, in time or not.
    pub(super) fn is_only_late(&self) -> bool {
        real(self.begun) >= (1.0 - self.slack) * real(self.intended)
    }

    /// True if the rate was kept with at most this share of messages lost.
    pub(super) fn is_kept(&self, loss: f64) -> bool {
        self.begun > 0 && !self.is_behind() && self.loss() <= loss
    }

    /// Latency in microseconds.
    pub(super) fn latency_us(&self, percent: f64) -> Option<f64> {
        self.latency.percentile(percent).map(|ns| real(ns) / 1e3)
    }
}

fn per_s(messages: u64, span: Nanos) -> f64 {
    if span == Nanos::ZERO {
        return 0.0;
    }
    real(messages) / span.as_secs_f64()
}

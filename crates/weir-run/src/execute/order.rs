//! The order of starts: barriers, jobs that wait for another, delays.
//!
//! In: the plan, which jobs have ended, the time. Out: the jobs that may start now.

use weir_schema::{Plan, StartDelay};
use weir_units::Nanos;

use crate::generate::rng::Rng;

/// Phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Started,
    EndedJob,
}

#[derive(Debug)]
struct Line {
    name: String,
    barrier: bool,
    wait_for: Option<String>,
    delay: Nanos,
    phase: Phase,
}

/// Order in which jobs may start.
#[derive(Debug)]
pub(super) struct JobOrder {
    lines: Vec<Line>,
}

impl JobOrder {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut rng = Rng::new(1);
        let lines = plan.jobs().map(|(_, job)| Line {
            name: job.name.clone(),
            barrier: job.start.barrier,
            wait_for: job.start.wait_for.clone(),
            delay: job.start.delay.map_or(Nanos(0), |d| draw(d, &mut rng)),
            phase: Phase::Waiting,
        });
        Self {
            lines: lines.collect(),
        }
    }

    /// Everything has been started and has ended.
    pub(super) fn is_done(&self) -> bool {
        self.lines.iter().all(|l| l.phase == Phase::EndedJob)
    }

    pub(super) fn ended(&mut self, index: usize) {
        self.lines[index].phase = Phase::EndedJob;
    }

    /// The jobs that may start at this time; they count as started.
    pub(super) fn due(&mut self, since_start: Nanos) -> Vec<usize> {
        let mut due = Vec::new();
        for index in self.unblocked() {
            if self.lines[index].delay <= since_start {
                self.lines[index].phase = Phase::Started;
                due.push(index);
            }
        }
        due
    }

    /// Time until the next delayed job may start, if nothing else holds it.
    pub(super) fn next_delay(&self, since_start: Nanos) -> Option<Nanos> {
        let delays = self.unblocked().into_iter().map(|i| self.lines[i].delay);
        delays
            .filter(|&d| d > since_start)
            .min()
            .map(|d| Nanos(d.0 - since_start.0))
    }

    /// Waiting jobs that neither a barrier nor another job holds.
    fn unblocked(&self) -> Vec<usize> {
        let mut free = Vec::new();
        let mut all_ended = true;
        for (index, line) in self.lines.iter().enumerate() {
            if line.barrier && !all_ended {
                break;
            }
            if line.phase == Phase::Waiting && self.waited_for(index) {
                free.push(index);
            }
            all_ended &= line.phase == Phase::EndedJob;
        }
        free
    }

    fn waited_for(&self, index: usize) -> bool {
        let Some(name) = &self.lines[index].wait_for else {
            return true;
        };
        self.lines[..index]
            .iter()
            .filter(|l| &l.name == name)
            .all(|l| l.phase == Phase::EndedJob)
    }
}

fn draw(delay: StartDelay, rng: &mut Rng) -> Nanos {
    let span = delay.max_ns.0.saturating_sub(delay.min_ns.0);
    Nanos(delay.min_ns.0 + if span == 0 { 0 } else { rng.below(span + 1) })
}

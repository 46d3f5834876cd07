//! Service: which of several files the next operation goes to.
//!
//! In: a rule and the number of files. Out: one file after the other, each until it has nothing
//! left in this pass; no more of them in use at a time than the rule allows. Not here: where in
//! the file.

use std::num::NonZeroU64;

use weir_run::generate::Streams;
use weir_run::generate::rng::Rng;
use weir_schema::{FileOrder, FileService};

use crate::generate::GenerateError;
use crate::generate::distribution::{Normal, OffsetDistribution, Pareto, Zipf};

/// Rule by which the next of the files in use is chosen.
#[derive(Debug)]
enum Choice {
    /// The next in the ring.
    InTurn,
    /// Any, all alike.
    Uniform,
    /// Some more often than others.
    Skewed(Box<OffsetDistribution>),
}

/// Serves files.
#[derive(Debug)]
pub(super) struct Service {
    choice: Choice,
    rng: Rng,
    /// Operations before another file is chosen.
    run: u32,
    left: u32,
    count: usize,
    at_once: usize,
    /// Files in use.
    live: Vec<u32>,
    /// For files in turn: the place in `live` of the one that follows each.
    next: Vec<u32>,
    before: usize,
    at: usize,
    /// The first file that was not in use yet.
    fresh: usize,
}

impl Service {
    /// A service of `count` files.
    ///
    /// # Errors
    /// A distribution refused its numbers.
    pub(super) fn new(
        rule: &FileService,
        count: usize,
        streams: Streams,
    ) -> Result<Self, GenerateError> {
        let at_once = rule
            .at_once
            .map_or(count, |n| n as usize)
            .clamp(1, count.max(1));
        let places = NonZeroU64::new(at_once as u64).unwrap_or(NonZeroU64::MIN);
        let mut rng = streams.targets();
        let placement = rng.next_u64();
        let skewed = |d| Choice::Skewed(Box::new(d));
        let choice = match rule.order {
            FileOrder::InTurn | FileOrder::Sequential => Choice::InTurn,
            FileOrder::Uniform => Choice::Uniform,
            FileOrder::Zipf { theta } => skewed(OffsetDistribution::Zipf(Zipf::new(
                places, theta, placement, None,
            )?)),
            FileOrder::Pareto { h } => skewed(OffsetDistribution::Pareto(Pareto::new(
                places, h, placement, None,
            )?)),
            FileOrder::Normal { deviation_percent } => skewed(OffsetDistribution::Normal(
                Normal::new(places, deviation_percent, None)?,
            )),
        };
        let run = match rule.order {
            FileOrder::Sequential => u32::MAX,
            _ => rule.run.unwrap_or(1).max(1),
        };
        let mut service = Self {
            choice,
            rng,
            run,
            left: 0,
            count,
            at_once,
            live: Vec::with_capacity(at_once),
            next: Vec::with_capacity(at_once),
            before: 0,
            at: 0,
            fresh: 0,
        };
        service.restart();
        Ok(service)
    }

    /// Every file may be used again.
    pub(super) fn restart(&mut self) {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.live.clear();
        self.live.extend((0..self.at_once).map(number));
        self.next.clear();
        self.next
            .extend((0..self.at_once).map(|n| number((n + 1) % self.at_once)));
        self.fresh = self.at_once;
        self.before = self.at_once.saturating_sub(2);
        self.at = self.at_once.saturating_sub(1);
        self.left = 0;
    }

    /// A file that has nothing left in this pass begins anew, so that those that come often come
    /// often to the end.
    pub(super) fn repeats_files(&self) -> bool {
        matches!(self.choice, Choice::Skewed(_))
    }

    /// The file of the next operation; `None` when all are done.
    pub(super) fn file(&mut self) -> Option<usize> {
        if self.live.is_empty() {
            return None;
        }
        if self.left == 0 {
            self.choose();
            self.left = self.run;
        }
        if self.run != u32::MAX {
            self.left -= 1;
        }
        self.live.get(self.at).map(|&file| file as usize)
    }

    fn choose(&mut self) {
        let live = self.live.len() as u64;
        let drawn = match &self.choice {
            Choice::InTurn => {
                self.before = self.at;
                u64::from(self.next.get(self.at).copied().unwrap_or(0))
            }
            Choice::Uniform => self.rng.below(live),
            Choice::Skewed(distribution) => distribution.draw(&mut self.rng) % live,
        };
        self.at = usize::try_from(drawn).unwrap_or(0);
    }

    /// The file that was given last has nothing left: another one takes its place.
    pub(super) fn done(&mut self) {
        self.left = 0;
        if self.fresh < self.count {
            self.live[self.at] = u32::try_from(self.fresh).unwrap_or(u32::MAX);
            self.fresh += 1;
            // It is the next one where files come in turn.
            self.left = if matches!(self.choice, Choice::InTurn) {
                self.run
            } else {
                0
            };
        } else if matches!(self.choice, Choice::InTurn) {
            // The ring closes behind it.
            if self.next[self.at] as usize == self.at {
                self.live.clear();
            } else {
                self.next[self.before] = self.next[self.at];
                self.at = self.before;
            }
        } else {
            self.live.swap_remove(self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(rule: FileService, lengths: &[u32]) -> Vec<usize> {
        let mut service = Service::new(&rule, lengths.len(), Streams::new(3, 0)).unwrap();
        let mut left = lengths.to_vec();
        let mut order = Vec::new();
        while let Some(file) = service.file() {
            if left[file] == 0 {
                service.done();
            } else {
                left[file] -= 1;
                order.push(file);
            }
        }
        assert!(left.iter().all(|&n| n == 0), "{left:?}");
        order
    }

    fn in_turn(run: Option<u32>, at_once: Option<u32>) -> FileService {
        FileService {
            order: FileOrder::InTurn,
            run,
            at_once,
        }
    }

    #[test]
    fn files_come_in_turn_until_each_is_done() {
        assert_eq!(served(in_turn(None, None), &[2, 1, 3]), [0, 1, 2, 0, 2, 2]);
        assert_eq!(served(in_turn(Some(2), None), &[3, 3]), [0, 0, 1, 1, 0, 1]);
        assert_eq!(served(in_turn(None, None), &[2]), [0, 0]);
    }

    #[test]
    fn one_file_is_finished_before_the_next_is_begun() {
        let rule = FileService {
            order: FileOrder::Sequential,
            run: None,
            at_once: None,
        };
        assert_eq!(served(rule, &[2, 1, 3]), [0, 0, 1, 2, 2, 2]);
    }

    #[test]
    fn no_more_files_than_allowed_are_in_use() {
        assert_eq!(
            served(in_turn(None, Some(2)), &[2, 2, 1, 1]),
            [0, 1, 0, 1, 2, 3]
        );
        let rule = FileService {
            order: FileOrder::Uniform,
            run: None,
            at_once: Some(2),
        };
        let order = served(rule, &[50; 6]);
        for file in 2..6 {
            let first = order.iter().position(|&f| f == file).unwrap();
            let done = |f: usize| order.iter().rposition(|&o| o == f).unwrap() < first;
            let others = (0..6).filter(|&f| f != file);
            let begun = |f: &usize| order.iter().position(|o| o == f).unwrap() < first;
            let open = others.filter(begun).filter(|&f| !done(f)).count();
            assert!(open <= 1, "{open} files beside {file}");
        }
    }

    #[test]
    fn a_skewed_service_prefers_some_files_and_finishes_all() {
        let rule = FileService {
            order: FileOrder::Zipf { theta: 1.2 },
            run: None,
            at_once: None,
        };
        let order = served(rule, &[1000; 10]);
        let mut early = [0; 10];
        order.iter().take(1000).for_each(|&f| early[f] += 1);
        assert!(early.iter().any(|&n| n > 300), "{early:?}");
        for order in [
            FileOrder::Pareto { h: 0.2 },
            FileOrder::Normal {
                deviation_percent: 10.0,
            },
        ] {
            served(
                FileService {
                    order,
                    ..FileService::default()
                },
                &[5; 10],
            );
        }
    }
}

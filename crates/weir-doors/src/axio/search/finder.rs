//! Search for the highest rate with no more than a share of losses, in trials.
//!
//! In: what carries out a trial. Out: the rate, and all trials in order. Two ways: halving between nothing and the
//! maximum; or beginning where a trial at the maximum arrives, first in short trials, then in whole ones
//! (MLR, multiple loss ratio). Either ends with the highest rate that was kept and a lowest one above it that was
//! not, and tries the former once more.

use weir_units::Nanos;

use super::trial::{Trial, TrialRate, TrialRequest};
use crate::rate_bracket::RateBracket;

/// Trials of one rate, where the generator fell behind.
const ATTEMPTS: u32 = 3;
/// Attempts at a trial that began all its messages, but late: on a busy machine that is chance.
const LATE_ATTEMPTS: u32 = 10;
/// Most trials of a search. One that does not settle by then has no rate.
const MOST_TRIALS: usize = 200;
/// Part of a whole trial that a short one lasts, and multiple of the precision at which short trials end.
const SHORT: u64 = 10;
const COARSE: f64 = 4.0;
/// The shortest trial.
const SHORTEST: Nanos = Nanos(1_000_000);

/// Method by which a search chooses its rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchWay {
    /// Between nothing and the maximum, halved.
    #[default]
    Binary,
    /// Starts at the rate that arrives of the maximum, with short trials first.
    Mlr,
}

/// Carries trials out: nothing once the search is interrupted, or nothing more is stored.
pub(super) type CarryOut<'a> = dyn FnMut(&TrialRequest) -> Option<Trial> + 'a;

/// Finder of the highest rates of one frame size, with its trials.
pub(super) struct RateFinder<'a> {
    carry_out: &'a mut CarryOut<'a>,
    pub(super) frame: Option<u64>,
    /// Length of a whole trial.
    pub(super) duration: Nanos,
    pub(super) precision: f64,
    /// Trials in order, each with its purpose.
    pub(super) trials: Vec<(&'static str, Trial)>,
}

/// A rate that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FoundRate {
    /// The highest that was kept; 0 where none was.
    pub(super) rate: f64,
    /// The rate was kept a second time.
    pub(super) is_confirmed: bool,
    /// Limit of the rate, where it is not the path.
    pub(super) limit: Option<RateLimit>,
    /// A lower rate was missed.
    pub(super) is_uneven: bool,
}

/// Limit other than the path that keeps a rate from being higher. The path may be faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateLimit {
    /// The generator: it missed every higher rate, or cannot make more.
    Generator,
    /// The line: every higher rate is above the line's.
    Line,
}

/// The purpose of trials that look for a rate.
pub(super) const SEARCH: &str = "search";

impl<'a> RateFinder<'a> {
    pub(super) fn new(
        carry_out: &'a mut CarryOut<'a>,
        frame: Option<u64>,
        duration: Nanos,
        precision: f64,
    ) -> Self {
        Self {
            carry_out,
            frame,
            duration,
            precision,
            trials: Vec::new(),
        }
    }

    /// A trial.
    pub(super) fn carry_out(&mut self, request: &TrialRequest) -> Option<&Trial> {
        let trial = (self.carry_out)(request)?.with_precision(self.precision);
        self.trials.push((request.purpose, trial));
        self.trials.last().map(|(_, trial)| trial)
    }

    /// Makes a trial of a rate for this time.
    pub(super) fn trial(
        &mut self,
        purpose: &'static str,
        rate: TrialRate,
        duration: Nanos,
    ) -> Option<&Trial> {
        let frame = self.frame;
        self.carry_out(&TrialRequest {
            purpose,
            frame,
            rate,
            messages: 0,
            duration,
        })
    }

    /// Makes a trial of the search, again where the generator fell behind.
    fn try_rate(&mut self, rate: f64, duration: Nanos) -> Option<()> {
        for attempt in 1..=LATE_ATTEMPTS {
            let trial = self.trial(SEARCH, TrialRate::PerSecond(rate), duration)?;
            if !trial.is_behind() || attempt >= ATTEMPTS && !trial.is_only_late() {
                break;
            }
        }
        Some(())
    }

    /// Trials of the search of this length, by rate. Those in which the generator fell behind count only for
    /// rates at which it always did.
    fn tried(&self, duration: Nanos) -> impl Iterator<Item = &Trial> {
        let of_search = self.trials.iter().filter(|(purpose, _)| *purpose == SEARCH);
        let all = of_search.map(|(_, trial)| trial);
        let all = all.filter(move |trial| trial.asked.is_some() && trial.duration == duration);
        all.filter(move |trial| {
            let same = |other: &&(&str, Trial)| {
                other.1.asked == trial.asked && other.1.duration == duration
            };
            let mut others = self.trials.iter().filter(same);
            !trial.is_behind() || others.all(|(_, other)| other.is_behind())
        })
    }

    /// True if all trials at the rate kept it.
    fn is_kept(&self, rate: f64, loss: f64, duration: Nanos) -> bool {
        let mut of_rate = self.tried(duration).filter(|t| is_at(t, rate));
        of_rate.all(|trial| trial.is_kept(loss))
    }

    /// Bounds of the highest rate. Rates not known to be missed lie at or below the maximum.
    fn bracket(&self, loss: f64, duration: Nanos, most: f64) -> (RateBracket, bool) {
        let rates = || self.tried(duration).map(Trial::rate);
        let kept = rates().filter(|rate| self.is_kept(*rate, loss, duration));
        let kept = kept.fold(0.0, f64::max);
        let above = rates().filter(|rate| *rate > kept);
        let missed = above.min_by(f64::total_cmp);
        let bracket = RateBracket {
            kept,
            missed: missed.unwrap_or_else(|| most.max(kept)),
        };
        (bracket, missed.is_some())
    }

    /// The highest rate with no more than this share of losses; `None` where a signal came first.
    pub(super) fn find(&mut self, loss: f64, most: &Trial, way: SearchWay) -> Option<FoundRate> {
        // Rates are whole numbers of messages per second.
        let (limit, duration) = (most.rate().floor(), self.duration);
        match way {
            SearchWay::Binary => {
                if self.tried(duration).next().is_none() {
                    self.try_rate(limit, duration)?;
                }
            }
            SearchWay::Mlr => {
                let arrived = most.received_per_s().min(limit).max(1.0);
                let short = Nanos((duration.0 / SHORT).max(SHORTEST.0));
                self.approach(loss, arrived, limit, short)?;
                self.narrow(loss, limit, short, COARSE * self.precision)?;
                let (bracket, _) = self.bracket(loss, short, limit);
                self.approach(loss, bracket.kept.max(1.0), limit, duration)?;
            }
        }
        self.narrow(loss, limit, duration, self.precision)?;
        let beyond = if most.asked.is_some() {
            RateLimit::Line
        } else {
            RateLimit::Generator
        };
        self.confirm(loss, limit, beyond)
    }

    /// Tries rates from `from` downwards until one is kept, and upwards until one is missed.
    fn approach(&mut self, loss: f64, from: f64, most: f64, duration: Nanos) -> Option<()> {
        let (known, is_missed) = self.bracket(loss, duration, most);
        if known.kept > 0.0 && is_missed {
            return Some(());
        }
        let mut step = 2.0 * self.precision;
        let mut rate = from.max(known.kept);
        while rate >= 1.0 && self.has_trials_left() {
            rate = rate.floor();
            self.try_rate(rate, duration)?;
            if self.is_kept(rate, loss, duration) {
                break;
            }
            rate *= 1.0 - step;
            step = (2.0 * step).min(0.5);
        }
        let mut step = 2.0 * self.precision;
        loop {
            let (bracket, is_missed) = self.bracket(loss, duration, most);
            if is_missed || bracket.kept >= most || !self.has_trials_left() {
                return Some(());
            }
            let rate = (bracket.kept.max(1.0) * (1.0 + step)).ceil();
            self.try_rate(rate.min(most), duration)?;
            step *= 2.0;
        }
    }

    /// Narrows the bounds until the highest kept rate and the lowest missed one differ by no more than this
    /// share.
    fn narrow(&mut self, loss: f64, most: f64, duration: Nanos, fine: f64) -> Option<()> {
        while self.has_trials_left() {
            let (bracket, _) = self.bracket(loss, duration, most);
            let middle = bracket.middle(fine).map(f64::round);
            let Some(rate) = middle.filter(|rate| *rate >= 1.0 && *rate > bracket.kept) else {
                break;
            };
            if rate >= bracket.missed {
                break;
            }
            self.try_rate(rate, duration)?;
        }
        Some(())
    }

    /// Tries the highest kept rate once more, and takes a lower one where that misses it. `beyond` is the
    /// limit of rates above the maximum.
    fn confirm(&mut self, loss: f64, most: f64, beyond: RateLimit) -> Option<FoundRate> {
        let duration = self.duration;
        loop {
            let (bracket, _) = self.bracket(loss, duration, most);
            let rate = bracket.kept;
            let times = self.tried(duration).filter(|t| is_at(t, rate)).count();
            if rate > 0.0 && times < 2 && self.has_trials_left() {
                self.try_rate(rate, duration)?;
                self.narrow(loss, most, duration, self.precision)?;
                continue;
            }
            let below = |trial: &Trial| trial.rate() < rate && !trial.is_kept(loss);
            let above = |trial: &&Trial| is_at(trial, bracket.missed) && !trial.is_kept(loss);
            let mut missed = self.tried(duration).filter(above).peekable();
            let has_missed = missed.peek().is_some();
            return Some(FoundRate {
                rate,
                is_confirmed: times >= 2,
                limit: if has_missed {
                    missed.all(Trial::is_behind).then_some(RateLimit::Generator)
                } else {
                    // Faster than the maximum nothing was tried.
                    (rate >= most).then_some(beyond)
                },
                is_uneven: self.tried(duration).any(below) || self.has_contradiction(loss),
            });
        }
    }

    /// True if the search may make another trial. The limit also ends searches that do not converge.
    fn has_trials_left(&self) -> bool {
        let of_search = self.trials.iter().filter(|(purpose, _)| *purpose == SEARCH);
        of_search.count() < MOST_TRIALS
    }

    /// True if a rate was kept in one trial and missed in another.
    fn has_contradiction(&self, loss: f64) -> bool {
        let duration = self.duration;
        let kept = self.tried(duration).filter(|trial| trial.is_kept(loss));
        let mut kept = kept.map(Trial::rate);
        kept.any(|rate| !self.is_kept(rate, loss, duration))
    }
}

/// True if the trial was made at this rate.
fn is_at(trial: &Trial, rate: f64) -> bool {
    (trial.rate() - rate).abs() < 0.5
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Device;
    use super::*;

    fn found(device: &mut Device, loss: f64, way: SearchWay) -> (FoundRate, usize) {
        let mut carry_out = |request: &TrialRequest| device.carry_out(request);
        let mut finder = RateFinder::new(&mut carry_out, None, Nanos::SECOND, 0.005);
        let most = finder.trial("maximum", TrialRate::Most, Nanos::SECOND);
        let most = most.unwrap().clone();
        let found = finder.find(loss, &most, way).unwrap();
        (found, finder.trials.len())
    }

    #[test]
    fn either_way_finds_the_rate_of_a_sink() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            let mut sink = Device::sink(300_000.0, 5_000_000.0);
            let (none, trials) = found(&mut sink, 0.0, way);
            assert!(
                (297_000.0..=300_100.0).contains(&none.rate),
                "{way:?} {none:?}"
            );
            assert!(none.is_confirmed && none.limit.is_none() && !none.is_uneven);
            assert!(trials <= 24, "{way:?}: {trials}");
            let (some, _) = found(&mut sink, 0.005, way);
            assert!(
                (300_000.0..=301_600.0).contains(&some.rate),
                "{way:?} {some:?}"
            );
        }
    }

    #[test]
    fn a_path_that_keeps_all_has_the_rate_of_the_generator() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            let mut fast = Device::sink(1e9, 2_000_000.0);
            fast.generator = 1_500_000.0;
            let (found, _) = found(&mut fast, 0.0, way);
            assert!(
                (1_480_000.0..=1_520_000.0).contains(&found.rate),
                "{way:?} {found:?}"
            );
            assert_eq!(found.limit, Some(RateLimit::Generator), "{way:?} {found:?}");
        }
    }

    #[test]
    fn what_is_made_up_for_after_the_end_is_not_of_the_rate() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            let mut fast = Device::sink(1e9, 2_000_000.0);
            (fast.generator, fast.grace) = (1_000_000.0, 0.5);
            let (found, _) = found(&mut fast, 0.0, way);
            assert!(
                (990_000.0..=1_016_000.0).contains(&found.rate),
                "{way:?} {found:?}"
            );
            assert_eq!(found.limit, Some(RateLimit::Generator), "{way:?} {found:?}");
        }
    }

    #[test]
    fn a_maximum_that_is_kept_ends_the_search() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            // Between two whole numbers, and less than the sink takes.
            let mut slow = Device::sink(300_000.0, 61_234.9);
            let (found, trials) = found(&mut slow, 0.0, way);
            assert!((found.rate - 61_234.5).abs() < 1.0, "{way:?} {found:?}");
            assert_eq!(found.limit, Some(RateLimit::Generator), "{way:?} {found:?}");
            assert!(trials < 12, "{way:?}: {trials}");
        }
    }

    #[test]
    fn a_path_that_keeps_the_rate_of_the_line_is_limited_by_it() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            let found = |line: f64, generator: f64| {
                let mut device = Device::sink(1e9, generator);
                let mut carry_out = |request: &TrialRequest| {
                    let rate = match request.rate {
                        TrialRate::Most => TrialRate::PerSecond(line),
                        asked @ TrialRate::PerSecond(_) => asked,
                    };
                    device.carry_out(&TrialRequest {
                        rate,
                        ..request.clone()
                    })
                };
                let mut finder = RateFinder::new(&mut carry_out, None, Nanos::SECOND, 0.005);
                let most = finder.trial("maximum", TrialRate::Most, Nanos::SECOND);
                let most = most.unwrap().clone();
                finder.find(0.0, &most, way).unwrap()
            };
            let all = found(14_205.0, 1_000_000.0);
            assert_eq!(
                (all.rate, all.limit),
                (14_205.0, Some(RateLimit::Line)),
                "{way:?}"
            );
            let slow = found(14_205.0, 10_000.0);
            assert!(slow.rate < 10_200.0, "{way:?} {slow:?}");
            assert_eq!(slow.limit, Some(RateLimit::Generator), "{way:?}");
        }
    }

    #[test]
    fn a_generator_that_always_falls_behind_ends_the_search() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            let mut stuck = Device::sink(300_000.0, 61_234.9);
            stuck.hiccup_every = 1;
            let (found, trials) = found(&mut stuck, 0.0, way);
            // Nine tenths of fewer messages are all of them.
            assert!(found.rate < 10.0, "{way:?} {found:?}");
            assert!(trials <= 3 * MOST_TRIALS, "{way:?}: {trials}");
        }
    }

    #[test]
    fn what_loses_everything_has_no_rate_and_the_search_ends() {
        for way in [SearchWay::Binary, SearchWay::Mlr] {
            let mut dead = Device::sink(0.0, 1_000_000.0);
            let (found, trials) = found(&mut dead, 0.0, way);
            assert_eq!((found.rate, found.is_confirmed), (0.0, false), "{way:?}");
            assert!(trials < 100, "{way:?}: {trials}");
        }
    }

    #[test]
    fn a_rate_that_is_missed_the_second_time_does_not_count() {
        let mut moody = Device::sink(300_000.0, 1_000_000.0);
        moody.misses_repeats = 1;
        let (found, _) = found(&mut moody, 0.0, SearchWay::Binary);
        assert!(
            found.rate < 299_900.0 && found.rate > 250_000.0,
            "{found:?}"
        );
        assert!(found.is_confirmed && found.is_uneven, "{found:?}");
    }

    #[test]
    fn a_generator_that_falls_behind_once_is_given_another_chance() {
        let mut device = Device::sink(300_000.0, 1_000_000.0);
        device.hiccup_every = 3;
        let (found, _) = found(&mut device, 0.0, SearchWay::Binary);
        assert!((297_000.0..=300_100.0).contains(&found.rate), "{found:?}");
    }
}

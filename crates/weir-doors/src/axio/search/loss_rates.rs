//! `weir axio ndr`: the highest rate without loss, the highest with no more than a share of it, and latencies
//! below the latter.
//!
//! In: what carries trials out. Out: both rates with all trials; text.

use super::TrafficSearch;
use super::finder::{CarryOut, FoundRate, RateFinder, RateLimit};
use super::trial::{Trial, TrialRate};

/// Shares of the rate with loss at which latencies are measured, of a hundred.
const SHARES: [u32; 3] = [10, 50, 90];
const MOST: &str = "maximum";
const LATENCY: &str = "latency";

/// Rates that a search found.
#[derive(Debug, Default)]
pub(super) struct LossRates {
    /// Without loss, and with no more than the share.
    pub(super) none: Option<FoundRate>,
    pub(super) some: Option<FoundRate>,
    /// All trials, each with its purpose.
    pub(super) trials: Vec<(&'static str, Trial)>,
}

impl LossRates {
    /// Searches both rates; a signal ends it with those found so far.
    pub(super) fn search(options: &TrafficSearch, carry_out: &mut CarryOut<'_>) -> Self {
        let mut finder = RateFinder::new(carry_out, None, options.trial, options.precision);
        let mut found = Self::default();
        // What an interrupted search has not found is absent.
        let _ = found.all(options, &mut finder);
        found.trials = finder.trials;
        found
    }

    fn all(&mut self, options: &TrafficSearch, finder: &mut RateFinder<'_>) -> Option<()> {
        let most = finder.trial(MOST, TrialRate::Most, options.trial)?.clone();
        self.none = Some(finder.find(0.0, &most, options.way)?);
        let some = finder.find(options.loss, &most, options.way)?;
        self.some = Some(some);
        for share in SHARES {
            let rate = (some.rate * f64::from(share) / 100.0).round();
            if rate >= 1.0 {
                finder.trial(LATENCY, TrialRate::PerSecond(rate), options.trial)?;
            }
        }
        Some(())
    }

    pub(super) fn text(&self, options: &TrafficSearch) -> String {
        let mut out = String::new();
        push!(
            out,
            "Highest rates by {} search, to {} %, trials of {}\n",
            options.way_word(),
            options.precision * 100.0,
            options.trial
        );
        push!(
            out,
            "{:>8} {:>12} {:>12} {:>12} {:>10} {:>10} {:>10}  {}\n",
            "trial",
            "asked/s",
            "sent/s",
            "received/s",
            "loss %",
            "p50 us",
            "p99 us",
            "for"
        );
        for (number, (purpose, trial)) in (1..).zip(&self.trials) {
            row(&mut out, number, purpose, trial, options);
        }
        let most = self.trials.first().map(|(_, trial)| trial);
        if let Some(most) = most {
            let what = if most.asked.is_some() {
                "rate of the line"
            } else {
                "measured maximum, no rate of the line is known"
            };
            push!(out, "maximum: {:.0} messages/s ({what})\n", most.rate());
        }
        out += &rate_line("NDR (no loss)", self.none.as_ref());
        let name = format!("PDR (loss up to {} %)", options.loss * 100.0);
        out += &rate_line(&name, self.some.as_ref());
        out += &self.latency_lines();
        out
    }

    fn latency_lines(&self) -> String {
        let mut out = String::new();
        let trials = self
            .trials
            .iter()
            .filter(|(purpose, _)| *purpose == LATENCY);
        for (share, (_, trial)) in SHARES.iter().zip(trials) {
            let at = |percent| trial.latency_us(percent).unwrap_or(0.0);
            push!(
                out,
                "latency at {share} % of PDR, open-loop ({:.0} messages/s), us: p50 {:.2}, p90 {:.2}, p99 {:.2}, \
                 p99.9 {:.2}, max {:.2}\n",
                trial.rate(),
                at(50.0),
                at(90.0),
                at(99.0),
                at(99.9),
                at(100.0)
            );
        }
        out
    }
}

fn row(out: &mut String, number: usize, purpose: &str, trial: &Trial, options: &TrafficSearch) {
    let asked = trial
        .asked
        .map_or_else(|| "any".to_owned(), |rate| format!("{rate:.0}"));
    let us = |percent| {
        let us = trial.latency_us(percent);
        us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"))
    };
    let mut what = purpose.to_owned();
    if trial.duration < options.trial {
        what += ", short";
    }
    if trial.is_behind() {
        what += ", generator-limited";
    }
    push!(
        out,
        "{number:>8} {asked:>12} {:>12.0} {:>12.0} {:>10.4} {:>10} {:>10}  {what}\n",
        trial.sent_per_s(),
        trial.received_per_s(),
        trial.loss() * 100.0,
        us(50.0),
        us(99.0)
    );
}

/// Line of a rate, with its limits.
fn rate_line(name: &str, found: Option<&FoundRate>) -> String {
    let Some(found) = found else {
        return format!("{name}: not known, the search was interrupted\n");
    };
    format!("{name}: {}\n", found.words())
}

impl FoundRate {
    /// The rate with its limits, as text.
    pub(super) fn words(&self) -> String {
        if self.rate < 1.0 {
            return "none, every rate that was tried lost more".to_owned();
        }
        let mut out = format!("{:.0} messages/s", self.rate);
        out += if self.is_confirmed {
            ", kept twice"
        } else {
            ", kept once"
        };
        out += match self.limit {
            None => "",
            Some(RateLimit::Generator) => ", generator-limited: the path may do more",
            Some(RateLimit::Line) => ", limited by the line: the path may do more",
        };
        if self.is_uneven {
            out += ", not monotonic: a rate that is not above it was missed too";
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated::Device;
    use super::*;

    #[test]
    fn both_rates_and_latencies_below_them_stand_under_all_trials() {
        let options = TrafficSearch::default();
        let mut sink = Device::sink(300_000.0, 5_000_000.0);
        let found = LossRates::search(&options, &mut |request| sink.carry_out(request));
        let (none, some) = (found.none.unwrap(), found.some.unwrap());
        assert!(some.rate >= none.rate, "{none:?} {some:?}");
        let text = found.text(&options);
        let rows = text.lines().filter(|line| line.starts_with("  "));
        assert_eq!(rows.count(), found.trials.len() + 1, "{text}");
        assert!(text.contains("(measured maximum, no rate"), "{text}");
        assert_eq!(text.matches("% of PDR, open-loop (").count(), 3, "{text}");
        let none = format!("\nNDR (no loss): {:.0} messages/s, kept twice\n", none.rate);
        assert!(text.contains(&none), "{text}");
        assert!(text.contains("\nPDR (loss up to 0.5 %): 30"), "{text}");
    }

    #[test]
    fn an_interrupted_search_says_what_it_has_not_found() {
        let options = TrafficSearch::default();
        let mut sink = Device::sink(300_000.0, 5_000_000.0);
        sink.left = 4;
        let found = LossRates::search(&options, &mut |request| sink.carry_out(request));
        assert_eq!(found.trials.len(), 4);
        let text = found.text(&options);
        assert!(
            text.contains("NDR (no loss): not known, the search was interrupted\n"),
            "{text}"
        );
    }
}

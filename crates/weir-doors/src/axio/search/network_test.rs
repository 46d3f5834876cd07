//! `weir axio rfc2544`: throughput, latency, frame loss and back-to-back frames of several sizes of frames.
//!
//! In: what carries trials out. Out: a report for each size; text. Spec: packet datapath, 7.

use weir_units::Nanos;

use super::TrafficSearch;
use super::finder::{CarryOut, FoundRate, RateFinder};
use super::trial::{Trial, TrialRate, TrialRequest};
use crate::axio::traffic::{real, whole};
use crate::rate_bracket::RateBracket;

/// Durations and repetitions that RFC 2544 asks for: of a trial, of latencies and of bursts.
pub(super) const TRIAL: Nanos = Nanos::from_secs(60);
const LATENCY_REPEATS: u32 = 20;
const BURST_REPEATS: u32 = 50;
/// Length of a latency trial in trials, and part of a trial that a burst lasts: 120 s and 2 s.
const LATENCY_TIMES: u64 = 2;
const BURST_PART: u64 = 30;
/// The shortest trial.
const SHORTEST: Nanos = Nanos(1_000_000);
/// The steps of rates that frame loss is measured at, of a hundred.
const LOSS_STEP: u32 = 10;

const MOST: &str = "maximum";
const LATENCY: &str = "latency";
const FRAME_LOSS: &str = "frame loss";
const BURST: &str = "back-to-back";

/// A test of RFC 2544.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkTest {
    /// The highest rate without loss.
    Throughput,
    /// Latency of frames at that rate.
    Latency,
    /// Frames lost at higher rates.
    FrameLoss,
    /// The longest burst without loss.
    BackToBack,
}

impl NetworkTest {
    /// All tests by name.
    pub(super) const WORDS: [(&'static str, Self); 4] = [
        ("throughput", Self::Throughput),
        ("latency", Self::Latency),
        ("frame-loss", Self::FrameLoss),
        ("back-to-back", Self::BackToBack),
    ];
}

/// Findings of the tests for one size of frames.
#[derive(Debug)]
pub(super) struct FrameReport {
    pub(super) frame: u64,
    pub(super) throughput: Option<FoundRate>,
    /// Frames of the longest burst without loss, of each repetition.
    pub(super) bursts: Vec<u64>,
    pub(super) trials: Vec<(&'static str, Trial)>,
    is_whole: bool,
}

/// The tests of all sizes.
pub(super) fn test(options: &TrafficSearch, carry_out: &mut CarryOut<'_>) -> Vec<FrameReport> {
    let mut all = Vec::new();
    for &frame in &options.frames {
        let mut finder = RateFinder::new(carry_out, Some(frame), options.trial, options.precision);
        let mut report = FrameReport {
            frame,
            throughput: None,
            bursts: Vec::new(),
            trials: Vec::new(),
            is_whole: false,
        };
        report.is_whole = report.all(options, &mut finder).is_some();
        report.trials = finder.trials;
        let is_whole = report.is_whole;
        all.push(report);
        if !is_whole {
            break;
        }
    }
    all
}

impl FrameReport {
    fn all(&mut self, options: &TrafficSearch, finder: &mut RateFinder<'_>) -> Option<()> {
        let has = |test| options.tests.contains(&test);
        let most = finder.trial(MOST, TrialRate::Most, options.trial)?.clone();
        if has(NetworkTest::Throughput) || has(NetworkTest::Latency) {
            let found = finder.find(0.0, &most, options.way)?;
            self.throughput = Some(found);
            if has(NetworkTest::Latency) && found.rate >= 1.0 {
                let duration = options.trial.saturating_mul(LATENCY_TIMES);
                for _ in 0..options.repeats.unwrap_or(LATENCY_REPEATS) {
                    finder.trial(LATENCY, TrialRate::PerSecond(found.rate), duration)?;
                }
            }
        }
        if has(NetworkTest::FrameLoss) {
            frame_loss(options, finder, &most)?;
        }
        if has(NetworkTest::BackToBack) {
            for _ in 0..options.repeats.unwrap_or(BURST_REPEATS) {
                self.bursts.push(burst(options, finder, &most)?);
            }
        }
        Some(())
    }

    fn of(&self, purpose: &'static str) -> impl Iterator<Item = &Trial> {
        let trials = self.trials.iter().filter(move |(what, _)| *what == purpose);
        trials.map(|(_, trial)| trial)
    }
}

/// Tests the highest rate and lower ones, until two rates in succession lose nothing.
fn frame_loss(options: &TrafficSearch, finder: &mut RateFinder<'_>, most: &Trial) -> Option<()> {
    let mut clean = 0;
    for percent in (1..=100 / LOSS_STEP).rev().map(|step| step * LOSS_STEP) {
        let rate = (most.rate() * f64::from(percent) / 100.0).round().max(1.0);
        let trial = finder.trial(FRAME_LOSS, TrialRate::PerSecond(rate), options.trial)?;
        clean = if trial.lost == 0 { clean + 1 } else { 0 };
        if clean == 2 {
            break;
        }
    }
    Some(())
}

/// The longest burst without loss: as many frames as fit into a trial, or fewer.
fn burst(options: &TrafficSearch, finder: &mut RateFinder<'_>, most: &Trial) -> Option<u64> {
    let duration = Nanos((options.trial.0 / BURST_PART).max(SHORTEST.0));
    let all = whole(most.rate() * duration.as_secs_f64()).max(1);
    let mut is_clean = |messages: u64| -> Option<bool> {
        let frame = finder.frame;
        let trial = finder.carry_out(&TrialRequest {
            purpose: BURST,
            frame,
            rate: TrialRate::Most,
            messages,
            duration,
        })?;
        Some(trial.begun > 0 && trial.lost == 0)
    };
    if is_clean(all)? {
        return Some(all);
    }
    let mut bracket = RateBracket {
        kept: 0.0,
        missed: real(all),
    };
    while let Some(middle) = bracket.middle(options.precision) {
        let frames = middle.floor();
        if frames <= bracket.kept {
            break;
        }
        bracket = bracket.with(frames, is_clean(whole(frames))?);
    }
    Some(whole(bracket.kept))
}

/// A row for each size, and remarks on the validity of the figures.
pub(super) fn text(all: &[FrameReport], options: &TrafficSearch) -> String {
    let mut out = String::from("RFC 2544, sizes of frames with their check\n");
    out += &marks(options);
    push!(
        out,
        "{:>6} {:>14} {:>14} {:>8} {:>12} {:>12} {:>10} {:>14}\n",
        "frame",
        "maximum/s",
        "throughput/s",
        "of max %",
        "latency us",
        "latency max",
        "loss %",
        "back-to-back"
    );
    for report in all {
        row(&mut out, report);
    }
    let is_line = |report: &FrameReport| report.of(MOST).any(|trial| trial.asked.is_some());
    out += if all.iter().all(is_line) {
        "maximum: the rate of the line\n"
    } else {
        "maximum: the measured maximum, no rate of the line is known\n"
    };
    for report in all {
        remarks(&mut out, report);
    }
    if all.iter().any(|report| !report.is_whole) || all.len() < options.frames.len() {
        out += "The tests were interrupted: `-` is not known\n";
    }
    out
}

/// Remarks on tests that were shorter or fewer than the RFC asks for.
fn marks(options: &TrafficSearch) -> String {
    let mut out = String::new();
    if options.trial < TRIAL {
        push!(
            out,
            "not RFC duration: trials of {}, RFC 2544 asks for {TRIAL} (latency {}, back-to-back {})\n",
            options.trial,
            options.trial.saturating_mul(LATENCY_TIMES),
            Nanos((options.trial.0 / BURST_PART).max(SHORTEST.0))
        );
    }
    let has = |test| options.tests.contains(&test);
    let asked = match () {
        () if has(NetworkTest::BackToBack) => BURST_REPEATS,
        () if has(NetworkTest::Latency) => LATENCY_REPEATS,
        () => 0,
    };
    if let Some(repeats) = options.repeats.filter(|repeats| *repeats < asked) {
        push!(
            out,
            "not RFC repetitions: {repeats}, RFC 2544 asks for {LATENCY_REPEATS} of latency and {BURST_REPEATS} of \
             back-to-back\n"
        );
    }
    out
}

fn row(out: &mut String, report: &FrameReport) {
    let cell = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let most = report.of(MOST).next().map(Trial::rate);
    let throughput = report.throughput.map(|found| found.rate);
    let share = most.zip(throughput).map(|(most, rate)| rate / most * 100.0);
    let means: Vec<f64> = report
        .of(LATENCY)
        .filter_map(|t| t.latency.mean())
        .collect();
    let mean =
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / real(means.len() as u64) / 1e3);
    let longest = report.of(LATENCY).filter_map(|t| t.latency.max()).max();
    let loss = report
        .of(FRAME_LOSS)
        .next()
        .map(|trial| trial.loss() * 100.0);
    let bursts = &report.bursts;
    let burst =
        (!bursts.is_empty()).then(|| real(bursts.iter().sum::<u64>()) / real(bursts.len() as u64));
    push!(
        out,
        "{:>6} {:>14} {:>14} {:>8} {:>12} {:>12} {:>10} {:>14}\n",
        report.frame,
        cell(most, 0),
        cell(throughput, 0),
        cell(share, 2),
        cell(mean, 2),
        cell(longest.map(|ns| real(ns) / 1e3), 2),
        cell(loss, 4),
        cell(burst, 1)
    );
}

/// Prints the findings that a row has no column for.
fn remarks(out: &mut String, report: &FrameReport) {
    let frame = report.frame;
    if let Some(found) = &report.throughput {
        push!(out, "{frame}: throughput {}\n", found.words());
    }
    let most = report.of(MOST).next().map_or(1.0, Trial::rate);
    let step = |trial: &Trial| {
        let behind = if trial.is_behind() {
            " (generator-limited)"
        } else {
            ""
        };
        let share = trial.rate() / most * 100.0;
        format!("{:.4} % at {share:.0} %{behind}", trial.loss() * 100.0)
    };
    let steps: Vec<String> = report.of(FRAME_LOSS).map(step).collect();
    if !steps.is_empty() {
        push!(out, "{frame}: frame loss {}\n", steps.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::super::finder::SEARCH;
    use super::super::simulated::Device;
    use super::*;

    #[test]
    fn seven_sizes_are_seven_rows_and_short_trials_are_marked() {
        let options = TrafficSearch {
            repeats: Some(2),
            trial: Nanos::SECOND,
            ..TrafficSearch::network_tests()
        };
        let mut sink = Device::sink(300_000.0, 900_000.0);
        let all = test(&options, &mut |request| sink.carry_out(request));
        let text = text(&all, &options);
        for frame in [64, 128, 256, 512, 1024, 1280, 1518] {
            let is_row = |line: &&str| line.split_whitespace().next() == Some(&format!("{frame}"));
            let row = text.lines().find(is_row).unwrap();
            let cells: Vec<&str> = row.split_whitespace().collect();
            assert_eq!(cells.len(), 8, "{text}");
            let number = |at: usize| cells[at].parse::<f64>().unwrap();
            assert!((298_000.0..300_100.0).contains(&number(2)), "{row}");
            assert!((20.0 - number(4)).abs() < 0.2, "{row}");
            // Two thirds of what comes at 900 k per second are lost, less a bucket.
            assert!((66.0..66.7).contains(&number(6)), "{row}");
            // A bucket of 64 and what is taken while the burst is sent: 64 / (1 - 1/3).
            assert!((95.0..=96.0).contains(&number(7)), "{row}");
        }
        assert!(
            text.contains("not RFC duration: trials of 1.00 s"),
            "{text}"
        );
        assert!(text.contains("not RFC repetitions: 2,"), "{text}");
        assert!(text.contains("the measured maximum"), "{text}");
        // 100 % down to two without loss: 30 and 20 %.
        let losses = sink.requests.iter().filter(|one| one.purpose == FRAME_LOSS);
        assert_eq!(losses.count(), 7 * 9);
    }

    #[test]
    fn what_the_rfc_asks_for_bears_no_mark() {
        let options = TrafficSearch {
            frames: vec![64],
            ..TrafficSearch::network_tests()
        };
        let mut sink = Device::sink(1000.0, 5000.0);
        let all = test(&options, &mut |request| sink.carry_out(request));
        let text = text(&all, &options);
        assert!(!text.contains("not RFC"), "{text}");
        let lasted = |purpose| {
            let mut of = sink.requests.iter().filter(|one| one.purpose == purpose);
            of.next().unwrap().duration
        };
        assert_eq!(lasted(SEARCH), Nanos::from_secs(60));
        assert_eq!(lasted(LATENCY), Nanos::from_secs(120));
        assert_eq!(lasted(BURST), Nanos::from_secs(2));
        assert_eq!(all[0].of(LATENCY).count(), 20);
        assert_eq!(all[0].bursts.len(), 50);
    }

    #[test]
    fn an_interrupted_test_prints_what_it_has() {
        let options = TrafficSearch::network_tests();
        let mut sink = Device::sink(300_000.0, 900_000.0);
        sink.left = 1;
        let all = test(&options, &mut |request| sink.carry_out(request));
        let text = text(&all, &options);
        assert!(
            text.contains("    64         900000              -"),
            "{text}"
        );
        assert!(text.contains("The tests were interrupted"), "{text}");
    }
}

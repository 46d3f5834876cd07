//! fio's line about a run that goes on: `Jobs: 1 (f=1): [R(1)][75.0%][r=..][r=.. IOPS][eta ..]`.
//!
//! In: the plan, and about once a second what its jobs have done. Out: the line as fio 3.33
//! prints it, ending in a carriage return. Not here: when it is shown and where.

use weir_schema::{FileNames, Job, Kind, Plan, Schedule, Workload};

use super::entry::Formats;
use super::numbers::{Base, FigureUnit, scaled, scaled_from_kilo};
use crate::observer::{JobProgress, Phase};

/// fio tells no progress before this time.
const SILENT_S: u64 = 3;

/// The line, and what it remembers of the last one.
#[derive(Clone, Debug, Default)]
pub struct EtaLine {
    last_s: f64,
    operations: [u64; 3],
    bytes: [u64; 3],
    length: usize,
    was_estimated: bool,
    /// The line ends, and the next one does not overwrite it.
    pub breaks: bool,
}

impl EtaLine {
    /// The line for these jobs of the plan, in its order; nothing once none runs.
    pub fn show(&mut self, plan: &Plan, jobs: &[JobProgress], elapsed_s: f64) -> Option<String> {
        let busy = [
            Phase::Ramp,
            Phase::Running,
            Phase::Preparing,
            Phase::Waiting,
        ];
        let is_busy = |j: &JobProgress| j.workers.iter().any(|w| busy.contains(w));
        if !jobs.iter().any(is_busy) {
            return None;
        }
        let planned: Vec<&Job> = plan.jobs().map(|(_, job)| job).collect();
        let pairs = || planned.iter().copied().zip(jobs);
        let running = count(jobs, &[Phase::Running]) + count(jobs, &[Phase::Ramp]);
        let files: usize = pairs()
            .map(|(job, p)| files(job) * at(p, Phase::Running))
            .sum();
        let formats = planned.first().map(|job| Formats::of(plan, job));
        let mut out = String::new();
        if std::mem::take(&mut self.breaks) {
            self.length = 0;
            out.push('\n');
        }
        let start = out.len();
        push!(out, "Jobs: {running} (f={files})");
        if let Some(formats) = formats {
            let active = pairs().filter(|(_, p)| at(p, Phase::Running) > 0);
            push_limits(&mut out, active, formats);
            let rates = self.rates(jobs, elapsed_s);
            if running > 0 && whole(elapsed_s.round()) >= SILENT_S {
                self.push_progress(&mut out, &pairs().collect::<Vec<_>>(), elapsed_s);
                push_rates(&mut out, &rates, formats);
                push!(
                    out,
                    "[eta {}]",
                    time(estimate(&pairs().collect::<Vec<_>>()))
                );
            }
        }
        let length = out.len() - start;
        out.push_str(&" ".repeat(self.length.saturating_sub(length)));
        self.length = length;
        out.push('\r');
        Some(out)
    }

    /// KiB and operations per second since the last line, of each kind.
    fn rates(&mut self, jobs: &[JobProgress], now_s: f64) -> [(u64, u64); 3] {
        let seconds = (now_s - self.last_s).max(0.001);
        let sum = |of: fn(&JobProgress) -> &[u64; 3], kind: usize| -> u64 {
            jobs.iter().map(|j| of(j)[kind]).sum()
        };
        let rates = [0, 1, 2].map(|kind| {
            let (bytes, operations) = (sum(|j| &j.bytes, kind), sum(|j| &j.operations, kind));
            let since = |now: u64, then: &mut u64| {
                per_second(now.saturating_sub(std::mem::replace(then, now)), seconds)
            };
            (
                since(bytes, &mut self.bytes[kind]) / 1024,
                since(operations, &mut self.operations[kind]),
            )
        });
        self.last_s = now_s;
        rates
    }

    fn push_progress(&mut self, out: &mut String, pairs: &[(&Job, &JobProgress)], elapsed_s: f64) {
        let left = estimate(pairs);
        let ramping = pairs.iter().all(|(_, p)| at(p, Phase::Running) == 0);
        let share = if (left == 0 && !self.was_estimated) || ramping {
            "-.-%".to_owned()
        } else {
            self.was_estimated = true;
            let elapsed = whole(elapsed_s.round());
            format!("{:3.1}%", share(elapsed, elapsed + left))
        };
        push!(out, ": [{}][{share}]", letters(pairs));
    }
}

fn share(part: u64, whole: u64) -> f64 {
    super::entry::share(part, whole)
}

/// Letters of all workers; equal neighbours are counted.
fn letters(pairs: &[(&Job, &JobProgress)]) -> String {
    let all = pairs
        .iter()
        .flat_map(|(job, p)| p.workers.iter().map(|w| letter(job, *w)));
    let mut runs: Vec<(char, usize)> = Vec::new();
    for letter in all {
        match runs.last_mut().filter(|(last, _)| *last == letter) {
            Some((_, count)) => *count += 1,
            None => runs.push((letter, 1)),
        }
    }
    let texts: Vec<String> = runs.iter().map(|(c, n)| format!("{c}({n})")).collect();
    texts.join(",")
}

fn letter(job: &Job, phase: Phase) -> char {
    match phase {
        Phase::Waiting => 'P',
        Phase::Preparing => 'I',
        Phase::Ramp => '/',
        Phase::Ended => '_',
        Phase::Failed => 'X',
        Phase::Running => {
            let Workload::Block(work) = &job.workload else {
                return 'R';
            };
            let mix = &work.mix;
            let letter = match (
                mix.has(Kind::Read),
                mix.has(Kind::Write),
                mix.has(Kind::Trim),
            ) {
                (true, true, _) => 'm',
                (true, ..) => 'r',
                (_, _, true) => 'd',
                _ => 'w',
            };
            if work.access.random {
                letter
            } else {
                letter.to_ascii_uppercase()
            }
        }
    }
}

/// Lowest and highest rates, bytes before operations as fio has room for one of them.
fn push_limits<'a>(
    out: &mut String,
    active: impl Iterator<Item = (&'a Job, &'a JobProgress)>,
    formats: Formats,
) {
    let (mut bytes, mut operations) = ([0.0; 2], [0.0; 2]);
    for (job, progress) in active {
        #[expect(clippy::cast_precision_loss, reason = "workers of a job")]
        let workers = at(progress, Phase::Running) as f64;
        let sum = |values: [f64; 3]| values.iter().sum::<f64>() * workers;
        let each =
            |f: &dyn Fn(Kind) -> Option<f64>| used(job).map(|k| k.and_then(f).unwrap_or(0.0));
        if let Some(minimum) = &job.load().minimum_rate {
            bytes[0] += sum(each(&|k| minimum.bytes_per_s.get(&k.into()).map(|b| b.0)));
            operations[0] += sum(each(&|k| minimum.ops_per_s.get(&k.into()).map(|o| o.0)));
        }
        match &job.load().pacing.schedule {
            Some(Schedule::BytesPerSecond {
                limit_bytes_per_s: limit,
                ..
            }) => {
                bytes[1] += sum(each(&|k| limit.get(&k.into()).map(|b| b.0)));
            }
            Some(Schedule::OpsPerSecond {
                limit_per_s: limit, ..
            }) => {
                operations[1] += sum(each(&|k| limit.get(&k.into()).map(|o| o.0)));
            }
            None => {}
        }
    }
    let is_given = |limits: [f64; 2]| limits.iter().any(|l| *l > 0.0);
    if is_given(bytes) {
        let text = |rate: f64| {
            scaled(
                whole(rate),
                formats.digits,
                formats.base,
                FigureUnit::BytePerSec,
            )
        };
        push!(out, ", {}-{}", text(bytes[0]), text(bytes[1]));
    } else if is_given(operations) {
        push!(out, ", {:.0}-{:.0} IOPS", operations[0], operations[1]);
    }
}

/// The data kinds of a job.
fn used(job: &Job) -> [Option<Kind>; 3] {
    match &job.workload {
        Workload::Block(work) => Kind::DATA.map(|k| Some(k).filter(|k| work.mix.has(*k))),
        _ => [None; 3],
    }
}

fn push_rates(out: &mut String, rates: &[(u64, u64); 3], formats: Formats) {
    let moved = || {
        ['r', 'w', 't']
            .into_iter()
            .zip(rates)
            .filter(|(_, r)| **r != (0, 0))
    };
    if moved().next().is_none() {
        return;
    }
    let joined = |text: &dyn Fn(&(u64, u64)) -> String| -> String {
        let parts: Vec<String> = moved()
            .map(|(c, rate)| format!("{c}={}", text(rate)))
            .collect();
        parts.join(",")
    };
    let bytes = joined(&|r| scaled_from_kilo(r.0, 4, formats.base, formats.rate));
    let operations = joined(&|r| scaled(r.1, 4, Base::Decimal, FigureUnit::None));
    push!(out, "[{bytes}][{operations} IOPS]");
}

/// Seconds that are left: of what runs side by side the longest, of what waits for a barrier the
/// sum.
fn estimate(pairs: &[(&Job, &JobProgress)]) -> u64 {
    let (mut longest, mut after) = (0, 0);
    for (job, progress) in pairs {
        let left = left(job, progress);
        if at(progress, Phase::Waiting) > 0 && job.start.barrier {
            after += left;
        } else {
            longest = longest.max(left);
        }
    }
    longest + after
}

fn left(job: &Job, progress: &JobProgress) -> u64 {
    let bound = |ns: Option<weir_units::Nanos>| ns.map(|t| t.0 / 1_000_000_000);
    let runtime = bound(job.load().bounds.runtime_ns);
    if at(progress, Phase::Running) > 0 {
        let elapsed = (progress.elapsed_s - job.load().bounds.ramp_ns.as_secs_f64()).max(0.0);
        let elapsed = whole(elapsed.round());
        let fraction = progress.fraction.unwrap_or(0.0);
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let by_work = if fraction > 0.0 {
            whole(elapsed as f64 / fraction).saturating_sub(elapsed)
        } else {
            runtime.unwrap_or(0)
        };
        return match runtime {
            Some(t) => by_work.min(t.saturating_sub(elapsed)),
            None => by_work,
        };
    }
    let delay = job.start.delay.map_or(0, |d| d.max_ns.0 / 1_000_000_000);
    let ramp = job.load().bounds.ramp_ns.0 / 1_000_000_000;
    if at(progress, Phase::Ramp) > 0 {
        let passed = whole(progress.elapsed_s.round());
        return (runtime.unwrap_or(0) + ramp).saturating_sub(passed);
    }
    if at(progress, Phase::Waiting) + at(progress, Phase::Preparing) > 0 {
        return runtime.map_or(0, |t| t + delay + ramp);
    }
    0
}

fn files(job: &Job) -> usize {
    match &job.workload {
        Workload::Block(work) => match &work.targets.files {
            FileNames::Listed { paths, .. } => paths.len().max(1),
            FileNames::Generated { count, .. } => *count as usize,
            FileNames::Sized { files } => files.len(),
            FileNames::None | FileNames::Below { .. } => 1,
        },
        _ => 0,
    }
}

fn at(progress: &JobProgress, phase: Phase) -> usize {
    progress.workers.iter().filter(|w| **w == phase).count()
}

fn count(jobs: &[JobProgress], phases: &[Phase]) -> usize {
    let of = |j: &JobProgress| j.workers.iter().filter(|w| phases.contains(w)).count();
    jobs.iter().map(of).sum()
}

/// `00m:05s`, with hours and days where there are any.
fn time(seconds: u64) -> String {
    let (d, h) = (seconds / 86_400, seconds / 3600 % 24);
    let mut out = String::new();
    if d > 0 {
        push!(out, "{d:02}d:");
    }
    if d > 0 || h > 0 {
        push!(out, "{h:02}h:");
    }
    push!(out, "{:02}m:{:02}s", seconds / 60 % 60, seconds % 60);
    out
}

#[expect(clippy::cast_precision_loss, reason = "rates for the eye")]
fn per_second(count: u64, seconds: f64) -> u64 {
    whole(count as f64 / seconds)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::JobSample;
    use weir_schema::{ByKind, MinimumRate, Mix, PerKind};
    use weir_units::{BytesPerSec, Nanos};

    use super::super::sample;
    use super::*;

    fn plan(change: impl FnOnce(&mut Job)) -> Plan {
        let mut job = sample::job("a", Mix::only(Kind::Read), &[]);
        job.load_mut().bounds.runtime_ns = Some(Nanos::from_secs(10));
        change(&mut job);
        sample::result(vec![vec![(job, Vec::new())]]).plan
    }

    fn progress(phase: Phase, elapsed_s: f64) -> JobProgress {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small"
        )]
        let operations = (elapsed_s * 500.0) as u64;
        JobProgress {
            has_ended: false,
            workers: vec![phase; 2],
            elapsed_s,
            fraction: Some(elapsed_s / 10.0),
            operations: [operations, 0, 0],
            bytes: [operations * 4096, 0, 0],
        }
    }

    #[test]
    fn the_line_tells_progress_after_two_seconds() {
        let plan = plan(|_| ());
        let mut line = EtaLine::default();
        let mut show = |s| line.show(&plan, &[progress(Phase::Running, s)], s).unwrap();
        assert_eq!(show(1.0), "Jobs: 2 (f=2)\r");
        assert_eq!(show(2.0), "Jobs: 2 (f=2)\r");
        assert_eq!(
            show(4.0),
            "Jobs: 2 (f=2): [r(2)][40.0%][r=2000KiB/s][r=500 IOPS][eta 00m:06s]\r"
        );
        let ended = [progress(Phase::Ended, 10.0)];
        assert_eq!(line.show(&plan, &ended, 10.0), None);
    }

    #[test]
    fn limits_stand_before_progress() {
        let mixed = Mix {
            read_percent: 50,
            write_percent: 50,
            ..Mix::only(Kind::Read)
        };
        let plan = plan(|job| {
            let Workload::Block(work) = &mut job.workload else {
                panic!("block I/O")
            };
            work.mix = mixed;
            job.load_mut().minimum_rate = Some(MinimumRate {
                bytes_per_s: PerKind::all(BytesPerSec(512_000.0)).by_name(),
                ops_per_s: ByKind::new(),
                cycle_ns: Nanos(1),
            });
            job.load_mut().pacing.schedule = Some(Schedule::BytesPerSecond {
                limit_bytes_per_s: PerKind::from_fn(|kind| match kind {
                    Kind::Read => BytesPerSec(1_048_576.0),
                    _ => BytesPerSec(2_097_152.0),
                })
                .by_name(),
                poisson: false,
                open_loop: false,
                ignore_thinktime: false,
            });
        });
        let mut one = progress(Phase::Running, 1.0);
        one.workers.truncate(1);
        let text = EtaLine::default().show(&plan, &[one], 1.0).unwrap();
        assert_eq!(text, "Jobs: 1 (f=1), 1000KiB/s-3072KiB/s\r");
    }

    #[test]
    fn a_shorter_line_covers_a_longer_one_and_a_break_begins_anew() {
        let plan = plan(|_| ());
        let mut line = EtaLine::default();
        let long = line
            .show(&plan, &[progress(Phase::Running, 5.0)], 5.0)
            .unwrap();
        let short = line
            .show(&plan, &[progress(Phase::Preparing, 6.0)], 6.0)
            .unwrap();
        assert_eq!(long.len(), short.len());
        line.breaks = true;
        let text = line
            .show(&plan, &[progress(Phase::Ramp, 7.0)], 7.0)
            .unwrap();
        assert_eq!(
            text,
            "\nJobs: 2 (f=0): [/(2)][-.-%][r=2000KiB/s][r=500 IOPS][eta 00m:03s]\r"
        );
    }

    #[test]
    fn times_have_hours_and_days_where_needed() {
        assert_eq!(time(5), "00m:05s");
        assert_eq!(time(3661), "01h:01m:01s");
        assert_eq!(time(90_000), "01d:01h:00m:00s");
    }
}

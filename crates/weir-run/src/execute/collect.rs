//! From what the run left, or has done so far, to the result.

use std::sync::atomic::Ordering::Relaxed;

use weir_schema::{
    ClassResult, ClockFacts, Confidence, CpuUse, DepthUse, DeviceFacts, EndedBy, Failure,
    GroupResult, Job, JobResult, Kind, KindBatches, KindInfo, KindName, KindResult, LoopOutcome,
    Outcome, Plan, Recording, RunResult, SampleStatistics, Span, Stage, StageHistogram, State,
    WorkerResult,
};
use weir_stats::Histogram;
use weir_sys::Tree;
use weir_sys::clock::{Tick, Timeline};
use weir_units::{Bytes, Nanos};

use crate::execute::bandwidth_log::BandwidthLog;
use crate::execute::disks::Disks;
use crate::execute::judge::{FailedTarget, describe};
use crate::execute::running::{EndedJob, Worker};
use crate::execute::running_ranks::EndedRanks;
use crate::execute::sampler::{KindSamples, Sampled};
use crate::execute::search::Search;
use crate::execute::{Run, RunControl, add_metrics, run_id, warn};
use crate::live::{ClassLatencies, LiveKind, WorkerLive};
use crate::loop_plan::is_open_loop;
use crate::runner::Prepared;
use crate::worker::OpFailure;

/// Instants on the run's clock.
struct Times<'a> {
    timeline: &'a Timeline,
    zero: Tick,
}

impl Times<'_> {
    fn at(&self, tick: Tick) -> Nanos {
        self.timeline.since(self.zero, tick)
    }
}

/// A job as far as it has come: what results are made of.
pub(super) struct JobSnapshot<'a> {
    pub(super) index: usize,
    pub(super) state: State,
    pub(super) failure: Option<&'a Failure>,
    pub(super) release: Option<Tick>,
    pub(super) workers: &'a [Worker],
    pub(super) sampled: Option<&'a Sampled>,
    pub(super) is_inline: bool,
    pub(super) prepared: Option<&'a dyn Prepared>,
    /// Files of its logs.
    pub(super) logs: &'a [String],
    /// The instant it is looked at, while it runs.
    pub(super) now: Option<Tick>,
    /// Outcome of the ranks, where all of them ran the job together.
    pub(super) ranks: Option<&'a EndedRanks>,
}

/// Properties of its prepared jobs, of so many jobs in all.
fn prepared_jobs(run: &Run<'_>, jobs: usize) -> warn::PreparedJobs {
    let of_jobs = || {
        let ended = run.ended.iter();
        ended.filter_map(|ended| Some((ended.index, ended.prepared.as_deref()?)))
    };
    let numbers = |has: fn(&dyn Prepared) -> bool| {
        let of_jobs = of_jobs().filter(|(_, job)| has(*job));
        of_jobs.map(|(index, _)| index).collect()
    };
    warn::PreparedJobs {
        all_bypass_caches: of_jobs().filter(|(_, job)| job.bypasses_caches()).count() == jobs,
        never_sleep: numbers(|job| job.never_sleeps()),
        read_blocks_once: numbers(|job| job.reads_blocks_once()),
    }
}

/// The result of a run that has ended.
pub(super) fn result(
    mut run: Run<'_>,
    plan: &Plan,
    mut control: RunControl<'_>,
    before: &warn::MachineCounters,
    disks: &Disks,
) -> RunResult {
    let end = control.clock.now();
    run.timeline.re_anchor(&control.clock);
    let mut warnings = Vec::new();
    run.ended.sort_by_key(|e| e.index);
    let jobs: Vec<&Job> = plan.jobs().map(|(_, job)| job).collect();
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    for ended in &run.ended {
        if let Some(ranks) = &ended.ranks {
            warnings.extend(ranks.outcome.warnings.iter().cloned());
        }
        if let Some(prepared) = &ended.prepared {
            warnings.extend(warn::of_job_targets(names[ended.index], prepared.as_ref()));
            let name = Some(names[ended.index]);
            warnings.extend(warn::of_ramp(jobs[ended.index], &ended.workers));
            warnings.extend(warn::of_logs(name, &ended.written.wrong));
        }
    }
    let seen = prepared_jobs(&run, names.len());
    let total = run
        .bandwidth_log
        .take()
        .map(BandwidthLog::finish)
        .unwrap_or_default();
    warnings.extend(warn::of_logs(None, &total));
    warnings.extend(warn::of_stop(run.stopped));
    let waiting = jobs.len().saturating_sub(run.ended.len());
    warnings.extend(run.ended_early.map(|at| warn::of_early_end(at, waiting)));
    // A signal that comes when all is done changes nothing.
    let interrupted = control.signals.interrupted() && !run.is_done();
    let signal = control.signals.number.load(Relaxed);
    let ranks = run.ended.iter().filter_map(|ended| ended.ranks.as_ref());
    let is_partial = ranks.map(|r| &r.outcome).any(|outcome| !outcome.is_whole);
    control.host.devices = std::mem::take(&mut run.devices);
    let mut result = RunResult {
        complete: !interrupted && !is_partial,
        ended_by: (interrupted && signal != 0).then_some(EndedBy { signal }),
        instrument: run.loop_costs.instrument(),
        warnings,
        ..so_far(&run, plan, &control, disks, end)
    };
    result.instrument.peak_memory_bytes = weir_sys::memory::peak_resident(&Tree::real());
    let after = warn::MachineCounters::read(&Tree::real());
    warn::keep_stolen(&mut result, before, &after);
    warn::refute_page_cache(&mut result, &seen);
    let machine = warn::of_run(&result, before, &after, &seen);
    result.warnings.extend(machine);
    add_metrics(&mut result, control.runners);
    result
}

/// Result of a run at this instant; incomplete, and without warnings.
pub(super) fn so_far(
    run: &Run<'_>,
    plan: &Plan,
    control: &RunControl<'_>,
    disks: &Disks,
    now: Tick,
) -> RunResult {
    let zero = run.first_release.unwrap_or(run.origin);
    let times = Times {
        timeline: &run.timeline,
        zero,
    };
    let running = run.running.iter().map(|job| job.seen(now));
    let mut seen: Vec<JobSnapshot<'_>> = run
        .ended
        .iter()
        .map(EndedJob::seen)
        .chain(running)
        .collect();
    seen.sort_by_key(|s| s.index);
    let mut seen = seen.into_iter().peekable();
    let mut groups = vec![GroupResult::default(); plan.groups.len()];
    for ((group, job), index) in plan.jobs().zip(0..) {
        let mut result = match seen.next_if(|s| s.index == index) {
            Some(seen) => job_result(job, &seen, &times),
            None => JobResult::not_started(&job.name),
        };
        if let Some(done) = result.outcome.of_loop_mut() {
            done.loop_ns_per_op = run.loop_costs.of(index);
        }
        groups[group].jobs.push(result);
    }
    for group in &mut groups {
        for worker in group.jobs.iter_mut().flat_map(JobResult::workers_mut) {
            worker.steadiness = run.steady_groups.outcome(worker.number);
        }
        group.conclude();
    }
    let mut result = RunResult {
        weir_version: control.version.to_owned(),
        history: None,
        started_unix_ns: run.started_unix_ns,
        run_id: run_id::of_run(run.started_unix_ns),
        zero_ns: run.timeline.since(run.origin, zero),
        duration_ns: times.at(now),
        groups,
        disks: disks.since(),
        clock: clock_facts(control.clock_facts.clone(), &run.timeline),
        host: control.host.clone(),
        ..RunResult::of(plan.clone())
    };
    if control.other_ranks.is_none() {
        result.conclude_batches();
    }
    result
}

/// Adds devices that another job has not named yet.
pub(super) fn add_devices(known: &mut Vec<DeviceFacts>, of_job: Vec<DeviceFacts>) {
    for device in of_job {
        if known.iter().all(|known| known.target != device.target) {
            known.push(device);
        }
    }
}

fn clock_facts(mut facts: ClockFacts, timeline: &Timeline) -> ClockFacts {
    facts.anchors = timeline.anchors_taken();
    facts.residual_ns = timeline.residual().map(|r| r.nanos.0 as f64);
    facts.residual_ppm = timeline.residual().map(|r| r.ppm);
    facts
}

/// Result of a phase that has ended on this rank.
pub(super) fn phase_result(
    job: &Job,
    ended: &EndedJob,
    (timeline, zero): (&Timeline, Tick),
) -> JobResult {
    job_result(job, &ended.seen(), &Times { timeline, zero })
}

fn job_result(job: &Job, seen: &JobSnapshot<'_>, times: &Times<'_>) -> JobResult {
    let workers: Vec<WorkerResult> = seen
        .workers
        .iter()
        .enumerate()
        .map(|(i, w)| {
            let samples = seen.sampled.and_then(|s| s.workers.get(i));
            worker_result(job, w, samples, seen, times)
        })
        .collect();
    let spans = || workers.iter().filter_map(|w| w.span);
    let span = spans()
        .map(|s| s.start_ns)
        .min()
        .zip(spans().map(|s| s.end_ns).max())
        .or_else(|| Some((times.at(seen.release?), times.at(seen.ranks?.end))));
    let mut result = JobResult {
        state: seen.state,
        span: span.map(|(start_ns, end_ns)| Span { start_ns, end_ns }),
        failure: seen.failure.cloned(),
        logs: seen.logs.to_vec(),
        ..JobResult::not_started(&job.name)
    };
    if let Some(ranks) = seen.ranks {
        result.outcome = ranks.outcome.outcome.clone();
        result.metrics.clone_from(&ranks.outcome.metrics);
        result.phases.clone_from(&ranks.phases);
    } else if seen.state != State::NotStarted {
        let done = loop_outcome(job, workers, seen.sampled);
        let lives: Vec<&WorkerLive> = seen.workers.iter().map(|w| &*w.live).collect();
        result.outcome = match seen.prepared {
            Some(prepared) => prepared.outcome(done, &lives),
            None => Outcome::Loop(done),
        };
    }
    result.conclude();
    result
}

fn worker_result(
    job: &Job,
    worker: &Worker,
    samples: Option<&Vec<KindSamples>>,
    seen: &JobSnapshot<'_>,
    times: &Times<'_>,
) -> WorkerResult {
    let live = &worker.live;
    let ran = seen.release.filter(|_| live.started.get() > 0);
    let span = ran.map(|_| {
        let start = Tick(live.started.get());
        let end = last_done(live).or(worker.gone).or(seen.now);
        let end = end.unwrap_or(start).max(start);
        Span {
            start_ns: times.at(start),
            end_ns: times.at(end),
        }
    });
    let runtime = span.map_or(Nanos(0), Span::length);
    let declared = job.workload.kinds().iter().enumerate();
    let kinds = declared.filter_map(|(number, info)| {
        let samples = samples.and_then(|s| s.get(number));
        let live = &live.kinds[number];
        let runtime = live.active().map_or(runtime, |(from, to)| {
            Nanos(times.at(to).0.saturating_sub(times.at(from).0))
        });
        kind_result(job, info, live, samples, runtime, seen)
    });
    let mut kinds: Vec<KindResult> = kinds.collect();
    count_mismatches(&mut kinds, live);
    let thread_id = worker.thread_id.load(Relaxed);
    WorkerResult {
        clone: worker.clone,
        number: worker.number,
        thread_id: (thread_id > 0).then_some(thread_id),
        span,
        state: if worker.ended {
            worker.state
        } else {
            State::Running
        },
        failure: worker.failure.clone(),
        depth: depth_use(worker, &kinds, seen.is_inline, runtime),
        kinds,
        cpu: match worker.state {
            State::Hung => CpuUse::default(),
            _ if worker.ended => worker.cpu,
            _ => live.cpu_use_of(thread_id),
        },
        prepare_ns: Some(Nanos(live.prepare_ns.get())).filter(|n| n.0 > 0),
        late_issues: is_open_loop(job).then(|| live.late.get()),
        mismatches: live.findings.list(),
        reported_errors: reported_errors(worker, seen),
        depth_found: worker.search.as_ref().map(Search::found),
        ..WorkerResult::default()
    }
}

/// Failed operations after which the worker went on, in words.
fn reported_errors(worker: &Worker, seen: &JobSnapshot<'_>) -> Vec<Failure> {
    let name = |target| seen.prepared?.target_name(worker.clone, target);
    let failed = worker.live.findings.failed();
    let describe = |at: &OpFailure| {
        let target = FailedTarget {
            name: name(at.acts_on.number),
            kind: worker.live.kind_name(at.kind),
            remark: None,
            action: seen.prepared.and_then(Prepared::action),
        };
        describe(at, target)
    };
    failed.iter().map(describe).collect()
}

/// A block that fails verification is an error of the read that brought it.
fn count_mismatches(kinds: &mut [KindResult], live: &WorkerLive) {
    let bad = live.findings.operations();
    if bad > 0
        && let Some(reads) = kinds.iter_mut().find(|k| k.kind == Kind::Read)
    {
        *reads.errors.entry(libc::EILSEQ.into()).or_default() += bad;
    }
}

/// The last completion; a worker that panicked or hangs left no note of it.
pub(crate) fn last_done(live: &WorkerLive) -> Option<Tick> {
    Some(Tick(live.last_done.get())).filter(|&tick| tick > Tick(0))
}

/// Latencies by class, of the stages that are wanted.
fn classes(live: &LiveKind, wanted: &Recording) -> Vec<ClassResult> {
    let class = |(class, latencies): (u16, ClassLatencies)| {
        let stages = [
            (Stage::Clat, wanted.clat, latencies.clat),
            (Stage::Lat, wanted.lat, latencies.lat),
        ];
        let stages = stages.into_iter().filter(|(_, wanted, _)| *wanted);
        let stages = stages.map(|(stage, _, histogram)| StageHistogram { stage, histogram });
        ClassResult {
            class,
            stages: stages.collect(),
        }
    };
    live.classes().into_iter().map(class).collect()
}

fn kind_result(
    job: &Job,
    kind: &KindInfo,
    live: &LiveKind,
    samples: Option<&KindSamples>,
    runtime_ns: Nanos,
    seen: &JobSnapshot<'_>,
) -> Option<KindResult> {
    let (issued, operations, failed) = (live.issued.get(), live.completed.get(), live.failed.get());
    if issued == 0 && operations == 0 && failed == 0 {
        return None;
    }
    let (by_errno, error_latencies) = live.errors();
    let code = |number: i32| {
        let own = seen.prepared.map(|prepared| prepared.error_code(number));
        own.unwrap_or_else(|| number.into())
    };
    let errors = by_errno.into_iter().map(|(number, n)| (code(number), n));
    let mut stages = Vec::new();
    let mut add = |stage, histogram: Option<Histogram>| {
        if let Some(histogram) = histogram.filter(|h| !h.is_empty()) {
            stages.push(StageHistogram { stage, histogram });
        }
    };
    let lat = live.lat.snapshot();
    let wanted = &job.load().recording;
    add(Stage::Slat, live.slat.snapshot().filter(|_| wanted.slat));
    // An engine that completes inside the call has no point between: clat is lat.
    let clat = if seen.is_inline {
        lat.clone()
    } else {
        live.clat.snapshot()
    };
    add(Stage::Clat, clat.filter(|_| wanted.clat));
    add(Stage::Lat, lat.filter(|_| wanted.lat));
    add(Stage::Rlat, live.rlat.snapshot());
    add(Stage::Errors, Some(error_latencies));
    let moments = |m: fn(&KindSamples) -> &weir_stats::Moments| {
        samples
            .map(m)
            .filter(|m| m.count > 0)
            .map(|m| SampleStatistics {
                count: m.count,
                min: m.min,
                max: m.max,
                mean: m.mean,
                deviation: m.deviation().unwrap_or(0.0),
            })
    };
    Some(KindResult {
        classes: classes(live, wanted),
        issued,
        operations,
        bytes: Bytes(live.bytes.get()),
        short: live.short.get(),
        lost: issued.saturating_sub(operations + failed),
        errors: errors.collect(),
        runtime_ns,
        stages,
        series: samples.map_or_else(
            || weir_stats::Series::new(wanted.interval_ns),
            |s| s.series.clone(),
        ),
        bandwidth_samples: moments(|s| &s.bandwidth).filter(|_| wanted.bandwidth),
        iops_samples: moments(|s| &s.iops).filter(|_| wanted.bandwidth),
        ..KindResult::new(kind)
    })
}

fn depth_use(worker: &Worker, kinds: &[KindResult], inline: bool, runtime: Nanos) -> DepthUse {
    let live = &worker.live;
    let mut depth = DepthUse {
        in_flight: std::array::from_fn(|i| live.depth[i].get()),
        submitted: std::array::from_fn(|i| live.submitted[i].get()),
        completed: std::array::from_fn(|i| live.harvested[i].get()),
        ..DepthUse::default()
    };
    if inline {
        let issued = kinds.iter().map(|k| k.issued).sum();
        depth.in_flight[0] = issued;
        depth.submitted[1] = issued;
        depth.completed[1] = issued;
    }
    // Little's law: time spent in operations over time.
    let spent: u128 = kinds
        .iter()
        .filter_map(|k| k.stage(Stage::Lat))
        .map(Histogram::sum)
        .sum();
    if runtime.0 > 0 && spent > 0 {
        depth.mean_in_flight = Some(spent as f64 / runtime.0 as f64);
    }
    depth
}

/// Figures of each kind over all workers with their intervals, and their course over time.
fn loop_outcome(job: &Job, workers: Vec<WorkerResult>, sampled: Option<&Sampled>) -> LoopOutcome {
    let occurs = |kind: &KindName| {
        let mut kinds = workers.iter().flat_map(|w| &w.kinds);
        kinds.any(|k| kind.covers(&k.kind) && k.operations > 0)
    };
    let mut outcome = LoopOutcome::default();
    if let Some(Sampled { stretches, .. }) = sampled {
        let recording = &job.load().recording;
        let mixed = recording.unify_kinds.then(|| stretches.mixed()).flatten();
        let mixed = mixed.iter().map(|(kind, batches)| (kind, batches));
        let kinds = stretches.kinds().chain(mixed);
        for (kind, batches) in kinds.filter(|(kind, _)| occurs(kind)) {
            let over_time = (stretches.stage(), batches);
            let percentiles = &recording.percentiles;
            let confidence = Confidence::of(kind, &workers, over_time, percentiles);
            outcome.confidence.push(confidence);
            outcome.batches.push(KindBatches {
                kind: kind.clone(),
                stage: stretches.stage(),
                batches: batches.clone(),
            });
        }
    }
    LoopOutcome { workers, ..outcome }
}

//! Packet paths as a log or a stored result recorded them.
//!
//! In: the text of a log, or a result, which has more. Out: of each path the tables of its sides, and their diagnoses. Figures
//! of tables are those of `weir axio`; of a result they are not rounded. Not here: the rules.

use weir_schema::{
    PacketPathOutcome, PacketPathWorkload, PathIteration, PathSide, PathStage, PathThread,
    RunResult, StageFigures, Workload,
};
use weir_units::Nanos;

use crate::counted::CountedFigures;
use crate::diagnosis::{Diagnosis, DiagnosisSide, PathContext};
use crate::evidence::larger;
use crate::inputs::InputError;
use crate::reading::Reading;
use crate::stage_tables::{StageRow, StageTable, StageTables, WorkspaceFigures};

/// Packet path and what was recorded of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedPath {
    /// Name of its job, where that distinguishes it.
    pub job: Option<String>,
    /// Iterations that were asked for.
    pub iterations: Option<u32>,
    /// Bytes of a frame that the side receives most: an answer at a client, a request at a server.
    pub frame_bytes: Option<u32>,
    /// The side that recorded it.
    pub local: StageTables,
    /// The other one, where it is known too.
    pub remote: Option<StageTables>,
}

impl RecordedPath {
    /// The path of a log.
    ///
    /// # Errors
    /// There is no whole table, or a row cannot be read.
    pub fn of_log(text: &str) -> Result<Self, InputError> {
        Ok(Self {
            local: StageTables::of_log(text)?,
            ..Self::default()
        })
    }

    /// The path of each job of a result that has one, in the order of the plan, with the job's name; or why it
    /// cannot be diagnosed.
    pub fn all_of(result: &RunResult) -> Vec<(String, Result<Self, String>)> {
        let jobs = result.plan.jobs().zip(result.jobs());
        let paths = jobs.filter_map(|((_, planned), done)| match &planned.workload {
            Workload::PacketPath(work) => {
                Some((planned.name.clone(), Self::of(work, done.packet_path()?)))
            }
            _ => None,
        });
        paths.collect()
    }

    /// The path of an outcome.
    ///
    /// # Errors
    /// It cannot be diagnosed: why.
    pub fn of(work: &PacketPathWorkload, done: &PacketPathOutcome) -> Result<Self, String> {
        if done.only_stage.is_some() {
            return Err("it is of one stage alone, which says nothing of the others".to_owned());
        }
        let local = work.side.unwrap_or(PathSide::Client);
        let (remote, frame) = match local {
            PathSide::Client => (PathSide::Server, work.whole_response()),
            PathSide::Server => (PathSide::Client, work.request_bytes),
        };
        let mut own = side_tables(done, work, local)
            .ok_or("its packet path ended before its first iteration did")?;
        let mut other = side_tables(done, work, remote);
        // A window is full where the other side is busy all the time.
        let others = other.iter_mut().flat_map(|path| &mut path.tables);
        for (one, other) in own.tables.iter_mut().zip(others) {
            let [mine, theirs] = [one, other].map(|table| &mut table.counted.busiest_share);
            let most = larger(Some(mine), theirs);
            (*mine, *theirs) = (most.clone(), most);
        }
        Ok(Self {
            job: None,
            iterations: Some(work.iterations),
            frame_bytes: Some(work.frame_bytes(frame)),
            local: own,
            remote: other,
        })
    }

    /// Diagnoses of the side that recorded it, then of the other one. The context is of the former's host.
    pub fn diagnoses(&self, beside: &PathContext) -> Vec<Diagnosis> {
        let of = |path: &StageTables, side, beside: &PathContext| Diagnosis {
            job: self.job.clone(),
            side,
            ..Diagnosis::of(path, beside)
        };
        let own = PathContext {
            iterations: beside.iterations.or(self.iterations),
            frame_bytes: beside.frame_bytes.or(self.frame_bytes),
            ..beside.clone()
        };
        let others = PathContext {
            iterations: own.iterations,
            table: own.table,
            ..PathContext::default()
        };
        let remote = self.remote.iter();
        let remote = remote.map(|path| of(path, DiagnosisSide::Remote, &others));
        std::iter::once(of(&self.local, DiagnosisSide::Local, &own))
            .chain(remote)
            .collect()
    }
}

fn side_tables(
    done: &PacketPathOutcome,
    work: &PacketPathWorkload,
    side: PathSide,
) -> Option<StageTables> {
    let lost = lost_cpu_share(done);
    let iterations = done.iterations.iter().map(|one| of_side(one, side));
    let tables = iterations.filter(|threads| !threads.is_empty());
    let tables = tables.map(|threads| table(&threads, work, side, &lost));
    let tables: Vec<StageTable> = tables.collect();
    (!tables.is_empty()).then(|| StageTables {
        tables,
        notes: Vec::new(),
    })
}

fn of_side(iteration: &PathIteration, side: PathSide) -> Vec<&PathThread> {
    let threads = iteration.threads.iter();
    threads.filter(|thread| thread.side == side).collect()
}

fn table(
    threads: &[&PathThread],
    work: &PacketPathWorkload,
    side: PathSide,
    lost_cpu_share: &Reading,
) -> StageTable {
    let apps: Vec<&PathThread> = threads
        .iter()
        .filter(|t| t.is_application)
        .copied()
        .collect();
    let dispatchers: Vec<&PathThread> = threads
        .iter()
        .filter(|t| t.is_dispatcher)
        .copied()
        .collect();
    let is_timed = threads.iter().any(|thread| thread.timed_passes > 0);
    let stages = PathStage::ROWS.map(|stage| {
        let all = if matches!(stage, PathStage::ApplicationTx | PathStage::ApplicationRx) {
            &apps
        } else {
            &dispatchers
        };
        row(all, stage, is_timed)
    });
    let end = match side {
        PathSide::Client => &stages[PathStage::DispatchRx.row_place()],
        // Its dispatchers send back themselves.
        PathSide::Server if work.echoes() => &stages[PathStage::LinkTx.row_place()],
        PathSide::Server => &stages[PathStage::DispatchTx.row_place()],
    };
    StageTable {
        line: 1,
        throughput_mpps: end.throughput_mpps.clone(),
        pool_use: pool_use(&apps, work),
        workspaces: threads.iter().map(|thread| workspace(thread)).collect(),
        stages: stages.into(),
        counted: CountedFigures {
            lost_cpu_share: lost_cpu_share.clone(),
            ..counted(threads, work, side)
        },
    }
}

fn row(threads: &[&PathThread], stage: PathStage, is_timed: bool) -> StageRow {
    let of = |thread: &PathThread| *thread.stage(stage);
    let rates = threads
        .iter()
        .map(|one| of(one).million_per_s(one.span_ns))
        .sum::<f64>();
    let mean = |pick: fn(&StageFigures) -> Option<f64>| {
        if !is_timed {
            return Reading::missing("no pass of the run was timed");
        }
        let all = threads.iter().filter_map(|one| pick(&of(one)));
        known(quotient(all.sum(), size(threads)))
    };
    let has_stall = !matches!(stage, PathStage::LinkTx | PathStage::LinkRx);
    StageRow {
        throughput_mpps: known(rates),
        average_us: mean(StageFigures::mean_us),
        stall_us: match stage {
            // Messages are handled when they are there.
            PathStage::ApplicationRx if is_timed => Reading::known(0.0),
            _ if has_stall => mean(StageFigures::mean_stall_us),
            _ => Reading::missing("the table has no such column"),
        },
    }
}

fn pool_use(apps: &[&PathThread], work: &PacketPathWorkload) -> Reading {
    let used = apps.iter().filter_map(|thread| thread.pool_use);
    if used.clone().next().is_none() {
        return Reading::missing("no thread looked at its pool");
    }
    known(quotient(
        used.sum(),
        size(apps) * f64::from(work.pool_buffers.max(1)),
    ))
}

fn workspace(thread: &PathThread) -> WorkspaceFigures {
    WorkspaceFigures {
        id: thread.thread.into(),
        app_tx_drops: count(thread.application_drops),
        disp_rx_drops: count(thread.dispatch_drops),
        handled_mpps: known(thread.application_rx.million_per_s(thread.span_ns)),
    }
}

/// All but the time without a CPU, which is known of the whole run alone.
fn counted(threads: &[&PathThread], work: &PacketPathWorkload, side: PathSide) -> CountedFigures {
    let sum = |of: fn(&PathThread) -> u64| {
        let all = threads.iter().map(|one| of(one));
        all.fold(0, u64::saturating_add)
    };
    let is_client = side == PathSide::Client;
    let of_client = |reading: Reading| {
        if is_client {
            reading
        } else {
            Reading::missing("a server makes no messages of its own")
        }
    };
    let parts = u64::from(work.packets(work.request_bytes));
    let sent = sum(|one| one.application_tx.packets) / parts.max(1);
    let flushes = sum(|one| one.link_tx.polls - one.link_tx.empty_polls.min(one.link_tx.polls));
    let bursts =
        sum(|one| one.dispatch_rx.polls - one.dispatch_rx.empty_polls.min(one.dispatch_rx.polls));
    let burst = share(sum(|one| one.dispatch_rx.packets), bursts, "no bursts");
    let most = f64::from(work.batches.dispatch_rx.max(1));
    let used: Vec<f64> = threads.iter().filter_map(|t| t.receive_queue_use).collect();
    CountedFigures {
        sent_share: of_client(share(
            sent,
            sum(|one| one.intended),
            "a closed loop intends no rate",
        )),
        share_without_credit: of_client(share(
            sum(|one| one.rounds_without_credit),
            sum(|one| one.application_tx.polls),
            "no rounds of a generator",
        )),
        share_without_buffers: of_client(share(
            sum(|one| one.rounds_without_buffers),
            sum(|one| one.application_tx.polls),
            "no rounds of a generator",
        )),
        busiest_share: busy(threads, |shares| shares.into_iter().fold(0.0, f64::max)),
        total_busy_share: busy(threads, |shares| shares.into_iter().sum()),
        tx_full_retries: count(sum(|one| one.link_full)),
        packets_per_flush: share(sum(|one| one.link_tx.packets), flushes, "no flushes"),
        burst_share: match burst.value {
            Some(burst) => known(burst / most),
            None => burst,
        },
        missed_packets: threads
            .iter()
            .filter_map(|t| t.link_drops)
            .reduce(u64::saturating_add)
            .map_or_else(
                || Reading::missing("the link does not count what it has no room for"),
                count,
            ),
        receive_ring_use: if used.is_empty() {
            Reading::missing("the link does not say how full it is")
        } else {
            known(used.iter().copied().fold(0.0, f64::max))
        },
        lost_cpu_share: Reading::missing("not counted"),
    }
}

/// The greatest of what is made of the shares of each thread's stages.
fn busy(threads: &[&PathThread], of: fn([f64; 4]) -> f64) -> Reading {
    let timed = threads.iter().filter(|thread| thread.timed_ns.0 > 0);
    let shares = timed.map(|thread| {
        let stages = [
            thread.application_tx,
            thread.application_rx,
            thread.dispatch_tx,
            thread.dispatch_rx,
        ];
        of(stages.map(|stage| quotient(exact(stage.busy_ns.0), exact(thread.timed_ns.0))))
    });
    shares
        .reduce(f64::max)
        .map_or_else(|| Reading::missing("no pass of the run was timed"), known)
}

/// Time in which threads of the run were ready or their CPU was the hypervisor's, of all their time.
fn lost_cpu_share(done: &PacketPathOutcome) -> Reading {
    let (mut lost, mut all) = (Nanos::ZERO, Nanos::ZERO);
    for worker in &done.workers.workers {
        let (Some(span), Some(waited)) = (worker.span, worker.cpu.run_delay_ns) else {
            return Reading::missing("the run does not know how long its threads waited");
        };
        lost = lost.saturating_add(waited);
        lost = lost.saturating_add(worker.cpu.stolen_ns.unwrap_or_default());
        all = all.saturating_add(span.length());
    }
    share(lost.0, all.0, "the run took no time")
}

fn share(part: u64, whole: u64, none: &str) -> Reading {
    if whole == 0 {
        Reading::missing(none)
    } else {
        known(quotient(exact(part), exact(whole)))
    }
}

fn count(number: u64) -> Reading {
    Reading::known(exact(number))
}

/// With six decimals, which is more than tables have; a sum of nothing is no -0.
fn known(value: f64) -> Reading {
    Reading::known((value * 1e6).round() / 1e6 + 0.0)
}

fn quotient(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn size(threads: &[&PathThread]) -> f64 {
    exact(threads.len() as u64)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn exact(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;

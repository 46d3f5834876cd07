//! The records of a packet path from its stored result, which has more than its log.
//!
//! In: a result. Out: of each of its packet paths the tables of each side and what was counted beside them. Figures of tables are
//! those of `weir axio`, unrounded. Not here: which table counts, the rules.

use weir_diagnose::{
    CountedFigures, PathLog, PathStage, Reading, StageRow, StageTable, WorkspaceFigures,
};
use weir_schema::{
    PacketPathOutcome, PacketPathWorkload, PathIteration, PathSide, PathThread, RunResult,
    StageFigures, Workload,
};

use weir_units::Nanos;

/// What a result says of a job that is a packet path.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecords {
    /// The job's name.
    pub job: String,
    /// Its records, or why it has none.
    pub records: Result<ResultRecords, String>,
}

/// What a result says of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRecords {
    /// Iterations that were asked for.
    pub iterations: u32,
    /// Bytes of a frame that the side receives most: an answer at a client, a request at a server.
    pub frame_bytes: u32,
    /// The side that recorded it.
    pub local: SideRecords,
    /// The other one, where the result has it too.
    pub remote: Option<SideRecords>,
}

/// What a result says of a side.
#[derive(Clone, Debug, PartialEq)]
pub struct SideRecords {
    /// Its tables.
    pub log: PathLog,
    /// What was counted beside each of them.
    pub counted: Vec<CountedFigures>,
}

/// What a result says of each of its packet paths, in the order of the plan.
pub fn records_of(result: &RunResult) -> Vec<JobRecords> {
    let jobs = result.plan.jobs().zip(result.jobs());
    let paths = jobs.filter_map(|((_, planned), done)| match &planned.workload {
        Workload::PacketPath(work) => Some(JobRecords {
            job: planned.name.clone(),
            records: path_records(work, done.packet_path()?),
        }),
        _ => None,
    });
    paths.collect()
}

/// What an outcome says of its path; otherwise why that is nothing.
fn path_records(
    work: &PacketPathWorkload,
    done: &PacketPathOutcome,
) -> Result<ResultRecords, String> {
    if done.only_stage.is_some() {
        return Err("it is of one stage alone, which says nothing of the others".to_owned());
    }
    let local = work.side.unwrap_or(PathSide::Client);
    let remote = match local {
        PathSide::Client => PathSide::Server,
        PathSide::Server => PathSide::Client,
    };
    let of = |side| side_records(done, work, side);
    let frame = match local {
        PathSide::Client => work.whole_response(),
        PathSide::Server => work.request_bytes,
    };
    Ok(ResultRecords {
        iterations: work.iterations,
        frame_bytes: work.frame_bytes(frame),
        local: of(local).ok_or("its packet path ended before its first iteration did")?,
        remote: of(remote),
    })
}

fn side_records(
    done: &PacketPathOutcome,
    work: &PacketPathWorkload,
    side: PathSide,
) -> Option<SideRecords> {
    let lost = lost_cpu_share(done);
    let mut records = SideRecords {
        log: PathLog {
            tables: Vec::new(),
            notes: Vec::new(),
        },
        counted: Vec::new(),
    };
    for iteration in &done.iterations {
        let threads = of_side(iteration, side);
        if threads.is_empty() {
            continue;
        }
        records.log.tables.push(table(&threads, work, side));
        records.counted.push(CountedFigures {
            lost_cpu_share: lost.clone(),
            ..counted(&threads, work, side)
        });
    }
    (!records.counted.is_empty()).then_some(records)
}

fn of_side(iteration: &PathIteration, side: PathSide) -> Vec<&PathThread> {
    let threads = iteration.threads.iter();
    threads.filter(|thread| thread.side == side).collect()
}

fn table(threads: &[&PathThread], work: &PacketPathWorkload, side: PathSide) -> StageTable {
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
    let stages = PathStage::ALL.map(|stage| {
        let all = if matches!(stage, PathStage::AppTx | PathStage::AppRx) {
            &apps
        } else {
            &dispatchers
        };
        row(all, stage, is_timed)
    });
    let end = match side {
        PathSide::Client => &stages[PathStage::DispRx as usize],
        // Its dispatchers send back themselves.
        PathSide::Server if work.echoes() => &stages[PathStage::NicTx as usize],
        PathSide::Server => &stages[PathStage::DispTx as usize],
    };
    StageTable {
        line: 1,
        throughput_mpps: end.throughput_mpps.clone(),
        pool_use: pool_use(&apps, work),
        workspaces: threads.iter().map(|thread| workspace(thread)).collect(),
        stages: stages.into(),
    }
}

fn row(threads: &[&PathThread], stage: PathStage, is_timed: bool) -> StageRow {
    let of = |thread: &PathThread| *figures(thread, stage);
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
    let has_stall = !matches!(stage, PathStage::NicTx | PathStage::NicRx);
    StageRow {
        throughput_mpps: known(rates),
        average_us: mean(StageFigures::mean_us),
        stall_us: match stage {
            // Messages are handled when they are there.
            PathStage::AppRx if is_timed => Reading::known(0.0),
            _ if has_stall => mean(StageFigures::mean_stall_us),
            _ => Reading::missing("the table has no such column"),
        },
    }
}

fn figures(thread: &PathThread, stage: PathStage) -> &StageFigures {
    match stage {
        PathStage::AppTx => &thread.application_tx,
        PathStage::AppRx => &thread.application_rx,
        PathStage::DispTx => &thread.dispatch_tx,
        PathStage::DispRx => &thread.dispatch_rx,
        PathStage::NicTx => &thread.link_tx,
        PathStage::NicRx => &thread.link_rx,
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
mod tests {
    use weir_diagnose::{Diagnosis, PathRecords, RuleState};
    use weir_schema::IdlePolicy;

    use super::*;
    use crate::axio::{AxioOptions, output};

    /// A thread that does everything, in an iteration of a second.
    fn thread(side: PathSide) -> PathThread {
        let stage = |packets: u64, busy: u64, stall: u64, polls: u64| StageFigures {
            packets,
            timed_packets: packets,
            polls,
            empty_polls: polls / 2,
            busy_ns: Nanos(busy),
            stall_ns: Nanos(stall),
            ..StageFigures::default()
        };
        PathThread {
            side,
            is_application: true,
            is_dispatcher: true,
            span_ns: Nanos(1_000_000_000),
            timed_ns: Nanos(1_000_000_000),
            timed_passes: 1_000_000,
            application_tx: stage(8_000_000, 80_000_000, 0, 1_000_000),
            application_rx: stage(8_000_000, 160_000_000, 0, 1_000_000),
            dispatch_tx: stage(8_000_000, 100_000_000, 60_000_000, 1_000_000),
            dispatch_rx: stage(8_000_000, 240_000_000, 200_000_000, 4_000_000),
            link_tx: stage(8_000_000, 60_000_000, 0, 1_000_000),
            pool_use: Some(4096.0),
            rounds_without_credit: 600_000,
            link_drops: Some(0),
            receive_queue_use: Some(0.1),
            ..PathThread::default()
        }
    }

    fn done(threads: Vec<PathThread>) -> PacketPathOutcome {
        PacketPathOutcome {
            iterations: vec![PathIteration { threads }; 2],
            idle: IdlePolicy::Spin,
            ..PacketPathOutcome::default()
        }
    }

    fn records(side: SideRecords) -> PathRecords {
        PathRecords {
            counted: side.counted,
            iterations: Some(2),
            socket: Some(0),
            ..PathRecords::of_log(side.log)
        }
    }

    fn diagnosis(client: PathThread) -> Diagnosis {
        let work = PacketPathWorkload::default();
        let done = done(vec![client]);
        Diagnosis::of(&records(
            side_records(&done, &work, PathSide::Client).unwrap(),
        ))
    }

    fn state<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a RuleState {
        let mut rules = diagnosis.rules.iter();
        &rules.find(|rule| rule.id == id).unwrap().state
    }

    fn holds(diagnosis: &Diagnosis, id: &str) -> bool {
        matches!(state(diagnosis, id), RuleState::Holds { .. })
    }

    #[test]
    fn tables_are_those_that_are_printed() {
        let work = PacketPathWorkload::default();
        let all = done(vec![thread(PathSide::Client), thread(PathSide::Server)]);
        let options = AxioOptions::default();
        let printed = output::table(&all.iterations[0], &work, options);
        let read = PathLog::read(&printed).unwrap();
        let own = side_records(&all, &work, PathSide::Client).unwrap().log;
        let pairs = |table: &StageTable| {
            let stages = table.stages.iter();
            let cells = stages.flat_map(|row| {
                [&row.throughput_mpps, &row.average_us, &row.stall_us].map(|cell| cell.value)
            });
            let more = [table.throughput_mpps.value, table.pool_use.value];
            cells.chain(more).collect::<Vec<_>>()
        };
        let (read, own) = (pairs(&read.tables[0]), pairs(&own.tables[0]));
        // No packets waited in the link, which the table prints as `n/a`.
        let link_rx = 3 * PathStage::NicRx as usize + 1;
        for (at, (read, own)) in read.into_iter().zip(own).enumerate() {
            match (read, own) {
                (Some(read), Some(own)) => assert!((read - own).abs() <= 0.0005, "{at}"),
                (read, own) => assert!(read == own || at == link_rx, "{at}: {read:?} {own:?}"),
            }
        }
    }

    #[test]
    fn what_a_log_does_not_say_decides_between_causes() {
        let of = |change: fn(&mut PathThread)| {
            let mut client = thread(PathSide::Client);
            change(&mut client);
            diagnosis(client)
        };
        // disp_rx waits 25 of 30 ns, bursts are of 4 packets of 32, and 60 % of the rounds lack credit.
        let plain = of(|_| ());
        assert_eq!(plain.critical.as_deref(), Some("disp_rx"));
        assert_eq!(plain.verdict.as_deref(), Some("D4"));
        assert!(holds(&plain, "D4") && holds(&plain, "D9"));
        // Neither the link nor a full ring: flushes are of 16 packets.
        for id in ["D1", "D7", "D8", "D10", "D11", "D18"] {
            assert_eq!(state(&plain, id), &RuleState::DoesNotHold, "{id}");
        }
        let credit = of(|t| t.rounds_without_credit = 100_000);
        assert_eq!(credit.verdict.as_deref(), Some("D9"));
        let full = of(|t| t.link_full = 3);
        assert!(holds(&full, "D7") && !holds(&plain, "D7"));
        let missed = of(|t| t.link_drops = Some(9));
        let queue = of(|t| t.receive_queue_use = Some(0.95));
        assert!(holds(&missed, "D10") && holds(&queue, "D10"));
        let small = of(|t| t.link_tx.polls = 4_000_000);
        assert!(holds(&small, "D8"));
        let slow = of(|t| t.intended = 9_000_000);
        assert!(holds(&slow, "D2"));
        assert_eq!(
            state(&plain, "D2"),
            &RuleState::NotEvaluated {
                reason: "a closed loop intends no rate".to_owned()
            }
        );
        let busy = of(|t| {
            t.rounds_without_credit = 0;
            t.dispatch_rx.polls = 500_000;
            t.dispatch_rx.busy_ns = Nanos(700_000_000);
            t.dispatch_rx.stall_ns = Nanos::ZERO;
        });
        assert!(holds(&busy, "D18"));
    }

    #[test]
    fn a_slow_path_is_not_idle_and_one_without_times_has_no_critical_stage() {
        let slow = diagnosis(PathThread {
            dispatch_rx: StageFigures {
                packets: 100,
                ..thread(PathSide::Client).dispatch_rx
            },
            ..thread(PathSide::Client)
        });
        assert_eq!(state(&slow, "D1"), &RuleState::DoesNotHold);
        let untimed = diagnosis(PathThread {
            timed_passes: 0,
            timed_ns: Nanos::ZERO,
            ..thread(PathSide::Client)
        });
        assert_eq!(untimed.critical, None);
        assert!(untimed.notes[0].ends_with("no pass of the run was timed"));
    }
}

//! Plans carried out over scripted jobs: order of starts, common release, ends, failures, hung
//! and panicking workers, signals, what the result keeps of all that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "tests"
)]

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::scripted::{
    BLOCK, Diary, Mark, Scene, Stage, counts, good, hang, interrupt, maker, named, play, scene,
    script,
};
use weir_run::execute::{LiveView, Signals};
use weir_schema::sample::JobSample;
use weir_schema::{
    Announcement, ByKind, ExitAll, Job, JobResult, Kind, MinimumRate, RunResult, Schedule,
    StartDelay, State, WorkerResult,
};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos};

const OK: i64 = BLOCK as i64;
const EIO: i64 = -5;

fn barrier(job: &mut Job) {
    job.start.barrier = true;
}

fn reads(worker: &WorkerResult) -> u64 {
    worker.kind(Kind::Read).map_or(0, |k| k.operations)
}

#[test]
fn a_barrier_waits_for_every_job_before_it_and_holds_every_job_after_it() {
    let diary = Diary::default();
    let result = play(vec![
        scene("a", 3, diary.script("1")).with(|j| j.clones = 2),
        scene("b", 3, diary.script("1")),
        scene("c", 3, diary.script("2")).with(barrier),
        scene("d", 3, diary.script("2")),
        scene("e", 3, diary.script("3")).with(barrier),
    ]);
    let order = diary.read();
    assert_eq!(order.len(), 18);
    assert!(order.is_sorted(), "{order:?}");
    let start = |name| named(&result, name).span.unwrap().start_ns;
    assert_eq!(start("c"), start("d"));
    assert!(named(&result, "b").span.unwrap().end_ns <= start("c"));
    assert!(result.jobs().all(|j| j.state == State::Done));
    assert!(result.complete);
}

#[test]
fn a_job_waits_for_the_one_it_names_and_for_no_other() {
    let (checked, loaded) = (Mark::default(), Mark::default());
    let (load_ended, other_waits) = (loaded.clone(), checked.clone());
    let check_begins = checked.clone();
    let result = play(vec![
        scene(
            "load",
            10,
            script(move |clone, op| {
                if clone == 1 && op == 9 {
                    load_ended.set();
                }
                OK
            }),
        )
        .with(|j| j.clones = 2),
        // Ends only after the waiting job has begun: nobody waits for it.
        scene("other", 1, script(move |_, _| other_waits.wait())),
        scene(
            "check",
            5,
            script(move |_, _| {
                check_begins.set();
                OK
            }),
        )
        .with(|j| j.start.wait_for = Some("load".to_owned())),
    ]);
    assert!(result.jobs().all(|j| j.state == State::Done), "{result:#?}");
    let end = named(&result, "load").span.unwrap().end_ns;
    assert!(named(&result, "check").span.unwrap().start_ns >= end);
    assert_eq!(loaded.wait(), OK);
}

#[test]
fn a_delay_counts_from_the_start_of_the_run() {
    let begun = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&begun);
    let zero = Instant::now();
    let late = scene(
        "late",
        1,
        script(move |_, _| {
            seen.store(
                u64::try_from(zero.elapsed().as_nanos()).unwrap(),
                Ordering::Relaxed,
            );
            OK
        }),
    )
    .with(|j| {
        j.start.delay = Some(StartDelay {
            min_ns: Nanos(60_000_000),
            max_ns: Nanos(60_000_000),
        });
    });
    let result = play(vec![scene("first", 1, good()), late]);
    assert!(begun.load(Ordering::Relaxed) >= 60_000_000);
    assert_eq!(counts(named(&result, "late")), [1]);
}

#[test]
fn workers_that_start_together_are_released_at_one_instant() {
    let result = play(vec![
        scene("a", 100, good()).with(|j| j.clones = 4),
        scene("b", 100, good()).with(|j| j.clones = 3),
    ]);
    let spans = result
        .jobs()
        .flat_map(JobResult::workers)
        .map(|w| w.span.unwrap());
    let starts: Vec<Nanos> = spans.map(|s| s.start_ns).collect();
    assert_eq!(starts.len(), 7);
    assert!(starts.iter().all(|&s| s == Nanos(0)), "{starts:?}");
    let numbers = result.jobs().flat_map(JobResult::workers).map(|w| w.number);
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn nobody_begins_before_the_last_one_is_ready() {
    let diary = Diary::default();
    let mut slow = scene("slow", 1, diary.script("work"));
    let ready = diary.clone();
    slow.attach = Some(script(move |_, _| {
        // Long enough for the others to begin, if they could.
        std::thread::sleep(Duration::from_millis(20));
        ready.note("attached");
        OK
    }));
    play(vec![scene("quick", 1, diary.script("work")), slow]);
    assert_eq!(diary.read(), ["attached", "work", "work"]);
}

#[test]
fn interval_series_are_aligned_and_add_up_to_the_operations() {
    let short = |j: &mut Job| j.load_mut().recording.interval_ns = Nanos(2_000_000);
    let mark = Mark::default();
    let (ends, goes_on) = (mark.clone(), mark);
    let result = play(vec![
        scene(
            "a",
            300,
            script(move |clone, op| {
                std::thread::sleep(Duration::from_micros(100));
                if clone == 1 && op == 299 {
                    ends.set();
                }
                OK
            }),
        )
        .with(short)
        .with(|j| j.clones = 2),
        scene(
            "b",
            50,
            script(move |_, op| if op == 49 { goes_on.wait() } else { OK }),
        )
        .with(short),
    ]);
    for job in result.jobs() {
        let series = |w: &WorkerResult| w.kind(Kind::Read).unwrap().series.clone();
        let mut full = Vec::new();
        for worker in job.workers() {
            let series = series(worker);
            let total: u64 = series.points().map(|p| p.operations).sum();
            assert_eq!(total, reads(worker));
            let whole = series.len() - usize::from(series.ends_partial());
            assert!(
                series
                    .points()
                    .take(whole)
                    .all(|p| p.length == Nanos(2_000_000))
            );
            full.push(whole);
        }
        assert!(full.windows(2).all(|p| p[0] == p[1]), "{full:?}");
    }
}

#[test]
fn the_overlap_rate_counts_what_was_done_while_all_ran() {
    // `a` does 1000 operations, waits until the run has looked twice, does one more and ends;
    // only after two further looks `b` does its 500.
    let looks = Arc::new(AtomicU32::new(0));
    let a_ended_at = Arc::new(AtomicU32::new(u32::MAX));
    let until = |looks: &AtomicU32, count: u32| {
        let begin = Instant::now();
        while looks.load(Ordering::Acquire) < count {
            if begin.elapsed() > Duration::from_secs(20) {
                return -i64::from(libc::ETIMEDOUT);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        OK
    };
    let (seen, ended) = (Arc::clone(&looks), Arc::clone(&a_ended_at));
    let a = scene(
        "a",
        1001,
        script(move |_, op| {
            if op < 1000 {
                return OK;
            }
            let waited = until(&seen, 2);
            ended.store(seen.load(Ordering::Acquire), Ordering::Release);
            waited
        }),
    );
    let (seen, ended) = (Arc::clone(&looks), Arc::clone(&a_ended_at));
    let b = scene(
        "b",
        500,
        script(move |_, op| {
            if op > 0 {
                return OK;
            }
            let begin = Instant::now();
            let mut last = u32::MAX;
            while last == u32::MAX && begin.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(1));
                last = ended.load(Ordering::Acquire);
            }
            until(&seen, last.saturating_add(2))
        }),
    );
    let mut observer = |view: &LiveView<'_>| {
        let quarters = u32::try_from(view.elapsed_ns.0 / 250_000_000).unwrap();
        looks.fetch_max(quarters, Ordering::AcqRel);
    };
    let stage = Stage {
        observer: Some(&mut observer),
        ..Stage::default()
    };
    let result = stage.play(vec![vec![a, b]]);
    let rates = &result.groups[0].rates[0];
    assert_eq!(rates.operations, 1501);
    let together = named(&result, "a").span.unwrap().length().0 as f64 / 1e9;
    let alone = named(&result, "b").span.unwrap().length().0 as f64 / 1e9;
    let overlap = rates.overlap_ops_per_s.unwrap().0 * together;
    assert!((999.9..=1001.1).contains(&overlap), "{overlap}");
    let whole = rates.ops_per_s.0 * alone;
    assert!((whole - 1501.0).abs() < 0.1, "{whole}");
}

#[test]
fn one_failed_job_leaves_the_others_and_their_numbers_alone() {
    let result = play(vec![
        scene("good", 1000, good()),
        scene("bad", 1000, script(|_, op| if op == 7 { EIO } else { OK })),
        scene("after", 10, good()).with(barrier),
    ]);
    assert_eq!(counts(named(&result, "good")), [1000]);
    assert_eq!(counts(named(&result, "after")), [10]);
    let bad = named(&result, "bad");
    assert_eq!((bad.state, counts(bad)), (State::Failed, vec![7]));
    let failure = bad.failure.as_ref().unwrap();
    assert_eq!((failure.cause.as_str(), failure.errno), ("io", Some(5)));
    assert_eq!(
        failure.message,
        "read of 4096 bytes at offset 28672 of scripted-0: Input/output error"
    );
    assert_eq!(failure.offset_bytes, Some(Bytes(28672)));
    let read = bad.workers()[0].kind(Kind::Read).unwrap();
    assert_eq!(read.errors.get(&5.into()), Some(&1));
    assert_eq!(read.lost, 0);
    assert!(result.complete);
    assert_eq!(result.failed_jobs(), 1);
}

#[test]
fn a_failing_clone_leaves_its_siblings_alone() {
    let act = script(|clone, op| if clone == 1 && op == 3 { -28 } else { OK });
    let result = play(vec![scene("j", 50, act).with(|j| j.clones = 3)]);
    let job = named(&result, "j");
    assert_eq!(counts(job), [50, 3, 50]);
    let states: Vec<State> = job.workers().iter().map(|w| w.state).collect();
    assert_eq!(states, [State::Done, State::Failed, State::Done]);
    let message = &job.failure.as_ref().unwrap().message;
    assert!(
        message.contains("scripted-1: No space left on device"),
        "{message}"
    );
}

#[test]
fn a_job_that_cannot_be_made_ready_fails_alone() {
    let mut missing = scene("missing", 10, good());
    missing.refuse = Some("there is no such card");
    let result = play(vec![
        missing,
        scene("there", 10, good()),
        scene("next", 10, good()).with(|j| j.start.wait_for = Some("missing".to_owned())),
    ]);
    let failed = named(&result, "missing");
    assert_eq!((failed.state, failed.span), (State::Failed, None));
    assert_eq!(
        failed.failure.as_ref().unwrap().message,
        "there is no such card"
    );
    assert_eq!(counts(named(&result, "there")), [10]);
    assert_eq!(counts(named(&result, "next")), [10]);
}

#[test]
fn a_panicking_worker_is_a_failure_with_its_text_and_its_numbers() {
    let act = script(|clone, op| {
        if clone == 1 && op == 20 {
            std::thread::sleep(Duration::from_millis(2));
            panic!("scripted panic");
        }
        OK
    });
    let result = play(vec![
        scene("p", 40, act).with(|j| j.clones = 2),
        scene("other", 40, good()),
    ]);
    let job = named(&result, "p");
    assert_eq!(counts(job), [40, 20]);
    assert_eq!(job.state, State::Failed);
    let failure = job.failure.as_ref().unwrap();
    assert_eq!(failure.cause, "panic");
    assert_eq!(failure.message, "the worker panicked: scripted panic");
    assert!(job.workers()[1].span.unwrap().length() >= Nanos(2_000_000));
    assert_eq!(counts(named(&result, "other")), [40]);
}

#[test]
fn a_hung_worker_is_left_behind_with_its_place_and_its_numbers() {
    let act = script(|clone, op| {
        if clone == 1 && op == 5 {
            hang()
        }
        OK
    });
    let stage = Stage {
        grace: Duration::from_millis(50),
        ..Stage::default()
    };
    let bounded = scene("h", 1 << 40, act).with(|j| {
        j.clones = 2;
        j.load_mut().bounds.runtime_ns = Some(Nanos(20_000_000));
    });
    let result = stage.play(vec![vec![bounded, scene("next", 9, good()).with(barrier)]]);
    let job = named(&result, "h");
    assert_eq!(job.state, State::Hung);
    let (fine, hung) = (&job.workers()[0], &job.workers()[1]);
    assert_eq!((fine.state, hung.state), (State::Done, State::Hung));
    assert!(reads(fine) > 0);
    assert_eq!(reads(hung), 5);
    // Its time runs until it was left behind, so that its rates mean something.
    assert!(hung.span.unwrap().length() >= Nanos(20_000_000));
    let series = &hung.kind(Kind::Read).unwrap().series;
    let covered: u64 = series.points().map(|p| p.length.0).sum();
    assert!(covered >= 20_000_000, "{covered}");
    let failure = job.failure.as_ref().unwrap();
    assert_eq!(failure.cause, "hung");
    assert_eq!(failure.offset_bytes, Some(Bytes(5 * u64::from(BLOCK))));
    assert!(
        failure.message.contains("scripted-1 at offset 20480"),
        "{}",
        failure.message
    );
    assert_eq!(counts(named(&result, "next")), [9]);
}

#[test]
fn a_slow_worker_whose_operations_still_come_back_is_not_left_behind() {
    let stage = Stage {
        grace: Duration::from_millis(10),
        ..Stage::default()
    };
    // The second one is in flight when the time is up, and comes back after the grace.
    let act = script(|_, _| {
        std::thread::sleep(Duration::from_millis(300));
        OK
    });
    let slow = scene("slow", 1 << 40, act)
        .with(|j| j.load_mut().bounds.runtime_ns = Some(Nanos(400_000_000)));
    let result = stage.play(vec![vec![slow]]);
    let job = named(&result, "slow");
    assert_eq!((job.state, counts(job)), (State::Done, vec![2]));
}

#[test]
fn an_operation_that_never_came_back_is_counted_as_lost() {
    let stage = Stage {
        grace: Duration::from_millis(20),
        ..Stage::default()
    };
    let act = script(|_, op| if op == 5 { hang() } else { OK });
    let bounded =
        scene("h", 100, act).with(|j| j.load_mut().bounds.runtime_ns = Some(Nanos(10_000_000)));
    let result = stage.play(vec![vec![bounded]]);
    let read = named(&result, "h").workers()[0]
        .kind(Kind::Read)
        .unwrap()
        .clone();
    assert_eq!((read.issued, read.operations, read.lost), (6, 5, 1));
}

fn at_least(ops_per_s: f64) -> MinimumRate {
    MinimumRate {
        bytes_per_s: ByKind::new(),
        ops_per_s: [(Kind::Read.into(), Iops(ops_per_s))].into(),
        cycle_ns: Nanos(100_000_000),
    }
}

#[test]
fn the_minimum_rate_is_watched_without_completions_and_a_hung_worker_left_behind() {
    let stage = Stage {
        grace: Duration::from_millis(50),
        ..Stage::default()
    };
    // Neither a runtime nor a signal ends this job.
    let act = script(|_, op| if op == 3 { hang() } else { OK });
    let stalled =
        scene("stalled", 1 << 40, act).with(|j| j.load_mut().minimum_rate = Some(at_least(1.0)));
    let result = stage.play(vec![vec![stalled, scene("good", 5, good())]]);
    let job = named(&result, "stalled");
    assert_eq!((job.state, counts(job)), (State::Hung, vec![3]));
    let failure = job.failure.as_ref().unwrap();
    assert_eq!(
        (failure.cause.as_str(), failure.errno),
        ("minimum_rate", Some(5))
    );
    assert_eq!(
        failure.message,
        "read rate below the minimum: 0 of 1 operations per second; nothing comes back from \
         scripted-0, last asked at offset 12288"
    );
    assert_eq!(counts(named(&result, "good")), [5]);
}

#[test]
fn a_worker_below_the_minimum_rate_ends_with_what_it_did() {
    let slow = script(|_, _| {
        std::thread::sleep(Duration::from_millis(5));
        OK
    });
    let result = play(vec![
        scene("slow", 1 << 40, slow).with(|j| j.load_mut().minimum_rate = Some(at_least(1e9))),
    ]);
    let job = named(&result, "slow");
    assert_eq!(job.state, State::Failed);
    assert!(counts(job)[0] > 0);
    assert_eq!(job.failure.as_ref().unwrap().cause, "minimum_rate");
}

#[test]
fn a_generator_that_cannot_keep_up_is_said_to_be_the_limit() {
    let open_loop = |j: &mut Job| {
        j.load_mut().pacing.schedule = Some(Schedule::OpsPerSecond {
            limit_per_s: [(Kind::Read.into(), Iops(100_000.0))].into(),
            poisson: false,
            open_loop: true,
            ignore_thinktime: false,
        });
    };
    let mut late = scene("late", 50, good()).with(open_loop);
    late.prepare = Some(|| std::thread::sleep(Duration::from_micros(100)));
    let result = play(vec![late]);
    let worker = &named(&result, "late").workers()[0];
    assert!(
        worker.late_issues.unwrap() >= 40,
        "{:?}",
        worker.late_issues
    );
    assert!(
        result.warnings.iter().any(|w| w.id == "generator-limited"),
        "{:?}",
        result.warnings
    );
}

#[test]
fn the_first_to_end_stops_the_others_of_its_group() {
    let (first, begun) = (Mark::default(), Mark::default());
    let (ended, begins, waits) = (first.clone(), begun.clone(), begun);
    let ends_all = scene(
        "ends",
        10,
        script(move |_, op| {
            if op == 9 {
                let seen = waits.wait();
                ended.set();
                return seen;
            }
            OK
        }),
    )
    .with(|j| j.end.exit_all = Some(ExitAll::Group));
    let endless = scene(
        "endless",
        1 << 40,
        script(move |_, _| {
            begins.set();
            OK
        }),
    );
    let elsewhere = scene(
        "elsewhere",
        1000,
        script(move |_, op| if op == 0 { first.wait() } else { OK }),
    );
    let result = Stage::default().play(vec![vec![ends_all, endless], vec![elsewhere]]);
    assert_eq!(counts(named(&result, "ends")), [10]);
    let stopped = named(&result, "endless");
    assert_eq!((stopped.state, &stopped.failure), (State::Stopped, &None));
    assert!(counts(stopped)[0] > 0);
    assert_eq!(counts(named(&result, "elsewhere")), [1000]);
}

#[test]
fn the_first_to_end_can_stop_everything_that_is_still_to_come() {
    let result = play(vec![
        scene("ends", 10, good()).with(|j| j.end.exit_all = Some(ExitAll::Everything)),
        scene("endless", 1 << 40, good()),
        scene("later", 10, good()).with(barrier),
    ]);
    assert_eq!(named(&result, "endless").state, State::Stopped);
    let later = named(&result, "later");
    assert_eq!((later.state, later.workers().len()), (State::NotStarted, 0));
}

#[test]
fn only_a_failure_stops_the_group_where_the_plan_says_so() {
    let on_error = |j: &mut Job| j.end.exit_all = Some(ExitAll::GroupOnError);
    let result = Stage::default().play(vec![
        vec![
            scene("good", 10, good()).with(on_error),
            scene("stays", 20, good()).with(barrier),
        ],
        vec![
            scene("bad", 10, script(|_, op| if op == 2 { EIO } else { OK })).with(on_error),
            scene("goes", 1 << 40, good()),
        ],
    ]);
    assert_eq!(counts(named(&result, "stays")), [20]);
    assert_eq!(named(&result, "bad").state, State::Failed);
    assert_eq!(named(&result, "goes").state, State::Stopped);
}

#[test]
fn a_signal_ends_the_run_in_order_and_marks_it() {
    let signals = Arc::new(Signals::default());
    let raise = Arc::clone(&signals);
    let act = script(move |_, op| {
        if op == 100 {
            interrupt(&raise, 2, 1);
        }
        OK
    });
    let stage = Stage {
        signals,
        ..Stage::default()
    };
    let result = stage.play(vec![vec![
        scene("runs", 1 << 40, act),
        scene("later", 10, good()).with(barrier),
    ]]);
    assert!(!result.complete);
    assert_eq!(result.ended_by.map(|e| e.signal), Some(2));
    let runs = named(&result, "runs");
    assert_eq!((runs.state, &runs.failure), (State::Stopped, &None));
    assert!(counts(runs)[0] >= 100);
    assert_eq!(named(&result, "later").state, State::NotStarted);
    let text = result.to_json().unwrap();
    let again = weir_schema::RunResult::from_json(&text).unwrap();
    assert!(again == result, "the result differs after a round trip");
}

#[test]
fn who_watches_can_end_the_run_as_its_time_would() {
    let act = script(|_, _| OK);
    let mut observer = |view: &LiveView<'_>| {
        if view.jobs().iter().any(|job| job.operations >= 100) {
            view.end_early();
        }
    };
    let stage = Stage {
        observer: Some(&mut observer),
        ..Stage::default()
    };
    let result = stage.play(vec![vec![
        scene("runs", 1 << 40, act),
        scene("later", 10, good()).with(barrier),
    ]]);
    assert!(result.complete && result.ended_by.is_none());
    let runs = named(&result, "runs");
    assert_eq!((runs.state, &runs.failure), (State::Done, &None));
    assert!(counts(runs)[0] >= 100);
    assert_eq!(named(&result, "later").state, State::NotStarted);
    let mut warnings = result.warnings.iter();
    let early = warnings.find(|w| w.id == "ended-early").unwrap();
    assert!(
        early.cause.contains(", before 1 job had started: "),
        "{}",
        early.cause
    );
}

#[test]
fn a_second_signal_ends_the_run_at_once_and_names_who_was_left_behind() {
    let signals = Arc::new(Signals::default());
    let raise = Arc::clone(&signals);
    let act = script(move |_, op| {
        if op == 4 {
            interrupt(&raise, 15, 2);
            hang()
        }
        OK
    });
    let stage = Stage {
        signals,
        grace: Duration::from_secs(3600),
        ..Stage::default()
    };
    let result = stage.play(vec![vec![scene("h", 100, act)]]);
    let job = named(&result, "h");
    assert_eq!((job.state, counts(job)), (State::Hung, vec![4]));
    let message = &job.failure.as_ref().unwrap().message;
    assert!(
        message.starts_with("left behind at the second signal"),
        "{message}"
    );
    assert_eq!(result.ended_by.map(|e| e.signal), Some(15));
}

#[test]
fn a_worker_without_targets_is_left_behind_in_its_work() {
    for (signals_at_once, grace, message) in [
        (
            2,
            Duration::from_secs(3600),
            "left behind at the second signal, in the work of its thread",
        ),
        (
            1,
            Duration::from_millis(50),
            "did not come back from the work of its thread for ",
        ),
    ] {
        let signals = Arc::new(Signals::default());
        let raise = Arc::clone(&signals);
        let act = script(move |_, _| {
            interrupt(&raise, 15, signals_at_once);
            hang()
        });
        let stage = Stage {
            signals,
            grace,
            ..Stage::default()
        };
        let mut hangs = scene("h", 100, act);
        hangs.has_targets = false;
        let result = stage.play(vec![vec![hangs]]);
        let failure = named(&result, "h").failure.as_ref().unwrap();
        assert_eq!(failure.offset_bytes, None);
        assert!(failure.message.starts_with(message), "{}", failure.message);
        assert!(!failure.message.contains("device"), "{}", failure.message);
    }
}

#[test]
fn a_signal_during_the_preparation_of_a_worker_does_not_wait_for_it() {
    let signals = Arc::new(Signals::default());
    let raise = Arc::clone(&signals);
    let mut stuck = scene("stuck", 10, good());
    stuck.attach = Some(script(move |_, _| {
        interrupt(&raise, 2, 1);
        hang()
    }));
    let stage = Stage {
        signals,
        grace: Duration::from_millis(20),
        ..Stage::default()
    };
    let result = stage.play(vec![vec![scene("ready", 10, good()), stuck]]);
    assert_eq!(named(&result, "stuck").state, State::Hung);
    let ready = named(&result, "ready");
    assert_eq!((ready.state, counts(ready)), (State::Stopped, vec![0]));
    assert!(!result.complete);
}

#[test]
fn the_live_view_shows_running_jobs_and_ends_with_them() {
    let looks = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&looks);
    let act = script(move |_, op| {
        let begin = Instant::now();
        while op == 10 && seen.load(Ordering::Acquire) == 0 {
            if begin.elapsed() > Duration::from_secs(20) {
                return -i64::from(libc::ETIMEDOUT);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        OK
    });
    let mut views = Vec::new();
    let mut observer = |view: &LiveView<'_>| {
        looks.fetch_add(1, Ordering::AcqRel);
        if !view.jobs().is_empty() {
            views.push((view.jobs(), view.result()));
        }
    };
    let stage = Stage {
        observer: Some(&mut observer),
        ..Stage::default()
    };
    stage.play(vec![vec![scene("watched", 20, act).with(|j| j.clones = 2)]]);
    let (jobs, so_far) = views.last().unwrap();
    assert_eq!(jobs[0].name, "watched");
    assert_eq!(jobs[0].workers, 2);
    assert!(jobs[0].operations <= 40);
    assert!(jobs[0].in_flight <= 2);
    assert!(!so_far.complete);
    assert_eq!(named(so_far, "watched").workers().len(), 2);
}

#[test]
fn the_result_so_far_holds_what_is_done_and_names_what_runs_and_waits() {
    let looked = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&looked);
    let act = script(move |_, op| {
        let begin = Instant::now();
        while op == 10 && seen.load(Ordering::Acquire) == 0 {
            if begin.elapsed() > Duration::from_secs(20) {
                return -i64::from(libc::ETIMEDOUT);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        OK
    });
    let mut partial = None;
    let mut observer = |view: &LiveView<'_>| {
        if view
            .jobs()
            .iter()
            .any(|j| j.name == "second" && j.operations == 10)
        {
            partial = Some(view.result());
            looked.store(1, Ordering::Release);
        }
    };
    let stage = Stage {
        observer: Some(&mut observer),
        ..Stage::default()
    };
    let first = scene("first", 20, script(|_, _| OK));
    let third = scene("third", 20, script(|_, _| OK)).with(barrier);
    let result = stage.play(vec![vec![
        first,
        scene("second", 20, act).with(barrier),
        third,
    ]]);
    let partial = partial.unwrap();
    let state = |name| named(&partial, name).state;
    assert_eq!(state("first"), State::Done);
    assert_eq!(state("second"), State::Running);
    assert_eq!(state("third"), State::NotStarted);
    let second = &named(&partial, "second").workers()[0];
    let reads = &second.kinds[0];
    assert_eq!((reads.operations, reads.issued - reads.operations), (10, 1));
    assert_eq!(reads.stage(weir_schema::Stage::Lat).unwrap().count(), 10);
    assert!(second.span.unwrap().length().0 > 0 && second.state == State::Running);
    assert!(result.complete && result.jobs().all(|j| j.state == State::Done));
}

#[test]
fn a_minimum_rate_asks_only_for_kinds_that_the_job_does() {
    let both = MinimumRate {
        bytes_per_s: ByKind::from(Kind::DATA.map(|kind| (kind.into(), BytesPerSec(1.0)))),
        ..at_least(1.0)
    };
    let slow = script(|_, _| {
        std::thread::sleep(Duration::from_millis(1));
        OK
    });
    let reader = scene("reader", 1 << 40, slow).with(|j| {
        j.load_mut().minimum_rate = Some(both);
        j.load_mut().bounds.runtime_ns = Some(Nanos(2_400_000_000));
    });
    assert_eq!(named(&play(vec![reader]), "reader").state, State::Done);
}

/// A job that runs while another, `next`, is made ready: it has begun by then.
fn while_making(runs: Scene, begun: Mark, mut next: Vec<Scene>) -> Vec<Scene> {
    for scene in &mut next {
        scene.job.start.wait_for = Some("opener".to_owned());
    }
    let opener = scene("opener", 1, script(move |_, _| begun.wait()));
    [runs, opener].into_iter().chain(next).collect()
}

/// Carries scenes out; the mark is set as soon as the run is seen to be so.
fn play_and_mark(
    stage: Stage<'_>,
    scenes: Vec<Scene>,
    mark: &Mark,
    is_so: impl Fn(&LiveView<'_>) -> bool,
) -> RunResult {
    let mut observer = |view: &LiveView<'_>| {
        if is_so(view) {
            mark.set();
        }
    };
    let stage = Stage {
        observer: Some(&mut observer),
        ..stage
    };
    stage.play(vec![scenes])
}

fn first_has_ended(view: &LiveView<'_>) -> bool {
    view.ended().iter().any(|end| end.index == 0)
}

#[test]
fn the_minimum_rate_is_watched_while_another_job_is_made_ready() {
    let (begun, ended) = (Mark::default(), Mark::default());
    let (begins, waits) = (begun.clone(), ended.clone());
    let act = script(move |_, op| {
        begins.set();
        if op == 3 { hang() } else { OK }
    });
    let stalled =
        scene("stalled", 1 << 40, act).with(|j| j.load_mut().minimum_rate = Some(at_least(1.0)));
    let mut slow = scene("slow", 5, good());
    slow.make = Some(maker(move |_| waits.wait_making()));
    let stage = Stage {
        grace: Duration::from_millis(50),
        ..Stage::default()
    };
    let scenes = while_making(stalled, begun, vec![slow]);
    let result = play_and_mark(stage, scenes, &ended, first_has_ended);
    let job = named(&result, "stalled");
    assert_eq!(job.failure.as_ref().unwrap().cause, "minimum_rate");
    assert_eq!(job.state, State::Hung);
    let slow = named(&result, "slow");
    assert_eq!((slow.state, counts(slow)), (State::Done, vec![5]));
}

#[test]
fn a_hung_worker_is_left_behind_while_those_of_another_job_get_ready() {
    let (begun, ended) = (Mark::default(), Mark::default());
    let (begins, waits) = (begun.clone(), ended.clone());
    let act = script(move |_, op| {
        begins.set();
        if op == 5 { hang() } else { OK }
    });
    let hangs =
        scene("hangs", 100, act).with(|j| j.load_mut().bounds.runtime_ns = Some(Nanos(20_000_000)));
    let in_time = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&in_time);
    let mut slow = scene("slow", 5, good());
    slow.attach = Some(script(move |_, _| {
        let waited = waits.wait();
        seen.store(waited == OK, Ordering::Relaxed);
        waited
    }));
    let stage = Stage {
        grace: Duration::from_millis(20),
        ..Stage::default()
    };
    let scenes = while_making(hangs, begun, vec![slow]);
    let result = play_and_mark(stage, scenes, &ended, first_has_ended);
    assert!(in_time.load(Ordering::Relaxed), "nobody looked meanwhile");
    assert_eq!(named(&result, "hangs").state, State::Hung);
    assert_eq!(counts(named(&result, "slow")), [5]);
}

#[test]
fn a_job_is_sampled_while_another_is_made_ready() {
    let (begun, sampled) = (Mark::default(), Mark::default());
    let (begins, waits) = (begun.clone(), sampled.clone());
    let act = script(move |_, _| {
        begins.set();
        OK
    });
    let runs =
        scene("runs", 1 << 40, act).with(|j| j.load_mut().recording.interval_ns = Nanos(1_000_000));
    let making = Arc::new(AtomicBool::new(false));
    let makes = Arc::clone(&making);
    let mut slow = scene("slow", 5, good()).with(|j| j.end.exit_all = Some(ExitAll::Group));
    slow.make = Some(maker(move |_| {
        makes.store(true, Ordering::Release);
        waits.wait_making()
    }));
    let before = Cell::new(None);
    let has_five_more = |view: &LiveView<'_>| {
        let result = view.result();
        let workers = named(&result, "runs").workers();
        let series = workers.iter().filter_map(|w| w.kind(Kind::Read));
        let intervals = series.map(|k| k.series.len()).sum::<usize>();
        if before.get().is_none() && making.load(Ordering::Acquire) {
            before.set(Some(intervals));
        }
        before.get().is_some_and(|b| intervals >= b + 5)
    };
    let scenes = while_making(runs, begun, vec![slow]);
    let result = play_and_mark(Stage::default(), scenes, &sampled, has_five_more);
    assert_eq!(counts(named(&result, "slow")), [5]);
    assert_eq!(named(&result, "runs").state, State::Stopped);
}

#[test]
fn a_signal_while_a_job_is_made_ready_ends_those_that_run() {
    let signals = Arc::new(Signals::default());
    let (begun, ended) = (Mark::default(), Mark::default());
    let (begins, waits) = (begun.clone(), ended.clone());
    let runs = scene(
        "runs",
        1 << 40,
        script(move |_, _| {
            begins.set();
            OK
        }),
    );
    let mut gives_up = scene("gives-up", 5, good());
    gives_up.make = Some(maker(move |context| {
        interrupt(context.signals, 2, 1);
        waits.wait_making()?;
        Err(weir_run::failure("interrupted", None, "interrupted"))
    }));
    let mut next = scene("next", 5, good());
    next.make = Some(maker(|_| {
        Err(weir_run::failure("test", None, "made after the signal"))
    }));
    let stage = Stage {
        signals,
        ..Stage::default()
    };
    let scenes = while_making(runs, begun, vec![gives_up, next]);
    let result = play_and_mark(stage, scenes, &ended, first_has_ended);
    let state = |name| named(&result, name).state;
    assert_eq!(state("runs"), State::Stopped);
    assert_eq!(state("gives-up"), State::NotStarted);
    assert_eq!(state("next"), State::NotStarted);
    assert_eq!(result.ended_by.map(|e| e.signal), Some(2));
}

#[test]
fn what_a_group_stops_while_it_is_made_ready_does_not_begin() {
    let (begun, making, ended) = (Mark::default(), Mark::default(), Mark::default());
    let (begins, seen) = (begun.clone(), making.clone());
    let ends_all = scene(
        "ends",
        10,
        script(move |_, op| {
            begins.set();
            if op == 9 { seen.wait() } else { OK }
        }),
    )
    .with(|j| j.end.exit_all = Some(ExitAll::Group));
    let mut made = scene("made", 1 << 40, good());
    let waits = ended.clone();
    made.make = Some(maker(move |_| {
        making.set();
        waits.wait_making()
    }));
    let mut after = scene("after", 1 << 40, good());
    after.make = Some(maker(|_| {
        Err(weir_run::failure("test", None, "made after the end"))
    }));
    let mut scenes = while_making(ends_all, begun, vec![made, after]);
    scenes.push(scene("last", 5, good()).with(barrier));
    let result = play_and_mark(Stage::default(), scenes, &ended, first_has_ended);
    assert_eq!(counts(named(&result, "ends")), [10]);
    let stopped = named(&result, "made");
    assert_eq!((stopped.state, counts(stopped)), (State::Stopped, vec![0]));
    assert_eq!(named(&result, "after").state, State::NotStarted);
    assert_eq!(counts(named(&result, "last")), [5]);
}

#[test]
fn no_job_of_a_batch_begins_before_all_are_made_ready_in_their_order() {
    let diary = Diary::default();
    let makes = |name: &'static str| {
        let mut scene = scene(name, 1, diary.script("runs"));
        let diary = diary.clone();
        scene.make = Some(maker(move |context| {
            diary.note(format!("{name} is made"));
            for files in [1, 2] {
                (context.announce)(&Announcement::LayingOut {
                    job: name.to_owned(),
                    files,
                    bytes: Bytes(0),
                });
            }
            Ok(())
        }));
        scene
    };
    // Who announces need not be told on several threads.
    let announced = RefCell::new(Vec::new());
    let announce = |announcement: &Announcement| {
        if let Announcement::LayingOut { job, files, .. } = announcement {
            announced.borrow_mut().push(format!("{job} {files}"));
        }
    };
    let stage = Stage {
        announce: &announce,
        ..Stage::default()
    };
    stage.play(vec![vec![makes("a"), makes("b")]]);
    let order = diary.read();
    assert_eq!(order, ["a is made", "b is made", "runs", "runs"]);
    let order = ["a 1", "a 2", "b 1", "b 2"];
    assert_eq!(announced.into_inner(), order);
}

#[test]
fn a_panic_while_a_job_is_made_ready_is_its_failure() {
    let mut panics = scene("panics", 5, good());
    panics.make = Some(maker(|_| panic!("scripted panic")));
    let result = play(vec![panics, scene("other", 5, good())]);
    let failure = named(&result, "panics").failure.as_ref().unwrap();
    assert_eq!(failure.cause, "panic");
    assert!(
        failure.message.contains("scripted panic"),
        "{}",
        failure.message
    );
    assert_eq!(counts(named(&result, "other")), [5]);
}

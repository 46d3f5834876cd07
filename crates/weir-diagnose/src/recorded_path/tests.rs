//! The figures of a result decide between causes that a log leaves open.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_schema::IdlePolicy;

use super::*;
use crate::RuleState;

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

fn diagnosis(client: PathThread) -> Diagnosis {
    let path = RecordedPath::of(&PacketPathWorkload::default(), &done(vec![client])).unwrap();
    let beside = PathContext {
        iterations: Some(2),
        socket: Some(0),
        ..PathContext::default()
    };
    Diagnosis::of(&path.local, &beside)
}

fn state<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a RuleState {
    let mut rules = diagnosis.rules.iter();
    &rules.find(|rule| rule.id == id).unwrap().state
}

fn holds(diagnosis: &Diagnosis, id: &str) -> bool {
    matches!(state(diagnosis, id), RuleState::Holds { .. })
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
fn a_window_is_not_what_holds_a_client_back_whose_server_is_busy() {
    let verdicts = |busy_ns: u64| {
        let mut server = thread(PathSide::Server);
        server.application_rx.busy_ns = Nanos(busy_ns);
        let both = done(vec![thread(PathSide::Client), server]);
        let path = RecordedPath::of(&PacketPathWorkload::default(), &both).unwrap();
        let all = path.diagnoses(&PathContext::default());
        all.iter().map(|of| holds(of, "D4")).collect::<Vec<bool>>()
    };
    assert_eq!(verdicts(160_000_000), [true, false]);
    assert_eq!(verdicts(990_000_000), [false; 2]);
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

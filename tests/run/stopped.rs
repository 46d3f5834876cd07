//! Ranks that stop: the others report without them.

mod slow;

use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::ranks::{LONG, numbers, stored, writes};
use crate::result;
use crate::stage::ranks::{RankProcesses, TIMEOUT, rank_of, silence_of};
use crate::stage::{Running, Stage, each_launcher, launch, until};

const RANKS: usize = 4;

/// Each rank in turn is stopped; the others report their part, and which is lost.
fn each_rank_is_left_out(command: impl Fn(&Stage, &[&str]) -> Command) {
    for rank in 0..RANKS {
        let stage = Stage::in_memory();
        let file = stage.file("j.fio", LONG);
        let words = ["run", "--rank-timeout", TIMEOUT, "--output=o.json", &file];
        let running = Running::start(command(&stage, &words));
        until("all ranks write", || {
            (0..RANKS).all(|r| writes(&stage, &r.to_string()))
        });
        let said = RankProcesses::of(running, RANKS).end_without(rank);
        if rank == 0 {
            said.err(&format!("error: {}", silence_of(0)));
            continue;
        }
        let said = said.code(1).out("  FAILED    rank ");
        let result = stored(&stage);
        assert!(!result.complete && result.ended_by.is_none(), "{said}");
        let left: Vec<_> = (0..RANKS).filter(|r| *r != rank).collect();
        let left: Vec<_> = left.iter().map(|r| u32::try_from(*r).unwrap()).collect();
        assert_eq!(numbers(&result), left);
        assert!(result.ranks.iter().all(|r| r.operations > 0), "{said}");
        for job in result.jobs() {
            let failure = job.failure.as_ref().unwrap();
            assert_eq!(failure.cause, "rank");
            assert!(failure.message.starts_with(&silence_of(rank)), "{said}");
        }
    }
}

#[test]
fn a_process_that_stops_before_it_has_said_a_word_is_missed() {
    let stage = Stage::in_memory();
    let file = stage.file("j.fio", LONG);
    let words = ["run", "--ranks=3", "--rank-timeout", TIMEOUT, &file];
    let running = Running::start(stage.weir(&words));
    // Before it runs the program the first rank waits for it in the kernel.
    let last = || {
        let mut children = running.children().into_iter();
        children.find(|process| rank_of(*process) == Some(2))
    };
    until("the last process runs", || last().is_some());
    kill_process(last().unwrap(), Signal::STOP).unwrap();
    let (said, has_ended) = running.end_within(Duration::from_secs(12));
    assert!(has_ended, "it goes on: {said}");
    said.code(1).err(&silence_of(2));
}

#[test]
fn a_time_out_without_ranks_is_refused() {
    let stage = Stage::new();
    let file = stage.file("j.fio", crate::SMALL);
    for (words, text) in [
        (["--rank-timeout=3"].as_slice(), "it is for several ranks"),
        (&["--ranks=2", "--rank-timeout=0"], "seconds above 0"),
    ] {
        let words = [&["run"], words, &[&file]].concat();
        stage.say(&words).code(2).silent().err(text);
    }
}

#[test]
fn nothing_counts_as_done_while_the_process_was_stopped() {
    let stage = Stage::in_memory();
    // As much as a file holds, so that it has begun when the file is there.
    let text = "[a]\nioengine=psync\nfilename=data\nsize=1m\nbs=4k\nrw=write\ntime_based=1\n\
                runtime=1h\n";
    let file = stage.file("j.fio", text);
    let running = Running::start(stage.weir(&["run", "--format=json", &file]));
    until("it writes", || {
        std::path::Path::new(&stage.path("data")).exists()
    });
    running.works_for(20);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1500));
    running.signal(Signal::CONT);
    running.works_for(20);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    let result = result(&said);
    let series = &result.jobs().next().unwrap().workers()[0].kinds[0].series;
    let still = series.points().filter(|point| point.operations == 0);
    let still: u64 = still.map(|point| point.length.0).sum();
    // Of 1.5 s all but the intervals in which it was stopped and went on.
    assert!(still >= 900_000_000, "{still} ns: {said}");
    assert!(result.warnings.iter().any(|w| w.id == "stopped"), "{said}");
}

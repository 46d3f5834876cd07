//! Ranks that stop: they are named, the others end, and what was measured is kept.

use std::time::Duration;

use crate::early::{LONG, at_the_second_size, has_one_of_two};
use crate::launchers::under;
use crate::stage::ranks::{RankProcesses, TIMEOUT, silence_of};
use crate::stage::{Running, Said, Stage, each_launcher, launch_program, peer, said, skip};
use crate::{beff, has};

const RANKS: usize = 3;

fn words(transport: &str) -> String {
    let own = match transport {
        "null" => " --validate none",
        "file" => " --channel-dir D",
        _ => "",
    };
    format!("--comm-type {transport}{own} --timeout {TIMEOUT} {LONG}")
}

/// Each rank in turn is stopped, of runs that go on beside each other; what each said.
fn each_rank_stopped(command: impl Fn(&Stage) -> std::process::Command + Sync) -> Vec<Said> {
    let stages: Vec<_> = (0..RANKS).map(|_| Stage::new()).collect();
    let start = |stage: &Stage| {
        std::fs::create_dir(stage.path("D")).unwrap();
        RankProcesses::of(Running::start(command(stage)), RANKS)
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = stages
            .iter()
            .enumerate()
            .map(|(rank, stage)| scope.spawn(move || start(stage).end_without(rank)))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    })
}

#[test]
fn a_process_that_stops_is_named_whatever_the_transport() {
    for transport in ["shm", "tcp", "udp", "file", "null"] {
        if !has(&Stage::new(), transport) {
            skip("a stopped process", &format!("no transport {transport}"));
            continue;
        }
        let all = format!(
            "Network_intel --ranks {RANKS} --spawn procs {}",
            words(transport)
        );
        let all: Vec<_> = all.split_whitespace().collect();
        for (rank, said) in each_rank_stopped(|s| s.peer(&all)).into_iter().enumerate() {
            let said = said.err(&silence_of(rank));
            // Rank 0 is killed by the test.
            assert_eq!(said.code, (rank > 0).then_some(1), "{said}");
            assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
        }
    }
}

#[test]
fn a_rank_of_a_launcher_that_stops_is_named_whatever_the_transport() {
    each_launcher("a stopped rank of a launcher", |stage, launcher| {
        for transport in ["mpi", "shm", "tcp", "udp", "file", "null"] {
            if !has(stage, transport) {
                let reason = format!("no transport {transport}");
                skip("a stopped rank of a launcher", &reason);
                continue;
            }
            let all = words(transport);
            let command = |s: &Stage| under(s, launcher, 3, &all);
            for (rank, said) in each_rank_stopped(command).into_iter().enumerate() {
                let said = said.err(&silence_of(rank));
                assert_ne!(said.code, Some(0), "{said}");
            }
        }
    });
}

#[test]
fn a_rank_that_never_comes_is_told_while_mpi_starts() {
    each_launcher("a rank that never comes", |stage, launcher| {
        let program = peer("Network_intel");
        let ours = format!("{program} --comm-type mpi --timeout {TIMEOUT}");
        // The other one does not know of MPI.
        let other = ": -n 1 sleep 60";
        let words: Vec<_> = ours.split(' ').chain(other.split(' ')).collect();
        let running = Running::start(launch_program(stage, launcher, 1, &words));
        let (said, has_ended) = running.end_within(Duration::from_secs(20));
        assert!(has_ended, "it goes on: {said}");
        let said = said.err("error: MPI has not started for 2 s: not every rank came");
        assert_ne!(said.code, Some(0), "{said}");
    });
}

#[test]
fn a_rank_that_stops_leaves_the_sizes_before() {
    let stage = Stage::new();
    if !has(&stage, "file") {
        return skip("a stopped rank", "no transport file");
    }
    let words = format!("--ranks {RANKS} --spawn procs --timeout {TIMEOUT}");
    let running = at_the_second_size(&stage, &words);
    let said = RankProcesses::of(running, RANKS).end_without(1);
    let said = said.code(1).err("rank 0, messages of 64 B");
    has_one_of_two(&stage, &said.err(&silence_of(1)));
}

#[test]
fn processes_that_were_stopped_together_go_on() {
    let stage = Stage::new();
    let all =
        "Network_intel --ranks 3 --spawn procs --timeout 1 --sizes 6 -n 1 -u 1 -l 1 --min-time 3";
    let all: Vec<_> = all.split_whitespace().collect();
    let ranks = RankProcesses::of(Running::start(stage.peer(&all)), RANKS);
    let running = ranks.pause_all(Duration::from_secs(3));
    running.end().code(0).out("Validation: SUCCESS!");
}

#[test]
fn the_rank_that_died_is_named_and_not_one_that_saw_it() {
    let fault = "--sizes 8 -n 2 -u 100 -l 100 --timeout 1 --inject die:rank=1,size=8,after=3";
    for transport in ["shm", "tcp", "udp", "file"] {
        for ranks in [3, 4] {
            for spawn in ["threads", "procs"] {
                let stage = Stage::new();
                std::fs::create_dir(stage.path("D")).unwrap();
                let own = if transport == "file" {
                    "--channel-dir D"
                } else {
                    ""
                };
                let words =
                    format!("--comm-type {transport} {own} --ranks {ranks} --spawn {spawn}");
                beff(&stage, &format!("{words} {fault}"))
                    .code(1)
                    .err("rank 0, messages of 256 B")
                    .err(": rank 1 is gone: ");
            }
        }
    }
    each_launcher("a rank that died", |stage, launcher| {
        for transport in ["shm", "mpi"].into_iter().filter(|t| has(stage, t)) {
            let words = format!("--comm-type {transport} {fault}");
            said(under(stage, launcher, 3, &words)).err(": rank 1 is gone: ");
        }
    });
}

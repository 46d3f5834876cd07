//! Ranks that stop: they are named, the others end, and what was measured is kept.

mod slow;

use std::time::Duration;

use crate::early::{LONG, at_the_second_size, has_one_of_two};
use crate::slow::launchers::under;
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

/// Rank 1 ends itself.
const DIES: &str = "--sizes 8 -n 2 -u 100 -l 100 --timeout 1 --inject die:rank=1,size=8,after=3";

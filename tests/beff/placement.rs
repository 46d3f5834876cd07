//! Which processors ranks run on: the result names them.

mod slow;

use std::process::Command;

use serde_json::Value;
use weir_sys::pin::affinity;

use crate::beff;
use crate::stage::{Stage, has, peer, said, skip};

const FEW: &str = "--comm-type shm -n 1 -u 4 -l 4 -m 2 --dump-json o.json";

/// The CPUs of the ranks, in order, as the result on the stage has them.
fn cpus(stage: &Stage) -> Vec<u32> {
    let json: Value = serde_json::from_str(&stage.read("o.json")).unwrap();
    let ranks = json["weir"]["ranks"].as_array().unwrap().clone();
    let cpu = |rank: &Value| u32::try_from(rank["cpu"].as_u64().unwrap()).unwrap();
    ranks.iter().map(cpu).collect()
}

#[test]
fn ranks_get_a_cpu_each_of_those_that_the_program_may_use() {
    let allowed = affinity().unwrap();
    for spawn in ["threads", "procs"] {
        let stage = Stage::new();
        let ranks = allowed.len().min(4);
        let words = format!("{FEW} --pin auto --ranks {ranks} --spawn {spawn}");
        beff(&stage, &words).code(0);
        let mut cpus = cpus(&stage);
        assert!(cpus.iter().all(|cpu| allowed.contains(*cpu)), "{cpus:?}");
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), ranks, "{spawn}: {cpus:?}");
    }
}

#[test]
fn a_list_is_taken_in_its_order() {
    let stage = Stage::new();
    let allowed = affinity().unwrap();
    let (first, last) = (allowed.as_slice()[0], *allowed.as_slice().last().unwrap());
    let words = format!("{FEW} --pin {last},{first},{last} --ranks 3");
    beff(&stage, &words).code(0);
    assert_eq!(cpus(&stage), [last, first, last]);
}

#[test]
fn a_list_that_is_too_short_for_the_ranks_is_refused() {
    let stage = Stage::new();
    let first = affinity().unwrap().as_slice()[0];
    for spawn in ["threads", "procs"] {
        let words = format!("{FEW} --spawn {spawn} --pin {first},{first} --ranks 3");
        beff(&stage, &words)
            .code(2)
            .silent()
            .err("error: --pin: 3 ranks have a CPU each, and the list has 2 ");
    }
    stage
        .say(&["net", "lat-bw", "--pin", &first.to_string()])
        .code(2)
        .silent()
        .err("error: --pin: 2 ranks have a CPU each, and the list has 1 ");
}

#[test]
fn a_cpu_that_there_is_not_is_refused() {
    let stage = Stage::new();
    let first = affinity().unwrap().as_slice()[0];
    for spawn in ["threads", "procs"] {
        // Of one rank nobody takes the second CPU.
        for ranks in [1, 2] {
            let words = format!("{FEW} --spawn {spawn} --pin {first},9999 --ranks {ranks}");
            beff(&stage, &words)
                .code(2)
                .silent()
                .err("--pin: CPUs 9999 are outside those that this process was started with")
                .err(&format!("({})", affinity().unwrap()));
        }
    }
    stage
        .say(&["net", "lat-bw", "--pin", "9999,9999"])
        .code(2)
        .silent()
        .err("error: --pin: CPUs 9999 are outside");
}

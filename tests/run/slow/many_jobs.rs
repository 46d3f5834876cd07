//! Plans of many jobs: what the run and its report do grows with the jobs, counted in instructions.

use std::fmt::Write as _;

use crate::stage::{Stage, WEIR, has, said, skip};

/// Instructions of a run of so many jobs that move nothing.
fn instructions(stage: &Stage, jobs: u32) -> u64 {
    let mut text = "[global]\nioengine=null\nrw=read\nsize=64k\n".to_owned();
    for job in 0..jobs {
        let _ = writeln!(text, "[j{job}]");
    }
    stage.file("many.fio", &text);
    let mut command = stage.command("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.args([WEIR, "run", "many.fio"]);
    let message = said(command).code(0).err;
    let counted = message
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    counted.unwrap().1.trim().parse().unwrap()
}

#[test]
fn four_times_the_jobs_are_not_much_more_than_four_times_the_work() {
    if !has("valgrind") {
        let name = "four_times_the_jobs_are_not_much_more_than_four_times_the_work";
        return skip(name, "no valgrind");
    }
    let stage = Stage::new();
    let (few, many) = (instructions(&stage, 30), instructions(&stage, 120));
    assert!(many < 5 * few, "{few} and {many} instructions");
}

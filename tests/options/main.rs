//! Options of the job language by their effect: which operations are carried out, in which order,
//! with which calls, beside fio where its order is fixed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod amounts;
mod errors;
mod files;
mod flushes;
mod loops;
mod pacing;
mod preload;
mod process;
mod recorded;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;
mod zones;

use std::process::Command;

use stage::{Said, Stage, has, peer, said};

/// An operation: kind, target, offset in KiB.
type Op = (String, u32, u64);

/// Operations of weir for these arguments, in order.
#[track_caller]
fn done(stage: &Stage, words: &[&str]) -> Vec<Op> {
    let trace = ["--name=a", "--trace=t.csv", "--output=report"];
    let all = [&["fio"], &trace[..], words].concat();
    stage.peer_says(&all).code(0);
    let read = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap();
        let target = u32::try_from(number(2)).unwrap();
        (cells[1].to_owned(), target, number(3) >> 10)
    };
    stage.read("t.csv").lines().skip(1).map(read).collect()
}

/// Operations of fio for these arguments, in order: its recorded pattern.
#[track_caller]
fn fios(stage: &Stage, words: &[&str]) -> Vec<Op> {
    // fio appends to it.
    let _ = std::fs::remove_file(stage.path("fios.log"));
    let mut command = stage.command("fio");
    command.args(["--name=a", "--write_iolog=fios.log", "--output=report"]);
    command.args(words);
    said(command).code(0);
    let mut files: Vec<String> = Vec::new();
    let mut done = Vec::new();
    for line in stage.read("fios.log").lines().skip(1) {
        let cells: Vec<&str> = line.split(' ').collect();
        if cells[2] == "add" {
            files.push(cells[1].to_owned());
        }
        if let "read" | "write" | "trim" = cells[2] {
            let target = files.iter().position(|f| f == cells[1]).unwrap();
            let offset = cells[3].parse::<u64>().unwrap() >> 10;
            done.push((cells[2].to_owned(), u32::try_from(target).unwrap(), offset));
        }
    }
    done
}

/// The system calls of these kinds that weir makes for these words, one text each.
#[track_caller]
fn calls(stage: &Stage, kinds: &str, words: &[&str]) -> Vec<String> {
    let command = [&[peer("fio"), "--name=a", "--output=report"], words].concat();
    traced(stage, kinds, &command)
}

/// The system calls of these kinds that a program makes, one text each.
#[track_caller]
fn traced(stage: &Stage, kinds: &str, program: &[&str]) -> Vec<String> {
    let mut command = stage.command("strace");
    let trace = format!("trace={kinds}");
    command.args(["-f", "-q", "-e", &trace, "-o", "calls"]);
    command.args(program);
    said(command).code(0);
    let named = |line: &str| {
        let call = line.split_once(' ').map_or("", |(_, call)| call).trim();
        kinds
            .split(',')
            .any(|kind| call.starts_with(kind))
            .then(|| call.to_owned())
    };
    stage.read("calls").lines().filter_map(named).collect()
}

/// Fails if one of these programs is missing, or a tracer of calls may not look into processes.
fn has_all(programs: &[&str]) -> Result<(), String> {
    if let Some(missing) = programs.iter().find(|p| !has(p)) {
        return Err(format!("no {missing}"));
    }
    let traces = || {
        let tried = Command::new("strace")
            .args(["-o", "/dev/null", "true"])
            .output();
        tried.is_ok_and(|tried| tried.status.success())
    };
    if programs.contains(&"strace") && !traces() {
        return Err("strace may not trace here".to_owned());
    }
    Ok(())
}

/// weir with these words, as fio.
fn fio(stage: &Stage, words: &[&str]) -> Said {
    stage.peer_says(&[&["fio", "--name=a", "--output=report"], words].concat())
}

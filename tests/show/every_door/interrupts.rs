//! Interrupts of every door, before it measures and while it does.

use std::fs;

use rustix::process::Signal;

use super::{Complaints, Program, REPEAT, at_each_door, content, long, stage};
use crate::stage::{Running, catches_signals, until};

/// Interrupts a call once it is so far, and looks at what it leaves.
fn interrupted(
    (program, arguments): (Program, &[String]),
    measures: bool,
    is_there: impl Fn(&Running) -> bool,
    complaints: &mut Complaints,
) {
    let stage = stage();
    let before = content(&stage);
    let running = Running::start(program.command(&stage, arguments));
    until("the run is so far", || {
        has_ended(&running) || is_there(&running)
    });
    if !has_ended(&running) {
        running.signal(Signal::INT);
    }
    let said = running.end();
    let expected = program.interrupted_with();
    let mut wrong = Vec::new();
    // Before it catches signals, they end it as they end every program.
    if !(said.code == Some(expected) || (!measures && said.code.is_none())) {
        wrong.push(format!("code {:?}, not {expected}", said.code));
    }
    if measures && said.out.is_empty() {
        wrong.push("no partial result".to_owned());
    }
    if said.err.lines().filter(|l| l.starts_with("error")).count() > 1 {
        wrong.push("several errors".to_owned());
    }
    if content(&stage) != before {
        wrong.push("something was written".to_owned());
    }
    complaints.add(program, arguments, &wrong, &said);
}

/// It is a process whose end nobody has asked for yet.
fn has_ended(running: &Running) -> bool {
    let stat = format!("/proc/{}/stat", running.process().as_raw_nonzero());
    let stat = fs::read_to_string(stat).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_none_or(|(_, state)| state.starts_with('Z'))
}

/// It began with interrupts ignored, as what a script leaves in the background does, and has not changed that.
fn ignores_interrupts(running: &Running) -> bool {
    let status = format!("/proc/{}/status", running.process().as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (Signal::INT.as_raw() - 1) & 1 == 1)
}

#[test]
fn an_interrupt_before_the_measurement_ends_it_with_nothing_written() {
    at_each_door(1, |door, program, complaints| {
        let call = (program, &long(door)[..]);
        interrupted(
            call,
            false,
            |running| !ignores_interrupts(running),
            complaints,
        );
        interrupted(call, false, Running::catches_signals, complaints);
    });
}

#[test]
fn an_interrupt_prints_what_was_measured() {
    at_each_door(1, |door, program, complaints| {
        let arguments = long(door);
        let repeats = arguments.iter().any(|word| word == REPEAT);
        let works = |running: &Running| {
            if repeats {
                // Its runs are processes of their own. Before one catches signals there is nothing to print.
                return running.children().into_iter().any(catches_signals);
            }
            let catches = running.catches_signals();
            if catches {
                running.works_for(10);
            }
            catches
        };
        interrupted((program, &arguments[..]), true, works, complaints);
    });
}

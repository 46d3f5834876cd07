//! Outputs of every door: rows of what was measured, and files that may not be written.

use super::{ALL_LINKS, Program, at_each_door, doors, house, line, stage};
use crate::stage::said;

#[test]
fn rows_are_of_what_was_measured_or_are_refused() {
    let stage = stage();
    for door in doors() {
        let [program, ..] = Program::all(door).collect::<Vec<_>>()[..] else {
            continue;
        };
        // Ranks that work together have no operations one by one.
        let is_joint = ["net", "beff"].contains(&door.verb);
        for form in ["csv"].into_iter().chain(is_joint.then_some("csv-series")) {
            let flag = format!("{}={form}", house(door, "format"));
            let said = said(program.command(&stage, &[program.short(door), vec![flag]].concat()));
            if form == "csv" {
                let said = said.code(0);
                assert!(said.out.lines().count() > 1, "weir {}\n{said}", door.verb);
            } else {
                said.code(2).silent().err("csv has a row for each figure");
            }
        }
    }
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_is_done() {
    let stage = stage();
    at_each_door(ALL_LINKS, |door, program, complaints| {
        for (flag, file) in [
            ("store-result", "none/r.json"),
            ("output", "none/r.json"),
            ("output", "/dev/null/r.json"),
            ("metrics-file", "none/m"),
        ] {
            let output = format!("{}={file}", house(door, flag));
            let arguments = [&program.short(door)[..], &[output]].concat();
            complaints.refused(&stage, program, &arguments, &[program.named(file)]);
        }
    });
}

#[test]
fn outputs_that_would_replace_an_input_or_each_other_are_refused() {
    let stage = stage();
    at_each_door(ALL_LINKS, |door, program, complaints| {
        let store = house(door, "store-result");
        let both = [
            format!("{store}=r.json"),
            format!("{}=./r.json", house(door, "output")),
        ];
        let twice = [program.short(door), both.to_vec()].concat();
        complaints.refused(&stage, program, &twice, &[program.named("r.json")]);
        if let Some(input) = line(door).and_then(|line| line.input) {
            for output in [store, house(door, "history"), house(door, "metrics-file")] {
                let own = [format!("{output}={input}")];
                let arguments = [&program.short(door)[..], &own].concat();
                complaints.refused(&stage, program, &arguments, &[input]);
            }
        }
    });
}

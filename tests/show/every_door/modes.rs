//! Flags beside a plan that is shown, a dry run, and the two voices.

use weir_doors::Door;

use super::{ALL_LINKS, Program, at_each_door, content, house, house_with_value, line, stage};
use crate::stage::said;

/// Flags of the house that act in a run alone.
const OF_RUNS: [&str; 9] = [
    "repeat",
    "store-result=r.json",
    "history=off",
    "output=r.json",
    "format=json",
    "metrics-file=m",
    "live",
    "web",
    "strict",
];

/// True for a form of weir's report by the name of a peer whose text has none.
fn is_other_voice(door: &Door, program: Program, flag: &str) -> bool {
    let formats = door.measures.map_or(&[][..], |way| way.peer_formats);
    program.is_link && flag.starts_with("format=") && formats.is_empty()
}

#[test]
fn flags_beside_a_plan_that_is_only_shown_are_refused() {
    let stage = stage();
    at_each_door(ALL_LINKS, |door, program, complaints| {
        let flags = OF_RUNS.into_iter().chain(["dry-run"]);
        for flag in flags.filter(|flag| !is_other_voice(door, program, flag)) {
            let both = [house(door, "show-plan"), house_with_value(door, flag)];
            let arguments = [&program.short(door)[..], &both].concat();
            let named = flag.split('=').next().unwrap_or(flag);
            let named = house(door, named);
            complaints.refused(&stage, program, &arguments, &[program.named(&named)]);
        }
    });
}

#[test]
fn a_dry_run_takes_the_flags_of_the_run_and_checks_them() {
    let stage = stage();
    at_each_door(ALL_LINKS, |door, program, complaints| {
        let dry = |flag: &str| {
            let both = [house(door, "dry-run"), house_with_value(door, flag)];
            [&program.short(door)[..], &both].concat()
        };
        // This link measures nothing.
        if program.name == "Network_test_intel" {
            return;
        }
        for flag in OF_RUNS
            .into_iter()
            .filter(|flag| !is_other_voice(door, program, flag))
        {
            let before = content(&stage);
            let arguments = dry(flag);
            let said = said(program.command(&stage, &arguments));
            let mut wrong = Vec::new();
            if said.code != Some(0) {
                wrong.push(format!("code {:?}", said.code));
            }
            if content(&stage) != before {
                wrong.push("something was written".to_owned());
            }
            complaints.add(program, &arguments, &wrong, &said);
        }
        let nowhere = dry("output=none/r.json");
        complaints.refused(&stage, program, &nowhere, &["none/r.json"]);
    });
}

#[test]
fn a_form_of_the_peers_text_contradicts_one_of_weir() {
    let stage = stage();
    at_each_door(0, |door, program, complaints| {
        for form in line(door).map_or(&[][..], |line| line.forms) {
            let both = [(*form).to_owned(), house(door, "voice") + "=weir"];
            let arguments = [&program.short(door)[..], &both].concat();
            complaints.refused(&stage, program, &arguments, &["--voice weir"]);
            let format = house(door, "format");
            let both = [(*form).to_owned(), format.clone() + "=json"];
            let arguments = [&program.short(door)[..], &both].concat();
            complaints.refused(&stage, program, &arguments, &[&format]);
        }
    });
}

//! A test of the comparison itself: an error that is planted into what one side made of a case is
//! found, of every kind that is compared. weir takes both sides here, so that the rest is the same.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::beside::{Case, Kind, Seen, seen_of_weir};
use crate::differ::{Topic, differences};
use crate::generate::case;
use crate::generated::unlisted;

/// Jobs of which nothing may differ.
const PLAIN: &str = "[one]\nrw=write\nbs=4k\nsize=64k\n[two]\nstonewall\nrw=randread\nsize=32k\n\
                     [three]\nwait_for=one\nnew_group\nrw=write\nsize=16k\nloops=2\nwrite_bw_log=l\n";

fn plain() -> Case {
    Case {
        seed: 0,
        number: 0,
        kind: Kind::Run,
        files: vec![("j.fio".to_owned(), PLAIN.to_owned())],
        words: vec!["j.fio".to_owned()],
    }
}

type Plant = fn(&mut Seen);

fn has_report(seen: &Seen) -> bool {
    seen.ran.as_ref().is_some_and(|ran| ran.json.is_some())
}

fn json(seen: &mut Seen) -> &mut Value {
    seen.ran.as_mut().unwrap().json.as_mut().unwrap()
}

/// Puts another text where a line of the run has this one.
fn replace(seen: &mut Seen, from: &str, to: &str) {
    let lines = &mut seen.ran.as_mut().unwrap().lines;
    let line = lines.iter_mut().find(|line| line.contains(from)).unwrap();
    *line = line.replacen(from, to, 1);
}

/// Errors, with what they are found by.
const PLANTS: &[(&str, Topic, Plant)] = &[
    ("one operation more", Topic::Counts, |seen| {
        json(seen)["jobs"][0]["write"]["total_ios"] = json!(17);
    }),
    (
        "one operation less, of the other kind",
        Topic::Counts,
        |seen| {
            json(seen)["jobs"][1]["read"]["total_ios"] = json!(7);
        },
    ),
    ("a block less", Topic::Counts, |seen| {
        json(seen)["jobs"][2]["write"]["io_bytes"] = json!(28 << 10);
    }),
    ("a flush that was not asked for", Topic::Counts, |seen| {
        json(seen)["jobs"][0]["sync"]["total_ios"] = json!(1);
    }),
    ("an error", Topic::Entries, |seen| {
        json(seen)["jobs"][1]["error"] = json!(5);
    }),
    ("an entry less", Topic::Entries, |seen| {
        json(seen)["jobs"].as_array_mut().unwrap().pop();
    }),
    ("another group", Topic::Entries, |seen| {
        json(seen)["jobs"][2]["groupid"] = json!(1);
    }),
    ("the exit status", Topic::Exit, |seen| {
        seen.said.code = Some(1);
    }),
    ("another depth in the banner", Topic::Banner, |seen| {
        replace(seen, "iodepth=1", "iodepth=2");
    }),
    ("a worker more", Topic::Banner, |seen| {
        replace(seen, "Starting 3", "Starting 4");
    }),
    ("a file that is laid out larger", Topic::Layout, |seen| {
        replace(seen, "(1 file / 0MiB)", "(1 file / 1MiB)");
    }),
    ("a file that is not laid out", Topic::Layout, |seen| {
        let lines = &mut seen.ran.as_mut().unwrap().lines;
        let at = lines.iter().position(|l| l.contains("Laying out")).unwrap();
        lines.remove(at);
    }),
    ("a file that is shorter", Topic::Left, |seen| {
        let left = &mut seen.ran.as_mut().unwrap().left;
        let look = left.get_mut("one.0.0").unwrap();
        *look = look.replacen("65536", "61440", 1);
    }),
    ("a hole in a file", Topic::Left, |seen| {
        let left = &mut seen.ran.as_mut().unwrap().left;
        let look = left.get_mut("one.0.0").unwrap();
        *look = look.replacen("65536 on disk", "61440 on disk", 1);
    }),
    ("a file that nobody made", Topic::Left, |seen| {
        let left = &mut seen.ran.as_mut().unwrap().left;
        left.insert("one.0.1".to_owned(), "0 bytes".to_owned());
    }),
    ("a log with a line less", Topic::Left, |seen| {
        let left = &mut seen.ran.as_mut().unwrap().left;
        let look = left.get_mut("l_bw.3.log").unwrap();
        *look = look.replacen("8 lines", "7 lines", 1);
    }),
    (
        "a job that does not wait for another",
        Topic::Order,
        |seen| {
            let written = &mut seen.ran.as_mut().unwrap().written;
            let early = written["one.0.0"] - std::time::Duration::from_millis(1);
            written.insert("three.0.0".to_owned(), early);
        },
    ),
    ("an option that was not given", Topic::Options, |seen| {
        json(seen)["jobs"][0]["job options"]["direct"] = json!("1");
    }),
    ("another value of an option", Topic::Options, |seen| {
        json(seen)["jobs"][0]["job options"]["bs"] = json!("8k");
    }),
    ("a key less", Topic::Keys, |seen| {
        let write = json(seen)["jobs"][0]["write"].as_object_mut().unwrap();
        write.shift_remove("bw_mean");
    }),
    ("a number that becomes a text", Topic::Keys, |seen| {
        json(seen)["jobs"][0]["write"]["bw_mean"] = json!("1");
    }),
    ("a line of the report less", Topic::Lines, |seen| {
        let lines = &mut seen.ran.as_mut().unwrap().lines;
        let at = lines
            .iter()
            .rposition(|l| l.contains("issued rwts"))
            .unwrap();
        lines.remove(at);
    }),
    ("a field of the terse report less", Topic::Terse, |seen| {
        let terse = &mut seen.ran.as_mut().unwrap().terse;
        terse[0] = terse[0].replacen(" with 1", " with ", 1);
    }),
];

#[test]
fn an_error_that_is_planted_into_either_side_is_found() {
    let case = plain();
    let seen = seen_of_weir(&case);
    let found = unlisted(&case, &seen, &seen_of_weir(&case));
    assert!(found.is_empty(), "{found:?}");
    for (what, topic, plant) in PLANTS {
        for on_ours in [false, true] {
            let (mut theirs, mut ours) = (seen.clone(), seen.clone());
            plant(if on_ours { &mut ours } else { &mut theirs });
            let found = unlisted(&case, &theirs, &ours);
            let topics: Vec<Topic> = found.iter().map(|d| d.topic).collect();
            assert!(topics.contains(topic), "{what}: {topics:?}");
        }
    }
    // Nothing that is compared is left out.
    let planted: BTreeSet<Topic> = PLANTS.iter().map(|plant| plant.1).collect();
    let of_runs = [Topic::Refused, Topic::Accepted, Topic::Shown];
    assert_eq!(planted.len() + of_runs.len(), Topic::ALL.len());
}

/// Cases at random into which errors are planted, and how many of them in a hundred have to show
/// it: in the others a row allows it for a reason.
const CASES: u64 = 40;
const SHOWN: usize = 80;

#[test]
fn errors_that_are_planted_into_files_at_random_are_found_in_most_of_them() {
    let plants: [(&str, Topic, Plant); 2] = [
        ("operations", Topic::Counts, |seen| {
            for job in json(seen)["jobs"].as_array_mut().unwrap() {
                for kind in ["read", "write", "mixed"] {
                    if let Some(n) = job[kind]["total_ios"].as_u64().filter(|n| *n > 0) {
                        job[kind]["total_ios"] = json!(n * 2);
                        job[kind]["io_bytes"] = json!(job[kind]["io_bytes"].as_u64().unwrap() * 2);
                    }
                }
            }
        }),
        ("layouts", Topic::Layout, |seen| {
            let lines = &mut seen.ran.as_mut().unwrap().lines;
            lines.retain(|line| !line.contains("Laying out"));
        }),
    ];
    let cases: Vec<(Case, Seen)> = (0..CASES)
        .map(|number| case(1, number, Kind::Run))
        .map(|case| (case.clone(), seen_of_weir(&case)))
        .collect();
    for (what, topic, plant) in plants {
        let (mut planted, mut found) = (0, 0);
        for (case, seen) in cases.iter().filter(|(_, seen)| has_report(seen)) {
            let mut other = seen.clone();
            plant(&mut other);
            if differences(case, seen, &other)
                .iter()
                .any(|d| d.topic == topic)
            {
                planted += 1;
                let unlisted = unlisted(case, seen, &other);
                found += usize::from(unlisted.iter().any(|d| d.topic == topic));
            }
        }
        println!("{what}: {found} of {planted} are found");
        assert!(planted >= 20 && found * 100 >= planted * SHOWN, "{what}");
    }
}

//! Where reports and results are written: links stay what they are, descriptors and devices are not replaced.

use std::os::unix::fs::symlink;

use crate::report::JOBS;
use crate::stage::{Stage, WEIR, said};

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// A workload, and links that lead to each other's files.
fn linked(from: &[(&str, &str)]) -> Stage {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    std::fs::create_dir(stage.path("below")).unwrap();
    for (link, target) in from {
        symlink(target, stage.path(link)).unwrap();
    }
    stage
}

#[track_caller]
fn is_link(stage: &Stage, name: &str) {
    let found = std::fs::symlink_metadata(stage.path(name)).unwrap();
    assert!(found.is_symlink(), "{name} is no link any more");
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_written() {
    let stage = linked(&[
        ("first.json", "second.json"),
        ("second.json", "below/real.json"),
        ("rows.csv", "below/rows.csv"),
        ("page.html", "below/page.html"),
    ]);
    let run =
        "run j.fio --section two --store-result first.json --output rows.csv --output page.html";
    for before in ["", "old"] {
        for name in ["real.json", "rows.csv", "page.html"] {
            if !before.is_empty() {
                stage.file(&format!("below/{name}"), before);
            }
        }
        stage.say(&words(run)).code(0);
        for name in ["first.json", "second.json", "rows.csv", "page.html"] {
            is_link(&stage, name);
        }
        assert!(stage.read("below/real.json").starts_with('{'));
        assert!(stage.read("below/rows.csv").contains("run_id"));
        assert!(stage.read("below/page.html").contains("</html>"));
    }
    stage
        .say(&words("run j.fio --section two --append --output rows.csv"))
        .code(0);
    is_link(&stage, "rows.csv");
    assert_eq!(stage.read("below/rows.csv").lines().count(), 3);
    // No temporary file is left, neither here nor there.
    let left = [".", "below"].map(|folder| std::fs::read_dir(stage.path(folder)).unwrap());
    let hidden = left.into_iter().flatten().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_str().unwrap().starts_with('.')
    });
    assert_eq!(hidden.count(), 0);
    for (link, target) in [("nowhere.csv", "none/x"), ("round.csv", "round.csv")] {
        symlink(target, stage.path(link)).unwrap();
        let run = format!("run j.fio --section two --output {link}");
        let said = stage.say(&words(&run)).code(2).silent();
        said.err("cannot be written");
    }
}

#[test]
fn one_file_by_two_names_is_told_though_it_is_not_there_yet() {
    let stage = linked(&[("link.json", "below/r.json")]);
    stage
        .say(&words(
            "run j.fio --section two --store-result below/r.json --output link.json",
        ))
        .code(2)
        .err("this file is");
}

#[test]
fn standard_output_that_is_a_file_is_written_and_not_replaced() {
    // Links as those of /dev: a fault must not take these away from the whole machine.
    let stage = linked(&[("out", "/proc/self/fd/1"), ("log", "/proc/self/fd/2")]);
    let shell = |line: &str| {
        let mut command = stage.command("sh");
        command.args(["-c", &line.replace("weir", WEIR)]);
        said(command).code(0)
    };
    for name in ["/dev/fd/1", "/proc/self/fd/1", "out"] {
        shell(&format!(
            "(echo before; weir kio -t 1 -g {name}; echo behind) > all.txt"
        ))
        .calm();
        let all = stage.read("all.txt");
        let places = ["before\n", "num_threads: 1", "KIO version", "behind\n"];
        let places = places.map(|text| all.find(text).unwrap_or_else(|| panic!("{text}: {all}")));
        assert!(places.is_sorted(), "{name}: {all}");
    }
    shell("weir kio -t 1 -g log 2> err.txt; weir kio -t 1 -g /dev/fd/7 7> seven.txt");
    for name in ["err.txt", "seven.txt"] {
        assert!(stage.read(name).starts_with("global:"), "{name}");
    }
    is_link(&stage, "out");
    is_link(&stage, "log");
    // A pipe takes it as before, and so does a device.
    let piped = stage.say(&["kio", "-t", "1", "-g", "out"]).code(0);
    piped.out("global:\n").out("KIO version");
    let full = stage.say(&["kio", "-t", "1", "-g", "/dev/full"]);
    full.code(2).err("/dev/full");
}

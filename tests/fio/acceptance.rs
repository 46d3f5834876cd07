//! Needs of a DMA card's job files and their owners: one test for each case, fio beside where a
//! case states fio's answer. Here the card's own files; the rest stands in `acceptance_words`.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use crate::stage::{Said, Stage, has, root, said, skip};

/// A directory in memory with an emulated card: one memory behind eight channels.
pub(crate) fn card() -> Stage {
    let stage = Stage::in_memory();
    stage.sparse("card", 64 << 20);
    for i in 0..4 {
        for way in ["h2c", "c2h"] {
            symlink("card", stage.path(&format!("ch_{way}_{i}"))).unwrap();
        }
    }
    stage
}

pub(crate) fn example(name: &str) -> String {
    let path = root().join("examples/fio").join(name);
    path.to_str().unwrap().to_owned()
}

fn start(stage: &Stage, tool: &str, words: &[&str]) -> Said {
    let mut command = match tool {
        "weir" => stage.peer(&["fio"]),
        other => stage.command(other),
    };
    command.args(words).env("DIR", ".");
    said(command)
}

pub(crate) fn weir(stage: &Stage, words: &[&str]) -> Said {
    start(stage, "weir", words)
}

/// Output of fio for the same arguments, where there is one.
pub(crate) fn fio(stage: &Stage, case: &str, words: &[&str]) -> Option<Said> {
    if has("fio") {
        return Some(start(stage, "fio", words));
    }
    skip(case, "no fio");
    None
}

fn last_line<'a>(said: &'a Said, begins: &str) -> &'a str {
    said.out
        .lines()
        .rfind(|line| line.starts_with(begins))
        .unwrap_or_else(|| panic!("no `{begins}` in\n{said}"))
}

fn count(said: &Said, text: &str) -> usize {
    said.out.matches(text).count()
}

/// The name of each banner and the sizes it gives.
fn banners(said: &Said) -> Vec<(String, String)> {
    let sizes = |line: &str| {
        let (name, rest) = line.split_once(": (g=")?;
        let sizes = rest.split_once(", bs=")?.1.split_once(", ioengine=")?.0;
        Some((name.to_owned(), sizes.to_owned()))
    };
    said.out.lines().filter_map(sizes).collect()
}

/// weir's banners of a text, which fio prints as well.
pub(crate) fn sizes_of(case: &str, text: &str) -> Vec<(String, String)> {
    let stage = Stage::in_memory();
    stage.file("j.fio", text);
    let ours = banners(&weir(&stage, &["j.fio"]).code(0));
    if let Some(theirs) = fio(&stage, case, &["j.fio"]) {
        assert_eq!(ours, banners(&theirs), "{case}: {text}");
    }
    ours
}

#[test]
fn case_01_four_channels_are_written() {
    let stage = card();
    let said = weir(&stage, &[&example("xdma_4-ch_4-1M_write.fio")]).code(0);
    for i in 1..=4 {
        assert!(
            said.out
                .contains(&format!("w{i}: (groupid=0, jobs=1): err= 0")),
            "{said}"
        );
    }
    assert_eq!(count(&said, "total=0,16,0,0"), 4, "{said}");
    let line = last_line(&said, "  WRITE: bw=");
    assert!(line.contains("io=64.0MiB (67.1MB)"), "{line}");
}

#[test]
fn case_02_four_channels_are_read() {
    let stage = card();
    let said = weir(&stage, &[&example("xdma_4-ch_4-1M_read.fio")]).code(0);
    assert_eq!(count(&said, "total=16,0,0,0"), 4, "{said}");
    let line = last_line(&said, "   READ: bw=");
    assert!(line.contains("io=64.0MiB (67.1MB)"), "{line}");
}

/// Group and kinds of each line under `Run status group`.
fn group_lines(said: &Said) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in said.out.lines() {
        if let Some(rest) = line.strip_prefix("Run status group ") {
            let number = rest.split(' ').next().unwrap_or_default();
            groups.push((number.to_owned(), Vec::new()));
        } else if let Some((kind, _)) = line.trim_start().split_once(": bw=")
            && let Some((_, kinds)) = groups.last_mut()
        {
            kinds.push(kind.to_owned());
        }
    }
    groups
}

#[test]
fn case_03_a_verified_card_has_five_groups() {
    let file = example("xdma_4-ch_4-1M_verify.fio");
    let stage = card();
    let said = weir(&stage, &[&file]).code(0);
    let expected = [
        ("0", &["WRITE"][..]),
        ("1", &["READ", "WRITE"]),
        ("2", &["READ", "WRITE"]),
        ("3", &["READ", "WRITE"]),
        ("4", &["READ"]),
    ];
    let expected = expected.map(|(number, kinds)| {
        (
            number.to_owned(),
            kinds.iter().map(|&k| k.to_owned()).collect::<Vec<_>>(),
        )
    });
    assert_eq!(group_lines(&said), expected, "{said}");
    for i in 0..4 {
        for (name, group) in [(format!("fill-{i}"), i), (format!("check-{i}"), i + 1)] {
            assert!(
                said.out
                    .contains(&format!("{name}: (groupid={group}, jobs=1): err= 0")),
                "{said}"
            );
        }
    }
    let stage = card();
    if let Some(theirs) = fio(&stage, "case_03", &[&file]) {
        assert_eq!(group_lines(&theirs), expected);
    }
}

/// The checking half of the verify file, for a run of its own.
fn checks_alone() -> String {
    let text = fs::read_to_string(example("xdma_4-ch_4-1M_verify.fio")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("wait_for"));
    lines.collect::<Vec<_>>().join(
        "
",
    ) + "
"
}

fn damage(stage: &Stage, at: usize) {
    let mut data = fs::read(stage.path("card")).unwrap();
    for byte in &mut data[at..at + 4] {
        *byte = !*byte;
    }
    fs::write(stage.path("card"), data).unwrap();
}

const CHECKS: [&str; 4] = [
    "--section=check-0",
    "--section=check-1",
    "--section=check-2",
    "--section=check-3",
];

#[test]
fn case_04_damage_is_named_dumped_and_counted() {
    let stage = card();
    weir(&stage, &[&example("xdma_4-ch_4-1M_verify.fio")]).code(0);
    stage.file("checks.fio", checks_alone());
    let words = [&CHECKS[..], &["checks.fio"]].concat();
    damage(&stage, (2 << 20) + 5000);
    let said = weir(&stage, &words)
        .code(1)
        .err("xxhash: verify failed at file ")
        .err("ch_c2h_0 offset 2097152, length 1048576");
    assert!(
        said.out.contains("check-0: (groupid=0, jobs=1): err=84 ("),
        "{said}"
    );
    assert_eq!(count(&said, "total=3,0,0,0"), 1, "{said}");
    assert_eq!(count(&said, "total=16,0,0,0"), 3, "{said}");
    let dump = |which: &str| fs::read(stage.path(&format!("ch_c2h_0.2097152.{which}"))).unwrap();
    let (received, expected) = (dump("received"), dump("expected"));
    assert_eq!((received.len(), expected.len()), (1 << 20, 1 << 20));
    let differing: Vec<usize> = (0..1 << 20)
        .filter(|&i| received[i] != expected[i])
        .collect();
    assert_eq!(differing, [5000, 5001, 5002, 5003]);
    for quarter in 1..4 {
        damage(&stage, quarter * (16 << 20) + 5000);
    }
    weir(&stage, &words).code(4);
}

#[test]
fn case_05_the_sweep_has_one_entry_for_each_size() {
    let stage = card();
    let said = weir(&stage, &[&example("xdma_4-ch_4-X_write.fio")]).code(0);
    let names = ["4KB", "8KB", "16KB", "32KB", "64KB", "256KB", "1MB", "2MB"];
    for (group, name) in names.iter().enumerate() {
        let head = format!("{name}: (groupid={group}, jobs=4): err= 0");
        assert_eq!(count(&said, &head), 1, "{said}");
    }
    let lines = said.out.lines().filter(|l| l.starts_with("  WRITE: bw="));
    let moved: Vec<&str> = lines
        .map(|l| l.split("io=").nth(1).unwrap().split(' ').next().unwrap())
        .collect();
    let large = ["64.0MiB"; 5];
    assert_eq!(
        moved,
        [&["16.0MiB", "16.0MiB", "32.0MiB"][..], &large].concat(),
        "{said}"
    );
}

#[test]
fn case_06_showcmd_prints_words_that_run_the_same() {
    let stage = card();
    let file = example("xdma_4-ch_4-1M_write.fio");
    let shown = weir(&stage, &["--showcmd", &file]).code(0).out;
    let begin = "fio --allow_file_create=0 --ioengine=psync --mem=mmap --filesize=64m --bs=1m \
                 --rate_min=1m --name=w1 --size=16m --offset=0 --rw=write --filename=";
    assert!(shown.starts_with(begin), "{shown}");
    assert_eq!(shown.matches("--name=").count(), 4, "{shown}");
    assert_eq!(shown.lines().count(), 1, "{shown}");
    if let Some(theirs) = fio(&stage, "case_06", &["--showcmd", &file]) {
        assert_eq!(shown, theirs.out);
    }
    let words: Vec<&str> = shown.split_whitespace().skip(1).collect();
    let said = weir(&stage, &words).code(0);
    assert_eq!(count(&said, "total=0,16,0,0"), 4, "{said}");
}

#[test]
fn case_07_the_block_size_is_changed_where_the_file_leaves_it_open_or_by_set() {
    let sizes = |words: &[&str]| {
        let stage = card();
        let all = banners(&weir(&stage, words).code(0));
        assert_eq!(all.len(), 4);
        all.into_iter().map(|b| b.1).collect::<Vec<_>>().join(" ")
    };
    let (open, given) = (
        example("xdma_4-ch_4_var_write.fio"),
        example("xdma_4-ch_4-1M_write.fio"),
    );
    assert!(sizes(&["--blocksize=128k", &open]).contains("128KiB-128KiB"));
    assert!(sizes(&["--blocksize=128k", &given]).contains("1024KiB-1024KiB"));
    assert!(sizes(&["--set", "bs=128k", &given]).contains("128KiB-128KiB"));
}

#[test]
fn case_08_a_missing_channel_fails_its_worker_only() {
    let stage = card();
    fs::remove_file(stage.path("ch_h2c_2")).unwrap();
    let before = stage.list();
    let said = weir(&stage, &[&example("xdma_4-ch_4-1M_write.fio")])
        .code(1)
        .err("fio: file creation disallowed by allow_file_create=0");
    assert_eq!(count(&said, "total=0,16,0,0"), 3, "{said}");
    assert_eq!(count(&said, ": (groupid=0, jobs=1): err= 0"), 3, "{said}");
    assert_eq!(stage.list(), before);
}

#[test]
fn case_09_an_offset_into_a_device_without_a_size_is_read() {
    let stage = Stage::in_memory();
    let words = [
        "--name=z",
        "--filename=/dev/zero",
        "--filesize=64m",
        "--size=16m",
        "--offset=48m",
        "--rw=read",
        "--bs=1m",
    ];
    weir(&stage, &words).code(0).out("total=16,0,0,0");
    // The peer reads nothing and says that all is well.
    if let Some(theirs) = fio(&stage, "case_09", &words) {
        assert_eq!(count(&theirs.code(0), "total=16,0,0,0"), 0);
    }
}

#[test]
fn case_10_a_minimum_rate_that_is_not_met_ends_the_job() {
    let stage = Stage::in_memory();
    let words = [
        "--name=w1",
        "--filename=/dev/zero",
        "--filesize=1g",
        "--size=1g",
        "--rw=read",
        "--bs=4k",
        "--thinktime=100000",
        "--ratemin=1m",
    ];
    let begin = Instant::now();
    let said = weir(&stage, &words)
        .code(1)
        .out("err= 5")
        .out("Input/output error");
    // Nothing is judged within the first two seconds.
    assert!(begin.elapsed().as_secs() >= 2, "{said}");
    let (_, rest) = said
        .err
        .split_once("w1: rate_min=1048576B/s not met, got ")
        .unwrap_or_else(|| panic!("{said}"));
    let got: u64 = rest.split("B/s").next().unwrap().parse().unwrap();
    assert!((4096..=45_056).contains(&got), "{said}");
}

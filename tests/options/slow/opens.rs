//! Opening of targets: the flags that the kernel sees, beside fio's.

use crate::stage::{Stage, has, peer, skip};
use crate::{has_all, traced};

/// Engines that write to an open file.
const ENGINES: [&str; 10] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap",
    "splice",
];

/// Values of `sync`, and the flag of each.
const SYNCS: [(&str, Option<&str>); 4] = [
    ("0", None),
    ("1", Some("O_SYNC")),
    ("sync", Some("O_SYNC")),
    ("dsync", Some("O_DSYNC")),
];

/// The flags about durability and the page cache with which a program opens a file to write, in
/// the order of [`SYNCS`].
#[track_caller]
fn flags(program: &[&str], engine: &str, direct: bool) -> Vec<Vec<String>> {
    let stage = Stage::new();
    let direct = u8::from(direct);
    let mut jobs =
        format!("[global]\nioengine={engine}\ndirect={direct}\nrw=write\nbs=4k\nsize=4k\n");
    for (sync, _) in SYNCS {
        // As long as the job needs it, so that no layout opens it too.
        stage.file(&format!("f-{sync}"), [1_u8; 4096]);
        let job = ["[", sync, "]\nfilename=f-", sync, "\nsync=", sync, "\n"];
        jobs.extend(job);
    }
    stage.file("j.fio", jobs);
    let words = [program, &["--output=report", "j.fio"]].concat();
    let opens = traced(&stage, "open,openat", &words);
    let of = |sync: &str| {
        let name = format!("\"f-{sync}\"");
        let writing = |c: &&String| c.contains("O_WRONLY") || c.contains("O_RDWR");
        let open = opens.iter().filter(writing).rfind(|c| c.contains(&name));
        let open = open.unwrap_or_else(|| panic!("{name} is not opened: {opens:?}"));
        let words = open.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        let found = words.filter(|word| ["O_SYNC", "O_DSYNC", "O_DIRECT"].contains(word));
        let mut found: Vec<String> = found.map(str::to_owned).collect();
        found.sort();
        found
    };
    SYNCS.iter().map(|(sync, _)| of(sync)).collect()
}

#[test]
fn every_engine_opens_with_the_flags_that_sync_and_direct_ask_for_as_in_fio() {
    let name = "every_engine_opens_with_the_flags_that_sync_and_direct_ask_for_as_in_fio";
    if let Err(missing) = has_all(&["strace"]) {
        return skip(name, &missing);
    }
    if !has("fio") {
        skip(name, "no fio to compare with");
    }
    for engine in ENGINES {
        let stage = Stage::new();
        let ioengine = format!("--ioengine={engine}");
        let probe = [&ioengine, "--size=4k", "--rw=write"];
        if crate::fio(&stage, &probe)
            .err
            .contains("this machine lacks")
        {
            skip(name, &format!("no {engine} on this machine"));
            continue;
        }
        for direct in [false, true] {
            let probe = ["--size=4k", "--rw=write", "--direct=1"];
            if direct && crate::fio(&stage, &probe).err.contains("direct I/O") {
                skip(name, "no direct I/O on this file system");
                continue;
            }
            let cache = direct.then(|| "O_DIRECT".to_owned());
            let asked = SYNCS.map(|(_, sync)| {
                let mut both: Vec<String> = cache.clone().into_iter().collect();
                both.extend(sync.map(str::to_owned));
                both.sort();
                both
            });
            let found = flags(&[peer("fio")], engine, direct);
            assert_eq!(found, asked, "{engine}, direct {direct}");
            if has("fio") {
                let theirs = flags(&["fio"], engine, direct);
                assert_eq!(found, theirs, "{engine}, direct {direct}");
            }
        }
    }
}

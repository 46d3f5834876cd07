//! Bad input: one clear message, the exit code, and nothing written.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::stage::{Said, Stage, has, is_root, said, skip};

/// Output of `weir run` for a refused job file; the directory must look as before.
#[track_caller]
fn refused(stage: &Stage, text: impl AsRef<[u8]>) -> Said {
    stage.file("bad.fio", text);
    let before = stage.list();
    let said = stage.say(&["run", "bad.fio"]).code(2).silent();
    assert_eq!(stage.list(), before, "something was written: {said}");
    said
}

#[test]
fn an_unknown_option_is_named_with_its_place_and_the_nearest_one() {
    let said = refused(&Stage::new(), "[a]\nsize=1m\nblocksise=4k\nfilename=x\n");
    assert_eq!(
        said.err,
        "error[job.unknown-option]: there is no option `blocksise`
  --> bad.fio:3:1
   |
 3 | blocksise=4k
   | ^^^^^^^^^ unknown
   help: did you mean `blocksize`?
"
    );
}

#[test]
fn every_wrong_value_is_told_at_once() {
    let text = "[a]\nfilename=x\nrwmixread=150\nbs=4x\nruntime=5q\n[b]\nrw=raed\nfilename=y\n";
    let said = refused(&Stage::new(), text)
        .err("`rwmixread=150` is outside 0–100")
        .err("bad.fio:3:11")
        .err("bad number \"4x\"")
        .err("bad.fio:4:4")
        .err("bad number \"5q\"")
        .err("did you mean `read`?");
    assert_eq!(said.err.matches("error[").count(), 4, "{said}");
}

#[test]
fn a_job_without_a_size_is_told_what_to_add() {
    refused(&Stage::new(), "[a]\nioengine=null\nrw=read\n")
        .err("`a` has no size")
        .err("help: add size=1g");
}

#[test]
fn zero_and_endless_sizes_are_refused() {
    let stage = Stage::new();
    refused(&stage, "[a]\nfilename=x\nsize=0\n").err("`size=0` is below 1");
    refused(&stage, "[a]\nfilename=x\nsize=99999999p\n").err("more than 64 bits hold");
    refused(&stage, "[a]\nfilename=x\nbs=0\nsize=1m\n").err("bs=0");
    refused(&stage, "[a]\nfilename=x\nbs=64g\nsize=1m\n").err("bs");
    refused(&stage, "[a]\nfilename=x\nsize=-1\n").err("size");
}

#[test]
fn a_file_larger_than_the_file_system_leaves_nothing_behind() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nfilename=huge\nrw=write\nsize=900000t\n");
    stage
        .say(&["run", "j.fio"])
        .code(1)
        .out("FAILED")
        .out("huge");
    assert_eq!(stage.list(), ["j.fio"]);
}

#[test]
fn an_option_outside_of_a_section_has_no_job() {
    refused(&Stage::new(), "size=1m\n[a]\nioengine=null\n").err("bad.fio:1:1");
}

#[test]
fn a_missing_job_file_and_a_directory_as_one_are_told_apart() {
    let stage = Stage::new();
    stage
        .say(&["run", "none.fio"])
        .code(2)
        .silent()
        .err("none.fio");
    let here = stage.path("");
    stage
        .say(&["run", &here])
        .code(2)
        .silent()
        .err("is a directory");
}

#[test]
fn a_missing_directory_of_a_target_is_named() {
    refused(&Stage::new(), "[a]\nrw=write\nsize=4k\nfilename=none/f\n").err("none does not exist");
}

#[test]
fn a_directory_as_target_is_refused() {
    let stage = Stage::new();
    fs::create_dir(stage.path("d")).unwrap();
    refused(&stage, "[a]\nrw=write\nsize=4k\nfilename=d\n").err("it is a directory");
}

#[test]
fn a_fifo_as_target_is_refused_and_never_opened() {
    let stage = Stage::new();
    if !has("mkfifo") {
        return skip("a_fifo_as_target", "no mkfifo");
    }
    let mut make = stage.command("mkfifo");
    make.arg("pipe");
    said(make).code(0);
    refused(&stage, "[a]\nrw=read\nsize=4k\nfilename=pipe\n").err("neither a file nor");
}

#[test]
fn a_write_under_readonly_is_refused_for_files_and_for_stored_plans() {
    let stage = Stage::new();
    stage.file("w.fio", "[a]\nfilename=x\nsize=64k\nrw=randrw\n");
    stage
        .say(&["run", "--readonly", "w.fio"])
        .code(2)
        .silent()
        .err("w.fio:4:4")
        .err("read-only");
    let plan = stage.say(&["run", "--show-plan", "w.fio"]).code(0).out;
    stage.file("p.json", plan);
    stage
        .say(&["run", "--readonly", "p.json"])
        .code(2)
        .silent()
        .err("--readonly");
    assert_eq!(stage.list(), ["p.json", "w.fio"]);
}

#[test]
fn includes_that_never_end_or_do_not_exist_are_told() {
    let stage = Stage::new();
    stage.file("x.inc", "include y.inc\n");
    stage.file("y.inc", "include x.inc\n");
    refused(&stage, "[a]\nioengine=null\nsize=1m\ninclude x.inc\n").err("an endless loop");
    refused(&stage, "[a]\nioengine=null\nsize=1m\ninclude z.inc\n").err("z.inc");
    stage.file("s.inc", "[b]\n");
    refused(&stage, "[a]\nioengine=null\nsize=1m\ninclude s.inc\n").err("s.inc:1");
}

#[test]
fn a_line_of_ten_megabytes_gets_a_short_message() {
    let said = refused(&Stage::new(), vec![b'x'; 10_000_000]).err("the longest line is 4096 bytes");
    assert!(said.err.len() < 1000, "{} bytes", said.err.len());
}

#[test]
fn binary_garbage_is_called_that() {
    let stage = Stage::new();
    let mut state = 1_u32;
    let garbage: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    let said = refused(&stage, garbage).err("is not a job file");
    assert!(said.err.len() < 1000, "{said}");
    refused(&stage, b"[a]\nsize=\xff\xfe\n").err("bad.fio:2");
}

#[test]
fn an_empty_file_has_no_job() {
    let stage = Stage::new();
    for text in ["", "\n\n# nothing\n", "[global]\nbs=4k\n"] {
        refused(&stage, text).err("no job is defined");
    }
}

#[test]
fn an_engine_that_is_not_built_in_is_named_with_those_that_are() {
    let stage = Stage::new();
    refused(&stage, "[a]\nioengine=rados\nsize=1m\n")
        .err("engine rados is not built in")
        .err("this build has null, psync");
    refused(&stage, "[a]\nioengine=io_urin\nsize=1m\n").err("the nearest is io_uring");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_run() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nfilename=data\nsize=64k\nrw=write\n");
    fs::create_dir(stage.path("d.json")).unwrap();
    for report in ["none/r.json", "d.json", "r.pdf"] {
        let option = format!("--output={report}");
        stage
            .say(&["run", &option, "j.fio"])
            .code(2)
            .silent()
            .err(report);
    }
    assert_eq!(stage.list(), ["d.json", "j.fio"]);
}

#[test]
fn flags_that_do_not_exist_are_refused() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\n");
    stage
        .say(&["run", "--formt=json", "j.fio"])
        .code(2)
        .silent()
        .err("--format");
    stage
        .say(&["run", "--format=xml", "j.fio"])
        .code(2)
        .silent()
        .err("json");
    stage
        .say(&["run", "--set", "bs", "j.fio"])
        .code(2)
        .silent()
        .err("KEY=VALUE");
    stage
        .say(&["run", "--set", "bz=4k", "j.fio"])
        .code(2)
        .silent()
        .err("bz");
    stage
        .say(&["run", "--set", "c:bs=4k", "j.fio"])
        .code(2)
        .silent()
        .err("c");
    stage
        .say(&["run", "--section=c", "j.fio"])
        .code(2)
        .silent()
        .err("c");
    stage
        .say(&["run"])
        .code(2)
        .silent()
        .err("no job file given");
    stage
        .say(&["rum"])
        .code(2)
        .silent()
        .err("did you mean `weir run`?");
    stage.say(&[]).code(2).silent().err("no verb given");
}

#[test]
fn a_target_without_permission_is_refused_to_everybody_but_root() {
    let name = "a_target_without_permission";
    let stage = Stage::public();
    if is_root() && !has("setpriv") {
        return skip(name, "root, and no setpriv to become somebody else");
    }
    let data = stage.file("data", [1; 8192]);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o400)).unwrap();
    stage.file("w.fio", "[a]\nfilename=data\nsize=8k\nrw=write\n");
    // The program must be reachable for the other user too.
    fs::copy(crate::stage::WEIR, stage.path("weir")).unwrap();
    std::os::unix::fs::symlink("weir", stage.path("fio")).unwrap();
    let as_nobody = |words: &[&str]| {
        let program = stage.path(if words[0] == "fio" { "fio" } else { "weir" });
        let words = if words[0] == "fio" {
            &words[1..]
        } else {
            words
        };
        let mut command = if is_root() {
            let mut command = stage.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program]);
            command
        } else {
            stage.command(&program)
        };
        command.args(words);
        said(command)
    };
    as_nobody(&["run", "w.fio"])
        .code(3)
        .silent()
        .err("data: ")
        .err("ermission");
    as_nobody(&["fio", "w.fio"]).code(1).err("ermission");
    fs::set_permissions(stage.path("w.fio"), fs::Permissions::from_mode(0o000)).unwrap();
    as_nobody(&["run", "w.fio"])
        .code(2)
        .silent()
        .err("Permission denied");
    assert_eq!(fs::read(&data).unwrap(), [1; 8192]);
}

#[test]
fn a_file_that_has_no_room_is_refused_before_it_is_begun() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nfilename=data\nrw=read\nsize=100t\n");
    stage.say(&["run", "j.fio"]).code(1).out("are free");
    assert_eq!(stage.list(), ["j.fio"]);
}

#[test]
fn more_workers_than_the_kernel_has_mappings_for_are_refused() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\nnumjobs=65536\n");
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    if limit.trim().parse::<u64>().unwrap() > 6 * 65_536 {
        return skip(
            "more_workers_than_the_kernel_has_mappings_for",
            "this kernel allows more mappings than workers can be asked for",
        );
    }
    // At the door of fio 3 would be three failed jobs.
    for (door, code) in [("run", 3), ("fio", 1)] {
        let said = said(stage.called(&[door, "j.fio"])).code(code);
        assert!(said.err.contains("vm.max_map_count"), "{said}");
    }
}

#[test]
fn a_report_does_not_replace_the_file_it_is_made_from() {
    let stage = Stage::new();
    let text = "[a]\nioengine=null\nsize=1m\n";
    stage.file("j.fio", text);
    let plan = stage.say(&["run", "--show-plan", "j.fio"]).code(0).out;
    stage.file("p.json", &plan);
    stage
        .say(&["run", "--output", "./p.json", "p.json"])
        .code(2)
        .silent()
        .err("what the plan is made from");
    assert_eq!(stage.read("p.json"), plan);
}

#[test]
fn a_plan_that_cannot_be_printed_is_a_failure() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\n");
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = stage.weir(&["run", "--show-plan", "j.fio"]);
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_slow_schedule_is_divided_by_the_time_it_took() {
    let stage = Stage::new();
    let job = "[a]\nioengine=null\nsize=1g\nrate_iops=1\nruntime=1\ntime_based\n";
    stage.file("j.fio", job);
    let out = stage.say(&["run", "--format", "json", "j.fio"]).code(0).out;
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    let worker = &result["groups"][0]["jobs"][0]["outcome"]["workers"][0];
    // The second operation is due at the end of the run, where either may come first.
    assert!(worker["kinds"][0]["operations"].as_u64() <= Some(2));
    assert!(worker["kinds"][0]["runtime_ns"].as_u64() >= Some(990_000_000));
}

#[test]
fn a_result_is_not_stored_over_what_else_the_words_name() {
    let stage = Stage::new();
    let text = "[x]\nioengine=null\nrw=read\nsize=4k\n";
    let file = stage.file("x.fio", text);
    let link = stage.path("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for (words, why) in [
        (
            ["run", "--store-result", &file, &file],
            "what the plan is made from",
        ),
        (
            ["run", "--store-result", &link, &file],
            "what the plan is made from",
        ),
        (["fio", "--store-result", &file, &file], "a job file"),
    ] {
        let code = if words[0] == "fio" { 1 } else { 2 };
        let said = said(stage.called(&words)).code(code);
        said.err("--store-result").err(why);
        assert_eq!(stage.read("x.fio"), text);
    }
    stage
        .say(&[
            "run",
            "--store-result",
            "y.json",
            "--output",
            "y.json",
            "x.fio",
        ])
        .code(2)
        .err("where the report goes");
    stage
        .say(&["run", "--store-result=", "x.fio"])
        .code(2)
        .err("--store-result needs FILE, which is empty");
    let words =
        "Network_intel --comm-type shm --ranks 1 -u 2 -l 1 -m 2 --store-result z --dump-json z";
    let words: Vec<_> = words.split(' ').collect();
    stage
        .peer_says(&words)
        .code(2)
        .err("where --dump-json goes");
}

#[test]
fn shown_words_replace_those_of_the_run_and_a_door_without_anything_to_print_says_so() {
    let stage = Stage::new();
    let file = stage.file("x.fio", "[x]\nioengine=null\nrw=read\nsize=4k\n");
    stage
        .say(&["run", "--format=json", "--store-result", "r.json", &file])
        .code(0);
    stage
        .say(&["show", "r.json", "--format", "text"])
        .code(0)
        .out("ops/s");
    stage
        .say(&["show", "r.json", "--as", "beff"])
        .code(2)
        .err("there is nothing in it that `beff` prints");
    let newer = stage
        .read("r.json")
        .replacen("weir.result.v2", "weir.result.v7", 1);
    let newer = newer.replacen("\"door\":\"run\"", "\"door\":\"zork\"", 1);
    stage.file("newer.json", newer);
    stage
        .say(&["show", "newer.json"])
        .code(0)
        .out("ops/s")
        .err("its own door cannot print it here");
}

#[test]
fn metrics_and_configurations_replace_no_input_no_target_and_no_other_output() {
    let stage = Stage::new();
    let text = "[a]\nioengine=null\nrw=read\nsize=1m\n";
    stage.file("x.fio", text);
    stage.file("kept", "of use");
    for (words, why) in [
        ("run --metrics-file x.fio x.fio", "where the metrics go"),
        (
            "run --metrics-file m --output m.txt --store-result m x.fio",
            "where the metrics go",
        ),
        (
            "run --rw=read --bs=1 --metrics-file kept kept",
            "works on this file",
        ),
        ("kio -d kept -g ./kept", "and a target too"),
    ] {
        let words: Vec<_> = words.split(' ').collect();
        stage.say(&words).code(2).err(why);
        assert_eq!(
            (stage.read("x.fio"), stage.read("kept")),
            (text.to_owned(), "of use".to_owned())
        );
    }
}

#[test]
fn operations_are_recorded_over_no_target_input_or_other_output() {
    let stage = Stage::new();
    stage.file("data", "d".repeat(4096));
    let job = "[a]\nfilename=data\nrw=read\nbs=4k\nsize=4k\n";
    stage.file("j.fio", job);
    for words in [
        &["--set", "write_iolog=./data"][..],
        &["--set", "write_iolog=j.fio"],
        &["--set", "write_iolog=r", "--store-result", "./r"],
        &["--set", "write_lat_log=x", "--metrics-file", "x_lat.1.log"],
    ] {
        let said = stage.say(&[&["run", "j.fio"], words].concat());
        said.code(2).silent().err("the job a w");
    }
    assert_eq!(stage.read("data"), "d".repeat(4096));
    assert_eq!(stage.read("j.fio"), job);
    assert_eq!(stage.list(), ["data", "j.fio"]);
}

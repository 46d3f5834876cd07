//! Words that are wrong: exit code 2 or 3, one message, nothing on standard output.

mod slow;

use crate::beff;
use crate::stage::{Stage, WEIR, has, is_root, said, skip};

#[test]
fn wrong_words_are_refused_before_anything_happens() {
    let stage = Stage::new();
    for (words, message) in [
        ("-d 0", "-d must be >= 1"),
        ("-n 0", "-n must be >= 1"),
        ("-r 0", "-r must be >= 1"),
        ("-u 0", "--upper must be >= 1"),
        ("--step-size 0", "--step-size must be >= 1"),
        ("-m abc", "-m abc: it takes a whole number from 0 to 34"),
        ("-m -1", "-m must be >= 0"),
        ("-m 2.5", "whole number"),
        ("stray", "stray word `stray`"),
        ("--uper 3", "did you mean `--upper`?"),
        (
            "--comm-type ACCL",
            "comm-type ACCL is not available in this build",
        ),
        (
            "--comm-type nosuch",
            "Communication type could not be converted from string: nosuch",
        ),
        ("-f /x/k_AURORA.bin", "comm-type AURORA is not available"),
        (
            "--dump-json no/such/place.json",
            "it is where --dump-json goes",
        ),
        ("--ranks 3 --pairing pairs", "have no pairs"),
        ("--comm-type null", "nothing that could be validated"),
        ("--pcie-read", "comm-type shm has no device"),
    ] {
        let said = beff(&stage, words).code(2).silent().err(message);
        let errors = said
            .err
            .lines()
            .filter(|l| l.starts_with("error: "))
            .count();
        assert_eq!(errors, 1, "{words}: {said}");
    }
    assert_eq!(stage.list(), Vec::<String>::new());
}

#[test]
fn a_name_as_long_as_names_may_be_is_a_place_for_the_result() {
    let stage = Stage::new();
    let small = "-u 2 -l 2 -m 2 -n 1 --dump-json";
    let name = "n".repeat(255);
    beff(&stage, &format!("{small} {name}")).code(0);
    assert_eq!(stage.list(), [name.as_str()]);
    for wrong in [format!("{name}n"), "new/".to_owned()] {
        let said = beff(&stage, &format!("{small} {wrong}")).code(2).silent();
        said.err(&format!("error: {wrong} cannot be written"));
    }
}

#[test]
fn a_device_without_room_fails_the_run_that_is_printed_all_the_same() {
    let stage = Stage::new();
    beff(&stage, "-u 2 -l 2 -m 2 -n 1 --dump-json /dev/full")
        .code(1)
        .out("b_eff = ")
        .err("error: /dev/full: No space left on device");
}

#[test]
fn what_this_build_lacks_ends_with_3() {
    let stage = Stage::new();
    for words in ["--comm-type cuda", "--comm-type ofi"] {
        beff(&stage, words)
            .code(3)
            .silent()
            .err("is not available: ");
    }
}

#[test]
fn what_standard_output_does_not_take_fails_the_run() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nioengine=null\nsize=64k\n");
    for (redirected, message) in [
        (">&-", "error: standard output is closed"),
        (
            ">/dev/full",
            "error: standard output: No space left on device",
        ),
    ] {
        for words in [
            "beff -u 2 -l 2 -m 2 -n 1",
            "beff --list-comm",
            "net lat-bw --show-plan",
            "run j.fio",
            "fio j.fio",
            "engines",
            "--help",
        ] {
            let mut command = stage.command("sh");
            command.args([
                "-c",
                &format!("exec \"$0\" {words} {redirected}"),
                crate::stage::WEIR,
            ]);
            let said = crate::stage::said(command).code(1).silent();
            assert_eq!(said.err.matches(message).count(), 1, "{words}: {said}");
        }
    }
    // What goes elsewhere on purpose is no failure.
    let mut command = stage.command("sh");
    let words = "exec \"$0\" beff -u 2 -l 2 -m 2 -n 1 1<>/dev/null";
    command.args(["-c", words, crate::stage::WEIR]);
    crate::stage::said(command).code(0);
}

#[test]
fn threads_that_the_user_may_not_have_are_told() {
    let name = "more ranks than threads";
    if !(is_root() && has("setpriv") && has("prlimit")) {
        return skip(name, "not root, or nothing to become somebody with a limit");
    }
    let stage = Stage::public();
    let program = stage.path("Network_intel");
    std::fs::copy(WEIR, &program).unwrap();
    // Nobody else runs anything as this user, whose threads are counted together.
    let mut command = stage.command("prlimit");
    command.args([
        "--nproc=40",
        "setpriv",
        "--reuid=64987",
        "--regid=64987",
        "--clear-groups",
    ]);
    command.args([&program, "--ranks", "100", "-u", "2", "-l", "1", "-m", "3"]);
    let said = said(command).code(1).err("could not be started");
    assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
}

//! Words that cannot be meant, files that hold no samples, runs that are refused or interrupted: each is told in
//! words that say what to do, once, and nothing else is printed.

use std::net::TcpListener;
use std::os::unix::fs::symlink;

use rustix::process::Signal;
use serde_json::Value;

use crate::servers::{Server, split};
use crate::stage::{Running, Said, Stage, peer, said, until};
use crate::{GOLDEN, quiet, selftest};

/// A line of a shell, with the older program's name as its `$0`.
fn shell(stage: &Stage, line: &str) -> Said {
    let mut command = stage.command("sh");
    command.args(["-c", line, peer("self_test")]);
    said(quiet(command))
}

#[test]
fn words_that_are_no_options_are_refused_with_a_remedy() {
    let stage = &Stage::new();
    for (words, says) in [
        (
            &["-s", "0", "0", "b1m", "0", "--dry-run"] as &[&str],
            "error: `0` is no option; message sizes are one word, in quotes: -s \"(0 0) (b1m 0)\"\n",
        ),
        (
            &["p.json", "--dry-run"],
            "error: `p.json` is no option; `weir run p.json` runs a stored plan, `weir show p.json` \
             prints a result\n",
        ),
    ] {
        let refused = selftest(stage, words).code(2);
        assert_eq!((refused.out.as_str(), refused.err.as_str()), ("", says));
    }
    let style = |value: &str| {
        let mut command = quiet(stage.peer(&["self_test", "--loopback", "--dry-run"]));
        command.env("WEIR_COMPAT_EXIT", value);
        said(command)
    };
    style("foo")
        .code(2)
        .err("the variable WEIR_COMPAT_EXIT=foo: it takes cart");
    style("cart").code(0);
}

#[test]
fn what_holds_no_samples_is_refused_before_it_is_read_to_its_end() {
    let stage = &Stage::new();
    for (file, says) in [
        ("/dev/zero", "line 1: it begins with"),
        (".", "Is a directory"),
    ] {
        selftest(stage, &["--replay", file]).code(2).err(says);
    }
    // It never ends, and has no line.
    shell(stage, "yes | tr -d '\\n' | \"$0\" --replay /dev/stdin")
        .code(2)
        .err("--replay /dev/stdin: line 1: it begins with `# weir-selftest-samples 1`");
    stage.file("s", GOLDEN);
    let piped = shell(stage, "cat s | \"$0\" --replay /dev/stdin").code(0);
    assert_eq!(piped.out, selftest(stage, &["--replay", "s"]).code(0).out);
    let head = GOLDEN.lines().take(3).collect::<Vec<_>>().join("\n");
    for (text, says) in [
        (head, "line 2: no samples follow this tuple"),
        (
            GOLDEN.replace("84000,1,2,0", "84000,1,2,-999999"),
            "line 11: `84000,1,2,-999999`: code",
        ),
        (
            GOLDEN.replace("=4000000", "=0"),
            "line 2: duration_ns: it takes nanoseconds above 0",
        ),
    ] {
        stage.file("odd", text);
        let refused = selftest(stage, &["--replay", "odd"]).code(2).err(says);
        assert_eq!(refused.out, "");
    }
}

#[test]
fn a_run_that_is_refused_prints_nothing_but_why_and_that_once() {
    let stage = &Stage::new();
    let sizes = "(0 0) (i8 0) (i9 0)";
    let words = [
        "--loopback",
        "-e",
        "0:9",
        "-s",
        sizes,
        "-r",
        "10",
        "--history",
        "off",
    ];
    let refused = selftest(stage, &words).code(3);
    assert_eq!(refused.out, "");
    assert_eq!(refused.err, "error: rank 0 has 3 tags, and no tag 9\n");
    let words = ["--loopback", "-s", "0", "--samples", "none/s"];
    let refused = selftest(stage, &words).code(2);
    assert!(
        refused.err.starts_with("error: none/s cannot be written"),
        "{refused}"
    );
    let words = ["--loopback", "-s", "0", "--history", "none/h.db"];
    let refused = selftest(stage, &words).code(2);
    refused.err("--history none/h.db: there is no directory none\n");
    stage.file("notes", "of mine\n");
    for other in ["notes", ".", "/dev/null"] {
        let words = ["--loopback", "-s", "0", "--history", other];
        let said = format!("--history {other}: it is no history\n");
        selftest(stage, &words).code(2).err(&said);
    }
    assert_eq!(stage.read("notes"), "of mine\n");
    assert!(!std::path::Path::new(&stage.path("none")).exists());
}

#[test]
fn what_a_run_would_refuse_is_refused_where_it_is_only_printed() {
    let stage = &Stage::new();
    let _server = Server::start(stage, "--rank 0 --tags 2");
    for (words, code, says) in [
        ("-u --path . -e 7:0", 3, "no rank 7"),
        ("-u --path . -e 0:5", 3, "no tag 5"),
        ("-u --path . -e 0:0 -m 7:0", 3, "no rank 7"),
        ("--loopback -e 0:9", 3, "no tag 9"),
        (
            "--loopback -e 0:0 --samples none/s",
            2,
            "it is where the samples go (--samples)",
        ),
    ] {
        let words = format!("{words} -s 0 -r 10 --dry-run");
        let refused = selftest(stage, &split(&words)).code(code).err(says);
        assert_eq!(refused.out, "", "{words}");
    }
    for good in ["-e 0:1", "-g nobody -e 7:0"] {
        let words = format!("-u --path . {good} -s 0 -r 10 --dry-run");
        selftest(stage, &split(&words)).code(0);
    }
}

#[test]
fn servers_that_nobody_reaches_are_told_once_for_all_sizes() {
    let stage = &Stage::new();
    // Nobody listens at this port, which only the system's administrator could.
    let words = [
        "--target",
        "tcp://127.0.0.1:1",
        "-n",
        "-e",
        "0:0",
        "-s",
        "(0 0) (i8 0)",
        "-r",
        "10",
    ];
    let refused = selftest(stage, &words).code(3);
    assert_eq!(refused.err.matches("error: ").count(), 1, "{refused}");
    let line = "\tNo RPC for this message size was sent: rank 0 tag 0 at tcp://127.0.0.1:1: ";
    assert_eq!(refused.out.matches(line).count(), 2, "{refused}");
    assert!(!refused.out.contains("failed"), "{refused}");
    stage.file("none.txt", &refused.out);
    stage
        .say(&["show", "none.txt", "--from", "self-test"])
        .code(0);
    let words = [&words as &[&str], &["--output", "json-cart"]].concat();
    let json: Value = serde_json::from_str(&selftest(stage, &words).code(3).out).unwrap();
    assert_eq!(json["status"], -1006, "{json}");
    assert!(
        json["error"]
            .as_str()
            .unwrap()
            .starts_with("no RPC was sent: "),
        "{json}"
    );
    stage.file("none.json", json.to_string());
    stage
        .say(&["show", "none.json", "--from", "self-test"])
        .code(0);
}

#[test]
fn a_table_that_is_no_file_is_named_and_what_weir_needs_comes_first() {
    let stage = &Stage::new();
    std::fs::create_dir(stage.path("daos_server.attach_info_tmp")).unwrap();
    symlink("/dev/zero", stage.path("b.attach_info_tmp")).unwrap();
    let says = "(looked for ./daos_server.attach_info_tmp, which is no regular file)";
    let refused = selftest(stage, &["-p", ".", "-s", "0"]).code(3).err(says);
    let lines: Vec<&str> = refused.err.lines().collect();
    assert!(
        lines[1].contains("`weir rpc serve --group daos_server`"),
        "{refused}"
    );
    assert!(
        lines[1].contains("--target") && lines[1].contains("--loopback"),
        "{refused}"
    );
    assert_eq!(lines[2], "Error: provider (D_PROVIDER) is not set");
    selftest(stage, &["-p", ".", "-g", "b", "-s", "0"])
        .code(3)
        .err("no regular file");
}

#[test]
fn a_run_that_is_interrupted_before_it_has_sent_anything_says_so() {
    let stage = Stage::new();
    let words = "self_test --loopback -e 0:0 -s 0 -r 10 --warmup 50s --history off";
    let running = Running::start(quiet(stage.peer(&split(words))));
    until("it warms up", || running.catches_signals());
    running.signal(Signal::INT);
    let said = running.end().code(130);
    let line = "\tNo RPC for this message size was sent: the run was interrupted before\n";
    // Unless it had not even begun.
    assert!(
        said.out.contains(line) || !said.out.contains("Master Endpoint"),
        "{said}"
    );
    assert!(!said.out.contains("failed"), "{said}");
}

#[test]
fn a_run_that_is_interrupted_while_it_connects_ends_without_its_servers() {
    let stage = Stage::new();
    // It takes connections, and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    // Each asks somebody else first: every rank, an endpoint, a master.
    for first in ["", "-n", "-n -m 0:0"] {
        let words = format!(
            "self_test --target tcp://{at} -e 0:0 -s 0 -r 10 --attach-timeout 100 --history off {first}"
        );
        let running = Running::start(quiet(stage.peer(&split(&words))));
        let held = silent.accept().unwrap();
        running.signal(Signal::INT);
        let said = running.end().code(130);
        let said = said.out("+ Interrupted by signal 2");
        assert!(!said.err.contains("error: "), "{said}");
        assert!(!said.out.contains("Refused"), "{said}");
        drop(held);
    }
}

#[test]
fn a_search_that_is_interrupted_has_found_nothing_yet() {
    let stage = Stage::new();
    let server = Server::start(&stage, "--rank 0");
    let words = "self_test -u --path . -e 0:0 -s 0 --find-max p99<1s --duration 50s --warmup 0";
    let running = Running::start(quiet(stage.peer(&split(words))));
    until("the first step has begun", || running.catches_signals());
    server.works_for(5);
    running.signal(Signal::INT);
    let said = running.end().code(130);
    said.out("+ Interrupted before a rate was found that keeps it\n")
        .out("closed loop\n");
}

#[test]
fn a_search_whose_text_is_lost_fails() {
    let stage = &Stage::new();
    let words =
        "--transport null -e 0:0 -s 0 -i 1 --warmup 0 --find-max 'p50<1s' -r 200 --history off";
    shell(stage, &format!("\"$0\" {words} >&-"))
        .code(1)
        .err("standard output is closed");
    let table = selftest(stage, &split(words)).code(0);
    table.out(" kept").out("+ Found: ").out(" closed loop\n");
}

#[test]
fn fewer_at_once_than_were_asked_for_are_noted() {
    let stage = &Stage::new();
    let words = [
        "--loopback",
        "-e",
        "0:0",
        "-i",
        "1000000",
        "-r",
        "10",
        "--dry-run",
    ];
    let said = selftest(stage, &words).code(0);
    said.out("  Max in-flight RPCs:          10\n")
        .err("note: --max-inflight-rpcs 1000000: there are 10 RPCs in all, and no more at once\n");
}

#[test]
fn a_server_refuses_ranks_and_ports_by_name_and_takes_a_single_rank() {
    let stage = &Stage::new();
    let serve = |words: &str| stage.say(&split(&format!("rpc serve --path . {words}")));
    serve("--ranks 3 --dry-run")
        .code(0)
        .out(": rank 3, 1 tag each");
    let refused = serve("--rank -1").code(2);
    assert_eq!(
        refused.err,
        "error: --rank -1: it takes a whole number from 0 to 4294967294\n"
    );
    // No warning of a server that there will not be.
    let refused = serve("--transport tcp://0.0.0.0:99999").code(2);
    assert_eq!(
        refused.err,
        "error: --transport tcp://0.0.0.0:99999: `tcp://0.0.0.0:99999`: a port is a number up to 65535, \
         not 99999, as in tcp://host:7000\n"
    );
    serve("--transport tcp+uring://lo")
        .code(2)
        .err("tcp is the nearest");
}

#[test]
fn a_stored_result_is_shown_in_forms_of_weirs_report_too() {
    let stage = &Stage::new();
    let words =
        "--transport null -e 0:0 -s 0 -r 100 --warmup 0 --history off --store-result r.json";
    selftest(stage, &split(words)).code(0);
    let own = stage.say(&["show", "r.json", "--format", "csv"]).code(0);
    let of_run = stage.say(&split("show r.json --as run --format csv"));
    assert_eq!(own.out, of_run.code(0).out);
    stage
        .say(&["show", "r.json", "--bogus"])
        .code(2)
        .err("`selftest` takes --Mbits, --output");
    let compared = stage.say(&["compare", "r.json", "r.json"]).code(0);
    compared.err("note: the sides hold the same run, which does not differ from itself\n");
}

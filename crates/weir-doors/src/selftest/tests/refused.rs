//! Words that are refused, with what to do.

use super::*;

#[test]
fn without_a_table_a_run_says_where_it_looked_and_a_dry_run_goes_on() {
    let refusal = read_with(&["-u"], &[("XDG_RUNTIME_DIR", "/r")]).unwrap_err();
    assert_eq!(refusal.code, 3);
    for place in ["/r/weir/", "/run/weir/", "/tmp/"] {
        let file = format!("{place}daos_server.attach_info_tmp");
        assert!(refusal.message.contains(&file), "{refusal}");
    }
    assert!(!refusal.message.contains("D_PROVIDER"), "{refusal}");
    let by_verb = read_with(&[], &[]).unwrap_err();
    assert!(!by_verb.message.contains("D_PROVIDER"), "{by_verb}");
    let alone = by_name(&[], &[]).unwrap_err();
    let provider =
        "Error: provider (D_PROVIDER) is not set\nExample: export D_PROVIDER='ofi+tcp'\n";
    // What weir needs is said first.
    assert!(alone.message.ends_with(provider), "{alone}");
    assert!(
        alone.message.starts_with("error: no table of group"),
        "{alone}"
    );
    for remedy in ["`weir rpc serve", "--target tcp://HOST:PORT", "--loopback"] {
        assert!(alone.message.contains(remedy), "{alone}");
    }
    let other = read_with(&["-g", "b", "-u"], &[("WEIR_GROUP_DIR", "/g")]).unwrap_err();
    let odd = "/g/b.attach_info_tmp, which is no regular file, ";
    assert!(other.message.contains(odd), "{other}");
    let dry = by_name(&["-u", "-t", "--dry-run"], &[]).unwrap();
    let Action::Print(printed) = dry.action else {
        panic!("{dry:?}");
    };
    assert!(
        printed.out.contains("Self Test Parameters:\n"),
        "{printed:?}"
    );
    assert_eq!(printed.err, "note: --singleton: ignored, has no meaning\n");
    // By the verb it says what a run would.
    assert_eq!(read_with(&["-u", "--dry-run"], &[]).unwrap_err().code, 3);
    let with_table = by_name(&["-u", "--dry-run"], &[("WEIR_GROUP_DIR", "/g")]).unwrap();
    assert!(
        matches!(with_table.action, Action::DryRun(..)),
        "{with_table:?}"
    );
    let own = run_with(&["--loopback"], &[]);
    assert_eq!(
        (works(&own)[0].loopback, works(&own)[0].table.clone()),
        (Some(3), None)
    );
    let named = run_with(&["--target", "tcp://a:1,tcp://b:2"], &[]);
    assert_eq!(works(&named)[0].targets.len(), 2);
}

/// Words that are refused, and why.
const REFUSED: &[(&[&str], &str)] = &[
    (&["-s", "10.5"], "--message-sizes 10.5: expected a size"),
    (
        &["-s", "1 2 3"],
        "--message-sizes 1 2 3: a message has two sizes, and there is more (at character 5: `3`)",
    ),
    (
        &["-s", "4294967296"],
        "--message-sizes 4294967296: a size goes up to",
    ),
    (&["-s", "100b"], "--message-sizes 100b: expected a size"),
    (
        &["-e", "0"],
        "--endpoint 0: endpoint must contain non-empty rank:tag",
    ),
    (
        &["-e", "a:0"],
        "--endpoint a:0: endpoint rank contains invalid characters (at character 1: `a:0`)",
    ),
    (&["-e", "1-:0"], "--endpoint 1-:0: "),
    (&["-e", "0:2:5"], "--endpoint 0:2:5: there is a third part"),
    (&["-m", "x"], "--master-endpoint x: "),
    (
        &["-r", "0"],
        "--repetitions-per-size 0: Invalid --repetitions-per-size argument: Expected value in range (0:1073741824], got 0",
    ),
    (
        &["-r", "4x"],
        "--repetitions-per-size 4x: it takes a whole number",
    ),
    (
        &["-r", "1073741824", "-e", "0-1:2"],
        "got 2147483648 (1073741824 × 2 endpoints)",
    ),
    (
        &["-i", "0"],
        "--max-inflight-rpcs 0: Invalid --max-inflight-rpcs argument",
    ),
    (&["-i", ""], "--max-inflight-rpcs: it takes a whole number"),
    (&["-a", "x"], "--align x: it takes a whole number"),
    (
        &["-g", "a/b"],
        "--group-name a/b: --group-name argument not specified or is invalid",
    ),
    (&["-p", "/nowhere"], "--path /nowhere: it is no directory"),
    (&["--bogus"], "no option `--bogus`"),
    (
        &["-e", "all:!0"],
        "--endpoint all:!0: endpoint tag names none; `!` leaves out of others, as in all,!2",
    ),
    (
        &["--baseline", "a.json", "--tolerance", "5"],
        "--baseline a.json: results are compared once they are stored: --repeat 10 --store-result B.json, then \
         `weir compare A.json B.json --fail-if",
    ),
    (&["--tolerance=5%"], "--tolerance 5%: results are compared"),
    (&["--m", "1"], "--m: it is short for several options"),
    (
        &["-e", "0-2000:0-2000"],
        "--endpoint: more than 1048576 endpoints",
    ),
    (&["-e", "0,!0:0"], "--endpoint: there is no such endpoint"),
    (
        &["--loopback", "--target", "tcp://h:7"],
        "--loopback: --target says elsewhere",
    ),
    (
        &["--arrival", "const"],
        "--arrival acts only with `--rate` or `--find-max`; leave it out",
    ),
    (
        &["--sweep-inflight", "1", "-i", "2"],
        "--sweep-inflight 1: --max-inflight-rpcs says how many at once; leave one out",
    ),
    (
        &["--samples", "f", "--rate", "5"],
        "--samples f: the latencies of samples are from when RPCs were sent, not from when they were due; \
         leave out --rate or this",
    ),
    (
        &["--matrix", "--duration", "5"],
        "--matrix: one thread has its RPCs in flight to one endpoint after another",
    ),
    (
        &["--connect-storm", "5", "-r", "5"],
        "--connect-storm 5: this command has one RPC on each connection; leave out --repetitions-per-size",
    ),
    (
        &["--loopback", "--transport", "null"],
        "--transport null: null calls nobody; leave out --loopback",
    ),
    (
        &["--loopback", "-m", "0:0"],
        "--loopback: the server of this run alone orders nothing; masters are servers of `weir rpc serve`; \
         leave out --master-endpoint or this",
    ),
    (
        &["--samples", "f", "--show-plan"],
        "--samples f: a plan has no place for the file; leave out --show-plan or this",
    ),
    (
        &["--transport", "tcp+uring"],
        "--transport tcp+uring: this build has no tcp+uring; tcp is the nearest",
    ),
    (
        &["--target", "tcp://h:99999"],
        "--target tcp://h:99999: `tcp://h:99999`: a port is a number up to 65535, not 99999",
    ),
    (
        &["-s", "0", "0", "b1m", "0"],
        "`0` is no option; message sizes are one word, in quotes: -s \"(0 0) (b1m 0)\"",
    ),
    (
        &["--find-max", "200"],
        "--find-max 200: it takes a percentile and a time",
    ),
    (
        &["--find-max", "p99<5", "--rate", "5"],
        "--find-max p99<5: each step has a rate",
    ),
    (
        &["--first", "--warmup", "5"],
        "--first: the first RPC is that of a new connection",
    ),
    (
        &["--stall-timeout", "0"],
        "--stall-timeout 0: it takes seconds above 0",
    ),
    (
        &["--replay", "f", "-r", "5"],
        "--repetitions-per-size 5: with --replay nothing is measured",
    ),
    (
        &["--samples", "f", "--repeat", "2"],
        "--samples f: it is one file for several runs; leave out --repeat or this",
    ),
    (
        &["--strict-rate"],
        "--strict-rate: --strict=rate-not-reached does it",
    ),
    (&["--endpoints", "1"], "did you mean `--endpoint`?"),
    (&["--verif", "full"], "did you mean `--verify`?"),
    (&["-z"], "no option `-z`"),
    (&["-e"], "--endpoint: it needs RANKS:TAGS after it"),
    (&["--Mbits=3"], "takes no value"),
    (&["--spread", "lest"], "did you mean `least`?"),
    (
        &["--net-test"],
        "--net-test: this build does not have that form",
    ),
    (&["--=3"], "no option `--`"),
    (
        &["-s", "0", "--", "(b1m"],
        "`(b1m` is no option; message sizes are one word",
    ),
    (
        &["p.json"],
        "`p.json` is no option; `weir run p.json` runs a stored plan",
    ),
    (
        &["x", "-u"],
        "`x` is no option; `weir selftest --help` lists",
    ),
    (&["-"], "`-` is no option"),
];

#[test]
fn what_is_wrong_is_refused_in_one_line_with_option_value_and_reason() {
    for (words, says) in REFUSED {
        let refusal = by_name(words, &[("WEIR_GROUP_DIR", "/g")]).unwrap_err();
        assert_eq!(refusal.code, 2, "{words:?}: {refusal}");
        let refusal = refusal.of_peer(2);
        assert!(refusal.message.contains(says), "{words:?}: {refusal}");
        assert_eq!(refusal.message.matches('\n').count(), 1, "{refusal}");
    }
    assert_eq!(MOST_ENDPOINTS, 1_048_576);
}

#[test]
fn by_the_verb_a_value_is_refused_as_at_every_door() {
    for (words, says) in [
        (
            ["-a", "256"],
            "--align 256: it takes a whole number from 0 to 255",
        ),
        (
            ["-r", "0"],
            "--repetitions-per-size 0: it takes a whole number from 1 to 1073741824",
        ),
        (["-i", ""], "--max-inflight-rpcs needs N, which is empty"),
        (
            ["-g", "a/b"],
            "--group-name a/b: a name has no '/' (character 2)",
        ),
    ] {
        let (door, args) = (&DOOR, list(&words));
        let link = None;
        let refusal = args::read(&DoorCall { door, link, args }).unwrap_err();
        let usage = "help: weir selftest [OPTIONS]; `weir selftest --help` says more";
        assert_eq!(refusal.message, format!("error: {says}\n  {usage}\n"));
    }
    let many = ["--loopback", "-r", "1073741824", "-e", "0:0-1"];
    let why = read_with(&many, &[]).unwrap_err().message;
    assert!(
        why.contains(": with 2 endpoints there are at most 1073741824 RPCs in all"),
        "{why}"
    );
}

#[test]
fn exit_codes_of_the_older_program_are_asked_for_by_its_name() {
    let code = |value: &str| {
        let variables = [("WEIR_COMPAT_EXIT", value)];
        let machine = TestMachine(&variables);
        exit::variables(&machine).map(|_| exit::peer_code(3, &call(&[]), &machine))
    };
    assert_eq!((code(""), code("cart")), (Ok(3), Ok(18)));
    let refusal = code("foo").unwrap_err();
    let says = "the variable WEIR_COMPAT_EXIT=foo: it takes cart";
    assert!(
        refusal.message.contains(says) && refusal.code == 2,
        "{refusal}"
    );
}

//! Words of `weir selftest`, what they come to, and what is printed before and after a run.

use super::*;
use weir_schema::{
    Job, MOST_ENDPOINTS, Outcome, RpcAddresses, RpcEndpoint, RpcEndpointResult, RpcMaster, RpcPoll,
    RpcWarmup, RunResult, Schedule, Workload, sample,
};
use weir_units::{Bytes, Nanos};

/// Eight RPCs of 10.5 to 84 µs, to two endpoints in turn.
const GOLDEN: &str = "\
# weir-selftest-samples 1
# tuple send=0:EMPTY reply=1048578:BULK_PUT inflight=16 master=1:0 duration_ns=4000000
latency_ns,rank,tag,code
10500,0,2,0
21000,1,2,0
31500,0,2,0
42000,1,2,0
52500,0,2,0
63000,1,2,0
73500,0,2,0
84000,1,2,0
";

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

/// A machine with these variables, on which `/g/daos_server.attach_info_tmp` is a table.
fn read_with(words: &[&str], variables: &[(&str, &str)]) -> Result<Action, Refusal> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let members = |_: &RpcWorkload| {
        Ok(vec![
            RankTags { rank: 0, tags: 3 },
            RankTags { rank: 2, tags: 1 },
        ])
    };
    read(
        &list(words),
        &SelfTestEnvironment {
            variable: &variable,
            is_directory: &|path| path == "/g",
            has_file: &|path| path == "/g/daos_server.attach_info_tmp",
            members: &members,
            is_linked: false,
            seed: 7,
            most_files: Some(1024),
        },
    )
}

fn run_of(words: &[&str]) -> SelfTestRun {
    run_with(words, &[("WEIR_GROUP_DIR", "/g")])
}

fn run_with(words: &[&str], variables: &[(&str, &str)]) -> SelfTestRun {
    match read_with(words, variables) {
        Ok(Action::Run(run)) => *run,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn works(run: &SelfTestRun) -> Vec<RpcWorkload> {
    let jobs = run.plan.jobs();
    let works = jobs.filter_map(|(_, job): (usize, &Job)| match &job.workload {
        Workload::Rpc(work) => Some(work.as_ref().clone()),
        _ => None,
    });
    works.collect()
}

fn head_of(words: &[&str]) -> String {
    let run = run_of(words);
    output::head(&run.plan, &run.options)
}

fn replayed(text: &str, words: &[&str]) -> (RunResult, String) {
    let result = samples::result(&samples::read(text).unwrap());
    let text = output::text(&result, &read_options(&list(words)).unwrap()).unwrap();
    (result, text)
}

#[test]
fn the_golden_example_is_printed_to_the_letter() {
    let (_, text) = replayed(GOLDEN, &[]);
    assert_eq!(
        text,
        "\
##################################################
Results for message size (0-EMPTY 1048578-BULK_PUT) (max_inflight_rpcs = 16):

Master Endpoint 1:0
-------------------
\tRPC Bandwidth (MB/sec): 2000.00
\tRPC Throughput (RPCs/sec): 2000
\tRPC Latencies (us):
\t\tMin    : 10
\t\t25th  %: 31
\t\tMedian : 52
\t\t75th  %: 73
\t\tMax    : 84
\t\tAverage: 47
\t\tStd Dev: 24.06
\tRPC Failures: 0

\tEndpoint results (rank:tag - Median Latency (us)):
\t\t0:2 - 31
\t\t1:2 - 42

"
    );
    let (_, mbits) = replayed(GOLDEN, &["-b"]);
    assert!(
        mbits.contains("\tRPC Bandwidth (Mbits/sec): 16777.25\n"),
        "{mbits}"
    );
    let (_, ns) = replayed(GOLDEN, &["--time-unit", "ns"]);
    assert!(
        ns.contains("\t\tMedian : 52500\n") && ns.contains("Latencies (ns)"),
        "{ns}"
    );
    let short = GOLDEN.replace("00,", ",");
    let (_, auto) = replayed(&short, &["--time-unit", "auto"]);
    assert!(auto.contains("\t\tMedian : 0.525\n"), "{auto}");
}

#[test]
fn rpcs_that_failed_or_were_not_sent_are_neither_work_nor_latency() {
    let some = GOLDEN
        .replace("84000,1,2,0", "84000,1,2,-1011")
        .replace("73500,0,2,0", ",,,unsent")
        .replace("63000,1,2,0", "9,1,2,-1006")
        .replace("42000,1,2,0", "9,1,2,-1011");
    let (result, text) = replayed(&some, &[]);
    for line in [
        "\tRPC Throughput (RPCs/sec): 1000\n",
        "\t\tMin    : 10\n",
        "\t\tMax    : 52\n",
        "\tRPC Failures: 3\n",
        "\t\t1:2 - 21\n\t\t\tFailures: 3/4\n\t\t\t2: -DER_TIMEDOUT (-1011)\n\t\t\t1: -DER_UNREACH (-1006)\n",
        "\t+ Not sent: 1\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let options = read_options(&[]).unwrap();
    assert_eq!(exit_code(&result, &options), 1);
    assert_eq!(in_style_of(1, Some(&result), true), 13);
    assert_eq!(in_style_of(1, Some(&result), false), 1);
    // An endpoint of which nothing came back.
    let (_, none) = replayed(&GOLDEN.replace(",1,2,0", ",1,2,-1999"), &[]);
    assert!(
        none.contains("\t\t1:2 - NA\n\t\t\tFailures: 4/4\n\t\t\t4: -DER_UNKNOWN (-1999)\n"),
        "{none}"
    );
}

#[test]
fn a_run_of_which_nothing_came_back_has_the_short_form() {
    let lines: Vec<String> = (0_u64..)
        .zip(GOLDEN.lines())
        .map(|(at, line)| match at {
            3..=6 => line.replace(",2,0", ",2,-1006"),
            7.. => ",,,unsent".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    let (result, text) = replayed(&lines.join("\n"), &[]);
    let block = "\tRPC Bandwidth (MB/sec): 0.00\n\tRPC Throughput (RPCs/sec): 0\n\tAll RPCs for this \
                 message size failed\n\t+ Not sent: 4\n";
    assert!(text.contains(block), "{text}");
    assert!(!text.contains("0:0"), "{text}");
    assert_eq!(exit_code(&result, &read_options(&[]).unwrap()), 1);
}

#[test]
fn further_lines_stand_below_the_block() {
    let (_, text) = replayed(GOLDEN, &["--percentiles", "99,90"]);
    let (_, plain) = replayed(GOLDEN, &[]);
    let below = text.strip_prefix(&plain).unwrap();
    assert_eq!(below, "\t+ 90th  %: 84 us\n\t+ 99th  %: 84 us\n\n");
}

#[test]
fn a_failed_master_is_named_and_several_are_added_up() {
    let two = format!(
        "{GOLDEN}{}",
        GOLDEN
            .lines()
            .skip(1)
            .collect::<Vec<_>>()
            .join("\n")
            .replace("master=1:0", "master=1:1")
    );
    let (_, text) = replayed(&two, &[]);
    assert_eq!(text.matches("Results for").count(), 1);
    let sum = "Aggregate of 2 masters\n\t+ RPC Bandwidth (MB/sec): 4000.01\n\t+ RPC Throughput \
               (RPCs/sec): 4000\n";
    assert!(text.contains(sum), "{text}");
    let mut master = RpcMaster::new(RpcEndpoint { rank: 3, tag: 1 }, "tcp");
    master.failure = Some(weir_schema::Failure::new("missing", "no such rank"));
    let job = sample::rpc_result("a", vec![master], 0);
    let mut result = RunResult::of(run_of(&["-u", "-s", "0"]).plan);
    result.groups[0].jobs = vec![job];
    let options = read_options(&[]).unwrap();
    result.ended_by = Some(weir_schema::EndedBy { signal: 2 });
    let text = output::text(&result, &options).unwrap();
    let ending = "+ Interrupted by signal 2: not all was measured\n";
    assert!(text.ends_with(ending), "{text}");
    assert_eq!(exit_code(&result, &options), 130);
    result.ended_by = None;
    assert!(
        text.contains("Master Endpoint 3:1 FAILED: no such rank\n"),
        "{text}"
    );
    assert_eq!(exit_code(&result, &options), 3);
    assert_eq!(in_style_of(3, Some(&result), true), 18);
}

#[test]
fn what_stands_before_the_results_is_in_the_order_of_the_reference() {
    assert_eq!(
        head_of(&["-s", "0 b1048578", "-r", "1000"]),
        "\
Warning: running without daos_agent connection (-u option); Using attachment file \
/g/daos_server.attach_info_tmp instead
Warning: no --group-name specified; using 'daos_server'
Warning: No --master-endpoint specified; using this command line application as the master endpoint
Warning: No --endpoint specified; using 0:0 default
Self Test Parameters:
  Group name to test against: daos_server
  # endpoints:                1
  Message sizes:              [(0-EMPTY 1048578-BULK_PUT)]
  Buffer addresses end with:  <Default>
  Repetitions per size:       1000
  Max in-flight RPCs:          16

"
    );
    let all = head_of(&[
        "-u",
        "-g",
        "daos_server",
        "-m",
        "0:0",
        "-e",
        "1-3,2:1-0",
        "-a",
        "3",
        "-r100",
        "-s",
        "0,1",
    ]);
    assert_eq!(
        all,
        "\
Adding endpoints:
  ranks: 0 (# ranks = 1)
  tags: 0 (# tags = 1)
Adding endpoints:
  ranks: 1-3,2 (# ranks = 4)
  tags: 0-1 (# tags = 2)
Self Test Parameters:
  Group name to test against: daos_server
  # endpoints:                8
  Message sizes:              [(0-EMPTY 0-EMPTY), (1-IOV 1-IOV)]
  Buffer addresses end with:  3
  Repetitions per size:       800
  Max in-flight RPCs:          16

"
    );
}

#[test]
fn the_order_that_is_drawn_and_an_odd_alignment_are_told() {
    let shuffled = head_of(&["-u", "-q", "-e", "0-4:0", "--seed", "3"]);
    assert!(
        shuffled.contains("Randomizing order of endpoints\nNew order:\n"),
        "{shuffled}"
    );
    let order = shuffled.lines().find(|line| line.ends_with(":0 ")).unwrap();
    let mut order: Vec<&str> = order.split_whitespace().collect();
    order.sort_unstable();
    assert_eq!(order, ["0:0", "1:0", "2:0", "3:0", "4:0"]);
    let odd = head_of(&["-u", "-a", "256"]);
    assert!(
        odd.starts_with("Warning: Invalid align value 256; Expected value in range [0:255]\n"),
        "{odd}"
    );
    assert!(
        odd.contains("ends with:  <Default>") || odd.contains("end with:  <Default>"),
        "{odd}"
    );
}

#[test]
fn more_at_once_than_there_are_is_as_many_as_there_are() {
    let head = head_of(&["-u", "-i", "64", "-r", "3", "-e", "0:2"]);
    assert!(
        head.contains("  Max in-flight RPCs:          3\n"),
        "{head}"
    );
    let head = head_of(&["-u", "-i", "64", "-r", "3", "-e", "0-3:2"]);
    assert!(
        head.contains("  Repetitions per size:       12\n"),
        "{head}"
    );
    assert!(
        head.contains("  Max in-flight RPCs:          12\n"),
        "{head}"
    );
}

#[test]
fn a_sweep_is_a_group_for_each_number_at_once_and_ends_with_a_table() {
    let words = [
        "-u",
        "-s",
        "0,1",
        "-r",
        "100",
        "--sweep-inflight",
        "4,1,999",
    ];
    let run = run_of(&words);
    let depths: Vec<u64> = works(&run).iter().map(RpcWorkload::in_flight).collect();
    assert_eq!(depths, [1, 4, 100, 1, 4, 100]);
    let head = output::head(&run.plan, &run.options);
    assert!(
        head.contains("[(0-EMPTY 0-EMPTY), (1-IOV 1-IOV)]\n"),
        "{head}"
    );
    assert!(
        head.contains("  Max in-flight RPCs:          1, 4, 100\n"),
        "{head}"
    );
    let second = GOLDEN.lines().skip(1).collect::<Vec<_>>().join("\n");
    let second = second.replace("inflight=16", "inflight=32");
    let (_, text) = replayed(&format!("{GOLDEN}{second}"), &[]);
    let table = "\
+ Sweep of (0-EMPTY 1048578-BULK_PUT)
+ in flight       RPCs/sec  median (us)  99th % (us)
+        16           2000           42           84
+        32           2000           42           84
+ Knee: ";
    assert!(text.contains(table), "{text}");
}

#[test]
fn options_are_what_the_plan_says() {
    let run = run_of(&[
        "-u",
        "-e",
        "0-1:2",
        "-s",
        "(0 0) (b1m 0)",
        "--threads",
        "2",
        "--rate",
        "10k/s",
        "--arrival",
        "poisson",
        "--duration",
        "3s",
        "--spread",
        "least",
        "--verify",
        "full",
        "--timeout",
        "0.01",
        "--warmup",
        "100",
        "--poll",
        "busy",
    ]);
    assert_eq!(run.plan.groups.len(), 2);
    let jobs: Vec<&Job> = run.plan.jobs().map(|(_, job)| job).collect();
    assert!(!jobs[0].start.barrier && jobs[1].start.barrier);
    assert_eq!(jobs[0].clones, 2);
    let works = works(&run);
    assert_eq!(works[1].bytes(), Bytes(1 << 20));
    let work = &works[0];
    assert_eq!(work.load.bounds.operations, None);
    assert_eq!(work.load.bounds.runtime_ns, Some(Nanos::from_secs(3)));
    let Some(Schedule::OpsPerSecond {
        limit_per_s,
        poisson,
        open_loop,
        ..
    }) = &work.load.pacing.schedule
    else {
        panic!("no schedule");
    };
    assert!(*poisson && *open_loop && limit_per_s.len() == 1);
    assert!(
        limit_per_s
            .values()
            .all(|rate| (rate.0 - 5000.0).abs() < 1e-9)
    );
    assert_eq!(work.timeout_ns, Nanos::from_millis(10));
    assert_eq!(work.warmup, RpcWarmup::Requests { count: 100 });
    assert_eq!(work.poll, RpcPoll::Busy);
    let again = Plan::from_json(&run.plan.to_json().unwrap()).unwrap();
    assert_eq!(again, run.plan);
}

#[test]
fn a_storm_has_as_many_connections_as_files_can_be_open() {
    let storm = |words: &[&str]| {
        let run = run_of(&[&["-u", "-i", "999", "--connect-storm"], words].concat());
        let work = works(&run).remove(0);
        assert_eq!(work.load.bounds.operations, work.connections.map(u64::from));
        (work.connections, work.in_flight(), run.notes)
    };
    let group = "from the environment: WEIR_GROUP_DIR=/g".to_owned();
    assert_eq!(storm(&["300"]), (Some(300), 300, vec![group.clone()]));
    let note = "--connect-storm 2000: a process may have 1024 files open here: 960 connections";
    assert_eq!(
        storm(&["2000"]),
        (Some(960), 960, vec![note.to_owned(), group])
    );
}

#[test]
fn several_runs_are_those_of_the_house() {
    match read_with(&["--loopback", "--repeat", "7", "--output", "json"], &[]) {
        Ok(Action::Repeat { run, repeat, .. }) => {
            assert_eq!((repeat.runs, run.repeat), (7, Some(repeat)));
            assert_eq!(run.options.format, RunFormat::Json);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn variables_say_what_options_leave_open() {
    let variables = [
        ("CRT_ATTACH_INFO_PATH", "/g"),
        ("D_PROVIDER", "ofi+tcp"),
        ("D_INTERFACE", "eth0"),
        ("OFI_INTERFACE", "eth1"),
        ("CRT_TIMEOUT", "5"),
        ("CRT_CREDIT_EP_CTX", "999"),
        ("D_QUOTA_RPCS", "12"),
        ("D_ADDR_FORMAT", "ipv6"),
        ("D_PROGRESS_SPINDOWN", "3"),
    ];
    let run = run_with(&["-e", "0:0"], &variables);
    let work = &works(&run)[0];
    assert_eq!(work.table.as_deref(), Some("/g"));
    assert_eq!(work.transport.as_deref(), Some("ofi+tcp"));
    assert_eq!(work.interface.as_deref(), Some("eth0"));
    assert_eq!(work.timeout_ns, Nanos::from_secs(5));
    assert_eq!((work.credits_per_rank, work.quota), (256, 12));
    assert_eq!(work.addresses, RpcAddresses::Ipv6);
    let note = run.notes.join("\n");
    assert!(
        note.contains("CRT_TIMEOUT=5")
            && note.contains(" D_INTERFACE=eth0 ")
            && note.contains(" D_QUOTA_RPCS=12"),
        "{note}"
    );
    assert!(!note.contains("OFI_INTERFACE="), "{note}");
    assert!(note.contains("CRT_CREDIT_EP_CTX goes up to 256"), "{note}");
    let threads = |words: &[&str]| {
        let variables = [
            ("WEIR_GROUP_DIR", "/g"),
            ("CRT_CTX_NUM", "4"),
            ("D_DOMAIN", "mlx5_0"),
        ];
        let run = run_with(words, &variables);
        let jobs = run.plan.jobs();
        let clones: Vec<u32> = jobs.map(|(_, job): (usize, &Job)| job.clones).collect();
        let domain = works(&run)[0].domain.clone();
        (
            clones[0],
            domain,
            run.notes.join("\n").contains("CRT_CTX_NUM=4"),
        )
    };
    let domain = Some("mlx5_0".to_owned());
    assert_eq!(threads(&["-e", "0:0"]), (4, domain.clone(), true));
    let words = ["-e", "0:0", "--threads", "2"];
    assert_eq!(threads(&words), (2, domain, false));
    let refusal = read_with(&["-u"], &[("CRT_TIMEOUT", "x")]).unwrap_err();
    assert!(
        refusal.message.contains("the variable CRT_TIMEOUT=x"),
        "{refusal}"
    );
}

#[test]
fn a_log_is_what_its_two_variables_say() {
    let log = |variables: &[(&str, &str)]| {
        log_settings(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let file = ("D_LOG_FILE", "/l");
    let level = |mask: &str| log(&[file, ("D_LOG_MASK", mask)]).unwrap().unwrap().level;
    assert_eq!(log(&[("D_LOG_MASK", "ERR")]).unwrap(), None);
    assert_eq!(log(&[file]).unwrap().unwrap().level, LogLevel::Warnings);
    assert_eq!(level("err,HG=DEBUG"), LogLevel::Errors);
    assert_eq!(level("HG=DEBUG,INFO"), LogLevel::Notes);
    assert_eq!(level("HG=DEBUG"), LogLevel::Warnings);
    assert!(log(&[file, ("D_LOG_MASK", "loud")]).is_err());
}

#[test]
fn ranks_are_asked_first_without_the_defaults_of_a_site() {
    for (words, asks) in [
        (&["-e", "0:0"] as &[&str], true),
        (&["-n"], false),
        (&["-u"], false),
        (&["--loopback"], false),
    ] {
        assert_eq!(works(&run_of(words))[0].ping, asks, "{words:?}");
    }
}

#[test]
fn without_a_table_a_run_says_where_it_looked_and_a_dry_run_goes_on() {
    let refusal = read_with(&["-u"], &[("XDG_RUNTIME_DIR", "/r")]).unwrap_err();
    assert_eq!(refusal.code, 3);
    for place in ["/r/weir/", "/run/weir/", "/tmp/"] {
        let file = format!("{place}daos_server.attach_info_tmp");
        assert!(refusal.message.contains(&file), "{refusal}");
    }
    assert!(!refusal.message.contains("D_PROVIDER"), "{refusal}");
    let alone = read_with(&[], &[]).unwrap_err();
    let provider =
        "Error: provider (D_PROVIDER) is not set\nExample: export D_PROVIDER='ofi+tcp'\n";
    assert!(alone.message.starts_with(provider), "{alone}");
    let run = run_with(&["-u", "--dry-run"], &[]);
    assert_eq!(run.mode, SelfTestMode::DryRun);
    let own = run_with(&["--loopback"], &[]);
    assert_eq!(
        (works(&own)[0].loopback, works(&own)[0].table.clone()),
        (Some(3), None)
    );
    let named = run_with(&["--target", "tcp://a:1,tcp://b:2"], &[]);
    assert_eq!(works(&named)[0].targets.len(), 2);
}

#[test]
fn all_are_those_of_the_group() {
    let run = run_of(&["-u", "-e", "all:all", "-r", "10", "-i", "999"]);
    assert_eq!(works(&run)[0].load.bounds.operations, Some(40));
    let head = output::head(&run.plan, &run.options);
    assert!(head.contains("  ranks: all (# ranks = all)\n"), "{head}");
    assert!(head.contains("  # endpoints:                4\n"), "{head}");
    let own = run_of(&["--loopback=2", "-e", "0:all", "-r", "10", "-q"]);
    assert_eq!(works(&own)[0].load.bounds.operations, Some(20));
    assert_eq!(works(&own)[0].endpoints.len(), 2);
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
    (&["--m", "1"], "--m: it is short for several options"),
    (
        &["-e", "0-2000:0-2000"],
        "--endpoint: more than 1048576 endpoints",
    ),
    (&["-e", "0,!0:0"], "--endpoint: there is no such endpoint"),
    (
        &["--loopback", "--target", "shm://"],
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
        &["--find-max", "200"],
        "--find-max 200: it takes a percentile and a time",
    ),
    (
        &["--find-max", "p99<5", "--rate", "5"],
        "--find-max p99<5: each step has a rate",
    ),
    (
        &["--repeat", "3", "--verbose"],
        "--repeat 3: the report is that of several runs; leave out --verbose or this",
    ),
    (
        &["--repeat", "1"],
        "--repeat 1: it takes a whole number from 2 to 1000",
    ),
    (
        &["--repeat", "2", "--output", "prom"],
        "--output prom: several runs are printed as text, json or csv",
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
        &["--dry-run", "--store-result", "f"],
        "--store-result f: nothing is measured",
    ),
];

#[test]
fn what_is_wrong_is_refused_in_one_line_with_option_value_and_reason() {
    for (words, says) in REFUSED {
        let refusal = read_with(words, &[("WEIR_GROUP_DIR", "/g")]).unwrap_err();
        assert_eq!(refusal.code, 2, "{words:?}: {refusal}");
        assert!(refusal.message.contains(says), "{words:?}: {refusal}");
        assert_eq!(refusal.message.matches('\n').count(), 1, "{refusal}");
    }
    assert_eq!(MOST_ENDPOINTS, 1_048_576);
}

#[test]
fn json_of_the_older_program_has_its_fields() {
    let (_, text) = replayed(GOLDEN, &["--output", "json-cart"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["status"], &document["error"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let result = &document["response"]["results"][0];
    assert_eq!(result["master_endpoint"], "1:0");
    assert_eq!(
        result["target_endpoints"],
        serde_json::json!(["0:2", "1:2"])
    );
    assert_eq!(result["duration"], 4_000_000);
    let rate = result["rpc_count_per_second"].as_f64().unwrap();
    assert!((rate * 4e-3 - 8.0).abs() < 1e-9);
    let latency = &result["master_latency"];
    assert_eq!(
        (&latency["min"], &latency["max"]),
        (&10_500.into(), &84_000.into())
    );
    assert!((latency["avg"].as_f64().unwrap() - 47_250.0).abs() < 1e-9);
    let deviation = latency["std_dev"].as_f64().unwrap();
    assert!((deviation - 25_719.642_3).abs() < 1e-3, "{deviation}");
    let points = latency["percentiles"].as_array().unwrap();
    let labels: Vec<&str> = points
        .iter()
        .map(|point| point["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["50", "75", "90", "95", "99"]);
    let bounds: Vec<u64> = points
        .iter()
        .map(|p| p["upper_bound"].as_u64().unwrap())
        .collect();
    assert!(bounds.is_sorted(), "{bounds:?}");
    let configuration = &document["response"]["configuration"];
    assert_eq!(configuration["buffer_alignment"], -1);
    assert!(configuration.get("master_endpoints").is_none());
    let words = ["-u", "-m", "0:0-1", "-s", "0", "--output", "json-cart"];
    let run = run_of(&words);
    let text = output::text(&RunResult::of(run.plan), &run.options).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let masters = &document["response"]["configuration"]["master_endpoints"];
    assert_eq!(
        *masters,
        serde_json::json!([{"Rank": 0, "Tag": 0}, {"Rank": 0, "Tag": 1}])
    );
}

#[test]
fn rows_have_as_many_fields_as_columns() {
    let (_, text) = replayed(GOLDEN, &["--output", "csv"]);
    let counts: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(counts, [20; 4]);
    let own = "0,EMPTY,1048578,BULK_PUT,16,1:0,all,8,0,0,4000000,2000,";
    assert!(text.contains(own), "{text}");
    assert!(text.contains(",1:0,0:2,4,0,,,,,"), "{text}");
    let (_, text) = replayed(GOLDEN, &["--output", "prom"]);
    let line = "weir_selftest_rpcs_per_second{send=\"0:EMPTY\",reply=\"1048578:BULK_PUT\",\
                in_flight=\"16\",master=\"1:0\"} 2000\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn blocks_come_out_one_by_one_as_they_do_together() {
    let two = format!(
        "{GOLDEN}{}",
        GOLDEN.lines().skip(1).collect::<Vec<_>>().join("\n")
    );
    let (result, all) = replayed(&two, &[]);
    assert_eq!(result.groups.len(), 2);
    let options = read_options(&[]).unwrap();
    let blocks: String = (0..2)
        .map(|at| output::block(&result, at, &options))
        .collect();
    assert_eq!(blocks, all);
    assert!(output::is_whole(&result.plan, 0, |index| index == 0));
    assert!(!output::is_whole(&result.plan, 1, |index| index == 0));
}

#[test]
fn what_limits_a_master_is_said_below_its_block() {
    let (mut result, plain) = replayed(GOLDEN, &[]);
    let options = read_options(&[]).unwrap();
    let mut with = |change: &dyn Fn(&mut RpcMaster)| {
        let Outcome::Rpc(outcome) = &mut result.groups[0].jobs[0].outcome else {
            panic!("no RPCs");
        };
        let before = outcome.masters[0].clone();
        change(&mut outcome.masters[0]);
        let text = output::text(&result, &options).unwrap();
        let Outcome::Rpc(outcome) = &mut result.groups[0].jobs[0].outcome else {
            panic!("no RPCs");
        };
        outcome.masters[0] = before;
        text
    };
    let limited = with(&|master| {
        (master.credits, master.effective_in_flight) = (Some(4), Some(3.9));
        (master.credit_waits, master.credit_wait_ns) = (12, Nanos(7_654_321));
    });
    let lines = "\t+ A server allows no more RPCs at once than 4\n\t+ Effective in-flight: 3.90\n\
                 \t+ Waits for credits: 12, together 7654 us\n\n";
    assert_eq!(limited, format!("{plain}{lines}"));
    let bound = with(&|master| (master.busy, master.client_bound) = (Some(0.972), true));
    let line =
        "\t+ Client-bound: its threads worked 97 % of the time (more of them: --threads)\n\n";
    assert_eq!(bound, format!("{plain}{line}"));
    assert_eq!(with(&|master| master.busy = Some(0.5)), plain);
}

#[test]
fn endpoints_without_a_reply_have_no_median() {
    let mut master = RpcMaster::new(RpcEndpoint { rank: 0, tag: 0 }, "tcp");
    master
        .endpoints
        .push(RpcEndpointResult::new(RpcEndpoint { rank: 0, tag: 0 }));
    master.conclude();
    assert_eq!(
        (master.endpoints[0].median_ns, master.figures),
        (None, None)
    );
}

#[test]
fn the_examples_of_the_page_are_good_words() {
    let Ok(Action::Print(page)) = read_with(&["--help"], &[]) else {
        panic!("no page");
    };
    assert!(!page.contains("--net-test"), "{page}");
    let examples: Vec<&str> = page
        .lines()
        .filter_map(|l| l.strip_prefix("    weir selftest "))
        .collect();
    assert!((3..=5).contains(&examples.len()), "{page}");
    for example in examples {
        let mut words: Vec<String> = Vec::new();
        for (at, part) in example.split('"').enumerate() {
            if at % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let read = read_with(&words, &[("WEIR_GROUP_DIR", "/g")]);
        assert!(
            matches!(read, Ok(Action::Run(_) | Action::Replay { .. })),
            "{example}: {read:?}"
        );
    }
}

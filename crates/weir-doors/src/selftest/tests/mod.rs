//! Words of `weir selftest` and the plan that they come to; what is printed and what is refused is in files of
//! its own.

mod forms;
mod refused;
mod text;

use super::*;
use weir_schema::{
    Job, JobResult, MOST_ENDPOINTS, Outcome, Plan, RankTags, RpcAddresses, RpcEndpoint,
    RpcEndpointResult, RpcMaster, RpcPoll, RpcWarmup, RpcWorkload, RunResult, Schedule, Workload,
};
use weir_units::{Bytes, Nanos};

use crate::args::{self, Arguments, DoorCall, read_given};
use crate::door::{Printed, Voice};
use crate::house::{self, Input, RunFormat, Strict};
use crate::machine::{Machine, NamedPath};
use crate::observer::{JobProgress, Snapshot};
use crate::request::{Action, Request};

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

/// A machine with these variables, on which `/g/daos_server.attach_info_tmp` is a table and a file `s` has samples.
struct TestMachine<'a>(&'a [(&'a str, &'a str)]);

impl Machine for TestMachine<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn file(&self, path: &str, _: u64) -> Result<String, String> {
        let text = GOLDEN.to_owned() + "# exit=3\n";
        (path == "s")
            .then_some(text)
            .ok_or_else(|| "no such file".to_owned())
    }

    fn named_path(&self, path: &str) -> NamedPath {
        match path {
            "/g" => NamedPath::Directory,
            "/g/daos_server.attach_info_tmp" => NamedPath::of_file(b""),
            _ if path.starts_with("/g/") => NamedPath::Other,
            _ => NamedPath::Missing,
        }
    }

    fn group_members(&self, _: &RpcWorkload) -> Result<Vec<RankTags>, String> {
        Ok(vec![
            RankTags { rank: 0, tags: 3 },
            RankTags { rank: 2, tags: 1 },
        ])
    }

    fn most_open_files(&self) -> Option<u64> {
        Some(1024)
    }
}

/// A call by the peer's name.
fn call(words: &[&str]) -> DoorCall {
    DoorCall {
        door: &DOOR,
        link: Some(&DOOR.links[0]),
        args: list(words),
    }
}

fn by_name(words: &[&str], variables: &[(&str, &str)]) -> Result<Request, Refusal> {
    match args::read(&call(words))? {
        Arguments::Given(given) => request::read(&given, &TestMachine(variables)),
        Arguments::Print(page) => panic!("{page}"),
    }
}

fn read_with(words: &[&str], variables: &[(&str, &str)]) -> Result<Request, Refusal> {
    request::read(&read_given(&DOOR, &list(words))?, &TestMachine(variables))
}

fn options(words: &[&str]) -> SelfTestOptions {
    SelfTestOptions::read(&read_given(&DOOR, &list(words)).unwrap())
}

/// Run that was asked for, and how it is shown.
struct TestRun {
    plan: Plan,
    options: SelfTestOptions,
    notes: Vec<String>,
}

fn run_of(words: &[&str]) -> TestRun {
    run_with(words, &[("WEIR_GROUP_DIR", "/g")])
}

fn run_with(words: &[&str], variables: &[(&str, &str)]) -> TestRun {
    let request = read_with(words, variables).unwrap_or_else(|why| panic!("{words:?}: {why}"));
    let Action::Measure(Input::Made(plan)) = request.action else {
        panic!("{words:?}: {request:?}");
    };
    TestRun {
        plan: *plan,
        options: options(words),
        notes: request.notes,
    }
}

fn works(run: &TestRun) -> Vec<RpcWorkload> {
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
    let result = samples::read(text).unwrap().0;
    let text = output::text(&result, &options(words));
    (result, text)
}

/// The exit code by the peer's name.
fn code(result: &RunResult) -> u8 {
    exit_code(result, None, &Strict::No)
}

#[test]
fn names_may_be_cut_short_and_letters_stand_together() {
    for words in [
        &["--endpoint", "0:2", "-u", "--repetitions", "5"] as &[&str],
        &["-ue0:2", "--rep=5"],
        &["-ue", "0:2", "-r5", "--"],
        &["--end=0:2", "--use", "--repetitions-per-size=5"],
    ] {
        let given = read_given(&DOOR, &list(words)).unwrap();
        assert_eq!(given.text("endpoint"), Some("0:2"), "{words:?}");
        assert_eq!(given.text("repetitions-per-size"), Some("5"), "{words:?}");
        assert!(given.has("use-daos-agent-env"), "{words:?}");
    }
    let of = |words: &[&str], name: &str| {
        let given = read_given(&DOOR, &list(words)).unwrap();
        given.text(name).map(str::to_owned)
    };
    for (words, name, value) in [
        (&["-un"] as &[&str], "no-sync", ""),
        (&["--p", "/d"], "path", "/d"),
        (&["--a", "3"], "align", "3"),
        (&["--loopback"], "loopback", ""),
        // What follows a name is its value.
        (&["-g", "-u"], "group-name", "-u"),
    ] {
        assert_eq!(of(words, name).as_deref(), Some(value), "{words:?}");
    }
}

#[test]
fn options_of_older_versions_are_noted_and_do_nothing() {
    let run = run_with(&["--loopback", "-t", "-n", "--nopmix", "--singleton"], &[]);
    assert_eq!(
        run.notes,
        [
            "--singleton: ignored, has no meaning",
            "--nopmix: ignored, has no meaning"
        ]
    );
}

#[test]
fn forms_of_the_peer_are_printed_in_either_voice() {
    let of = |words: &[&str]| house::voice(&read_given(&DOOR, &list(words)).unwrap());
    assert_eq!(of(&["--loopback"]), Voice::Weir);
    for words in [&["-b"] as &[&str], &["--output", "csv"], &["--verbose"]] {
        assert_eq!(of(words), Voice::Peer, "{words:?}");
    }
    // A form of weir's report in the peer's voice.
    let given = read_given(&DOOR, &list(&["--voice", "peer", "--format", "csv"])).unwrap();
    let (result, _) = replayed(GOLDEN, &[]);
    let printed = print::print(&result, &given, &TestMachine(&[]));
    assert_eq!((printed.report, &*printed.out), (Some(RunFormat::Csv), ""));
}

#[test]
fn stored_samples_end_with_their_exit_code_in_the_style_that_is_asked_for() {
    let code = |variables| by_name(&["--replay", "s"], variables).unwrap().least_code;
    assert_eq!(code(&[]), 3);
    assert_eq!(code(&[("WEIR_COMPAT_EXIT", "cart")]), 18);
    let by_verb = read_with(&["--replay", "s"], &[("WEIR_COMPAT_EXIT", "cart")]).unwrap();
    assert_eq!(by_verb.least_code, 3);
    assert!(matches!(by_verb.action, Action::Show(_)));
}

#[test]
fn blocks_come_out_one_by_one_as_they_do_together() {
    let two = GOLDEN.lines().skip(1).collect::<Vec<_>>().join("\n");
    let (result, whole) = replayed(&format!("{GOLDEN}{two}"), &[]);
    assert_eq!(result.groups.len(), 2);
    let given = read_given(&DOOR, &[]).unwrap();
    let mut observer = print::observer(&given, &TestMachine(&[]));
    let mut out = observer.begin(&result.plan);
    assert_eq!(out, output::head(&result.plan, &options(&[])));
    let progress = |has_ended| JobProgress {
        has_ended,
        workers: Vec::new(),
        elapsed_s: 0.0,
        fraction: None,
        operations: [0; 3],
        bytes: [0; 3],
    };
    let text = |out: &str| Printed {
        out: out.to_owned(),
        ..Printed::default()
    };
    let mut look = |ended: &[usize]| {
        observer.look(&Snapshot {
            elapsed_ns: Nanos::ZERO,
            measured_ns: Nanos::ZERO,
            is_asked: false,
            jobs: &|| (0..2).map(|at| progress(ended.contains(&at))).collect(),
            result: &|| result.clone(),
        })
    };
    assert_eq!(look(&[]), "");
    // The second has nothing before it that is not over.
    assert_eq!(look(&[1]), "");
    let first = look(&[0]);
    assert_eq!(first, output::block(&result, 0, &options(&[])));
    assert_eq!(look(&[0]), "");
    out += &first;
    out += &observer.rest(&result, &TestMachine(&[]), text("")).out;
    assert_eq!(out, output::head(&result.plan, &options(&[])) + &whole);
    // Other forms come at the end.
    let given = read_given(&DOOR, &list(&["--output", "csv"])).unwrap();
    let mut observer = print::observer(&given, &TestMachine(&[]));
    assert_eq!(observer.begin(&result.plan), "");
    let rest = observer.rest(&result, &TestMachine(&[]), text("rows"));
    assert_eq!(rest.out, "rows");
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
fn that_fewer_are_at_once_than_were_asked_for_is_noted() {
    let note = |words: &[&str]| {
        let notes = run_of(&[&["-u", "-e", "0-1:2"], words].concat()).notes;
        notes.into_iter().find(|note| note.contains("inflight"))
    };
    assert_eq!(
        note(&["-i", "1000000", "-r", "10"]).as_deref(),
        Some("--max-inflight-rpcs 1000000: there are 20 RPCs in all, and no more at once")
    );
    assert_eq!(note(&["-i", "20", "-r", "10"]), None);
    // Nobody asked for 16.
    assert_eq!(note(&["-r", "3"]), None);
    assert_eq!(note(&["-i", "1000000", "--duration", "1"]), None);
}

#[test]
fn no_thread_is_without_an_rpc_at_once_and_those_that_are_share_the_rate() {
    let of = |words: &[&str]| {
        let words = [&["-u", "-s", "0", "-r", "100", "--rate", "1000"], words].concat();
        let run = run_of(&words);
        let rate =
            |job: &weir_schema::Job| match &output::work_of(job).unwrap().load.pacing.schedule {
                Some(weir_schema::Schedule::OpsPerSecond { limit_per_s, .. }) => {
                    limit_per_s.values().next().unwrap().0
                }
                other => panic!("{other:?}"),
            };
        let jobs: Vec<(u32, f64)> = run
            .plan
            .jobs()
            .map(|(_, job)| (job.clones, rate(job)))
            .collect();
        (
            jobs,
            run.notes.iter().any(|note| note.starts_with("--threads")),
        )
    };
    assert_eq!(of(&["--threads", "4"]), (vec![(4, 250.0)], false));
    assert_eq!(of(&["--threads", "4", "-i", "2"]), (vec![(2, 500.0)], true));
    let sweep = of(&["--threads", "4", "--sweep-inflight", "1,8"]);
    assert_eq!(sweep, (vec![(1, 1000.0), (4, 250.0)], true));
    let masters = of(&["--threads", "4", "-i", "2", "-m", "0:0"]);
    assert_eq!(masters, (vec![(4, 1000.0)], false));
}

#[test]
fn without_a_network_no_table_is_looked_for() {
    let run = run_with(&["--transport", "null", "-e", "0:0"], &[]);
    assert_eq!(works(&run)[0].table, None);
    assert!(!output::head(&run.plan, &run.options).contains("attachment file"));
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
+        16           2000           52           84
+        32           2000           52           84
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

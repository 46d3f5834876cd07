//! Words of `weir selftest` and the plan that they come to; what is printed and what is refused is in files of
//! its own.

mod forms;
mod refused;
mod text;

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
            is_taken: &|path| path.starts_with("/g/"),
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
    let result = samples::result(&samples::read(text).unwrap().masters);
    let text = output::text(&result, &read_options(&list(words)).unwrap()).unwrap();
    (result, text)
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
            run.notes
                .iter()
                .any(|note| note.starts_with("warning: --threads")),
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

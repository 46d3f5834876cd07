//! From words to plans, and from made-up results to the peer's text.

use weir_schema::{
    Distribution, FileNames, Group, Job, JobResult, Kind, KindName, KindResult, MemoryKind,
    Outcome, Plan, RunResult, Schedule, Size, Span, Stage, StageHistogram, WorkerResult,
};
use weir_stats::Histogram;
use weir_units::{Bytes, Nanos};

use super::{DOOR, FLAGS, output};
use crate::args::{self, Arguments, DoorCall};
use crate::flags::Standing;
use crate::given::Given;
use crate::house::Input;
use crate::machine::SampleMachine;
use crate::observer::Observer as _;
use crate::refusal::{LACKS, Refusal};
use crate::request::{Action, Request};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn given(args: Vec<String>) -> Result<Given, Refusal> {
    let call = DoorCall {
        door: &DOOR,
        link: None,
        args,
    };
    match args::read(&call)? {
        Arguments::Given(given) => Ok(*given),
        Arguments::Print(page) => panic!("{page}"),
    }
}

fn request(text: &str) -> Result<Request, Refusal> {
    (DOOR.measures.unwrap().read)(&given(words(text))?, &SampleMachine(None))
}

fn plan(text: &str) -> Plan {
    match request(text).unwrap().action {
        Action::Measure(Input::Made(plan)) => *plan,
        other => panic!("{other:?}"),
    }
}

fn refusal(text: &str) -> Refusal {
    request(text).expect_err(text)
}

/// First byte and length of a job's part.
fn part(job: &Job) -> (u64, u64) {
    let region = &job.blocks().unwrap().region;
    match (region.offset, region.size) {
        (Some(Size::Bytes(first)), Some(Size::Bytes(length))) => (first.0, length.0),
        other => panic!("{other:?}"),
    }
}

const BASIC: &str = "-q 4 -o 4096 -t 1";

#[test]
fn the_command_lines_of_the_guide_are_a_job_per_core_on_the_drive() {
    for (size, line) in [
        (1 << 20, "-q 16 -o 1048576 -w read -c 0xff -t 60"),
        (
            4096,
            "-q 16 -o 4096 -w read -c 0xff -t 60 --allowed-pci-addr 0000:01:00.0 --enable-vmd",
        ),
    ] {
        let plan = plan(line);
        assert_eq!(plan.jobs().count(), 8);
        for (core, (_, job)) in (0..).zip(plan.jobs()) {
            let name = format!("PCIE (0000:01:00.0) [144d:a80a] NSID 1 from core {core}");
            assert_eq!(job.name, name);
            assert_eq!(job.placement.cpus, Some(vec![core]));
            let work = job.blocks().unwrap();
            assert_eq!(work.targets.files, FileNames::of("/dev/nvme0n1"));
            assert!(work.targets.open.read_only && work.targets.open.direct);
            assert_eq!(work.sizes.size.read.max(), Bytes(size));
            assert_eq!(work.load.depth.queue_depth.0, 16);
            assert_eq!(work.load.bounds.runtime_ns, Some(Nanos::from_secs(60)));
            assert!(work.is_endless());
            let eighth = (64 << 20) / 8;
            assert_eq!(part(job), (u64::from(core) * eighth, eighth));
        }
    }
}

#[test]
fn targets_and_cores_are_dealt_in_turn() {
    let pairs = |text: &str| -> Vec<String> {
        plan(&format!("{BASIC} -w randread {text}"))
            .jobs()
            .map(|(_, job)| job.name.clone())
            .collect()
    };
    assert_eq!(pairs("-c 3 a b"), ["a from core 0", "b from core 1"]);
    assert_eq!(
        pairs("-c 7 a b"),
        ["a from core 0", "b from core 1", "a from core 2"]
    );
    assert_eq!(
        pairs("-c 3 a b c"),
        ["a from core 0", "c from core 0", "b from core 1"]
    );
    assert_eq!(
        pairs("-c 3 --use-every-core a b"),
        [
            "a from core 0",
            "b from core 0",
            "a from core 1",
            "b from core 1"
        ]
    );
    // The sample's device is on node 1, which has CPUs 4 to 7.
    assert_eq!(pairs("-c auto a b"), ["a from core 4", "b from core 5"]);
    assert_eq!(pairs("a"), ["a from core 0"]);
}

#[test]
fn only_a_sequential_pattern_is_split() {
    let parts = |text: &str| -> Vec<(u64, u64)> {
        plan(&format!("{BASIC} -c 3 {text} a"))
            .jobs()
            .map(|(_, job)| part(job))
            .collect()
    };
    let all = 64 << 20;
    assert_eq!(parts("-w read"), [(0, all / 2), (all / 2, all / 2)]);
    assert_eq!(parts("-w read --seq-layout shared"), [(0, all); 2]);
    assert_eq!(parts("-w randread"), [(0, all); 2]);
    // One place cannot be split, and an end that no I/O fits is left.
    assert_eq!(parts("-w read -o 64m"), [(0, all); 2]);
    assert_eq!(parts("-w randread -o 1536"), [(0, all / 1536 * 1536); 2]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn options_act_on_the_plan() {
    let job = |text: &str| {
        let plan = plan(&format!("{BASIC} {text} a"));
        let (_, job) = plan.jobs().next().unwrap();
        job.clone()
    };
    let work = |text: &str| job(text).blocks().unwrap().clone();
    let mix = work("-w randrw -M 70 --destroy a").mix;
    assert_eq!((mix.read_percent, mix.write_percent), (70, 30));
    assert_eq!(
        work("-w read -a 2s").load.bounds.ramp_ns,
        Nanos::from_secs(2)
    );
    assert_eq!(work("-w read -d 50%").load.bounds.operations, Some(8192));
    assert_eq!(work("-w read -d 1000").load.bounds.operations, Some(1000));
    assert_eq!(work("-w read -C 8").load.depth.reap_max, 8);
    assert_eq!(
        work("-w read -A 8192").memory.align_bytes,
        Some(Bytes(8192))
    );
    assert_eq!(work("-w read -A 512").memory.align_bytes, None);
    assert_eq!(work("-w read -s 64").memory.kind, MemoryKind::Huge);
    let zipf = Distribution::Zipf {
        theta: 1.2,
        center: None,
    };
    assert_eq!(work("-w randread -F 1.2").access.distribution, zipf);
    assert!(work("-w write --fua --destroy a").targets.open.data_sync);
    assert!(!work("-w write --destroy a").targets.open.read_only);
    assert_eq!(work("-w read --seed 7").access.seed, 7);
    let content =
        work("-w write --destroy a --buffer-compress-percentage 40 --dedupe-percentage 20").content;
    assert_eq!((content.compress_percent, content.dedupe_percent), (40, 20));
    assert_eq!(job("-w read -R").engine.name, "io_uring");
    assert_eq!(job("-w read --engine libaio").engine.name, "libaio");
    let commands = plan(&format!("{BASIC} -w read --engine uring-cmd --polled"));
    let (_, commands) = commands.jobs().next().unwrap();
    assert_eq!(commands.engine.name, "io_uring_cmd");
    let files = &commands.blocks().unwrap().targets.files;
    assert_eq!(*files, FileNames::of("/dev/ng0n1"));
    assert!(
        job("-w read --polled")
            .engine
            .settings
            .contains_key("polled")
    );
    assert!(
        job("-w read -E --no-huge -P 1 -U 0 -O 4096")
            .engine
            .settings
            .is_empty()
    );
    let pacing = work("-w rw -M 25 --rate 1000 --arrival poisson --destroy a")
        .load
        .pacing;
    match pacing.schedule {
        Some(Schedule::OpsPerSecond {
            limit_per_s,
            poisson,
            open_loop,
            ..
        }) => {
            let rate = |kind: Kind| limit_per_s[&KindName::from(kind)].0;
            assert!(poisson && open_loop);
            assert!(
                (rate(Kind::Read) - 250.0).abs() < 1e-9 && (rate(Kind::Write) - 750.0).abs() < 1e-9
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn engines_have_their_turns_and_the_own_driver_the_last() {
    let line = "-w read -c 3 --engine vfio,uring,uring-cmd --takeover 0000:01:00.0";
    let plan = plan(&format!("{BASIC} {line}"));
    let seen: Vec<_> = plan
        .jobs()
        .map(|(_, job)| {
            let files = job.blocks().unwrap().targets.files.clone();
            (job.engine.name.as_str(), files, job.start.barrier)
        })
        .collect();
    let of = |engine, path: &str, waits| {
        let files = FileNames::of(path);
        [(engine, files.clone(), waits), (engine, files, false)]
    };
    let expected = [
        of("io_uring", "/dev/nvme0n1", false),
        of("io_uring_cmd", "/dev/ng0n1", true),
        of("vfio", "0000:01:00.0/1", true),
    ];
    assert_eq!(seen, expected.concat());
    let (_, last) = plan.jobs().last().unwrap();
    assert!(
        last.name.ends_with(" NSID 1 by vfio from core 1"),
        "{}",
        last.name
    );
    assert!(last.engine.flag("takeover", false));
}

#[test]
fn a_drive_is_taken_where_it_is_named_alone() {
    let line = |rest: &str| format!("{BASIC} -w read --engine vfio {rest}");
    let refused = refusal(&line("/dev/nvme0n1"));
    assert!(refused.is_guard && refused.message.contains("--takeover 0000:01:00.0"));
    for (rest, why) in [
        ("--takeover 0000:02:00.0", "it is no target of this run"),
        ("a", "a is no NVMe namespace on PCI Express"),
        ("-E --takeover /dev/nvme0n1", "--engine vfio polls"),
    ] {
        let refused = refusal(&line(rest));
        assert!(refused.message.contains(why), "{}", refused.message);
        assert!(!refused.is_guard, "{rest}");
    }
    let writes = "-w write --engine uring,vfio --destroy /dev/nvme0n1 --takeover /dev/nvme0n1";
    let refused = refusal(&format!("{BASIC} {writes}"));
    assert!(
        refused.message.contains("run vfio alone"),
        "{}",
        refused.message
    );
    let fua = format!(
        "{BASIC} -w write --fua --engine vfio --destroy /dev/nvme0n1 --takeover /dev/nvme0n1"
    );
    let plan = plan(&fua);
    let (_, job) = plan.jobs().next().unwrap();
    assert!(job.engine.flag("write_through", false) && job.engine.flag("takeover", false));
}

#[test]
fn every_option_of_the_peer_acts_or_is_refused_by_name_with_a_reason() {
    for flag in FLAGS {
        let value = flag.value.map_or("", |_| match flag.name {
            "io-pattern" => " read",
            "core-mask" | "num-qpairs" | "rwmixread" | "number-ios" | "seed" | "time" => " 7",
            "num-unused-qpairs" | "zipf" => " 0",
            "engine" => " uring",
            "seq-layout" => " shared",
            "arrival" => " poisson",
            "transport" => " trtype:PCIe",
            "allowed-pci-addr" | "release" => " 0000:01:00.0",
            "takeover" | "destroy" => " /dev/nvme0n1",
            "precondition" => " seq:1x --destroy /dev/nvme0n1",
            "steady-state" => " iops:3%",
            "max-temp" => " 75",
            _ => " 4096",
        });
        let value = if flag.name == "num-qpairs" {
            " 1"
        } else {
            value
        };
        let value = if flag.name.ends_with("-percentage") {
            " 7"
        } else {
            value
        };
        let line = format!("{BASIC} -w read --{}{value}", flag.name);
        match flag.standing {
            Standing::Refused(why) => {
                assert!(why.len() > 20, "--{}: {why}", flag.name);
                for name in [
                    Some(format!("--{}", flag.name)),
                    flag.letter.map(|c| format!("-{c}")),
                ] {
                    let Some(name) = name else { continue };
                    let refusal = refusal(&format!("{BASIC} -w read {name}{value}"));
                    let begin = format!("error: --{} is not available: {why}", flag.name);
                    assert!(refusal.message.starts_with(&begin), "{refusal}");
                }
            }
            Standing::WithoutEffect(_) => panic!("--{} does nothing", flag.name),
            Standing::Works if ["help", "help-full", "list", "release"].contains(&flag.name) => {}
            Standing::Works => {
                let done = request(&line).unwrap_or_else(|why| panic!("{line}: {why}"));
                let idle = done.notes.iter().find(|note| note.contains("acts only"));
                let need = flag.needs.map(|need| need.when);
                assert_eq!(
                    idle.is_some(),
                    need.is_some_and(
                        |_| flag.default != Some(value.trim()) && flag.name != "seq-layout"
                    ),
                    "{line}: {idle:?}"
                );
            }
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (line, what) in [
        ("-o 4096 -w read -t 1 a", "missing -q (--io-depth) operand"),
        (
            "-q 0 -o 4096 -w read -t 1 a",
            "missing -q (--io-depth) operand",
        ),
        ("-q 4 -w read -t 1 a", "missing -o (--io-size) operand"),
        ("-q 4 -o 4096 -t 1 a", "missing -w (--io-pattern) operand"),
        ("-q 4 -o 4096 -w read a", "missing -t (--time) operand"),
        (
            "-q 4 -o 4096 -w foo -t 1 a",
            "read, write, rw, randread, randwrite, randrw",
        ),
        (
            "-q 4 -o 4096 -w rw -t 1 a",
            "missing -M (--rwmixread) operand",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 -d 3 a",
            "-d (--number-ios): it takes as many I/Os",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 -d 100 -a 1 a",
            "-d (--number-ios) and -a (--warmup-time)",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 -A 96 a",
            "a power of two from 64",
        ),
        ("-q 4 -o 4096 -w read -t 1 -O 6 a", "a multiple of 4 bytes"),
        (
            "-q 4 -o 4096 -w read -t 1 -O 512 a",
            "-O (--io-unit-size): the kernel gets a buffer in one part",
        ),
        ("-q 4 -o 4096 -w read -t 1 -P 2 a", "take more cores (`-c`)"),
        (
            "-q 4 -o 4096 -w read -t 1 -c 0x300 a",
            "there is no CPU 8-9\n  help: the CPUs here are 0-7",
        ),
        ("-q 4 -o 4096 -w read -t 1 -s 1 -c 3 a", "need 4 MiB"),
        (
            "-q 4 -o 4096 -w read -t 1 --engine psync a",
            "has one I/O in flight",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 -E --polled a",
            "contradict each other",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 --engine uring-cmd a",
            "a is no NVMe namespace",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 --engine spdk a",
            "auto, uring, uring-cmd, libaio, psync, vfio",
        ),
        (
            "-q 4 -o 1000 -w read -t 1 a",
            "WARNING: IO size 1000 (-o) is not a multiple of a sector size 512",
        ),
        (
            "-q 4 -o 128m -w read -t 1 a",
            "WARNING: IO size 134217728 (-o) is greater than the 67108864 bytes of a",
        ),
        (
            "-q 4 -o 4096 -w read -t 1 --io a",
            "short for several options",
        ),
        ("--list -q 4", "--io-depth has no effect with --list"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.message.contains(what), "{line}: {refusal}");
        assert!(!refusal.is_guard && refusal.code == 2, "{line}");
    }
}

#[test]
fn a_device_is_written_only_where_its_loss_is_consented_to() {
    for line in ["-w write", "-w randwrite", "-w rw -M 99", "-w randrw -M 0"] {
        let line = format!("{BASIC} {line}");
        for target in ["", "/dev/b"] {
            let refusal = refusal(&format!("{line} {target}"));
            assert!(
                refusal.is_guard && refusal.message.contains("--destroy"),
                "{refusal}"
            );
        }
        request(&format!("{line} --destroy 0000:01:00.0")).unwrap();
        request(&format!("{line} --destroy /dev/nvme0n1")).unwrap();
        let other = refusal(&format!("{line} --destroy /dev/c /dev/b"));
        assert!(
            other.message.contains("--destroy /dev/c: it is no target"),
            "{other}"
        );
    }
}

#[test]
fn a_drive_that_is_not_there_is_never_replaced_by_another() {
    let line = format!("{BASIC} -w read");
    for choice in [
        "--allowed-pci-addr 0000:ff:1f.7",
        "-r traddr:0000:02:00.0",
        "-r ns:9",
        "-b 01:00.0 -b 02:00.0",
    ] {
        let call = given(words(&format!("{line} {choice}"))).unwrap();
        let refusal = (DOOR.measures.unwrap().read)(&call, &SampleMachine(None)).unwrap_err();
        assert_eq!(refusal.code, LACKS, "{choice}");
        assert!(
            refusal.message.contains("there are 0000:01:00.0"),
            "{refusal}"
        );
    }
    let note = |text: &str| request(&format!("{line} {text}")).unwrap().notes.join("\n");
    assert!(note("--enable-vmd").contains("no drive of this machine is behind VMD"));
    assert!(note("-b 0000:ff:1f.7 a").contains("no other drive"));
}

/// A worker that did operations of these latencies in microseconds, in a second.
fn job_result(name: &str, reads: &[u64], failed: u64) -> JobResult {
    let mut latency = Histogram::new();
    for us in reads {
        latency.record(us * 1000);
    }
    let operations = reads.len() as u64;
    let mut kind = KindResult::new(Kind::Read);
    kind.operations = operations;
    kind.bytes = Bytes(operations * 4096);
    kind.stages = vec![StageHistogram {
        stage: Stage::Lat,
        histogram: latency,
    }];
    if failed > 0 {
        kind.errors = [(5.into(), failed)].into();
    }
    let failure = || weir_schema::Failure {
        errno: Some(5),
        kind: Some(Kind::Read.into()),
        ..weir_schema::Failure::new("io", "x")
    };
    let worker = WorkerResult {
        span: Some(Span {
            start_ns: Nanos(0),
            end_ns: Nanos::from_secs(1),
        }),
        kinds: vec![kind],
        reported_errors: (0..failed).map(|_| failure()).collect(),
        ..WorkerResult::default()
    };
    JobResult {
        state: weir_schema::State::Done,
        outcome: Outcome::of_workers(vec![worker]),
        ..JobResult::not_started(name)
    }
}

fn result(jobs: Vec<JobResult>) -> RunResult {
    let mut result = RunResult::of(plan(&format!("{BASIC} -w read a")));
    result.groups = vec![weir_schema::GroupResult {
        jobs,
        ..weir_schema::GroupResult::default()
    }];
    result
}

fn printed(jobs: Vec<JobResult>, more: &str) -> crate::Printed {
    let given = given(words(&format!("{BASIC} -w read {more} a"))).unwrap();
    output::print(&result(jobs), &given)
}

#[test]
fn the_peers_first_lines_name_drives_and_cores() {
    let line = format!("{BASIC} -w read -c 3 -d 50%");
    let mut lines = output::Beginning::of(&given(words(&line)).unwrap());
    let name = "PCIE (0000:01:00.0) [144d:a80a]";
    assert_eq!(
        lines.begin(&plan(&line)),
        format!(
            "Initializing NVMe Controllers\n\
             Attached to NVMe Controller at {name}\n\
             number_ios for namespace {name} NSID 1 set to 8192 (50% of namespace size)\n\
             Associating {name} NSID 1 with lcore 0\n\
             Associating {name} NSID 1 with lcore 1\n\
             Initialization complete. Launching workers.\n"
        )
    );
}

#[test]
fn the_table_is_the_peers() {
    let jobs = vec![
        job_result("dev from core 0", &[10, 30], 0),
        job_result("dev from core 12", &[40], 0),
        job_result("idle from core 3", &[], 0),
    ];
    let rule = "=".repeat(56);
    let text = printed(jobs, "");
    assert_eq!(
        text.out,
        format!(
            "{rule}\n\
             {:>63}\n\
             Device Information:       IOPS      MiB/s    Average        min        max\n\
             dev from core  0:       2.00       0.01      20.00      10.00      30.00\n\
             dev from core 12:       1.00       0.00      40.00      40.00      40.00\n\
             {rule}\n\
             Total           :       3.00       0.01      26.67      10.00      40.00\n\n",
            "Latency(us)"
        )
    );
    assert_eq!((text.code, text.err.as_str()), (0, ""));
}

#[test]
fn latencies_have_their_cuts_and_buckets() {
    let reads: Vec<u64> = (1..=100).collect();
    let text = printed(vec![job_result("dev from core 0", &reads, 0)], "-LL").out;
    let (_, tables) = text.split_once("Summary latency data for dev").unwrap();
    assert!(tables.starts_with(&format!(
        "{} from core 0:\n{}\n",
        " ".repeat(40),
        "=".repeat(81)
    )));
    let cuts: Vec<&str> = tables.lines().filter(|line| line.ends_with("us")).collect();
    assert_eq!(cuts.len(), 15);
    assert!(cuts[0].starts_with("  1.00000% :     1.0"), "{}", cuts[0]);
    assert!(cuts[3].starts_with(" 50.00000% :    50."), "{}", cuts[3]);
    assert!(cuts[14].starts_with(" 99.99999% :   100."), "{}", cuts[14]);
    let (_, rows) = tables
        .split_once("       Range in us     Cumulative    IO count\n")
        .unwrap();
    let rows: Vec<&str> = rows.lines().filter(|line| !line.is_empty()).collect();
    let count = |row: &&str| {
        let (_, count) = row.rsplit_once('(').unwrap();
        count.trim_end_matches(')').trim().parse::<u64>().unwrap()
    };
    assert_eq!(rows.iter().map(count).sum::<u64>(), 100);
    assert!(rows.last().unwrap().contains(":  100.0000%  ("), "{rows:?}");
    let once = printed(vec![job_result("dev from core 0", &reads, 0)], "-L").out;
    assert!(once.contains("Summary latency") && !once.contains("Range in us"));
}

#[test]
fn errors_are_counted_apart_and_named() {
    let jobs = || vec![job_result("dev from core 0", &[10], 25)];
    let all = printed(jobs(), "");
    assert!(
        all.out.contains("dev from core  0:       1.00"),
        "{}",
        all.out
    );
    assert_eq!(
        all.err
            .matches("Read completed with error (errno=5)\n")
            .count(),
        25
    );
    assert!(all.err.ends_with("spdk_nvme_perf: errors occurred\n") && all.code == 1);
    let some = printed(jobs(), "-Q 10");
    assert_eq!(
        some.err
            .matches("Message suppressed 9 times: Read completed")
            .count(),
        2
    );
    let none = printed(vec![job_result("dev from core 0", &[], 3)], "-LL");
    assert!(
        !none.out.contains("Total") && !none.out.contains("Summary"),
        "{}",
        none.out
    );
}

#[test]
fn a_group_is_one_for_all_workers() {
    let plan = plan(&format!("{BASIC} -w read -c 0xf a"));
    let [Group { jobs }] = plan.groups.as_slice() else {
        panic!("one group")
    };
    assert!(jobs.iter().all(|job| !job.start.barrier));
}

/// Kind, first byte, length, size of operations and passes of a job that writes beforehand.
fn pass(job: &Job) -> (bool, u64, u64, u64, u64) {
    let work = job.blocks().unwrap();
    assert_eq!(work.mix.write_percent, 100);
    assert!(!work.targets.open.read_only && !work.passes.time_based);
    let (first, length) = part(job);
    let size = work.sizes.size.write.max().0;
    (work.access.random, first, length, size, work.passes.loops)
}

#[test]
fn passes_over_the_target_come_before_the_measured_group_and_need_consent() {
    let line = format!("{BASIC} -w randread -c 3 --precondition seq:1x,rand:2x");
    let without = refusal(&format!("{line} a"));
    assert!(
        without.is_guard && without.message.contains("--destroy a"),
        "{without}"
    );
    let request = request(&format!("{line} --destroy a a")).unwrap();
    let said = request.notes.join("\n");
    let words =
        "; before that the targets are written whole, 1 x in order, then 2 x at random; what the";
    assert!(said.contains(words), "{said}");
    let plan = plan(&format!("{line} --destroy a a"));
    let [first, second, measured] = plan.groups.as_slice() else {
        panic!("three groups")
    };
    let all = 64 << 20;
    assert_eq!(pass(&first.jobs[0]), (false, 0, all, 1 << 20, 1));
    assert_eq!(pass(&second.jobs[0]), (true, 0, all, 4096, 2));
    assert_eq!(
        (first.jobs.len(), second.jobs.len(), measured.jobs.len()),
        (1, 1, 2)
    );
    assert!(measured.jobs[0].blocks().unwrap().targets.open.read_only);
    let barriers = plan.jobs().map(|(_, job)| job.start.barrier);
    assert_eq!(barriers.collect::<Vec<_>>(), [false, true, true, false]);
    let mut lines = output::Beginning::of(&given(words_of(&line)).unwrap());
    let begin = lines.begin(&plan);
    assert!(
        !begin.contains("precondition") && begin.contains("Associating a with"),
        "{begin}"
    );
}

fn words_of(line: &str) -> Vec<String> {
    words(&format!("{line} --destroy a a"))
}

#[test]
fn writes_beforehand_are_no_rows() {
    let line = format!("{BASIC} -w read --precondition seq:1x --destroy a a");
    let mut result = result(vec![job_result("a from core 0", &[10], 0)]);
    let before = vec![job_result("precondition seq:1x a", &[10, 20, 30], 0)];
    result.groups.insert(
        0,
        weir_schema::GroupResult {
            jobs: before,
            ..weir_schema::GroupResult::default()
        },
    );
    result.warnings = vec![weir_schema::Warning::new("too-hot", None, "a has 80 °C.")];
    let text = output::print(&result, &given(words(&line)).unwrap());
    assert!(!text.out.contains("precondition"), "{}", text.out);
    assert!(
        text.out.contains("a from core  0:       1.00"),
        "{}",
        text.out
    );
    assert_eq!(text.err, "WARNING: a has 80 °C.\n");
}

#[test]
fn a_steady_rate_ends_all_cores_together() {
    let steady = |text: &str| {
        let plan = plan(&format!(
            "{BASIC} -w read -c 3 -a 2 --steady-state {text} a"
        ));
        assert!(plan.jobs().all(|(_, job)| job.report.merge));
        plan.jobs().next().unwrap().1.load().bounds.steady.unwrap()
    };
    let found = steady("iops:3%");
    assert_eq!(found.rate, weir_schema::SteadyRate::Operations);
    assert_eq!(found.measure, weir_schema::SteadyMeasure::Deviation);
    assert_eq!(
        (found.window_ns, found.ramp_ns),
        (Nanos::from_secs(5), Nanos::from_secs(2))
    );
    assert!(found.in_percent && (found.limit - 3.0).abs() < 1e-9);
    let found = steady("bw_slope:0.5%:5m");
    assert_eq!(found.rate, weir_schema::SteadyRate::Bytes);
    assert_eq!(found.measure, weir_schema::SteadyMeasure::Slope);
    assert_eq!(found.window_ns, Nanos::from_secs(300));
    for (flag, words) in [
        (
            "--steady-state",
            "iops iops:3 lat:3% iops:0% iops:3%:1 iops:nan%",
        ),
        (
            "--precondition",
            "seq seq:1 seq:0x seq:101x zone:1x seq:1x,",
        ),
    ] {
        for word in words.split(' ') {
            let refusal = refusal(&format!("{BASIC} -w read {flag} {word} a"));
            assert!(refusal.message.contains(flag), "{word}: {refusal}");
        }
    }
}

#[test]
fn reads_of_a_drive_that_is_not_written_whole_are_warned_of() {
    let warned = |text: &str| request(&format!("{BASIC} {text}")).unwrap().warnings;
    let found = warned("-w randread");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, "never-written");
    assert_eq!(
        found[0].cause,
        "/dev/nvme0n1: reads may hit deallocated blocks: 32768 of 131072 blocks are in use (25 %), and others are \
         read as 00h."
    );
    assert!(
        found[0]
            .remedy
            .contains("--precondition seq:1x --destroy /dev/nvme0n1")
    );
    for text in [
        "-w randread a",
        "-w write --destroy /dev/nvme0n1",
        "-w read --precondition seq:1x --destroy /dev/nvme0n1",
    ] {
        assert!(warned(text).is_empty(), "{text}");
    }
}

#[test]
fn heat_ends_a_run_on_drives_that_say_how_warm_they_are() {
    let request = request(&format!("{BASIC} -w read --max-temp 75")).unwrap();
    let heat = request.trigger.heat.unwrap();
    assert_eq!(
        (heat.celsius, heat.nodes),
        (75, vec!["/dev/nvme0n1".to_owned()])
    );
    let refusal = refusal(&format!("{BASIC} -w read --max-temp 75 a"));
    assert!(
        refusal.code == LACKS && refusal.message.contains("a has no temperature"),
        "{refusal}"
    );
}

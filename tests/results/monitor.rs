//! `weir monitor`: figures of the host, from what the kernel counts to lines and exit codes.

mod slow;

use std::process::{Child, Command};

use serde_json::Value;

use crate::stage::{Stage, WEIR, has, is_root, said, skip};

/// A process that is ended with the test.
struct Other(Child);

impl Other {
    fn start(script: &str) -> Self {
        Self(Command::new("sh").args(["-c", script]).spawn().unwrap())
    }

    /// Figures that weir prints of it after a while.
    fn figures(&self, stage: &Stage) -> Value {
        let id = self.0.id().to_string();
        let words = ["monitor", "-d", "0.2", "--pid", &id, "--format", "json"];
        serde_json::from_str(&stage.say(&words).code(0).out).unwrap()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn figure<'a>(of: &'a Value, name: &str) -> &'a Value {
    let all = of["figures"].as_array().unwrap();
    let found = all.iter().find(|figure| figure["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {of}"))
}

#[test]
fn a_process_that_works_has_used_a_cpu_and_one_that_sleeps_has_not() {
    let stage = Stage::new();
    let busy = Other::start("while :; do :; done").figures(&stage);
    let idle = Other::start("exec sleep 60").figures(&stage);
    let used = |of: &Value| figure(of, "cpus_used")["value"].as_f64().unwrap();
    assert!(used(&busy) > used(&idle), "{busy}");
    assert!(used(&idle) < 0.01, "{idle}");
    assert!(figure(&busy, "run_delay_share")["value"].is_f64(), "{busy}");
    assert!(busy["seconds"].as_f64().unwrap() >= 0.2, "{busy}");
}

/// Moves between two CPUs, again and again.
const RESTLESS: &str = "while :; do taskset -pc 0 $$ >/dev/null; taskset -pc 1 $$ >/dev/null; done";

#[test]
fn figures_of_a_process_are_those_of_proc_and_moves_between_cpus_are_counted() {
    let stage = Stage::new();
    let other = Other::start(RESTLESS);
    let id = other.0.id();
    let of_proc = |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap();
    let switches = || {
        let status = of_proc("status");
        let lines = status
            .lines()
            .filter(|line| line.contains("ctxt_switches:"));
        let counts = lines.map(|line| line.rsplit('\t').next().unwrap().parse::<f64>().unwrap());
        counts.sum::<f64>()
    };
    let on_cpu = || {
        let text = of_proc("schedstat");
        text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    };
    let before = (switches(), on_cpu());
    let figures = other.figures(&stage);
    let after = (switches(), on_cpu());
    let value = |name: &str| figure(&figures, name)["value"].as_f64().unwrap();
    // What was read around the monitor is more than what it saw itself.
    let seconds = figures["seconds"].as_f64().unwrap();
    assert!(value("context_switches") > 0.0, "{figures}");
    assert!(value("context_switches") <= after.0 - before.0, "{figures}");
    assert!(
        value("cpus_used") * seconds <= after.1 - before.1,
        "{figures}"
    );
    let moves = figure(&figures, "cpu_migrations");
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus > 1 && has("taskset") && moves["value"].is_f64() {
        assert!(moves["value"].as_f64().unwrap() > 0.0, "{figures}");
        assert_eq!(figures["sources"]["migrations"], "perf cpu-migrations");
    } else {
        assert!(moves["unavailable"].is_string() || cpus < 2, "{figures}");
    }
}

#[test]
fn a_thread_that_ends_meanwhile_is_counted_all_the_same() {
    let stage = Stage::new();
    // Half of the time a thread of weir itself works, which has ended when the run has.
    let words = "axio --example echo --set iteration=1 --set duration=0.5 --monitor host.rpt";
    let words: Vec<&str> = words.split(' ').collect();
    stage.say(&words).code(0);
    let report = stage.read("host.rpt");
    let value = |name: &str| {
        let label = format!("{name}: ");
        let line = report.lines().find_map(|line| line.strip_prefix(&label));
        line.unwrap_or_else(|| panic!("no {name} in {report}"))
            .parse::<f64>()
            .unwrap()
    };
    assert!(value("cpus_used") > 0.05, "{report}");
    assert!(value("context_switches") > 0.0, "{report}");
    for quantity in [
        "cpu",
        "cycles",
        "drops",
        "llc",
        "memory",
        "migrations",
        "pcie",
    ] {
        assert!(
            report.contains(&format!("\nsource {quantity}: ")),
            "{report}"
        );
    }
    let full = [&words[..7], &["--monitor", "/dev/full"]].concat();
    stage.say(&full).code(1).err("/dev/full: No space left");
    let nowhere = [&words[..7], &["--monitor", "no/where.rpt"]].concat();
    let said = stage.say(&nowhere).code(2).err("no/where.rpt");
    assert!(said.out.is_empty(), "nothing is run: {}", said.out);
}

#[test]
fn what_is_not_counted_is_null_with_a_reason_and_never_0_and_the_report_reads_back() {
    let stage = Stage::new();
    let said = stage
        .say(&["monitor", "-d", "0.05", "--format", "json"])
        .code(0);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    let nodes = json["nodes_mb_per_s"].as_object().unwrap().values();
    let events = json["events"].as_array().unwrap().iter();
    let sockets = json["sockets"].as_object().unwrap().values();
    let rates = sockets.flat_map(|rates| [&rates["read_miss"], &rates["write_miss"]]);
    let mut missing = Vec::new();
    for reading in nodes.chain(events).chain(rates) {
        let reason = reading["unavailable"].as_str();
        assert_eq!(reading["value"].is_null(), reason.is_some(), "{reading}");
        assert!(reason.is_none_or(|reason| reason.len() > 5), "{reading}");
        // One that is stuck may count the next time.
        let has_none = reason.is_some_and(|reason| reason.starts_with("perf_event_open"));
        missing.extend(reading["name"].as_str().filter(|_| has_none));
    }
    stage
        .say(&["monitor", "-d", "0.05", "-o", "report.rpt"])
        .code(0);
    let report = stage.read("report.rpt");
    for event in missing {
        let line = report
            .lines()
            .find(|line| line.starts_with(&format!("{event}: ")));
        assert!(
            line.unwrap().contains("unavailable (perf_event_open"),
            "{report}"
        );
    }
    stage.file("axio.log", include_str!("diagnose/seed-table.txt"));
    let said = stage
        .say(&["diagnose", "axio.log", "report.rpt", "--socket", "0"])
        .code(0);
    assert!(
        !said.out.contains("D17 preempted: not evaluated"),
        "{}",
        said.out
    );
}

#[test]
fn what_pcm_recorded_stands_in_the_report() {
    let stage = Stage::new();
    stage.file(
        "pcie.csv",
        "Skt,PCIRdCur,ItoM\n0,1000,2000,(Total)\n0,100,500,(Miss)\n0,900,1500,(Hit)\n",
    );
    stage.file(
        "memory.txt",
        "|-- NODE 0 Mem Read (MB/s) :   100.00 --|\n\
         |-- NODE 0 Mem Write(MB/s) :    50.00 --|\n\
         |-- NODE 0 Memory (MB/s):   150.00 --|\n",
    );
    let by_kind = "monitor -d 0.05 --pcm-csv memory.txt --pcm-csv pcie.csv";
    let by_kind: Vec<&str> = by_kind.split(' ').collect();
    let message = stage.say(&by_kind).code(0).out;
    let words = "monitor -d 0.05 --pcie pcie.csv --memory memory.txt";
    let words: Vec<&str> = words.split(' ').collect();
    let out = stage.say(&words).code(0).out;
    for line in [
        "IO Read_cnt: 1000\nIO Read_miss: 100\nIO Read_hit: 900\nIO Write_cnt: 2000\n",
        "IO Read Miss Rate: 0.10\n",
        "IO Write Miss Rate: 0.25\n",
        "Node0_rd_bw:  100.000000\nNode0_wr_bw:  50.000000\nNode0_total_bw:  150.000000\n",
        "source memory: pcm-memory\nsource migrations: ",
        "source pcie: pcm-pcie\n",
    ] {
        assert!(out.contains(line), "{line}{out}");
        assert!(message.contains(line), "{line}{message}");
    }
    stage.file("pcie.csv", "nothing\n");
    stage
        .say(&by_kind)
        .code(2)
        .err("--pcm-csv pcie.csv: no counts of pcm-pcie or pcm-memory");
    stage
        .say(&[
            "monitor",
            "--pcm-csv",
            "memory.txt",
            "--pcm-csv",
            "memory.txt",
        ])
        .code(2)
        .err("counts of the same program were given before");
    let said = stage.say(&words).code(2);
    assert!(
        said.err.contains("pcie.csv:") && said.out.is_empty(),
        "{}",
        said.err
    );
}

/// A wire whose other end takes only short packets; then a monitor, while one long packet is sent.
const NETWORK: &str = "\
ip link add weirA type veth peer name weirB
ip addr add 10.77.0.1/24 dev weirA
ip link set weirA up
ip link set weirB mtu 500 up
ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev weirA
(sleep 0.3; head -c 1000 /dev/zero > /dev/udp/10.77.0.2/9) &
\"$@\"
";

#[test]
fn a_process_that_is_not_there_and_a_file_that_cannot_be_written_are_named() {
    let stage = Stage::new();
    let said = stage.say(&["monitor", "--pid", "4194304"]).code(3);
    assert!(said.err.contains("--pid 4194304: there is no such process"));
    let said = stage.say(&["monitor", "-o", "no/where.rpt"]).code(2);
    assert!(said.err.contains("no/where.rpt"), "{}", said.err);
    let said = stage
        .say(&["monitor", "-d", "0.01", "-o", "/dev/full"])
        .code(1);
    assert!(
        said.err.contains("/dev/full: No space left"),
        "{}",
        said.err
    );
}

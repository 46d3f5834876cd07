//! Trouble in the middle of a run: full disks, held devices, signals, a file system that hangs.
//! The run ends in order, says what happened, and keeps everybody's numbers.

mod slow;

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use weir_schema::{RunResult, State};

use crate::result;
use crate::stage::{Running, Said, Stage, has, is_root, skip, until};

/// Runs a program that sets the scene; why it could not.
pub(crate) fn act(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(format!("{program} {}: {why}", words.join(" ")))
    }
}

/// A loop device over a file, given back at the end.
pub(crate) struct LoopDevice(pub(crate) String);

impl LoopDevice {
    pub(crate) fn over(stage: &Stage, name: &str, bytes: u64) -> Result<Self, String> {
        if !is_root() {
            return Err("needs root".to_owned());
        }
        let file = stage.sparse(name, bytes);
        act("losetup", &["--find", "--show", &file]).map(Self)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = act("losetup", &["--detach", &self.0]);
    }
}

/// A mounted file system, unmounted at the end.
pub(crate) struct Mounted(String);

impl Mounted {
    pub(crate) fn at(stage: &Stage, name: &str, words: &[&str]) -> Result<Self, String> {
        if !is_root() {
            return Err("needs root".to_owned());
        }
        let place = stage.path(name);
        fs::create_dir(&place).map_err(|e| e.to_string())?;
        let mut words = words.to_vec();
        words.push(&place);
        act("mount", &words)?;
        Ok(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Only a frozen one can be thawed.
        let _ = act("fsfreeze", &["--unfreeze", &self.0]);
        let _ = act("umount", &[&self.0]);
    }
}

/// A write job that goes on for minutes and shows by the size of its file that it runs.
const ENDLESS: &str = "[w]\nfilename=data\nrw=write\nbs=4k\nsize=1m\nfallocate=none\n\
                       time_based\nruntime=10m\n[later]\nstonewall\nioengine=null\nsize=1m\n";

fn is_running(stage: &Stage, file: &str) -> bool {
    fs::metadata(stage.path(file)).is_ok_and(|m| m.len() >= 1 << 20)
}

fn interrupted(signal: Signal, words: &[&str]) -> Said {
    let stage = Stage::new();
    stage.file("j.fio", ENDLESS);
    let running = Running::start(stage.called(words));
    until("the job runs", || is_running(&stage, "data"));
    running.signal(signal);
    running.end()
}

#[test]
fn ctrl_c_ends_the_run_in_order_with_a_report() {
    let said = interrupted(Signal::INT, &["run", "j.fio"]).code(130);
    assert!(said.out.contains("INCOMPLETE (signal 2 after"), "{said}");
    assert!(
        said.out.contains("INCOMPLETE (signal 2 before it started)"),
        "{said}"
    );
    assert!(said.out.contains("write 4 KiB sequential"), "{said}");
}

#[test]
fn an_interrupted_run_gives_a_valid_result_that_says_so() {
    let said = interrupted(Signal::TERM, &["run", "--format=json", "j.fio"]).code(143);
    let result = result(&said);
    assert!(!result.complete);
    assert_eq!(result.ended_by.map(|e| e.signal), Some(15));
    let states: Vec<State> = result.jobs().map(|j| j.state).collect();
    assert_eq!(states, [State::Stopped, State::NotStarted]);
    let writes = &result.groups[0].jobs[0].workers()[0].kinds[0];
    assert!(writes.operations >= 256);
    assert_eq!(writes.operations, writes.issued);
    assert_eq!(writes.bytes.0, writes.operations * 4096);
}

#[test]
fn ctrl_c_in_the_fio_door_is_128_with_fios_words_and_entries() {
    let said = interrupted(Signal::INT, &["fio", "j.fio"]).code(128);
    assert!(
        said.out.contains("\nfio: terminating on signal 2\n"),
        "{said}"
    );
    assert!(
        said.out.contains("w: (groupid=0, jobs=1): err= 0"),
        "{said}"
    );
    let json = ["fio", "--output-format=json", "j.fio"];
    let said = interrupted(Signal::TERM, &json).code(128);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["jobs"][0]["error"], 0);
    assert!(report["jobs"][0]["write"]["total_ios"].as_u64() >= Some(256));
}

#[test]
fn a_signal_ends_the_layout_of_a_file() {
    let stage = Stage::new();
    // Writing this file takes longer than anybody waits.
    stage.file(
        "j.fio",
        "[r]\nfilename=data\nrw=read\nsize=10g\nfallocate=none\n",
    );
    let free = act(
        "df",
        &["--output=avail", "--block-size=1G", &stage.path("")],
    );
    let free = free
        .ok()
        .and_then(|t| t.lines().last()?.trim().parse::<u64>().ok());
    if free.is_none_or(|g| g < 12) {
        return skip(
            "a_signal_ends_the_layout_of_a_file",
            "less than 12 GiB of disk are free",
        );
    }
    let running = Running::start(stage.weir(&["run", "j.fio"]));
    until("the file grows", || is_running(&stage, "data"));
    running.signal(Signal::INT);
    running.end().code(130);
    assert_eq!(stage.list(), ["j.fio"], "the unfinished file is removed");
}

#[test]
fn a_full_file_system_fails_its_job_and_no_other() {
    let name = "a_full_file_system";
    let stage = Stage::new();
    let job = |target: &str| {
        format!(
            "[full]\nfilename={target}\nsize=64m\nrw=write\nbs=64k\nfallocate=none\n\
             [other]\nioengine=null\nsize=1m\n"
        )
    };
    let (tmpfs, text) =
        match Mounted::at(&stage, "small", &["-t", "tmpfs", "-o", "size=8m", "weir"]) {
            Ok(mounted) => (Some(mounted), job("small/data")),
            Err(why) => {
                skip(name, &format!("no small tmpfs, /dev/full instead: {why}"));
                (None, job("/dev/full"))
            }
        };
    stage.file("j.fio", text);
    let said = stage.say(&["run", "--format=json", "j.fio"]).code(1);
    let said = said.err("No space left on device");
    let result = result(&said);
    assert!(result.complete);
    let full = &result.groups[0].jobs[0];
    assert_eq!(full.state, State::Failed);
    let failure = full.failure.as_ref().unwrap();
    assert_eq!((failure.cause.as_str(), failure.errno), ("io", Some(28)));
    let writes = &full.workers()[0].kinds[0];
    assert_eq!(writes.errors.get(&28.into()), Some(&1));
    if tmpfs.is_some() {
        assert_eq!((writes.operations, writes.bytes.0), (128, 8 << 20));
        assert_eq!(failure.offset_bytes.map(|o| o.0), Some(8 << 20));
    }
    let other = &result.groups[0].jobs[1];
    assert_eq!(
        (other.state, other.workers()[0].kinds[0].operations),
        (State::Done, 256)
    );
    stage
        .say(&["run", "j.fio"])
        .code(1)
        .out("FAILED    write of 65536 bytes at offset")
        .out("1 × ENOSPC (No space left on device) in write");
    // The fio door counts failed jobs.
    stage
        .peer_says(&["fio", "j.fio"])
        .code(1)
        .out("err=28")
        .out("other: (groupid=0, jobs=1): err= 0");
}

#[test]
fn a_file_never_grows_for_a_read_job() {
    let stage = Stage::new();
    stage.file("data", vec![7; 1 << 20]);
    stage.file(
        "j.fio",
        "[r]\nfilename=data\nrw=read\nsize=2m\noffset=512k\n",
    );
    let said = stage.say(&["run", "--format=json", "j.fio"]).code(0);
    assert!(said.err.contains("never grows for a read job"), "{said}");
    assert_eq!(result(&said).groups[0].rates[0].bytes.0, 512 << 10);
    assert_eq!(fs::metadata(stage.path("data")).unwrap().len(), 1 << 20);
}

#[test]
fn a_file_that_is_cut_under_a_mapping_fails_its_job_alone() {
    let stage = Stage::new();
    let file = stage.file("data", vec![1; 1 << 20]);
    let mapped = "[a]\nioengine=mmap\nfilename=data\nrw=randread\nruntime=50\ntime_based\n";
    stage.file("j.fio", format!("{mapped}[b]\nioengine=null\nsize=1m\n"));
    let running = Running::start(stage.weir(&["run", "--format", "json", "j.fio"]));
    let maps = format!("/proc/{}/maps", running.process().as_raw_pid());
    until("the file is mapped", || {
        fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/data"))
    });
    fs::File::options()
        .write(true)
        .open(file)
        .unwrap()
        .set_len(0)
        .unwrap();
    let result = result(&running.end().code(1));
    let jobs: Vec<_> = result.jobs().collect();
    let failure = jobs[0].failure.as_ref().unwrap();
    assert_eq!((jobs[0].state, failure.errno), (State::Failed, Some(5)));
    assert_eq!(jobs[1].state, State::Done);
    assert!(!jobs[1].workers()[0].kinds.is_empty());
}

#[test]
fn a_hang_up_that_is_ignored_does_not_end_the_run() {
    let stage = Stage::new();
    let mut command = stage.command("nohup");
    command.arg(stage.weir(&[]).get_program());
    command.args(["run", "--set", "runtime=500ms", "--set", "time_based=1"]);
    stage.file("j.fio", "[a]\nioengine=null\nsize=1m\n");
    command.arg("j.fio");
    let running = Running::start(command);
    until("it catches signals", || running.catches_signals());
    running.signal(Signal::HUP);
    running.end().code(0);
}

#[test]
fn what_is_written_at_the_end_does_not_replace_what_a_job_works_on() {
    let stage = Stage::new();
    let data = vec![7; 4096];
    stage.file("data.json", &data);
    stage.file("j.fio", "[reads]\nrw=read\nfilename=data.json\nsize=4k\n");
    for word in ["--store-result", "--output"] {
        let said = stage.say(&["run", word, "data.json", "j.fio"]).code(2);
        said.err("data.json: the job reads works on this file");
        let words = ["fio", word, "data.json", "j.fio"];
        stage.peer_says(&words).code(1).err("works on this file");
        assert_eq!(stage.read_bytes("data.json"), data);
    }
}

#[test]
fn depths_beyond_what_can_be_are_refused() {
    let stage = Stage::new();
    let deep = |engine: &str, depth: &str| {
        let words = "run --set size=4k --set filename=f --set rw=write j.fio";
        stage.file(
            "j.fio",
            format!("[a]\nioengine={engine}\niodepth={depth}\n"),
        );
        stage.say(&words.split(' ').collect::<Vec<_>>())
    };
    deep("null", "4294967295").code(2).err("16777216");
    deep("io_uring", "70000")
        .code(3)
        .out("no more than 65536 in flight");
}

#[test]
fn what_the_kernel_has_no_room_for_is_the_machines_lack() {
    let stage = Stage::in_memory();
    let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap_or_default();
    let limit: u64 = limit.trim().parse().unwrap_or(u64::MAX);
    if limit > 1_000_000 {
        return skip(
            "what_the_kernel_has_no_room_for_is_the_machines_lack",
            "the limit of libaio requests is too high to be exceeded",
        );
    }
    let depth = limit + 1;
    let job =
        format!("[a]\nioengine=libaio\nfilename=f\nsize=1m\nbs=512\nrw=read\niodepth={depth}\n");
    let file = stage.file("j.fio", job);
    let said = stage.say(&["run", &file]).code(3);
    let said = said.out("FAILED").out("cannot reserve");
    assert!(said.out.contains("fs.aio-max-nr"), "{said}");
}

#[test]
fn a_signal_asks_how_it_goes() {
    let stage = Stage::new();
    let job = "[a]\nioengine=null\nrw=read\nsize=1m\ntime_based\nruntime=60\n";
    let file = stage.file("j.fio", job);
    for progress in ["none", "plain"] {
        let running = Running::start(stage.weir(&["run", "--progress", progress, &file]));
        until("signals are caught", || running.catches_signals());
        running.works_for(10);
        running.signal(Signal::USR1);
        running.waits_for_err("eta ");
        running.signal(Signal::INT);
        let said = running.end().code(130);
        let line = said.err.lines().find(|line| line.starts_with("a  "));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        assert!(
            line.contains("/s") && line.contains("eta ") && line.contains("err"),
            "{line}"
        );
        assert_eq!(said.err.lines().count(), 1, "{said}");
    }
}

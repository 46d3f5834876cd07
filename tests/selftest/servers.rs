//! Servers of their own processes, and what a self-test says of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::stage::{Said, Stage, send};

/// A server, killed when it goes out of scope.
pub(crate) struct Server {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
}

impl Server {
    /// `weir rpc serve` with these words, ready to answer; its table is in the stage.
    pub(crate) fn start(stage: &Stage, words: &str) -> Self {
        let mut command = stage.weir(&["rpc", "serve", "--path", "."]);
        command.args(words.split_whitespace());
        Self::of(command)
    }

    /// A server that this command is, ready to answer.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        let address = first.trim_end().strip_prefix("READY ");
        let address = address.unwrap_or_else(|| panic!("it said `{first}`"));
        let address = address.to_owned();
        Self { child, address }
    }

    /// Descriptors that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        let list = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        list.unwrap().count()
    }

    /// Waits until it has worked for so many hundredths of a second: a handshake takes less than a few.
    #[track_caller]
    pub(crate) fn works_for(&self, ticks: u64) {
        crate::stage::works_for(self.child.id(), ticks);
    }

    /// The CPUs that its thread of this name may use.
    pub(crate) fn cpus_of(&self, thread: &str) -> String {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut tasks = tasks.map(|task| task.unwrap().path());
        let named = |task: &std::path::PathBuf| {
            let name = fs::read_to_string(task.join("comm"));
            name.is_ok_and(|name| name.trim() == thread)
        };
        let status = fs::read_to_string(tasks.find(named).unwrap().join("status")).unwrap();
        let line = "Cpus_allowed_list:";
        let line = status.lines().find_map(|l| l.strip_prefix(line));
        line.unwrap().trim().to_owned()
    }

    /// Memory that it has touched, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most memory that it had at once, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kib.parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(Pid::from_child(&self.child), signal);
    }

    /// Waits for its end; its exit code.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Ends it in order; its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True if the tests may take minutes (`cargo xtask test --all --long`).
pub(crate) fn is_long() -> bool {
    std::env::var_os("WEIR_LONG_TESTS").is_some()
}

/// One rank with three tags.
pub(crate) const S1: &str = "--group daos_server --rank 0 --tags 3";

/// Output of the self-test for these arguments; quotes keep an argument together.
pub(crate) fn self_test(stage: &Stage, words: &str) -> Said {
    stage.peer_says(&split(&format!("self_test -u --path . {words}")))
}

/// Words as a shell splits them, as far as single quotes go.
pub(crate) fn split(words: &str) -> Vec<&str> {
    let parts = words.split('\'').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    parts.collect::<Vec<Vec<_>>>().concat()
}

/// The masters of each block, by their JSON.
pub(crate) fn masters(said: &Said) -> Vec<Vec<Value>> {
    let result: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {said}"));
    let groups = result["groups"].as_array().unwrap();
    let of = |group: &Value| {
        let outcome = &group["jobs"][0]["outcome"];
        let masters = outcome["rpc"]["masters"].as_array();
        let masters = masters.or_else(|| outcome["masters"].as_array());
        masters.unwrap_or_else(|| panic!("{outcome}")).clone()
    };
    groups.iter().map(of).collect()
}

/// The value of a line of a block, as `RPC Failures`, in the order of blocks.
pub(crate) fn values(said: &Said, label: &str) -> Vec<f64> {
    let lines = said.out.lines().map(str::trim_start);
    let found = lines.filter_map(|line| line.strip_prefix(label)?.trim_start().strip_prefix(':'));
    found.map(|value| value.trim().parse().unwrap()).collect()
}

//! Processes: all that a command started, wherever they went.
//!
//! In: a command, which gets a variable that every process below it inherits, whatever session or
//! parent it has by then. Out: whether the work ended within its time; the processes that carry the
//! variable, which are ended by their numbers.
//! Not here: the command itself (`cmd`).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The variable.
const VARIABLE: &str = "WEIR_XTASK_MARK";
/// Number of looks for processes that do not end.
const LOOKS: u32 = 500;
/// Interval between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Mark that separates the processes of one command from all others.
pub(crate) struct Mark(String);

impl Mark {
    /// A mark that nothing carries yet.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}.{next}", std::process::id()))
    }

    /// The variable that a command needs, with its value.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.0)
    }

    /// Does what starts and awaits the command; ends its processes where that takes longer than
    /// `limit`, and says whether it did.
    pub(crate) fn within<T>(&self, limit: Duration, work: impl FnOnce() -> T) -> (T, bool) {
        let (sender, receiver) = channel::<()>();
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || {
                let is_late = receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                if is_late {
                    self.end();
                }
                is_late
            });
            let done = work();
            drop(sender);
            (done, watch.join().unwrap_or(false))
        })
    }

    /// Ends every process that carries the mark, and says how many there were.
    pub(crate) fn end(&self) -> usize {
        let mut ended = BTreeSet::new();
        let mut looks_at_nothing = 0;
        for _ in 0..LOOKS {
            let carriers = self.carriers();
            if carriers.is_empty() {
                looks_at_nothing += 1;
            } else {
                looks_at_nothing = 0;
                let _ = Command::new("kill").arg("-KILL").args(&carriers).output();
                ended.extend(carriers);
            }
            // A process that starts a program has no environment for a moment.
            if looks_at_nothing == 2 {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        ended.len()
    }

    fn carriers(&self) -> Vec<String> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|id| self.is_on(id))
            .collect()
    }

    /// True if a process carries the mark. One that has ended has no environment any more.
    fn is_on(&self, id: &str) -> bool {
        let environment = std::fs::read(Path::new("/proc").join(id).join("environ"));
        let wanted = format!("{VARIABLE}={}", self.0);
        environment.is_ok_and(|all| {
            all.split(|byte| *byte == 0)
                .any(|one| one == wanted.as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that leaves a process of a session of its own behind.
    fn shell(mark: &Mark, script: &str) -> Command {
        let (name, value) = mark.variable();
        let mut command = Command::new("sh");
        command.args(["-c", script]).env(name, value);
        command
    }

    #[test]
    fn what_a_command_leaves_behind_is_ended_and_counted() {
        let (mark, other) = (Mark::new(), Mark::new());
        let script = "setsid sleep 600 > /dev/null 2>&1 & echo $!";
        let output = shell(&mark, script).output().unwrap();
        assert!(output.status.success());
        assert_eq!(other.end(), 0, "another's processes are let alone");
        assert_eq!(mark.end(), 1);
        assert_eq!(mark.end(), 0);
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
        let mark = Mark::new();
        let script = "setsid sleep 600 & trap '' TERM; wait; sleep 600";
        let run = || shell(&mark, script).output().unwrap().status;
        let (status, is_late) = mark.within(Duration::from_millis(200), run);
        assert!(is_late && !status.success());
        assert_eq!(mark.end(), 0);
    }

    #[test]
    fn a_command_within_its_time_is_let_alone() {
        let mark = Mark::new();
        let run = || shell(&mark, "exit 0").output().unwrap().status;
        let (status, is_late) = mark.within(Duration::from_secs(600), run);
        assert!(!is_late && status.success());
    }
}

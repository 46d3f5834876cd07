//! A child process, and what it used from its start to its end.
//!
//! In: a command with its arguments. Out: its standard output, wall time, CPU time of
//! all its threads, peak resident memory. Not here: what the output means.

#![expect(
    unsafe_code,
    reason = "wait4 has no safe wrapper among our dependencies"
)]

use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Output and use of a process that ended well.
pub(super) struct Ended {
    pub(super) stdout: String,
    pub(super) wall: Duration,
    /// User and system time.
    pub(super) cpu: Duration,
    /// Of it, user time.
    pub(super) user: Duration,
    /// Peak resident memory. The kernel counts a child from before its exec:
    /// never less than what this process holds.
    pub(super) resident_kib: u64,
}

/// Runs `argv`; what it says on standard error is shown only if it fails.
pub(super) fn run(argv: &[String]) -> Result<Ended> {
    let shown = argv.join(" ");
    let (program, args) = argv.split_first().context("a command has a program")?;
    let begin = Instant::now();
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| shown.clone())?;
    let errors = child.stderr.take();
    let errors = std::thread::spawn(move || text_of(errors));
    let stdout = text_of(child.stdout.take())?;
    let errors = errors.join().unwrap_or_else(|_| Ok(String::new()))?;
    let (status, usage) = wait(child.id())?;
    let wall = begin.elapsed();
    ensure!(
        status.success(),
        "`{shown}` failed ({status})\n{stdout}{errors}"
    );
    Ok(Ended {
        stdout,
        wall,
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        user: duration(usage.ru_utime),
        resident_kib: u64::try_from(usage.ru_maxrss)?,
    })
}

/// All that comes out of a stream of the child.
fn text_of(stream: Option<impl Read>) -> std::io::Result<String> {
    let mut text = String::new();
    if let Some(mut stream) = stream {
        stream.read_to_string(&mut text)?;
    }
    Ok(text)
}

fn wait(pid: u32) -> Result<(ExitStatus, libc::rusage)> {
    let pid = libc::pid_t::try_from(pid)?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to writable memory of their types, valid for the call.
    let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
    ensure!(reaped == pid, "wait4: {}", std::io::Error::last_os_error());
    // SAFETY: zeroed above, and all-zero bytes are a valid `rusage` of integers.
    let usage = unsafe { usage.assume_init() };
    Ok((ExitStatus::from_raw(status), usage))
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &[&str]) -> Vec<String> {
        line.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn a_child_is_charged_for_its_own_time() {
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done";
        let ended = run(&argv(&["sh", "-c", busy])).unwrap();
        assert_eq!(ended.stdout, "done\n");
        assert!(ended.cpu > Duration::ZERO);
        assert!(ended.resident_kib > 0);
    }

    #[test]
    fn a_failing_child_is_an_error_with_what_it_said() {
        let error = run(&argv(&["sh", "-c", "echo no such thing >&2; exit 3"]));
        let text = error.err().unwrap().to_string();
        assert!(text.contains("no such thing"), "{text}");
    }
}

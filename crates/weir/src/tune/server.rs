//! The other side of a trial, started by the command of `--server-command`.
//!
//! In: the server's configuration of the trial. Out: a process whose server listens, or why there is none. The command
//! gets the configuration and a line `end` on standard input, which stays open as long as the trial lasts; its
//! output is read for the line `READY`. Not here: this side's process (`trial`).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use weir_doors::tune::TuneServer;
use weir_run::execute::Signals;

use super::trial::shown_of;
use crate::held_input::END;
use crate::stopping::PATIENCE;

/// First word of the line that reports that the server listens.
const READY: &[u8] = b"READY";
/// Bytes of a line of output that are looked at.
const LONGEST_LINE: u64 = 4096;
/// Between looks.
const LOOK: Duration = Duration::from_millis(20);

/// Server of a trial.
pub(super) struct ServerProcess {
    child: Child,
    /// Keeps the command's standard input open.
    hold: Option<Sender<()>>,
    errors: PathBuf,
    /// Exit status, where it ended by itself.
    ended: Option<ExitStatus>,
}

impl ServerProcess {
    /// Starts the command; its standard error goes to a file.
    ///
    /// # Errors
    /// The shell cannot be started.
    pub(super) fn start(
        asked: &TuneServer,
        config: String,
        errors: PathBuf,
    ) -> io::Result<(Self, Receiver<()>)> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(&asked.command)
            .env("WEIR_HISTORY", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?)
            .spawn()?;
        let (hold, held) = mpsc::channel();
        let (say, said) = mpsc::channel();
        if let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) {
            thread::spawn(move || feed(input, &config, &held));
            thread::spawn(move || drain(output, &say));
        }
        let server = Self {
            child,
            hold: Some(hold),
            errors,
            ended: None,
        };
        Ok((server, said))
    }

    /// Waits until the server listens.
    ///
    /// # Errors
    /// The command ends early, prints nothing in its time, or a signal arrives: the reason, with the server
    /// ended.
    pub(super) fn await_ready(
        &mut self,
        ready: &Receiver<()>,
        (asked, caught): (&TuneServer, &Signals),
        mut look: impl FnMut(),
    ) -> Result<(), String> {
        let start = Instant::now();
        let limit = Duration::from_nanos(asked.wait.0);
        let why = loop {
            match ready.recv_timeout(LOOK) {
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    self.hold = None;
                    self.await_end();
                    break "its output ended without READY".to_owned();
                }
                Err(RecvTimeoutError::Timeout) => look(),
            }
            if caught.interrupted() {
                break "interrupted".to_owned();
            }
            if start.elapsed() > limit {
                break format!(
                    "no READY within {} s (--server-wait): COMMAND ends with `weir axio --server -c -`",
                    limit.as_secs_f64()
                );
            }
        };
        let has_failed = self.has_failed();
        Err(match self.end() {
            Some(failure) if has_failed => failure,
            _ => why + &shown_of(&self.errors),
        })
    }

    /// True if it ended by itself with a failure.
    pub(super) fn has_failed(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_some_and(|status| !status.success())
    }

    /// Waits until it has ended by itself, for a while.
    pub(super) fn await_end(&mut self) {
        let start = Instant::now();
        while !self.has_failed() && self.ended.is_none() && start.elapsed() < PATIENCE {
            thread::sleep(LOOK);
        }
    }

    /// Closes the command's standard input, which ends it; returns the reason where it failed by itself or
    /// had to be killed.
    pub(super) fn end(&mut self) -> Option<String> {
        if self.has_failed() {
            let status = self.ended.map(|status| status.to_string());
            return status.map(|status| status + &shown_of(&self.errors));
        }
        self.hold = None;
        self.await_end();
        if self.ended.is_some() {
            return None;
        }
        // It may have ended in this moment.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let seconds = PATIENCE.as_secs();
        Some(format!(
            "it did not end within {seconds} s of its standard input and was killed"
        ))
    }
}

/// Writes the configuration, and keeps standard input open as long as the other end of the channel is there.
fn feed(mut input: ChildStdin, config: &str, held: &Receiver<()>) {
    let text = format!("{}\n{END}\n", config.trim_end_matches('\n'));
    // One that reads nothing ends without READY.
    let _ = input.write_all(text.as_bytes());
    let _ = held.recv();
}

/// Reads what the command prints, to its end, so that it never waits for a reader.
fn drain(output: ChildStdout, say: &Sender<()>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut output)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) if line.split(u8::is_ascii_whitespace).next() == Some(READY) => {
                // Nobody waits any more where the trial is over.
                let _ = say.send(());
            }
            Ok(_) => {}
        }
    }
}

//! Verdict on a run: the end of the emulator, the status of the guest, the content of the kernel's
//! log.
//!
//! In: the emulator's wait status, the script's status by the serial line. Out: an [`Ending`] and a
//! [`LabRun`]. Two witnesses have to agree on a status: the exit port and the serial line.
//! Not here: reading the lines (`serial`).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::serial::{Complaint, Transcript};

/// Number that the guest adds to a status, so that QEMU's own exit code 1 cannot be taken for one.
const BASE: i32 = 16;
/// The status by which the guest's init says that it could not set things up.
pub(crate) const BROKEN: i32 = 101;
/// The status by which a script says that it cannot be done here.
pub(crate) const SKIPPED: i32 = 77;

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmulatorEnd {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// The lab killed it at its time limit.
    TimedOut,
}

/// End of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The script ended with this status.
    Exit(i32),
    /// The time limit came first.
    TimedOut,
    /// The lab, QEMU or the guest's init could not set things up.
    Setup(String),
    /// The guest powered off or restarted: a panic, or the script did it.
    NoVerdict,
}

/// Reads the emulator's end; the serial line has to say the same.
pub fn ending_of(wait: EmulatorEnd, transcript: &Transcript, emulator_says: &str) -> Ending {
    let code = match wait {
        EmulatorEnd::TimedOut => return Ending::TimedOut,
        EmulatorEnd::Signal(signal) => {
            let says = emulator_says.trim();
            return Ending::Setup(format!("QEMU was ended by signal {signal}: {says}"));
        }
        EmulatorEnd::Code(code) => code,
    };
    if code == 0 {
        return Ending::NoVerdict;
    }
    // isa-debug-exit ends QEMU with twice the value and one.
    let status = (code - 1) / 2 - BASE;
    if code % 2 == 0 || status < 0 {
        return Ending::Setup(format!("QEMU ended with {code}: {}", emulator_says.trim()));
    }
    if status == BROKEN {
        let why = transcript
            .broken
            .as_deref()
            .unwrap_or("for no reason given");
        return Ending::Setup(format!("the guest could not be set up: {why}"));
    }
    match transcript.exit {
        Some(said) if said == status => Ending::Exit(status),
        said => Ending::Setup(format!(
            "the exit port says {status}, the serial line {said:?}: no verdict"
        )),
    }
}

/// One run of a script in a guest.
#[derive(Debug, Clone)]
pub struct LabRun {
    /// The script's (0 to 100); 124: time limit, 125: set-up, 126: the kernel complained though the
    /// script passed.
    pub status: i32,
    /// End of the guest.
    pub ending: Ending,
    /// Output of the script, without structured lines.
    pub output: String,
    /// The objects of lines `@@weir {...}`.
    pub records: Vec<Value>,
    /// The kernel's log.
    pub kernel_log: String,
    /// Complaints of the kernel.
    pub complaints: Vec<Complaint>,
    /// The kernel's release.
    pub kernel: String,
    /// Accelerator that was used.
    pub accel: String,
    /// Seconds of the guest's clock until the script began.
    pub boot_s: Option<f64>,
    /// Seconds from the emulator's start to its end.
    pub run_s: f64,
    /// True if it was repeated because the emulator lost a command.
    pub repeated: bool,
    /// Folder of logs and of the guest's `/out`.
    pub out: PathBuf,
    pub(crate) transcript: Transcript,
}

impl LabRun {
    /// Gives it another end than the one that was seen first.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.status = status_of(&ending, !self.complaints.is_empty());
        self.ending = ending;
    }

    /// True if the kernel panicked.
    pub fn has_panicked(&self) -> bool {
        self.kernel_log.contains("Kernel panic")
    }

    /// Fails with the first complaints, if there are any.
    ///
    /// # Errors
    /// If the kernel complained.
    pub fn no_complaints(&self) -> Result<()> {
        if let Some(first) = self.complaints.first() {
            bail!(
                "the kernel complained {} times, first: {} (log: {})",
                self.complaints.len(),
                first.line,
                self.out.join("dmesg.log").display()
            );
        }
        Ok(())
    }

    /// Fails unless the script ended with 0 and the kernel was silent; says what was printed.
    ///
    /// # Errors
    /// If not.
    pub fn good(&self) -> Result<&Self> {
        self.no_complaints()?;
        if self.status != 0 {
            bail!("{:?}, the guest said:\n{}", self.ending, self.output);
        }
        Ok(self)
    }

    /// A file of the guest's `/out`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    /// A JSON file of the guest's `/out`.
    ///
    /// # Errors
    /// If it is missing or no JSON.
    pub fn json(&self, name: &str) -> Result<Value> {
        read_json(&self.file(name))
    }

    /// Content of `result.json`.
    pub fn summary(&self) -> Value {
        let complaints = self.complaints.iter().map(|complaint| {
            json!({
                "class": format!("{:?}", complaint.gravity).to_lowercase(),
                "case": complaint.case,
                "line": complaint.line,
            })
        });
        json!({
            "kernel": self.kernel,
            "accel": self.accel,
            "boot_s": self.boot_s,
            "run_s": self.run_s,
            "status": self.status,
            "repeated": self.repeated,
            "complaints": complaints.collect::<Vec<_>>(),
            "records": self.records,
        })
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

/// The status of a run as a whole.
pub(crate) fn status_of(ending: &Ending, complained: bool) -> i32 {
    match ending {
        Ending::Exit(0) | Ending::NoVerdict if complained => 126,
        Ending::Exit(status) => *status,
        Ending::TimedOut => 124,
        Ending::Setup(_) | Ending::NoVerdict => 125,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: i32) -> Transcript {
        Transcript::of(format!("\x1eLAB-EXIT {status}\n").as_bytes())
    }

    #[test]
    fn both_witnesses_have_to_agree() {
        for status in 0..=100 {
            let code = ((BASE + status) << 1) | 1;
            assert!(code < 256);
            let ending = ending_of(EmulatorEnd::Code(code), &said(status), "");
            assert_eq!(ending, Ending::Exit(status));
            let other = ending_of(EmulatorEnd::Code(code), &said(status + 1), "");
            assert!(matches!(other, Ending::Setup(_)));
            let silent = ending_of(EmulatorEnd::Code(code), &Transcript::default(), "");
            assert!(matches!(silent, Ending::Setup(_)));
        }
    }

    #[test]
    fn an_error_of_qemu_is_no_status_of_the_script() {
        for code in [1, 2, 31, 32, 34] {
            let ending = ending_of(EmulatorEnd::Code(code), &said(0), "qemu: no such option");
            let Ending::Setup(why) = ending else {
                panic!("{code}: {ending:?}");
            };
            assert!(why.contains("no such option"), "{why}");
        }
        assert_eq!(
            ending_of(EmulatorEnd::Code(0), &said(0), ""),
            Ending::NoVerdict
        );
        assert_eq!(
            ending_of(EmulatorEnd::TimedOut, &said(0), ""),
            Ending::TimedOut
        );
        let abort = ending_of(EmulatorEnd::Signal(6), &said(0), "assertion");
        assert_eq!(status_of(&abort, false), 125);
    }

    #[test]
    fn a_guest_that_could_not_be_set_up_says_why() {
        let transcript = Transcript::of(b"\x1eLAB-BROKEN null_blk refuses bs=3\n");
        let code = ((BASE + BROKEN) << 1) | 1;
        let Ending::Setup(why) = ending_of(EmulatorEnd::Code(code), &transcript, "") else {
            panic!("an ending");
        };
        assert!(why.ends_with("null_blk refuses bs=3"), "{why}");
    }

    #[test]
    fn complaints_spoil_a_run_that_passed_and_explain_one_without_a_verdict() {
        assert_eq!(status_of(&Ending::Exit(0), false), 0);
        assert_eq!(status_of(&Ending::Exit(0), true), 126);
        assert_eq!(status_of(&Ending::Exit(3), true), 3);
        assert_eq!(status_of(&Ending::NoVerdict, true), 126);
        assert_eq!(status_of(&Ending::NoVerdict, false), 125);
        assert_eq!(status_of(&Ending::TimedOut, true), 124);
    }
}

//! Several scripts in one guest, so that a set of cases costs one boot.
//!
//! In: scripts by name. Out: what each of them said and ended with, and which complaints of the
//! kernel came while it ran. Not here: one script (`lab`).

use anyhow::{Result, bail, ensure};

use crate::lab::{Lab, Task};
use crate::serial::Complaint;
use crate::verdict::{LabRun, SKIPPED};

/// Scripts that one guest runs in their order.
#[derive(Debug, Clone, Default)]
pub struct CaseBatch {
    cases: Vec<(String, String)>,
}

impl CaseBatch {
    /// Adds a script. Names are words of letters, digits and `-`.
    #[must_use]
    pub fn case(mut self, name: &str, script: &str) -> Self {
        self.cases.push((name.to_owned(), script.to_owned()));
        self
    }
}

/// Result of one script.
#[derive(Debug, Clone)]
pub struct CaseRun {
    /// Its name.
    pub name: String,
    /// Output of the script.
    pub output: String,
    /// None: the guest ended within it, or before.
    pub status: Option<i32>,
    /// Complaints of the kernel meanwhile.
    pub complaints: Vec<Complaint>,
}

impl CaseRun {
    /// True if the script reported that it cannot be done here.
    pub fn skipped(&self) -> bool {
        self.status == Some(SKIPPED)
    }

    /// Its output, if it ended with 0 and the kernel was silent.
    ///
    /// # Errors
    /// If not.
    pub fn good(&self) -> Result<&str> {
        if let Some(first) = self.complaints.first() {
            bail!(
                "{}: the kernel complained: {}\n{}",
                self.name,
                first.line,
                self.output
            );
        }
        match self.status {
            Some(0) => Ok(&self.output),
            Some(status) => bail!("{}: status {status}\n{}", self.name, self.output),
            None => bail!("{}: the guest ended within it\n{}", self.name, self.output),
        }
    }
}

impl Lab {
    /// Runs scripts one after the other in one guest.
    ///
    /// # Errors
    /// If it could not be started, or a name is odd or there twice.
    pub fn batch(&self, batch: &CaseBatch) -> Result<(LabRun, Vec<CaseRun>)> {
        for (at, (name, _)) in batch.cases.iter().enumerate() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            ensure!(
                !name.is_empty() && name.chars().all(plain),
                "case `{name}`: a name has letters, digits and -"
            );
            ensure!(
                batch.cases[..at].iter().all(|(known, _)| known != name),
                "case `{name}` is there twice"
            );
        }
        let run = self.run_task(&Task::Cases(batch.cases.clone()))?;
        let cases = batch.cases.iter().map(|(name, _)| case_of(&run, name));
        let cases = cases.collect();
        Ok((run, cases))
    }
}

fn case_of(run: &LabRun, name: &str) -> CaseRun {
    let note = run.transcript.cases.iter().find(|case| case.name == name);
    let complaints = run.complaints.iter();
    CaseRun {
        name: name.to_owned(),
        output: note.map_or_else(
            || format!("it did not begin: {:?}\n{}", run.ending, run.output),
            |note| String::from_utf8_lossy(&note.output).into_owned(),
        ),
        status: note.and_then(|note| note.status),
        complaints: complaints
            .filter(|complaint| complaint.case.as_deref() == Some(name))
            .cloned()
            .collect(),
    }
}

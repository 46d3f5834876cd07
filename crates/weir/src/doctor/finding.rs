//! Finding of a check, as a line and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Spoils no measurement.
    Ok,
    /// May spoil measurements.
    Warn,
    /// Measurements would be wrong, or impossible.
    Fail,
    /// This machine has no data for the check.
    Absent,
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) status: Status,
    /// Property that was found; for `Absent` the reason why it was not.
    pub(super) found: String,
    /// Reason why it matters, and the remedy; empty for a good finding.
    pub(super) why: String,
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn ok(found: impl Into<String>) -> Self {
        Self {
            status: Status::Ok,
            found: found.into(),
            why: String::new(),
            remedy: String::new(),
        }
    }

    pub(super) fn absent(reason: impl Into<String>) -> Self {
        Self {
            status: Status::Absent,
            ..Self::ok(reason)
        }
    }

    pub(super) fn warn(found: impl Into<String>, why: &str, remedy: impl Into<String>) -> Self {
        Self {
            status: Status::Warn,
            found: found.into(),
            why: why.to_owned(),
            remedy: remedy.into(),
        }
    }

    pub(super) fn fail(self) -> Self {
        Self {
            status: Status::Fail,
            ..self
        }
    }
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::Absent => "n/a",
        }
    }
}

/// `warn  governor       powersave (frequencies change …; set it to performance)`.
pub(super) fn text(findings: &[(&str, Finding)]) -> String {
    let mut out = String::new();
    for (id, finding) in findings {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{:4}  {id:13}  {}",
            finding.status.word(),
            finding.found
        );
        if !finding.why.is_empty() {
            let _ = write!(out, " ({}; {})", finding.why, finding.remedy);
        }
        out.push('\n');
    }
    out
}

/// The findings as one JSON document.
pub(super) fn json(findings: &[(&str, Finding)]) -> String {
    let one = |(id, finding): &(&str, Finding)| {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        json!({
            "status": finding.status.word(),
            "id": id,
            "found": finding.found,
            "why": text(&finding.why),
            "remedy": text(&finding.remedy),
        })
    };
    let findings: Vec<Value> = findings.iter().map(one).collect();
    json!({"schema": "weir.doctor.v1", "findings": findings}).to_string() + "\n"
}

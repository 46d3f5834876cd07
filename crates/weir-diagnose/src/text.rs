//! A diagnosis as text: the lines of the reference, then those of weir.
//!
//! In: a [`Diagnosis`]. Out: lines. Without notes and rules the first part is what the reference prints,
//! byte for byte. Not here: JSON, which is the data itself.

use crate::diagnosis::{Diagnosis, DiagnosisRule, DiagnosisSide, RuleState};
use crate::reading::Reading;
use crate::reference::PathClass;

/// The text of a diagnosis, with the figures that it rests on where they are wanted.
pub fn text(diagnosis: &Diagnosis, with_figures: bool) -> String {
    let mut out = heading(diagnosis);
    push!(
        out,
        "[INFO] Diagnosing the contention point for {}......\n",
        diagnosis.side.name()
    );
    if with_figures {
        figures(&mut out, diagnosis);
    }
    match (&diagnosis.critical, diagnosis.class) {
        (Some(stage), Some(class)) => {
            let sign = match class {
                PathClass::Waiting => '<',
                PathClass::Working => '>',
            };
            push!(out, "[INFO] The most critical pipe phase is: {stage}\n");
            push!(
                out,
                "[INFO] The completion time {sign} stall time. Contention point is {}.\n",
                class.name()
            );
        }
        _ => out.push_str("[INFO] No pipe phase has a time: there is no contention point.\n"),
    }
    for note in &diagnosis.notes {
        push!(out, "[WEIR] note: {note}\n");
    }
    rules(&mut out, diagnosis);
    out
}

/// The job's name above its first side, where the run had several paths.
fn heading(diagnosis: &Diagnosis) -> String {
    match (&diagnosis.job, diagnosis.side) {
        (Some(job), DiagnosisSide::Local) => format!("==========Job {job}==========\n"),
        _ => String::new(),
    }
}

fn figures(out: &mut String, diagnosis: &Diagnosis) {
    let list = |readings: &[Reading]| {
        let all: Vec<String> = readings.iter().map(Reading::printed).collect();
        all.join(", ")
    };
    push!(out, "==========Performance Statistics==========\n");
    push!(
        out,
        "[DEBUG] End-to-end Throughput: {}\n",
        diagnosis.throughput_mpps.printed()
    );
    // The reference has a sixth stage, which it never fills.
    push!(
        out,
        "[DEBUG] Completion time: [{}, 0]\n",
        list(&diagnosis.completion_us)
    );
    push!(out, "[DEBUG] Stall time: [{}]\n", list(&diagnosis.stall_us));
    for (name, reading) in [
        ("IO Read", &diagnosis.io_read_miss),
        ("IO Write", &diagnosis.io_write_miss),
        ("LLC Read", &diagnosis.llc_load_miss),
        ("LLC Write", &diagnosis.llc_store_miss),
    ] {
        push!(out, "[DEBUG] {name} Miss Rate: {}\n", reading.printed());
    }
}

fn rules(out: &mut String, diagnosis: &Diagnosis) {
    let before = |rule: &&DiagnosisRule| rule.class.is_none();
    for rule in diagnosis.rules.iter().filter(before) {
        if let Some(line) = holding(rule) {
            push!(out, "[WEIR] {line}\n");
        }
    }
    if let Some(class) = diagnosis.class {
        push!(out, "[WEIR] verdict: {}, ", class.name());
        let verdict = diagnosis.verdict.as_ref();
        if let Some(rule) = verdict.and_then(|id| rule_of(diagnosis, id)) {
            push!(out, "{} {}\n", rule.id, rule.name);
        } else {
            push!(out, "cause not found{}\n", missing(diagnosis));
        }
    }
    let is_cause = |rule: &&DiagnosisRule| rule.class.is_some();
    for rule in diagnosis.rules.iter().filter(is_cause) {
        if let Some(line) = holding(rule) {
            let is_verdict = diagnosis.verdict.as_ref() == Some(&rule.id);
            let also = if is_verdict { "" } else { "also " };
            push!(out, "[WEIR] {also}{line}\n");
        }
    }
    for rule in &diagnosis.rules {
        if let RuleState::NotEvaluated { reason } = &rule.state {
            push!(
                out,
                "[WEIR] {} {}: not evaluated ({reason})\n",
                rule.id,
                rule.name
            );
        }
    }
}

fn rule_of<'a>(diagnosis: &'a Diagnosis, id: &str) -> Option<&'a DiagnosisRule> {
    diagnosis.rules.iter().find(|rule| rule.id == id)
}

/// The line of a rule that holds.
fn holding(rule: &DiagnosisRule) -> Option<String> {
    match &rule.state {
        RuleState::Holds {
            evidence,
            confidence,
        } => Some(format!(
            "{} {}: {evidence} → {} ({confidence})",
            rule.id, rule.name, rule.action
        )),
        _ => None,
    }
}

/// Rules that could have explained the class if their figures were there.
fn missing(diagnosis: &Diagnosis) -> String {
    let open = diagnosis
        .rules
        .iter()
        .filter(|rule| rule.explains && matches!(rule.state, RuleState::NotEvaluated { .. }));
    let open: Vec<&str> = open.map(|rule| rule.id.as_str()).collect();
    if open.is_empty() {
        String::new()
    } else {
        format!(" (not evaluated: {})", open.join(", "))
    }
}

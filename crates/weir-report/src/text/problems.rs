//! Problems of a job at its end: errors by code with their place, other failures, warnings, and the
//! reason that it is not complete.

use weir_schema::{ErrorCode, Failure, State};
use weir_units::Nanos;

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::{KindSum, ReportEntry};
use crate::errno;
use crate::layout::INDENT;
use crate::number_format::significant;

/// Largest number of failures listed one by one.
const FAILURES: usize = 4;

impl Report<'_> {
    /// `owner`: the job's name, where the lines do not stand below its title.
    pub(super) fn problems(&mut self, entry: &ReportEntry<'_>, number: usize, owner: Option<&str>) {
        let mut label = "errors";
        for kind in &entry.kinds {
            for (code, count) in &kind.sum.errors {
                let text = self.error(entry, kind, code, *count);
                self.line(label, Tone::Bad, owner, &text);
                label = "";
            }
        }
        for kind in &entry.kinds {
            if let Some(text) = self.other_losses(kind) {
                self.line("besides", Tone::Plain, owner, &text);
            }
        }
        self.warnings_of(number, owner);
        self.failures(entry, owner);
        if let Some(text) = self.incomplete(entry) {
            self.line("INCOMPLETE", Tone::Bad, owner, &text);
        }
    }

    pub(super) fn line(&mut self, label: &str, tone: Tone, owner: Option<&str>, text: &str) {
        let lead = format!("  {label:<9} ");
        let text = owner.map_or(text.to_owned(), |name| format!("{name}: {text}"));
        self.layout.prose(Text::new(tone, lead), INDENT, &text);
    }

    fn error(
        &self,
        entry: &ReportEntry<'_>,
        kind: &KindSum,
        code: &ErrorCode,
        count: u64,
    ) -> String {
        let name = errno::name(code);
        let meaning = errno::meaning(code).map_or(String::new(), |m| format!(" ({m})"));
        let count = self.numbers.count(count);
        let place = entry
            .workers
            .iter()
            .filter_map(|w| w.failure.as_ref())
            .filter(|f| {
                f.errno.is_some()
                    && f.errno == code.errno()
                    && f.kind.as_ref().is_none_or(|k| *k == kind.sum.kind)
            })
            .find_map(place);
        let place = place.map_or(String::new(), |place| format!(", at {place}"));
        format!("{count} × {name}{meaning} in {}{place}", kind.name)
    }

    /// Operations that neither completed whole nor failed.
    fn other_losses(&self, kind: &KindSum) -> Option<String> {
        let parts: Vec<String> = [
            (kind.sum.short, "short"),
            (kind.sum.dropped, "dropped by pacing"),
            (kind.sum.lost, "never completed"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} × {} {what}", self.numbers.count(count), kind.name))
        .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn failures(&mut self, entry: &ReportEntry<'_>, owner: Option<&str>) {
        let failures = entry.failures();
        for failure in failures.iter().take(FAILURES) {
            self.line("FAILED", Tone::Bad, owner, &failure.message);
        }
        if failures.len() > FAILURES {
            let more = format!("and {} failures more", failures.len() - FAILURES);
            self.line("", Tone::Bad, owner, &more);
        }
    }

    /// `(signal 2 after 12.4 of 30 s)`.
    fn incomplete(&self, entry: &ReportEntry<'_>) -> Option<String> {
        let signal = self
            .result
            .ended_by
            .map(|end| format!("signal {}", end.signal));
        match entry.state() {
            State::Done | State::Failed => None,
            State::NotStarted => Some(signal.map_or("(not started)".into(), |signal| {
                format!("({signal} before it started)")
            })),
            State::Stopped => {
                let cause = signal.unwrap_or_else(|| "stopped by another job's end".into());
                let planned = entry.plan.and_then(|p| p.load().bounds.runtime_ns);
                let ran = entry.time().map_or(String::new(), |t| after(t, planned));
                Some(format!("({cause}{ran})"))
            }
            State::Running => Some("(still running)".into()),
            State::Hung => Some("(a worker did not come back from the kernel)".into()),
        }
    }
}

/// ` after 12.4 of 30 s`.
fn after(ran: Nanos, planned: Option<Nanos>) -> String {
    let Some(planned) = planned.filter(|p| *p >= ran) else {
        return format!(" after {ran}");
    };
    format!(
        " after {} of {} s",
        significant(ran.as_secs_f64(), 3),
        planned.as_secs_f64()
    )
}

/// `/dev/vdb offset 0x1f3d000 (32755712)`.
fn place(failure: &Failure) -> Option<String> {
    let target = failure.target.as_deref()?;
    Some(match failure.offset_bytes {
        Some(offset) => format!("{target} offset {:#x} ({})", offset.0, offset.0),
        None => target.to_owned(),
    })
}

//! The live text of a run as fio prints it: banners, the line of progress, reports at intervals and at
//! requests.
//!
//! In: the run, at every round. Out: text. Not here: where it goes, signals and files that ask.

use weir_schema::{Announcement, Plan, RunResult};
use weir_units::Nanos;

use super::announcement;
use super::options::{Eta, FioOptions};
use super::output::{EtaLine, FioTextOptions, banner, complaints, reservations};
use super::print::{report, text_options};
use crate::door::Printed;
use crate::given::Given;
use crate::machine::Machine;
use crate::observer::{Observer, Snapshot};

/// The line of progress comes this often.
const LINE_EVERY: Nanos = Nanos(1_000_000_000);

/// The live text that these arguments ask for.
pub(super) fn observer(given: &Given, machine: &dyn Machine) -> Box<dyn Observer> {
    let options = FioOptions::of(given);
    let shows = match options.eta {
        Eta::Never => false,
        Eta::Always => true,
        Eta::Auto => machine.is_output_terminal(),
    };
    // A document on the same stream stays alone.
    let shows = shows && !(options.is_for_programs() && options.output.is_none());
    let directory = machine.variable("TMPDIR");
    let directory = directory.unwrap_or_else(|| "/tmp".to_owned());
    Box::new(FioObserver {
        texts: text_options(&options, machine),
        plan: Plan::default(),
        line: shows.then(|| Line {
            text: EtaLine::default(),
            due: Due::each(options.eta_interval.unwrap_or(LINE_EVERY)),
            breaks: options.eta_newline.map(Due::each),
        }),
        status: options.status_interval.map(Due::each),
        request_file: format!("{directory}/fio-dump-status"),
        has_partial: false,
        excused: Vec::new(),
        has_notes: machine.is_error_terminal(),
        options,
    })
}

/// Observer of a run.
struct FioObserver {
    options: FioOptions,
    texts: FioTextOptions,
    plan: Plan,
    line: Option<Line>,
    /// Reports at intervals.
    status: Option<Due>,
    request_file: String,
    /// A report of the run was printed while it went on.
    has_partial: bool,
    /// Jobs that cannot run, and why.
    excused: Vec<(String, String)>,
    /// Notes are printed on standard error.
    has_notes: bool,
}

struct Line {
    text: EtaLine,
    due: Due,
    breaks: Option<Due>,
}

/// Instant that comes again and again.
struct Due {
    every: Nanos,
    next: Nanos,
}

impl Due {
    fn each(every: Nanos) -> Self {
        Self { every, next: every }
    }

    /// True if it is time; what was missed is not made up for.
    fn is_now(&mut self, now: Nanos) -> bool {
        let due = now >= self.next;
        if due {
            let missed = (now.0 - self.next.0) / self.every.0.max(1);
            self.next.0 += (missed + 1) * self.every.0;
        }
        due
    }
}

impl FioObserver {
    fn banner(&self, plan: &Plan) -> String {
        if self.options.is_for_programs() {
            String::new()
        } else {
            banner(plan, self.texts, env!("CARGO_PKG_VERSION"))
        }
    }

    /// Documents of one stream stand on a line each.
    fn of_several(&self) -> FioTextOptions {
        FioTextOptions {
            one_line: !self.options.compat,
            ..self.texts
        }
    }
}

impl Observer for FioObserver {
    fn plan(&mut self, plan: &Plan) -> String {
        self.plan = plan.clone();
        self.banner(plan)
    }

    fn announce(&mut self, announcement: &Announcement) -> Option<String> {
        if self.options.is_for_programs() {
            return Some(String::new());
        }
        Some(announcement::announcement(announcement) + "\n")
    }

    fn look(&mut self, snapshot: &Snapshot<'_>) -> String {
        let now = snapshot.elapsed_ns;
        let is_due = self.status.as_mut().is_some_and(|due| due.is_now(now));
        if !(is_due || snapshot.is_asked) || snapshot.measured_ns == Nanos(0) {
            return String::new();
        }
        self.has_partial = true;
        let texts = FioTextOptions {
            partial: true,
            ..self.of_several()
        };
        self.options.document(&(snapshot.result)(), texts, None)
    }

    fn progress(&mut self, snapshot: &Snapshot<'_>) -> String {
        let now = snapshot.elapsed_ns;
        let Some(line) = self.line.as_mut() else {
            return String::new();
        };
        if !line.due.is_now(now) {
            return String::new();
        }
        let text = line
            .text
            .show(&self.plan, &(snapshot.jobs)(), now.as_secs_f64());
        if text.is_some() {
            let breaks = line.breaks.as_mut();
            line.text.breaks = breaks.is_some_and(|due| due.is_now(now));
        }
        text.unwrap_or_default()
    }

    fn request_file(&self) -> Option<String> {
        Some(self.request_file.clone())
    }

    fn excuse(&mut self, job: &str, why: &str) -> Option<String> {
        self.excused.push((job.to_owned(), why.to_owned()));
        Some(format!("note: {job} cannot run: {why}\n"))
    }

    fn rest(&mut self, result: &RunResult, machine: &dyn Machine, whole: Printed) -> Printed {
        let out = if self.has_partial {
            report(result, &self.options, self.of_several(), machine).out
        } else {
            let begun = self.banner(&result.plan);
            let rest = whole.out.strip_prefix(&begun).map(str::to_owned);
            rest.unwrap_or(whole.out)
        };
        let mut err = complaints(result, &self.excused);
        if self.has_notes {
            err += &reservations(result);
        }
        err += &whole.err;
        Printed { out, err, ..whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_not_made_up_for() {
        let mut due = Due::each(Nanos(100));
        let at = [50, 100, 150, 450, 460, 500, 599, 600].map(|t| due.is_now(Nanos(t)));
        assert_eq!(at, [false, true, false, true, false, true, false, true]);
    }
}

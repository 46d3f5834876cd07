//! How a run is reported, and what ends it early: the flags that are no options of jobs.

use weir_schema::{Kind, PerKind, RunResult, TotalLog};
use weir_units::Nanos;

use super::output::{self, TerseVersion};
use crate::door::Printed;

/// How a run is reported.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct FioOptions {
    /// The formats, in the order in which they are written.
    pub formats: Vec<FioFormat>,
    /// The file that gets the report instead of standard output.
    pub output: Option<String>,
    /// The file that gets the whole result.
    pub store: Option<String>,
    /// The directory of dumps and state files instead of the working directory.
    pub aux_path: Option<String>,
    /// When progress is shown.
    pub eta: Eta,
    /// A new progress line after each such time.
    pub eta_newline: Option<Nanos>,
    /// Time between progress lines.
    pub eta_interval: Option<Nanos>,
    /// Say fio's version.
    pub compat_banner: bool,
    /// Exit codes.
    pub exit: ExitStyle,
    /// Notes about jobs are errors.
    pub warnings_fatal: bool,
    /// The layout of terse lines.
    pub terse: TerseVersion,
    /// Prefix of logs of the whole run's bandwidth.
    pub bandwidth_log: Option<String>,
    /// A full report after each such time of the run.
    pub status_interval: Option<Nanos>,
    /// Which idleness of the CPUs is reported.
    pub idleness: Option<IdleScope>,
    /// What ends the run early, and what is run then.
    pub trigger: Trigger,
    /// What was understood of the jobs' options is printed.
    pub shows_parsing: bool,
    /// Such reports in JSON are documents one after the other, as fio prints them.
    pub compat: bool,
}

impl FioOptions {
    /// Whether programs alone read the report: then there are no banners, and notes and errors
    /// go to standard error.
    pub fn is_for_programs(&self) -> bool {
        !self.formats.contains(&FioFormat::Normal)
    }

    /// The report of a result in every format. `several`: documents follow each other, each on a
    /// line unless fio's way is wanted.
    pub fn document(
        &self,
        result: &RunResult,
        texts: output::FioTextOptions,
        several: bool,
        idleness: Option<&output::Idleness>,
    ) -> String {
        let texts = output::FioTextOptions {
            one_line: (several || self.status_interval.is_some()) && !self.compat,
            ..texts
        };
        let text = |format: &FioFormat| match format {
            FioFormat::Terse => output::terse(result, texts),
            FioFormat::Json | FioFormat::JsonPlus => output::json(result, texts, idleness),
            FioFormat::Normal => {
                let idle = idleness.map(output::Idleness::text).unwrap_or_default();
                output::normal(result, texts) + &idle
            }
        };
        self.formats.iter().map(text).collect()
    }

    /// What standard output got of a run that is stored; local time is so much ahead of UTC. Nothing
    /// where no job reads or writes blocks.
    pub fn printed_again(&self, result: &RunResult, utc_offset_s: i32) -> Printed {
        let mut jobs = result.plan.jobs();
        if !jobs.any(|(_, job)| job.workload.blocks().is_some()) {
            return Printed::default();
        }
        let texts = self.texts(utc_offset_s);
        let notice = result.ended_by.map(|end| output::signal_notice(end.signal));
        let wrong = notice.unwrap_or_default() + &output::failures(result);
        let document = self.document(result, texts, false, None);
        let (out, err) = if self.is_for_programs() {
            (document, wrong)
        } else {
            let banner = output::banner(&result.plan, texts, &result.weir_version);
            (banner + &wrong + &document, String::new())
        };
        let code = super::exit_code(result, self.exit);
        Printed {
            out,
            err,
            code,
            ..Printed::default()
        }
    }

    /// Terse lines before whatever else was asked for.
    pub(super) fn append_terse(&mut self) {
        if self.formats.is_empty() {
            self.formats.push(FioFormat::Normal);
        }
        self.formats.insert(0, FioFormat::Terse);
        self.formats.dedup();
    }

    /// The logs of the whole run.
    pub fn total_log(&self) -> Option<TotalLog> {
        let prefix = self.bandwidth_log.as_deref()?;
        let path = |kind: Kind| format!("{prefix}-{}_bw.log", kind.name());
        Some(TotalLog {
            paths: PerKind::from_fn(path).by_name(),
        })
    }

    /// The same for the texts of [`super::output`].
    pub fn texts(&self, utc_offset_s: i32) -> output::FioTextOptions {
        output::FioTextOptions {
            compat_banner: self.compat_banner,
            utc_offset_s,
            bins: self.formats.contains(&FioFormat::JsonPlus),
            terse: self.terse,
            one_line: false,
            partial: false,
        }
    }
}

/// A format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FioFormat {
    /// A line of fields per entry.
    Terse,
    /// JSON.
    Json,
    /// JSON with histograms.
    JsonPlus,
    /// Text.
    Normal,
}

/// When progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Which exit codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitStyle {
    /// fio's.
    #[default]
    Fio,
    /// 1 for failures, 128 + signal.
    Unix,
}

/// Which idleness of the CPUs is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleScope {
    /// Of all CPUs together.
    System,
    /// Of each CPU as well.
    PerCpu,
}

/// What ends a run early, and what is run then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// This file appears; it is removed.
    pub file: Option<String>,
    /// So much time has passed.
    pub after: Option<Nanos>,
    /// A command for the shell.
    pub command: Option<String>,
}

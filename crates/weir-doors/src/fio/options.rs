//! The report of a run: flags that are no options of jobs.

use weir_schema::{RunResult, VerifyMethod};
use weir_units::Nanos;

use super::output::{self, TerseVersion};
use super::refuse;
use crate::flags::Flag;
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// The report of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioOptions {
    /// The formats, in the order in which they are written.
    pub formats: Vec<FioFormat>,
    /// The file that gets the report instead of standard output.
    pub output: Option<String>,
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
    /// The layout of terse lines.
    pub terse: TerseVersion,
    /// A full report after each such time of the run.
    pub status_interval: Option<Nanos>,
    /// Which idleness of the CPUs is reported.
    pub idleness: Option<IdleScope>,
    /// Reports at intervals in JSON are documents one after the other, as fio prints them.
    pub compat: bool,
}

impl FioOptions {
    /// The options that these flags amount to.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn of(given: &GivenFlags) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (flag, value) in given.iter() {
            options.take(flag, value)?;
        }
        if options.formats.is_empty() {
            options.formats.push(FioFormat::Normal);
        }
        Ok(options)
    }

    /// Takes a flag.
    pub(super) fn take(&mut self, flag: &Flag, value: &str) -> Result<(), Refusal> {
        match flag.name {
            "section" if value == "global" => {
                return Err(refuse("fio: can't use global as only section"));
            }
            "set" if !value.contains('=') => {
                return Err(refuse(format!(
                    "fio: --set {value}: expected [SECTION:]KEY=VALUE"
                )));
            }
            "crctest" => drop(checksums(value)?),
            "trigger-timeout" => drop(time(flag.name, value)?),
            "output" => self.output = Some(value.to_owned()),
            "output-format" => self.formats = formats(value)?,
            "minimal" => self.formats = vec![FioFormat::Terse],
            "append-terse" => self.append_terse(),
            "terse-version" => {
                let version = TerseVersion::of(value);
                self.terse = version.ok_or_else(|| refuse("fio: bad terse version format"))?;
            }
            "eta" if value == "always" => self.eta = Eta::Always,
            "eta" if value == "never" => self.eta = Eta::Never,
            "eta" => self.eta = Eta::Auto,
            "eta-newline" => self.eta_newline = Some(time(flag.name, value)?),
            "eta-interval" => self.eta_interval = Some(eta_interval(value)?),
            "status-interval" => self.status_interval = Some(status_interval(value)?),
            "idle-prof" if value == "system" => self.idleness = Some(IdleScope::System),
            "idle-prof" if value == "percpu" => self.idleness = Some(IdleScope::PerCpu),
            "compat" => self.compat = true,
            "compat-banner" => self.compat_banner = true,
            "exit" if value == "unix" => self.exit = ExitStyle::Unix,
            _ => {}
        }
        Ok(())
    }

    /// True if programs alone read the report: then there are no banners, and notes and errors
    /// go to standard error.
    pub fn is_for_programs(&self) -> bool {
        !self.formats.contains(&FioFormat::Normal)
    }

    /// The report of a result in every format.
    pub fn document(
        &self,
        result: &RunResult,
        texts: output::FioTextOptions,
        idleness: Option<&output::Idleness>,
    ) -> String {
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

    /// Terse lines before whatever else was asked for.
    fn append_terse(&mut self) {
        if self.formats.is_empty() {
            self.formats.push(FioFormat::Normal);
        }
        self.formats.insert(0, FioFormat::Terse);
        self.formats.dedup();
    }

    /// The settings of the texts of [`super::output`].
    pub fn texts(&self, utc_offset_s: i32) -> output::FioTextOptions {
        output::FioTextOptions {
            compat_banner: self.compat_banner,
            utc_offset_s,
            bins: self.formats.contains(&FioFormat::JsonPlus),
            terse: self.terse,
            one_line: self.status_interval.is_some() && !self.compat,
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

/// A time; seconds where no unit is given.
pub(super) fn time(flag: &str, text: &str) -> Result<Nanos, Refusal> {
    weir_jobfile::duration(text).ok_or_else(|| {
        refuse(format!(
            "fio: bad time `{text}`: write for example 0.5, 500ms or 2m\nfio: failed parsing {flag}"
        ))
    })
}

fn eta_interval(text: &str) -> Result<Nanos, Refusal> {
    const LEAST: Nanos = Nanos(250_000_000);
    let every = time("eta-interval", text)?;
    if every < LEAST {
        return Err(refuse("fio: eta interval time too short (250msec min)"));
    }
    Ok(every)
}

fn status_interval(text: &str) -> Result<Nanos, Refusal> {
    const LEAST: Nanos = Nanos(1_000_000);
    let every = time("status-interval", text)?;
    if every < LEAST {
        return Err(refuse("fio: status interval too small"));
    }
    Ok(every)
}

/// The formats in the order in which fio writes them to one stream.
fn formats(list: &str) -> Result<Vec<FioFormat>, Refusal> {
    let mut formats = Vec::new();
    for word in list.split(',') {
        formats.push(match word.trim() {
            "normal" => FioFormat::Normal,
            "json" => FioFormat::Json,
            "json+" => FioFormat::JsonPlus,
            "terse" | "minimal" | "csv" => FioFormat::Terse,
            _ => {
                return Err(refuse(format!(
                    "fio: invalid output format {word}\nfio: failed parsing output-format"
                )));
            }
        });
    }
    formats.sort_unstable();
    formats.dedup();
    if formats.contains(&FioFormat::JsonPlus) {
        formats.retain(|f| *f != FioFormat::Json);
    }
    Ok(formats)
}

/// The checksums of a list by their names; all of them where there is none.
pub(super) fn checksums(list: &str) -> Result<Vec<VerifyMethod>, Refusal> {
    let all = VerifyMethod::CHECKSUMS;
    if list.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |name: &str| {
        let found = all.into_iter().find(|m| m.name() == name);
        found.ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|m| m.name()).collect();
            let known = known.join("\n");
            refuse(if name == "help" {
                known
            } else {
                format!("fio: unknown hash `{name}`. Available:\n{known}")
            })
        })
    };
    list.split(',').map(|word| find(word.trim())).collect()
}

//! The report of a run: flags that are no options of jobs.

use weir_schema::{RunResult, VerifyMethod};
use weir_units::Nanos;

use super::output::{self, TerseVersion};
use crate::flags::Flag;
use crate::given::GivenFlags;

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
    pub fn of(given: &GivenFlags) -> Self {
        Self {
            formats: formats_of(given),
            output: given.text("output").map(str::to_owned),
            eta: match given.text("eta") {
                Some("always") => Eta::Always,
                Some("never") => Eta::Never,
                _ => Eta::Auto,
            },
            eta_newline: given.parsed("eta-newline", |text| time(text, "0")),
            eta_interval: given.parsed("eta-interval", |text| time(text, "0")),
            compat_banner: given.has("compat-banner"),
            exit: if given.is("exit", "unix") {
                ExitStyle::Unix
            } else {
                ExitStyle::Fio
            },
            terse: given
                .text("terse-version")
                .and_then(TerseVersion::of)
                .unwrap_or_default(),
            status_interval: given.parsed("status-interval", |text| time(text, "0")),
            idleness: match given.text("idle-prof") {
                Some("system") => Some(IdleScope::System),
                Some("percpu") => Some(IdleScope::PerCpu),
                _ => None,
            },
            compat: given.has("compat"),
        }
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

/// A time of at least `least`; seconds where no unit is given.
pub(super) fn time(text: &str, least: &str) -> Result<Nanos, String> {
    let limit = weir_jobfile::duration(least);
    let found = weir_jobfile::duration(text).filter(|time| Some(*time) >= limit);
    found.ok_or_else(|| format!("it takes a time from {least}, as 0.5, 500ms or 2m"))
}

/// The formats that the flags ask for; terse lines may come before whatever else was asked for.
fn formats_of(given: &GivenFlags) -> Vec<FioFormat> {
    let mut all = Vec::new();
    for (flag, value) in given.iter() {
        match flag.name {
            // The reader has checked it.
            "output-format" => all = formats(value).unwrap_or_default(),
            "minimal" => all = vec![FioFormat::Terse],
            "append-terse" if all.is_empty() => all = vec![FioFormat::Terse, FioFormat::Normal],
            "append-terse" => {
                all.insert(0, FioFormat::Terse);
                all.dedup();
            }
            _ => {}
        }
    }
    if all.is_empty() {
        all.push(FioFormat::Normal);
    }
    all
}

/// The formats in the order in which fio writes them to one stream.
pub(super) fn formats(list: &str) -> Result<Vec<FioFormat>, String> {
    let format = |word: &str| match word.trim() {
        "normal" => Ok(FioFormat::Normal),
        "json" => Ok(FioFormat::Json),
        "json+" => Ok(FioFormat::JsonPlus),
        "terse" | "minimal" | "csv" => Ok(FioFormat::Terse),
        _ => Err("it takes any of normal, terse, json, json+, as normal,json".to_owned()),
    };
    let mut formats: Vec<_> = list.split(',').map(format).collect::<Result<_, _>>()?;
    formats.sort_unstable();
    formats.dedup();
    if formats.contains(&FioFormat::JsonPlus) {
        formats.retain(|f| *f != FioFormat::Json);
    }
    Ok(formats)
}

/// The checksums of a list by their names; all of them where there is none.
pub(super) fn checksums(list: &str) -> Result<Vec<VerifyMethod>, String> {
    let all = VerifyMethod::CHECKSUMS;
    if list.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |name: &str| {
        let found = all.into_iter().find(|m| m.name() == name);
        found.ok_or_else(|| format!("it takes any of {}", all.map(VerifyMethod::name).join(", ")))
    };
    list.split(',').map(|word| find(word.trim())).collect()
}

/// fio's words about a value that a flag does not take, where it has some.
pub(super) fn peers_words(flag: &Flag, value: &str) -> Option<String> {
    let (name, known) = (flag.name, flag.choices.join(", "));
    let is_time = weir_jobfile::duration(value).is_some();
    let why = match name {
        "terse-version" => return Some("fio: bad terse version format".to_owned()),
        "set" => return Some(format!("fio: --set {value}: expected [SECTION:]KEY=VALUE")),
        "crctest" => return Some(unknown_hash(value)),
        "eta-interval" if is_time => {
            return Some("fio: eta interval time too short (250msec min)".to_owned());
        }
        "status-interval" if is_time => {
            return Some("fio: status interval too small".to_owned());
        }
        "output-format" => {
            let word = value.split(',').find(|word| formats(word).is_err())?;
            format!("invalid output format {word}")
        }
        "eta-newline" | "eta-interval" | "status-interval" | "trigger-timeout" => {
            format!("bad time `{value}`: write for example 0.5, 500ms or 2m")
        }
        _ if known.is_empty() => return None,
        _ => format!("--{name}={value} is not one of: {known}"),
    };
    Some(format!("fio: {why}\nfio: failed parsing {name}"))
}

fn unknown_hash(list: &str) -> String {
    let known = VerifyMethod::CHECKSUMS.map(VerifyMethod::name).join("\n");
    let mut words = list.split(',').map(str::trim);
    match words.find(|word| checksums(word).is_err()) {
        Some("help") => known,
        // Only lists with such a word are refused.
        word => format!(
            "fio: unknown hash `{}`. Available:\n{known}",
            word.unwrap_or_default()
        ),
    }
}

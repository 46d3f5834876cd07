//! Output of the door from a stored result alone: the peer's text and JSON, and weir's own table.
//!
//! In: a [`RunResult`] of this door, [`BeffOptions`]. Out: text. Figures come from `weir-schema`, so
//! that every rendering shows the same ones.

mod json;
mod number;
#[cfg(test)]
mod sample;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod transfers;

use weir_schema::{
    ExchangeResult, ExchangeWorkload, Job, JobResult, Prediction, RunResult, SizeFigures, State,
    Transfer, Validation, effective_bytes_per_s, exchange_figures, transfer_figures,
};

use self::transfers::TransferFigures;
use super::baseline::Comparison;
use super::{BeffFormat, BeffOptions, first_exchange};

/// Schema of weir's key in the JSON.
pub(super) const SCHEMA: &str = "weir.beff.v1";
/// Name of the benchmark in the JSON.
pub(super) const NAME: &str = "effective bandwidth";

/// Text for standard output; `None` for results of other workloads. The message that nothing was measured
/// goes to standard error alone, unless JSON was asked for.
pub fn stdout(result: &RunResult, options: &BeffOptions) -> Option<String> {
    let view = View::of(result, options)?;
    let nothing = view.measured() == 0 && !view.is_test();
    Some(match options.format {
        BeffFormat::Text | BeffFormat::Table | BeffFormat::Csv | BeffFormat::Markdown
            if nothing =>
        {
            String::new()
        }
        BeffFormat::Text => text::page(&view),
        BeffFormat::Table if view.has_transfers() => text::page(&view),
        BeffFormat::Table => table::page(&view),
        BeffFormat::Csv => table::csv(&view),
        BeffFormat::Markdown => table::markdown(&view),
        BeffFormat::Json => json::page(&view),
    })
}

/// Content of the file of `--dump-json`; `None` for results of other workloads.
pub fn dump(result: &RunResult, options: &BeffOptions) -> Option<String> {
    View::of(result, options).map(|view| json::page(&view))
}

/// A result, with derived data.
struct View<'a> {
    options: &'a BeffOptions,
    result: &'a RunResult,
    job: &'a Job,
    work: &'a ExchangeWorkload,
    done: Option<&'a ExchangeResult>,
    ranks: u32,
    figures: Vec<SizeFigures>,
    effective: Option<f64>,
    /// Transfers that were measured in place of exchanges.
    parts: Vec<TransferFigures>,
    prediction: Option<Prediction>,
    /// The prediction for other numbers of ranks.
    simulated: Option<Prediction>,
    comparison: Option<Comparison>,
}

impl<'a> View<'a> {
    fn of(result: &'a RunResult, options: &'a BeffOptions) -> Option<Self> {
        let (place, job, work) = first_exchange(&result.plan)?;
        let done: Option<&ExchangeResult> = result.jobs().nth(place).and_then(JobResult::exchange);
        let ranks = result.plan.ranks.map_or(1, |r| r.count);
        let figures = done.map_or_else(Vec::new, |d| exchange_figures(d, work.replications));
        let exponents: Vec<u8> = if figures.is_empty() {
            work.sizes.iter().map(|s| s.exponent).collect()
        } else {
            figures.iter().map(|f| f.exponent).collect()
        };
        let part = |transfer: &Transfer| TransferFigures {
            transfer: *transfer,
            figures: done.map_or_else(Vec::new, |d| {
                transfer_figures(d, work.replications, *transfer)
            }),
        };
        let predict = |n: u32| work.model?.predict(&exponents, n, &figures);
        Some(Self {
            options,
            result,
            job,
            work,
            done,
            ranks,
            // The mean over other sizes than those asked for would be another figure.
            effective: effective_bytes_per_s(&figures).filter(|_| result.complete),
            parts: work.transfers.iter().map(part).collect(),
            prediction: predict(ranks),
            simulated: options.simulate.and_then(predict),
            comparison: options.baseline.as_ref().map(|b| b.beside(&figures)),
            figures,
        })
    }

    /// The configuration alone was asked for.
    fn is_test(&self) -> bool {
        let mut jobs = self.result.jobs();
        jobs.all(|j| j.state == State::NotStarted)
    }

    /// Sizes that were measured, of each kind of transfer.
    fn measured(&self) -> usize {
        self.done.map_or(0, |done| done.sizes.len())
    }

    /// Sizes measured, of all, where a failure or a signal ended the run early.
    fn cut(&self) -> Option<String> {
        let (done, all) = (self.measured(), self.work.measurements());
        let cut = !self.result.complete || self.result.failed_jobs() > 0;
        cut.then(|| format!("{done} of {all} sizes were measured"))
    }

    /// True if all data arrived unchanged.
    fn is_right(&self) -> bool {
        self.done
            .is_some_and(|d| !d.sizes.is_empty() && d.wrong_bytes() == 0 && d.lost() == 0)
    }

    /// Value of an argument that the plan was made from.
    fn word(&self, key: &str) -> Option<&'a str> {
        let word = self.job.words.iter().find(|w| w.key == key)?;
        Some(word.value.as_deref().unwrap_or_default())
    }

    /// True if transfers replace the exchanges.
    fn has_transfers(&self) -> bool {
        !self.work.transfers.is_empty()
    }

    /// True if some of the data that arrives is checked.
    fn is_checked(&self) -> bool {
        let launches = |t: &Transfer| *t == Transfer::KernelLaunch;
        let idle = self.has_transfers() && self.work.transfers.iter().all(launches);
        self.work.validation != Validation::None && !idle
    }

    fn is_valid(&self) -> bool {
        self.is_checked() && !self.is_test() && self.cut().is_none() && self.is_right()
    }

    /// Messages lost, where the transport can lose any.
    fn lost(&self) -> Option<u64> {
        let done = self.done?;
        let mut ranks = done.sizes.iter().flat_map(|s| &s.ranks);
        ranks.any(|r| r.lost.is_some()).then(|| done.lost())
    }

    /// Name of the device or host that exchanged.
    fn device(&self) -> &str {
        let mut ranks = self.done.iter().flat_map(|d| &d.ranks);
        if let Some(name) = ranks.find_map(|r| r.device_name.as_deref()) {
            return name;
        }
        let cpu = self.result.host.cpu_model.as_deref();
        cpu.unwrap_or("unknown")
    }

    /// Platform of the device, where it is one.
    fn platform(&self) -> Option<&str> {
        let mut ranks = self.done.iter().flat_map(|d| &d.ranks);
        ranks.find_map(|r| r.platform_name.as_deref())
    }

    /// Version and subversion of MPI; zeros without it.
    fn mpi(&self) -> (u32, u32) {
        let facts = self.done.and_then(|d| d.mpi.as_ref());
        facts.map_or((0, 0), |m| (m.version, m.subversion))
    }

    /// `Wed Dec 14 08:39:42 UTC 2022`.
    fn date(unix_s: u64) -> String {
        let line = crate::date::ctime(i64::try_from(unix_s).unwrap_or(i64::MAX));
        let (head, year) = line.rsplit_once(' ').unwrap_or((&line, ""));
        let day = head.replacen("  ", " 0", 1);
        format!("{day} UTC {year}")
    }

    fn built(&self) -> String {
        let program = self.result.program.as_ref();
        program
            .and_then(|p| p.built_unix_s)
            .map_or_else(|| "unknown".to_owned(), Self::date)
    }

    fn commit(&self) -> &str {
        let program = self.result.program.as_ref();
        program
            .and_then(|p| p.commit.as_deref())
            .unwrap_or("unknown")
    }

    /// Names and values of the settings, sorted by name.
    fn settings(&self) -> Vec<(&'static str, Value)> {
        let text = |key: &str| self.word(key).unwrap_or_default().to_owned();
        let exponents = || self.work.sizes.iter().map(|s| s.exponent);
        let (smallest, largest) = (exponents().min(), exponents().max());
        let mut out = vec![
            (
                "Communication Type",
                Value::Text(super::comm::spelling_of(self.job)),
            ),
            ("Kernel File", Value::Text(text("file"))),
            (
                "Kernel Replications",
                Value::Number(self.work.replications.into()),
            ),
            (
                "Loop Length",
                Value::Text(format!("{} - {}", text("lower"), text("upper"))),
            ),
            ("MPI Ranks", Value::Number(self.ranks.into())),
        ];
        if let Some(payload) = self.job.engine.number("payload_exponent") {
            let payload = 64u64 << payload.clamp(0, 32);
            out.push(("Max. UDP Payload", Value::Text(format!("{payload} Bytes"))));
        }
        out.extend([
            (
                "Message Sizes",
                Value::Text(format!(
                    "2^{} - 2^{} Bytes",
                    smallest.unwrap_or_default(),
                    largest.unwrap_or_default()
                )),
            ),
            ("Repetitions", Value::Number(self.work.repetitions.into())),
            ("Test Mode", Value::Switch(self.word("test").is_some())),
        ]);
        out
    }
}

/// The value of a setting.
enum Value {
    Text(String),
    Number(u64),
    Switch(bool),
}

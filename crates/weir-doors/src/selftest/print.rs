//! A result in the voice of `self_test`: its text, and the block of each pair of sizes while the run lasts.
//!
//! In: a result, arguments. Out: text, the file of samples, the exit code. Not here: the blocks themselves
//! (`output`), what is said on standard error (`messages`).

use weir_schema::{Plan, RunResult};

use super::exit::{exit_code, in_style_of, is_cart};
use super::messages::messages;
use super::{SelfTestFormat, SelfTestOptions, output, samples};
use crate::door::{Printed, PrintedFile};
use crate::given::Given;
use crate::house::{self, RunFormat, RunOptions, calls_peer};
use crate::machine::Machine;
use crate::observer::{Observer, Snapshot};

/// Prints a result.
pub(super) fn print(result: &RunResult, given: &Given, machine: &dyn Machine) -> Printed {
    let options = SelfTestOptions::read(given);
    let house = RunOptions::read(given);
    let is_json = options.format == SelfTestFormat::Json;
    let own = given.house.has("format").then_some(house.format);
    let report = own.or(is_json.then_some(RunFormat::Json));
    let is_replay = given.has("replay");
    let mut out = String::new();
    if report.is_none() {
        if !is_replay {
            out += &output::head(&result.plan, &options);
        }
        out += &output::text(result, &options);
    }
    let code = if calls_peer(given) {
        exit_code(result, options.goal.as_ref(), &house.strict)
    } else {
        house::exit_code(result, &house.strict)
    };
    let mut err = String::new();
    if !is_replay && !given.is_again {
        err += &messages(result, report.is_none() && output::has_blocks(&options));
        err.extend(house.strict.complaint(result.warnings.iter()));
    }
    let samples = given.text("samples").map(|path| PrintedFile {
        path: path.to_owned(),
        text: samples::print(result, code),
        appends: false,
    });
    Printed {
        out,
        err,
        report,
        code: in_style_of(code, Some(result), is_cart(given, machine)),
        files: samples.into_iter().collect(),
    }
}

/// The blocks of a run while it lasts.
pub(super) fn observer(given: &Given, _: &dyn Machine) -> Box<dyn Observer> {
    let options = SelfTestOptions::read(given);
    let is_text =
        |options: &SelfTestOptions| output::has_blocks(options) && !given.house.has("format");
    Box::new(Blocks {
        options: Some(options).filter(is_text),
        groups: Vec::new(),
        shown: 0,
    })
}

/// Prints the block of each group when it has ended.
#[derive(Debug)]
struct Blocks {
    /// Options of the text, where it has blocks.
    options: Option<SelfTestOptions>,
    /// The group of each job.
    groups: Vec<usize>,
    /// Groups whose blocks are printed.
    shown: usize,
}

impl Observer for Blocks {
    fn begin(&mut self, plan: &Plan) -> String {
        self.groups = plan.jobs().map(|(group, _)| group).collect();
        let options = self.options.as_ref();
        options.map_or_else(String::new, |options| output::head(plan, options))
    }

    fn look(&mut self, snapshot: &Snapshot<'_>) -> String {
        let first = self.shown;
        let jobs = (snapshot.jobs)();
        let mut open = self.groups.iter().zip(&jobs);
        let open = open.find(|(_, job)| !job.has_ended);
        let all = self.groups.last().map_or(0, |last| last + 1);
        let whole = open.map_or(all, |(group, _)| *group);
        let Some(options) = self.options.as_ref().filter(|_| whole > first) else {
            return String::new();
        };
        self.shown = whole;
        let result = (snapshot.result)();
        (first..whole)
            .map(|group| output::block(&result, group, options))
            .collect()
    }

    fn rest(&mut self, result: &RunResult, _: &dyn Machine, mut whole: Printed) -> Printed {
        let Some(options) = &self.options else {
            return whole;
        };
        let rest = self.shown..result.groups.len();
        let rest = rest.map(|group| output::block(result, group, options));
        whole.out = rest.collect::<String>() + &output::ending(result, options);
        whole
    }
}

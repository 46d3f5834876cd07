//! Text of a result as `vos_perf` and `daos_perf` have it: the table of settings, the lines and the block of each test.
//!
//! In: a result, arguments. Out: text, the exit code. Spec: object store performance, 3. Not here: weir's own
//! report.

use weir_schema::{
    ErrorCode, Job, ObjectAction, ObjectClass, ObjectDurability, ObjectEngine, ObjectFailure,
    ObjectFigures, ObjectKey, ObjectLayout, ObjectOutcome, ObjectRank, ObjectTest, ObjectValue,
    ObjectWorkload, RunResult, Workload, rpc_error_code,
};

use super::block::{Block, ratio};
use super::command_string::{self, Step};
use super::{plan, stores};
use crate::door::Printed;
use crate::given::Given;
use crate::house::{self, RunOptions};

/// The text of codes that a store has.
const CODE_TEXTS: &[(&str, &str)] = &[
    ("DER_NO_PERM", "Operation not permitted"),
    ("DER_INVAL", "Invalid parameters"),
    ("DER_EXIST", "Entity already exists"),
    ("DER_NONEXIST", "The specified entity does not exist"),
    ("DER_NOSPACE", "No space on storage target"),
    ("DER_NOMEM", "Out of memory"),
    ("DER_BUSY", "Device or resource busy"),
    ("DER_MISMATCH", "Data mismatch"),
    ("DER_IO", "Generic I/O error"),
    ("DER_CSUM", "Checksum error"),
];

/// Form of the peer's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Of the tuning guide.
    Seed,
    /// Of version 2.9.
    V29,
}

/// Prints a result.
pub(super) fn print(result: &RunResult, given: &Given) -> Printed {
    let mut printed = Printed {
        code: house::exit_code(result, &RunOptions::read(given).strict),
        ..Printed::default()
    };
    let job = result.plan.jobs().map(|(_, job)| job).next();
    let done = result.jobs().next();
    let (Some(work), Some(done)) = (job.and_then(work_of), done) else {
        return printed;
    };
    // A rank whose pool was not opened has none.
    let is_open = |outcome: &&ObjectOutcome| {
        let first = outcome.ranks.first();
        first.is_some_and(|rank| !rank.pool.is_empty())
    };
    match done.object_store().filter(is_open) {
        Some(outcome) => {
            let mut text = Text::new(work, outcome, given);
            text.is_cut = result.ended_by.is_some() && !outcome.has_failed();
            (printed.out, printed.err) = text.all(given);
            let between = done.failure.as_ref().filter(|_| !outcome.has_failed());
            if let Some(failure) = between {
                push!(printed.err, "{}\n", failure.message);
            }
        }
        None => {
            if let Some(failure) = &done.failure {
                let rc = failure.errno.map_or(0, |errno| -errno);
                let why = &failure.message;
                push!(printed.err, "Failed to initialize step=1, rc={rc}: {why}\n");
            }
        }
    }
    if result.ended_by.is_some() {
        printed.err.push_str("Interrupted: not all was measured\n");
    }
    printed
}

fn work_of(job: &Job) -> Option<&ObjectWorkload> {
    match &job.workload {
        Workload::ObjectStore(work) => Some(work),
        _ => None,
    }
}

/// The two lines about a letter that no test has.
pub(super) fn unknown(out: &mut String, err: &mut String, code: char) {
    push!(err, "unknown test code {code}\n");
    push!(out, "Unknown test code={code}\n");
}

/// Text of one outcome.
struct Text<'a> {
    work: &'a ObjectWorkload,
    outcome: &'a ObjectOutcome,
    style: Style,
    truncates: bool,
    /// The last test was interrupted.
    is_cut: bool,
    out: String,
    err: String,
}

impl<'a> Text<'a> {
    fn new(work: &'a ObjectWorkload, outcome: &'a ObjectOutcome, given: &Given) -> Self {
        Self {
            work,
            outcome,
            style: match given.text("output-style") {
                Some("2.9") => Style::V29,
                _ => Style::Seed,
            },
            truncates: given.has("compat-truncate"),
            is_cut: false,
            out: String::new(),
            err: String::new(),
        }
    }

    /// Standard output and standard error.
    fn all(mut self, given: &Given) -> (String, String) {
        let Some(first) = self.outcome.ranks.first() else {
            return (self.out, self.err);
        };
        self.out = table(self.work, first, self.outcome.ranks.len(), self.style);
        let is_chosen = self.work.durability.is_none() && stores::is_embedded(given);
        if is_chosen && first.durability == ObjectDurability::Process {
            self.err
                .push_str("durability=process (not a DAX file system)\n");
        }
        let steps = plan::commands(given).and_then(|commands| {
            command_string::parse(commands, stores::tests(given), &self.work.layout).ok()
        });
        let mut number = 0;
        for step in steps.unwrap_or_default() {
            match step {
                Step::Unknown(code) => unknown(&mut self.out, &mut self.err, code),
                Step::Idle(test) => {
                    self.begin(&test);
                    if test.action == ObjectAction::Verify {
                        self.out.push_str("Verification is unsupported\n");
                    }
                    self.completed(test.action);
                }
                Step::Lacking(test, why) => {
                    self.begin(&test);
                    push!(self.err, "{why}\n");
                    push!(self.out, "{} failed\n", command_string::name(test.action));
                }
                Step::Test(test) => {
                    // A test that failed ends the run.
                    let Some(figures) = self.outcome.figures(number) else {
                        break;
                    };
                    let is_cut = self.is_cut && self.outcome.figures(number + 1).is_none();
                    self.test(&test, (number, is_cut), &figures);
                    number += 1;
                    if is_cut {
                        break;
                    }
                }
            }
        }
        (self.out, self.err)
    }

    fn begin(&mut self, test: &ObjectTest) {
        let name = command_string::name(test.action);
        // The question stands in its place.
        if test.prompt.is_none() {
            push!(self.out, "Running test={name}\n");
        }
        push!(
            self.out,
            "Running {name} test (iteration={}",
            test.iterations
        );
        let parts = [
            ("objects", test.objects),
            ("dkeys", test.dkeys),
            ("akeys", test.akeys),
            ("recx", test.strides),
        ];
        for (what, chosen) in parts {
            if let Some(chosen) = chosen {
                push!(self.out, ", {what}={chosen}");
            }
        }
        self.out.push_str(")\n");
    }

    fn completed(&mut self, action: ObjectAction) {
        push!(
            self.out,
            "Completed test={}\n",
            command_string::name(action)
        );
    }

    fn test(
        &mut self,
        test: &ObjectTest,
        (number, is_cut): (usize, bool),
        figures: &ObjectFigures,
    ) {
        let name = command_string::name(test.action);
        self.begin(test);
        let runs = self.outcome.of_test(number);
        let mut runs = runs.iter().flatten();
        for run in runs.clone() {
            for keys in &run.keys {
                push!(self.out, "{:<7}", capital(test.action.name()));
                push_key(&mut self.out, "dkey", keys.dkey.as_ref());
                push_key(&mut self.out, " akey", keys.akey.as_ref());
                self.out.push('\n');
            }
            for count in &run.listed {
                push!(self.out, "returned {count} oids\n");
            }
            if !run.listed.is_empty() {
                let all: u64 = run.listed.iter().map(|count| u64::from(*count)).sum();
                push!(self.out, "listed {all} objects\n");
            }
        }
        if let Some(failure) = runs.find_map(|run| run.failure.as_ref()) {
            self.failure(test, failure, figures);
            push!(self.out, "{name} failed\n");
            return;
        }
        if test.print {
            self.block(test, figures, is_cut);
            let found = self.outcome.of_test(number);
            let found = found.iter().flatten();
            self.further(test, figures, found.copied());
        }
        if is_cut {
            push!(self.out, "{name} interrupted\n");
        } else {
            self.completed(test.action);
        }
    }

    fn block(&mut self, test: &ObjectTest, figures: &ObjectFigures, is_cut: bool) {
        let name = command_string::name(test.action);
        let moves =
            test.action.moves_values() || matches!(test.action, ObjectAction::Iterate { .. });
        let is_moved = !matches!(test.action, ObjectAction::Iterate { .. });
        let listing = test.action == ObjectAction::ListObjects;
        let bytes = (moves || listing).then_some(if is_moved { figures.bytes } else { 0 });
        let exact = Block {
            name: name.to_owned(),
            is_cut,
            operations: if moves {
                figures.counted()
            } else {
                figures.operations
            },
            bytes,
            duration: figures.duration(),
            latency_us: figures.seconds_per_operation().map_or(0.0, |s| s * 1e6),
            ranks: &figures.busy,
        };
        self.out.push_str(&exact.text(self.style));
        if self.truncates {
            let longest = figures.truncated.iter().max().copied();
            let longest = longest.unwrap_or_default();
            let one_rank = figures.busy.len() == 1;
            let cut = Block {
                name: format!("{name} (truncated)"),
                duration: if one_rank { longest } else { exact.duration },
                latency_us: ratio(longest.0, figures.operations) / 1e3,
                ranks: &figures.truncated,
                ..exact
            };
            self.out.push_str(&cut.text(self.style));
        }
    }

    /// weir's lines below a block: what the peer's figures leave out.
    fn further<'r>(
        &mut self,
        test: &ObjectTest,
        figures: &ObjectFigures,
        runs: impl Iterator<Item = &'r weir_schema::ObjectRun>,
    ) {
        let out = &mut self.out;
        if test.action == ObjectAction::Query {
            let found = runs.fold((None, None), |(dkey, end), run| {
                (run.greatest_dkey.max(dkey), run.extent_end.max(end))
            });
            push!(
                out,
                "\t+ found     : {} of {}",
                figures.hits,
                figures.operations
            );
            if let (Some(dkey), Some(end)) = found {
                push!(out, ", greatest dkey {dkey}, last extent ends at {end}");
            }
            out.push('\n');
        } else if figures.misses > 0 {
            let share = ratio(figures.misses, figures.hits + figures.misses) * 100.0;
            push!(out, "\t+ missed    : {} ({share:.1} %)\n", figures.misses);
        }
        let frees = matches!(
            test.action,
            ObjectAction::Aggregate { .. }
                | ObjectAction::Discard { .. }
                | ObjectAction::Collect { .. }
        );
        if frees {
            let (versions, bytes) = (figures.freed_versions, figures.freed_bytes);
            push!(out, "\t+ freed     : {versions} versions, {bytes} bytes\n");
        }
    }

    fn failure(&mut self, test: &ObjectTest, failure: &ObjectFailure, figures: &ObjectFigures) {
        let err = &mut self.err;
        let number = number_of(&failure.code);
        let kind = capital(test.action.name());
        push!(err, "{kind} failed. rc={number}, epoch={}\n", failure.epoch);
        push!(err, "first failure: object {}", failure.object);
        push_key(err, " dkey", failure.keys.dkey.as_ref());
        push_key(err, " akey", failure.keys.akey.as_ref());
        let more = if failure.text.is_empty() { "" } else { ": " };
        push!(err, " epoch {}{more}{}\n", failure.epoch, failure.text);
        for (code, count) in &figures.errors {
            push!(err, "{count} failed with {code}\n");
        }
        let code = failure.code.to_string();
        let text = CODE_TEXTS.iter().find(|(name, _)| *name == code);
        let text = text.map_or("Unknown error", |(_, text)| text);
        push!(err, "Failed: {code}({number}): '{text}'\n");
    }
}

/// The number of a code, below 0.
fn number_of(code: &ErrorCode) -> i32 {
    match code {
        ErrorCode::Errno(errno) => -errno.abs(),
        ErrorCode::Named(name) => rpc_error_code(name).unwrap_or(-1),
    }
}

/// ` dkey=[7] 'blade-1'`.
fn push_key(out: &mut String, what: &str, key: Option<&ObjectKey>) {
    match key {
        Some(ObjectKey::Name(name)) => push!(out, "{what}=[{}] '{name}'", name.len()),
        Some(ObjectKey::Integer(number)) => push!(out, "{what}=[8] 'uint64:{number}'"),
        None => {}
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The table before the first test.
#[expect(clippy::too_many_lines, reason = "line by line")]
fn table(work: &ObjectWorkload, first: &ObjectRank, ranks: usize, style: Style) -> String {
    let ObjectLayout {
        objects,
        dkeys,
        akeys,
        strides,
        stride_bytes,
        value,
        integer_dkeys,
        constant_akey,
        flat: _,
    } = &work.layout;
    let is_embedded = ObjectEngine::EMBEDDED.contains(&work.engine);
    let storage = match (style, work.thread_per_operation) {
        _ if !is_embedded => stack(work),
        (Style::Seed, false) => "VOS (storage only)".to_owned(),
        (Style::Seed, true) => "VOS (storage only running in ABT ULT)".to_owned(),
        (Style::V29, _) => "VOS storage".to_owned(),
    };
    let stride = match style {
        Style::Seed => "stride size   ",
        Style::V29 => "value size    ",
    };
    let scm = work.pool_bytes.0 >> 20;
    let nvme = work.block_tier_bytes.unwrap_or_default().0 >> 20;
    let credits = match work.in_flight {
        0 => -1,
        credits => i64::from(credits),
    };
    let dkey_form = if *integer_dkeys { "int" } else { "buf" };
    let is_constant = *constant_akey && is_embedded;
    let constant = if is_constant { " (const)" } else { "" };
    let value = match value {
        ObjectValue::Single => "single",
        ObjectValue::Array { .. } => "array",
    };
    let copies = if work.zero_copy { "yes" } else { "no" };
    let file = first
        .file
        .clone()
        .unwrap_or_else(|| work.pool_file(first.rank));
    let pool = &first.pool;
    let mut out = format!(
        "Test :\n\t{storage}\n\
         Pool :\n\t{pool}\n\
         Parameters :\n\
         \tpool size     : SCM: {scm} MB, NVMe: {nvme} MB\n\
         \tcredits       : {credits} (sync I/O for -ve)\n\
         \tobj_per_cont  : {objects} x {ranks} (procs)\n\
         \tdkey_per_obj  : {dkeys} ({dkey_form})\n\
         \takey_per_dkey : {akeys}{constant}\n\
         \trecx_per_akey : {strides}\n\
         \tvalue type    : {value}\n\
         \t{stride}: {}\n",
        stride_bytes.0
    );
    if is_embedded {
        push!(
            out,
            "\tzero copy     : {copies}\n\tVOS file      : {file}\n"
        );
    }
    out
}

/// The line of a store over a network, by the class of its objects.
fn stack(work: &ObjectWorkload) -> String {
    let class = work.class.unwrap_or(ObjectClass::Large);
    let name = class.name();
    let is_echo = work.engine == ObjectEngine::Echo;
    match class {
        _ if is_echo => format!("ECHO {name} (network only, non-replica)"),
        ObjectClass::Tiny | ObjectClass::Large => format!("DAOS {name} (full stack, non-replica)"),
        ObjectClass::R2s => format!("DAOS {name} (full stack, 2 replica)"),
        ObjectClass::R3s => format!("DAOS {name} (full stack, 3 replica)"),
        ObjectClass::R4s => format!("DAOS {name} (full stack, 4 replics)"),
        ObjectClass::Ec2p1 => "DAOS OC_EC_2P1G1 (full stack 2+1 EC)".to_owned(),
        ObjectClass::Ec2p2 => "DAOS OC_EC_2P2G1 (full stack 2+2 EC)".to_owned(),
        ObjectClass::Ec4p2 => "DAOS OC_EC_4P2G1 (full stack 4+2 EC)".to_owned(),
        ObjectClass::Ec8p2 => "DAOS OC_EC_8P2G1 (full stack 8+2 EC)".to_owned(),
    }
}

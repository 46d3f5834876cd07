//! `weir kio`: threads that keep a block device busy.
//!
//! In: the words after `kio`. Out: the exit code. Not here: what the words mean (`weir-doors`), the
//! module's own verbs ([`module`], [`needs`]).

mod module;
mod needs;

use std::fmt::Write as _;
use std::path::Path;

use weir_doors::house::{RunFormat, RunOptions, Strict, exit_code};
use weir_doors::kio::{
    Action, KioEnvironment, KioFormat, KioOptions, KioRun, MODPROBE, TargetFacts, deeds,
    output as kio_output, read, read_options,
};
use weir_doors::request::NamedFile;
use weir_doors::{Printed, Refusal, USAGE};
use weir_schema::{RunResult, TargetsPerRank};
use weir_sys::Tree;
use weir_sys::device::{DirectIo, PathKind, path_facts, signature};
use weir_sys::guard::{Overrides, check_write};

use crate::history::Keep;
use crate::measure::{self, MeasureRequest, Silent};
use crate::progress::{ProgressMode, ProgressObserver};
use crate::rows::{self, Unfit};
use crate::runners::first_operations;
use crate::{Outcome, compare, fio, house_report, output, printed, repeat, session, signals};

/// The least unit of addressing.
const SECTOR: u64 = 512;
/// The longest configuration that is read.
const LONGEST_CONFIG: u64 = 4 << 20;

/// The words after `kio`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let facts = module::facts();
    let environment = KioEnvironment {
        variable: &std::env::var("WEIR_KIO_DEVICE").ok(),
        module: &facts,
        modprobe: &std::fs::read_to_string(MODPROBE).ok(),
        target: &target,
        holds: &held_data,
        file: &|path| output::read_text(path, LONGEST_CONFIG),
    };
    match read(words, &environment)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Generate { path, text, told } => {
            output::write_file(&path, text).map_err(|why| Refusal::new(USAGE, why))?;
            Ok(printed(&told))
        }
        Action::Run(run) if run.dry_run => dry_run(&run),
        Action::Run(run) => measure(*run),
        Action::Repeat { run, repeat, notes } => {
            print_notes(&notes);
            repeat::run(&run, repeat, &[], &|_| ())
        }
        Action::Compare(asked) => compare::in_rounds(&asked),
        Action::Status => Ok(module::status(&facts)),
        Action::Devices => Ok(module::devices()),
        Action::Doctor => Ok(needs::doctor(&facts)),
        Action::Build(kernel) => module::build(kernel.as_deref()),
        Action::Load(device) => module::load(device.as_deref(), &facts),
        Action::Unload => module::unload(),
    }
}

/// What a device seems to hold. One in use is refused before the run with the name of who uses it,
/// which says more.
fn held_data(path: &str) -> Option<&'static str> {
    let path = Path::new(path);
    let is_free = check_write(&Tree::real(), path, Overrides::default()).is_ok();
    is_free.then(|| signature(path)).flatten()
}

/// What a path names, for the door.
fn target(path: &str) -> Result<TargetFacts, String> {
    let facts = path_facts(&Tree::real(), Path::new(path)).map_err(|e| match e {
        weir_sys::SysError::Path { source, .. } => source.to_string(),
        other => other.to_string(),
    })?;
    let is_device = match facts.kind {
        PathKind::Block => true,
        PathKind::Regular => false,
        PathKind::Directory => return Err("it is a directory: name a file in it".to_owned()),
        _ => return Err("it is neither a block device nor a file".to_owned()),
    };
    let block = facts.block.as_ref();
    let of_device = block.filter(|_| is_device);
    let is_direct = !matches!(facts.direct_io, Some(DirectIo::Unsupported));
    let unit = block.and_then(|block| block.logical_block);
    Ok(TargetFacts {
        is_device,
        bytes: facts.size.map_or(0, |size| size.0),
        logical_block: unit.filter(|_| is_direct).map_or(SECTOR, |unit| unit.0),
        has_polling: block.and_then(|block| block.has_polling),
        is_direct,
        is_read_only: of_device.and_then(|block| block.is_read_only) == Some(true),
        is_zoned: of_device
            .and_then(|block| block.zoned.as_deref())
            .is_some_and(|zoned| zoned == "host-managed"),
        node: block.and_then(|block| block.numa_node),
    })
}

/// What would be done, where nothing stands against it.
fn dry_run(run: &KioRun) -> Outcome {
    check_files(run)?;
    print_notes(&run.notes);
    session::check(&run.plan, &Silent)?;
    let deeds = deeds(&run.plan).join("\n");
    Ok(printed(&format!(
        "{deeds}\n{}",
        &kio_output::planned(&run.plan)
    )))
}

fn print_notes(notes: &[String]) {
    for note in notes {
        output::error(&format!("note: {note}\n"));
    }
}

fn measure(mut run: KioRun) -> Outcome {
    run.options.utc_offset_s = fio::utc_offset_s().into();
    let run = &run;
    measure::measure(&MeasureRequest {
        plan: &|| {
            check_files(run)?;
            print_notes(&run.notes);
            Ok(run.plan.clone())
        },
        ranks: None,
        targets: TargetsPerRank::Own,
        timeout: None,
        store: run.store.as_deref(),
        keep: Keep::Always(run.history.as_deref()),
        other_files: &other_files(run),
        warnings: &[],
        observer: &|plan| Box::new(ProgressObserver::new(ProgressMode::of_terminal(), plan)),
        report: &|result| Ok(report(result, run)),
    })
}

/// What is written besides the result.
fn other_files(run: &KioRun) -> Vec<NamedFile> {
    let files = [
        ("where --output-csv goes", &run.csv),
        ("where --output-yaml goes", &run.yaml),
        ("where --output goes", &run.output),
    ];
    let named = files
        .into_iter()
        .filter_map(|(what, file)| Some(NamedFile::written(file.as_ref()?, what)));
    named.collect()
}

/// Finds out before the run whether everything can be written.
fn check_files(run: &KioRun) -> Result<(), Refusal> {
    let files = other_files(run);
    for file in &files {
        output::check_writable(&file.path).map_err(|why| Refusal::new(USAGE, why))?;
    }
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    crate::written_files::refuse_targets(&run.plan, &paths)?;
    let Some(path) = &run.csv else {
        return Ok(());
    };
    let head = kio_output::head();
    let why = match rows::check_rows(path, &head) {
        Ok(()) => return Ok(()),
        Err(Unfit::OtherHead(found)) => unlike(&head, &found),
        Err(Unfit::OpenEnd) => {
            "its last row has no end, and the next one would become a part of it\n  \
             help: end that row with a line break, or name another file"
                .to_owned()
        }
        Err(Unfit::Io(error)) => error.to_string(),
    };
    let message = format!("error: --output-csv {path}: {why}\n");
    // As kio.py ends there.
    Err(Refusal::new(1, message))
}

/// In what a head differs, as the older program tells it. Columns that are the same end otherwise.
fn unlike(head: &str, found: &str) -> String {
    let columns = |head: &str| {
        let columns = head.trim_end().split(',');
        columns.map(|c| format!("'{c}'")).collect::<Vec<_>>()
    };
    let (own, other) = (columns(head), columns(found));
    if own == other {
        return "its lines end with LF, and those of these rows with CR LF\n  help: name another file, or \
                convert this one (`unix2dos`)"
            .to_owned();
    }
    format!(
        "its columns are others\ncolumns:  [{}]\nexisting: [{}]\n  help: name another file",
        own.join(", "),
        other.join(", ")
    )
}

/// Writes and prints; the exit code.
fn report(result: &RunResult, run: &KioRun) -> u8 {
    signals::release();
    let options = &run.options;
    let mut good = true;
    let mut keep = |written: Result<(), String>| {
        if let Err(why) = written {
            output::error(&why);
            good = false;
        }
    };
    // A run that was ended before its first point has nothing to add or to replace.
    let has_begun = kio_output::has_begun(result);
    if let Some(path) = run.csv.as_ref().filter(|_| has_begun) {
        keep(rows::append_rows(path, &kio_output::rows(result, options)));
    }
    if let Some(path) = run.yaml.as_ref().filter(|_| has_begun) {
        keep(output::write_file(path, kio_output::yaml(result, options)));
    }
    let text = traced(result, run.trace) + &text_of(result, options, run.output.is_none());
    match &run.output {
        Some(path) => keep(output::write_file(path, text)),
        None => good &= output::print(&text),
    }
    if options.format != KioFormat::Table || run.output.is_some() {
        session::tell_failures(result);
        for undone in kio_output::left_undone(result) {
            output::error(&format!("warning: INCOMPLETE: {undone}\n"));
        }
    }
    let code = exit_code(result, &Strict::No);
    if good { code } else { code.max(1) }
}

/// A line for each of the first operations of each thread.
fn traced(result: &RunResult, count: u32) -> String {
    let mut out = String::new();
    if count == 0 {
        return out;
    }
    let jobs = result.plan.jobs().zip(result.jobs());
    for (thread, ((_, job), done)) in jobs.enumerate() {
        for worker in done.workers() {
            for (kind, offset) in first_operations(job, worker.number, count) {
                let _ = writeln!(out, "trace {thread} {} {offset}", kind.name());
            }
        }
    }
    out
}

fn text_of(result: &RunResult, options: &KioOptions, on_stdout: bool) -> String {
    let of_house = |format| {
        let house = RunOptions::usual();
        house_report::text_of(result, format, &house, on_stdout)
    };
    match (kio_output::text(result, options), options.format) {
        (Some(text), _) => text,
        (None, KioFormat::Json) => of_house(RunFormat::Json),
        (None, _) => {
            let line = kio_output::engine_line(&result.plan);
            format!("{line}\n{}", of_house(RunFormat::Text))
        }
    }
}

/// What is printed of a stored result.
pub(crate) fn printed_again(result: &RunResult, words: &[String]) -> Result<Printed, Refusal> {
    let mut options = read_options(words)?;
    options.utc_offset_s = fio::utc_offset_s().into();
    Ok(Printed {
        out: text_of(result, &options, true),
        ..Printed::default()
    })
}

//! Plans from what a command line names: job files, a stored plan, the arguments themselves.
//!
//! In: a [`Run`]. Out: its plan, and the files that it names. Not here: compiling job files
//! (`weir-jobfile`), checking files (`written_files`).

use weir_doors::house::{Input, Run};
use weir_doors::request::NamedFile;
use weir_doors::run::check_stored;
use weir_doors::{Machine as _, Refusal, USAGE};
use weir_jobfile::{CompileRequest, Diagnostic};
use weir_schema::{Plan, SchemaError};

use crate::house_report::output_file;
use crate::machine::ThisMachine;
use crate::{output, targets};

/// The part of a stored result.
pub(crate) const STORE: &str = "where the result goes (--store-result)";

/// Files that the house reads and writes.
pub(crate) fn other_files(run: &Run) -> Vec<NamedFile> {
    let read = inputs(&run.input).into_iter();
    let read = read.map(|path| NamedFile::read(path, "what the plan is made from"));
    let written = run.options.outputs.iter();
    let written = written.map(|file| output_file(file, &run.options));
    let metrics = run.options.web.metrics_file.iter();
    let metrics =
        metrics.map(|path| NamedFile::written(path, "where the metrics go (--metrics-file)"));
    let store = run.store.iter();
    let store = store.map(|path| NamedFile::written(path, STORE));
    read.chain(written).chain(metrics).chain(store).collect()
}

/// The files that a plan is made from.
fn inputs(input: &Input) -> Vec<&str> {
    match input {
        Input::Made(_) | Input::Targets { .. } => Vec::new(),
        Input::Plan { path, .. } => vec![path],
        Input::Jobs(request) => request.files().collect(),
    }
}

/// The plan that the arguments ask for.
pub(crate) fn plan_to_run(run: &Run, input: &Input) -> Result<Plan, Refusal> {
    let mut plan = plan_of(input)?;
    run.adjust(&mut plan)?;
    Ok(plan)
}

fn plan_of(input: &Input) -> Result<Plan, Refusal> {
    match input {
        Input::Made(plan) => Ok(plan.as_ref().clone()),
        Input::Plan { path, .. } => stored_plan(path),
        Input::Jobs(request) => compiled(request),
        Input::Targets {
            jobs,
            targets,
            destroyed,
        } => {
            let mut plan = compiled(jobs)?;
            targets::guard(&mut plan, targets, destroyed)?;
            Ok(plan)
        }
    }
}

fn compiled(request: &CompileRequest) -> Result<Plan, Refusal> {
    let compiled = ThisMachine::new().compile(request);
    let compiled = compiled.map_err(|all| refuse(&all))?;
    for note in &compiled.notes {
        output::error(&format!("note: {note}\n"));
    }
    Ok(compiled.plan)
}

fn refuse(all: &[Diagnostic]) -> Refusal {
    let text: Vec<String> = all.iter().map(Diagnostic::render).collect();
    Refusal::new(USAGE, text.join("\n"))
}

fn stored_plan(path: &str) -> Result<Plan, Refusal> {
    let refuse = |why: String| Refusal::usage(format!("{path}: {why}"));
    let text = std::fs::read_to_string(path).map_err(|e| refuse(e.to_string()))?;
    let plan = Plan::from_json(&text).map_err(|e| {
        let has_place = matches!(e, SchemaError::Shape { .. });
        let gap = if has_place { "" } else { " " };
        Refusal::usage(format!("{path}:{gap}{e}"))
    })?;
    if plan.jobs().next().is_none() {
        return Err(refuse("the plan has no job".to_owned()));
    }
    check_stored(&plan).map_err(refuse)?;
    Ok(plan)
}

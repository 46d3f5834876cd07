//! Plans from what a command line names: job files, a stored plan, the arguments themselves.
//!
//! In: a [`Run`]. Out: its plan, checked against the files that are read and written. Not here:
//! compiling job files (`weir-jobfile`).

use weir_doors::house::{Input, Run};
use weir_doors::request::NamedFile;
use weir_doors::run::check_stored;
use weir_doors::{Machine as _, Refusal, USAGE};
use weir_jobfile::{CompileRequest, Diagnostic};
use weir_schema::{Plan, SchemaError};

use crate::house_report::check_output;
use crate::machine::ThisMachine;
use crate::{output, targets, written_files};

/// Files that the house reads and writes besides the stored result.
pub(crate) fn other_files(run: &Run) -> Vec<NamedFile> {
    let read = inputs(&run.input).into_iter();
    let read = read.map(|path| NamedFile::read(path, "what the plan is made from"));
    let written = run.options.outputs.iter();
    let written =
        written.map(|file| NamedFile::written(&file.path, "where the report goes (--output)"));
    let metrics = run.options.web.metrics_file.iter();
    let metrics =
        metrics.map(|path| NamedFile::written(path, "where the metrics go (--metrics-file)"));
    read.chain(written).chain(metrics).collect()
}

/// The files that a plan is made from.
fn inputs(input: &Input) -> Vec<&str> {
    match input {
        Input::Made(_) | Input::Targets { .. } => Vec::new(),
        Input::Plan { path, .. } => vec![path],
        Input::Jobs(request) => request.files().collect(),
    }
}

/// The plan that the arguments ask for. Every refusal is made here.
pub(crate) fn plan_to_run(run: &Run, input: &Input) -> Result<Plan, Refusal> {
    let mut plan = plan_of(input)?;
    run.adjust(&mut plan)?;
    for file in &run.options.outputs {
        refuse_own_input(&file.path, &run.input)?;
        check_output(&file.path, file.format, &run.options)?;
    }
    let outputs = run.options.outputs.iter().map(|file| file.path.as_str());
    let written: Vec<_> = outputs.chain(run.store.as_deref()).collect();
    written_files::refuse_targets(&plan, &written)?;
    Ok(plan)
}

/// Refuses a report that would replace an input of the run.
fn refuse_own_input(report: &str, input: &Input) -> Result<(), Refusal> {
    if inputs(input)
        .iter()
        .any(|source| output::are_same(report, source))
    {
        return Err(Refusal::usage(format!(
            "the report {report} would replace the file it is made from"
        )));
    }
    Ok(())
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

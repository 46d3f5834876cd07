//! `weir history`: the work of its verbs.
//!
//! In: the arguments after `history`. Out: text on standard output, files, changes of the history; the exit
//! code. Not here: the arguments (`weir-doors`), the database and its texts (`weir-history`).

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use weir_doors::Refusal;
use weir_doors::history::{Action, ExportFormat, ListStyle, Request, RunFilter, Since, read};
use weir_history::{
    History, HistoryError, HistoryText, ListFilter, ListRow, MetricRow, PruneRule, RunRow, Trend,
    csv_header,
};

use super::place::{file, open, refusal};
use super::{counted, import};
use crate::{Outcome, environment, output, printed};

/// Carries out the arguments after `history`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Do { file, request } => carry_out(file.as_deref(), request),
    }
}

fn carry_out(flag: Option<&str>, request: Request) -> Outcome {
    match &request {
        Request::Path => {
            let path = file(flag).map_or_else(|| "off".to_owned(), |p| p.display().to_string());
            return Ok(printed(&(path + "\n")));
        }
        Request::Import { files } => return import::run(flag, files),
        _ => {}
    }
    let Some(history) = open(flag)? else {
        return without_history(flag, &request);
    };
    let outcome = match request {
        Request::List { filter, style } => list(&history, &filter, style),
        Request::Trend {
            figure,
            filter,
            least_change,
            style,
        } => trend(&history, figure.as_deref(), &filter, least_change, style),
        Request::Export {
            filter,
            format,
            output,
        } => export(&history, &filter, format, output.as_deref()),
        Request::ShowBaselines => show_baselines(&history),
        Request::Check => check(&history),
        request => return change(history, request).map_err(|error| refusal(&error)),
    };
    outcome.map_err(|error| refusal(&error))
}

/// Answers without a history: a list is empty, and everything else asks for runs that do not exist.
fn without_history(flag: Option<&str>, request: &Request) -> Outcome {
    let path = file(flag).map_or_else(String::new, |path| path.display().to_string());
    match request {
        Request::List { style, .. } if style.json => Ok(printed("[]\n")),
        Request::List { .. } | Request::ShowBaselines => {
            output::error(&format!("note: {path} has no run yet\n"));
            Ok(0)
        }
        _ => Err(Refusal::usage(format!(
            "{path}: there is no history yet\n  help: `weir run` begins one"
        ))),
    }
}

type Done = Result<u8, HistoryError>;

fn list(history: &History, filter: &RunFilter, style: ListStyle) -> Done {
    let listed = history.list(&filter_of(filter))?;
    if style.json {
        let rows: Vec<Value> = listed.rows.iter().map(row_json).collect();
        return Ok(printed(&(Value::Array(rows).to_string() + "\n")));
    }
    let all = history.count()?;
    let shown = listed.rows.len() as u64;
    let text = HistoryText {
        ascii: is_ascii(style),
    }
    .list(&listed);
    if shown < all {
        let of = format!("{shown} of {all} runs in {}", history.path().display());
        output::error(&format!("note: {of}\n"));
    }
    Ok(printed(&text))
}

/// No terminal of another character set shows the others.
fn is_ascii(style: ListStyle) -> bool {
    let flags = weir_report::Flags {
        ascii: style.ascii,
        ..weir_report::Flags::default()
    };
    let terminal = environment::terminal(&std::io::stdout());
    weir_report::Style::detect(&flags, &environment::variables(), terminal).ascii
}

fn trend(
    history: &History,
    figure: Option<&str>,
    filter: &RunFilter,
    least_change: f64,
    style: ListStyle,
) -> Done {
    let last = ListFilter {
        limit: Some(1),
        ..filter_of(filter)
    };
    let Some(run) = history.runs(&last)?.pop() else {
        return Err(no_run(history, filter));
    };
    let trends = history.trends(&run, figure, least_change)?;
    if let (Some(figure), true) = (figure, trends.is_empty()) {
        return Err(unknown_figure(figure, &run, &history.metrics(&run.id)?));
    }
    if style.json {
        let all: Vec<Value> = trends.iter().map(|trend| trend_json(trend, &run)).collect();
        return Ok(printed(&(Value::Array(all).to_string() + "\n")));
    }
    let text = HistoryText {
        ascii: is_ascii(style),
    };
    let all = trends.iter().map(|trend| text.trend(trend, &run));
    Ok(printed(&all.collect::<Vec<_>>().join("\n")))
}

/// Error about a history without a run whose figures could be followed.
fn no_run(history: &History, filter: &RunFilter) -> HistoryError {
    let what = match (&filter.plan, &filter.machine) {
        (Some(plan), Some(machine)) => format!("no run of the plan `{plan}` on `{machine}`"),
        (Some(plan), None) => format!("no plan `{plan}`"),
        (None, Some(machine)) => format!("no machine `{machine}`"),
        (None, None) => "no run".to_owned(),
    };
    HistoryError::Form {
        place: history.path().display().to_string(),
        why: format!("{what}\n  help: `weir history` lists the runs"),
    }
}

fn unknown_figure(figure: &str, run: &RunRow, metrics: &[MetricRow]) -> HistoryError {
    let mut names: Vec<String> = metrics.iter().map(MetricRow::full_name).collect();
    names.sort();
    names.dedup();
    let near = weir_jobfile::nearest(figure, names.iter().map(String::as_str));
    let help = near.map_or_else(
        || format!("it has {}", names.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    HistoryError::Form {
        place: run.plan_name.clone(),
        why: format!("no figure `{figure}`\n  help: {help}"),
    }
}

fn export(history: &History, filter: &RunFilter, format: ExportFormat, to: Option<&str>) -> Done {
    if let (ExportFormat::Database, Some(to)) = (format, to) {
        history.copy_to(Path::new(to))?;
        return Ok(0);
    }
    let mut runs = history.runs(&filter_of(filter))?;
    runs.reverse();
    let mut text = match format {
        ExportFormat::Csv => csv_header(),
        _ => String::new(),
    };
    let mut pruned = 0;
    for run in &runs {
        match format {
            ExportFormat::Csv => text += &history.csv_rows(run)?,
            _ => match history.json_line(run)? {
                Some(line) => text += &line,
                None => pruned += 1,
            },
        }
    }
    if pruned > 0 {
        let are = if pruned == 1 { "is" } else { "are" };
        output::error(&format!(
            "note: {} {are} left out, pruned but for the figures (--format csv has these)\n",
            counted(pruned, "run")
        ));
    }
    let Some(to) = to else {
        return Ok(printed(&text));
    };
    Ok(match output::write_file(to, &text) {
        Ok(()) => 0,
        Err(message) => {
            output::error(&message);
            1
        }
    })
}

fn show_baselines(history: &History) -> Done {
    let rows = history.baselines()?;
    let line = |run: &RunRow| {
        let date = weir_history::date(run.started_ns);
        format!(
            "{}  {date}  {}  on {}\n",
            run.id, run.plan_name, run.machine_name
        )
    };
    if rows.is_empty() {
        output::error("note: no run is a baseline\n");
    }
    Ok(printed(&rows.iter().map(line).collect::<String>()))
}

fn check(history: &History) -> Done {
    let faults = history.faults()?;
    if !faults.is_empty() {
        let lines: Vec<String> = faults
            .iter()
            .map(|fault| format!("error: {fault}\n"))
            .collect();
        output::error(&lines.concat());
        return Ok(1);
    }
    let runs = usize::try_from(history.count()?).unwrap_or(usize::MAX);
    let (path, runs) = (history.path().display(), counted(runs, "run"));
    Ok(printed(&format!("{path}: {runs}, no fault\n")))
}

/// The id of the one run that an argument names.
fn one_run(history: &History, word: &str) -> Result<String, HistoryError> {
    let mut ids = history.resolve(word)?;
    match (ids.pop(), ids.is_empty()) {
        (Some(id), true) => Ok(id),
        _ => Err(HistoryError::Form {
            place: word.to_owned(),
            why: "one run is wanted, and these are several".to_owned(),
        }),
    }
}

fn change(mut history: History, request: Request) -> Done {
    match request {
        Request::Tag { run, given, taken } => {
            let id = one_run(&history, &run)?;
            for (key, value) in given {
                history.set_tag(&id, &key, Some(&value))?;
            }
            for key in taken {
                history.set_tag(&id, &key, None)?;
            }
        }
        Request::Label { run, label } => {
            let id = one_run(&history, &run)?;
            history.set_label(&id, label.as_deref())?;
        }
        Request::Note { run, note } => {
            let id = one_run(&history, &run)?;
            history.set_note(&id, note.as_deref())?;
        }
        Request::SetBaseline(run) => {
            let id = one_run(&history, &run)?;
            history.set_baseline(&id, now_ns())?;
        }
        Request::ClearBaseline(run) => {
            let id = one_run(&history, &run)?;
            if !history.clear_baseline(&id)? {
                return Err(HistoryError::Form {
                    place: id,
                    why: "it is no baseline".to_owned(),
                });
            }
        }
        Request::Remove(runs) => {
            let mut ids = Vec::new();
            for run in &runs {
                ids.extend(history.resolve(run)?);
            }
            history.remove(&ids)?;
        }
        Request::Prune {
            keep,
            older_s,
            dry_run,
            metrics_too,
        } => {
            let rule = PruneRule {
                keep,
                before_ns: older_s.map(|s| now_ns().saturating_sub(s.saturating_mul(SECOND))),
                metrics_too,
            };
            return prune(&mut history, &rule, dry_run);
        }
        // The others change nothing.
        _ => {}
    }
    Ok(0)
}

const SECOND: u64 = 1_000_000_000;

fn prune(history: &mut History, rule: &PruneRule, dry_run: bool) -> Done {
    let pruned = history.prunable(rule)?;
    let what = if rule.metrics_too { "run" } else { "result" };
    let line = |run: &RunRow| {
        let date = weir_history::date(run.started_ns);
        format!("{}  {date}  {}\n", run.id, run.plan_name)
    };
    let (list, verb) = if dry_run {
        (pruned.runs.iter().map(line).collect(), "would be removed")
    } else {
        history.prune(&pruned, rule.metrics_too)?;
        (String::new(), "removed")
    };
    let spared = match pruned.spared {
        0 => String::new(),
        n => format!(", {n} spared (baselines, tag `keep`, neighbours of changes)"),
    };
    let all = counted(pruned.runs.len(), what);
    Ok(printed(&format!("{list}{all} {verb}{spared}\n")))
}

fn filter_of(filter: &RunFilter) -> ListFilter {
    let since = filter.since.map(|since| match since {
        Since::Ago(seconds) => now_ns().saturating_sub(seconds.saturating_mul(SECOND)),
        Since::UnixSeconds(seconds) => seconds.saturating_mul(SECOND),
    });
    ListFilter {
        plan: filter.plan.clone(),
        label: filter.label.clone(),
        machine: filter.machine.clone(),
        since_ns: since,
        tags: filter.tags.clone(),
        limit: filter.limit,
    }
}

fn now_ns() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

fn row_json(row: &ListRow) -> Value {
    let run = &row.run;
    json!({
        "id": run.id,
        "started_unix_ns": run.started_ns,
        "duration_ns": run.duration_ns,
        "plan": run.plan_name,
        "plan_fingerprint": run.plan_fingerprint,
        "machine": run.machine_name,
        "verb": run.verb,
        "label": run.label,
        "note": run.note,
        "source": run.source,
        "weir_version": run.weir_version,
        "complete": run.complete,
        "exit_code": run.exit_code,
        "warnings": run.warnings,
        "tags": run.tags,
        "main": row.main.as_ref().map(|main| json!({
            "job": main.job,
            "metric": main.full_name(),
            "value": main.value,
            "low": main.interval.map(|(low, _)| low),
            "high": main.interval.map(|(_, high)| high),
            "unit": main.unit,
        })),
    })
}

fn trend_json(trend: &Trend, run: &RunRow) -> Value {
    let runs = trend.runs.iter().map(|run| {
        json!({
            "id": run.id,
            "started_unix_ns": run.started_ns,
            "value": run.value,
            "low": run.interval.map(|(low, _)| low),
            "high": run.interval.map(|(_, high)| high),
            "left_out": run.spoiled_by,
        })
    });
    let changes = trend.changes.iter().map(|change| {
        json!({
            "run": change.first,
            "before": change.point.before,
            "after": change.point.after,
            "ratio": change.point.ratio.value,
            "ratio_low": change.point.ratio.low,
            "ratio_high": change.point.ratio.high,
            "runs": change.runs,
            "tentative": change.point.is_tentative,
            "with": change.with,
        })
    });
    json!({
        "plan": run.plan_name,
        "plan_fingerprint": run.plan_fingerprint,
        "machine": run.machine_name,
        "job": trend.key.job,
        "metric": format!("{} {}", trend.key.kind, trend.key.name).trim_start(),
        "unit": trend.unit,
        "better": trend.better,
        "runs": runs.collect::<Vec<_>>(),
        "changes": changes.collect::<Vec<_>>(),
    })
}

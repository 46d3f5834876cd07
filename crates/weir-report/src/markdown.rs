//! Results as Markdown: what a reader of a pull request or a wiki page wants of them.
//!
//! In: results with their labels. Out: a title, a table for each job, warnings. Names come from
//! outside: what would be markup is escaped. Not here: plots, which a page has (`html`).

use crate::color::clean;
use crate::figures::{OF_KINDS, OF_METRICS, of_kinds, of_metrics, used};
use crate::number_format::date;
use crate::plot::{LabelledResult, PlottedRun, jobs_across};

/// The results as one document.
pub fn markdown(results: &[LabelledResult<'_>]) -> String {
    let runs = PlottedRun::all(results);
    let labels: Vec<String> = runs.iter().map(|run| plain(run.label)).collect();
    let mut out = format!("# {}\n", labels.join(", "));
    for run in &runs {
        let result = run.result;
        let parts = [
            (runs.len() > 1).then(|| plain(run.label)),
            Some(date(result.started_unix_ns)),
            result.host.hostname.as_deref().map(plain),
            Some(format!("weir {}", plain(&result.weir_version))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        push!(out, "\n{}\n", parts.join(" · "));
    }
    for job in jobs_across(&runs) {
        push!(out, "\n## {}\n", plain(job.name));
        out += &table(&OF_KINDS, &of_kinds(&job));
        out += &table(&OF_METRICS, &of_metrics(&job));
    }
    out + &warnings(&runs)
}

/// Nothing without rows.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let (head, rows) = used(head, rows);
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let cells = |row: &[String]| row.iter().map(|cell| plain(cell)).collect::<Vec<_>>();
    let rule = (0..head.len()).map(|at| if at == 0 { "---" } else { "---:" }.to_owned());
    let mut out = format!(
        "\n{}{}",
        line(&cells(&head)),
        line(&rule.collect::<Vec<_>>())
    );
    for row in rows {
        out += &line(&cells(&row));
    }
    out
}

/// States of runs that did not end as planned, and every warning once, the gravest first.
fn warnings(runs: &[PlottedRun<'_>]) -> String {
    let of = |run: &PlottedRun<'_>, job: Option<&str>| {
        let label = (runs.len() > 1).then_some(run.label);
        let of: Vec<String> = label.into_iter().chain(job).map(plain).collect();
        if of.is_empty() {
            String::new()
        } else {
            format!("{}: ", of.join(" · "))
        }
    };
    let mut lines: Vec<String> = Vec::new();
    for run in runs {
        if !run.result.complete {
            let of = of(run, None);
            lines.push(format!("**INCOMPLETE** {of}it ended before its plan"));
        }
        for entry in &run.entries {
            for failure in entry.failures() {
                let (of, message) = (of(run, Some(entry.name())), plain(&failure.message));
                lines.push(format!("**FAILED** {of}{message}"));
            }
        }
    }
    let all = runs
        .iter()
        .flat_map(|run| run.result.warnings.iter().map(move |w| (run, w)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, warning)| warning.gravity());
    for (run, warning) in all {
        let (cause, remedy) = (plain(&warning.cause), plain(&warning.remedy));
        let ends = if cause.ends_with('.') { "" } else { "." };
        let (of, id) = (of(run, warning.job.as_deref()), plain(&warning.id));
        let line = format!("**{id}** {of}{cause}{ends} {remedy}");
        lines.push(line.trim_end().to_owned());
    }
    lines.dedup();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n## Warnings\n\n- {}\n", lines.join("\n- "))
}

/// Text on one line that is no markup.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text, false).chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use weir_schema::RunResult;

    use super::*;
    use crate::sample;

    fn of(label: &str, result: &RunResult) -> String {
        markdown(&[LabelledResult {
            label: label.into(),
            result,
        }])
    }

    #[test]
    fn a_job_has_a_table_and_a_run_its_warnings() {
        assert_snapshot!("single", of("first.fio", &sample::single()));
        assert_snapshot!("failed", of("first.fio", &sample::failed()));
        assert_snapshot!("figures", of("beff", &sample::message_sizes()));
    }

    #[test]
    fn names_are_no_markup() {
        let mut result = sample::single();
        result.groups[0].jobs[0].name = "a|b\n# <img> [x](y) `z`".into();
        let text = of("r", &result);
        assert!(text.contains("a\\|b"), "{text}");
        assert!(
            !text.contains("<img") && !text.contains(" [x](y)"),
            "{text}"
        );
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let cells = rows.map(|row| row.replace("\\|", "").matches('|').count());
        let cells: Vec<usize> = cells.collect();
        assert!(
            cells.len() == 3 && cells.iter().all(|n| *n == cells[0]),
            "{text}"
        );
        let titles = text.lines().filter(|line| line.starts_with("# "));
        assert_eq!(titles.count(), 1);
    }
}

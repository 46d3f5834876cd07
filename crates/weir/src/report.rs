//! `weir report`: reports of stored results, as text, as a page, as a picture.
//!
//! In: the arguments after `report`. Out: standard output and files; the exit code. Not here: what a
//! report says (`weir-report`).

use weir_compare::Rule;
use weir_doors::Refusal;
use weir_doors::house::{Output, RunFormat};
use weir_doors::report::{Action, Report, ReportFormat, read};
use weir_doors::request::NamedFile;
use weir_report::{LabelledResult, LineTone, PageSection, PlotChoice, SectionLine, SectionPart};
use weir_schema::{RunResult, Runs};

use crate::compare::{StoredRuns, sides_of};
use crate::stored::Stored;
use crate::{Outcome, house_report, output, picture, printed, written_files};

/// Most results shown beside each other.
pub(crate) const MOST: usize = 16;

/// Carries out the arguments after `report`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Report(report) => carry_out(&report),
    }
}

fn carry_out(report: &Report) -> Outcome {
    let read = report.operands.iter();
    let read = read.map(|operand| NamedFile::read(operand, "a result that is reported"));
    let written = report.outputs.iter().map(|file| match file.format {
        ReportFormat::Whole(format) => {
            let path = file.path.clone();
            house_report::output_file(&Output { path, format }, &report.options)
        }
        _ => NamedFile::written(&file.path, "where the picture goes (--output)"),
    });
    let files: Vec<NamedFile> = read.chain(written).collect();
    written_files::check(&files, [])?;
    let stored = report.operands.iter().map(|operand| Stored::read(operand));
    let stored = stored.collect::<Result<Vec<_>, _>>()?;
    let mut files = Vec::new();
    for file in &report.outputs {
        files.push((&file.path, Form::of(report, &stored, file.format, false)?));
    }
    let printed = match report.format {
        Some(format) => Form::of(report, &stored, format, true)?,
        None => Form::Text(RunFormat::Text, String::new()),
    };
    let mut good = true;
    for (path, form) in files {
        good &= match form {
            Form::Text(format, text) => {
                house_report::write_output(path, format, &report.options, &text)
            }
            Form::Picture(bytes) => {
                let written = output::write_file(path, bytes);
                written.map_err(|message| output::error(&message)).is_ok()
            }
        };
    }
    good &= match printed {
        Form::Text(_, text) => output::print(&text),
        Form::Picture(bytes) => output::print_bytes(&bytes),
    };
    Ok(u8::from(!good))
}

/// Content of a file.
enum Form {
    Text(RunFormat, String),
    Picture(Vec<u8>),
}

impl Form {
    fn of(
        report: &Report,
        stored: &[Stored],
        format: ReportFormat,
        on_stdout: bool,
    ) -> Result<Self, Refusal> {
        Ok(match format {
            ReportFormat::Whole(format) => {
                Self::Text(format, text_of(report, stored, format, on_stdout)?)
            }
            ReportFormat::Svg => Self::Picture(svg_of(report, stored)?.into_bytes()),
            ReportFormat::Png => Self::Picture(picture::png_of(&svg_of(report, stored)?)?),
        })
    }
}

/// The results in one form.
fn text_of(
    report: &Report,
    stored: &[Stored],
    format: RunFormat,
    on_stdout: bool,
) -> Result<String, Refusal> {
    let options = &report.options;
    match format {
        RunFormat::Html => Ok(weir_report::html(
            &labelled(report, stored),
            &compared(report, stored),
        )),
        RunFormat::Json if stored.len() > 1 => Err(Refusal::usage(
            "JSON holds one result: name one, or ask for text, html, md, csv, csv-series, svg or png",
        )),
        RunFormat::Text | RunFormat::Json => {
            let texts = stored.iter().map(|stored| match stored {
                Stored::One(result) => house_report::text_of(result, format, options, on_stdout),
                Stored::Several(runs) => {
                    house_report::text_of_runs(runs, format, options, on_stdout)
                }
            });
            Ok(texts.collect::<Vec<_>>().join("\n"))
        }
        format => Ok(house_report::several_of(&labelled(report, stored), format)),
    }
}

/// Comparisons of several results, as `weir compare` makes them; of one series, the differences
/// between its runs.
fn compared(report: &Report, stored: &[Stored]) -> Vec<PageSection> {
    if let [Stored::Several(runs)] = stored
        && runs.series.len() == 1
    {
        return vec![weir_report::runs_section(runs)];
    }
    if let [Stored::One(_)] = stored {
        return Vec::new();
    }
    let side = |(name, (operand, stored)): (String, (&String, &Stored))| StoredRuns {
        name,
        read: vec![(operand.clone(), stored.clone())],
    };
    let all = names(&report.operands)
        .into_iter()
        .zip(report.operands.iter().zip(stored));
    // A page has no command line that the remedy would be for.
    let reason = |refusal: Refusal| {
        let line = refusal.message.lines().next().unwrap_or_default();
        line.trim_start_matches("error: ").to_owned()
    };
    let comparison = sides_of(all.map(side).collect())
        .map_err(reason)
        .and_then(|sides| {
            weir_compare::compare(&sides, &Rule::default()).map_err(|why| why.to_string())
        });
    vec![match comparison {
        Ok(comparison) => weir_compare::page_section(&comparison),
        Err(why) => PageSection {
            id: "compare",
            title: "Comparison".to_owned(),
            parts: vec![SectionPart::Lines(vec![SectionLine {
                text: format!("not comparable: {why}"),
                tone: LineTone::Odd,
            }])],
        },
    }]
}

/// Names of operands: without folder and suffix, made unique.
fn names(operands: &[String]) -> Vec<String> {
    let stems: Vec<String> = operands.iter().map(|operand| stem(operand)).collect();
    let name = |(at, stem): (usize, &String)| {
        if stems[..at].contains(stem) {
            format!("{stem} ({})", at + 1)
        } else {
            stem.clone()
        }
    };
    stems.iter().enumerate().map(name).collect()
}

/// The one plot that is asked for.
fn svg_of(report: &Report, stored: &[Stored]) -> Result<String, Refusal> {
    let results = labelled(report, stored);
    let choice = PlotChoice {
        name: report.plot.clone(),
        job: report.job.clone(),
    };
    weir_report::svg(&results, &choice).map_err(Refusal::usage)
}

/// Results with a name each, at most as many as a picture can show.
fn labelled<'a>(report: &Report, stored: &'a [Stored]) -> Vec<LabelledResult<'a>> {
    let mut found: Vec<LabelledResult<'a>> = Vec::new();
    for (name, stored) in names(&report.operands).into_iter().zip(stored) {
        let mut all = match stored {
            Stored::One(result) => vec![LabelledResult {
                label: name.clone(),
                result,
            }],
            Stored::Several(runs) => of_runs(runs),
        };
        if matches!(stored, Stored::Several(_)) && report.operands.len() > 1 {
            for one in &mut all {
                one.label = format!("{name} {}", one.label);
            }
        }
        found.extend(all);
    }
    let count = found.len();
    if count > MOST {
        output::error(&format!(
            "note: the first {MOST} of {count} results are shown\n"
        ));
        found.truncate(MOST);
    }
    for at in 1..found.len() {
        let (before, rest) = found.split_at_mut(at);
        let same = before.iter().filter(|b| b.label == rest[0].label).count();
        if same > 0 {
            rest[0].label = format!("{} ({})", rest[0].label, at + 1);
        }
    }
    found
}

/// The runs of a stored series, by number; with the name of their plan where there are several.
pub(crate) fn of_runs(runs: &Runs) -> Vec<LabelledResult<'_>> {
    let several = runs.series.len() > 1;
    let all = runs.series.iter().flat_map(|series| {
        let numbered = (1..).zip(series.whole());
        numbered.map(move |(number, result)| LabelledResult {
            label: if several {
                format!("{} {number}", series.name)
            } else {
                format!("run {number}")
            },
            result,
        })
    });
    all.collect()
}

/// The only result of a run.
pub(crate) fn of_one(result: &RunResult) -> [LabelledResult<'_>; 1] {
    [LabelledResult {
        label: result.plan.name.clone(),
        result,
    }]
}

/// `before` of `results/before.json`.
fn stem(operand: &str) -> String {
    let path = std::path::Path::new(operand);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    stem.map_or_else(|| operand.to_owned(), std::borrow::Cow::into_owned)
}

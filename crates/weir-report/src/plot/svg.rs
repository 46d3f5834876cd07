//! A plot as a picture: SVG.
//!
//! In: a plot. Out: an `svg` element. Inside a page it takes its colours from the page's style sheet;
//! alone it brings a light one along. Names come from outside and are escaped. Not here: what is
//! drawn (`from_result`).

mod bars;
mod chart;
mod heat;
mod legend;

use std::collections::BTreeSet;

use super::from_result::{JobAcross, PlottedRun, jobs_across, of_job, of_runs};
use super::{LIGHT, LabelledResult, Plot, PlotBody, PlotChoice, style_rules};
use crate::color::clean;

/// The width of every picture.
const WIDTH: f64 = 560.0;

/// The picture for a page, whose script reads it.
pub(crate) fn inline(plot: &Plot) -> String {
    drawn(plot, 0.0, "")
}

/// The counts of a heat map, which the page's script reads beside the picture; nothing of a picture that
/// it leaves as it is.
pub(crate) fn counts(plot: &Plot) -> Option<String> {
    match &plot.body {
        PlotBody::Bars(_) | PlotBody::Pairs(_) => None,
        PlotBody::Chart(_) => Some(String::new()),
        PlotBody::Heat(map) => Some(heat::counts(map)),
    }
}

/// One plot of these results as a file.
///
/// # Errors
/// No such plot or no name of one, no such job, or several jobs have it; what there is.
pub fn svg(results: &[LabelledResult<'_>], choice: &PlotChoice) -> Result<String, String> {
    let runs = PlottedRun::all(results);
    let jobs = jobs_across(&runs);
    let words = job_words(&jobs);
    let wanted = choice.job.as_deref();
    let chosen: Vec<usize> = match wanted {
        None => (0..jobs.len()).collect(),
        Some(word) => of_word(word, &jobs, &words)
            .ok_or_else(|| format!("there is no job `{word}` (there are {})", words.join(", ")))?,
    };
    let of_jobs = chosen.into_iter().flat_map(|at| {
        let plots = of_job(&jobs[at]).into_iter();
        plots.map(move |plot| (Some(at), plot))
    });
    let of_runs = of_runs(&runs).into_iter().map(|plot| (None, plot));
    let all: Vec<(Option<usize>, Plot)> = of_jobs.chain(of_runs).collect();
    let name = choice.name.as_deref();
    let is_chosen = |(_, plot): &&(_, Plot)| Some(plot.name.as_str()) == name;
    let found: Vec<&(Option<usize>, Plot)> = all.iter().filter(is_chosen).collect();
    match found.as_slice() {
        [(at, plot)] => Ok(alone(plot, at.map_or("", |at| jobs[at].name))),
        [] => {
            let names: BTreeSet<&str> = all.iter().map(|(_, plot)| plot.name.as_str()).collect();
            let list = names.into_iter().collect::<Vec<_>>().join(", ");
            let why = name.map_or_else(
                || "SVG and PNG hold one plot: name it with --plot".to_owned(),
                |name| format!("there is no plot `{name}`"),
            );
            Err(format!("{why} (there are {list})"))
        }
        several => {
            let of_jobs = several.iter().filter_map(|(at, _)| *at);
            let of_jobs: Vec<&str> = of_jobs.map(|at| words[at].as_str()).collect();
            Err(format!(
                "several jobs have a plot `{}`: choose one of {} with --job",
                name.unwrap_or_default(),
                of_jobs.join(", ")
            ))
        }
    }
}

/// Name of each job on a command line, with a number where several have it.
fn job_words(jobs: &[JobAcross<'_, '_>]) -> Vec<String> {
    let same = |name: &str| jobs.iter().filter(|job| job.name == name).count();
    let word = |(at, job): (usize, &JobAcross<'_, '_>)| {
        let before = jobs[..at].iter().filter(|other| other.name == job.name);
        if same(job.name) > 1 {
            format!("{}#{}", job.name, before.count() + 1)
        } else {
            job.name.to_owned()
        }
    };
    jobs.iter().enumerate().map(word).collect()
}

/// The jobs that a word chooses: all of a name, one by what it is called, one by its number from 1.
fn of_word(word: &str, jobs: &[JobAcross<'_, '_>], words: &[String]) -> Option<Vec<usize>> {
    let named = (0..jobs.len()).filter(|at| jobs[*at].name == word);
    let named: Vec<usize> = named.collect();
    if !named.is_empty() {
        return Some(named);
    }
    let called = words.iter().position(|known| known == word);
    let numbered = || {
        let number: usize = word.parse().ok()?;
        number.checked_sub(1).filter(|at| *at < jobs.len())
    };
    called.or_else(numbered).map(|at| vec![at])
}

/// A whole file.
fn alone(plot: &Plot, job: &str) -> String {
    let title = if job.is_empty() {
        plot.title.clone()
    } else {
        format!("{job}: {}", plot.title)
    };
    let style = format!(
        "<style>svg{{{};background:var(--background)}}{}</style>\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\
         <text class=\"title\" x=\"16\" y=\"22\">{}</text>",
        LIGHT.variables(),
        style_rules(),
        LIGHT.background,
        escaped(&title),
    );
    drawn(plot, 30.0, &style) + "\n"
}

/// The picture below so much room for what goes before it.
fn drawn(plot: &Plot, top: f64, before: &str) -> String {
    let (height, inside) = match &plot.body {
        PlotBody::Chart(chart) => chart::drawn(chart, top),
        PlotBody::Bars(bars) => bars::drawn(bars, top),
        PlotBody::Heat(map) | PlotBody::Pairs(map) => heat::drawn(map, top),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" \
         role=\"img\" aria-label=\"{}\">{before}{inside}</svg>",
        short(height),
        escaped(&plot.caption),
    )
}

/// Text from outside as text of a document: no markup, nothing that reorders or moves.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text, false).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

/// A coordinate: tenths of a pixel.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn text(class: &str, anchor: &str, (x, y): (f64, f64), words: &str) -> String {
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let anchor = if anchor == "start" {
        String::new()
    } else {
        format!(" text-anchor=\"{anchor}\"")
    };
    let (x, y) = (short(x), short(y));
    format!(
        "<text{class}{anchor} x=\"{x}\" y=\"{y}\">{}</text>",
        escaped(words)
    )
}

/// A straight line.
fn stroke(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
        short(from.0),
        short(from.1),
        short(to.0),
        short(to.1)
    )
}

/// About how wide this text is.
fn width_of(words: &str) -> f64 {
    6.6 * super::count(clean(words, false).chars().count())
}

/// Text that fits into so much room, with `…` where it was longer.
fn fitting(words: &str, room: f64) -> String {
    if width_of(words) <= room {
        return words.to_owned();
    }
    let kept = super::whole(room / 6.6).saturating_sub(1);
    let kept: String = clean(words, false).chars().take(kept).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests;

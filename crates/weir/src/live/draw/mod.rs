//! The screens.
//!
//! In: the run second by second, what is measured so far, what is chosen. Out: a drawn frame. Not here:
//! when frames are drawn, what keys do.

mod heat;
mod latency;
mod machine;
mod overview;
mod plain;
#[cfg(test)]
mod tests;
mod time;
mod workers;

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};
use weir_report::clean;
use weir_schema::{Job, Plan, RunResult};

use super::keys::{Choice, Screen};
use super::machine::MachinePerSecond;
use super::per_second::PerSecond;

const HELP: &str = "\
1 ... 6   screens
Tab       next job, or all together
+ -       window: 10 s to 10 min
l         latencies linear or logarithmic
s r       sort workers, reverse
f         freeze the picture
w         store what is measured so far
h         this page
q         leave; the run goes on
e y       end the run early
Ctrl-C    interrupt the run: exit code 130";

const DIM: Style = Style::new().fg(Color::DarkGray);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const WARNING: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);
/// Narrower than this the name of the program gives way.
const ROOM_FOR_NAME: u16 = 68;

/// All that is shown.
#[derive(Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) plan: &'a Plan,
    pub(super) choice: &'a Choice,
    pub(super) per_second: &'a PerSecond,
    pub(super) machine: &'a MachinePerSecond,
    pub(super) result: Option<&'a RunResult>,
    /// Messages held back while the screen is drawn on.
    pub(super) said: &'a str,
    /// Answer to the last key.
    pub(super) answer: Option<&'a str>,
    /// Reason why there are fewer frames than requested.
    pub(super) note: Option<&'a str>,
}

/// State that a frozen view shows.
pub(super) struct Frozen {
    pub(super) per_second: PerSecond,
    pub(super) machine: MachinePerSecond,
    pub(super) result: Option<Arc<RunResult>>,
}

impl Frozen {
    /// The frozen state in place of the running one.
    pub(super) fn instead_of<'a>(&'a self, shown: Shown<'a>) -> Shown<'a> {
        Shown {
            per_second: &self.per_second,
            machine: &self.machine,
            result: self.result.as_deref(),
            ..shown
        }
    }
}

impl Shown<'_> {
    /// The job that is chosen, by its number.
    fn index(&self) -> Option<usize> {
        let job = self.per_second.jobs().get(self.choice.job?)?;
        Some(job.index)
    }
}

/// Draws a frame.
pub(super) fn draw(frame: &mut Frame<'_>, shown: &Shown<'_>, style: &weir_report::Style) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(head_line(shown, head.width), head);
    frame.render_widget(foot_line(shown), foot);
    match shown.choice.screen {
        _ if shown.choice.shows_help => {
            let block = Block::bordered().title(" keys ");
            frame.render_widget(Paragraph::new(HELP).block(block), body);
        }
        Screen::Overview => overview::draw(frame, body, shown),
        Screen::Latency => latency::draw(frame, body, shown),
        Screen::Heat => heat::draw(frame.buffer_mut(), body, shown),
        Screen::Workers => workers::draw(frame, body, shown),
        Screen::Machine => machine::draw(frame, body, shown.machine),
        Screen::Plan => plan(frame, body, shown),
    }
    plain::apply(frame.buffer_mut(), style);
}

fn head_line(shown: &Shown<'_>, width: u16) -> Line<'static> {
    let name = if width >= ROOM_FOR_NAME { "weir " } else { "" };
    let mut spans = vec![Span::styled(name, BOLD)];
    for (number, (screen, name)) in (1..).zip(Screen::ALL) {
        // Reversed is seen without colours as well.
        let style = if screen == shown.choice.screen {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            DIM
        };
        spans.push(Span::styled(format!("{number} {name}"), style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn foot_line(shown: &Shown<'_>) -> Line<'static> {
    let choice = shown.choice;
    if choice.asks_to_end {
        return Line::styled(
            "End the run early? y ends it, any other key does not.",
            WARNING,
        );
    }
    if let Some(answer) = shown.answer {
        return Line::styled(clean(answer, false), WARNING);
    }
    let jobs = shown.per_second.jobs();
    let which = match choice.job.and_then(|at| jobs.get(at)) {
        Some(job) => clean(&job.name, false),
        None if jobs.len() == 1 => clean(&jobs[0].name, false),
        None => format!("{} jobs", jobs.len()),
    };
    let elapsed = shown.per_second.elapsed().as_secs_f64();
    let mut spans = vec![Span::styled(
        format!("{elapsed:.0} s  {which}  window {} s  ", choice.window),
        DIM,
    )];
    if choice.is_frozen {
        spans.push(Span::styled("FROZEN  ", WARNING));
    }
    spans.push(match shown.note {
        Some(note) => Span::styled(note.to_owned(), WARNING),
        None => Span::styled("h help  q leave", DIM),
    });
    Line::from(spans)
}

/// Draws the plan, and the messages of the run.
fn plan(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>) {
    let command = clean(&shown.plan.command.join(" "), false);
    let mut lines = vec![Line::styled(command, BOLD), Line::default()];
    lines.extend(shown.plan.jobs().map(|(_, job)| Line::raw(in_words(job))));
    if !shown.said.is_empty() {
        lines.push(Line::default());
    }
    let said = shown.said.lines().map(|line| clean(line, false));
    lines.extend(said.map(|line| Line::styled(line, WARNING)));
    let block = Block::bordered().title(" plan, and what was said ");
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(text.block(block), area);
}

fn in_words(job: &Job) -> String {
    let load = job.workload.load();
    let depth = load.map(|load| format!("depth {}", load.depth.queue_depth));
    let time = load.and_then(|load| load.bounds.runtime_ns);
    let workers = match job.clones {
        1 => "1 worker".to_owned(),
        many => format!("{many} workers"),
    };
    let parts = [
        Some(job.workload.title()),
        Some(job.engine.name.clone()),
        depth,
        time.map(|time| time.to_string()),
        Some(workers),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    clean(&format!("{}: {}", job.name, parts.join(", ")), false)
}

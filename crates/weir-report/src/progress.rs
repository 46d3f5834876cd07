//! The progress line: what a run does right now, in one line.
//!
//! In: a [`Snapshot`], plain data that the run's sampler fills a few times per second. Out: a
//! line for a terminal (cut from the right so that it never wraps), a plain line for logs, or a
//! JSON object; none ends with a newline. Not here: when lines are printed and how the last one
//! is erased.

use serde_json::json;
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::paper::{Text, Tone, paint};
use crate::style::Style;

/// Cells of the bar at 100 %.
const BAR: f64 = 10.0;

/// What a run does at one instant. Absent: not known (yet).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Since the start of the run.
    pub t_ns: Nanos,
    /// The running job, or words for several.
    pub job: String,
    /// What it is doing.
    pub state: Activity,
    /// Share of its bounds that is done, 0 to 1.
    pub done_fraction: Option<f64>,
    /// Over the last second.
    pub ops_per_s: Option<Iops>,
    /// Over the last second.
    pub bytes_per_s: Option<BytesPerSec>,
    /// Of the last second's operations.
    pub p99_ns: Option<Nanos>,
    /// Operations in flight now.
    pub in_flight: Option<u64>,
    /// Failed operations so far.
    pub errors: u64,
    /// Time left.
    pub eta_ns: Option<Nanos>,
    /// How long nothing has completed, once that is long enough to be told.
    pub stall_ns: Option<Nanos>,
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Making ready.
    Setup,
    /// Writing files that are missing.
    Layout,
    /// Running without counting yet.
    Ramp,
    /// Measuring.
    #[default]
    Measure,
    /// Waiting for what is in flight.
    Drain,
}

impl Activity {
    /// The word in the line; measuring needs none.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Setup => Some("setup"),
            Self::Layout => Some("layout"),
            Self::Ramp => Some("ramp"),
            Self::Measure => None,
            Self::Drain => Some("drain"),
        }
    }
}

/// The line for a terminal, at most `width` columns; what does not fit is cut from the right.
pub fn line(snapshot: &Snapshot, width: usize, style: &Style) -> String {
    let mut fields = fields(snapshot);
    // A long name would push out everything that changes.
    let room = (width / 3).max(12);
    let mut name = fields[0].clean(style.ascii);
    if name.width() > room {
        let rest = Text::from("…").clean(style.ascii);
        name = name.cut(room.saturating_sub(rest.width())).join(rest);
    }
    fields[0] = name;
    if let (Some(done), Some(field)) = (snapshot.done_fraction, fields.get_mut(1)) {
        *field = field.clone().and(Tone::Plain, bar(done, style.ascii));
    }
    let mut line = Text::default();
    for (i, field) in fields.into_iter().enumerate() {
        let gap = if i == 0 { "" } else { "  " };
        // The name is clean already and must not be cleaned twice.
        let field = if i == 0 { field } else { field.clean(style.ascii) };
        line = line.and(Tone::Plain, gap).join(field);
    }
    let mut out = String::new();
    paint(&line.cut(width), style.color, &mut out);
    out
}

/// The line for a log: everything, without bar.
pub fn plain(snapshot: &Snapshot, style: &Style) -> String {
    let fields: Vec<Text> = fields(snapshot).iter().map(|f| f.clean(style.ascii)).collect();
    let mut line = Text::default();
    for (i, field) in fields.into_iter().enumerate() {
        line = line.and(Tone::Plain, if i == 0 { "" } else { "  " }).join(field);
    }
    let mut out = String::new();
    paint(&line, style.color, &mut out);
    out
}

/// The snapshot as one JSON object on one line; what is not known is null.
pub fn json(snapshot: &Snapshot) -> String {
    json!({
        "t_ns": snapshot.t_ns,
        "job": snapshot.job,
        "ops_per_s": snapshot.ops_per_s,
        "bytes_per_s": snapshot.bytes_per_s,
        "p99_ns": snapshot.p99_ns,
        "in_flight": snapshot.in_flight,
        "errors": snapshot.errors,
        "done_fraction": snapshot.done_fraction,
    })
    .to_string()
}

fn fields(snapshot: &Snapshot) -> Vec<Text> {
    let mut fields = vec![Text::new(Tone::Strong, snapshot.job.as_str())];
    if let Some(done) = snapshot.done_fraction {
        fields.push(format!("{:.0} %", (done.clamp(0.0, 1.0) * 100.0).floor()).into());
    }
    fields.extend(snapshot.state.word().map(Text::from));
    if let Some(stall) = snapshot.stall_ns {
        fields.push(Text::new(Tone::Bad, format!("STALL {} s", stall.0 / 1_000_000_000)));
    }
    let ops = snapshot.ops_per_s.map(|r| r.to_string().replace(" ops/s", "/s"));
    let bytes = snapshot.bytes_per_s.map(|r| r.to_string());
    let rates: Vec<String> = ops.into_iter().chain(bytes).collect();
    if !rates.is_empty() {
        fields.push(Text::new(Tone::Strong, rates.join(" ")));
    }
    fields.extend(snapshot.p99_ns.map(|t| format!("p99 {t}").into()));
    fields.extend(snapshot.in_flight.map(|n| format!("in fl. {n}").into()));
    let tone = if snapshot.errors > 0 { Tone::Bad } else { Tone::Plain };
    fields.push(Text::new(tone, format!("{} err", snapshot.errors)));
    fields.extend(snapshot.eta_ns.map(|t| format!("eta {}", clock(t)).into()));
    fields
}

/// ` ████▏`: ten cells are the whole.
fn bar(done: f64, ascii: bool) -> String {
    let cells = done.clamp(0.0, 1.0) * BAR;
    let full = (1..=10_u8).take_while(|n| f64::from(*n) <= cells).count();
    let rest = cells.fract();
    let (block, parts) = if ascii { ('#', "-") } else { ('█', "▏▎▍▌▋▊▉") };
    let steps = if ascii { 2.0 } else { 8.0 };
    let level = (1..=7_u8).take_while(|n| f64::from(*n) / steps <= rest).count();
    let part = level.checked_sub(1).and_then(|i| parts.chars().nth(i));
    let mut text: String = std::iter::once(' ').chain(std::iter::repeat_n(block, full)).collect();
    text.extend(part);
    text
}

/// `0:18`, `1:02:03`.
fn clock(time: Nanos) -> String {
    let seconds = time.0.div_ceil(1_000_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

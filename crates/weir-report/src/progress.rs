//! The progress line: what a run does right now, in one line.
//!
//! In: a [`Snapshot`], plain data that the run's sampler fills a few times per second. Out: a
//! line for a terminal (with as many fields as fit, so that it never wraps), a plain line for logs, or a
//! JSON object; none ends with a newline. Not here: when lines are printed and how the last one
//! is erased.

use serde_json::json;
use weir_units::{BytesPerSec, Iops, Nanos};

use crate::color::{Text, Tone, paint};
use crate::style::Style;

/// Cells of the bar at 100 %.
const BAR: f64 = 10.0;
/// The bar says what the percentage says: it goes first.
const BAR_RANK: u8 = 7;

/// Activity and figures of a run at one instant. Absent: not known (yet).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Since the start of the run.
    pub t_ns: Nanos,
    /// The running job, or words for several.
    pub job: String,
    /// Its activity.
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
    /// Failed operations so far; absent where none are counted before the end.
    pub errors: Option<u64>,
    /// Time left.
    pub eta_ns: Option<Nanos>,
    /// Time since the last completion, once it is long enough to be reported.
    pub stall_ns: Option<Nanos>,
}

/// Activity of a job.
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
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [
        Self::Setup,
        Self::Layout,
        Self::Ramp,
        Self::Measure,
        Self::Drain,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Layout => "layout",
            Self::Ramp => "ramp",
            Self::Measure => "measure",
            Self::Drain => "drain",
        }
    }

    /// The word in the line; measuring needs none.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Measure => None,
            other => Some(other.name()),
        }
    }
}

/// A part of the line.
struct LineField {
    text: Text,
    /// Separator from the field before.
    gap: &'static str,
    /// Rank of the field: where there is no room for all, the highest rank goes first; rank 0
    /// stays.
    rank: u8,
}

impl LineField {
    fn new(rank: u8, text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            gap: "  ",
            rank,
        }
    }

    /// One that belongs to the field before it.
    fn beside(rank: u8, text: impl Into<Text>) -> Self {
        Self {
            gap: " ",
            ..Self::new(rank, text)
        }
    }
}

/// The line for a terminal, at most `width` columns. Where they are not enough it has fewer fields, and
/// is cut only where the last of them does not fit.
pub fn line(snapshot: &Snapshot, width: usize, style: &Style) -> String {
    let mut fields = fields(snapshot, style);
    // A long name would push out everything that changes.
    let room = (width / 3).max(12);
    if let Some(name) = fields.first_mut().map(|field| &mut field.text)
        && name.width() > room
    {
        let rest = Text::from("…").clean(style.ascii);
        *name = name.cut(room.saturating_sub(rest.width())).join(rest);
    }
    let whole = |fields: &[LineField]| {
        let widths = fields
            .iter()
            .map(|field| field.gap.len() + field.text.width());
        // The first has no gap.
        widths.sum::<usize>().saturating_sub(2)
    };
    while whole(&fields) > width {
        let least = (0..fields.len()).max_by_key(|at| fields[*at].rank);
        let Some(least) = least.filter(|at| fields[*at].rank > 0) else {
            break;
        };
        fields.remove(least);
    }
    let mut out = String::new();
    paint(&joined(fields).cut(width), style.color, &mut out);
    out
}

/// The line for a log: everything, without bar.
pub fn plain(snapshot: &Snapshot, style: &Style) -> String {
    let fields = fields(snapshot, style).into_iter();
    let fields = fields.filter(|field| field.rank != BAR_RANK).collect();
    let mut out = String::new();
    paint(&joined(fields), style.color, &mut out);
    out
}

fn joined(fields: Vec<LineField>) -> Text {
    let mut line = Text::default();
    for (i, field) in fields.into_iter().enumerate() {
        let gap = if i == 0 { "" } else { field.gap };
        line = line.and(Tone::Plain, gap).join(field.text);
    }
    line
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

/// The parts in their order, clean.
fn fields(snapshot: &Snapshot, style: &Style) -> Vec<LineField> {
    let mut fields = vec![LineField::new(
        0,
        Text::new(Tone::Strong, snapshot.job.as_str()),
    )];
    if let Some(done) = snapshot.done_fraction {
        let percent = (done.clamp(0.0, 1.0) * 100.0).floor();
        fields.push(LineField::new(1, format!("{percent:.0} %")));
        fields.push(LineField::beside(BAR_RANK, bar(done, style.ascii)));
    }
    fields.extend(snapshot.state.word().map(|word| LineField::new(0, word)));
    if let Some(stall) = snapshot.stall_ns {
        let text = format!("STALL {} s", stall.0 / 1_000_000_000);
        fields.push(LineField::new(0, Text::new(Tone::Bad, text)));
    }
    if let Some(rate) = snapshot.ops_per_s {
        let text = rate.to_string().replace(" ops/s", "/s");
        fields.push(LineField::new(0, Text::new(Tone::Strong, text)));
    }
    if let Some(rate) = snapshot.bytes_per_s {
        let text = Text::new(Tone::Strong, rate.to_string());
        fields.push(match snapshot.ops_per_s {
            Some(_) => LineField::beside(3, text),
            None => LineField::new(0, text),
        });
    }
    fields.extend(
        snapshot
            .p99_ns
            .map(|t| LineField::new(4, format!("p99 {t}"))),
    );
    fields.extend(
        snapshot
            .in_flight
            .map(|n| LineField::new(5, format!("in fl. {n}"))),
    );
    if let Some(errors) = snapshot.errors {
        let (rank, tone) = if errors > 0 {
            (0, Tone::Bad)
        } else {
            (6, Tone::Plain)
        };
        fields.push(LineField::new(
            rank,
            Text::new(tone, format!("{errors} err")),
        ));
    }
    fields.extend(
        snapshot
            .eta_ns
            .map(|t| LineField::new(2, format!("eta {}", clock(t)))),
    );
    for field in &mut fields {
        field.text = field.text.clean(style.ascii);
    }
    fields
}

/// `████▏`: ten cells are the whole.
fn bar(done: f64, ascii: bool) -> String {
    let cells = done.clamp(0.0, 1.0) * BAR;
    let full = (1..=10_u8).take_while(|n| f64::from(*n) <= cells).count();
    let rest = cells.fract();
    let (block, parts) = if ascii {
        ('#', "-")
    } else {
        ('█', "▏▎▍▌▋▊▉")
    };
    let steps = if ascii { 2.0 } else { 8.0 };
    let level = (1..=7_u8)
        .take_while(|n| f64::from(*n) / steps <= rest)
        .count();
    let part = level.checked_sub(1).and_then(|i| parts.chars().nth(i));
    let mut text: String = std::iter::repeat_n(block, full).collect();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            t_ns: Nanos::from_millis(12_300),
            job: "rand-read".into(),
            state: Activity::Measure,
            done_fraction: Some(0.413),
            ops_per_s: Some(Iops(413_000.0)),
            bytes_per_s: Some(BytesPerSec(1.69e9)),
            p99_ns: Some(Nanos(131_000)),
            in_flight: Some(32),
            errors: Some(0),
            eta_ns: Some(Nanos::from_millis(17_600)),
            stall_ns: None,
        }
    }

    #[test]
    fn the_line_has_the_agreed_shape() {
        let style = Style::default();
        assert_eq!(
            line(&snapshot(), 120, &style),
            "rand-read  41 % ████▏  413 k/s 1.69 GB/s  p99 131 µs  in fl. 32  0 err  eta 0:18"
        );
        let ascii = Style {
            ascii: true,
            ..style
        };
        assert_eq!(
            line(&snapshot(), 120, &ascii),
            "rand-read  41 % ####  413 k/s 1.69 GB/s  p99 131 us  in fl. 32  0 err  eta 0:18"
        );
    }

    #[test]
    fn a_narrow_line_has_fewer_fields_and_none_in_part() {
        let of = |width| line(&snapshot(), width, &Style::default());
        for (width, text) in [
            (
                79,
                "rand-read  41 %  413 k/s 1.69 GB/s  p99 131 µs  in fl. 32  0 err  eta 0:18",
            ),
            (
                59,
                "rand-read  41 %  413 k/s 1.69 GB/s  p99 131 µs  eta 0:18",
            ),
            (46, "rand-read  41 %  413 k/s 1.69 GB/s  eta 0:18"),
            (40, "rand-read  41 %  413 k/s  eta 0:18"),
            (20, "rand-read  413 k/s"),
            (12, "rand-read  4"),
        ] {
            assert_eq!(of(width), text, "{width}");
        }
        let long = Snapshot {
            job: "a-job-with-a-name-without-end".into(),
            ..snapshot()
        };
        let text = line(&long, 40, &Style::default());
        assert_eq!(text, "a-job-with-a…  41 %  413 k/s  eta 0:18");
    }

    #[test]
    fn a_stall_comes_before_the_rates() {
        let stalled = Snapshot {
            stall_ns: Some(Nanos::from_millis(3_200)),
            ops_per_s: Some(Iops(0.0)),
            bytes_per_s: None,
            p99_ns: None,
            errors: Some(2),
            ..snapshot()
        };
        assert_eq!(
            line(&stalled, 80, &Style::default()),
            "rand-read  41 % ████▏  STALL 3 s  0/s  in fl. 32  2 err  eta 0:18"
        );
        let painted = line(
            &stalled,
            80,
            &Style {
                color: true,
                ..Style::default()
            },
        );
        assert!(painted.contains("\x1b[31mSTALL 3 s\x1b[0m"), "{painted:?}");
        assert!(painted.contains("\x1b[31m2 err\x1b[0m"), "{painted:?}");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let early = Snapshot {
            job: "a".into(),
            state: Activity::Layout,
            ..Snapshot::default()
        };
        assert_eq!(line(&early, 80, &Style::default()), "a  layout");
        assert_eq!(
            json(&early),
            r#"{"t_ns":0,"job":"a","ops_per_s":null,"bytes_per_s":null,"p99_ns":null,"in_flight":null,"errors":null,"done_fraction":null}"#
        );
    }

    #[test]
    fn the_plain_form_has_no_bar_and_the_json_form_plain_numbers() {
        assert_eq!(
            plain(&snapshot(), &Style::default()),
            "rand-read  41 %  413 k/s 1.69 GB/s  p99 131 µs  in fl. 32  0 err  eta 0:18"
        );
        assert_eq!(
            json(&snapshot()),
            r#"{"t_ns":12300000000,"job":"rand-read","ops_per_s":413000.0,"bytes_per_s":1690000000.0,"p99_ns":131000,"in_flight":32,"errors":0,"done_fraction":0.413}"#
        );
    }

    #[test]
    fn a_full_bar_has_ten_cells_and_hours_their_own_field() {
        assert_eq!(bar(1.0, false), "██████████");
        assert_eq!(bar(0.0, false), "");
        assert_eq!(bar(0.459, false), "████▌");
        assert_eq!(bar(0.459, true), "####-");
        assert_eq!(bar(f64::NAN, false), "");
        assert_eq!(clock(Nanos::from_secs(3_723)), "1:02:03");
    }

    proptest! {
        #[test]
        fn a_line_never_wraps(
            job in "\\PC{0,80}",
            done in proptest::option::of(-1.0..2.0_f64),
            ops in proptest::option::of(0.0..1e12_f64),
            errors: u64,
            width in 1_usize..200,
            ascii: bool,
        ) {
            let snapshot = Snapshot {
                job,
                done_fraction: done,
                ops_per_s: ops.map(Iops),
                errors: Some(errors),
                ..snapshot()
            };
            let style = Style { ascii, ..Style::default() };
            let text = line(&snapshot, width, &style);
            prop_assert!(text.width() <= width, "{} > {width}: {text}", text.width());
            prop_assert!(!ascii || text.is_ascii());
            let log = plain(&snapshot, &style);
            prop_assert!(log.contains(" err"));
            prop_assert!(!log.contains(['\n', '\x1b']));
        }
    }
}

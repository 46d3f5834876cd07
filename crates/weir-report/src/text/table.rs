//! Many jobs as a table, a row each (or a row for each kind); with a knee when they are the
//! points of a sweep.
//!
//! Columns leave a narrow table one after the other; when even the last do not fit, every row
//! becomes a block of keys and values.

use weir_schema::Stage;
use weir_units::{BytesPerSec, Iops, Nanos};

use super::Report;
use super::job::sure;
use crate::color::{Text, Tone};
use crate::entry::{KindSum, ReportEntry};
use crate::layout::{INDENT, LayoutRow, RowItem};
use crate::number_format::{brief, significant};
use crate::sweep::{Knee, Sweep};

/// Names longer than this share of the width have a line of their own.
const LONG_NAME: usize = 3;

struct Column {
    title: String,
    cells: Vec<Text>,
    left: bool,
    /// Columns of the screen, once all cells are known.
    width: usize,
    /// Columns with the highest number leave first; 0 stays.
    leaves: usize,
}

impl Column {
    fn new<'e, 'a>(
        title: &str,
        leaves: usize,
        lines: &[Line<'e, 'a>],
        cell: impl Fn(&Line<'e, 'a>) -> Text,
    ) -> Self {
        Self {
            title: title.to_owned(),
            cells: lines.iter().map(cell).collect(),
            left: false,
            width: 0,
            leaves,
        }
    }
}

/// One row: an entry and one of its kinds; an entry that never ran has a row without kind.
type Line<'e, 'a> = (usize, &'e ReportEntry<'a>, Option<&'e KindSum>);

impl Report<'_> {
    pub(super) fn table(&mut self, entries: &[ReportEntry<'_>]) {
        let sweep = Sweep::of(entries);
        let knee = sweep.knee(entries);
        self.table_title(entries, &sweep);
        let lines: Vec<Line<'_, '_>> = entries
            .iter()
            .enumerate()
            .flat_map(|(i, e)| {
                let none = e.kinds.is_empty().then_some((i, e, None));
                e.kinds.iter().map(move |k| (i, e, Some(k))).chain(none)
            })
            .collect();
        let columns = self.columns(&lines, &sweep);
        self.print(&lines, columns, knee.as_ref());
        if let Some(knee) = &knee {
            self.knee(knee, &sweep);
        }
        for (i, entry) in entries.iter().enumerate() {
            self.named_metrics(entry);
            self.problems(entry, i, Some(entry.name()));
            if entries
                .get(i + 1)
                .is_none_or(|next| next.group != entry.group)
            {
                self.group(entries, entry.group);
            }
        }
    }

    fn table_title(&mut self, entries: &[ReportEntry<'_>], sweep: &Sweep) {
        let mut parts = sweep.common.clone();
        let times: Vec<f64> = entries
            .iter()
            .filter_map(ReportEntry::time)
            .map(Nanos::as_secs_f64)
            .collect();
        let (least, most) = times
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(a, b), t| (a.min(*t), b.max(*t)));
        if times.len() == entries.len() && most <= least * 1.01 {
            let each = if sweep.parameter.is_some() {
                "a point"
            } else {
                "each"
            };
            let time = Nanos::from_secs_f64(most).unwrap_or_default();
            parts.push(format!("{time} {each}"));
        }
        let name = match sweep.parameter {
            Some(_) => "sweep".to_owned(),
            None => format!("{} jobs", entries.len()),
        };
        let parts: Vec<Text> = parts.into_iter().map(Text::from).collect();
        let lead = Text::new(Tone::Strong, name).and(Tone::Plain, "   ");
        self.layout.list(lead, INDENT, &parts);
    }

    fn columns(&self, lines: &[Line<'_, '_>], sweep: &Sweep) -> Vec<Column> {
        let numbers = self.numbers;
        let iops = |l: &Line<'_, '_>| Some(numbers.iops_bare(l.1.iops(l.2?)?));
        let bandwidth = |l: &Line<'_, '_>| l.1.bandwidth(l.2?).map(|r| r.0);
        let unit = numbers.rate_unit(
            lines.iter().filter_map(bandwidth).fold(0.0, f64::max),
            "B/s",
        );
        let errors = |l: &Line<'_, '_>| l.2.map_or(0, |k| k.sum.errors.values().sum());
        let mut columns = name_columns(lines, sweep);
        columns.push(Column::new("rate", 0, lines, |l| {
            Text::new(Tone::Strong, iops(l).unwrap_or_default())
        }));
        columns.push(Column::new(&unit.name, 0, lines, |l| {
            bandwidth(l).map(|r| unit.print(r)).into()
        }));
        columns.push(Column::new("±", 3, lines, |l| {
            l.2.and_then(|k| sure(l.1.confidence(k))?.ok()).into()
        }));
        columns.extend(self.percentile_columns(lines));
        columns.push(Column::new("in fl.", 6, lines, |l| {
            l.1.in_flight().map(|n| significant(n, 3)).into()
        }));
        columns.push(Column::new("CPU", 7, lines, |l| {
            l.1.cores()
                .map(|(user, system)| brief(user + system))
                .into()
        }));
        if lines.iter().any(|l| errors(l) > 0) {
            columns.push(Column::new("errors", 0, lines, |l| {
                let tone = if errors(l) > 0 {
                    Tone::Bad
                } else {
                    Tone::Plain
                };
                Text::new(tone, numbers.count(errors(l)))
            }));
        }
        columns.retain(|c| c.cells.iter().any(|cell| !cell.is_empty()));
        for column in &mut columns {
            column.width = self.column_width(column);
        }
        columns
    }

    /// The shown percentiles without p90, which a table leaves out of the usual ones.
    fn percentile_columns(&self, lines: &[Line<'_, '_>]) -> Vec<Column> {
        let mut shown = self.style.shown_percentiles();
        if self.style.percentiles.is_none() {
            shown.retain(|p| (p.0 - 90.0).abs() > 1e-9);
        }
        // p99 (or, without it, the first) stays to the end; p50 outlives higher ones.
        let stays = shown
            .iter()
            .position(|p| (p.0 - 99.0).abs() < 1e-9)
            .unwrap_or(0);
        let column = |(i, percent): (usize, &weir_units::Percent)| {
            let leaves = match percent.0 {
                _ if i == stays => 0,
                p if p <= 50.0 => 2,
                p if p < 99.95 => 4,
                _ => 5,
            };
            Column::new(&format!("p{}", percent.0), leaves, lines, |line| {
                let stages = [Stage::Rlat, Stage::Lat, Stage::Clat];
                let measured = line
                    .2
                    .and_then(|k| stages.into_iter().find_map(|s| k.stage(s)));
                measured
                    .and_then(|h| self.percentile(h, percent.0))
                    .unwrap_or_default()
            })
        };
        shown.iter().enumerate().map(column).collect()
    }

    fn print(&mut self, lines: &[Line<'_, '_>], mut columns: Vec<Column>, knee: Option<&Knee>) {
        // A mark, the columns, and two blanks between them.
        while columns.iter().map(|c| c.width + 2).sum::<usize>() > self.style.width {
            let widest = columns.iter().enumerate().max_by_key(|(_, c)| c.leaves);
            match widest.filter(|(_, c)| c.leaves > 0).map(|(i, _)| i) {
                Some(i) => drop(columns.remove(i)),
                None => return self.blocks(&columns, lines.len()),
            }
        }
        let titles = columns.iter().map(|c| Text::from(&*c.title)).collect();
        self.print_line(&columns, titles, false);
        for (row, line) in lines.iter().enumerate() {
            let mut cells: Vec<Text> = columns.iter().map(|c| c.cells[row].clone()).collect();
            if let Some(name) = cells.first_mut().filter(|c| self.is_long(c)) {
                let words = std::mem::take(name).words().into_iter().enumerate();
                self.layout
                    .flow("  ", 4, words.map(|(i, word)| (usize::from(i > 0), word)));
            }
            self.print_line(&columns, cells, knee.is_some_and(|k| k.entry == line.0));
        }
    }

    /// A name that has a line of its own, so that it does not widen its column.
    fn is_long(&self, name: &Text) -> bool {
        self.layout.columns(name) > (self.style.width / LONG_NAME).max(INDENT)
    }

    fn column_width(&self, column: &Column) -> usize {
        let title = Text::from(&*column.title);
        let cells = column
            .cells
            .iter()
            .filter(|c| !self.is_long(c))
            .chain([&title]);
        cells.map(|c| self.layout.columns(c)).max().unwrap_or(0)
    }

    fn print_line(&mut self, columns: &[Column], cells: Vec<Text>, is_knee: bool) {
        let mut line = Text::new(Tone::Strong, if is_knee { ">" } else { " " });
        let mut gap = 1;
        for (column, cell) in columns.iter().zip(cells) {
            let missing = column.width.saturating_sub(self.layout.columns(&cell));
            let (before, after) = if column.left {
                (0, missing)
            } else {
                (missing, 0)
            };
            line = line.and(Tone::Plain, " ".repeat(gap + before)).join(cell);
            gap = 2 + after;
        }
        self.layout.flow("", 0, [(0, line)]);
    }

    /// A block of keys and values for each row.
    fn blocks(&mut self, columns: &[Column], rows: usize) {
        for row in 0..rows {
            let item = |c: &Column| RowItem::keyed(&*c.title, c.cells[row].clone());
            self.row(LayoutRow::new("", columns.iter().map(item).collect()));
        }
    }

    fn knee(&mut self, knee: &Knee, sweep: &Sweep) {
        let (Some(parameter), Some(point)) = (sweep.parameter, sweep.points.get(knee.entry)) else {
            return;
        };
        let best = if knee.bytes {
            self.numbers.bandwidth(BytesPerSec(knee.best))
        } else {
            self.numbers.iops(Iops(knee.best))
        };
        let text = format!(
            "knee: {parameter} {} is the first point with 95 % of the best rate ({best})",
            point.cell
        );
        self.layout.prose("  ", 4, &text);
    }
}

/// The parameter of a sweep or the job's name, and the kind where a job has several.
fn name_columns(lines: &[Line<'_, '_>], sweep: &Sweep) -> Vec<Column> {
    let mut columns = Vec::new();
    if let Some(parameter) = sweep.parameter {
        let column = Column::new(parameter, 0, lines, |line| {
            sweep.points.get(line.0).map(|p| p.cell.clone()).into()
        });
        let left = sweep.points.iter().any(|p| p.number.is_none());
        columns.push(Column { left, ..column });
    } else {
        let column = Column::new("job", 0, lines, |l| Text::new(Tone::Strong, l.1.name()));
        columns.push(Column {
            left: true,
            ..column
        });
    }
    if lines.iter().any(|l| l.1.kinds.len() > 1) {
        let column = Column::new("kind", 0, lines, |l| {
            l.2.map_or("", |k| k.name.as_str()).into()
        });
        columns.push(Column {
            left: true,
            ..column
        });
    }
    columns
}

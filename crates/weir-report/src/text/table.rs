//! Many jobs as a table, a row each (or a row for each kind); with a knee when they are the
//! points of a sweep.
//!
//! Columns leave a narrow table one after the other; when even the last do not fit, every row
//! becomes a block of keys and values.

use weir_schema::Stage;
use weir_units::{BytesPerSec, Iops, Nanos};

use super::Report;
use super::sweep::{Knee, Sweep};
use crate::entry::{Entry, KindSum};
use crate::figures::{brief, significant};
use crate::paper::{INDENT, Item, Row, Text, Tone};

/// Names longer than this share of the width have a line of their own.
const LONG_NAME: usize = 3;

struct Column {
    title: String,
    cells: Vec<Text>,
    left: bool,
    /// Columns with the highest number leave first; 0 stays.
    leaves: usize,
}

/// One row: an entry and one of its kinds; an entry that never ran has a row without kind.
type Line<'e, 'a> = (usize, &'e Entry<'a>, Option<&'e KindSum>);

impl Report<'_> {
    pub(super) fn table(&mut self, entries: &[Entry<'_>]) {
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
            let first = entries.iter().position(|e| e.name() == entry.name()) == Some(i);
            self.ending(entry, Some(entry.name()), first);
            if entries.get(i + 1).is_none_or(|next| next.group != entry.group) {
                self.group(entries, entry.group);
            }
        }
    }

    fn table_title(&mut self, entries: &[Entry<'_>], sweep: &Sweep) {
        let mut parts = sweep.common.clone();
        let times: Vec<f64> =
            entries.iter().filter_map(|e| e.time()).map(Nanos::as_secs_f64).collect();
        let (least, most) =
            times.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), t| (a.min(*t), b.max(*t)));
        if times.len() == entries.len() && most <= least * 1.01 {
            let each = if sweep.parameter.is_some() { "a point" } else { "each" };
            let time = Nanos::from_secs_f64(most).unwrap_or_default();
            parts.push(format!("{time} {each}"));
        }
        let name = match sweep.parameter {
            Some(_) => "sweep".to_owned(),
            None => format!("{} jobs", entries.len()),
        };
        let parts: Vec<Text> = parts.into_iter().map(Text::from).collect();
        let lead = Text::new(Tone::Strong, name).and(Tone::Plain, "   ");
        self.paper.list(lead, INDENT, &parts);
    }

    fn columns(&self, lines: &[Line<'_, '_>], sweep: &Sweep) -> Vec<Column> {
        let figures = self.figures;
        let text = |t: Option<String>| t.map_or(Text::default(), Text::from);
        let column = |title: &str, leaves, cell: &dyn Fn(&Line<'_, '_>) -> Text| Column {
            title: title.to_owned(),
            cells: lines.iter().map(cell).collect(),
            left: false,
            leaves,
        };
        let first = match sweep.parameter {
            Some(parameter) => {
                let number = sweep.points.iter().all(|p| p.number.is_some());
                let cell = |line: &Line<'_, '_>| {
                    sweep.points.get(line.0).map_or(Text::default(), |p| p.cell.as_str().into())
                };
                Column { left: !number, ..column(parameter, 0, &cell) }
            }
            None => Column { left: true, ..column("job", 0, &|l| Text::new(Tone::Strong, l.1.name())) },
        };
        let mut columns = vec![first];
        if lines.iter().any(|l| l.1.kinds.len() > 1) {
            let kind = column("kind", 0, &|l| l.2.map_or("", |k| k.name).into());
            columns.push(Column { left: true, ..kind });
        }
        let iops = |l: &Line<'_, '_>| l.1.iops(l.2?);
        let bandwidth = |l: &Line<'_, '_>| l.1.bandwidth(l.2?).map(|r| r.0);
        let strong = |t: Option<String>| Text::new(Tone::Strong, t.unwrap_or_default());
        columns.push(column("rate", 0, &|l| strong(iops(l).map(|r| figures.iops_bare(r)))));
        let most = lines.iter().filter_map(bandwidth).fold(0.0, f64::max);
        let unit = figures.rate_unit(most, "B/s");
        columns.push(column(&unit.name, 0, &|l| text(bandwidth(l).map(|r| unit.print(r)))));
        columns.push(column("±", 3, &|l| text(l.2.map(|kind| sure(l.1, kind)))));
        columns.extend(self.percentile_columns(lines));
        columns.push(column("in fl.", 6, &|l| text(l.1.in_flight().map(|n| significant(n, 3)))));
        let cores = |l: &Line<'_, '_>| l.1.cores().map(|(user, system)| brief(user + system));
        columns.push(column("CPU", 7, &|l| text(cores(l))));
        if lines.iter().any(|l| l.1.errors() > 0) {
            columns.push(column("errors", 0, &|l| {
                let errors = l.2.map_or(0, |k| k.errors.values().sum());
                let tone = if errors > 0 { Tone::Bad } else { Tone::Plain };
                Text::new(tone, figures.count(errors))
            }));
        }
        columns.retain(|c| c.cells.iter().any(|cell| self.paper.columns(cell) > 0));
        columns
    }

    /// The shown percentiles without p90, which a table leaves out of the usual ones.
    fn percentile_columns(&self, lines: &[Line<'_, '_>]) -> Vec<Column> {
        let mut shown = self.style.shown_percentiles();
        if self.style.percentiles.is_none() {
            shown.retain(|p| (p.0 - 90.0).abs() > 1e-9);
        }
        // p99 (or, without it, the first) stays to the end; p50 outlives higher ones.
        let stays = shown.iter().position(|p| (p.0 - 99.0).abs() < 1e-9).unwrap_or(0);
        let column = |(i, percent): (usize, &weir_units::Percent)| {
            let cells = lines.iter().map(|line| {
                let histogram = line.2.and_then(|kind| {
                    [Stage::Rlat, Stage::Lat, Stage::Clat].into_iter().find_map(|s| kind.stage(s))
                });
                histogram.and_then(|h| self.percentile(h, percent.0)).unwrap_or_default()
            });
            let leaves = match percent.0 {
                _ if i == stays => 0,
                p if p <= 50.0 => 2,
                p if p < 99.95 => 4,
                _ => 5,
            };
            Column { title: format!("p{}", percent.0), cells: cells.collect(), left: false, leaves }
        };
        shown.iter().enumerate().map(column).collect()
    }

    fn print(&mut self, lines: &[Line<'_, '_>], mut columns: Vec<Column>, knee: Option<&Knee>) {
        let limit = (self.style.width / LONG_NAME).max(INDENT);
        let own_line: Vec<bool> = columns
            .first()
            .map_or(Vec::new(), |c| c.cells.iter().map(|t| self.paper.columns(t) > limit).collect());
        let mut names = vec![None; lines.len()];
        if let Some(first) = columns.first_mut() {
            for (row, _) in own_line.iter().enumerate().filter(|(_, long)| **long) {
                names[row] = Some(std::mem::take(&mut first.cells[row]));
            }
        }
        while self.width(&columns) > self.style.width {
            let widest = columns.iter().enumerate().max_by_key(|(_, c)| c.leaves);
            match widest.filter(|(_, c)| c.leaves > 0).map(|(i, _)| i) {
                Some(i) => drop(columns.remove(i)),
                None => return self.blocks(lines, &columns, &names),
            }
        }
        let titles = columns.iter().map(|c| Text::from(c.title.as_str())).collect();
        self.print_line(&columns, titles, false);
        for (row, line) in lines.iter().enumerate() {
            if let Some(name) = names[row].take() {
                self.paper.flow("  ", 4, name.words().into_iter().map(|word| (1, word)));
            }
            let is_knee = knee.is_some_and(|k| k.entry == line.0);
            let cells = columns.iter().map(|c| c.cells[row].clone()).collect();
            self.print_line(&columns, cells, is_knee);
        }
    }

    fn column_width(&self, column: &Column) -> usize {
        let title = self.paper.columns(&column.title.as_str().into());
        column.cells.iter().map(|c| self.paper.columns(c)).max().unwrap_or(0).max(title)
    }

    /// The table's width: a mark, the columns, and two blanks between them.
    fn width(&self, columns: &[Column]) -> usize {
        columns.iter().map(|c| self.column_width(c) + 2).sum()
    }

    fn print_line(&mut self, columns: &[Column], cells: Vec<Text>, is_knee: bool) {
        let mut line = Text::new(Tone::Strong, if is_knee { ">" } else { " " });
        let mut gap = 1;
        for (column, cell) in columns.iter().zip(cells) {
            let missing = self.column_width(column).saturating_sub(self.paper.columns(&cell));
            let (before, after) = if column.left { (0, missing) } else { (missing, 0) };
            line = line.and(Tone::Plain, " ".repeat(gap + before)).join(cell);
            gap = 2 + after;
        }
        self.paper.flow("", 0, [(0, line)]);
    }

    /// A block of keys and values for each row.
    fn blocks(&mut self, lines: &[Line<'_, '_>], columns: &[Column], names: &[Option<Text>]) {
        let Some((first, rest)) = columns.split_first() else { return };
        for row in 0..lines.len() {
            let name = names[row].clone().unwrap_or_else(|| first.cells[row].clone());
            let lead = Text::from(format!("  {} ", first.title));
            self.paper.flow(lead, 4, name.words().into_iter().map(|word| (1, word)));
            let items = rest.iter().map(|c| Item::keyed(c.title.as_str(), c.cells[row].clone()));
            self.row(Row::new("", items.collect()));
        }
    }

    fn knee(&mut self, knee: &Knee, sweep: &Sweep) {
        let (Some(parameter), Some(point)) = (sweep.parameter, sweep.points.get(knee.entry)) else {
            return;
        };
        let best = if knee.bytes {
            self.figures.bandwidth(BytesPerSec(knee.best))
        } else {
            self.figures.iops(Iops(knee.best))
        };
        let text = format!(
            "knee: {parameter} {} is the first point with 95 % of the best rate ({best})",
            point.cell
        );
        self.paper.prose("  ", 4, &text);
    }
}

/// Half the interval of the rate in percent.
fn sure(entry: &Entry<'_>, kind: &KindSum) -> String {
    let rate = entry.confidence(kind).map(|c| c.ops_per_s);
    match rate.and_then(|r| Some((r.half_width()?, r.value))) {
        Some((half, value)) if value > 0.0 => format!("{} %", brief(100.0 * half / value)),
        _ => "?".into(),
    }
}

//! Matrix of callers and called endpoints: the figures of each pair while no other was called.
//!
//! In: the matrices of a job, of the first result that has some. Out: a picture for each figure. A cell is
//! the stronger the higher its value is above the lowest; the table has the values.

use weir_schema::{PairFigure, PairMatrix, pair_matrices};

use super::JobAcross;
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{
    Detail, HeatColumn, HeatMap, HeatPanel, Plot, PlotBody, PlotTable, count, whole,
};

pub(super) fn matrices(job: &JobAcross<'_, '_>) -> Vec<Plot> {
    let of = job
        .runs
        .iter()
        .map(|(_, entry)| match (entry.plan, entry.jobs.first()) {
            (Some(plan), Some(done)) => pair_matrices(plan, done),
            _ => Vec::new(),
        });
    let mut found = of.filter(|matrices| !matrices.is_empty());
    found.next().iter().flatten().filter_map(plot).collect()
}

fn plot(matrix: &PairMatrix) -> Option<Plot> {
    let (name, what, unit) = match matrix.figure {
        PairFigure::Latency => ("pair-latency", "Latency", AxisUnit::Seconds),
        PairFigure::Bandwidth => ("pair-bandwidth", "Bandwidth", AxisUnit::BytesPerSecond),
        PairFigure::Throughput => ("pair-throughput", "Throughput", AxisUnit::OpsPerSecond),
    };
    let values = || matrix.cells.iter().flatten().flatten().copied();
    let lowest = values().min_by(f64::total_cmp).filter(|low| *low > 0.0)?;
    let highest = values().max_by(f64::total_cmp)?;
    let columns = (0..matrix.columns.len()).map(|column| HeatColumn {
        from: count(column),
        to: count(column + 1),
        cells: of_column(matrix, column, lowest),
    });
    let names = |names: &[String]| {
        names
            .iter()
            .enumerate()
            .map(|(at, _)| count(at + 1))
            .collect()
    };
    let (across, down): (Vec<f64>, Vec<f64>) = (names(&matrix.columns), names(&matrix.rows));
    let axis = |name, ends: &[f64]| {
        PlotAxis::linear(name, AxisUnit::Other(String::new()), ends.iter().copied())
    };
    let map = HeatMap {
        x: axis("who is called, by place", &across),
        y: axis("who calls, by place", &down),
        edges: (0..=matrix.rows.len()).map(count).collect(),
        panels: vec![HeatPanel {
            name: what.to_owned(),
            columns: columns.collect(),
            shades: Vec::new(),
        }],
    };
    let (low, high) = (unit.print(lowest), unit.print(highest));
    Some(Plot {
        name: name.into(),
        title: format!("{what} of each pair"),
        caption: format!("{what} of each pair: from {low} to {high}, the stronger the higher."),
        table: table(matrix, &unit),
        body: PlotBody::Pairs(map),
        detail: Detail::Members,
    })
}

/// By how many thousandths of the lowest each is above it.
fn of_column(matrix: &PairMatrix, column: usize, lowest: f64) -> Vec<(usize, u64)> {
    let cell = |(row, cells): (usize, &Vec<Option<f64>>)| {
        let above = (*cells.get(column)?)? / lowest - 1.0;
        Some((row, 1 + whole(above * 1000.0) as u64))
    };
    matrix.cells.iter().enumerate().filter_map(cell).collect()
}

fn table(matrix: &PairMatrix, unit: &AxisUnit) -> PlotTable {
    let head = [String::new()].into_iter().chain(matrix.columns.clone());
    let cell = |value: &Option<f64>| value.map_or_else(String::new, |value| unit.print(value));
    let rows = matrix.rows.iter().zip(&matrix.cells).map(|(name, cells)| {
        let cells = cells.iter().map(cell);
        [name.clone()].into_iter().chain(cells).collect()
    });
    PlotTable {
        head: head.collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_by_caller_and_called_and_grow_with_the_value() {
        let names = || ["0:0", "1:0"].map(str::to_owned).to_vec();
        let matrix = PairMatrix {
            figure: PairFigure::Latency,
            rows: names(),
            columns: names(),
            cells: vec![vec![None, Some(20e-6)], vec![Some(10e-6), Some(15e-6)]],
        };
        let plot = plot(&matrix).unwrap();
        let PlotBody::Pairs(map) = &plot.body else {
            panic!("{plot:?}")
        };
        let columns = &map.panels[0].columns;
        assert_eq!(columns[0].cells, [(1, 1)]);
        assert_eq!(columns[1].cells[0], (0, 1001));
        assert_eq!(plot.table.rows[0][0], "0:0");
        assert!(plot.caption.contains("from 10"), "{}", plot.caption);
    }
}

//! Results as CSV: a row for each kind of operation of each job, in ns, bytes and operations.
//!
//! In: results with their labels. Out: RFC 4180 with line feeds; what is missing is empty. Not here:
//! headline figures that are not of a kind of operation, which JSON has.

use weir_schema::Stage;
use weir_stats::Histogram;

use crate::entry::{KindSum, ReportEntry};
use crate::number_format::date;
use crate::phrases::aspects;
use crate::plot::{LabelledResult, PlottedRun};

const HEAD: &str = "run_id,time_utc,label,group,job,kind,workers,block_bytes,queue_depth,operations,\
bytes,duration_ns,ops_per_s,bytes_per_s,ops_per_s_low,ops_per_s_high,lat_mean_ns,lat_min_ns,\
lat_p50_ns,lat_p90_ns,lat_p99_ns,lat_p999_ns,lat_p9999_ns,lat_max_ns,errors,complete,warnings";
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

/// The head and the rows, each line ended.
pub fn csv(results: &[LabelledResult<'_>]) -> String {
    let mut out = format!("{HEAD}\n");
    for run in &PlottedRun::all(results) {
        for entry in &run.entries {
            for kind in &entry.kinds {
                let cells = row(run, entry, kind).map(|cell| quoted(&cell));
                out += &cells.join(",");
                out.push('\n');
            }
        }
    }
    out
}

fn row(run: &PlottedRun<'_>, entry: &ReportEntry<'_>, kind: &KindSum) -> [String; 27] {
    let result = run.result;
    let text = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
    let rate = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.3}"));
    let block = entry.plan.and_then(|plan| {
        let aspects = aspects(plan, entry.workers.len().max(1));
        aspects.iter().find(|a| a.name == "block")?.number
    });
    let depth = entry.plan.and_then(|plan| plan.workload.load());
    let sure = entry.confidence(kind).map(|c| c.ops_per_s);
    let stages = [Stage::Rlat, Stage::Lat, Stage::Clat];
    let latency = stages.into_iter().find_map(|stage| kind.stage(stage));
    let [p50, p90, p99, p999, p9999, max] =
        PERCENTILES.map(|p| text(latency.and_then(|h| h.percentile(p))));
    let errors: u64 = kind.sum.errors.values().sum();
    let is_its = |job: &Option<String>| job.as_deref().is_none_or(|job| job == entry.name());
    let warnings = result.warnings.iter().filter(|w| is_its(&w.job));
    let warnings: Vec<&str> = warnings.map(|w| w.id.as_str()).collect();
    [
        result.started_unix_ns.to_string(),
        date(result.started_unix_ns)
            .replacen(' ', "T", 1)
            .replace(" UTC", "Z"),
        run.label.to_owned(),
        entry.group.to_string(),
        entry.name().to_owned(),
        kind.name.clone(),
        entry.workers.len().to_string(),
        block.map_or_else(String::new, |b| format!("{b:.0}")),
        text(depth.map(|load| u64::from(load.depth.queue_depth.0))),
        kind.sum.operations.to_string(),
        kind.sum.bytes.0.to_string(),
        text(entry.time().map(|time| time.0)),
        rate(entry.iops(kind).map(|r| r.0)),
        rate(entry.bandwidth(kind).map(|r| r.0)),
        rate(sure.and_then(|s| s.low)),
        rate(sure.and_then(|s| s.high)),
        latency
            .and_then(Histogram::mean)
            .map_or_else(String::new, |ns| format!("{ns:.0}")),
        text(latency.and_then(Histogram::min)),
        p50,
        p90,
        p99,
        p999,
        p9999,
        max,
        errors.to_string(),
        result.complete.to_string(),
        warnings.join(" "),
    ]
}

/// A cell, in quotes where it would be taken for more than one.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_row_has_the_cells_of_the_head() {
        let mut result = sample::two_kinds();
        result.groups[0].jobs[0].name = "a,\"b\"".into();
        let text = csv(&[LabelledResult {
            label: "r".into(),
            result: &result,
        }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let cells = |line: &str| line.replace("\"a,\"\"b\"\"\"", "a").split(',').count();
        assert_eq!(
            lines.iter().map(|l| cells(l)).collect::<Vec<_>>(),
            [27, 27, 27]
        );
        let start = "1795239012345678901,2026-11-21T05:30:12Z,r,0,\"a,\"\"b\"\"\",read,1,4096,32,";
        assert!(lines[1].starts_with(start), "{}", lines[1]);
        assert!(lines[2].ends_with(",0,true,"), "{}", lines[2]);
    }
}

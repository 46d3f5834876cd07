//! Finding the one parameter in which the jobs of a table differ, and its knee.

use crate::entry::{KindSum, ReportEntry};
use crate::phrases::{Aspect, aspects, title};

/// Common and differing aspects of the entries of a table.
pub(crate) struct Sweep {
    /// The parameter, if there is exactly one and the points ran one after the other.
    pub(crate) parameter: Option<&'static str>,
    /// Its value for each entry.
    pub(crate) points: Vec<Aspect>,
    /// Parts of a title that hold for all.
    pub(crate) common: Vec<String>,
}

/// The smallest parameter that is good enough.
pub(crate) struct Knee {
    pub(crate) entry: usize,
    /// The best rate of all, in bytes or operations per second.
    pub(crate) best: f64,
    /// `best` counts bytes.
    pub(crate) bytes: bool,
}

impl Sweep {
    pub(crate) fn of(entries: &[ReportEntry<'_>]) -> Self {
        let all: Option<Vec<Vec<Aspect>>> = entries
            .iter()
            .map(|e| Some(aspects(e.plan?, e.workers.len().max(1))))
            .collect();
        let Some(all) = all.filter(|all| !all.is_empty()) else {
            return Self {
                parameter: None,
                points: Vec::new(),
                common: Vec::new(),
            };
        };
        let differs = |i: usize| all.iter().any(|a| a[i].cell != all[0][i].cell);
        let differing: Vec<usize> = (0..all[0].len()).filter(|i| differs(*i)).collect();
        let mut shared = all[0].clone();
        for i in &differing {
            shared[*i].title.clear();
        }
        let mut sweep = Self {
            parameter: None,
            points: Vec::new(),
            common: title(&shared),
        };
        if let [only] = differing.as_slice() {
            let points: Vec<Aspect> = all.iter().map(|a| a[*only].clone()).collect();
            let is_own = |p: &Aspect| points.iter().filter(|q| q.cell == p.cell).count() == 1;
            if points.iter().all(is_own) && one_after_the_other(entries) {
                sweep.parameter = Some(points[0].name);
                sweep.points = points;
            }
        }
        sweep
    }

    /// The smallest parameter with 95 % of the best rate. With different block sizes the rate is
    /// in bytes: operations would always favour the smallest.
    pub(crate) fn knee(&self, entries: &[ReportEntry<'_>]) -> Option<Knee> {
        let bytes = self.parameter? == "block";
        let rate = |entry: &ReportEntry<'_>| -> Option<f64> {
            let of = |kind: &KindSum| {
                if bytes {
                    entry.bandwidth(kind).map(|r| r.0)
                } else {
                    entry.iops(kind).map(|r| r.0)
                }
            };
            entry.kinds.iter().filter_map(of).reduce(|a, b| a + b)
        };
        let mut points = Vec::new();
        for (i, (entry, point)) in entries.iter().zip(&self.points).enumerate() {
            points.push((point.number?, rate(entry)?, i));
        }
        let best = points.iter().map(|p| p.1).fold(0.0, f64::max);
        let good = points
            .into_iter()
            .filter(|p| best > 0.0 && p.1 >= 0.95 * best);
        let knee = good.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Knee {
            entry: knee.2,
            best,
            bytes,
        })
    }
}

/// No entry started before an earlier one had ended.
fn one_after_the_other(entries: &[ReportEntry<'_>]) -> bool {
    let mut spans: Vec<_> = entries.iter().filter_map(|e| e.span).collect();
    spans.sort_by_key(|s| s.start_ns);
    spans
        .windows(2)
        .all(|pair| pair[1].start_ns >= pair[0].end_ns)
}

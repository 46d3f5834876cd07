//! Idleness of the CPUs during a run, as fio 3.33 reports it after everything else.
//!
//! In: shares and a unit of work. Out: lines of the normal report, an object of the JSON one. Not
//! here: measuring.

use serde_json::{Map, Value};

/// Idleness of the CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Idleness {
    /// In percent, all CPUs together; nothing where only the unit was measured.
    pub system: Option<f64>,
    /// In percent, by the CPU's number; empty unless asked for.
    pub cpus: Vec<(u32, f64)>,
    /// Length of a unit of work, microseconds.
    pub unit_mean_us: f64,
    /// Its standard deviation.
    pub unit_deviation_us: f64,
}

impl Idleness {
    /// The lines of the normal report.
    pub fn text(&self) -> String {
        let mut out = String::from("\nCPU idleness:\n");
        if let Some(system) = self.system {
            push!(out, "  system: {system:3.2}%\n");
        }
        if !self.cpus.is_empty() {
            let each: Vec<String> = self.cpus.iter().map(|(_, p)| format!("{p:3.2}%")).collect();
            push!(out, "  percpu: {}\n", each.join(", "));
        }
        let (mean, deviation) = (self.unit_mean_us, self.unit_deviation_us);
        push!(
            out,
            "  unit work: mean={mean:3.2}us, stddev={deviation:3.2}\n"
        );
        out
    }

    pub(super) fn object(&self) -> Map<String, Value> {
        let system = self.system.map(|p| ("system".to_owned(), p.into()));
        let cpus = self.cpus.iter();
        let unit = [
            ("unit_mean".to_owned(), self.unit_mean_us.into()),
            ("unit_stddev".to_owned(), self.unit_deviation_us.into()),
        ];
        system
            .into_iter()
            .chain(cpus.map(|(n, p)| (format!("cpu-{n}"), (*p).into())))
            .chain(unit)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_has_fios_lines_and_keys() {
        let both = Idleness {
            system: Some(4.376),
            cpus: vec![(0, 7.4), (1, 1.36)],
            unit_mean_us: 31.52,
            unit_deviation_us: 5.26,
        };
        assert_eq!(
            both.text(),
            "\nCPU idleness:\n  system: 4.38%\n  percpu: 7.40%, 1.36%\n  \
             unit work: mean=31.52us, stddev=5.26\n"
        );
        let keys: Vec<String> = both.object().keys().cloned().collect();
        assert_eq!(
            keys,
            ["system", "cpu-0", "cpu-1", "unit_mean", "unit_stddev"]
        );
        let unit = Idleness::default().text();
        assert_eq!(
            unit,
            "\nCPU idleness:\n  unit work: mean=0.00us, stddev=0.00\n"
        );
    }
}

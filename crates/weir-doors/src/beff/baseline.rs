//! A stored result that this one is compared with.
//!
//! In: the text that `--dump-json` stored, of weir or of the peer. Out: a [`Baseline`]; beside a
//! result a [`Comparison`]. The text is a stranger's: what does not fit is refused or absent.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::{Map, Value as Json};
use weir_schema::{Plan, SizeFigures};

use super::comm::spelling_of;
use super::first_exchange;
use super::output::{NAME, SCHEMA};

/// No message is longer than two to this power.
const LARGEST: u8 = 63;

/// Bytes per second that something can have. Their sums and quotients are numbers.
const RATES: RangeInclusive<f64> = 1e-9..=1e21;

/// A stored result to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// File of the result.
    pub file: String,
    /// Bytes per second by exponent.
    sizes: BTreeMap<u8, f64>,
    /// Settings of the measurement that the file names: name and value.
    settings: Vec<(&'static str, String)>,
    complete: bool,
}

impl Baseline {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The error in the text.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let json: Json =
            weir_schema::json::read(text).map_err(|e| format!("it is not JSON: {e}"))?;
        let own = &json["weir"];
        if !own.is_null() && own["schema"] != SCHEMA {
            let schema = own["schema"].as_str().unwrap_or("none");
            return Err(format!("its schema is {schema}; expected {SCHEMA}"));
        }
        if json["name"].as_str().is_some_and(|name| name != NAME) {
            return Err(format!(
                "it is a result of {}; expected {NAME}",
                json["name"]
            ));
        }
        let Some(timings) = json["timings"].as_object() else {
            return Err("it has no `timings`; expected what --dump-json stores".to_owned());
        };
        let sizes = sizes(timings)?;
        if sizes.is_empty() {
            return Err("no size was measured in it".to_owned());
        }
        Ok(Self {
            file: file.to_owned(),
            sizes,
            settings: settings(&json),
            complete: own["complete"] != false,
        })
    }

    /// Settings in which a run of this plan differs from the baseline.
    pub fn differences(&self, plan: &Plan) -> Vec<String> {
        let here = of_plan(plan);
        let mut out = Vec::new();
        for (name, there) in &self.settings {
            let here = here.iter().find(|(n, _)| n == name);
            if let Some((_, here)) = here.filter(|(_, here)| here != there) {
                out.push(format!("{}: {name} {there}, here {here}", self.file));
            }
        }
        if !self.complete {
            out.push(format!("{}: the run ended early", self.file));
        }
        out
    }

    /// Beside these figures.
    pub(super) fn beside(&self, figures: &[SizeFigures]) -> Comparison {
        let both: Vec<(f64, f64)> = figures
            .iter()
            .filter_map(|f| Some((f.bytes_per_s, *self.sizes.get(&f.exponent)?)))
            .collect();
        let here = |exponent: &u8| figures.iter().any(|f| f.exponent == *exponent);
        let missing = self.sizes.keys().copied().filter(|e| !here(e)).collect();
        let common = u32::try_from(both.len()).unwrap_or(u32::MAX);
        let mean = |sum: f64| sum / f64::from(common);
        let there = mean(both.iter().map(|(_, there)| there).sum());
        let here = mean(both.iter().map(|(here, _)| here).sum());
        Comparison {
            sizes: self.sizes.clone(),
            common,
            missing,
            all: both.len() == figures.len() && both.len() == self.sizes.len(),
            effective: (common > 0).then_some((there, here / there)),
        }
    }
}

/// A result beside another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    sizes: BTreeMap<u8, f64>,
    /// Sizes that both have.
    pub(super) common: u32,
    /// Exponents that the other alone has.
    pub(super) missing: Vec<u8>,
    /// Both have the same sizes.
    pub(super) all: bool,
    /// The baseline's mean over the common sizes, and this result's share of it.
    pub(super) effective: Option<(f64, f64)>,
}

impl Comparison {
    /// The baseline's bytes per second, and this result's share of it; `None` where the baseline lacks the
    /// size.
    pub(super) fn of(&self, row: &SizeFigures) -> Option<(f64, f64)> {
        let there = *self.sizes.get(&row.exponent)?;
        Some((there, row.bytes_per_s / there))
    }
}

/// Reads the sizes. One whose bandwidth is no positive number counts as missing.
fn sizes(timings: &Map<String, Json>) -> Result<BTreeMap<u8, f64>, String> {
    let mut out = BTreeMap::new();
    for (key, entry) in timings {
        let exponent = key.parse::<u8>().ok().filter(|e| *e <= LARGEST);
        let exponent = exponent.ok_or_else(|| {
            format!("`timings` has the key `{key}`; expected exponents from 0 to {LARGEST}")
        })?;
        let rate = entry["maxCalcBW"].as_f64();
        if let Some(rate) = rate.filter(|rate| rate.is_finite() && *rate > 0.0) {
            if !RATES.contains(&rate) {
                return Err(format!(
                    "`maxCalcBW` of `{key}` is {rate:e}; expected bytes per second from {:e} to {:e}",
                    RATES.start(),
                    RATES.end()
                ));
            }
            out.insert(exponent, rate);
        }
    }
    Ok(out)
}

/// Settings of the measurement. The type of communication is `false` in the peer's JSON, by accident, and the
/// method is missing there.
fn settings(json: &Json) -> Vec<(&'static str, String)> {
    let peers = &json["settings"];
    let own = &json["weir"];
    let text = |value: &Json| value.as_str().map(str::to_owned);
    let number = |value: &Json| value.as_u64().map(|n| n.to_string());
    let all = [
        ("transport", text(&own["transport"])),
        ("comm-type", text(&peers["Communication Type"])),
        ("ranks", number(&peers["MPI Ranks"])),
        ("replications", number(&peers["Kernel Replications"])),
        ("method", text(&own["method"])),
    ];
    let known = all.into_iter();
    let mut known: Vec<_> = known.filter_map(|(name, v)| Some((name, v?))).collect();
    if known.iter().any(|(name, _)| *name == "transport") {
        // The peer has one name for several of them.
        known.retain(|(name, _)| *name != "comm-type");
    }
    known
}

fn of_plan(plan: &Plan) -> Vec<(&'static str, String)> {
    let Some((_, job, work)) = first_exchange(plan) else {
        return Vec::new();
    };
    let ranks = plan.ranks.map_or(1, |r| r.count);
    // A word of the schema always has a JSON form.
    let method = weir_schema::json::value(&work.method).unwrap_or_default();
    vec![
        ("transport", job.engine.name.clone()),
        ("comm-type", spelling_of(job)),
        ("ranks", ranks.to_string()),
        ("replications", work.replications.to_string()),
        ("method", method.as_str().unwrap_or_default().to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = r#"{"timings": {"3": {"maxCalcBW": 2e6}, "4": {"maxCalcBW": null}}}"#;

    fn figures(rates: &[(u8, f64)]) -> Vec<SizeFigures> {
        let one = |&(exponent, bytes_per_s): &(u8, f64)| SizeFigures {
            exponent,
            bytes_per_s,
            loop_length: 1,
            bytes: 1.0,
            time_s: 1.0,
            min_max_time_s: 1.0,
            max_max_time_s: 1.0,
            mean_bytes_per_s: 1.0,
            p50_s: 1.0,
            p95_s: 1.0,
            deviation_s: None,
            cov: None,
            usec_per_message: 1.0,
        };
        rates.iter().map(one).collect()
    }

    #[test]
    fn the_plain_keys_of_the_peer_suffice() {
        let baseline = Baseline::read("o.json", PLAIN).unwrap();
        assert_eq!(baseline.sizes, BTreeMap::from([(3, 2e6)]));
        assert!(baseline.settings.is_empty() && baseline.complete);
    }

    #[test]
    fn means_are_of_the_sizes_that_both_have() {
        let text = r#"{"timings": {"3": {"maxCalcBW": 2e6}, "4": {"maxCalcBW": 4e6},
                                   "9": {"maxCalcBW": 1e9}}}"#;
        let baseline = Baseline::read("o.json", text).unwrap();
        let here = figures(&[(2, 1e6), (3, 1e6), (4, 5e6)]);
        let beside = baseline.beside(&here);
        assert_eq!((beside.common, beside.all), (2, false));
        assert_eq!(beside.missing, [9]);
        assert_eq!(beside.effective, Some((3e6, 1.0)));
        assert_eq!(beside.of(&here[0]), None);
        assert_eq!(beside.of(&here[1]), Some((2e6, 0.5)));
        assert_eq!(baseline.beside(&here[..1]).effective, None);
        let same = figures(&[(9, 5e8), (4, 4e6), (3, 2e6)]);
        assert!(baseline.beside(&same).all);
    }

    #[test]
    fn what_is_no_stored_result_is_refused() {
        for (text, expected) in [
            ("", "it is not JSON"),
            ("[]", "it has no `timings`"),
            ("{\"timings\": 3}", "it has no `timings`"),
            ("{\"timings\": {}}", "no size was measured in it"),
            (
                "{\"timings\": {\"64 B\": {}}}",
                "`timings` has the key `64 B`; expected exponents from 0 to 63",
            ),
            (
                "{\"name\": \"STREAM\", \"timings\": {}}",
                "it is a result of \"STREAM\"",
            ),
            (
                "{\"weir\": {\"schema\": \"weir.beff.v9\"}, \"timings\": {}}",
                "its schema is weir.beff.v9; expected weir.beff.v1",
            ),
            (
                "{\"timings\": {\"3\": {\"maxCalcBW\": -1}}}",
                "no size was measured in it",
            ),
            (
                "{\"timings\": {\"3\": {\"maxCalcBW\": 1e308}}}",
                "`maxCalcBW` of `3` is 1e308; expected bytes per second from 1e-9 to 1e21",
            ),
            (
                "{\"timings\": {\"3\": {\"maxCalcBW\": 1e-300}}}",
                "`maxCalcBW` of `3` is 1e-300",
            ),
        ] {
            let why = Baseline::read("o.json", text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}

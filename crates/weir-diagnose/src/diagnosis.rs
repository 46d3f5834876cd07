//! From what was recorded to a diagnosis, as plain data.
//!
//! In: the tables of a side, [`PathContext`]. Out: a [`Diagnosis`]: the reference's finding, every rule with its state, and the
//! verdict: the first rule that holds and explains the reference's class. Not here: the rules, how it is
//! printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::{PathEvidence, evidence};
use crate::inputs::{HostReport, PcieCounts, PerfCounts};
use crate::reading::Reading;
use crate::reference::{PathClass, ReferenceFinding};
use crate::rules::{RULES, RuleClass, RuleRecord};
use crate::stage_tables::StageTables;
use crate::truth::Truth;

/// Version word of diagnoses.
pub const DIAGNOSIS_SCHEMA: &str = "weir.diagnosis.v1";

/// Records beside a path, and what the user said of it.
#[derive(Clone, Debug, Default)]
pub struct PathContext {
    /// Iterations that were asked for; half of that is the table that counts, the middle one where
    /// nothing says it.
    pub iterations: Option<u32>,
    /// Table that counts, from 1, where that was said.
    pub table: Option<u32>,
    /// Report of the host.
    pub report: Option<HostReport>,
    /// Socket, and memory node, that the path runs on.
    pub socket: Option<u32>,
    /// Counters of the path's process.
    pub perf: Option<PerfCounts>,
    /// Accesses of devices.
    pub pcie: Option<PcieCounts>,
    /// Megabytes (10^6) a second of each memory node.
    pub memory: Option<BTreeMap<u32, f64>>,
    /// Bits a second of the link.
    pub link_bits_per_s: Option<f64>,
    /// Bytes of a frame, without its check sum.
    pub frame_bytes: Option<u32>,
    /// Megabytes (10^6) a second that the memory can move.
    pub triad_mb_per_s: Option<f64>,
}

/// Which side of the link a diagnosis is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosisSide {
    /// The one that recorded it.
    #[default]
    Local,
    /// The other one.
    Remote,
}

impl DiagnosisSide {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
        }
    }
}

/// Result of a diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Always `weir.diagnosis.v1`.
    pub schema: String,
    /// The name of the path's job, where the run had several paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Side of the link that it is of.
    #[serde(default)]
    pub side: DiagnosisSide,
    /// The table that counts, from 1.
    pub table: u32,
    /// Tables of the log.
    pub tables: u32,
    /// Millions of packets a second from end to end.
    pub throughput_mpps: Reading,
    /// Microseconds a packet: `app_tx`, `app_rx`, `disp_tx`, `disp_rx`, `nic_tx`.
    pub completion_us: Vec<Reading>,
    /// Microseconds of these that the first four wait.
    pub stall_us: Vec<Reading>,
    /// Share of the device's reads that missed the cache.
    pub io_read_miss: Reading,
    /// The same of its writes.
    pub io_write_miss: Reading,
    /// Share of loads that missed the last cache.
    pub llc_load_miss: Reading,
    /// The same of stores.
    pub llc_store_miss: Reading,
    /// The critical stage.
    pub critical: Option<String>,
    /// Class of its critical stage.
    pub class: Option<PathClass>,
    /// The rule that explains the class; nothing where none that holds does.
    pub verdict: Option<String>,
    /// Every rule.
    pub rules: Vec<DiagnosisRule>,
    /// Oddities of the records, and assumptions that had to be made.
    pub notes: Vec<String>,
}

/// A rule and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosisRule {
    /// `D1` to `D18`.
    pub id: String,
    /// Name of the rule.
    pub name: String,
    /// The class that it explains; nothing where it says what the figures are worth.
    pub class: Option<String>,
    /// True if it explains the class that was found.
    pub explains: bool,
    /// Advice where it holds.
    pub action: String,
    /// State of the rule.
    #[serde(flatten)]
    pub state: RuleState,
}

/// State of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum RuleState {
    /// It does.
    Holds {
        /// By which figures.
        evidence: String,
        /// `high` where the run itself counted them, else `medium`.
        confidence: String,
    },
    /// It does not.
    DoesNotHold,
    /// A figure is missing.
    NotEvaluated {
        /// The reason.
        reason: String,
    },
}

impl Diagnosis {
    /// Diagnosis of the side that recorded the tables.
    pub fn of(path: &StageTables, beside: &PathContext) -> Self {
        let mut notes = path.notes.clone();
        let at = table_that_counts(path.tables.len(), beside, &mut notes);
        let table = &path.tables[at];
        let finding = ReferenceFinding::of(table);
        notes.extend(finding.notes.iter().cloned());
        notes.extend(beside.perf.iter().flat_map(|perf| perf.notes.clone()));
        let rules = judged(&evidence(path, at, &finding, beside));
        let verdict = rules
            .iter()
            .find(|rule| rule.explains && matches!(rule.state, RuleState::Holds { .. }));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            schema: DIAGNOSIS_SCHEMA.to_owned(),
            job: None,
            side: DiagnosisSide::Local,
            table: count(at + 1),
            tables: count(path.tables.len()),
            throughput_mpps: table.throughput_mpps.clone(),
            io_read_miss: beside.io_read_miss(),
            io_write_miss: beside.io_write_miss(),
            llc_load_miss: beside.llc_load_miss(),
            llc_store_miss: beside.llc_store_miss(),
            critical: finding.critical.map(|(stage, _)| stage.row().to_owned()),
            class: finding.critical.map(|(_, class)| class),
            completion_us: finding.completion_us,
            stall_us: finding.stall_us,
            verdict: verdict.map(|rule| rule.id.clone()),
            rules,
            notes,
        }
    }
}

/// State of each rule, in the order in which verdicts are looked for.
pub(crate) fn judged(evidence: &PathEvidence) -> Vec<DiagnosisRule> {
    let class = evidence.critical.map(|(_, class)| class);
    let (last, others) = RULES
        .split_last()
        .map_or((None, RULES), |(l, o)| (Some(l), o));
    let mut rules: Vec<DiagnosisRule> = others
        .iter()
        .map(|rule| of_rule(rule, (rule.test)(evidence), class))
        .collect();
    let is_cause = |rule: &DiagnosisRule| {
        rule.class.is_some() && matches!(rule.state, RuleState::Holds { .. })
    };
    let has_cause = rules.iter().any(is_cause);
    rules.extend(last.map(|rule| {
        let truth = if has_cause {
            Truth::No
        } else {
            (rule.test)(evidence)
        };
        of_rule(rule, truth, class)
    }));
    rules
}

fn of_rule(rule: &RuleRecord, truth: Truth, class: Option<PathClass>) -> DiagnosisRule {
    DiagnosisRule {
        id: rule.id.to_owned(),
        name: rule.name.to_owned(),
        class: rule.class.name().map(str::to_owned),
        explains: rule.class != RuleClass::Before && class.is_some_and(|c| rule.class.explains(c)),
        action: rule.action.to_owned(),
        state: match truth {
            Truth::Yes(evidence) => RuleState::Holds {
                evidence,
                confidence: rule.confidence.to_owned(),
            },
            Truth::No => RuleState::DoesNotHold,
            Truth::Unknown(reason) => RuleState::NotEvaluated { reason },
        },
    }
}

/// The place of the table that counts, from 0.
fn table_that_counts(tables: usize, beside: &PathContext, notes: &mut Vec<String>) -> usize {
    let middle = tables.div_ceil(2);
    let wanted = match (beside.table, beside.iterations) {
        (Some(table), _) => Some(table),
        (None, iterations) => iterations.map(|n| (n / 2).max(1)),
    };
    let Some(wanted) = wanted else {
        return middle - 1;
    };
    match usize::try_from(wanted) {
        Ok(wanted) if (1..=tables).contains(&wanted) => wanted - 1,
        _ => {
            notes.push(format!(
                "the log has {tables} tables, none {wanted}: table {middle} counts"
            ));
            middle - 1
        }
    }
}

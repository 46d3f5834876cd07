//! The reference's rule: which stage is the critical one, and whether it waits or works.
//!
//! In: a table. Out: the first stage of the longest time a packet, and its class by the part of that
//! time that it waits. Not here: why (`rules`).

use serde::{Deserialize, Serialize};
use weir_schema::PathStage;

use crate::reading::Reading;
use crate::stage_tables::StageTable;

/// Class of the critical stage: it waits or works for most of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathClass {
    /// It waits: for buffers, descriptors, doorbells, the peer. The reference's C1.
    Waiting,
    /// It works: cycles of a core, or memory, caches and devices. The reference's C2 or C4.
    Working,
}

impl PathClass {
    /// The name that the reference gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "C1",
            Self::Working => "C2 or C4",
        }
    }
}

/// Finding of the reference's rule for a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceFinding {
    /// Microseconds a packet of the five stages that count.
    pub completion_us: Vec<Reading>,
    /// The part of it that the first four wait.
    pub stall_us: Vec<Reading>,
    /// The critical stage, with its class; nothing where no stage has a time.
    pub critical: Option<(PathStage, PathClass)>,
    /// Assumptions that had to be made.
    pub notes: Vec<String>,
}

impl ReferenceFinding {
    /// Applies the rule.
    pub fn of(table: &StageTable) -> Self {
        let times = &PathStage::ROWS[..5];
        let completion: Vec<Reading> = times
            .iter()
            .map(|stage| table.stage(*stage).average_us.clone())
            .collect();
        let stall: Vec<Reading> = times[..4]
            .iter()
            .map(|stage| table.stage(*stage).stall_us.clone())
            .collect();
        let mut longest: Option<(PathStage, f64)> = None;
        let mut notes = Vec::new();
        for (stage, time) in times.iter().zip(&completion) {
            match time.value {
                // The first of equal ones counts.
                Some(time) if longest.is_none_or(|(_, known)| time > known) => {
                    longest = Some((*stage, time));
                }
                Some(_) => {}
                None => notes.push(format!("{} has no time: {}", stage.row(), time.reason())),
            }
        }
        let critical = longest.map(|(stage, time)| {
            let waits = stall.get(stage.row_place()).and_then(|stall| stall.value);
            if waits.is_none() {
                notes.push(format!(
                    "how long {} waits is not in the log: it counts as work",
                    stage.row()
                ));
            }
            let waits = waits.unwrap_or(0.0);
            let class = if time - waits < waits {
                PathClass::Waiting
            } else {
                PathClass::Working
            };
            (stage, class)
        });
        Self {
            completion_us: completion,
            stall_us: stall,
            critical,
            notes,
        }
    }
}

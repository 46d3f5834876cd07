//! Stored results, by whatever names them.
//!
//! In: an operand of a verb that reads results. Out: one result, or several runs with what they say
//! together. Not here: what is done with them.

use weir_doors::Refusal;
use weir_schema::{RunResult, Runs};

use crate::output;

/// The longest result that is read.
const LONGEST: u64 = 1 << 30;

/// What an operand names.
pub(crate) enum Stored {
    /// A run.
    One(Box<RunResult>),
    /// Several runs of one or more plans.
    Several(Box<Runs>),
}

impl Stored {
    /// # Errors
    /// Nothing that can be read, or no result.
    pub(crate) fn read(operand: &str) -> Result<Self, Refusal> {
        let refuse = |why: String| Refusal::usage(format!("{operand}: {why}"));
        let text = output::read_text(operand, LONGEST).map_err(refuse)?;
        if Runs::is_in(&text) {
            let runs = Runs::from_json(&text).map_err(|e| refuse(e.to_string()))?;
            return Ok(Self::Several(Box::new(runs)));
        }
        let result = RunResult::from_json(&text).map_err(|e| refuse(e.to_string()))?;
        if result.is_newer() {
            output::error(&format!(
                "note: {operand}: {} was made by a newer weir: what this one does not know is left \
                 out\n",
                result.schema
            ));
        }
        Ok(Self::One(Box::new(result)))
    }
}

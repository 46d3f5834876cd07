//! The state of a job that verifies: what it had written when it ended, so that a later run can
//! check just that.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::verify::VerifyMethod;

/// The schema of states.
const SCHEMA: &str = "weir.verify-state.v1";

/// Writes of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyState {
    /// Always `weir.verify-state.v1`.
    pub schema: String,
    /// The job's name.
    pub job: String,
    /// Number of the worker over its whole run, from 0.
    pub worker: u32,
    /// Method by which its data is checked.
    pub method: VerifyMethod,
    /// Seed of the job's streams.
    pub seed: u64,
    /// Mark of the run's data.
    pub run_id: Option<u16>,
    /// Writes that were begun, in the order in which the job draws them.
    pub writes: u64,
    /// Those of them that did not come back whole: numbers from 0, ascending.
    pub lost: Vec<u64>,
}

/// Reason that a state cannot be used.
#[derive(Debug, Error)]
pub enum StateError {
    /// It is no JSON of this form.
    #[error("weir has not stored it: have the data written again, or verify it without ({0})")]
    Form(#[from] serde_json::Error),
    /// Another version's.
    #[error("it has the form `{0}`, and this version reads `{SCHEMA}`")]
    Schema(String),
    /// Numbers that cannot be.
    #[error("the lost writes are not ascending numbers below {0}")]
    Lost(u64),
}

impl VerifyState {
    /// The state of a worker.
    pub fn new(job: &str, worker: u32, method: VerifyMethod) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            job: job.to_owned(),
            worker,
            method,
            seed: 0,
            run_id: None,
            writes: 0,
            lost: Vec::new(),
        }
    }

    /// The name of its file.
    pub fn file_name(job: &str, worker: u32) -> String {
        format!("local-{}-{worker}-verify.state", job.replace('/', "."))
    }

    /// As the file holds it.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, StateError> {
        Ok(serde_json::to_string(self)?)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn from_json(text: &[u8]) -> Result<Self, StateError> {
        let state: Self = serde_json::from_slice(text)?;
        if state.schema != SCHEMA {
            return Err(StateError::Schema(state.schema));
        }
        let ascending = state.lost.is_sorted_by(|a, b| a < b);
        if !ascending || state.lost.last().is_some_and(|&n| n >= state.writes) {
            return Err(StateError::Lost(state.writes));
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> VerifyState {
        VerifyState {
            writes: 10,
            lost: vec![3, 9],
            ..VerifyState::new("a/b", 2, VerifyMethod::Md5)
        }
    }

    #[test]
    fn a_state_comes_back_as_it_was_stored() {
        let text = state().to_json().unwrap();
        assert_eq!(VerifyState::from_json(text.as_bytes()).unwrap(), state());
        assert_eq!(VerifyState::file_name("a/b", 2), "local-a.b-2-verify.state");
    }

    #[test]
    fn what_is_no_state_is_refused() {
        let text = state().to_json().unwrap();
        for (from, to) in [
            ("v1", "v2"),
            ("[3,9]", "[9,3]"),
            ("[3,9]", "[3,3]"),
            ("[3,9]", "[3,10]"),
            ("\"md5\"", "\"md6\""),
            ("}", ",\"more\":1}"),
            ("{", ""),
        ] {
            let bad = text.replacen(from, to, 1);
            assert_ne!(bad, text, "{from}");
            assert!(VerifyState::from_json(bad.as_bytes()).is_err(), "{bad}");
        }
        // fio's own states are no text.
        assert!(VerifyState::from_json(&[3, 0, 0, 0, 0, 0, 0, 0, 0xff]).is_err());
    }
}

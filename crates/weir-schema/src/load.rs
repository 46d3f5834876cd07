//! Reading stored plans and results, and the JSON Schemas generated from the types.

use serde_json::Value;
use thiserror::Error;

use crate::plan::Plan;
use crate::result::RunResult;

/// Version word of plans.
pub const PLAN_SCHEMA: &str = "weir.plan.v1";
/// Version word of results.
pub const RESULT_SCHEMA: &str = "weir.result.v1";

/// A stored document that cannot be read.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// Not JSON, or not of this shape.
    #[error("{line}:{column}: {message}")]
    Shape {
        /// Line in the document.
        line: usize,
        /// Column in the line.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// Another kind of document, or a version that this program does not know.
    #[error("the document says schema {found:?}; this program reads {wanted:?}")]
    Version {
        /// What it says.
        found: String,
        /// What was expected.
        wanted: &'static str,
    },
}

impl From<serde_json::Error> for SchemaError {
    fn from(e: serde_json::Error) -> Self {
        let text = e.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        Self::Shape {
            line: e.line(),
            column: e.column(),
            message,
        }
    }
}

fn check_version(text: &str, wanted: &'static str) -> Result<(), SchemaError> {
    let value: Value = serde_json::from_str(text)?;
    let found = value
        .get("schema")
        .and_then(Value::as_str)
        .unwrap_or("nothing")
        .to_owned();
    if found == wanted {
        Ok(())
    } else {
        Err(SchemaError::Version { found, wanted })
    }
}

impl Plan {
    /// Reads a stored plan.
    ///
    /// # Errors
    /// Not JSON, another shape, another version.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        check_version(text, PLAN_SCHEMA)?;
        Ok(serde_json::from_str(text)?)
    }

    /// The plan as indented JSON.
    ///
    /// # Errors
    /// A number without JSON form (not finite).
    pub fn to_json(&self) -> Result<String, SchemaError> {
        Ok(serde_json::to_string_pretty(self)?)
    }
}

impl RunResult {
    /// Reads a stored result.
    ///
    /// # Errors
    /// Not JSON, another shape, another version.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        check_version(text, RESULT_SCHEMA)?;
        Ok(serde_json::from_str(text)?)
    }

    /// The result as indented JSON.
    ///
    /// # Errors
    /// A number without JSON form (not finite).
    pub fn to_json(&self) -> Result<String, SchemaError> {
        Ok(serde_json::to_string_pretty(self)?)
    }
}

/// File name and JSON Schema of each document.
pub fn json_schemas() -> [(&'static str, Value); 2] {
    [
        (
            "plan.v1.schema.json",
            schemars::schema_for!(Plan).to_value(),
        ),
        (
            "result.v1.schema.json",
            schemars::schema_for!(RunResult).to_value(),
        ),
    ]
}

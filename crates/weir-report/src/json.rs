//! The result as JSON: the stored form, which every other rendering can be made from again.

use weir_schema::{RunResult, SchemaError};

/// One indented JSON document, with a newline at its end.
///
/// # Errors
/// A number without JSON form.
pub fn json(result: &RunResult) -> Result<String, SchemaError> {
    let mut text = result.to_json()?;
    text.push('\n');
    Ok(text)
}

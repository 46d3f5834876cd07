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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::{Style, text};

    #[test]
    fn every_rendering_can_be_made_again_from_the_json() {
        for result in [sample::workers(), sample::failed(), sample::interrupted()] {
            let stored = json(&result).unwrap();
            assert!(stored.ends_with("}\n"));
            let read = RunResult::from_json(&stored).unwrap();
            assert_eq!(read, result);
            let style = Style::default();
            assert_eq!(text(&read, &style), text(&result, &style));
        }
    }
}

//! The result as JSON: the stored form, which every other rendering can be made from again.

use weir_schema::{RunResult, SchemaError};

/// One JSON document with a newline at its end: on one line, or indented for people.
///
/// # Errors
/// A number without JSON form.
pub fn json(result: &RunResult, is_indented: bool) -> Result<String, SchemaError> {
    let mut text = if is_indented {
        result.to_pretty_json()?
    } else {
        result.to_json()?
    };
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
            let stored = json(&result, false).unwrap();
            assert_eq!(stored.lines().count(), 1);
            assert!(json(&result, true).unwrap().lines().count() > 1);
            assert!(stored.ends_with("}\n"));
            let read = RunResult::from_json(&stored).unwrap();
            assert_eq!(read, result);
            let style = Style::default();
            assert_eq!(text(&read, &style), text(&result, &style));
        }
    }
}

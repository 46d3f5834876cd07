//! `--live`, `--fps`: the run on the whole terminal while it goes on.

use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// More are not told apart from a film, and cost.
const FRAMES_PER_SECOND: std::ops::RangeInclusive<u32> = 1..=20;

/// A view of the run on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// How often it is drawn.
    pub frames_per_second: u32,
}

/// What the words ask for.
pub(super) fn read(given: &GivenFlags) -> Result<Option<Live>, Refusal> {
    if !given.has("live") {
        return Ok(None);
    }
    let text = given.text("fps").unwrap_or_default();
    let frames_per_second = number(text).ok_or_else(|| {
        let (least, most) = (FRAMES_PER_SECOND.start(), FRAMES_PER_SECOND.end());
        Refusal::usage(format!(
            "--fps {text}: expected a number from {least} to {most}"
        ))
    })?;
    Ok(Some(Live { frames_per_second }))
}

fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| FRAMES_PER_SECOND.contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_between_one_and_twenty_a_second() {
        assert_eq!([number("1"), number("20")], [Some(1), Some(20)]);
        for text in ["0", "21", "-1", "4.5", "", "many"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}

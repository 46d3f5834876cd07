//! Truth of a condition, and its evidence; unknown where a figure is missing.
//!
//! In: readings with limits. Out: a [`Truth`], combined by `and` and `or`: what is false without a missing
//! figure stays false. Not here: which conditions there are.

use crate::reading::Reading;

/// Truth of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// It does, by this evidence.
    Yes(String),
    /// It does not.
    No,
    /// A figure is missing, for this reason.
    Unknown(String),
}

impl Truth {
    /// A fact without a figure.
    pub(crate) fn of(is_true: bool, evidence: impl Into<String>) -> Self {
        if is_true {
            Self::Yes(evidence.into())
        } else {
            Self::No
        }
    }

    pub(crate) fn above(what: &str, reading: &Reading, limit: f64) -> Self {
        Self::compared(what, reading, ">", limit, |value| value > limit)
    }

    pub(crate) fn at_least(what: &str, reading: &Reading, limit: f64) -> Self {
        Self::compared(what, reading, "≥", limit, |value| value >= limit)
    }

    pub(crate) fn below(what: &str, reading: &Reading, limit: f64) -> Self {
        Self::compared(what, reading, "<", limit, |value| value < limit)
    }

    fn compared(
        what: &str,
        reading: &Reading,
        sign: &str,
        limit: f64,
        holds: impl Fn(f64) -> bool,
    ) -> Self {
        match reading.value {
            None => Self::Unknown(reading.reason().to_owned()),
            Some(value) => Self::of(
                holds(value),
                format!("{what} {} {sign} {limit}", rounded(value)),
            ),
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Unknown(one), Self::Unknown(two)) => Self::Unknown(joined(one, &two)),
            (Self::Unknown(reason), _) | (_, Self::Unknown(reason)) => Self::Unknown(reason),
            (Self::Yes(one), Self::Yes(two)) => Self::Yes(format!("{one}, {two}")),
        }
    }

    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes(one), Self::Yes(two)) => Self::Yes(format!("{one}, {two}")),
            (Self::Yes(evidence), _) | (_, Self::Yes(evidence)) => Self::Yes(evidence),
            (Self::Unknown(one), Self::Unknown(two)) => Self::Unknown(joined(one, &two)),
            (Self::Unknown(reason), Self::No) | (Self::No, Self::Unknown(reason)) => {
                Self::Unknown(reason)
            }
            (Self::No, Self::No) => Self::No,
        }
    }
}

fn joined(one: String, two: &str) -> String {
    if one == two {
        one
    } else {
        format!("{one}; {two}")
    }
}

/// Three digits after the point, without zeros at the end.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_false_without_a_missing_figure_is_false() {
        let unknown = || Truth::above("x", &Reading::missing("no x"), 1.0);
        let yes = || Truth::above("y", &Reading::known(2.0), 1.0);
        let no = || Truth::below("y", &Reading::known(2.0), 1.0);
        assert_eq!(yes(), Truth::Yes("y 2 > 1".to_owned()));
        assert_eq!(no().and(unknown()), Truth::No);
        assert_eq!(yes().and(unknown()), Truth::Unknown("no x".to_owned()));
        assert_eq!(yes().or(unknown()), yes());
        assert_eq!(unknown().or(no()), Truth::Unknown("no x".to_owned()));
        assert_eq!(unknown().and(unknown()), Truth::Unknown("no x".to_owned()));
        assert_eq!(no().or(no()), Truth::No);
    }

    #[test]
    fn limits_belong_to_one_side() {
        let at = Reading::known(0.3);
        assert_eq!(Truth::above("x", &at, 0.3), Truth::No);
        assert_eq!(Truth::below("x", &at, 0.3), Truth::No);
        assert_eq!(
            Truth::at_least("x", &at, 0.3),
            Truth::Yes("x 0.3 ≥ 0.3".to_owned())
        );
    }
}

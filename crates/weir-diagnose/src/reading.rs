//! A figure that was read, or why there is none.
//!
//! In: text of a recorded output. Out: a [`Reading`]; never a made-up zero. Not here: where the text
//! stands.

use serde::{Deserialize, Serialize};

/// A figure, or the reason why it is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The figure; a finite number.
    pub value: Option<f64>,
    /// Reason that there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl Reading {
    /// A figure; one that is no number is none.
    pub fn known(value: f64) -> Self {
        if value.is_finite() {
            Self {
                value: Some(value),
                unavailable: None,
            }
        } else {
            Self::missing(format!("{value} was recorded"))
        }
    }

    /// None, for this reason.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self {
            value: None,
            unavailable: Some(reason.into()),
        }
    }

    /// Parses a number that a program printed, with or without `%`; nothing where it is neither a
    /// number nor says that there is none.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(reason) = text.strip_prefix("unavailable") {
            let reason = reason.trim().trim_start_matches('(');
            return Some(Self::missing(reason.strip_suffix(')').unwrap_or(reason)));
        }
        if text.is_empty() {
            return Some(Self::missing("nothing was recorded"));
        }
        // `<not` is what is left of `<not supported>` where a script cuts words.
        if text.starts_with("<not") || text.starts_with("n/a") {
            return Some(Self::missing(format!("`{text}` was recorded")));
        }
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        // C prints a sign before it.
        let number = number
            .strip_prefix('-')
            .filter(|n| *n == "nan")
            .unwrap_or(number);
        number.parse().ok().map(Self::known)
    }

    /// It is below zero, which nothing that is counted or timed can be.
    pub(crate) fn is_negative(&self) -> bool {
        self.value.is_some_and(|value| value < 0.0)
    }

    /// This one, else the other; both reasons where both are missing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (&self.unavailable, &other.unavailable) {
            (None, _) => self,
            (Some(_), None) => other,
            (Some(one), Some(two)) if one == two => self,
            (Some(one), Some(two)) => Self::missing(format!("{one}; {two}")),
        }
    }

    /// Both, taken together by a function.
    pub(crate) fn with(&self, other: &Self, both: impl FnOnce(f64, f64) -> f64) -> Self {
        match (self.value, other.value) {
            (Some(one), Some(two)) => Self::known(both(one, two)),
            (None, _) => self.clone(),
            (_, None) => other.clone(),
        }
    }

    /// The reason why there is no figure; empty where there is one.
    pub fn reason(&self) -> &str {
        self.unavailable.as_deref().unwrap_or_default()
    }

    /// As the reference prints a number, else `unavailable (REASON)`.
    pub(crate) fn printed(&self) -> String {
        match self.value {
            Some(value) => format!("{value:?}"),
            None => format!("unavailable ({})", self.reason()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_number_or_says_why_there_is_none() {
        let value = |text: &str| Reading::of_text(text).unwrap().value;
        assert_eq!(value(" 0.89"), Some(0.89));
        assert_eq!(value("12.50%"), Some(12.5));
        for text in ["", "-nan", "nan", "inf", "<not", "<not counted>", "n/a"] {
            assert_eq!(value(text), None, "{text}");
        }
        let typed = Reading::of_text("unavailable (EACCES: no right)").unwrap();
        assert_eq!(typed.reason(), "EACCES: no right");
        assert_eq!(Reading::of_text("zero"), None);
    }

    #[test]
    fn the_second_source_serves_where_the_first_has_nothing() {
        let none = || Reading::missing("no PMU");
        assert_eq!(none().or(Reading::known(2.0)).value, Some(2.0));
        assert_eq!(Reading::known(1.0).or(Reading::known(2.0)).value, Some(1.0));
        assert_eq!(
            none().or(Reading::missing("no file")).reason(),
            "no PMU; no file"
        );
        assert_eq!(none().or(none()).reason(), "no PMU");
    }

    #[test]
    fn what_is_missing_is_null_with_a_reason_in_json() {
        let json = |reading: &Reading| serde_json::to_string(reading).unwrap();
        assert_eq!(json(&Reading::known(0.5)), r#"{"value":0.5}"#);
        assert_eq!(
            json(&Reading::known(f64::NAN)),
            r#"{"value":null,"unavailable":"NaN was recorded"}"#
        );
    }
}

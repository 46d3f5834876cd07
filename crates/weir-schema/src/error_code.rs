//! Codes of failed operations: an errno, or a name where a service has codes of its own.
//!
//! Both have one form in JSON, as text: the number of an errno, or the name.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

/// Code of an operation's failure.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum ErrorCode {
    /// An errno of Linux.
    Errno(i32),
    /// A code with a name; it is no number.
    Named(String),
}

impl ErrorCode {
    /// Its errno, where it is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Errno(errno) => Some(*errno),
            Self::Named(_) => None,
        }
    }
}

impl From<i32> for ErrorCode {
    fn from(errno: i32) -> Self {
        Self::Errno(errno)
    }
}

impl From<String> for ErrorCode {
    /// A number is an errno.
    fn from(text: String) -> Self {
        text.parse().map_or(Self::Named(text), Self::Errno)
    }
}

impl From<&str> for ErrorCode {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.to_string()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errno(errno) => write!(f, "{errno}"),
            Self::Named(name) => f.pad(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn codes_have_one_form_as_keys_and_as_values() {
        let counts: BTreeMap<ErrorCode, u64> = [(5.into(), 3), ("DER_NOSPACE".into(), 1)].into();
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, r#"{"5":3,"DER_NOSPACE":1}"#);
        assert_eq!(
            serde_json::from_str::<BTreeMap<ErrorCode, u64>>(&text).unwrap(),
            counts
        );
        let list: Vec<ErrorCode> = counts.into_keys().collect();
        assert_eq!(
            serde_json::to_string(&list).unwrap(),
            r#"["5","DER_NOSPACE"]"#
        );
    }
}

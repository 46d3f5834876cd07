//! What can be wrong with a quantity in text: each message says what, why and what to write.
//!
//! Not here: where the text stood (file, line, flag); the reader of the file adds that.

/// Why a text is not the quantity that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Nothing but blanks.
    #[error("empty where a {quantity} was expected; write for example {example}")]
    Empty {
        /// What was expected.
        quantity: &'static str,
        /// A text that would do.
        example: &'static str,
    },
    /// The text does not start with a plain decimal number.
    #[error(
        "`{text}` is not a {quantity}: it must start with digits, with at most one point and no \
         sign; write for example {example}"
    )]
    NotANumber {
        /// The text as given.
        text: String,
        /// What was expected.
        quantity: &'static str,
        /// A text that would do.
        example: &'static str,
    },
    /// A number alone, where its unit could be guessed in more than one way.
    #[error(
        "`{number}` lacks a unit: a {quantity} needs one of {known}; write for example {example}"
    )]
    MissingUnit {
        /// The number as given.
        number: String,
        /// What was expected.
        quantity: &'static str,
        /// The units that are known.
        known: String,
        /// A text that would do.
        example: &'static str,
    },
    /// A unit that people read in two ways.
    #[error("`{text}` is ambiguous: {reason}; write {remedy}")]
    Ambiguous {
        /// The text as given.
        text: String,
        /// The two readings.
        reason: &'static str,
        /// The unambiguous spellings of both.
        remedy: String,
    },
    /// A unit that no quantity of this kind has.
    #[error("`{unit}` is no unit of a {quantity}; known are {known}; write for example {example}")]
    UnknownUnit {
        /// The unit as given.
        unit: String,
        /// What was expected.
        quantity: &'static str,
        /// The units that are known.
        known: String,
        /// A text that would do.
        example: &'static str,
    },
    /// A fraction of the smallest part, such as half a byte.
    #[error(
        "`{text}` is not a whole number of {smallest}, the smallest part of a {quantity}; write {remedy}"
    )]
    NotWhole {
        /// The text as given.
        text: String,
        /// What was expected.
        quantity: &'static str,
        /// The unit that cannot be divided.
        smallest: &'static str,
        /// The nearest value that can be had.
        remedy: String,
    },
    /// More than the type can hold.
    #[error("`{text}` is too large for a {quantity}; the largest is {limit}")]
    TooLarge {
        /// The text as given.
        text: String,
        /// What was expected.
        quantity: &'static str,
        /// The largest value.
        limit: String,
    },
    /// Zero where at least one is needed.
    #[error("`{text}` is too small for a {quantity}; the smallest is {limit}")]
    TooSmall {
        /// The text as given.
        text: String,
        /// What was expected.
        quantity: &'static str,
        /// The smallest value.
        limit: String,
    },
}

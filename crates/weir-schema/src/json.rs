//! One way to JSON and back, so that each type has one reader and one writer in the program.
//!
//! The readers and writers that serde derives are compiled anew for every kind of source and
//! destination, and those of a plan or a result are large. So all reading is from a slice, all
//! writing is compact text, and what else is wanted is made from that text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Error, Value};

use crate::{PacketPathWorkload, PathIteration};

/// A value from its text.
///
/// # Errors
/// Not JSON, another shape.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_slice(text.as_bytes())
}

/// The value as a JSON value, which can be changed before it is written: members in the order of
/// the type.
///
/// # Errors
/// Without JSON form.
pub fn value(of: &impl Serialize) -> Result<Value, Error> {
    read(&serde_json::to_string(of)?)
}

/// A large type that other crates send as text within their own messages: its reader and its writer are
/// compiled here alone, for size.
pub trait InText: Sized {
    /// The value as text.
    ///
    /// # Errors
    /// Without JSON form.
    fn to_text(&self) -> Result<String, Error>;

    /// A value from its text.
    ///
    /// # Errors
    /// Not JSON, another shape.
    fn from_text(text: &str) -> Result<Self, Error>;
}

macro_rules! in_text {
    ($($of:ty),*) => {
        $(impl InText for $of {
            fn to_text(&self) -> Result<String, Error> {
                serde_json::to_string(self)
            }

            fn from_text(text: &str) -> Result<Self, Error> {
                read(text)
            }
        })*
    };
}

in_text!(PacketPathWorkload, Vec<PathIteration>);

/// For serde's `with`: a field as its text.
pub mod in_text {
    use super::{Deserialize, Deserializer, InText, Serializer};

    /// Writes the text.
    ///
    /// # Errors
    /// Without JSON form.
    pub fn serialize<S: Serializer>(of: &impl InText, to: S) -> Result<S::Ok, S::Error> {
        let text = of.to_text().map_err(serde::ser::Error::custom)?;
        to.serialize_str(&text)
    }

    /// Reads it.
    ///
    /// # Errors
    /// No text, or of another shape.
    pub fn deserialize<'de, T: InText, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let text = String::deserialize(from)?;
        T::from_text(&text).map_err(serde::de::Error::custom)
    }
}

/// Compact JSON, indented by two for people. Numbers and texts stay as they are written.
pub fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let mut text = Text::Outside;
    let mut before = ' ';
    for (at, c) in compact.char_indices() {
        let is_outside = text == Text::Outside;
        text = text.after(c);
        let is_empty = matches!(compact.as_bytes().get(at + 1), Some(b']' | b'}'));
        match c {
            _ if !is_outside => out.push(c),
            '[' | '{' => {
                out.push(c);
                if !is_empty {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            ']' | '}' => {
                if !matches!(before, '[' | '{') {
                    depth -= 1;
                    line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
        before = if is_outside { c } else { ' ' };
    }
    out
}

/// A new line, indented.
fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Position in or outside of a text: inside, no character is punctuation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    /// After a backslash: the next one is text, whatever it is.
    Escape,
}

impl Text {
    const fn after(self, c: char) -> Self {
        match (self, c) {
            (Self::Outside, '"') | (Self::Escape, _) => Self::Inside,
            (Self::Outside, _) | (Self::Inside, '"') => Self::Outside,
            (Self::Inside, '\\') => Self::Escape,
            (Self::Inside, _) => Self::Inside,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Values however deep, their texts full of what is punctuation elsewhere.
    fn any_value() -> impl Strategy<Value = Value> {
        let text = "[a-z\"\\\\{}\\[\\]:, \n\u{e9}]{0,8}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            let members = proptest::collection::vec((text, inner.clone()), 0..4);
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::from),
                members.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn indented_text_is_that_of_the_library(value in any_value()) {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(indented(&value.to_string()), expected);
        }
    }

    #[test]
    fn empty_members_stay_on_their_line() {
        let text = json!({"a": [], "b": {}, "c": [[]], "d": "[\"{"}).to_string();
        let expected = serde_json::to_string_pretty(&read::<Value>(&text).unwrap()).unwrap();
        assert_eq!(indented(&text), expected);
    }

    #[test]
    fn a_value_has_the_members_of_its_type_in_their_order() {
        #[derive(Serialize)]
        struct Pair {
            z: f64,
            a: Option<u8>,
        }
        let made = value(&Pair { z: 0.1, a: None }).unwrap();
        assert_eq!(made.to_string(), r#"{"z":0.1,"a":null}"#);
    }
}

//! Quoting of texts in rows of CSV and in YAML.

use std::fmt::Write as _;

/// A line of fields, quoted where necessary.
pub(super) fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| field_of(&field)).collect();
    fields.join(",") + "\r\n"
}

fn field_of(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A text in YAML, without quotes where it is unambiguous.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_./".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if is_plain {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}

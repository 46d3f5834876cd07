//! JSON text in fio's layout: two blanks of indent, `"key" : value`, six decimals.

use serde_json::Value;

/// The document with a final newline.
pub(super) fn document(value: &Value) -> String {
    let mut out = String::new();
    push(&mut out, value, 0);
    out.push('\n');
    out
}

fn push(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) => {
            let items = map.iter().map(|(k, v)| (Some(k.as_str()), v));
            push_all(out, ['{', '}'], items, depth);
        }
        Value::Array(list) => push_all(out, ['[', ']'], list.iter().map(|v| (None, v)), depth),
        Value::Number(n) => match n.as_f64().filter(|_| n.is_f64()) {
            Some(float) => push!(out, "{float:.6}"),
            None => out.push_str(&n.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

fn push_all<'a>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
    depth: usize,
) {
    out.push(open);
    let mut separator = "\n";
    for (key, value) in items {
        out.push_str(separator);
        separator = ",\n";
        indent(out, depth + 1);
        if let Some(key) = key {
            push!(out, "{} : ", Value::from(key));
        }
        push(out, value, depth + 1);
    }
    out.push('\n');
    indent(out, depth);
    out.push(close);
}

fn indent(out: &mut String, depth: usize) {
    out.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_laid_out_as_fio_lays_them_out() {
        let value = serde_json::json!({"a": 1, "b": [{"c\"": 0.5}], "d": "x", "e": {}});
        assert_eq!(
            document(&value),
            "{\n  \"a\" : 1,\n  \"b\" : [\n    {\n      \"c\\\"\" : 0.500000\n    }\n  ],\n  \
             \"d\" : \"x\",\n  \"e\" : {\n  }\n}\n"
        );
    }
}

//! Leaving out of a stored result what this version does not know.
//!
//! In: a JSON document. Out: the same document without the fields that the JSON Schema of this
//! version does not have. Of a newer version also without words that it does not have, where a field
//! may be absent; workloads that are not known have their name alone. Plans that shall be carried out
//! are never pruned: what a plan asks for and nobody understands would silently not be done.

use serde_json::Value;

use crate::json;
use crate::outcome::Outcome;
use crate::workload::Workload;

/// The JSON Schema of results.
const SCHEMA: &str = include_str!("../../../schemas/result.v2.schema.json");

/// Removes fields that this version does not know from a result.
pub(crate) fn prune_fields(document: &mut Value) {
    prune(document, &schema(), false);
}

/// The gate `schemas` holds the file to the types.
fn schema() -> Value {
    json::read(SCHEMA).unwrap_or_default()
}

/// Removes from a newer version's result all members that this version does not know.
pub(crate) fn prune_newer(document: &mut Value) {
    prune(document, &schema(), true);
    // From text, as all reading is: other ways would be compiled beside it.
    let is_workload = |value: &Value| json::read::<Workload>(&value.to_string()).is_ok();
    for job in jobs(document.pointer_mut("/plan/groups")) {
        if let Some(workload) = job.get_mut("workload").filter(|work| !is_workload(work)) {
            let name = workload.get("kind").cloned().unwrap_or_default();
            *workload = serde_json::json!({"kind": "unknown", "name": name});
        }
    }
    let is_outcome = |value: &Value| json::read::<Outcome>(&value.to_string()).is_ok();
    for job in jobs(document.pointer_mut("/groups")) {
        if let Some(outcome) = job
            .get_mut("outcome")
            .filter(|outcome| !is_outcome(outcome))
        {
            *outcome = serde_json::json!({"kind": "none"});
        }
    }
}

/// The jobs of groups.
pub(crate) fn jobs(groups: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    let groups = groups.and_then(Value::as_array_mut).into_iter().flatten();
    let jobs = groups.filter_map(|group| group.get_mut("jobs")?.as_array_mut());
    jobs.flatten()
}

/// Removes unknown fields, however deep, and with `words` fields that hold unknown words.
fn prune(document: &mut Value, schema: &Value, words: bool) {
    let root = schema;
    Pruner { root, words }.prune(document, schema);
}

struct Pruner<'a> {
    /// Root of references.
    root: &'a Value,
    /// Fields that may be absent go where they hold an unknown word.
    words: bool,
}

impl<'a> Pruner<'a> {
    fn prune(&self, value: &mut Value, schema: &'a Value) {
        let schemas = self.parts(value, schema);
        match value {
            Value::Array(members) => {
                for part in &schemas {
                    let fixed = part.get("prefixItems").and_then(Value::as_array);
                    for (i, member) in members.iter_mut().enumerate() {
                        let own = fixed.and_then(|all| all.get(i));
                        if let Some(schema) = own.or(part.get("items")) {
                            self.prune(member, schema);
                        }
                    }
                }
            }
            Value::Object(members) => {
                let known = |name: &str| {
                    let of = |part: &&'a Value| part.get("properties")?.get(name);
                    let beside = |part: &&'a Value| part.get("additionalProperties");
                    let own = schemas.iter().find_map(of);
                    own.or_else(|| schemas.iter().find_map(beside).filter(|s| s.is_object()))
                };
                let is_closed = schemas
                    .iter()
                    .any(|part| part.get("additionalProperties") == Some(&Value::Bool(false)));
                let is_needed = |name: &str| {
                    let mut required = schemas.iter().filter_map(|part| part.get("required"));
                    required.any(|names| {
                        names
                            .as_array()
                            .is_some_and(|n| n.iter().any(|n| n == name))
                    })
                };
                members.retain(|name, member| match known(name) {
                    Some(part) if self.words && !is_needed(name) => self.knows_word(member, part),
                    Some(_) => true,
                    None => !is_closed,
                });
                for (name, member) in members.iter_mut() {
                    if let Some(schema) = known(name) {
                        self.prune(member, schema);
                    }
                }
            }
            _ => {}
        }
    }

    /// True if the value is no word, or one of those that the schema lists.
    fn knows_word(&self, value: &Value, schema: &'a Value) -> bool {
        let listed = value.as_str().zip(self.listed(schema));
        listed.is_none_or(|(word, words)| words.contains(&word))
    }

    /// The words of a schema that allows nothing but these, or null.
    fn listed(&self, schema: &'a Value) -> Option<Vec<&'a str>> {
        if let Some(word) = schema.get("const") {
            return Some(vec![word.as_str()?]);
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return words.iter().map(Value::as_str).collect();
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            return self.listed(self.root.pointer(target.trim_start_matches('#'))?);
        }
        let alternatives = schema.get("oneOf").or(schema.get("anyOf"))?.as_array()?;
        let alternatives = alternatives.iter().filter(|part| !is_null(part));
        let words: Option<Vec<_>> = alternatives.map(|part| self.listed(part)).collect();
        Some(words?.concat())
    }

    /// The schemas that hold for a value: references followed, of alternatives those that it may
    /// be.
    fn parts(&self, value: &Value, schema: &'a Value) -> Vec<&'a Value> {
        let mut all = vec![schema];
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(target.trim_start_matches('#'));
            all.extend(target.into_iter().flat_map(|t| self.parts(value, t)));
        }
        for word in ["oneOf", "anyOf", "allOf"] {
            let alternatives = schema.get(word).and_then(Value::as_array);
            for alternative in alternatives.into_iter().flatten() {
                if may_be(value, alternative) {
                    all.extend(self.parts(value, alternative));
                }
            }
        }
        all
    }
}

/// The constants that tell alternatives apart say nothing against it.
fn may_be(value: &Value, schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let constants = properties.into_iter().flatten().filter_map(|(name, part)| {
        let wanted = part.get("const")?;
        Some((value.get(name)?, wanted))
    });
    is_null(schema) == value.is_null()
        && constants.into_iter().all(|(found, wanted)| found == wanted)
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_go_and_known_ones_stay() {
        let schema = json!({
            "$defs": {
                "Kind": {
                    "type": "object",
                    "properties": {"name": {}, "counts": {"additionalProperties": {"type": "integer"}}},
                    "additionalProperties": false
                },
                "Shape": {"oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "a"}, "x": {}},
                     "additionalProperties": false},
                    {"type": "object", "properties": {"kind": {"const": "b"}, "y": {}},
                     "additionalProperties": false}
                ]}
            },
            "properties": {
                "kinds": {"items": {"$ref": "#/$defs/Kind"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]},
                "shape": {"$ref": "#/$defs/Shape"}
            },
            "additionalProperties": false
        });
        let mut document = json!({
            "kinds": [{"name": "read", "counts": {"5": 1}, "later": 1}],
            "maybe": {"name": "x", "later": 2},
            "shape": {"kind": "b", "y": 1, "x": 3},
            "later": {}
        });
        prune(&mut document, &schema, true);
        assert_eq!(
            document,
            json!({
                "kinds": [{"name": "read", "counts": {"5": 1}}],
                "maybe": {"name": "x"},
                "shape": {"kind": "b", "y": 1}
            })
        );
    }
    #[test]
    fn unknown_words_go_where_a_field_may_be_absent() {
        let schema = json!({
            "$defs": {"State": {"oneOf": [
                {"type": "string", "const": "done"},
                {"type": "string", "enum": ["failed", "hung"]}
            ]}},
            "properties": {
                "state": {"$ref": "#/$defs/State"},
                "last": {"anyOf": [{"$ref": "#/$defs/State"}, {"type": "null"}]},
                "next": {"anyOf": [{"$ref": "#/$defs/State"}, {"type": "integer"}]},
                "note": {"type": "string"}
            },
            "required": ["state"]
        });
        let newer = json!({"state": "asleep", "last": "asleep", "next": "x", "note": "asleep"});
        let mut document = newer.clone();
        prune(&mut document, &schema, false);
        assert_eq!(document, newer);
        prune(&mut document, &schema, true);
        let left = json!({"state": "asleep", "next": "x", "note": "asleep"});
        assert_eq!(document, left);
        let known = json!({"state": "done", "last": "hung", "next": 7, "note": ""});
        let mut document = known.clone();
        prune(&mut document, &schema, true);
        assert_eq!(document, known);
    }
}

//! Reading stored plans and results, and the JSON Schemas generated from the types.

use serde_json::Value;
use thiserror::Error;

use crate::json;
use crate::plan::{Job, Plan};
use crate::prune::{jobs, prune_fields, prune_newer};
use crate::result::RunResult;
use crate::rpc::RpcWorkload;
use crate::rpc_result::RpcMaster;
use crate::workload::Workload;

/// Version word of plans.
pub const PLAN_SCHEMA: &str = "weir.plan.v2";
/// Version word of results.
pub const RESULT_SCHEMA: &str = "weir.result.v2";
/// Version word of the results of several runs.
pub const RUNS_SCHEMA: &str = "weir.runs.v2";

/// Buckets that all histograms of a result may span: 1 GiB of memory.
const MOST_BUCKETS: u128 = 1 << 27;

/// A stored document that cannot be read.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// Not JSON, or not of this shape.
    #[error("{line}:{column}: {message}")]
    Shape {
        /// Line in the document.
        line: usize,
        /// Column in the line.
        column: usize,
        /// The error.
        message: String,
    },
    /// Another kind of document, or a version that this program does not know.
    #[error(
        "the document says schema {found:?}; this program reads {wanted:?}{}",
        age(found, wanted)
    )]
    Version {
        /// Schema that it names.
        found: String,
        /// Expected schema.
        wanted: &'static str,
    },
    /// It does not say what kind of document it is.
    #[error("the document has no `schema`; this program reads {wanted:?}")]
    NoSchema {
        /// Expected schema.
        wanted: &'static str,
    },
    /// A result of a newer version with values that this one cannot read.
    #[error("it was made by a newer weir, and this one cannot read all of it: {0}")]
    Newer(String),
    /// Figures that no run could have counted.
    #[error("the figures under `{0}` add up to more than 64 bits hold")]
    TooLarge(&'static str),
    /// A job that nothing carries out.
    #[error(
        "{job}: nothing carries out a workload `{kind}` (there are {})",
        Workload::names().join(", ")
    )]
    Workload {
        /// Its name.
        job: String,
        /// Name of the workload.
        kind: String,
    },
    /// Histograms that would fill the memory.
    #[error("the histograms span more than {MOST_BUCKETS} buckets")]
    TooManyBuckets,
}

/// Kind and number of a version word: `weir.plan.v2` is version 2 of `weir.plan`.
fn version(word: &str) -> Option<(&str, u32)> {
    let (kind, number) = word.rsplit_once(".v")?;
    Some((kind, number.parse().ok()?))
}

/// Remark that a document of another version is older or newer; empty for another kind.
fn age(found: &str, wanted: &str) -> &'static str {
    match version(found).zip(version(wanted)) {
        Some(((found, old), (wanted, new))) if found == wanted && old < new => {
            " (it was made by an older weir)"
        }
        Some(((found, new), (wanted, old))) if found == wanted && new > old => {
            " (it was made by a newer weir)"
        }
        _ => "",
    }
}

impl From<serde_json::Error> for SchemaError {
    fn from(e: serde_json::Error) -> Self {
        let text = e.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        Self::Shape {
            line: e.line(),
            column: e.column(),
            message,
        }
    }
}

/// Reads any JSON of a version.
fn document(text: &str, wanted: &'static str) -> Result<Value, SchemaError> {
    let value: Value = json::read(text)?;
    let found = value.get("schema").and_then(Value::as_str);
    let found = found.ok_or(SchemaError::NoSchema { wanted })?.to_owned();
    if found == wanted {
        Ok(value)
    } else {
        Err(SchemaError::Version { found, wanted })
    }
}

/// The same, where documents of newer versions are read as far as they are known.
fn document_or_newer(text: &str, wanted: &'static str) -> Result<Value, SchemaError> {
    let refused = match document(text, wanted) {
        Err(SchemaError::Version { found, wanted }) => (found, wanted),
        read => return read,
    };
    let (found, wanted) = refused;
    let is_newer = match version(&found).zip(version(wanted)) {
        Some(((kind, new), (own, known))) => kind == own && new > known,
        None => false,
    };
    if is_newer {
        Ok(json::read(text)?)
    } else {
        Err(SchemaError::Version { found, wanted })
    }
}

/// The sum of all whole numbers within a value.
fn total(value: &Value) -> u128 {
    match value {
        Value::Number(number) => number.as_u64().map_or(0, u128::from),
        Value::Array(members) => members.iter().map(total).sum(),
        Value::Object(members) => members.values().map(total).sum(),
        _ => 0,
    }
}

/// The buckets that the histograms within a value span: few bytes can ask for many.
fn buckets(value: &Value) -> u128 {
    match value {
        Value::Array(members) => members.iter().map(buckets).sum(),
        Value::Object(members) => {
            let stored = members.get("buckets").and_then(Value::as_array);
            let last = stored.and_then(|b| b.last()?.get(0)?.as_u64());
            u128::from(last.unwrap_or(0)) + members.values().map(buckets).sum::<u128>()
        }
        _ => 0,
    }
}

/// The first job of a plan whose workload is none that can be asked for.
fn unknown_workload(plan: &mut Value) -> Option<SchemaError> {
    let known = Workload::names();
    let text = |value: Option<&Value>| value?.as_str().map(str::to_owned);
    jobs(plan.get_mut("groups")).find_map(|job| {
        let kind = text(job.pointer("/workload/kind"))?;
        let job = text(job.get("name")).unwrap_or_default();
        (!known.contains(&kind)).then_some(SchemaError::Workload { job, kind })
    })
}

impl Plan {
    /// Reads a stored plan.
    ///
    /// # Errors
    /// Not JSON, another shape, another version, a workload that nothing carries out.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let mut document = document(text, PLAN_SCHEMA)?;
        let read = json::read::<Self>(text);
        let is_known = |job: &Job| !matches!(job.workload, Workload::Unknown(_));
        match &read {
            Ok(plan) if plan.jobs().all(|(_, job)| is_known(job)) => {}
            _ => unknown_workload(&mut document).map_or(Ok(()), Err)?,
        }
        Ok(read?)
    }

    /// The plan as indented JSON.
    ///
    /// # Errors
    /// A number without JSON form (not finite).
    pub fn to_json(&self) -> Result<String, SchemaError> {
        Ok(json::indented(&serde_json::to_string(self)?))
    }
}

impl RunResult {
    /// Reads a stored result.
    ///
    /// # Errors
    /// Not JSON, another shape, another version, figures that cannot be added up: whoever
    /// reads a result need not expect a sum of its counts or times to overflow. Histograms that
    /// would fill the memory. Fields that are not known are left out, also of the plan in it; a result
    /// of a newer version is read as far as it is known, and says so in its `schema`.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let mut document = document_or_newer(text, RESULT_SCHEMA)?;
        for part in ["groups", "disks"] {
            if document.get(part).map_or(0, total) > u128::from(u64::MAX) {
                return Err(SchemaError::TooLarge(part));
            }
        }
        if buckets(&document) > MOST_BUCKETS {
            return Err(SchemaError::TooManyBuckets);
        }
        if document.get("schema").and_then(Value::as_str) == Some(RESULT_SCHEMA) {
            // From the text, whose lines an error names.
            return json::read(text).or_else(|wrong| {
                prune_fields(&mut document);
                json::read(&document.to_string()).map_err(|_| wrong.into())
            });
        }
        prune_newer(&mut document);
        json::read(&document.to_string()).map_err(|e| SchemaError::Newer(e.to_string()))
    }

    /// Reads what another rank of the same run has written: nobody else can have made it, so its
    /// figures need not be looked at.
    ///
    /// # Errors
    /// Not JSON, another shape.
    pub fn from_rank(text: &[u8]) -> Result<Self, SchemaError> {
        Ok(serde_json::from_slice(text)?)
    }

    /// The result as JSON without blanks.
    ///
    /// # Errors
    /// A number without JSON form (not finite).
    pub fn to_json(&self) -> Result<String, SchemaError> {
        Ok(serde_json::to_string(self)?)
    }

    /// The same indented, for people.
    ///
    /// # Errors
    /// A number without JSON form (not finite).
    pub fn to_pretty_json(&self) -> Result<String, SchemaError> {
        Ok(json::indented(&serde_json::to_string(self)?))
    }

    /// True if a newer weir made it; members that this version does not know are left out.
    pub fn is_newer(&self) -> bool {
        self.schema != RESULT_SCHEMA
    }
}

/// The compact JSON of what an RPC's master is ordered to do, and of what it measured, read and written here alone.
macro_rules! between_processes {
    ($($of:ty),*) => {$(
        impl $of {
            /// Reads what another process of this version has written.
            ///
            /// # Errors
            /// Not JSON, another shape.
            pub fn from_json(text: &[u8]) -> Result<Self, SchemaError> {
                Ok(serde_json::from_slice(text)?)
            }

            /// As another process reads it.
            ///
            /// # Errors
            /// A number without JSON form (not finite).
            pub fn to_json(&self) -> Result<Vec<u8>, SchemaError> {
                Ok(serde_json::to_vec(self)?)
            }
        }
    )*};
}

between_processes!(RpcWorkload, RpcMaster);

/// File name and JSON Schema of each document.
#[cfg(feature = "json-schema")]
pub fn json_schemas() -> [(&'static str, Value); 3] {
    [
        (
            "plan.v2.schema.json",
            schemars::schema_for!(Plan).to_value(),
        ),
        (
            "result.v2.schema.json",
            schemars::schema_for!(RunResult).to_value(),
        ),
        (
            "runs.v2.schema.json",
            schemars::schema_for!(crate::Runs).to_value(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_refuses_by_name_what_its_workload_has_no_use_for() {
        let exchange = crate::ExchangeWorkload::default();
        let engine = crate::EngineChoice::new("null");
        let job = crate::Job::of_exchanges("e", engine, exchange);
        let text = Plan::new("p", "run", vec![job]).to_json().unwrap();
        Plan::from_json(&text).unwrap();
        for (place, setting) in [
            ("\"repetitions\"", "\"load\""),
            ("\"repetitions\"", "\"memory\""),
            ("\"clones\"", "\"depth\""),
            ("\"clones\"", "\"bounds\""),
        ] {
            let more = text.replace(place, &format!("{setting}: {{}}, {place}"));
            let refusal = Plan::from_json(&more).unwrap_err().to_string();
            let name = setting.trim_matches('"');
            assert!(refusal.contains(&format!("`{name}`")), "{refusal}");
        }
    }

    #[test]
    fn an_older_document_is_refused_by_its_version() {
        let text = Plan::new("p", "run", Vec::new()).to_json().unwrap();
        let old = text.replace(PLAN_SCHEMA, "weir.plan.v1");
        let refusal = Plan::from_json(&old).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "the document says schema \"weir.plan.v1\"; this program reads \"weir.plan.v2\" (it was \
             made by an older weir)"
        );
        let newer = text.replace(PLAN_SCHEMA, "weir.plan.v9");
        let refusal = Plan::from_json(&newer).unwrap_err().to_string();
        assert!(
            refusal.ends_with("(it was made by a newer weir)"),
            "{refusal}"
        );
    }

    #[test]
    fn a_document_without_a_schema_is_refused_by_that() {
        for text in ["{}", "[]", "7", "{\"schema\": 2}"] {
            let refusal = Plan::from_json(text).unwrap_err().to_string();
            assert_eq!(
                refusal, "the document has no `schema`; this program reads \"weir.plan.v2\"",
                "{text}"
            );
        }
    }

    #[test]
    fn a_newer_result_is_read_as_far_as_it_is_known() {
        let result = RunResult::of(Plan::new("p", "run", Vec::new()));
        let text = result.to_json().unwrap();
        let newer = text.replace(RESULT_SCHEMA, "weir.result.v9").replacen(
            '{',
            "{\"unheard_of\": [1, {}], ",
            1,
        );
        let read = RunResult::from_json(&newer).unwrap();
        assert!(read.is_newer() && !result.is_newer());
        assert_eq!(
            RunResult {
                schema: result.schema.clone(),
                ..read
            },
            result
        );
        let older = text.replace(RESULT_SCHEMA, "weir.result.v1");
        let refusal = RunResult::from_json(&older).unwrap_err().to_string();
        assert!(refusal.contains("older weir"), "{refusal}");
    }

    /// Adds a field to every object that has one of these names.
    fn extend(value: &mut Value, names: &[&str]) {
        match value {
            Value::Array(members) => members.iter_mut().for_each(|m| extend(m, names)),
            Value::Object(members) => {
                for (name, member) in members {
                    extend(member, names);
                    if let (true, Some(object)) = (names.contains(&&**name), member.as_object_mut())
                    {
                        object.insert(format!("later_{name}"), 1.into());
                    }
                }
            }
            _ => {}
        }
    }

    #[test]
    fn unknown_fields_of_a_result_are_left_out_however_deep() {
        let job = crate::sample::block_job("a");
        let result = crate::sample::everything(Plan::new("p", "run", vec![job]));
        let mut json = serde_json::to_value(&result).unwrap();
        let names = [
            "histogram",
            "series",
            "ops_per_s",
            "value_ns",
            "plan",
            "load",
        ];
        extend(&mut json, &names);
        let more = json.to_string();
        for name in names {
            assert!(more.contains(&format!("later_{name}")), "{name}");
        }
        assert_eq!(RunResult::from_json(&more).unwrap(), result);
        // What else is wrong is told with the place of the first fault.
        json["complete"] = 7.into();
        let refusal = RunResult::from_json(&json.to_string()).unwrap_err();
        assert!(matches!(refusal, SchemaError::Shape { .. }), "{refusal}");
        let refusal = Plan::from_json(&json["plan"].to_string()).unwrap_err();
        assert!(refusal.to_string().contains("`later_"), "{refusal}");
    }

    #[test]
    fn a_newer_result_of_an_unknown_workload_keeps_its_figures() {
        let job = crate::sample::block_job("new");
        let mut result = RunResult::of(Plan::new("p", "run", vec![job]));
        let done = &mut result.groups[0].jobs[0];
        done.metrics = vec![crate::Metric::high("answers", "ops/s", 7.0)];
        let mut json = serde_json::to_value(&result).unwrap();
        json["schema"] = "weir.result.v9".into();
        json["plan"]["schema"] = "weir.plan.v9".into();
        json["plan"]["later"] = 1.into();
        json["plan"]["groups"][0]["jobs"][0]["workload"] =
            serde_json::json!({"kind": "oracle", "asks": [1, 2]});
        json["groups"][0]["jobs"][0]["outcome"] = serde_json::json!({"kind": "oracle", "x": 1});
        let read = RunResult::from_json(&json.to_string()).unwrap();
        let (_, planned) = read.plan.jobs().next().unwrap();
        assert_eq!(planned.workload.title(), "oracle");
        assert_eq!(
            read.jobs().next().unwrap().metrics,
            result.groups[0].jobs[0].metrics
        );
        // A plan that asks for it is refused by its name.
        let mut plan = json["plan"].take();
        plan["schema"] = PLAN_SCHEMA.into();
        plan.as_object_mut().unwrap().remove("later");
        let refusal = Plan::from_json(&plan.to_string()).unwrap_err().to_string();
        assert!(refusal.contains("`oracle`"), "{refusal}");
    }

    #[test]
    fn a_result_whose_figures_cannot_be_added_up_is_refused() {
        let text = |bytes: u64| {
            let groups = format!(r#"[{{"jobs": [], "rates": [1, {{"bytes": {bytes}}}]}}]"#);
            format!(r#"{{"schema": "{RESULT_SCHEMA}", "groups": {groups}}}"#)
        };
        let refusal = |text: &str| RunResult::from_json(text).unwrap_err();
        let largest = refusal(&text(u64::MAX - 1));
        assert!(matches!(largest, SchemaError::Shape { .. }), "{largest}");
        let refused = refusal(&text(u64::MAX));
        assert!(
            matches!(refused, SchemaError::TooLarge("groups")),
            "{refused}"
        );
    }

    #[test]
    fn a_result_whose_histograms_would_fill_the_memory_is_refused() {
        let text = |histograms: usize| {
            let histogram = r#"{"bits": 10, "buckets": [[0, 1], [56319, 1]]}"#;
            let groups = vec![histogram; histograms].join(", ");
            format!(r#"{{"schema": "{RESULT_SCHEMA}", "groups": [{groups}]}}"#)
        };
        let refusal = |text: &str| RunResult::from_json(text).unwrap_err();
        assert!(matches!(refusal(&text(2000)), SchemaError::Shape { .. }));
        assert!(matches!(refusal(&text(3000)), SchemaError::TooManyBuckets));
    }
}

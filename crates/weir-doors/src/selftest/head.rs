//! Head of the results: callers and endpoints, defaults, the parameters.
//!
//! In: a plan, what the words said. Out: lines. Spec: RPC self-test, 4. Not here: results.

use weir_schema::{
    EndpointError, EndpointSet, Members, Plan, RpcEndpoint, RpcWorkload, count_endpoints,
    expand_endpoints, shuffle_endpoints,
};

use super::endpoints::{endpoint_set, normalised};
use super::output::{self, works};
use super::sizes::MessagePair;
use super::{plan, table_file};
use crate::given::GivenFlags;

/// Facts about the arguments, for the lines before the results.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct HeadFacts {
    /// The sets of endpoints and masters in the order of the arguments.
    sets: Vec<EndpointSet>,
    /// `-u`.
    has_agent: bool,
    /// An alignment out of range.
    odd_align: Option<String>,
    has_group: bool,
    has_masters: bool,
    has_endpoints: bool,
}

impl HeadFacts {
    pub(super) fn read(given: &GivenFlags) -> Self {
        let names = ["endpoint", "master-endpoint"];
        let sets = given.iter().filter(|(flag, _)| names.contains(&flag.name));
        let align = given.text("align").map(str::to_owned);
        Self {
            sets: sets
                .filter_map(|(_, text)| endpoint_set(text).ok())
                .collect(),
            has_agent: given.has("use-daos-agent-env"),
            odd_align: align.filter(|_| given.whole::<u8>("align").is_none()),
            has_group: given.has("group-name"),
            has_masters: given.has("master-endpoint"),
            has_endpoints: given.has("endpoint"),
        }
    }
}

/// Every line before the results.
pub(super) fn head(plan: &Plan, facts: &HeadFacts) -> String {
    let mut out = String::new();
    for set in &facts.sets {
        adding(&mut out, set);
    }
    let Some(work) = output::first_work(plan) else {
        return out;
    };
    warnings(&mut out, work, facts);
    if work.shuffle {
        shuffled(&mut out, work);
    }
    parameters(&mut out, plan, work);
    out
}

fn adding(out: &mut String, set: &EndpointSet) {
    let count = |members: &Members| match members.count_alone() {
        Ok(count) => count.to_string(),
        Err(EndpointError::NoGroup) => "all".to_owned(),
        Err(EndpointError::TooMany) => "many".to_owned(),
    };
    push!(out, "Adding endpoints:\n");
    for (name, members) in [("ranks", &set.ranks), ("tags", &set.tags)] {
        let words = normalised(members);
        push!(out, "  {name}: {words} (# {name} = {})\n", count(members));
    }
}

fn warnings(out: &mut String, work: &RpcWorkload, facts: &HeadFacts) {
    if let Some(value) = &facts.odd_align {
        push!(
            out,
            "Warning: Invalid align value {value}; Expected value in range [0:255]\n"
        );
    }
    if let Some(table) = work.table.as_deref().filter(|_| !facts.has_agent) {
        push!(
            out,
            "Warning: running without daos_agent connection (-u option); Using attachment file {} \
             instead\n",
            table_file(table, &work.group)
        );
    }
    if !facts.has_group {
        push!(
            out,
            "Warning: no --group-name specified; using '{}'\n",
            work.group
        );
    }
    if !facts.has_masters {
        out.push_str(
            "Warning: No --master-endpoint specified; using this command line application as the \
             master endpoint\n",
        );
    }
    if !facts.has_endpoints {
        let endpoint = plan::default_endpoint(facts.has_agent);
        push!(
            out,
            "Warning: No --endpoint specified; using {endpoint} default\n"
        );
    }
}

fn shuffled(out: &mut String, work: &RpcWorkload) {
    out.push_str("Randomizing order of endpoints\nNew order:\n");
    let mut all: Vec<RpcEndpoint> = expand_endpoints(&work.endpoints, &[]).unwrap_or_default();
    shuffle_endpoints(&mut all, work.seed);
    for endpoint in all {
        push!(out, "{endpoint} ");
    }
    out.push('\n');
}

fn parameters(out: &mut String, plan: &Plan, work: &RpcWorkload) {
    // Of a sweep, and of a search for a rate, each pair stands there once.
    let mut pairs: Vec<String> = Vec::new();
    let is_other = |one: &RpcWorkload| {
        one.in_flight() != work.in_flight() || one.load.pacing != work.load.pacing
    };
    let is_sweep = works(plan).any(is_other);
    for one in works(plan) {
        let pair = MessagePair::of(one);
        let words = pair.words();
        if !(is_sweep && pairs.last() == Some(&words)) {
            pairs.push(words);
        }
    }
    let endpoints = endpoint_count(work);
    let endpoints = endpoints.map_or_else(|| "all".to_owned(), |count| count.to_string());
    let low_byte = work.buffer_low_byte;
    let low_byte = low_byte.map_or_else(|| "<Default>".to_owned(), |byte| byte.to_string());
    let bounds = &work.load.bounds;
    let repetitions = match (bounds.operations, bounds.runtime_ns) {
        (Some(count), _) => count.to_string(),
        (None, Some(time)) => format!("as many as {} s take", time.as_secs_f64()),
        (None, None) => "<Default>".to_owned(),
    };
    push!(out, "Self Test Parameters:\n");
    push!(out, "  Group name to test against: {}\n", work.group);
    push!(out, "  # endpoints:                {endpoints}\n");
    push!(
        out,
        "  Message sizes:              [{}]\n",
        pairs.join(", ")
    );
    push!(out, "  Buffer addresses end with:  {low_byte}\n");
    push!(out, "  Repetitions per size:       {repetitions}\n");
    let mut depths: Vec<u64> = works(plan).map(RpcWorkload::in_flight).collect();
    depths.sort_unstable();
    depths.dedup();
    let depths: Vec<String> = depths.iter().map(u64::to_string).collect();
    push!(
        out,
        "  Max in-flight RPCs:          {}\n\n",
        depths.join(", ")
    );
}

/// Number of endpoints that are called, where the plan alone says it.
fn endpoint_count(work: &RpcWorkload) -> Option<u64> {
    let product = work.load.bounds.operations;
    let by_product = product.and_then(|product| product.checked_div(work.repetitions));
    by_product.or_else(|| count_endpoints(&work.endpoints, &[]).ok())
}

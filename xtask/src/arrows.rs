//! Arrows: which crate of the workspace may use which.
//!
//! In: `cargo metadata` and `arrows.toml`. Out: the number of edges, or the
//! edges that are not listed. Edges of every kind count: a test that reaches
//! around the layers is a sign that the layers are wrong.
//! Not here: crates from outside (`deny.toml`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cmd::Cmd;

/// Rule that an unlisted edge breaks, and advice.
const RULE: &str = "not in arrows.toml, where arrows point to lower layers alone and families of \
                    engines never use each other: move what both need to a layer below both \
                    (ARCHITECTURE.md, Rooms), or list an edge that points down";

/// For each crate, the crates it may use or does use.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// The verb.
pub(crate) fn run(_: &[String]) -> Result<()> {
    let metadata = Cmd::new("cargo metadata --no-deps --format-version 1").read()?;
    let used = edges(&serde_json::from_str(&metadata)?)?;
    let allowed = toml::from_str(&std::fs::read_to_string("arrows.toml")?)
        .context("arrows.toml: for each crate, the list of crates it may use")?;
    let wrong = violations(&used, &allowed);
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    let count: usize = used.values().map(BTreeSet::len).sum();
    println!("{count} edges between {} crates, all listed", used.len());
    Ok(())
}

/// The edges between workspace crates. A dependency with a path is one of ours.
fn edges(metadata: &Value) -> Result<Edges> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata: no list `packages`")?;
    let mut edges = Edges::new();
    for package in packages {
        let name = package["name"].as_str().context("a package has no name")?;
        let used = package["dependencies"].as_array().into_iter().flatten();
        edges.entry(name.to_owned()).or_default().extend(
            used.filter(|dependency| dependency["path"].is_string())
                .filter_map(|dependency| dependency["name"].as_str())
                .map(str::to_owned),
        );
    }
    Ok(edges)
}

fn violations(used: &Edges, allowed: &Edges) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, targets) in used {
        let Some(listed) = allowed.get(from) else {
            wrong.push(format!(
                "{from}: this crate is not in arrows.toml: give it a line in its layer"
            ));
            continue;
        };
        for to in targets.difference(listed) {
            wrong.push(format!("{from} -> {to}: {RULE}"));
        }
    }
    for gone in allowed.keys().filter(|name| !used.contains_key(*name)) {
        wrong.push(format!("{gone}: in arrows.toml, but no such crate"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata() -> Value {
        json!({"packages": [
            {"name": "weir-units", "dependencies": [{"name": "serde"}]},
            {"name": "weir-net", "dependencies": [
                {"name": "weir-units", "path": "/r/weir-units", "kind": null}]},
            {"name": "weir-block", "dependencies": [
                {"name": "weir-units", "path": "/r/weir-units", "kind": null},
                {"name": "weir-net", "path": "/r/weir-net", "kind": "dev"}]},
        ]})
    }

    fn allowed(text: &str) -> Edges {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn listed_edges_pass_and_outside_crates_do_not_count() {
        let used = edges(&metadata()).unwrap();
        let table = "weir-units = []\nweir-net = ['weir-units']\n\
                     weir-block = ['weir-units', 'weir-net']";
        assert_eq!(violations(&used, &allowed(table)), [""; 0]);
        assert_eq!(used["weir-units"].len(), 0);
    }

    #[test]
    fn an_edge_between_two_families_is_named_even_as_a_dev_dependency() {
        let used = edges(&metadata()).unwrap();
        let table = "weir-units = []\nweir-net = ['weir-units']\nweir-block = ['weir-units']";
        assert_eq!(
            violations(&used, &allowed(table)),
            [format!("weir-block -> weir-net: {RULE}")]
        );
    }

    #[test]
    fn an_unlisted_crate_and_an_idle_entry_are_named() {
        let used = edges(&metadata()).unwrap();
        let table = "weir-units = []\nweir-net = ['weir-units']\nweir-old = []";
        let wrong = violations(&used, &allowed(table));
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong[0].starts_with("weir-block: this crate is not in"));
        assert!(wrong[1].starts_with("weir-old: in arrows.toml, but"));
    }
}

//! Forms of a comparison: files by their suffix, a page, the pages of `weir report`.

use serde_json::Value as Json;
use weir_schema::{Interval, RunResult};

use crate::compare::{SHORT, json, verdict};
use crate::stage::{Stage, root};

const JOB: &str = "[a]\nioengine=null\nrw=read\nsize=1m\nruntime=20ms\ntime_based\n";

/// Two results, the second with the half of the rate, each sure of itself within 1 %.
fn stage_with_results(job: &str) -> Stage {
    let stage = Stage::in_memory();
    let file = stage.file("a.fio", JOB.replace("[a]", &format!("[{job}]")));
    stage
        .say(&["run", "--store-result=one.json", &file])
        .code(0);
    let run = RunResult::from_json(&stage.read("one.json")).unwrap();
    for (name, factor) in [("before.json", 1.0), ("after.json", 0.5)] {
        let mut run = run.clone();
        for metric in run
            .groups
            .iter_mut()
            .flat_map(|group| &mut group.jobs)
            .flat_map(|job| &mut job.metrics)
        {
            metric.value *= factor;
            metric.interval = Some(Interval {
                low: 0.99 * metric.value,
                high: 1.01 * metric.value,
            });
        }
        stage.file(name, run.to_json().unwrap());
    }
    stage
}

#[test]
fn a_file_has_the_form_of_its_suffix() {
    let stage = stage_with_results("a");
    let mut words = vec!["compare", "before.json", "after.json", "--metrics=rate"];
    for name in ["c.txt", "c.json", "c.csv", "c.md", "c.html", "c.xml"] {
        words.extend(["-o", name]);
    }
    stage.say(&words).code(0).calm().silent();
    let begins = |name: &str, head: &str| {
        let text = stage.read(name);
        assert!(text.starts_with(head), "{name}: {text}");
    };
    begins("c.txt", "compare  before.json -> after.json   1 run each");
    begins("c.json", "{\"schema\":\"weir.comparison.v1\"");
    begins("c.csv", "base,side,job,kind,metric");
    begins("c.md", "### before.json → after.json");
    begins("c.html", "<!DOCTYPE html>");
    begins("c.xml", "<?xml version=\"1.0\"");
    let both = ["--output=d.md", "--format=csv"];
    let said = stage.say(&[&words[..4], &both].concat()).code(0).calm();
    assert_eq!(said.out, stage.read("c.csv"));
    assert_eq!(stage.read("d.md"), stage.read("c.md"));
}

#[test]
fn a_page_has_the_table_the_sentence_and_plots_of_both_sides() {
    let stage = stage_with_results("</script><img>");
    let words = [
        "compare",
        "before.json",
        "after.json",
        "--metrics=rate",
        "--fail-if=rate<-5%",
        "--single-run-ok",
        "--format=html",
    ];
    let page = stage.say(&words).code(1).out;
    for part in [
        "<section id=\"compare\"><h2>Comparison</h2><h3>before.json → after.json: 1 run each",
        "<p class=\"bad\">after.json is worse in read rate: -50 %",
        "<th>change</th>",
        "<td>worse</td>",
        "<p class=\"bad\">FAILED: rate&lt;-5% holds for after.json (&lt;/script&gt;&lt;img&gt;, read rate)",
        "within one run each",
        "<figure",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(!page.contains("<img>"), "{page}");
    assert_eq!(page.matches("</script").count(), 1);
}

#[test]
fn a_report_of_several_results_compares_them_by_the_same_rule() {
    let stage = stage_with_results("a");
    let words = ["report", "before.json", "after.json", "-o", "r.html"];
    stage.say(&words).code(0).calm();
    let page = stage.read("r.html");
    let section = page.split_once("id=\"compare\"").unwrap().1;
    let section = section.split_once("</section>").unwrap().0;
    assert!(
        section.contains("after is worse in read rate: -50 %"),
        "{section}"
    );
    let csv = stage
        .say(&["compare", "before.json", "after.json", "--format=csv"])
        .code(0);
    let verdicts = |word: &str| csv.out.matches(&format!(",{word},")).count();
    for word in ["worse", "better", "same", "unsure"] {
        let shown = section.matches(&format!("<td>{word}")).count();
        assert_eq!(shown, verdicts(word), "{word}: {section}\n{csv}");
    }
    stage
        .say(&["report", "before.json", "-o", "one.html"])
        .code(0);
    assert!(!stage.read("one.html").contains("id=\"compare\""));
    // Runs that took turns beside another result have no base.
    let words = [
        "run",
        "--repeat=2",
        "--pause=0",
        "a.fio",
        "b.fio",
        "--store-result=r.json",
    ];
    stage.file("b.fio", JOB.replace("read", "write"));
    stage.say(&words).code(0);
    stage.say(&["report", "r.json", "-o", "turns.html"]).code(0);
    assert!(stage.read("turns.html").contains("2 rounds ABBA"));
    let words = ["report", "r.json", "before.json", "-o", "mixed.html"];
    stage.say(&words).code(0);
    let why = "not comparable: r.json holds the runs of 2 plans";
    assert!(stage.read("mixed.html").contains(why));
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_runs() {
    let stage = stage_with_results("a");
    let refused = |words: &[&str], says: &str| {
        let all = [&["compare"], words].concat();
        stage.say(&all).code(2).silent().err(says);
    };
    let stored = ["before.json", "after.json"];
    refused(
        &[&stored[..], &["-o", "after.json"]].concat(),
        "where the comparison goes",
    );
    refused(&[&stored[..], &["-o", "c.htm"]].concat(), ".html");
    refused(&[&stored[..], &["-o", "none/c.md"]].concat(), "none/c.md");
    refused(
        &[&stored[..], &["-o", "c.md", "--raw"]].concat(),
        "--raw acts only with",
    );
    let text = JOB.replace("[a]", "[a]\nexec_prerun=echo begun >> begun");
    let a = stage.file("a.fio", text);
    let rounds = ["--run", &a, &a, "--rounds=8", "--settle=0"];
    refused(&[&rounds[..], &["-o", "none/c.md"]].concat(), "none/c.md");
    refused(
        &[&rounds[..], &["-o", "r.json", "--store-result=r.json"]].concat(),
        "where the comparison goes",
    );
    assert!(!stage.list().contains(&"begun".to_owned()));
}

#[test]
fn commands_show_how_far_their_rounds_are() {
    let stage = Stage::in_memory();
    let words = [
        "compare",
        "--cmd=sleep 0.3",
        "--cmd=true",
        "--metrics=wall",
        "--rounds=6",
        "--settle=0",
        "--warmup=0",
    ];
    let said = stage
        .say(&[&words[..], &["--progress=json"]].concat())
        .code(0);
    let lines: Vec<Json> = said
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_round = |number: usize| {
        let name = format!("sleep 0.3, round {number} of 6");
        let line = lines.iter().find(|line| line["job"] == name.as_str());
        line.unwrap_or_else(|| panic!("no {name} in {said}"))["done_fraction"]
            .as_f64()
            .unwrap()
    };
    // Of the sixth round the one that is later comes first.
    assert!(of_round(1).abs() < 1e-9, "{said}");
    assert!((of_round(6) - 11.0 / 12.0).abs() < 1e-9, "{said}");
    stage.say(&words).code(0).calm();
}

/// Where a document is not what a JSON Schema says of it.
fn departure(document: &Json, schema: &Json, root: &Json, place: &str) -> Option<String> {
    let at = |why: String| Some(format!("{place}: {why}"));
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(&reference[1..]).unwrap();
        return departure(document, target, root, place);
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(all) = schema[several].as_array() {
            let fits = |one: &&Json| departure(document, one, root, place).is_none();
            if !all.iter().any(|one| fits(&one)) {
                return at(format!("{document} is none of {several}"));
            }
        }
    }
    if let Some(only) = schema.get("const").filter(|only| *only != document) {
        return at(format!("{document} is not {only}"));
    }
    if let Some(all) = schema["enum"]
        .as_array()
        .filter(|all| !all.contains(document))
    {
        return at(format!("{document} is none of {all:?}"));
    }
    let kind = match document {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    let is_kind = |of: &Json| of == kind || (of == "number" && kind == "integer");
    let fits = match &schema["type"] {
        Json::Array(kinds) => kinds.iter().any(is_kind),
        Json::Null => true,
        one => is_kind(one),
    };
    if !fits {
        return at(format!("{document} is no {}", schema["type"]));
    }
    if let (Some(all), Some(items)) = (document.as_array(), schema.get("items")) {
        let of = |(number, one)| departure(one, items, root, &format!("{place}/{number}"));
        return all.iter().enumerate().find_map(of);
    }
    let (Some(fields), Some(known)) = (document.as_object(), schema["properties"].as_object())
    else {
        return None;
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let mut missing = required.filter(|name| !fields.contains_key(name.as_str().unwrap()));
    if let Some(name) = missing.next() {
        return at(format!("{name} is missing"));
    }
    fields
        .iter()
        .find_map(|(name, value)| match known.get(name) {
            Some(schema) => departure(value, schema, root, &format!("{place}/{name}")),
            None => at(format!("{name} is not known")),
        })
}

#[test]
fn the_json_of_a_comparison_is_what_its_schema_says() {
    let stage = stage_with_results("a");
    let path = root().join("schemas/comparison.v1.schema.json");
    let schema: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let words = [
        "compare",
        "before.json",
        "after.json",
        "--fail-if=worse",
        "--single-run-ok",
        "--format=json",
    ];
    let said = stage.say(&words).code(1);
    let mut document: Json = serde_json::from_str(&said.out).unwrap();
    assert_eq!(departure(&document, &schema, &schema, ""), None);
    document["pairs"][0]["jobs"][0]["metrics"][0]["verdict"]["name"] = "wors".into();
    assert!(departure(&document, &schema, &schema, "").is_some());
}

#[test]
fn a_stored_comparison_is_printed_again_by_its_own_rule() {
    let stage = Stage::new();
    stage.file("j.fio", SHORT.replace("runtime=50ms", "runtime=20ms"));
    let words = "compare --run j.fio --vary bs=4k,64k --rounds=9 --settle=0 --warmup=0";
    let rule = "--metrics=bandwidth,p99 --threshold=3,p99=8 --alpha=0.02 --store-result=v.json";
    let words: Vec<&str> = words.split(' ').chain(rule.split(' ')).collect();
    let said = stage.say(&words).code(0).out("  bandwidth ");
    for verb in ["compare", "show"] {
        let again = stage.say(&[verb, "v.json"]).code(0).calm();
        assert_eq!(again.out, said.out, "{verb}");
    }
    let again = json(&stage.say(&["show", "v.json", "--format=json"]).code(0));
    assert_eq!(again["alpha"], 0.02);
    let metrics = again["pairs"][0]["jobs"][0]["metrics"].as_array().unwrap();
    let thresholds: Vec<f64> = metrics
        .iter()
        .map(|m| m["threshold"].as_f64().unwrap())
        .collect();
    assert_eq!(thresholds, [0.03, 0.08]);
    // Words count more than what is stored.
    let words = ["compare", "v.json", "--metrics=rate", "--alpha=0.05"];
    let other = json(
        &stage
            .say(&[&words[..], &["--format=json"]].concat())
            .code(0),
    );
    assert_eq!(other["alpha"], 0.05);
    verdict(&other, "rate");
    stage
        .say(&["show", "v.json", "--as=run"])
        .code(0)
        .out("machine  ");
    stage
        .say(&["show", "v.json", "--output=x.html"])
        .code(2)
        .err("only printed here");
}

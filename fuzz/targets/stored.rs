//! Stored plans and results: read or refused, and what is read can be shown by every renderer.
//!
//! An input that begins with `{` is the document itself, one with `h`, `s` or `v` a histogram, a
//! series or a state of verification behind that letter. Any other is a list of changes to a
//! document that a run could have left: its first byte chooses the document, and how a result
//! is shown; then for each change two bytes choose a value, one what becomes of it, eight are
//! a number for that.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use weir_diagnose::{PathContext, RecordedPath};
use weir_doors::{fio, house, run};
use weir_fuzz::{plan, result};
use weir_report::{LabelledResult, Style};
use weir_schema::{Plan, RunResult, VerifyState};
use weir_stats::{Histogram, Series};

static RESULT: LazyLock<Value> = LazyLock::new(|| {
    let stored = result().to_json().expect("a result has a stored form");
    RunResult::from_json(&stored).expect("the unchanged result is read");
    serde_json::from_str(&stored).expect("a stored result is JSON")
});
static PLAN: LazyLock<Value> = LazyLock::new(|| {
    let stored = plan().to_json().expect("a plan has a stored form");
    serde_json::from_str(&stored).expect("a stored plan is JSON")
});

fuzz_target!(|data: &[u8]| {
    let Some((first, changes)) = data.split_first() else {
        return;
    };
    match *first {
        b'h' => return read_histogram(changes),
        b's' => return read_series(changes),
        b'v' => return read_state(changes),
        _ => {}
    }
    if *first == b'{' {
        let text = String::from_utf8_lossy(data);
        read_plan(&text);
        read_result(&text, data.len());
        return;
    }
    let of_plan = first % 4 == 0;
    let mut document = if of_plan {
        PLAN.clone()
    } else {
        RESULT.clone()
    };
    for change in changes.chunks(11).take(16) {
        let mut bytes = [0; 11];
        bytes[..change.len()].copy_from_slice(change);
        apply(&mut document, &bytes);
    }
    let text = document.to_string();
    if of_plan {
        read_plan(&text);
    } else {
        read_result(&text, usize::from(first / 4));
    }
});

/// Changes one value of a document.
fn apply(document: &mut Value, [low, high, change, number @ ..]: &[u8; 11]) {
    let number = u64::from_le_bytes(*number);
    let count = count(document);
    let wanted = usize::from(u16::from_le_bytes([*low, *high])) % count;
    let other = nth(document, usize::try_from(number).unwrap_or(0) % count).clone();
    let value = nth(document, wanted);
    match change % 12 {
        0 => *value = json!(number),
        1 => *value = json!(i64::from_le_bytes(number.to_le_bytes())),
        2 => *value = json!(f64::from_bits(number)),
        3 => *value = json!(number % 1000),
        4 => *value = json!(number.to_string()),
        5 => *value = json!(String::from_utf8_lossy(&number.to_le_bytes())),
        6 => *value = Value::Null,
        7 => *value = json!(number % 2 == 0),
        8 => *value = other,
        9 => shorten(value, number),
        10 => repeat(value, number),
        _ => *value = json!(u64::MAX >> (number % 64)),
    }
}

/// Takes a member out.
fn shorten(value: &mut Value, number: u64) {
    let at = |length: usize| usize::try_from(number).unwrap_or(0) % length;
    match value {
        Value::Array(members) if !members.is_empty() => {
            members.remove(at(members.len()));
        }
        Value::Object(members) if !members.is_empty() => {
            let key = members.keys().nth(at(members.len())).cloned();
            members.shift_remove(&key.unwrap_or_default());
        }
        _ => *value = json!([]),
    }
}

/// Puts copies of a member beside it.
fn repeat(value: &mut Value, number: u64) {
    if let Value::Array(members) = value
        && let Some(first) = members.first().cloned()
    {
        let copies = usize::try_from(number % 8).unwrap_or(0);
        members.extend(std::iter::repeat_n(first, copies));
    }
}

fn members(value: &mut Value) -> Box<dyn Iterator<Item = &mut Value> + '_> {
    match value {
        Value::Array(members) => Box::new(members.iter_mut()),
        Value::Object(members) => Box::new(members.values_mut()),
        _ => Box::new(std::iter::empty()),
    }
}

fn count(value: &mut Value) -> usize {
    1 + members(value).map(count).sum::<usize>()
}

/// A value by its place in the document.
fn nth(value: &mut Value, mut place: usize) -> &mut Value {
    if place == 0 || !(value.is_array() || value.is_object()) {
        return value;
    }
    place -= 1;
    for member in members(value) {
        let size = count(member);
        if place < size {
            return nth(member, place);
        }
        place -= size;
    }
    unreachable!("the place is within the document")
}

fn read_plan(text: &str) {
    match Plan::from_json(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(plan) => {
            let stored = plan.to_json().expect("a plan has a stored form");
            assert!(Plan::from_json(&stored).expect("a stored plan") == plan);
            let _ = fio::output::banner(&plan, fio::output::FioTextOptions::default(), "1.2.3");
            let words = ["p.json", "--readonly", "--percentiles=50", "--no-latency"];
            if let Ok(run) = run::read_run(&words.map(str::to_owned)) {
                let _ = run.adjust(&mut plan.clone());
            }
        }
    }
}

fn read_result(text: &str, look: usize) {
    match RunResult::from_json(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(result) => {
            let stored = result.to_json().expect("a result has a stored form");
            assert_eq!(
                RunResult::from_json(&stored).expect("a stored result"),
                result
            );
            explore(&result);
            show(&result, look);
            diagnose(&result);
        }
    }
}

/// Says what holds each packet path back.
fn diagnose(result: &RunResult) {
    let paths = RecordedPath::all_of(result).into_iter();
    for path in paths.filter_map(|(_, path)| path.ok()) {
        for diagnosis in path.diagnoses(&PathContext::default()) {
            assert!(weir_diagnose::text(&diagnosis, true).ends_with('\n'));
        }
    }
}

fn read_histogram(text: &[u8]) {
    if let Ok(histogram) = serde_json::from_slice::<Histogram>(text) {
        figures(&histogram);
        let stored = serde_json::to_vec(&histogram).expect("a histogram has a stored form");
        let read: Histogram = serde_json::from_slice(&stored).expect("a stored histogram");
        assert!(read == histogram);
        let mut sum = histogram.clone();
        if sum.merge(&histogram).is_ok() {
            figures(&sum);
            let rest = sum.since(&histogram).expect("an earlier state");
            assert_eq!(rest.count(), histogram.count());
        }
    }
}

fn read_series(text: &[u8]) {
    if let Ok(series) = serde_json::from_slice::<Series>(text) {
        let lengths = series.points().map(|p| u128::from(p.length.0));
        let length = lengths.sum::<u128>().min(u128::from(u64::MAX));
        assert_eq!(u128::from(series.length().0), length);
        let mut sum = series.clone();
        sum.add(&series).expect("the same intervals");
        assert_eq!(sum.len(), series.len());
    }
}

fn read_state(text: &[u8]) {
    if let Ok(state) = VerifyState::from_json(text) {
        let stored = state.to_json().expect("a state has a stored form");
        let read = VerifyState::from_json(stored.as_bytes()).expect("a stored state");
        assert!(read == state);
    }
}

/// Computes what there is to compute from histograms and series.
fn explore(result: &RunResult) {
    let workers = || result.jobs().flat_map(weir_schema::JobResult::workers);
    let kinds: Vec<_> = workers().flat_map(|w| &w.kinds).collect();
    let mut sum = Histogram::new();
    let mut series: Option<Series> = None;
    for kind in kinds {
        for stage in &kind.stages {
            figures(&stage.histogram);
            let _ = sum.merge(&stage.histogram);
            let _ = sum.since(&stage.histogram);
        }
        for point in kind.series.points() {
            let _ = (point.iops(), point.bandwidth());
        }
        let _ = kind.series.length();
        let _ = series.get_or_insert(kind.series.clone()).add(&kind.series);
    }
    figures(&sum);
}

fn figures(histogram: &Histogram) {
    let ends = histogram.min().zip(histogram.max());
    for p in [-1.0, 0.0, 1e-9, 50.0, 99.9, 100.0, 101.0, f64::NAN] {
        if let Some((value, (min, max))) = histogram.percentile(p).zip(ends) {
            assert!(min <= value && value <= max, "{p} {histogram:?}");
        }
        let _ = histogram.percentile_edges(p);
        let _ = histogram.few_samples(p);
    }
    let _ = (histogram.mean(), histogram.spread());
}

/// Shows a result in every way; weir's own text in one of its looks.
fn show(result: &RunResult, look: usize) {
    let narrow = Style {
        width: 20,
        ascii: true,
        color: true,
        ..Style::default()
    };
    let raw = Style {
        raw: true,
        ..Style::default()
    };
    let looks = [Style::default(), narrow, raw];
    let text = weir_report::text(result, &looks[look % looks.len()]);
    assert!(text.ends_with('\n'));
    let results = ["a", "b"].map(|label| LabelledResult {
        label: label.to_owned(),
        result,
    });
    for results in [&results[..1], &results] {
        let page = weir_report::html(results, &[]);
        assert!(page.len() <= 8_000_000 && page.matches("</script").count() == 1);
    }
    let options = fio::output::FioTextOptions {
        bins: true,
        ..fio::output::FioTextOptions::default()
    };
    let _ = fio::output::normal(result, options);
    let _ = fio::output::terse(result, options);
    let _ = fio::output::complaints(result, &[]);
    let document = fio::output::json(result, options, None);
    let document: Result<Value, _> = serde_json::from_str(&document);
    assert!(document.is_ok(), "{document:?}");
    let _ = fio::output::banner(&result.plan, options, "1.2.3");
    let _ = fio::output::failures(result);
    let _ = fio::exit_code(result, fio::ExitStyle::Unix);
    let _ = house::exit_code(result, &house::Strict::All);
}

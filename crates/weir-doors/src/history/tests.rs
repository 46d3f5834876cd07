//! Tests of the arguments of `weir history`.

use super::*;

fn of(text: &str) -> Result<Action, Refusal> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    read(&words.map(str::to_owned).collect::<Vec<_>>())
}

/// Page that these arguments print.
fn page_of(text: &str) -> String {
    match of(text).unwrap() {
        Action::Print(page) => page,
        asked @ Action::Do { .. } => panic!("{asked:?}"),
    }
}

fn request(text: &str) -> Request {
    match of(text) {
        Ok(Action::Do { request, .. }) => request,
        other => panic!("{text}: {other:?}"),
    }
}

fn message(text: &str) -> String {
    let refusal = of(text).unwrap_err();
    assert_eq!(refusal.code, 2);
    refusal.message
}

#[test]
fn without_a_verb_the_runs_are_listed() {
    let filter = RunFilter {
        limit: Some(20),
        ..RunFilter::default()
    };
    let list = |filter, json| Request::List {
        filter,
        style: ListStyle { json, ascii: false },
    };
    assert_eq!(request(""), list(filter.clone(), false));
    assert_eq!(request("--json"), list(filter, true));
    let filter = RunFilter {
        label: Some("x".to_owned()),
        since: Some(Since::Ago(7 * 86_400)),
        tags: vec![("k".to_owned(), "v".to_owned())],
        ..RunFilter::default()
    };
    let words = "list --label x --since 7d --tag k=v --limit all";
    assert_eq!(request(words), list(filter, false));
    let action = of("path --history h.db").unwrap();
    let file = Some("h.db".to_owned());
    let request = Request::Path;
    assert_eq!(action, Action::Do { file, request });
}

#[test]
fn days_and_ages_are_times() {
    let since = |text: &str| match request(&format!("list --since {text}")) {
        Request::List { filter, .. } => filter.since.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(since("1970-01-02"), Since::UnixSeconds(86_400));
    assert_eq!(since("2026-11-21"), Since::UnixSeconds(20_778 * 86_400));
    assert_eq!(since("2w"), Since::Ago(14 * 86_400));
    for bad in ["2026-02-30", "x", "3", "-1d", "99999999999999999999y"] {
        let why = message(&format!("list --since={bad}"));
        assert!(why.contains("it takes an age as 90d"), "{why}");
    }
}

#[test]
fn every_verb_has_a_page_with_examples_that_it_takes() {
    let page = page_of("--help");
    for verb in VERBS {
        assert!(
            page.contains(verb.usage) && page.contains(verb.about),
            "{page}"
        );
        assert!(
            page.lines().all(|line| line.chars().count() <= 110),
            "{page}"
        );
        let own = page_of(&format!("{} --help", verb.name));
        for example in verb.examples {
            assert!(own.contains(example), "{own}");
            let words = example.strip_prefix("weir history").unwrap();
            request(&words.replace('\'', ""));
        }
    }
}

#[test]
fn a_tag_is_short_and_of_visible_characters() {
    let long = "x".repeat(201);
    for word in [long.clone(), format!("k={long}")] {
        let why = message(&format!("tag @-1 {word}"));
        assert!(why.contains("201 bytes"), "{why}");
    }
    for word in ["a\tb", "k=a\u{1b}[31m", "a\n"] {
        let why = message(&format!("tag @-1 {word}"));
        assert!(why.contains("control characters"), "{why}");
        assert!(!why.contains('\u{1b}'), "{why}");
    }
    let most = "x".repeat(200);
    request(&format!("tag @-1 {most}={most}"));
    // What an older weir took can still be taken away.
    request(&format!("tag @-1 --remove {long}"));
}

#[test]
fn what_a_verb_does_not_take_is_refused_by_name() {
    for (words, why) in [
        ("lst", "did you mean `weir history list`?"),
        ("tag @-1", "a tag is missing"),
        ("tag @-1 =v", "a tag is KEY or KEY=VALUE"),
        ("label @-1", "--clear"),
        ("label @-1 x --clear", "exclude each other"),
        ("baseline sett x", "expected set RUN, show, or clear"),
        ("baseline set", "needs a run"),
        ("prune", "--keep N, --older AGE"),
        ("prune --keep 0", "it takes a whole number from 1"),
        ("trend --min-change x", "it takes percent from 0"),
        ("export --format db", "--output FILE"),
        (
            "export --format db --output x --plan p",
            "leave the filter out",
        ),
        ("export --format jsnl", "did you mean `jsonl`?"),
        ("path x", "stray word"),
        ("rm", "error: RUN is missing"),
        ("import", "error: FILE is missing"),
        ("list --formt", "no option `--formt`"),
        (
            "list --limit 0",
            "--limit 0: it takes all, or a whole number",
        ),
        ("list --tag =v", "--tag =v: a tag is KEY or KEY=VALUE"),
    ] {
        let message = message(words);
        assert!(message.contains(why), "{words}: {message}");
    }
}

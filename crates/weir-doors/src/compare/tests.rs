//! Words of `weir compare`.

use super::*;
use crate::USAGE;

fn of(text: &str) -> Result<Compare, Refusal> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match read(&words)? {
        Action::Compare(compare) => Ok(*compare),
        Action::Print(page) => panic!("{page}"),
    }
}

fn stored(text: &str) -> Vec<(String, Vec<String>)> {
    match of(text).unwrap().input {
        CompareInput::Stored(sides) => sides.into_iter().map(|s| (s.name, s.operands)).collect(),
        rounds @ CompareInput::Rounds { .. } => panic!("{rounds:?}"),
    }
}

fn rounds_of(text: &str) -> (Rounds, RoundsOf) {
    match of(text).unwrap().input {
        CompareInput::Rounds { rounds, of, .. } => (rounds, of),
        CompareInput::Stored(sides) => panic!("{sides:?}"),
    }
}

#[test]
fn operands_are_sides_and_flags_give_each_several_runs() {
    let side = |name: &str, operands: &[&str]| {
        let operands = operands.iter().map(ToString::to_string).collect();
        (name.to_owned(), operands)
    };
    assert_eq!(stored("x y"), [side("x", &["x"]), side("y", &["y"])]);
    assert_eq!(stored("x x")[1], side("x (2)", &["x"]));
    assert_eq!(stored("d/x e/y")[1], side("y", &["e/y"]));
    assert_eq!(stored("d/x e/x")[1], side("e/x", &["e/x"]));
    let several = stored("--a r1 r2 --b s1");
    assert_eq!(several, [side("A", &["r1", "r2"]), side("s1", &["s1"])]);
}

#[test]
fn job_files_take_turns_and_one_may_vary() {
    let names = |text: &str| match rounds_of(text).1 {
        RoundsOf::Plans(sides) => sides.into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        RoundsOf::Commands(sides) => sides.into_iter().map(|(name, _)| name).collect(),
    };
    assert_eq!(names("--run a.fio a.fio"), ["a.fio", "a.fio (2)"]);
    assert_eq!(
        names("--run a.fio --vary g:bs=4k,8k"),
        ["g:bs=4k", "g:bs=8k"]
    );
    assert_eq!(names("--cmd true --cmd true"), ["true", "true (2)"]);
    let (rounds, of) = rounds_of("--run a.fio --vary bs=4k,8k --set size=1m --rounds 9");
    assert_eq!(
        (rounds.count, rounds.warmup, rounds.settle),
        (Some(9), 1, Nanos::from_secs(1))
    );
    let (rounds, _) = rounds_of("--run a.fio b.fio --settle 0.25 --warmup 3");
    assert_eq!((rounds.warmup, rounds.settle), (3, Nanos(250_000_000)));
    let RoundsOf::Plans(sides) = of else {
        panic!("{of:?}")
    };
    assert_eq!(
        sides[1].1.command()[2..],
        ["--set=size=1m", "--progress=auto", "--set=bs=8k", "a.fio"]
    );
}

#[test]
fn too_few_rounds_for_the_figures_are_refused_with_how_many_do() {
    let looks = |text: &str, figures| rounds_of(text).0.looks(figures, 0.05);
    let refusal = looks("--run a b --rounds 5", 5).unwrap_err();
    assert_eq!(refusal.code, USAGE);
    assert!(refusal.message.contains("--rounds 8"), "{refusal}");
    assert_eq!(looks("--run a b --rounds 6", 1).unwrap(), [6]);
    assert_eq!(looks("--run a b", 5).unwrap(), [10]);
    assert_eq!(looks("--run a b", 60).unwrap(), [12]);
    assert_eq!(looks("--run a b --until-sure", 5).unwrap(), LOOKS);
}

#[test]
fn thresholds_are_of_all_figures_or_of_one() {
    let rule = of("x y --threshold 3%,p99=8 --metrics p99,rate --alpha 0.01")
        .unwrap()
        .rule;
    assert_eq!(rule.threshold, Some(0.03));
    assert_eq!(rule.thresholds, [("p99".to_owned(), 0.08)]);
    assert_eq!(
        (rule.metrics.join(" ").as_str(), Some(rule.alpha)),
        ("p99 rate", Some(0.01))
    );
}

#[test]
fn the_suffix_decides_the_form_and_text_is_printed_where_nothing_is_asked_for() {
    use CompareFormat::{Csv, Html, Json, Junit, Markdown, Text};
    let show = |text: &str| of(text).unwrap().show;
    assert_eq!(show("x y").format, Some(Text));
    let files = show("x y -o a.txt -o a.json -o a.csv --output a.md -o a.html -o a.xml");
    let formats: Vec<CompareFormat> = files.outputs.iter().map(|file| file.format).collect();
    assert_eq!(formats, [Text, Json, Csv, Markdown, Html, Junit]);
    assert_eq!(files.format, None);
    assert_eq!(show("x y -o a.md --format html").format, Some(Html));
    assert!(show("x y -o a.txt --raw").raw);
    for name in ["a.text", "a.junit", "a"] {
        let refusal = of(&format!("x y -o {name}")).unwrap_err();
        assert!(refusal.message.contains("known are .txt"), "{refusal}");
    }
}

#[test]
fn words_that_say_nothing_are_refused_by_name() {
    for (text, says) in [
        ("", "needs two stored results"),
        ("--a x", "--b FILE"),
        ("--b x", "--a FILE"),
        ("--a x --b y --cmd true", "--cmd and --a and --b"),
        ("z --cmd true --cmd false", "`z`"),
        ("--cmd true", "another --cmd"),
        ("--run a.fio", "--vary KEY=V1,V2"),
        ("--run", "no job file"),
        ("--run a.fio b.fio --vary bs=1,2", "leave `b.fio` out"),
        ("--run a.fio --vary bs=4k", "two values"),
        ("--run a.fio --vary bs=4k,4k", "all different"),
        (
            "x y --rounds 9",
            "--rounds acts only with `--run` or `--cmd`",
        ),
        ("x y --vary bs=1,2", "--vary acts only with `--run`"),
        ("x y --confirm", "--confirm acts only"),
        ("x y --single-run-ok", "--single-run-ok acts only"),
        ("x y --store-result r", "--store-result acts only"),
        ("x y --save r", "--save acts only"),
        ("--run a b --save=", "--save needs LABEL, which is empty"),
        ("x y -o r.md --width 80", "--width acts only"),
        ("x y --format json --raw", "--raw acts only"),
        ("--run a b --rounds 9 --until-sure", "--until-sure decides"),
        ("--run a b --rounds 0", "from 1 to 1000"),
        ("x y --alpha 2", "from 0.0001"),
        ("x y --threshold p99", "expected per cent"),
        ("x y --metrics rate,rate", "twice"),
        ("x y --fail-if p99", "expected [JOB.]METRIC"),
        ("x y --formt json", "did you mean `--format`?"),
    ] {
        let refusal = of(text).unwrap_err();
        assert_eq!(refusal.code, USAGE, "{text}");
        assert!(refusal.message.contains(says), "{text}: {refusal}");
    }
}

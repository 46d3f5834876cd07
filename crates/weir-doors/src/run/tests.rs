//! The words of `weir run`.

use weir_jobfile::{CommandWord, JobSource};
use weir_units::Percent;

use super::*;
use crate::house::{Input, Mode, ProgressStyle, RunFormat, RunOptions, Strict, Web};
use crate::machine::NamedPath;

fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn run(text: &str) -> Run {
    read_run(&list(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn refused(text: &str) -> String {
    let refusal = read_run(&list(text)).unwrap_err();
    assert_eq!(refusal.code, 2);
    refusal.message
}

#[test]
fn flags_stand_before_and_after_files() {
    let run = run("--set bs=64k a.fio --set w:rw=read b.fio --section w --readonly");
    let Input::Jobs(request) = run.input else {
        panic!("job files")
    };
    assert_eq!(
        request.sources,
        ["a.fio", "b.fio"].map(|f| JobSource::File(f.to_owned()))
    );
    assert_eq!(request.sets, ["bs=64k", "w:rw=read"]);
    assert_eq!(request.sections, ["w"]);
    assert!(request.read_only && run.mode == Mode::Run);
    assert_eq!(request.command[..3], ["weir", "run", "--set"]);
}

#[test]
fn what_is_not_given_keeps_its_default() {
    let options = run("a.fio").options;
    assert_eq!(
        options,
        RunOptions {
            format: RunFormat::Text,
            append: false,
            text_file: None,
            outputs: Vec::new(),
            percentiles: None,
            progress: ProgressStyle::Auto,
            color: None,
            ascii: false,
            width: None,
            raw: false,
            pretty: false,
            all_warnings: false,
            strict: Strict::No,
            no_latency: false,
            live: None,
            web: Web::default(),
        }
    );
}

#[test]
fn flags_set_what_they_name() {
    let options = run(
        "--format json --output r.json --output=r.txt --percentiles 50,99.9 \
                       --progress=plain --ascii --width 100 --raw \
                       --strict=cpu-steal,cpu-shared a.fio",
    )
    .options;
    assert_eq!(options.format, RunFormat::Json);
    let formats: Vec<_> = options.outputs.iter().map(|o| o.format).collect();
    assert_eq!(formats, [RunFormat::Json, RunFormat::Text]);
    let formats = ["a.csv", "a.series.csv", "a.md", "csv"].map(RunFormat::of_file);
    let expected = [RunFormat::Csv, RunFormat::CsvSeries, RunFormat::Markdown].map(Some);
    assert_eq!((&formats[..3], formats[3]), (&expected[..], None));
    assert_eq!(
        options.percentiles,
        Some(vec![Percent(50.0), Percent(99.9)])
    );
    assert_eq!(
        (options.progress, options.width),
        (ProgressStyle::Plain, Some(100))
    );
    assert_eq!(run("--color never a.fio").options.color, Some(false));
    assert!(options.ascii && options.raw);
    assert!(options.strict.holds("cpu-shared") && !options.strict.holds("numa-far"));
    assert!(run("a.fio --strict").options.strict.holds("numa-far"));
    assert!(run("--no-latency a.fio").options.no_latency);
}

#[test]
fn a_stored_plan_is_run_alone() {
    let plan = run("p.json --readonly --show-plan");
    assert!(plan.mode == Mode::ShowPlan);
    assert!(matches!(plan.input, Input::Plan { path, read_only: true, .. } if path == "p.json"));
    assert!(refused("p.json a.fio").contains("run alone"));
    assert!(refused("p.json --set bs=4k").contains("stored plan"));
}

#[test]
fn bad_words_are_named_with_what_was_expected() {
    assert!(refused("").contains("no job file given"));
    assert!(refused("--formt json a.fio").contains("--format"));
    assert!(refused("--format yaml a.fio").contains("--format yaml: it takes one of text, json"));
    assert!(refused("--set bs a.fio").contains("[SECTION:]KEY=VALUE"));
    assert!(
        refused("--output r.pdf a.fio").contains(".txt, .json, .html, .md, .csv and .series.csv")
    );
    assert!(refused("--percentiles 50,101 a.fio").contains("`101` is no number from 0 to 100"));
    assert!(refused("--width 5 a.fio").contains("from 20 to 1000"));
}

#[test]
fn calibration_takes_no_other_word() {
    let action = |text: &str| {
        let given = args::read_given(&DOOR, &list(text)).unwrap();
        request(&given, &NoMachine).map(|request| request.action)
    };
    assert!(matches!(
        action("--calibrate"),
        Ok(Action::Tool(Tool::Calibrate))
    ));
    for (words, other) in [
        ("--calibrate a.fio", "a.fio"),
        ("--calibrate --format json", "--format"),
        ("--store-result r.json --calibrate", "--store-result"),
    ] {
        assert!(refused(words).contains(&format!("{other} has no effect with --calibrate")));
    }
}

#[test]
fn a_flag_that_cannot_act_is_refused_with_what_it_needs() {
    let refusal = refused("--pretty a.fio");
    assert!(
        refusal.starts_with("error: --pretty acts only with `--format json`"),
        "{refusal}"
    );
    assert!(refusal.contains("leave it out"), "{refusal}");
    assert!(refused("--raw --format json a.fio").contains("--raw acts only with"));
    run("--raw --format json --output r.txt a.fio");
    run("--width 40 a.fio");
}

/// Every path that has `disk` in it is a device, every other one is missing.
struct Disks;

impl Machine for Disks {
    fn named_path(&self, path: &str) -> NamedPath {
        if path.contains("disk") {
            NamedPath::Device
        } else {
            NamedPath::Missing
        }
    }
}

#[test]
fn a_target_has_a_job_with_the_options_in_their_order_and_is_named_apart_from_others() {
    let words =
        "--bs 4k --rw=randread /dev/disk1 --time_based --bs=8k b/disk a/disk global-disk x:disk";
    let given = args::read_given(&DOOR, &list(words)).unwrap();
    let input = arguments::input(&given, &Disks).unwrap();
    let Input::Targets { jobs, targets, .. } = input else {
        panic!("targets")
    };
    assert_eq!(targets.len(), 5);
    let [JobSource::Words(all)] = &jobs.sources[..] else {
        panic!("words")
    };
    let shown =
        |word: &CommandWord| format!("{}={}", word.key, word.value.as_deref().unwrap_or("-"));
    let all: Vec<String> = all.iter().map(shown).collect();
    assert_eq!(all[..4], ["bs=4k", "rw=randread", "time_based=-", "bs=8k"]);
    let names: Vec<&String> = all[4..].iter().filter(|w| w.starts_with("name=")).collect();
    assert_eq!(
        names,
        [
            "name=disk1",
            "name=b/disk",
            "name=a/disk",
            "name=./global-disk",
            "name=x:disk"
        ]
    );
    assert!(all.contains(&"filename=x\\:disk".to_owned()));
}

#[test]
fn no_option_of_the_language_has_the_name_of_a_flag() {
    let command = DOOR.command();
    let mut names: Vec<&str> = command
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn the_first_line_that_says_something_tells_a_job_file() {
    for (text, is_job_file) in [
        ("[a]", true),
        ("\n; x\n# y\n  [global]\n", true),
        ("a=b\n[a]\n", false),
        ("", false),
        ("# [a]\n", false),
    ] {
        let named = NamedPath::of_file(text.as_bytes());
        assert_eq!(named, NamedPath::File { is_job_file }, "{text}");
    }
}

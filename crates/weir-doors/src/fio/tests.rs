//! fio's command line.

use weir_jobfile::{CommandWord, CompileRequest, JobSource, find_option};
use weir_schema::Plan;

use proptest::prelude::*;

use super::*;
use crate::args::{self, Arguments, DoorCall};
use crate::given::Given;
use crate::house::{HOUSE_FLAGS, Input};
use crate::machine::SampleMachine;
use crate::refusal::USAGE;
use crate::request::{Action, Request, Tool, Trigger};

fn read(text: &str) -> Result<Arguments, Refusal> {
    args::read(&DoorCall {
        door: &DOOR,
        link: DOOR.links.first(),
        args: text.split_whitespace().map(str::to_owned).collect(),
    })
}

fn given(text: &str) -> Result<Given, Refusal> {
    match read(text)? {
        Arguments::Given(given) => Ok(*given),
        Arguments::Print(page) => panic!("{page}"),
    }
}

fn request(text: &str) -> Result<Request, Refusal> {
    (MEASURES.read)(&given(text)?, &SampleMachine(None))
}

fn run(text: &str) -> CompileRequest {
    jobs(&given(text).unwrap())
}

fn options(text: &str) -> FioOptions {
    FioOptions::of(&given(text).unwrap())
}

fn plan(text: &str) -> Plan {
    match request(text).unwrap().action {
        Action::Measure(Input::Made(plan)) => *plan,
        other => panic!("{other:?}"),
    }
}

fn notes(text: &str) -> Vec<String> {
    weir_jobfile::FioPlan::of(&plan(text)).notes
}

fn printed(text: &str) -> String {
    match request(text).unwrap().action {
        Action::Print(text) => text.out,
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str) -> String {
    let refusal = request(text).unwrap_err();
    assert_eq!(refusal.code, USAGE);
    refusal.of_peer(1).message
}

#[test]
fn by_the_verb_refusals_are_those_of_the_house() {
    for (text, says) in [
        ("--zork", "no option `--zork`"),
        (
            "--bolcksize=1",
            "no option `--bolcksize`\n  help: did you mean `--blocksize`?",
        ),
        ("--readonly=1", "--readonly takes no value, `1` was given"),
        (
            "--client=x",
            "--client is not available: weir has no client",
        ),
        (
            "--terse-version=6",
            "--terse-version 6: it takes a whole number from 2 to 5",
        ),
        (
            "--eta=allways",
            "--eta allways: it takes one of always, never, auto\n  help: did you mean `always`?",
        ),
        (
            "--eta-interval=1ms",
            "--eta-interval 1ms: it takes a time from 250ms, as 0.5",
        ),
        (
            "--output-format=x",
            "--output-format x: it takes any of normal",
        ),
        ("--crctest=md6", "--crctest md6: it takes any of md5, "),
        ("--showcmd", "no job: name a job file"),
    ] {
        let message = request(text).unwrap_err().message;
        assert!(message.starts_with(&format!("error: {says}")), "{message}");
    }
}

fn word(key: &str, value: Option<&str>, argument: usize, text: &str) -> CommandWord {
    let (key, text) = (key.to_owned(), text.to_owned());
    CommandWord {
        key,
        value: value.map(str::to_owned),
        argument,
        text,
    }
}

#[test]
fn options_count_before_files_wherever_they_stand() {
    let run = run("--bs=4k a.fio -rw read --thread b.fio --name=x");
    assert_eq!(
        run.sources,
        [
            JobSource::Words(vec![
                word("bs", Some("4k"), 1, "--bs=4k"),
                word("rw", Some("read"), 3, "-rw read"),
                word("thread", None, 5, "--thread"),
                word("name", Some("x"), 7, "--name=x"),
            ]),
            JobSource::File("a.fio".to_owned()),
            JobSource::File("b.fio".to_owned()),
        ]
    );
}

#[test]
fn a_dash_is_a_file_and_two_end_the_options() {
    let run = run("- -- --bs=4k");
    let files: Vec<_> = ["-", "--bs=4k"]
        .map(|f| JobSource::File(f.to_owned()))
        .into();
    assert_eq!(run.sources, files);
}

#[test]
fn flags_of_the_door_are_no_job_options() {
    let text = "--readonly --section=a --section b --set bs=8k --output=o --eta=never --eta-newline=2 \
                   --output-format=normal,json --compat-banner --exit=unix job.fio";
    let (request, options) = (run(text), options(text));
    assert!(request.read_only);
    assert_eq!(
        (
            request.sections.len(),
            request.sets.len(),
            request.sources.len()
        ),
        (2, 1, 1)
    );
    assert_eq!(options.formats, [FioFormat::Json, FioFormat::Normal]);
    assert_eq!(options.output.as_deref(), Some("o"));
    assert_eq!(options.eta_newline, Some(weir_units::Nanos::from_secs(2)));
    assert_eq!((options.eta, options.exit), (Eta::Never, ExitStyle::Unix));
    assert!(options.compat_banner && !options.is_for_programs());
}

#[test]
fn flags_of_the_house_stand_beside_them_and_none_is_an_option_of_jobs() {
    let given =
        given("job.fio -voice weir -format json --weir-output r.json --repeat 3 --output o")
            .unwrap();
    assert_eq!(given.house.text("format"), Some("json"));
    assert_eq!(given.house.text("output"), Some("r.json"));
    assert_eq!(given.house.text("repeat"), Some("3"));
    assert_eq!(given.text("output"), Some("o"));
    for flag in HOUSE_FLAGS {
        assert!(find_option(flag.name).is_none(), "{}", flag.name);
    }
}

#[test]
fn the_mode_says_what_happens_to_the_jobs() {
    assert_eq!(printed("--parse-only a.fio"), "");
    assert!(printed("--showcmd a.fio").starts_with("fio --name="));
    let shown = given("a.fio --show-plan").unwrap();
    assert!(shown.house.has("show-plan"));
    assert!(refused("--showcmd --live a.fio").contains("--live has no effect with --showcmd"));
}

#[test]
fn a_flag_that_acts_on_one_run_is_refused_with_several() {
    for flag in ["--idle-prof=system", "--trigger-timeout=1", "--output=o"] {
        let why = refused(&format!("{flag} --repeat=2 a.fio"));
        assert!(why.contains("it is for one run"), "{why}");
    }
    assert!(refused("--format=json a.fio").contains("weir's report"));
}

#[test]
fn json_with_histograms_takes_the_place_of_json() {
    let options = options("--output-format=json,json+ a");
    assert_eq!(options.formats, [FioFormat::JsonPlus]);
    assert!(options.texts(0).bins);
}

#[test]
fn an_unknown_option_gets_the_nearest_name() {
    assert_eq!(
        refused("--bolcksize=1"),
        "fio: unrecognized option '--bolcksize=1'\nfio: unrecognized option '--bolcksize=1'\nDid you mean blocksize?\n"
    );
    assert_eq!(
        refused("--blocksiz=1"),
        "fio: option '--blocksiz=1' is ambiguous; possibilities: '--blocksize' \
         '--blocksize_range' '--blocksize_unaligned'\n\
         fio: unrecognized option '--blocksiz=1'\nDid you mean blocksize?\n"
    );
    assert_eq!(
        refused("-out-format=json"),
        "fio: unrecognized option '--out-format=json'\n\
         fio: unrecognized option '--out-format=json'\nDid you mean output-format?\n"
    );
}

#[test]
fn self_tests_run_instead_of_jobs_and_know_their_checksums() {
    use weir_schema::VerifyMethod;
    let tool = |text: &str| match request(text).unwrap().action {
        Action::Tool(tool) => tool,
        other => panic!("{other:?}"),
    };
    let checksums = |text: &str| match tool(text) {
        Tool::Checksums(methods) => methods,
        other => panic!("{other:?}"),
    };
    assert_eq!(checksums("--crctest").len(), 14);
    let two = [VerifyMethod::Xxhash, VerifyMethod::Md5];
    assert_eq!(checksums("--crctest=xxhash,md5"), two);
    assert!(refused("--crctest=md6").starts_with("fio: unknown hash `md6`. Available:\nmd5\n"));
    assert_eq!(tool("--cpuclock-test"), Tool::ClockTest);
    assert_eq!(tool("--idle-prof=calibrate --zork"), Tool::IdleUnit);
    assert!(printed("--version --zork").starts_with("weir "));
}

#[test]
fn times_of_flags_are_written_as_in_job_files() {
    for (text, milliseconds) in [("2", 2000), ("0.5", 500), ("300ms", 300), ("1m", 60_000)] {
        let options = options(&format!("--eta-interval={text} a.fio"));
        let expected = weir_units::Nanos::from_millis(milliseconds);
        assert_eq!(options.eta_interval, Some(expected), "{text}");
    }
    assert!(refused("--eta-interval=1x a.fio").starts_with("fio: bad time `1x`: "));
}

#[test]
fn triggers_and_idleness_are_kept_for_the_run() {
    let text = "--idle-prof=percpu --trigger-file=f --trigger-timeout=2 --trigger=sync a.fio";
    assert_eq!(options(text).idleness, Some(IdleScope::PerCpu));
    let trigger = Trigger {
        file: Some("f".to_owned()),
        after: Some(weir_units::Nanos::from_secs(2)),
        command: Some("sync".to_owned()),
        heat: None,
    };
    assert_eq!(request(text).unwrap().trigger, trigger);
    assert!(refused("--idle-prof=all a.fio").contains("system, percpu, calibrate"));
}

#[test]
fn a_missing_value_is_named() {
    assert_eq!(
        refused("--output"),
        "fio: option '--output' requires an argument\n"
    );
    assert_eq!(
        refused("--direct"),
        "fio: option '--direct' requires an argument\n"
    );
}

#[test]
fn bad_values_of_flags_are_named() {
    assert_eq!(
        refused("--output-format=foo a"),
        "fio: invalid output format foo\nfio: failed parsing output-format\n"
    );
    assert_eq!(
        refused("--terse-version=6 a"),
        "fio: bad terse version format\n"
    );
    assert_eq!(
        refused("--section=global a"),
        "fio: can't use global as only section\n"
    );
    assert!(refused("--eta=perhaps a").contains("always, never, auto"));
    assert!(refused("--eta-newline=soon a").contains("failed parsing eta-newline"));
    assert!(refused("--set bs a").contains("[SECTION:]KEY=VALUE"));
}

#[test]
fn what_is_not_there_is_refused_by_name_and_what_is_idle_is_noted() {
    for flag in FLAGS {
        let value = if flag.value.is_some() { "=1" } else { "" };
        let text = format!("--{}{value} a", flag.name);
        match flag.standing {
            crate::flags::Standing::Refused(why) => {
                let message = refused(&text);
                assert!(
                    message.contains(flag.name) && message.contains(why),
                    "{message}"
                );
            }
            crate::flags::Standing::WithoutEffect(why) => {
                assert_eq!(
                    notes(&text),
                    [format!("--{} has no effect: {why}", flag.name)]
                );
            }
            crate::flags::Standing::Works => {}
        }
    }
}

#[test]
fn nothing_to_do_prints_the_page() {
    for text in ["", "--bs=4k"] {
        let message = refused(text);
        assert!(
            message.starts_with("No job(s) defined\n\nthe same job files with"),
            "{message}"
        );
    }
}

#[test]
fn help_lists_what_works_and_its_examples_are_good_words() {
    let call = DoorCall {
        door: &DOOR,
        link: None,
        args: vec!["--help".to_owned()],
    };
    let Ok(Arguments::Print(page)) = args::read(&call) else {
        panic!("no page");
    };
    assert!(
        page.contains("--output-format <LIST>") && !page.contains("--server"),
        "{page}"
    );
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_version_names_the_job_language() {
    assert!(printed("--version").ends_with(" (job language fio-3.33)\n"));
    assert_eq!(printed("--compat-banner --version"), "fio-3.33\n");
}

#[test]
fn options_are_explained_from_their_records() {
    let text = printed("--cmdhelp=blocksize");
    assert!(
        text.contains("                  bs: ") && text.contains("alias: blocksize\n"),
        "{text}"
    );
    assert!(printed("--cmdhelp=rw").contains("valid values: read "));
    assert!(
        printed("--cmdhelp=all")
            .lines()
            .any(|l| l.starts_with("iodepth                 : "))
    );
    let near = printed("--cmdhelp=iodeptj");
    assert!(
        near.starts_with("No such command: iodeptj - showing closest match\n"),
        "{near}"
    );
    assert!(near.contains("             iodepth: "), "{near}");
    assert_eq!(refused("--cmdhelp=zzzzzzzz"), "No such command: zzzzzzzz\n");
}

#[test]
fn engines_are_listed_from_the_catalogue() {
    assert_eq!(
        printed("--enghelp"),
        "Available IO engines:\n\tnull\n\tpsync\n\tio_uring\n"
    );
    assert_eq!(printed("--enghelp=null"), "IO engine null has no options\n");
    assert!(printed("--enghelp=io_uring").contains("hipri "));
    assert!(printed("--enghelp=io_uring,hipri").contains("               hipri: "));
    assert!(
        refused("--enghelp=io_urin")
            .contains("IO engine io_urin not found\nDid you mean io_uring?")
    );
    assert!(refused("--enghelp=io_uring,zzz").contains("has no option zzz"));
}

proptest! {
    #[test]
    fn no_words_make_the_reader_panic(words in prop::collection::vec("-{0,3}[a-z=:,+\\PC]{0,12}", 0..6)) {
        if let Ok(Arguments::Given(given)) = read(&words.join(" ")) {
            let _ = (MEASURES.read)(&given, &SampleMachine(None));
        }
        let _ = crate::run::read_run(&words);
        let _ = crate::top::call(&words);
    }

    #[test]
    fn no_value_of_a_flag_makes_the_reader_panic(index in 0..FLAGS.len(), value in "\\PC{0,20}") {
        let _ = request(&format!("--{}={value} job", FLAGS[index].name));
    }
}

#[test]
fn complaints_end_with_the_sentences_of_fio() {
    let text = refused("--name=a --ioengine=null --rw=bla");
    assert!(text.starts_with("error[job.value]: `bla`"), "{text}");
    assert!(
        text.contains("argument 3\n") && text.contains("\nfio: failed parsing rw=bla\n"),
        "{text}"
    );
}

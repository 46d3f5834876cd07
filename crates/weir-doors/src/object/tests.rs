//! Command lines of `vos_perf` and `daos_perf`, command strings, and the peer's text of results.

use proptest::prelude::*;
use weir_schema::{
    EndedBy, ErrorCode, ObjectAction, ObjectClass, ObjectDurability, ObjectEngine, ObjectFailure,
    ObjectKey, ObjectKeys, ObjectLayout, ObjectOutcome, ObjectRank, ObjectRun, ObjectTest,
    ObjectValue, ObjectWorkload, Outcome, RunResult, Span, State, Workload,
};
use weir_units::{Bytes, Nanos};

use super::block::Block;
use super::command_string::{CommandError, Step, Tests, parse};
use super::output::Style;
use super::{DAOS_PERF, VOS_PERF, flags, output, plan};
use crate::args::{self, Arguments, DoorCall};
use crate::door::{Door, Printed};
use crate::given::Given;
use crate::house::Input;
use crate::machine::{Machine, NamedPath};
use crate::refusal::Refusal;
use crate::request::{Action, Request};

/// A machine with the directory `.` and this variable, whose value is 1 or an address.
struct TestMachine(Option<&'static str>);

const SERVER: &str = "tcp://127.0.0.1:7000";

impl Machine for TestMachine {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.filter(|known| *known == name).map(|name| {
            if name == "WEIR_OBJ_SERVER" {
                SERVER
            } else {
                "1"
            }
            .to_owned()
        })
    }

    fn lacks_daos(&self) -> Option<String> {
        (self.0 != Some("DAOS")).then(|| "libdaos not found".to_owned())
    }

    fn named_path(&self, path: &str) -> NamedPath {
        match path {
            "." | "./there" => NamedPath::Directory,
            _ => NamedPath::Missing,
        }
    }
}

fn given(words: &[&str], by_name: bool) -> Result<Given, Refusal> {
    given_of(&VOS_PERF, words, by_name)
}

fn given_of(door: &'static Door, words: &[&str], by_name: bool) -> Result<Given, Refusal> {
    let call = DoorCall {
        door,
        link: door.links.first().filter(|_| by_name),
        args: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    match args::read(&call)? {
        Arguments::Given(given) => Ok(*given),
        Arguments::Print(page) => panic!("{page}"),
    }
}

/// A call by the peer's name.
fn by_name(words: &[&str]) -> Result<Request, Refusal> {
    plan::read(&given(words, true)?, &TestMachine(None))
}

/// A call of `daos_perf`.
fn over_network(words: &[&str], machine: &TestMachine) -> Result<Request, Refusal> {
    plan::read(&given_of(&DAOS_PERF, words, true)?, machine)
}

fn work(words: &[&str]) -> ObjectWorkload {
    work_of(by_name(words).unwrap())
}

fn work_of(request: Request) -> ObjectWorkload {
    let Action::Measure(Input::Made(plan)) = request.action else {
        panic!("{request:?}");
    };
    let (_, job) = plan.jobs().next().unwrap();
    let Workload::ObjectStore(work) = &job.workload else {
        panic!("{job:?}");
    };
    work.as_ref().clone()
}

fn printed(words: &[&str]) -> Printed {
    let request = by_name(words).unwrap();
    let Action::Print(printed) = request.action else {
        panic!("{request:?}");
    };
    printed
}

fn layout() -> ObjectLayout {
    ObjectLayout::default()
}

fn array() -> ObjectLayout {
    ObjectLayout {
        value: ObjectValue::Array { shuffled: false },
        ..layout()
    }
}

fn steps(text: &str) -> Vec<Step> {
    parse(text, Tests::EMBEDDED, &array()).unwrap()
}

fn tests_of(text: &str) -> Vec<ObjectTest> {
    let steps = steps(text).into_iter();
    let test = |step| match step {
        Step::Test(test) => test,
        other => panic!("{text}: {other:?}"),
    };
    steps.map(test).collect()
}

fn refused(text: &str) -> CommandError {
    parse(text, Tests::EMBEDDED, &array()).unwrap_err()
}

#[test]
#[expect(clippy::too_many_lines, reason = "six blocks to the letter")]
fn the_blocks_of_the_tuning_guide_come_out_to_the_letter() {
    const KIB: u64 = 1 << 10;
    let rows = [
        (
            "UPDATE",
            10_000_000,
            4 * KIB,
            "124.478568",
            "313.809   ",
            "80335.11  ",
            "12.448    ",
        ),
        (
            "UPDATE",
            10_000_000,
            4 * KIB,
            "123.389467",
            "316.579   ",
            "81044.19  ",
            "12.339    ",
        ),
        (
            "FETCH",
            10_000_000,
            4 * KIB,
            "23.884087 ",
            "1635.503  ",
            "418688.81 ",
            "2.388     ",
        ),
        (
            "FETCH",
            10_000_000,
            4 * KIB,
            "24.114830 ",
            "1619.854  ",
            "414682.58 ",
            "2.411     ",
        ),
        (
            "UPDATE",
            40_000,
            KIB * KIB,
            "21.247287 ",
            "1882.593  ",
            "1882.59   ",
            "531.182   ",
        ),
        (
            "FETCH",
            40_000,
            KIB * KIB,
            "10.133850 ",
            "3947.167  ",
            "3947.17   ",
            "253.346   ",
        ),
    ];
    for (name, operations, size, seconds, mib, rate, latency) in rows {
        let text = seconds.trim_end();
        let ns: u64 = text.replace('.', "").parse::<u64>().unwrap() * 1000;
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let latency_us = ns as f64 / 1e3 / operations as f64;
        let block = Block {
            is_cut: false,
            name: name.to_owned(),
            operations,
            bytes: Some(operations * size),
            duration: Nanos(ns),
            latency_us,
            ranks: &[Nanos(ns)],
        };
        let expected = format!(
            "{name} successfully completed:\n\
             \tduration  : {seconds} sec\n\
             \tbandwidth : {mib} MB/sec\n\
             \trate      : {rate} IO/sec\n\
             \tlatency   : {latency} us (nonsense if credits > 1)\n\
             Duration across processes:\n\
             \tMAX duration : {seconds} sec\n\
             \tMIN duration : {seconds} sec\n\
             \tAverage duration : {seconds} sec\n"
        );
        assert_eq!(block.text(Style::Seed), expected);
        let newer = block.text(Style::V29);
        assert!(
            newer.contains("\tduration : ") && newer.contains("\tbandwith : "),
            "{newer}"
        );
        assert!(
            newer.contains("\trate     : ") && newer.contains("\tlatency  : "),
            "{newer}"
        );
    }
}

#[test]
fn parameters_stand_behind_semicolons_or_right_behind_the_letter() {
    assert_eq!(tests_of("Up"), tests_of("U;p"));
    assert_eq!(tests_of("U;pv"), tests_of("U;p"));
    assert_eq!(tests_of("U;p,"), tests_of("U;p"));
    assert_eq!(tests_of("U;x;p"), tests_of("U;p"));
    assert_eq!(tests_of("\tU;;p \n"), tests_of("U;p"));
    assert_eq!(tests_of("F;i=0;p")[0].iterations, 1);
    assert_eq!(tests_of("F;i=5;k;v;p").len(), 1);
    let [first, second, third] = &tests_of("U U;o=16;s=32 V")[..] else {
        panic!();
    };
    assert_eq!((first.offset, first.size), (Bytes(0), Bytes(64)));
    assert_eq!((second.offset, second.size), (Bytes(16), Bytes(32)));
    assert_eq!(third.action, ObjectAction::Verify);
    let part = &tests_of("P;d;O=1;D=10")[0];
    assert_eq!(part.action, ObjectAction::Punch { dkeys: true });
    assert_eq!((part.objects, part.dkeys), (Some(1), Some(10)));
    let part = &tests_of("U;a=2;n=16")[0];
    assert_eq!((part.akeys, part.strides), (Some(2), Some(16)));
    let walk = ObjectAction::Iterate {
        visible: true,
        shallow: true,
        first: true,
    };
    assert_eq!(tests_of("I;V;s;first;p")[0].action, walk);
    let scan = ObjectAction::Discard {
        full_scan: true,
        merge: true,
    };
    assert_eq!(tests_of("D;f;m")[0].action, scan);
}

#[test]
fn the_strings_of_the_spec_are_read() {
    for (text, tests) in [
        ("U;p F;p", 2),
        ("U;p F;i=5;p V", 3),
        ("U;p F;p I;s;p, I;p; A;p", 5),
        ("U U;o=4;s=4 V", 3),
        ("P;d G;p", 2),
    ] {
        assert_eq!(tests_of(text).len(), tests, "{text}");
    }
    let listing = steps("U;p F;p V O;p");
    assert_eq!(listing.last(), Some(&Step::Unknown('O')));
    let stride = ObjectLayout {
        stride_bytes: Bytes(1 << 20),
        ..array()
    };
    assert!(parse("U U;o=4k;s=4k V", Tests::EMBEDDED, &stride).is_ok());
    let query = ObjectLayout {
        integer_dkeys: true,
        constant_akey: true,
        akeys: 1,
        ..array()
    };
    assert!(parse("U Q;p V", Tests::EMBEDDED, &query).is_ok());
}

#[test]
fn single_values_have_no_offset_and_rewritten_ones_no_verification() {
    let [Step::Test(update), Step::Idle(verify)] =
        &parse("U;o=32 V;p", Tests::EMBEDDED, &layout()).unwrap()[..]
    else {
        panic!();
    };
    assert_eq!(update.offset, Bytes(0));
    assert_eq!(verify.action, ObjectAction::Verify);
}

#[test]
fn what_a_string_cannot_ask_for_is_refused_with_the_rest_of_it() {
    let crossed = refused("U F;o=32;s=64 V");
    assert_eq!(crossed.after, ";o=32;s=64 V");
    assert_eq!(
        crossed.why,
        "offset + size crossed the stride boundary: 32/64/64"
    );
    for text in [
        "U;i",
        "U;o",
        "U;s",
        "F;O",
        "V;D",
        "P;a",
        "U;n",
        "U;D=1k",
        "U;D=0",
        "U;D=999",
        "U;D=x",
        "U;i=",
        "U;i=-1",
        "U;s=5T",
        "U;n=17",
        "U;o=18446744073709551615",
        "P;n=1",
        "P;d;a=1",
        "P;o=16;s=16",
        "P;D=3",
    ] {
        assert!(!refused(text).why.is_empty(), "{text}");
    }
    // A letter that the test does not have says nothing.
    assert_eq!(tests_of("I;o A;D=0 I;n").len(), 3);
}

#[test]
fn a_query_names_what_it_lacks() {
    let mut layout = layout();
    let mut why = |change: fn(&mut ObjectLayout)| {
        let steps = parse("U Q", Tests::EMBEDDED, &layout).unwrap();
        let [Step::Test(_), Step::Lacking(_, why)] = steps[..] else {
            panic!("{steps:?}");
        };
        change(&mut layout);
        why
    };
    let integer = why(|layout| layout.integer_dkeys = true);
    assert_eq!(integer, "Integer dkeys required for query test (-i)");
    let value = why(|layout| layout.value = ObjectValue::Array { shuffled: false });
    assert_eq!(value, "Array values required for query test (-A)");
    let akey = why(|layout| layout.constant_akey = true);
    assert_eq!(akey, "Const akey required for query test (-I)");
    let whole = parse("Q", Tests::EMBEDDED, &layout).unwrap();
    assert!(matches!(whole[..], [Step::Test(_)]), "{whole:?}");
}

#[test]
fn a_query_that_cannot_be_had_fails_and_the_other_tests_run() {
    let words = ["-A", "-R", "U Q;p V"];
    // It comes last: its failure ends the run.
    let tests = work(&words).tests;
    let names: Vec<_> = tests.iter().map(|test| test.action.name()).collect();
    assert_eq!(names, ["update", "verify", "query"]);
    let runs = [run_of(0, "update", 1000, 4), run_of(1, "verify", 1000, 4)];
    let printed = text(&words, 1, &runs);
    let end = "Running test=QUERY\nRunning QUERY test (iteration=1)\nQUERY failed\n\
               Running test=VERIFY\nRunning VERIFY test (iteration=1)\nCompleted test=VERIFY\n";
    assert!(printed.out.ends_with(end), "{}", printed.out);
    let why = "Integer dkeys required for query test (-i)\n";
    assert!(printed.err.ends_with(why), "{}", printed.err);
}

proptest! {
    #[test]
    fn any_string_is_read_or_refused_with_its_end(
        text in "([UFVPIQADGXé]([;pikvoOsDandVfm=0-9kx -]){0,12} ?){0,5}"
    ) {
        match parse(&text, Tests::EMBEDDED, &array()) {
            Ok(steps) => {
                prop_assert_eq!(steps.len(), text.split_whitespace().count());
                for step in steps {
                    if let Step::Test(test) = step {
                        prop_assert!(test.iterations > 0);
                        prop_assert!(test.offset.0 + test.size.0 <= 64 && test.size.0 > 0);
                    }
                }
            }
            Err(error) => {
                prop_assert!(text.ends_with(&error.after) && !error.why.is_empty());
            }
        }
    }

    #[test]
    fn numbers_mean_what_the_reference_reads(number in 0_u64..1 << 32) {
        prop_assert_eq!(flags::number(&format!("{number}k")), Ok(number << 10));
        prop_assert_eq!(flags::number(&format!("{number}G")), Ok(number << 30));
        prop_assert_eq!(flags::number(&format!("0x{number:x}M")), Ok(number << 20));
        prop_assert_eq!(flags::number(&format!("0{number:o}")), Ok(number));
        prop_assert_eq!(flags::number(&number.to_string()), Ok(number));
    }
}

#[test]
fn the_seeds_line_is_one_job() {
    let line = "-D . -P 100G -d 10000000 -a 1 -n 1 -s 4K -z -R";
    let mut words: Vec<&str> = line.split(' ').collect();
    words.push("U;p F;p");
    let work = work(&words);
    assert_eq!(work.pool_file(0), "./vos0");
    assert_eq!(work.pool_bytes, Bytes(100 << 30));
    assert_eq!(work.layout.dkeys, 10_000_000);
    assert_eq!(work.layout.stride_bytes, Bytes(4096));
    assert!(work.zero_copy && work.tests.iter().all(|test| test.print));
    assert_eq!(work.planned_operations(&work.tests[0]), Some(10_000_000));
}

#[test]
fn options_are_read_as_getopt_and_the_peer_read_them() {
    let run = ["-R", "U"];
    let with = |words: &[&str]| work(&[words, &run].concat());
    for words in [
        &["-AR"][..],
        &["-A", "R"],
        &["--array=r"],
        &["--array", "R"],
        &["--arr=R"],
    ] {
        assert_eq!(
            with(words).layout.value,
            ObjectValue::Array { shuffled: true },
            "{words:?}"
        );
    }
    assert_eq!(
        with(&["-A"]).layout.value,
        ObjectValue::Array { shuffled: false }
    );
    assert_eq!(with(&["-d", "10k"]).layout.dkeys, 10_240);
    assert_eq!(with(&["-d", "5000000000"]).layout.dkeys, 5_000_000_000);
    assert_eq!(with(&["--dk=010"]).layout.dkeys, 8);
    assert_eq!(with(&["-s0"]).layout.stride_bytes, Bytes(4));
    assert_eq!(with(&["--stride=1k"]).layout.stride_bytes, Bytes(1024));
    assert_eq!(with(&["-P", "0"]).pool_bytes, Bytes(1 << 30));
    assert_eq!(with(&["-I", "-a", "5"]).layout.akeys, 1);
    let flat = with(&["-zfx"]);
    assert!(flat.layout.flat && flat.layout.integer_dkeys && flat.layout.constant_akey);
    assert!(flat.zero_copy && flat.thread_per_operation);
    let uuid = "3AD5B1C6-0c22-4f1c-8f51-2b7a5a1b6c1d";
    assert_eq!(with(&["-u", uuid]).pool, Some(uuid.to_ascii_lowercase()));
    assert_eq!(work(&["-B"]).tests.len(), 2);
}

#[test]
fn pool_files_are_named_as_each_version_names_them() {
    let file = |words: &[&str]| work(&[words, &["-R", "U"]].concat()).pool_file(1);
    assert_eq!(file(&[]), "/mnt/daos/vos1");
    assert_eq!(file(&["-D", "./there/"]), "./there/vos1");
    assert_eq!(file(&["-D", "/"]), "/vos1");
    assert_eq!(file(&["-D", "./vos"]), "./vos1");
    assert_eq!(file(&["-D", "vos"]), "vos1");
    assert_eq!(file(&["-D", "/none/vos"]), "/none/vos/vos1");
    // A directory that is missing, and no beginning of a name.
    assert_eq!(file(&["-D", "pmem"]), "pmem/vos1");
    assert_eq!(file(&["-f", "./old"]), "./old1");
    assert_eq!(
        file(&["--output-style", "2.9", "-D", "."]),
        "./vos_perf1.pmem"
    );
    let flat = work(&["-f", "-R", "U"]).layout.flat;
    assert!(flat && !work(&["-f", "./old", "-R", "U"]).layout.flat);
}

#[test]
fn junk_is_refused_by_name() {
    for (words, why) in [
        (&["-d", "ten"][..], "--dkey ten: it takes a whole number"),
        (&["-d", "-1"], "--dkey -1: it takes a whole number"),
        (
            &["-s", "5G"],
            "--size 5G: DER_INVAL(-1003): values have at most 1 GiB",
        ),
        (
            &["-P", "99999999999G"],
            "--pool_scm 99999999999G: it is above 2^64",
        ),
        (&["-N", "1G"], "--pool_nvme 1G: pools have no tier"),
        (&["-u", "pool"], "--pool pool: it takes a UUID"),
        (&["-Ax"], "--array x: it takes R or nothing"),
        (&["-t"], "-t is not available: every write has an epoch"),
        (&["word"], "`word` is no option"),
        (
            &["-d", "4G", "-a", "4G", "-n", "4G"],
            "a test has more than 2^64 operations",
        ),
    ] {
        let refusal = by_name(&[words, &["-R", "U"]].concat()).unwrap_err();
        assert!(refusal.message.contains(why), "{words:?}: {refusal}");
        assert_eq!(refusal.code, 2);
    }
}

#[test]
fn the_peers_own_words_of_refusals_are_kept() {
    let peer = |words: &[&str]| by_name(words).unwrap_err().of_peer(2).message;
    assert_eq!(
        peer(&["--nope"]),
        "vos_perf: unrecognized option '--nope'\nUnknown option ?\n"
    );
    assert_eq!(
        peer(&["-q"]),
        "vos_perf: invalid option -- 'q'\nUnknown option ?\n"
    );
    let zero = peer(&["-d", "0", "-R", "U"]);
    assert!(
        zero.starts_with("Invalid arguments 0/16/16/\n") && zero.contains("Usage"),
        "{zero}"
    );
    let none = printed(&[]);
    assert!(
        none.out.starts_with("Please provide command string\n"),
        "{none:?}"
    );
    assert!(none.out.contains("Usage") && none.code == 2);
    assert_eq!(printed(&["-R", ""]).code, 2);
    let unknown = printed(&["-R", "X;p"]);
    assert!(
        unknown.out.starts_with("Unknown test code=X\n"),
        "{unknown:?}"
    );
    assert_eq!(unknown.err, "unknown test code X\n");
    let wrong = printed(&["-A", "-R", "U;o=32;s=64"]);
    assert_eq!(wrong.out, "Invalid test parameters: ;o=32;s=64\n");
    assert_eq!(
        wrong.err,
        "offset + size crossed the stride boundary: 32/64/64\n"
    );
    assert_eq!(wrong.code, 2);
    let by_verb = given(&["-R", "U;i"], false).unwrap();
    let refusal = plan::read(&by_verb, &TestMachine(None)).unwrap_err();
    assert_eq!(
        refusal.message,
        "error: -R \"U;i\": `i` needs = and a number\n"
    );
}

#[test]
fn lines_before_a_run_and_notes_are_those_of_the_voice() {
    let words = [
        "-o",
        "0",
        "-X",
        "3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d",
        "-p",
        "-R",
        "X U V",
    ];
    let peer = by_name(&words).unwrap();
    let lines = "bad -o arg '0', set ts_obj_p_cont as 1\nUsing cont:3ad5b1c6\n";
    assert_eq!(peer.before, lines);
    assert_eq!(peer.notes.len(), 1, "{:?}", peer.notes);
    let machine = TestMachine(Some("PMEM_NO_FLUSH"));
    let weir = plan::read(&given(&words, false).unwrap(), &machine).unwrap();
    assert_eq!(weir.before, "");
    let notes = weir.notes.join("\n");
    for part in [
        "PMEM_NO_FLUSH is ignored",
        "unknown test code X",
        "V is skipped",
        "bad -o arg '0'",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

fn run_of(test: u32, name: &str, ns: u64, operations: u64) -> ObjectRun {
    ObjectRun {
        test,
        name: name.to_owned(),
        span: Span {
            start_ns: Nanos(0),
            end_ns: Nanos(ns * 2),
        },
        busy_ns: Nanos(ns),
        truncated_us: ns / 2000,
        operations,
        bytes: Bytes(operations * 64),
        hits: operations,
        ..ObjectRun::default()
    }
}

/// Text of these runs, on one rank or on two alike.
fn text(words: &[&str], ranks: u32, runs: &[ObjectRun]) -> Printed {
    text_of(&VOS_PERF, words, ranks, runs)
}

fn text_of(door: &'static Door, words: &[&str], ranks: u32, runs: &[ObjectRun]) -> Printed {
    let (result, given) = result_of(door, words, ranks, runs);
    output::print(&result, &given)
}

fn result_of(
    door: &'static Door,
    words: &[&str],
    ranks: u32,
    runs: &[ObjectRun],
) -> (RunResult, Given) {
    let given = given_of(door, words, true).unwrap();
    let request = plan::read(&given, &TestMachine(Some("DAOS"))).unwrap();
    let Action::Measure(Input::Made(plan)) = request.action else {
        panic!("{request:?}");
    };
    let mut result = RunResult::of(*plan);
    result.complete = true;
    let rank = |rank| ObjectRank {
        rank,
        pool: "3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d".to_owned(),
        file: Some(format!("./vos{rank}")),
        durability: ObjectDurability::Process,
        runs: runs.to_vec(),
        ..ObjectRank::default()
    };
    let job = &mut result.groups[0].jobs[0];
    let has_failed = runs.iter().any(|run| run.failure.is_some());
    job.state = if has_failed {
        State::Failed
    } else {
        State::Done
    };
    job.span = Some(Span::default());
    job.outcome = Outcome::ObjectStore(Box::new(ObjectOutcome {
        ranks: (0..ranks).map(rank).collect(),
    }));
    (result, given)
}

#[test]
fn an_interrupted_test_is_printed_as_far_as_it_came() {
    let runs = [run_of(0, "update", 4000, 2), run_of(1, "fetch", 1000, 3)];
    let (mut result, given) = result_of(&VOS_PERF, &["-R", "U;p F;p V;p"], 1, &runs);
    result.ended_by = Some(EndedBy { signal: 2 });
    let printed = output::print(&result, &given).out;
    for part in [
        "UPDATE successfully completed:\n",
        "Completed test=UPDATE\n",
        "FETCH interrupted:\n\tduration  : 0.000001   sec\n",
        "FETCH interrupted\n",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    for part in ["FETCH successfully", "Completed test=FETCH", "VERIFY"] {
        assert!(!printed.contains(part), "{part}: {printed}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a text to the letter")]
fn a_run_prints_its_table_and_what_each_test_did() {
    let words = [
        "-D",
        ".",
        "-P",
        "4G",
        "-d",
        "2",
        "-a",
        "2",
        "-n",
        "1",
        "-R",
        "X U;v;D=1;p F V",
    ];
    let key = |name: &str| Some(ObjectKey::Name(name.to_owned()));
    let mut update = run_of(0, "update", 4000, 2);
    update.keys = vec![ObjectKeys {
        dkey: key("blade-1"),
        akey: key("akey--3"),
    }];
    let runs = [
        update,
        run_of(1, "fetch", 1000, 4),
        run_of(2, "verify", 1000, 4),
    ];
    let printed = text(&words, 1, &runs);
    assert_eq!(
        printed.out,
        "Test :\n\tVOS (storage only)\n\
         Pool :\n\t3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d\n\
         Parameters :\n\
         \tpool size     : SCM: 4096 MB, NVMe: 0 MB\n\
         \tcredits       : -1 (sync I/O for -ve)\n\
         \tobj_per_cont  : 1 x 1 (procs)\n\
         \tdkey_per_obj  : 2 (buf)\n\
         \takey_per_dkey : 2\n\
         \trecx_per_akey : 1\n\
         \tvalue type    : single\n\
         \tstride size   : 64\n\
         \tzero copy     : no\n\
         \tVOS file      : ./vos0\n\
         Unknown test code=X\n\
         Running test=UPDATE\n\
         Running UPDATE test (iteration=1, dkeys=1)\n\
         Update dkey=[7] 'blade-1' akey=[7] 'akey--3'\n\
         UPDATE successfully completed:\n\
         \tduration  : 0.000004   sec\n\
         \tbandwidth : 30.518     MB/sec\n\
         \trate      : 500000.00  IO/sec\n\
         \tlatency   : 2.000      us (nonsense if credits > 1)\n\
         Duration across processes:\n\
         \tMAX duration : 0.000004   sec\n\
         \tMIN duration : 0.000004   sec\n\
         \tAverage duration : 0.000004   sec\n\
         Completed test=UPDATE\n\
         Running test=FETCH\n\
         Running FETCH test (iteration=1)\n\
         Completed test=FETCH\n\
         Running test=VERIFY\n\
         Running VERIFY test (iteration=1)\n\
         Completed test=VERIFY\n"
    );
    assert_eq!(
        printed.err,
        "durability=process (not a DAX file system)\nunknown test code X\n"
    );
    assert_eq!(printed.code, 0);
}

#[test]
fn rewritten_values_are_said_to_have_no_verification() {
    let printed = text(&["-R", "U V"], 1, &[run_of(0, "update", 1000, 4)]);
    let end = "Running test=VERIFY\nRunning VERIFY test (iteration=1)\n\
               Verification is unsupported\nCompleted test=VERIFY\n";
    assert!(printed.out.ends_with(end), "{}", printed.out);
}

#[test]
fn several_ranks_count_from_the_first_start_and_latency_is_of_an_operation() {
    let printed = text(&["-R", "U;p"], 2, &[run_of(0, "update", 4000, 2)]);
    for line in [
        "\tobj_per_cont  : 1 x 2 (procs)\n",
        "\tduration  : 0.000008   sec\n",
        "\trate      : 500000.00  IO/sec\n",
        "\tlatency   : 2.000      us",
        "\tAverage duration : 0.000004   sec\n",
    ] {
        assert!(printed.out.contains(line), "{line}: {}", printed.out);
    }
}

#[test]
fn times_cut_to_microseconds_stand_beside_true_ones() {
    let words = ["--compat-truncate", "-R", "U;p"];
    let printed = text(&words, 1, &[run_of(0, "update", 4000, 2)]);
    let (exact, cut) = printed
        .out
        .split_once("UPDATE (truncated) successfully")
        .unwrap();
    assert!(exact.contains("\tlatency   : 2.000 "), "{exact}");
    assert!(
        cut.contains("\tlatency   : 1.000 ") && cut.contains("\trate      : 1000000.00"),
        "{cut}"
    );
    let nothing = text(&words, 1, &[run_of(0, "update", 400, 2)]);
    assert!(
        nothing.out.contains("\trate      : inf "),
        "{}",
        nothing.out
    );
}

#[test]
fn what_the_peers_figures_leave_out_stands_below_them() {
    let mut query = run_of(1, "query", 1000, 5);
    (query.greatest_dkey, query.extent_end) = (Some(5), Some(640));
    let mut fetch = run_of(2, "fetch", 1000, 10);
    (fetch.hits, fetch.misses) = (6, 4);
    let mut aggregate = run_of(3, "aggregate", 1000, 1);
    (aggregate.freed_versions, aggregate.freed_bytes) = (7, Bytes(448));
    let words = ["-i", "-I", "-A", "-R", "U Q;p F;p A;p"];
    let runs = [run_of(0, "update", 1000, 5), query, fetch, aggregate];
    let printed = text(&words, 1, &runs).out;
    for line in [
        "\t+ found     : 5 of 5, greatest dkey 5, last extent ends at 640\n",
        "\t+ missed    : 4 (40.0 %)\n",
        // Of 6 that found something, in 1 µs.
        "\trate      : 6000000.00 IO/sec\n",
        "\t+ freed     : 7 versions, 448 bytes\n",
        "\takey_per_dkey : 1 (const)\n",
        "\tdkey_per_obj  : 256 (int)\n",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let query = printed.split_once("QUERY successfully").unwrap().1;
    assert!(
        !query.split_once("IO/sec").unwrap().0.contains("bandwidth"),
        "{query}"
    );
}

#[test]
fn a_failed_test_names_its_first_failure_and_ends_the_text() {
    let mut update = run_of(0, "update", 1000, 5);
    update.failure = Some(ObjectFailure {
        object: "281474976710656.7".to_owned(),
        keys: ObjectKeys {
            dkey: Some(ObjectKey::Integer(3)),
            akey: Some(ObjectKey::Name("akey--9".to_owned())),
        },
        epoch: 12,
        code: ErrorCode::from("DER_NOSPACE"),
        text: String::new(),
    });
    update.errors.insert(ErrorCode::from("DER_NOSPACE"), 2);
    let printed = text(&["-R", "U;p F;p"], 1, &[update]);
    assert!(
        printed.out.ends_with("test (iteration=1)\nUPDATE failed\n"),
        "{}",
        printed.out
    );
    let lines = "Update failed. rc=-1007, epoch=12\n\
                 first failure: object 281474976710656.7 dkey=[8] 'uint64:3' akey=[7] 'akey--9' epoch 12\n\
                 2 failed with DER_NOSPACE\n\
                 Failed: DER_NOSPACE(-1007): 'No space on storage target'\n";
    assert!(printed.err.ends_with(lines), "{}", printed.err);
    assert_eq!(printed.code, 1);
}

#[test]
fn the_store_over_a_network_is_the_one_that_is_named() {
    let run = ["-A", "-R", "U"];
    let store = |words: &[&str], variable| {
        let work = work_of(over_network(&[words, &run].concat(), &TestMachine(variable)).unwrap());
        (work.engine, work.servers)
    };
    let addresses = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let one = || addresses(&[SERVER]);
    let uuid = "3AD5B1C6-0c22-4f1c-8f51-2b7a5a1b6c1d";
    let both = "tcp://a:1,shm:///tmp/b.sock";
    let two = addresses(&["tcp://a:1", "shm:///tmp/b.sock"]);
    let variable = Some("WEIR_OBJ_SERVER");
    for (words, variable, expected) in [
        (
            &["--server", SERVER][..],
            None,
            (ObjectEngine::Remote, one()),
        ),
        (&["--server", both], variable, (ObjectEngine::Remote, two)),
        (
            &["--engine", "remote"],
            variable,
            (ObjectEngine::Remote, one()),
        ),
        (&[], variable, (ObjectEngine::Remote, one())),
        (&["-T", "echo"], variable, (ObjectEngine::Echo, one())),
        (
            &["-u", uuid],
            Some("DAOS"),
            (ObjectEngine::Daos, Vec::new()),
        ),
        (
            &["--engine", "daos", "-u", "tank"],
            Some("DAOS"),
            (ObjectEngine::Daos, Vec::new()),
        ),
        (&["-T", "vos"], variable, (ObjectEngine::Mem, Vec::new())),
        (
            &["--engine", "disk"],
            variable,
            (ObjectEngine::Disk, Vec::new()),
        ),
    ] {
        assert_eq!(store(words, variable), expected, "{words:?}");
    }
    let old = work_of(
        over_network(
            &["-T", "vos", "-f", "./vos", "-R", "U P"],
            &TestMachine(None),
        )
        .unwrap(),
    );
    assert_eq!(
        (old.pool_file(1), old.tests.len()),
        ("./vos1".to_owned(), 2)
    );
}

#[test]
fn operations_in_flight_and_classes_are_those_that_are_said() {
    let with = |words: &[&str], variable| {
        let words = [words, &["-R", "U"]].concat();
        over_network(&words, &TestMachine(Some(variable))).unwrap()
    };
    for (text, in_flight) in [("-1", 0), ("0", 0), ("1", 1), ("16", 16), ("1k", 1024)] {
        let request = with(&["-C", text], "WEIR_OBJ_SERVER");
        assert!(request.notes.is_empty(), "{text}: {:?}", request.notes);
        assert_eq!(work_of(request).in_flight, in_flight, "{text}");
    }
    let capped = with(&["-C", "99999"], "WEIR_OBJ_SERVER");
    assert!(
        capped.notes[0].contains("-C 99999: 1024"),
        "{:?}",
        capped.notes
    );
    assert_eq!(work_of(capped).in_flight, 1024);
    let class = |words: &[&str], variable| work_of(with(words, variable)).class;
    assert_eq!(class(&[], "WEIR_OBJ_SERVER"), Some(ObjectClass::Large));
    assert_eq!(
        class(&["-c", "tiny"], "WEIR_OBJ_SERVER"),
        Some(ObjectClass::Tiny)
    );
    let daos = ["-u", "tank", "-c", "ec2p2"];
    assert_eq!(class(&daos, "DAOS"), Some(ObjectClass::Ec2p2));
}

#[test]
#[expect(clippy::too_many_lines, reason = "refusal by refusal")]
fn what_a_store_over_a_network_lacks_is_refused_by_name() {
    for (words, variable, code, why) in [
        (
            &["-C", "abc"][..],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--credits abc: it takes a whole number",
        ),
        (
            &["-c", "NOPE"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--class NOPE: there are TINY, LARGE",
        ),
        (
            &["-c", "R2S"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--class R2S: weir's servers have TINY and LARGE",
        ),
        (
            &["-c", "EC2P1", "-T", "echo"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--class EC2P1: ",
        ),
        (
            &["-g", "f"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--dmg_conf is not available: weir makes no pools",
        ),
        (
            &["-z"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--zcopy is not available: only a store of this process",
        ),
        (&["-t"], Some("WEIR_OBJ_SERVER"), 2, "-t is not available"),
        (
            &["-u", "tank"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--pool tank: it takes a UUID",
        ),
        (
            &["-f", "./vos"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "-f: it names the pool files of -T vos",
        ),
        (
            &["--durability", "power"],
            Some("WEIR_OBJ_SERVER"),
            2,
            "--durability: the server's own",
        ),
        (&["--server", "here"], None, 2, "--server here: "),
        (
            &["-T", "vos", "--server", SERVER],
            None,
            2,
            "--server: a store of this process has none",
        ),
        (
            &["-T", "vos", "-c", "TINY"],
            None,
            2,
            "--class: a store of this process has none",
        ),
        (
            &["-T", "echo", "--engine", "mem"],
            None,
            2,
            "--type echo: that store is one of this",
        ),
        (
            &["-T", "vos", "--engine", "remote"],
            None,
            2,
            "--type vos: that store is one of this",
        ),
        (
            &["-T", "echo", "--engine", "daos"],
            Some("DAOS"),
            2,
            "--type echo: that of DAOS",
        ),
        (
            &["--engine", "daos", "--server", SERVER],
            Some("DAOS"),
            2,
            "--server: --engine daos",
        ),
        (
            &[],
            Some("DAOS"),
            2,
            "--engine daos: weir makes no pools there",
        ),
        (
            &["--engine", "daos"],
            None,
            3,
            "--engine daos: libdaos not found",
        ),
        (
            &["--engine", "remote"],
            Some("DAOS"),
            3,
            "neither --server nor WEIR_OBJ_SERVER",
        ),
        (
            &["-T", "echo"],
            Some("DAOS"),
            3,
            "neither --server nor WEIR_OBJ_SERVER",
        ),
        (
            &[],
            None,
            3,
            "neither --server nor WEIR_OBJ_SERVER names one; and libdaos not found",
        ),
    ] {
        let refusal =
            over_network(&[words, &["-R", "U"]].concat(), &TestMachine(variable)).unwrap_err();
        assert!(refusal.message.contains(why), "{words:?}: {refusal}");
        assert_eq!(refusal.code, code, "{words:?}: {refusal}");
    }
    let unknown = over_network(&["-c", "NOPE", "-R", "U"], &TestMachine(None)).unwrap_err();
    let peer = unknown.of_peer(2).message;
    assert!(
        peer.starts_with("Unknown object class: NOPE\n") && peer.contains("--credits"),
        "usage: {peer}"
    );
}

#[test]
fn a_store_over_a_network_has_four_tests() {
    let words = ["-u", "tank", "-A", "-R", "P U;p V O;p"];
    let mut listing = run_of(2, "list", 1000, 2);
    (listing.listed, listing.bytes) = (vec![8, 2], Bytes(0));
    let runs = [
        run_of(0, "update", 4000, 2),
        run_of(1, "verify", 1000, 2),
        listing,
    ];
    let printed = text_of(&DAOS_PERF, &words, 2, &runs);
    let (table, rest) = printed.out.split_once("Unknown test code=P\n").unwrap();
    assert_eq!(
        table,
        "Test :\n\tDAOS LARGE (full stack, non-replica)\n\
         Pool :\n\t3ad5b1c6-0c22-4f1c-8f51-2b7a5a1b6c1d\n\
         Parameters :\n\
         \tpool size     : SCM: 2048 MB, NVMe: 0 MB\n\
         \tcredits       : -1 (sync I/O for -ve)\n\
         \tobj_per_cont  : 1 x 2 (procs)\n\
         \tdkey_per_obj  : 256 (buf)\n\
         \takey_per_dkey : 16\n\
         \trecx_per_akey : 16\n\
         \tvalue type    : array\n\
         \tstride size   : 64\n"
    );
    assert_eq!(printed.err, "unknown test code P\n");
    let listed = "Running OIT test (iteration=1)\n\
                  returned 8 oids\nreturned 2 oids\nlisted 10 objects\n\
                  returned 8 oids\nreturned 2 oids\nlisted 10 objects\n\
                  OIT successfully completed:\n";
    assert!(rest.contains(listed), "{rest}");
    assert!(
        rest.contains("\tbandwidth : 0.000      MB/sec\n")
            && rest.ends_with("Completed test=OIT\n")
    );
}

#[test]
fn an_echo_has_nothing_to_compare_or_to_list() {
    let words = [
        "-T",
        "echo",
        "--server",
        SERVER,
        "-c",
        "tiny",
        "-C",
        "16",
        "-A",
        "--output-style",
        "2.9",
        "-R",
        "U V;p O;p",
    ];
    let printed = text_of(&DAOS_PERF, &words, 1, &[run_of(0, "update", 1000, 4)]);
    for part in [
        "\tECHO TINY (network only, non-replica)\n",
        "\tcredits       : 16 (sync I/O for -ve)\n",
        "\tvalue size    : 64\n",
    ] {
        assert!(printed.out.contains(part), "{part}: {}", printed.out);
    }
    let end = "Running VERIFY test (iteration=1)\nVerification is unsupported\nCompleted test=VERIFY\n\
               Running test=OIT\nRunning OIT test (iteration=1)\nCompleted test=OIT\n";
    assert!(printed.out.ends_with(end), "{}", printed.out);
    assert_eq!(printed.err, "");
    let words = ["-T", "echo", "--server", SERVER, "-A", "-R", "U V O"];
    let by_verb = given_of(&DAOS_PERF, &words, false).unwrap();
    let notes = plan::read(&by_verb, &TestMachine(None))
        .unwrap()
        .notes
        .join("\n");
    assert!(
        notes.contains("V is skipped: with -T echo") && notes.contains("O is skipped"),
        "{notes}"
    );
}

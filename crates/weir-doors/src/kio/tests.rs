//! Tests of the whole door: arguments to a plan, a result to text.

use proptest::prelude::*;
use weir_schema::{Job, Plan, RunResult, State};

use super::*;
use crate::args::{Arguments, DoorCall};
use crate::door::PrintedFile;
use crate::house::Input;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn facts() -> TargetFacts {
    TargetFacts::sample()
}

/// A machine of which every target and the module are so.
struct Fake<'a> {
    module: &'a ModuleFacts,
    facts: &'a TargetFacts,
}

impl Machine for Fake<'_> {
    fn kernel_module(&self) -> ModuleFacts {
        self.module.clone()
    }

    fn target(&self, path: &str) -> Result<TargetFacts, String> {
        match path {
            "/dev/none" => Err("there is nothing".to_owned()),
            _ => Ok(self.facts.clone()),
        }
    }

    fn held_data(&self, path: &str) -> Option<&'static str> {
        (path == "/dev/full").then_some("an ext file system")
    }

    fn file(&self, path: &str, _: u64) -> Result<String, String> {
        let config = "threads: {0: {queue_depth: 1}, 1: {queue_depth: 16, block_device: /dev/b}}";
        match path {
            "kio.conf" => Ok(config.to_owned()),
            "bad.conf" => Ok("threads: {0: {queue_dept: 1}}".to_owned()),
            _ => Err("No such file".to_owned()),
        }
    }
}

fn arguments(text: &str) -> Result<Arguments, Refusal> {
    args::read(&DoorCall {
        door: &DOOR,
        link: None,
        args: words(text),
    })
}

fn asked(text: &str, module: &ModuleFacts, facts: &TargetFacts) -> Result<Request, Refusal> {
    match arguments(text)? {
        Arguments::Print(page) => Ok(Request::print(page)),
        Arguments::Given(given) => super::request(&given, &Fake { module, facts }),
    }
}

fn request(text: &str) -> Result<Request, Refusal> {
    asked(text, &ModuleFacts::default(), &facts())
}

/// Plan of a run, with its notes.
fn planned(request: Request) -> (Plan, Vec<String>) {
    match request.action {
        Action::Measure(Input::Made(plan)) => (*plan, request.notes),
        other => panic!("{other:?}"),
    }
}

fn run(text: &str) -> (Plan, Vec<String>) {
    planned(request(text).unwrap_or_else(|why| panic!("{text}: {why}")))
}

fn plan_of(text: &str) -> Plan {
    run(text).0
}

/// The text that a result has with these arguments.
fn text_of(result: &RunResult, text: &str) -> String {
    let given = args::read_given(&DOOR, &words(text)).unwrap();
    let (module, facts) = (&ModuleFacts::default(), &facts());
    let printed = output::print(result, &given, &Fake { module, facts });
    printed.out
}

fn jobs(plan: &Plan) -> Vec<&Job> {
    plan.jobs().map(|(_, job)| job).collect()
}

#[track_caller]
fn is_refused(text: &str, code: u8, named: &str) {
    let refusal = request(text).unwrap_err();
    assert_eq!(refusal.code, code, "{refusal}");
    assert!(refusal.message.contains(named), "{text}: {refusal}");
}

#[test]
fn a_command_line_of_the_other_program_is_a_job_for_each_thread() {
    let (plan, notes) = run(
        "-d /dev/a -t 2 -s 3 --bs=8k --qd 10 --or 1 --rm 50 --rm 75 --rb 30 --wb 10 --bf 1 --bd 1 --rs 7",
    );
    assert!(notes.is_empty());
    let jobs = jobs(&plan);
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["thread 0", "thread 1"]);
    let settings = job::settings(jobs[1]).unwrap();
    let expected = [8192, 1, 1, 64 << 20, 0, 1, 8192, 10, 30, 75, 7, 10, 0];
    assert_eq!(settings.0, expected);
    assert_eq!(jobs[0].engine.name, "io_uring");
    assert_eq!(
        jobs[0].load().bounds.runtime_ns,
        Some(weir_units::Nanos::from_secs(3))
    );
    assert_eq!(jobs[0].blocks().unwrap().access.seed, 0x5EED);
}

#[test]
fn numbers_of_every_option_have_units_and_bases() {
    let plan = plan_of(
        "-d /dev/a -t 0x2 -s 0x3 --qd 0x10 --seed 0x5EED --ramp 0x2 --interval 1k --batch 0x4 --ios 2k \
         --size 1M --error-limit 0x20",
    );
    let job = jobs(&plan)[1];
    let load = job.load();
    let seconds = weir_units::Nanos::from_secs;
    assert_eq!(job.blocks().unwrap().access.seed, 0x5EED);
    assert_eq!(load.bounds.runtime_ns, Some(seconds(3)));
    assert_eq!(load.bounds.ramp_ns, seconds(2));
    assert_eq!(load.bounds.operations, Some(2048));
    assert_eq!(load.depth.submit_batch, 4);
    assert_eq!(load.recording.interval_ns.0, 1_024_000_000);
    assert_eq!(load.errors.fail_at, Some(32));
}

#[test]
fn so_many_failures_of_all_threads_end_the_run() {
    use weir_schema::ExitAll::GroupOnError;
    for (words, fail_at, goes_on, exit_all) in [
        ("", None, false, Some(GroupOnError)),
        ("--error-limit 1", None, false, Some(GroupOnError)),
        ("--error-limit 10", Some(10), true, Some(GroupOnError)),
        ("--error-limit 0", None, true, None),
    ] {
        let plan = plan_of(&format!("-d /dev/a -t 2 {words}"));
        for job in jobs(&plan) {
            let errors = &job.load().errors;
            assert_eq!(errors.fail_at, fail_at, "{words}");
            assert_eq!(!errors.go_on.is_empty(), goes_on, "{words}");
            assert_eq!(job.end.exit_all, exit_all, "{words}");
        }
    }
}

#[test]
fn the_line_wins_over_the_file_and_the_file_over_defaults() {
    let plan = plan_of("-c kio.conf -t 3 -d /dev/a --bs 4096");
    let depths: Vec<u32> = jobs(&plan)
        .iter()
        .map(|job| job.load().depth.queue_depth.0)
        .collect();
    assert_eq!(depths, [1, 16, 1]);
    let plan = plan_of("-c kio.conf -t 2 -d /dev/a --qd 4");
    assert!(
        jobs(&plan)
            .iter()
            .all(|job| job.load().depth.queue_depth.0 == 4)
    );
}

#[test]
fn what_is_behind_the_end_is_clipped_with_a_note() {
    let (_, notes) = run("-d /dev/a --offset-high 4294967295 -t 4");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("clipped to 67108864"), "{notes:?}");
}

#[test]
fn numbers_out_of_their_range_are_refused_with_it() {
    for (text, named) in [
        (
            "--num-threads x",
            "--num-threads x: it takes a whole number from 0 to 1024",
        ),
        ("--offset-high 0x10q", "--offset-high 0x10q: it takes"),
        ("--read-mix-percent 101", "from 0 to 100"),
        ("--queue-depth 0", "from 1 to 1024"),
        ("--offset-random 2", "from 0 to 1"),
        ("--ios 0", "--ios 0"),
        ("--batch 2", "--batch 2"),
        ("--offset-low 64M", "no room"),
        ("--block-size 1000", "multiple of 512"),
        ("--offset-align 8k", "--offset-align"),
        ("--engine legacy", "--engine uring"),
        ("--op zone-append", "--op write"),
        ("--op flush --size 1M", "--size is about"),
        ("--seed x", "--seed x: it takes a whole number"),
        (
            "--ramp 2h",
            "--ramp 2h: it takes a whole number from 0 to 3600",
        ),
        ("--error-limit -1", "--error-limit -1: it takes"),
        ("--fua", "--fua"),
        ("--engine sync --qd 2", "--queue-depth 1"),
        ("-c bad.conf", "did you mean `queue_depth`"),
        ("-c none.conf", "none.conf"),
        ("--sweep queue_depth=1..8", "--sweep"),
        ("statsu", "weir kio status"),
        ("--bogus", "no option `--bogus`"),
        ("-g x.conf --ios 9", "--ios"),
    ] {
        is_refused(&format!("{text} -d /dev/a"), 2, named);
    }
}

#[test]
fn without_a_device_the_five_ways_to_name_one_are_listed() {
    let message = request("--qd 4").unwrap_err().message;
    for way in [
        "--device",
        "--config",
        "WEIR_KIO_DEVICE",
        "/sys/module/kio",
        "/etc/modprobe.d/kio.conf",
    ] {
        assert!(message.contains(way), "{message}");
    }
    is_refused("-d /dev/none", 2, "/dev/none: there is nothing");
}

#[test]
fn a_comparison_has_a_side_in_the_kernel_and_refuses_what_it_does_not_print() {
    use crate::compare::{CompareInput, RoundsOf};
    let loaded = ModuleFacts {
        has_node: true,
        ..ModuleFacts::default()
    };
    let sides = |words: &str| match asked(words, &loaded, &facts()) {
        Ok(Request {
            action: Action::Compare(compare),
            ..
        }) => match compare.input {
            CompareInput::Rounds {
                rounds,
                of: RoundsOf::Plans(sides),
                ..
            } => {
                let names: Vec<String> = sides.into_iter().map(|(name, _)| name).collect();
                (names.join(" "), rounds.count)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let all = "kernel io_uring psync".to_owned();
    assert_eq!(sides("--compare -d a --rounds 0x10"), (all, Some(16)));
    assert_eq!(sides("--compare -d a --qd 4").0, "kernel io_uring");
    for (words, named) in [
        ("--format yaml", "--format json"),
        ("--trace-offsets 4", "--trace-offsets acts only"),
        ("--label x", "--label acts only"),
        ("--engine uring", "--engine acts only"),
    ] {
        let words = format!("--compare -d a {words}");
        let refusal = asked(&words, &loaded, &facts()).unwrap_err();
        assert!(
            refusal.code == 2 && refusal.message.contains(named),
            "{refusal}"
        );
    }
    is_refused("--compare -d a", 3, "weir kio load");
}

#[test]
fn the_kernel_engine_needs_its_module_and_a_block_device() {
    is_refused("--engine kernel -d /dev/a", 3, "weir kio load");
    is_refused("--engine kernel", 3, "weir kio build");
    let loaded = ModuleFacts {
        has_node: true,
        ..ModuleFacts::default()
    };
    let engine = |text: &str, facts: &TargetFacts| match asked(text, &loaded, facts) {
        Ok(request) => Ok(jobs(&planned(request).0)[0].engine.name.clone()),
        Err(refusal) => Err(refusal),
    };
    let older = ModuleFacts {
        version: Some("1.0-r7-gabc".to_owned()),
        ..ModuleFacts::default()
    };
    let (_, notes) = planned(asked("-d a", &older, &facts()).unwrap());
    assert!(notes[0].contains("not driven"), "{notes:?}");
    let closed = ModuleFacts {
        has_node: true,
        is_closed: true,
        ..ModuleFacts::default()
    };
    let (plan, notes) = planned(asked("-d a", &closed, &facts()).unwrap());
    assert_eq!(jobs(&plan)[0].engine.name, "io_uring");
    assert!(notes[0].contains("may not be opened"), "{notes:?}");
    let refusal = asked("-d a --engine kernel", &closed, &facts()).unwrap_err();
    assert!(
        refusal.code == 3 && refusal.message.contains("--engine uring"),
        "{refusal}"
    );
    let file = TargetFacts {
        is_device: false,
        ..facts()
    };
    assert_eq!(engine("-d a", &facts()).unwrap(), "kernel");
    assert_eq!(engine("-d a", &file).unwrap(), "io_uring");
    assert_eq!(engine("-d a --engine uring", &facts()).unwrap(), "io_uring");
    let refusal = engine("-d a --engine kernel", &file).unwrap_err();
    assert!(
        refusal.code == 2 && refusal.message.contains("losetup"),
        "{refusal}"
    );
}

#[test]
fn polling_needs_queues_to_poll() {
    let polled = |engine: &str, has_polling| {
        let facts = TargetFacts {
            has_polling,
            ..facts()
        };
        let words = format!("-d a --complete poll --engine {engine}");
        asked(&words, &ModuleFacts::default(), &facts)
    };
    assert!(polled("uring", None).is_ok() && polled("uring", Some(true)).is_ok());
    let refusal = polled("uring", Some(false)).unwrap_err();
    assert_eq!(refusal.code, 3, "{refusal}");
    assert!(refusal.message.contains("nvme.poll_queues=1"), "{refusal}");
    assert_eq!(polled("aio", Some(true)).unwrap_err().code, 2);
}

#[test]
fn a_target_that_cannot_be_written_is_refused_where_something_writes() {
    let odd = [
        TargetFacts {
            is_read_only: true,
            ..facts()
        },
        TargetFacts {
            is_zoned: true,
            ..facts()
        },
    ];
    for facts in odd {
        let of = |text: &str| asked(text, &ModuleFacts::default(), &facts);
        assert!(of("-d a").is_ok());
        assert_eq!(of("-d a --rm 99").unwrap_err().code, 2);
    }
    assert!(request("-d /dev/full").is_ok());
    assert!(request("-d /dev/full --rm 99 --force").is_ok());
    let refusal = request("-d /dev/full --rm 99").unwrap_err();
    assert!(refusal.message.contains("an ext file system"), "{refusal}");
    assert!(refusal.message.contains("--force"), "{refusal}");
}

#[test]
fn the_examples_are_good() {
    let examples = EXAMPLES
        .lines()
        .filter_map(|line| line.strip_prefix("    weir kio "));
    for words in examples {
        assert!(request(&format!("{words} -d /dev/a")).is_ok(), "{words}");
    }
}

#[test]
fn names_of_the_peer_may_be_cut_short_where_one_option_begins_so() {
    for (text, flag, value) in [
        ("--num 2", "num-threads", "2"),
        ("--read-m=50", "read-mix-percent", "50"),
        ("--bs 4096", "block-size", "4096"),
        ("--or=1", "offset-random", "1"),
        ("--os -512", "offset-stride", "-512"),
        ("-t 4 -t 5", "num-threads", "5"),
    ] {
        let given = args::read_given(&DOOR, &words(text)).unwrap();
        assert_eq!(given.text(flag), Some(value), "{text}");
    }
    for (text, named) in [
        ("--offset 1", "--offset-low, "),
        ("--o 3", "--output-csv"),
        ("--burst 1", "--burst-delay"),
        ("--sw 3", "no option `--sw`"),
    ] {
        let message = arguments(text).unwrap_err().message;
        assert!(message.contains(named), "{message}");
    }
}

#[test]
fn flags_of_the_house_about_one_plan_are_refused_where_there_is_none() {
    for (text, named) in [
        (
            "-g kio.conf --dry-run",
            "--dry-run has no effect with --generate-config",
        ),
        (
            "-g kio.conf --weir-format json",
            "--weir-format has no effect with",
        ),
        ("-d a --repeat 2 -o r.csv", "--repeat: --output-csv"),
        ("status --raw", "takes no words, and there is `--raw`"),
        ("unload x", "takes no words, and there is `x`"),
        (
            "load --kdir x",
            "`--device DEV` alone, and there is `--kdir`",
        ),
        ("-d a --kdir x", "weir kio build"),
    ] {
        is_refused(text, 2, named);
    }
}

#[test]
fn what_is_read_back_is_what_was_written() {
    let plan = plan_of("-d /dev/a -t 2 --op write --data verify --verify --oh 1M");
    let kinds: Vec<_> = jobs(&plan)
        .iter()
        .map(|job| {
            let work = job.blocks().unwrap();
            let stream = work.bursts.unwrap().stream;
            (
                job.name.as_str(),
                work.mix.read_percent,
                stream,
                job.start.barrier,
            )
        })
        .collect();
    let expected = [
        ("thread 0", 0, Some(0), false),
        ("thread 1", 0, Some(1), false),
        ("thread 0 read back", 100, Some(0), true),
        ("thread 1 read back", 100, Some(1), false),
    ];
    assert_eq!(kinds, expected);
    assert!(
        jobs(&plan)
            .iter()
            .all(|job| job.load().bounds.runtime_ns.is_none())
    );
    is_refused("-d /dev/a --data verify --rm 50", 2, "--op write --verify");
}

#[test]
fn a_configuration_is_written_without_a_device_and_reads_back() {
    // What would be written of a run has nothing to be written of, and is taken all the same.
    let asked = request("-t 2 -s 5 --qd 7 -g kio.conf -L a -o r.csv -y r.yaml").unwrap();
    let Action::Print(printed) = asked.action else {
        panic!("no text");
    };
    let end = "Generating config in kio.conf\n";
    assert!(printed.out.ends_with(end), "{printed:?}");
    let PrintedFile { path, text, .. } = &printed.files[0];
    assert_eq!(path, "kio.conf");
    let read = config::Config::read(text).unwrap();
    assert_eq!((read.num_threads, read.runtime_seconds), (Some(2), Some(5)));
    assert_eq!(read.threads.len(), 2);
    assert_eq!(
        read.threads[&1].given.get(settings::Field::QueueDepth),
        Some(7)
    );
}

#[test]
fn a_sweep_is_a_group_for_each_point_that_waits_for_the_one_before() {
    let plan = plan_of("-d /dev/a --sweep num_threads=1,2 --sweep queue_depth=1..4*2 -s 1");
    let shape: Vec<(usize, u32, bool)> = plan
        .groups
        .iter()
        .map(|group| {
            let first = &group.jobs[0];
            let depth = first.load().depth.queue_depth.0;
            (group.jobs.len(), depth, first.start.barrier)
        })
        .collect();
    assert_eq!(
        shape,
        [
            (1, 1, false),
            (1, 2, true),
            (1, 4, true),
            (2, 1, true),
            (2, 2, true),
            (2, 4, true)
        ]
    );
    let rows = output::rows(&ended(plan, State::Done), &options(""));
    assert_eq!(rows.lines().count(), 7);
}

/// A result of which all jobs have this state.
fn ended(plan: Plan, state: State) -> RunResult {
    let mut result = RunResult::of(plan);
    for job in result.groups.iter_mut().flat_map(|group| &mut group.jobs) {
        job.state = state;
    }
    result
}

#[test]
fn points_of_several_axes_are_told_apart_by_what_is_swept() {
    let axes = "--sweep offset_stride=4096,8192 --sweep num_threads=1,2";
    let plan = plan_of(&format!("-d /dev/a {axes}"));
    let names: Vec<&str> = jobs(&plan).iter().map(|job| job.name.as_str()).collect();
    let expected = [
        "thread 0, num_threads=1 offset_stride=4096",
        "thread 0, num_threads=2 offset_stride=4096",
        "thread 1, num_threads=2 offset_stride=4096",
        "thread 0, num_threads=1 offset_stride=8192",
        "thread 0, num_threads=2 offset_stride=8192",
        "thread 1, num_threads=2 offset_stride=8192",
    ];
    assert_eq!(names, expected);
    let title = "# point 3 of 4: num_threads=1 offset_stride=8192\n";
    assert!(output::dry_text(&plan).contains(title));
    let result = ended(plan, State::Done);
    for format in ["kio", "yaml"] {
        let text = text_of(&result, &format!("--format {format}"));
        assert!(text.contains(title), "{text}");
        assert!(!text.contains("INCOMPLETE"), "{text}");
    }
    let plain = output::dry_text(&plan_of("-d /dev/a"));
    assert!(!plain.contains("# point"), "{plain}");
}

#[test]
fn what_reads_back_says_so_in_its_rows_and_reports() {
    let words = "-d /dev/a --op write --data verify --verify --sweep queue_depth=1,2";
    let plan = plan_of(words);
    let names: Vec<&str> = jobs(&plan).iter().map(|job| job.name.as_str()).collect();
    let expected = [
        "thread 0, queue_depth=1",
        "thread 0 read back, queue_depth=1",
        "thread 0, queue_depth=2",
        "thread 0 read back, queue_depth=2",
    ];
    assert_eq!(names, expected);
    let result = ended(plan, State::Done);
    let labels = |words: &str| -> Vec<String> {
        let rows = output::rows(&result, &options(words));
        let label = |row: &str| row.split(',').nth(3).unwrap().to_owned();
        rows.lines().skip(1).map(label).collect()
    };
    assert_eq!(labels(""), ["", "read back", "", "read back"]);
    assert_eq!(labels("-L a"), ["a", "a read back", "a", "a read back"]);
    let yaml = output::yaml(&result, &options("-L a"));
    assert!(
        yaml.contains("# point 4 of 4: queue_depth=2, read back\n"),
        "{yaml}"
    );
    assert_eq!(yaml.matches("run_label: \"a read back\"\n").count(), 2);
}

#[test]
fn a_run_that_is_ended_has_nothing_of_points_that_never_ran() {
    use weir_schema::{EndedBy, Span};
    let plan = plan_of("-d /dev/a -s 2 --sweep queue_depth=1..8*2");
    let mut result = RunResult::of(plan);
    let seconds = |ms| {
        Some(Span {
            start_ns: weir_units::Nanos(0),
            end_ns: weir_units::Nanos::from_millis(ms),
        })
    };
    for (group, state, ms) in [(0, State::Done, 2000), (1, State::Stopped, 960)] {
        let job = &mut result.groups[group].jobs[0];
        (job.state, job.span) = (state, seconds(ms));
    }
    result.ended_by = Some(EndedBy { signal: 2 });
    let rows = output::rows(&result, &options(""));
    let column = |number: usize| -> Vec<&str> {
        rows.lines()
            .map(|row| row.split(',').nth(number).unwrap())
            .collect()
    };
    assert_eq!(column(5), ["runtime_seconds", "2", "0.96"]);
    assert_eq!(column(13), ["queue_depth", "1", "2"]);
    let ending = "INCOMPLETE: ended by signal 2 after 0.96 of 2 s\n";
    let yaml = output::yaml(&result, &options(""));
    assert_eq!(yaml.matches("config:\n").count(), 2);
    assert!(yaml.contains("        runtime_seconds: 0.96\n"), "{yaml}");
    assert_eq!(yaml.matches(ending).count(), 1);
    let text = text_of(&result, "--format kio");
    assert_eq!(text.matches("Results...").count(), 2);
    assert!(text.contains(ending), "{text}");
    assert!(
        text.ends_with("# INCOMPLETE: 2 of 4 points did not run\n"),
        "{text}"
    );
    let undone = [
        "point 2 of 4: queue_depth=2: ended by signal 2 after 0.96 of 2 s",
        "2 of 4 points did not run",
    ];
    assert_eq!(points::left_undone(&result), undone);
    result.groups[0].jobs[0].state = State::NotStarted;
    result.groups[1].jobs[0].state = State::NotStarted;
    assert_eq!(points::begun(&result).count(), 0);
    assert_eq!(output::rows(&result, &options("")), output::head());
}

fn options(text: &str) -> output::KioOptions {
    output::options(&args::read_given(&DOOR, &words(text)).unwrap(), 0)
}

#[test]
fn rows_join_what_differs_between_threads() {
    let plan = plan_of("-c kio.conf -t 2 -d /dev/a");
    let rows = output::rows(&ended(plan, State::Done), &options("-L a,b"));
    let (head, row) = rows.split_once("\r\n").unwrap();
    assert_eq!(head.split(',').count(), 25);
    assert!(
        row.contains(",\"a,b\",2,5,4096,") && row.contains(",1/16,"),
        "{row}"
    );
    assert!(row.ends_with("0,0.0,0.0,0.0,0.0,0.0\r\n"), "{row}");
}

#[test]
fn threads_share_a_region_out_in_equal_parts() {
    let plan = plan_of("-d /dev/a -t 3 --thread-partition --oh 65536");
    let parts: Vec<_> = jobs(&plan)
        .into_iter()
        .map(|job| {
            let settings = job::settings(job).unwrap();
            let low = settings.get(settings::Field::OffsetLow);
            (low, settings.get(settings::Field::OffsetHigh))
        })
        .collect();
    assert_eq!(parts, [(0, 20480), (20480, 40960), (40960, 65536)]);
}

#[test]
fn help_lists_every_option_with_its_short_form() {
    let Ok(Arguments::Print(page)) = arguments("--help") else {
        panic!("no page");
    };
    for flag in FLAGS {
        assert!(page.contains(&format!("--{}", flag.name)), "{}", flag.name);
    }
    for setting in settings::SETTINGS {
        assert!(page.contains(&format!("--{}]", setting.short)), "{page}");
    }
    for verb in VERBS {
        assert!(page.contains(verb), "{verb}");
    }
}

#[test]
fn the_link_of_the_other_program_prints_as_it_does() {
    use crate::door::Voice;
    use crate::house::voice;
    let of = |text: &str| {
        let given = args::read_given(&DOOR, &words(text)).unwrap();
        (given.text("format").unwrap().to_owned(), voice(&given))
    };
    for (text, format, whose) in [
        ("", "table", Voice::Weir),
        ("--format=table", "table", Voice::Weir),
        ("--format=kio", "kio", Voice::Peer),
        ("--format=kio --format=yaml", "yaml", Voice::Peer),
        ("--trace-offsets 4", "table", Voice::Peer),
        ("--format=kio --voice weir", "kio", Voice::Weir),
    ] {
        assert_eq!(of(text), (format.to_owned(), whose), "{text}");
    }
    let by_link = |text: &str| {
        let given = args::read_given(&DOOR, &words(text)).unwrap();
        let (module, facts) = (&ModuleFacts::default(), &facts());
        let link = DOOR.links.iter().find(|link| link.name == "kio.py");
        let link = link.map(|link| link.name);
        super::request(&Given { link, ..given }, &Fake { module, facts })
            .unwrap()
            .action
    };
    let status = Action::Tool(Tool::KernelModule(ModuleCall::Status));
    assert_eq!(
        format!("{:?}", by_link("--format=kio status")),
        format!("{status:?}")
    );
    assert!(request("--format=kio status").is_err());
    assert!(
        matches!(by_link("--format=kio --version"), Action::Print(v) if v.out.starts_with("weir-"))
    );
}

#[test]
fn by_the_voice_of_the_peer_its_sections_are_printed() {
    let result = ended(plan_of("-d /dev/a"), State::Done);
    assert!(text_of(&result, "--voice peer").contains("Results..."));
    let line = text_of(&result, "");
    assert!(line.starts_with("engine: user/io_uring") && line.lines().count() == 1);
}

proptest! {
    #[test]
    fn no_words_make_the_door_panic(text in "(--[a-z-]{0,14}[= ]?|[0-9kx.*=_,/-]{0,6}| ){0,8}") {
        let _ = request(&text);
    }
}

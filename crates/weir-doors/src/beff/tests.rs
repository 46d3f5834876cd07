//! Tests of the arguments of `weir beff`.

use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{
    ExchangeWorkload, MessageSize, Method, Pairing, Plan, Setting, Spawn, Validation, Warning,
    Workload,
};
use weir_units::Nanos;

use proptest::strategy::Strategy as _;

use super::*;
use crate::Voice;
use crate::args::{Arguments, DoorCall, read, read_given};
use crate::flags::Standing;
use crate::house::Input;
use crate::request::{Action, NamedFile, Request, Tool};
use crate::{LACKS, USAGE};

/// Machine with sample transports, and this many ranks of a launcher.
struct TestMachine(Option<u32>);

impl Machine for TestMachine {
    fn launcher(&self) -> Option<u32> {
        self.0
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(1 << 33)
    }

    fn transports(&self) -> TransportCatalogue {
        weir_schema::sample::transports()
    }

    fn file(&self, path: &str, _: u64) -> Result<String, String> {
        let text = r#"{"timings": {"3": {"maxCalcBW": 2e6}}}"#;
        (path == "o.json")
            .then(|| text.to_owned())
            .ok_or_else(|| "no such file".to_owned())
    }
}

/// Request for a run, or the text printed in its place.
struct Asked {
    plan: Plan,
    options: BeffOptions,
    is_run: bool,
    devices: Vec<u32>,
    warnings: Vec<Warning>,
    notes: Vec<String>,
    files: Vec<NamedFile>,
}

fn requested(list: &[String], machine: &TestMachine) -> Result<(Given, Request), Refusal> {
    let given = read_given(&DOOR, list)?;
    let request = request::read(&given, machine)?;
    Ok((given, request))
}

fn words(text: &str, machine: &TestMachine) -> Result<(Given, Request), Refusal> {
    let list: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    requested(&list, machine)
}

fn run_in(text: &str, machine: &TestMachine) -> Asked {
    let (given, request) = words(text, machine).unwrap_or_else(|why| panic!("{text}: {why}"));
    let (plan, result) = match request.action {
        Action::Measure(Input::Made(plan)) => (*plan, None),
        Action::Show(result) => (result.plan.clone(), Some(result)),
        other => panic!("{text}: {other:?}"),
    };
    let ranks = result.iter().flat_map(|result| result.jobs());
    let ranks = ranks
        .filter_map(|job| job.exchange())
        .flat_map(|e| &e.ranks);
    Asked {
        devices: ranks.filter_map(|rank| rank.device).collect(),
        is_run: result.is_none(),
        plan,
        options: request::options(&given, machine).unwrap(),
        warnings: request.warnings,
        notes: request.notes,
        files: request.files,
    }
}

fn run(text: &str) -> Asked {
    run_in(text, &TestMachine(None))
}

fn work(plan: &Plan) -> &ExchangeWorkload {
    match &plan.groups[0].jobs[0].workload {
        Workload::Exchange(work) => work,
        other => panic!("{other:?}"),
    }
}

/// The refusal of a call by a link, or by the verb.
fn refusal(text: &str, link: Option<&'static DoorLink>) -> Refusal {
    let args = text.split_whitespace().map(str::to_owned).collect();
    let door = &DOOR;
    match read(&DoorCall { door, link, args }) {
        Ok(Arguments::Given(given)) => request::read(&given, &TestMachine(None)).unwrap_err(),
        Ok(Arguments::Print(page)) => panic!("{page}"),
        Err(refusal) => refusal,
    }
}

#[test]
fn by_the_verb_refusals_are_those_of_the_house() {
    let usage = "help: weir beff [OPTIONS]; `weir beff --help` says more";
    for (text, why, help) in [
        (
            "-d 0",
            "-d 0: it takes a whole number from 1 to 4294967295",
            usage,
        ),
        ("--zork", "no option `--zork`", usage),
        (
            "--uper 3",
            "no option `--uper`",
            "help: did you mean `--upper`?",
        ),
    ] {
        let message = format!("error: {why}\n  {help}\n");
        assert_eq!(refusal(text, None).message, message);
        let peers = "error: Input parameters could not be parsed! ";
        for call in [
            (text, DOOR.links.first()),
            (&format!("{text} --voice peer"), None),
        ] {
            assert!(
                refusal(call.0, call.1)
                    .of_peer(2)
                    .message
                    .starts_with(peers),
                "{text}"
            );
        }
    }
}

#[track_caller]
fn refused(text: &str, needle: &str) {
    let refusal = refusal(text, DOOR.links.first());
    assert_eq!(refusal.code, USAGE, "{refusal}");
    let refusal = refusal.of_peer(USAGE);
    assert!(
        refusal.message.contains(needle),
        "no `{needle}` in {refusal}"
    );
    assert!(refusal.message.starts_with("error: "), "{refusal}");
}

#[test]
fn standard_output_is_for_one_form_of_the_result() {
    assert_eq!(run("--dump-json -").options.format, BeffFormat::Json);
    assert_eq!(
        run("--dump-json - --format json").options.format,
        BeffFormat::Json
    );
    refused(
        "--dump-json - --format csv",
        "--dump-json - and --format csv",
    );
    refused("--dump-json - --format text", "give a path");
}

#[test]
fn nothing_given_is_the_peers_default_plan() {
    let run = run("");
    let work = work(&run.plan);
    assert_eq!(work.sizes.len(), 21);
    let eighteenth = MessageSize {
        exponent: 18,
        loop_length: 261,
    };
    assert_eq!(work.sizes[18], eighteenth);
    assert_eq!((work.repetitions, work.replications), (10, 2));
    assert_eq!((work.warmup, work.seed), (0, 1));
    assert_eq!(work.timeout_ns, Nanos(60_000_000_000));
    assert_eq!(
        (work.pairing, work.method, work.validation),
        (Pairing::Auto, Method::Sendrecv, Validation::Const)
    );
    assert_eq!(work.model, None);
    let ranks = run.plan.ranks.unwrap();
    assert_eq!((ranks.count, ranks.spawn), (1, Spawn::Threads));
    assert_eq!(run.plan.groups[0].jobs[0].engine.name, "shm");
    assert_eq!(run.options.format, BeffFormat::Text);
    assert!(run.is_run && run.devices.is_empty());
    assert!(run.warnings.is_empty());
    assert_eq!(run.notes.len(), 1, "{:?}", run.notes);
}

#[test]
fn a_value_stands_after_its_flag_or_in_the_same_word() {
    for text in [
        "-n 3 -u 9 -l 2 -m 4",
        "-n3 -u9 -l2 -m4",
        "-n 3 --upper 9 --lower=2 -m4",
    ] {
        let run = run(text);
        let work = work(&run.plan);
        assert_eq!(work.repetitions, 3, "{text}");
        assert!(work.sizes.iter().all(|s| s.loop_length == 9), "{text}");
        assert_eq!(work.sizes.len(), 5, "{text}");
    }
    assert_eq!(work(&run("-n 3 -n 4").plan).repetitions, 4);
}

#[test]
fn numbers_out_of_range_are_named_with_their_range() {
    refused("-d 0", "-d must be >= 1");
    refused("--step-size 0", "--step-size must be >= 1");
    refused("-n 0", "-n must be >= 1 (a whole number from 1 to 1000000)");
    refused("-r 0", "-r must be >= 1");
    refused("-r 65", "-r 65: it takes a whole number from 1 to 64");
    refused("-u 0", "--upper must be >= 1");
    refused("-m -1", "-m must be >= 0");
    refused("-m abc", "-m abc: it takes a whole number from 0 to 34");
    refused("-m 2.5", "whole number");
    refused("-m 35", "from 0 to 34");
    refused("-m 99999999999999999999", "from 0 to 34");
    refused("--device -2", "--device must be >= -1");
    refused("--port 70000", "from 0 to 65535");
    refused(
        "-m 34",
        "the buffers need 68719476736 bytes, available are 8589934592",
    );
    for bad in ["-d 0", "-m abc", "stray", "--uper 3"] {
        refused(bad, "Input parameters could not be parsed!");
    }
}

#[test]
fn words_that_are_no_options_are_told_with_the_nearest_one() {
    refused("--uper 3", "did you mean `--upper`?");
    refused("--dump_json x", "did you mean `--dump-json`?");
    refused("stray", "stray word `stray`");
    refused("-n 3 stray", "stray word `stray`");
    refused("-x 3", "no option `-x`");
    refused("--foo", "`weir beff --help` lists the options");
    refused("--n 3", "no option `--n`");
    refused("-n", "-n needs N after it");
    refused("--file --test", "--file needs FILE after it");
    refused("--test=yes", "--test takes no value");
    refused("-ix", "-i takes no value");
    refused("--format tabel", "did you mean `table`?");
    refused("--ask", "--ask is not available");
    refused(
        "--accl-udp",
        "comm-type ACCL is not available in this build",
    );
}

#[test]
fn values_with_a_grammar_say_what_it_is() {
    refused("--min-time x", "--min-time x: it takes seconds");
    refused("--sizes 1,99", "--sizes 1,99: it takes exponents");
    refused("--pin x", "--pin x: it takes auto");
    refused("--model 521n", "--model 521n: it takes 520n");
    refused("--line-rate fast", "--line-rate fast: it takes bits");
    refused("--comm-type udp --rate fast", "--rate fast: it takes bits");
    refused("--inject flip:rank=1,size=3", "the ranks are 0 to 0");
    refused("--inject flip:rank=0,size=30", "no messages of this size");
    refused(
        "--inject flip:rank=0,size=3,byte=16",
        "a rank receives bytes 0 to 15",
    );
    let flip = "--inject flip:rank=0,size=3,byte=2";
    for unchecked in ["--skip-validation", "--validate none"] {
        refused(&format!("{flip} {unchecked}"), "leave --skip-validation");
    }
    refused(
        &format!("{flip} --comm-type null --skip-validation"),
        "take another --comm-type",
    );
    refused(&format!("{flip} --validate sample"), "bytes 0 and 7");
    refused(
        &format!("{flip} --comm-type ocl-pcie --kernel-latency"),
        "add --pcie-read",
    );
    for ends in ["byte=7", "byte=8", "byte=0"] {
        run(&format!(
            "--inject flip:rank=0,size=3,{ends} --validate sample"
        ));
    }
    run("--inject die:rank=0,size=3 --skip-validation");
    refused(
        "--inject flip:rank=0,size=3,rank=0",
        "`rank=` stands there twice",
    );
    for given in [
        "--skip-validation --validate full",
        "--validate const --skip-validation",
    ] {
        refused(given, "--skip-validation and --validate");
    }
    run("--skip-validation --validate none");
    let words = "-u 64 -l 64 -m 3 --inject die:rank=0,size=3";
    refused(&format!("{words},after=65"), "the loop has 64 exchanges");
    run(&format!("{words},after=64"));
    run(&format!("{words},after=65 --min-time 1"));
    refused(
        "--timeout 1e300",
        "--timeout 1e300: it takes seconds above 0 and up to 1.8e10",
    );
    refused("--simulate 8", "--simulate acts only with `--model`");
    refused("--model fit --test", "--test does not run");
    refused("--fake-devices 2", "--fake-devices acts only with `--test`");
    refused("--ranks 3 --pairing pairs", "3 ranks have no pairs");
}

#[test]
fn the_self_test_takes_no_options_beside_it() {
    let test = |text| {
        let (_, request) = words(text, &TestMachine(None)).unwrap();
        assert!(matches!(request.action, Action::Tool(Tool::TestTransports)));
        request.notes
    };
    assert!(test("--selftest").is_empty());
    assert!(test("--selftest -f a.aocx")[0].contains("a.aocx is left alone"));
    for words in [
        "--selftest --ranks 3",
        "-n 2 --selftest",
        "--selftest --quiet",
        "--selftest --store-result r.json",
    ] {
        refused(words, "with --selftest, which chooses its own");
    }
}

#[test]
fn transports_that_are_not_there_end_with_3_unless_nothing_is_run() {
    let refusal = words("--comm-type ofi", &TestMachine(None)).unwrap_err();
    assert_eq!(refusal.code, LACKS);
    assert!(refusal.message.contains("comm-type ofi is not available"));
    assert!(!run("--comm-type ofi --test").is_run);
    assert!(run("--comm-type ofi --show-plan").is_run);
    refused(
        "--comm-type ACCL",
        "it has mpi, shm, tcp, udp, file, ocl-pcie",
    );
    refused(
        "--comm-type CPUS",
        "could not be converted from string: CPUS",
    );
}

#[test]
fn crossed_bounds_are_told_and_set_right() {
    let loops = run("-l 100 -u 10 -m 3");
    assert!(work(&loops.plan).sizes.iter().all(|s| s.loop_length == 10));
    assert_eq!(
        loops.warnings[0].cause,
        "Loop Length: Minimum is bigger than maximum. Setting minimum to value of maximum."
    );
    let sizes = run("--min-size 9 -m 4");
    let exponents: Vec<u8> = work(&sizes.plan).sizes.iter().map(|s| s.exponent).collect();
    assert_eq!(exponents, [4]);
    assert!(
        sizes.warnings[0]
            .cause
            .starts_with("Message Sizes: Minimum is bigger")
    );
}

#[test]
fn sizes_are_a_range_with_steps_or_a_list() {
    let exponents = |text: &str| -> Vec<u8> {
        work(&run(text).plan)
            .sizes
            .iter()
            .map(|s| s.exponent)
            .collect()
    };
    assert_eq!(exponents("--min-size 2 -m 9 --step-size 3"), [2, 5, 8]);
    assert_eq!(exponents("--sizes 3,1,8 -m 2"), [3, 1, 8]);
    let notes = run("--sizes 3 -m 2").notes;
    assert!(
        notes.iter().any(|n| n.starts_with("-m has no effect")),
        "{notes:?}"
    );
}

#[test]
fn a_launcher_says_how_many_ranks_there_are() {
    let run = run_in("", &TestMachine(Some(4)));
    let ranks = run.plan.ranks.unwrap();
    assert_eq!((ranks.count, ranks.spawn), (4, Spawn::Launcher));
    assert_eq!(run.plan.groups[0].jobs[0].engine.name, "mpi");
    assert_eq!(run_in("--ranks 4", &TestMachine(Some(4))).plan, {
        let mut same = run.plan;
        same.command.extend(["--ranks", "4"].map(str::to_owned));
        same
    });
    let wrong = words("--ranks 2", &TestMachine(Some(4))).unwrap_err();
    assert!(wrong.message.contains("the launcher started 4"), "{wrong}");
    let wrong = words("--comm-type mpi --ranks 2", &TestMachine(None)).unwrap_err();
    assert!(wrong.message.contains("mpirun -n 2 weir beff"), "{wrong}");
}

#[test]
fn settings_of_a_transport_are_in_house_words_and_others_are_noted() {
    let file = run("--comm-type IEC --channel-width 64 --channel-dir D --keep-channels");
    let settings = &file.plan.groups[0].jobs[0].engine.settings;
    assert_eq!(settings["channel_width_bytes"], Setting::Number(64));
    assert_eq!(settings["channel_directory"], Setting::Text("D".to_owned()));
    assert_eq!(settings["keep_channels"], Setting::Bool(true));
    assert!(file.notes.is_empty(), "{:?}", file.notes);
    let udp = run("--comm-type UDP --payload-size 2 --rate 8G");
    let settings = &udp.plan.groups[0].jobs[0].engine.settings;
    assert_eq!(settings["payload_exponent"], Setting::Number(2));
    assert_eq!(settings["rate_bytes_per_s"], Setting::Number(1_000_000_000));
    let idle = run("--comm-type tcp --payload-size 2 --device 1").notes;
    assert_eq!(idle.len(), 2, "{idle:?}");
    assert!(
        idle[0].contains("--payload-size has no effect: comm-type tcp"),
        "{idle:?}"
    );
}

#[test]
fn an_option_of_another_transport_is_refused_with_those_it_is_for() {
    for (words, option, of) in [
        (
            "--channel-width 8",
            "--channel-width: comm-type shm",
            "file",
        ),
        ("--channel-dir D", "--channel-dir: comm-type shm", "file"),
        (
            "--comm-type udp --keep-channels",
            "--keep-channels: comm-type udp",
            "file",
        ),
        (
            "--comm-type file --iface ::1",
            "--iface: comm-type file",
            "tcp, udp",
        ),
        ("--port 7000", "--port: comm-type shm", "tcp, udp"),
        ("--rate 1G --test", "--rate: comm-type shm", "tcp, udp"),
    ] {
        refused(words, &format!("{option} does not use it"));
        refused(words, &format!("comm-types that do: {of}"));
    }
    refused(
        "--provider tcp",
        "--provider is not available: comm-type ofi",
    );
    for transport in ["tcp", "udp"] {
        let given = run(&format!(
            "--comm-type {transport} --rate 8G --port 9 --iface ::1"
        ));
        let settings = &given.plan.groups[0].jobs[0].engine.settings;
        assert_eq!(settings["rate_bytes_per_s"], Setting::Number(1_000_000_000));
        assert_eq!(settings["port"], Setting::Number(9));
        assert_eq!(settings["interface"], Setting::Text("::1".to_owned()));
    }
}

#[test]
fn an_option_without_anything_to_act_on_is_refused() {
    let full = "--seed acts only with `--validate full`; leave it out";
    refused("--seed 3", full);
    refused("--seed 3 --validate sample", full);
    refused(
        "--comm-type file --keep-channels",
        "--keep-channels acts only with `--channel-dir`",
    );
    refused(
        "--json-compat hpcc-1.3",
        "--json-compat acts only with `--dump-json`",
    );
    refused(
        "--text-compat 1.2 --format csv",
        "--text-compat acts only with `--format text`",
    );
    refused(
        "--baseline o.json --test",
        "--baseline acts only where something is measured",
    );
    let wrong = words("--comm-type mpi --spawn procs", &TestMachine(None)).unwrap_err();
    assert!(
        wrong
            .message
            .contains("--spawn: the ranks of comm-type mpi")
    );
    assert_eq!(work(&run("--seed 3 --validate full").plan).seed, 3);
    let beside = run("--baseline o.json");
    assert!(beside.options.baseline.is_some());
    assert!(matches!(&beside.files[..], [file] if file.role == "the --baseline"));
    refused("--baseline p.json", "--baseline p.json: no such file");
}

#[test]
fn no_value_is_empty() {
    for flag in FLAGS.iter().filter(|f| f.value.is_some()) {
        if flag.name == "platform_str" || flag.standing != Standing::Works {
            continue;
        }
        let list = [flag.spelling(), String::new()];
        let refusal = requested(&list, &TestMachine(None)).unwrap_err();
        let want = format!("{} needs {}", flag.spelling(), flag.value.unwrap());
        assert!(refusal.message.contains(&want), "{refusal}");
        assert_eq!(refusal.code, USAGE);
    }
    let list = ["--platform_str", ""].map(str::to_owned);
    assert!(requested(&list, &TestMachine(None)).is_ok());
}

#[test]
fn times_and_rates_are_above_nothing_and_below_infinity() {
    for flag in ["--timeout", "--min-time", "--max-time"] {
        for value in ["0", "-1", "inf", "nan", "1e-12", "1e300", "1ss", "s", "-0"] {
            refused(
                &format!("{flag} {value}"),
                &format!("{flag} {value}: it takes seconds above 0"),
            );
        }
    }
    for flag in ["--comm-type tcp --rate", "--line-rate"] {
        for value in ["0", "-1G", "inf", "nan", "7", "1e308T", "G"] {
            refused(&format!("{flag} {value}"), "it takes bits per second");
        }
    }
    for value in ["-1", "1.5", "x", "9223372036854775808"] {
        let words = format!("--validate full --seed={value}");
        refused(&words, &format!("--seed {value}: "));
    }
}

#[test]
fn devices_go_by_rank_unless_one_is_named() {
    let fake = "--ranks 3 --comm-type ocl-pcie --test --fake-devices 2";
    assert_eq!(run(fake).devices, [0, 1, 0]);
    assert_eq!(run(&format!("{fake} --device 1")).devices, [1, 1, 1]);
    refused(
        &format!("{fake} --device 5"),
        "Invalid device index specified: 5/1",
    );
    refused(
        &format!("{fake} --platform_str X"),
        "Invalid platform string specified: X",
    );
}

#[test]
fn a_devices_words_become_settings() {
    let words = "--comm-type pcie --platform_str P --platform 1 --device 2 --device-type cpu \
                 -f k.cl";
    let run = run(words);
    let settings = &run.plan.groups[0].jobs[0].engine.settings;
    let text = |text: &str| Setting::Text(text.to_owned());
    assert_eq!(settings["platform_name"], text("P"));
    assert_eq!(settings["platform"], Setting::Number(1));
    assert_eq!(settings["device"], Setting::Number(2));
    assert_eq!(settings["device_type"], text("cpu"));
    assert_eq!(settings["kernel_file"], text("k.cl"));
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    let map = self::run("--comm-type pcie --device-map global");
    let settings = &map.plan.groups[0].jobs[0].engine.settings;
    assert_eq!(settings["device_map"], text("global"));
    refused(
        "--comm-type pcie --device 2 --device-map global",
        "--device-map acts only with `--device -1`",
    );
    let plain = self::run("--comm-type ocl-pcie --device -1 --platform_str=");
    assert!(plain.plan.groups[0].jobs[0].engine.settings.is_empty());
    let auto = self::run("-f b_eff_PCIE.cl");
    assert_eq!(auto.plan.groups[0].jobs[0].engine.name, "ocl-pcie");
}

#[test]
fn transfers_take_the_place_of_exchanges_in_a_fixed_order() {
    use weir_schema::Transfer::{DeviceToHost, HostToDevice, KernelLaunch};
    let asked = |flags: &str| {
        let run = run(&format!("--comm-type ocl-pcie {flags}"));
        work(&run.plan).transfers.clone()
    };
    assert_eq!(asked(""), []);
    assert_eq!(asked("--pcie-read"), [HostToDevice]);
    assert_eq!(asked("--pcie-write"), [DeviceToHost]);
    assert_eq!(asked("--pcie-reverse"), [HostToDevice, DeviceToHost]);
    assert_eq!(
        asked("--pcie-write --kernel-latency --pcie-read --pcie-reverse"),
        [HostToDevice, KernelLaunch, DeviceToHost]
    );
    let batch = run("--comm-type ocl-pcie --kernel-latency --pcie-batch");
    let settings = &batch.plan.groups[0].jobs[0].engine.settings;
    assert_eq!(settings["batch"], Setting::Bool(true));
}

#[test]
fn transfers_are_refused_by_name_with_what_they_have_nothing_for() {
    refused(
        "--pcie-read",
        "--pcie-read: comm-type shm has no device; add --comm-type ocl-pcie",
    );
    refused(
        "--comm-type tcp --kernel-latency",
        "--kernel-latency: comm-type tcp",
    );
    refused(
        "--comm-type ocl-pcie --pcie-batch",
        "--pcie-batch acts only with `--pcie-read`",
    );
    for (args, want) in [
        ("--model 520n", "--model with --pcie-write"),
        ("--line-rate 100G", "--line-rate with --pcie-write"),
        ("--pairing ring", "--pairing with --pcie-write"),
        ("--format csv", "--format csv with --pcie-write"),
        ("--pcie-batch --min-time 1", "--min-time with --pcie-batch"),
        ("--pcie-batch --upper 1000001", "at most 1000000 steps"),
    ] {
        refused(&format!("--comm-type ocl-pcie --pcie-write {args}"), want);
    }
}

#[test]
fn help_is_printed_whatever_stands_beside_it() {
    let page = |text: &str| {
        read(&DoorCall {
            door: &DOOR,
            link: None,
            args: text.split(' ').map(str::to_owned).collect(),
        })
    };
    let Ok(Arguments::Print(page)) = page("-u 3 -h") else {
        panic!("help is printed")
    };
    for flag in FLAGS {
        let listed = page.contains(&flag.spelling());
        let works = !matches!(flag.standing, Standing::Refused(_));
        assert_eq!(listed, works, "{}", flag.name);
    }
}

#[test]
fn forms_that_the_report_of_weir_does_not_have_are_the_peers_in_either_voice() {
    let voice = |text: &str| crate::house::voice(&words(text, &TestMachine(None)).unwrap().0);
    for own in ["", "-u 9", "--dump-json o.json", "--voice weir"] {
        assert_eq!(voice(own), Voice::Weir, "{own}");
    }
    for peers in [
        "--format table",
        "--dump-json -",
        "--quiet",
        "--model 520n",
        "--line-rate 1G",
        "--baseline o.json",
        "--text-compat 1.2",
        "--voice peer",
    ] {
        assert_eq!(voice(peers), Voice::Peer, "{peers}");
    }
    refused("--dump-json o.json --repeat", "one file for several runs");
}

#[test]
fn nothing_is_kept_where_nothing_is_measured() {
    for words in ["--store-result r.json", "--repeat", "--output r.html"] {
        let flag = words.split(' ').next().unwrap();
        let want = format!("{flag} has no effect with --test");
        refused(&format!("--test {words}"), &want);
    }
    let want = "--format has no effect with --list-comm";
    refused("--list-comm --format json", want);
}

proptest::proptest! {
    #[test]
    fn any_words_are_understood_or_refused_with_a_message(
        words in proptest::collection::vec(
            proptest::prop_oneof![
                "-[a-zA-Z][0-9]{0,3}",
                proptest::sample::select(FLAGS).prop_map(|f| f.spelling()),
                "-?[0-9]{1,22}",
                "[a-z0-9=,.:G-]{0,12}",
                "\\PC{0,6}",
            ],
            0..6,
        )
    ) {
        match requested(&words, &TestMachine(None)) {
            Ok(_) => {}
            Err(refusal) => {
                proptest::prop_assert!([USAGE, LACKS].contains(&refusal.code));
                proptest::prop_assert!(refusal.message.starts_with("error: "));
            }
        }
    }
}

#[test]
fn output_options_are_kept() {
    let options =
        run("--dump-json o.json --json-compat hpcc-1.3 --text-compat 1.2 --quiet").options;
    assert_eq!(options.dump_json.as_deref(), Some("o.json"));
    assert!(options.hpcc_json && options.text_1_2 && options.quiet);
    let printed = run("--dump-json -").options;
    assert_eq!(
        (printed.dump_json, printed.format),
        (None, BeffFormat::Json)
    );
    assert!(!run("--model 520n --simulate 8").is_run);
    let fitted = run("--model fit --simulate 8");
    assert_eq!((fitted.is_run, fitted.options.simulate), (true, Some(8)));
}

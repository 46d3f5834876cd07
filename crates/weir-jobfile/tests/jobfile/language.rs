//! The language through the front door: sections, order, values, messages.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use crate::setting::{block, compile_in, faults, file, job, jobs, memory, request, words};
use weir_jobfile::{Dialect, JobSource};
use weir_schema::{
    BlockSize, Distribution, ExitAll, FileNames, Kind, MemoryKind, Schedule, Setting, Size, Timing,
};
use weir_units::{Bytes, Nanos, QueueDepth};

fn sizes(lines: &str) -> [(u64, u64); 3] {
    let job = job(lines);
    let s = &block(&job).sizes.size;
    [&s.read, &s.write, &s.trim].map(|b| (b.min().0, b.max().0))
}

fn peers(lines: &str) -> Vec<String> {
    faults(lines).into_iter().flat_map(|d| d.peer).collect()
}

#[test]
fn block_sizes_follow_the_list_grammar() {
    let k = |n: u64| (n << 10, n << 10);
    assert_eq!(sizes("rw=randrw\nbs=4k,8k"), [k(4), k(8), k(8)]);
    assert_eq!(sizes("bs=,8k"), [k(4), k(8), k(8)]);
    assert_eq!(sizes("bs=4k-16k"), [k(4), k(16), k(16)]);
    assert_eq!(
        sizes("bsrange=4k-16k,1k-2k"),
        [(4096, 16384), (1024, 2048), (1024, 2048)]
    );
    assert_eq!(sizes("bs = 2*$pagesize"), [k(8), k(8), k(8)]);
    assert_eq!(sizes("bs=(4*1024),8k"), [k(4), k(8), k(8)]);
    assert_eq!(sizes("bs=1k\nkb_base=1000")[0], (1000, 1000));
    assert!(matches!(
        &block(&job("bssplit=4k/60:64k/")).sizes.size.write,
        BlockSize::Split { entries } if entries[1].percent == 40
    ));
}

#[test]
fn sizes_swap_their_suffixes_and_refuse_leftovers() {
    let size = |text: &str| block(&job(&format!("size={text}"))).region.size;
    assert_eq!(size("0x100000"), Some(Size::Bytes(Bytes(1 << 20))));
    assert_eq!(size("40kib"), Some(Size::Bytes(Bytes(40_000))));
    assert_eq!(size("40ki"), Some(Size::Bytes(Bytes(40 << 10))));
    assert_eq!(size("10%"), Some(Size::Percent(10.0)));
    assert!(faults("size=x")[0].message.contains("bad number \"x\""));
    assert_eq!(faults("size=0")[0].code, "job.range");
    assert_eq!(faults("size=101%")[0].code, "job.range");
}

#[test]
fn a_number_with_more_behind_it_counts_at_fios_door_alone_and_is_noted() {
    let text = "[a]\nioengine=null\nsize=65536)\nbsrange=512/25:1k:25:2k:25:4k/25\n";
    let compiled = file(text).unwrap();
    let job = &jobs(&compiled)[0];
    assert_eq!(block(job).region.size, Some(Size::Bytes(Bytes(65536))));
    let read = (Bytes(512), Bytes(1024));
    assert!(matches!(
        &block(job).sizes.size.read,
        BlockSize::Range { min_bytes, max_bytes, .. } if (*min_bytes, *max_bytes) == read
    ));
    assert_eq!(
        compiled.notes,
        [
            "`size=65536)` is read as 65536",
            "`bsrange=512/25:1k:25:2k:25:4k/25` is read as 512-1k"
        ]
    );
    // As given, for the echo.
    assert_eq!(job.words[1].value.as_deref(), Some("65536)"));
    let mut request = request(vec![JobSource::File("f".into())]);
    request.dialect = Dialect::Run;
    let errors = compile_in(&request, &memory(&[("f", text)])).unwrap_err();
    assert!(errors[0].message.contains("bad number \"65536)\""));
    for other in ["rwmixread=50%", "runtime=10x", "size=x", "bs=", "rate="] {
        assert!(!faults(other).is_empty(), "{other}");
    }
}

#[test]
fn half_a_second_is_half_a_second() {
    assert_eq!(
        job("runtime=0.5").load().bounds.runtime_ns,
        Some(Nanos(500_000_000))
    );
    assert_eq!(
        job("runtime=(2*1000000)").load().bounds.runtime_ns,
        Some(Nanos(2_000_000_000))
    );
    let think = job("thinktime=100\nthinktime_blocks=3")
        .load()
        .pacing
        .thinktime
        .unwrap();
    assert_eq!((think.pause_ns, think.every), (Nanos(100_000), 3));
    assert_eq!(
        job("max_latency=10ms").load().pacing.max_latency_ns,
        Some(Nanos(10_000_000))
    );
    let delay = job("startdelay=1-500ms").start.delay.unwrap();
    assert_eq!(
        (delay.min_ns, delay.max_ns),
        (Nanos(500_000_000), Nanos(1_000_000_000))
    );
}

#[test]
fn switches_take_words_and_the_tails_of_rw_are_read() {
    assert!(block(&job("direct = yes")).targets.open.direct);
    assert!(block(&job("buffered=0")).targets.open.direct);
    let access = |lines: &str| block(&job(lines)).access.clone();
    assert_eq!(access("rw=randread:8").steps, 8);
    assert_eq!(access("rw=write:4k").skip_bytes, 4096);
    assert_eq!(access("rw=read:-8k").skip_bytes, -8192);
    let mix = block(&job("rw=randrw\nrwmixwrite=30")).mix;
    assert_eq!((mix.read_percent, mix.write_percent), (70, 30));
    let mix = block(&job("rw=randtrimwrite")).mix;
    assert_eq!((mix.trim_percent, mix.trim_then_write), (100, true));
}

#[test]
fn skewed_offsets_turn_the_map_off() {
    let access = |lines: &str| block(&job(lines)).access.clone();
    assert!(access("rw=randread").map);
    assert!(!access("rw=randread\nnorandommap").map);
    let zipf = access("rw=randread\nrandom_distribution=zipf:1.2:0.5");
    assert_eq!(
        zipf.distribution,
        Distribution::Zipf {
            theta: 1.2,
            center: Some(0.5)
        }
    );
    assert!(!zipf.map);
    assert!(!access("rw=randread\nba=8k").map);
}

#[test]
fn seeds_repeat_unless_told_otherwise() {
    let seed = |lines: &str| block(&job(lines)).access.seed;
    assert_eq!(seed(""), 0x89);
    assert_eq!(seed("randseed=7\nrandrepeat=0"), 7);
    assert_eq!(seed("randrepeat=0"), 0);
    assert_eq!(seed("randrepeat=0\nallrandrepeat=1"), 0x89);
    assert_ne!(seed("randseed=0"), 0);
}

#[test]
fn rates_become_a_schedule() {
    let pacing = |lines: &str| job(lines).load().pacing.schedule.clone().unwrap();
    let Schedule::BytesPerSecond {
        limit_bytes_per_s: limit,
        open_loop,
        ..
    } = pacing("rate=4m,")
    else {
        panic!("bytes")
    };
    assert_eq!(
        limit.get(&Kind::Read.into()).map(|r| r.0),
        Some(4_194_304.0)
    );
    assert!(limit.len() == 1 && !open_loop);
    assert!(matches!(
        pacing("rate_iops=500\nrate_process=poisson"),
        Schedule::OpsPerSecond {
            poisson: true,
            open_loop: true,
            ..
        }
    ));
    assert!(matches!(
        pacing("rate_iops=500\nopen_loop=1"),
        Schedule::OpsPerSecond {
            poisson: false,
            open_loop: true,
            ..
        }
    ));
    let minimum = job("ratemin=1m\nratecycle=500")
        .load()
        .minimum_rate
        .clone()
        .unwrap();
    assert_eq!(minimum.cycle_ns, Nanos(500_000_000));
}

#[test]
fn rates_that_contradict_are_refused() {
    assert_eq!(
        peers("rate=1m\nrate_iops=5"),
        ["fio: rate and rate_iops are mutually exclusive"]
    );
    assert_eq!(
        peers("rate=1m\nrate_min=2m"),
        ["fio: minimum rate exceeds rate, ddir 0"]
    );
    assert_eq!(
        peers("time_based"),
        ["fio: time_based requires a runtime/timeout setting"]
    );
    assert_eq!(
        peers("size=4k\nbs=64k"),
        ["fio: size too small, must not be less than minimum block size: 4096 < 65536"]
    );
}

#[test]
fn files_engines_and_memory_reach_the_plan() {
    let text = "[a]\nfilename=x:y\\:z\ndirectory=/d\nioengine=io_uring\niodepth=16\nfixedbufs\n\
                hipri=0\nsqthread_poll_cpu=3\nmem=mmap:/huge/f\nsize=1g\n[b]\nsize=1m\nnrfiles=2\niodepth=4\n";
    let compiled = file(text).unwrap();
    let [a, b] = jobs(&compiled)[..] else {
        panic!()
    };
    assert_eq!(
        block(a).targets.files,
        FileNames::Listed {
            paths: vec!["x".into(), "y:z".into()],
            directories: vec!["/d".into()]
        }
    );
    assert_eq!(a.engine.settings["registered_buffers"], Setting::Bool(true));
    assert_eq!(a.engine.settings["polled"], Setting::Bool(false));
    assert_eq!(a.engine.settings["kernel_poll_cpu"], Setting::Number(3));
    assert_eq!(a.blocks().unwrap().memory.kind, MemoryKind::File);
    assert_eq!(a.blocks().unwrap().memory.path.as_deref(), Some("/huge/f"));
    assert_eq!(
        block(b).targets.files,
        FileNames::Generated {
            pattern: "$jobname.$jobnum.$filenum".into(),
            directories: vec![],
            count: 2
        }
    );
    assert_eq!(b.load().depth.queue_depth, QueueDepth(1));
    assert_eq!(
        compiled.notes,
        [
            "`iodepth` has no effect in b: it acts only with an engine that has several operations \
             in flight",
            "`sqthread_poll_cpu` has no effect in a: it acts only with `sqthread_poll`",
        ]
    );
    assert_eq!(block(&job("")).targets.files, FileNames::None);
}

#[test]
fn an_engine_of_its_own_is_told_by_house_words() {
    assert_eq!(job("toy=5").engine.settings["toy"], Setting::Number(5));
    assert_eq!(faults("toy=10")[0].code, "job.range");
    assert_eq!(faults("fixedbufs")[0].peer[0], "Bad option <fixedbufs>");
}

#[test]
fn the_engine_may_stand_below_its_options() {
    let compiled =
        file("[a]\nsize=1m\nfixedbufs\nbs=1k\nioengine=io_uring\nkb_base=1000\n").unwrap();
    let a = jobs(&compiled)[0];
    assert_eq!(a.engine.settings.len(), 1);
    assert_eq!(block(a).sizes.size.read.max(), Bytes(1000));
    assert_eq!(a.words[1].key, "fixedbufs");
}

#[test]
fn a_global_changes_only_what_follows() {
    let text = "[global]\nioengine=null\nsize=1m\n[a]\nbs=8k\n[global]\nbs=16k\n[b]\n[c]\n\
                name=renamed\nbs=4k\n[global-late]\nbs=32k\n[d]\n";
    let compiled = file(text).unwrap();
    let seen: Vec<_> = jobs(&compiled)
        .iter()
        .map(|j| (j.name.as_str(), block(j).sizes.size.read.max().0 >> 10))
        .collect();
    assert_eq!(seen, [("a", 8), ("b", 16), ("renamed", 4), ("d", 32)]);
    assert_eq!(
        compiled.show_command,
        "fio --ioengine=null --size=1m --name=a --bs=8k --name=global --bs=16k --name=b \
         --name=renamed --bs=4k --name=global --bs=32k --name=d "
    );
}

#[test]
fn groups_open_at_stonewall_and_new_group() {
    let names = |text: &str| -> Vec<Vec<String>> {
        let compiled = file(text).unwrap();
        let of = |g: &weir_schema::Group| g.jobs.iter().map(|j| j.name.clone()).collect();
        compiled.plan.groups.iter().map(of).collect()
    };
    let head = "[global]\nioengine=null\nsize=1m\n";
    let verify =
        format!("{head}[w0]\n[v0]\nnew_group\nwait_for=w0\n[w1]\n[v1]\nnew_group\nwait_for=w1\n");
    assert_eq!(names(&verify), [vec!["w0"], vec!["v0", "w1"], vec!["v1"]]);
    let first = format!("{head}[a]\nstonewall\n[b]\nwait_for_previous\n");
    assert_eq!(names(&first), [vec!["a"], vec!["b"]]);
}

#[test]
fn waiting_for_the_wrong_job_is_refused() {
    let peers = |text: &str| -> Vec<String> {
        let text = format!("[global]\nioengine=null\nsize=1m\n{text}");
        file(&text)
            .unwrap_err()
            .into_iter()
            .flat_map(|d| d.peer)
            .collect()
    };
    assert_eq!(
        peers("[a]\nwait_for=a\n"),
        ["a: a job cannot wait for itself (wait_for=a)."]
    );
    assert_eq!(
        peers("[a]\nwait_for=b\n[b]\n"),
        ["a: waitee job b unknown."]
    );
    assert_eq!(
        peers("[a]\n[a]\n[b]\nwait_for=a\n"),
        [
            "b: multiple waitees a found,",
            "please avoid duplicates when using wait_for option."
        ]
    );
}

#[test]
fn jobs_of_a_merged_group_agree_on_percentiles() {
    let text = "[global]\nioengine=null\nsize=1m\ngroup_reporting\n[a]\n[b]\nlat_percentiles=1\n";
    assert_eq!(
        file(text).unwrap_err()[0].peer,
        ["fio: lat_percentiles in job: b differs from group"]
    );
}

#[test]
fn every_error_of_every_section_is_reported_at_once() {
    let text = "[a]\nrwmixread=150\nbsz=1\ndirect=2\nrw=foo\niodepth=0\nsize\n[b]\nbsz=1\n";
    let errors = file(text).unwrap_err();
    assert_eq!(
        errors.iter().map(|d| d.line).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6, 7, 9]
    );
    let peer: Vec<_> = errors
        .iter()
        .flat_map(|d| d.peer.iter().map(String::as_str))
        .collect();
    for sentence in [
        "rwmixread: max value out of range: 150 (100 max)",
        "fio: failed parsing rwmixread=150",
        "Bad option <bsz=1>",
        "Did you mean bs?",
        "max value out of range: 2 (1 max)",
        "iodepth: min value out of range: 0 (1 min)",
        "        valid values: read       Sequential read",
        "Option size requires an argument",
        "fio: failed parsing size",
        "fio: job a dropped",
        "fio: job b dropped",
    ] {
        assert!(peer.contains(&sentence), "{sentence} is not in {peer:#?}");
    }
    assert_eq!(peer.iter().filter(|p| p.ends_with("dropped")).count(), 2);
    assert_eq!(
        errors[0].render(),
        "error[job.range]: `rwmixread=150` is outside 0–100\n  --> job.fio:2:11\n   |\n 2 | \
         rwmixread=150\n   |           ^^^ Percentage of reads in a mix\n"
    );
}

#[test]
fn errors_come_in_the_order_of_lines() {
    let errors = file("[a]\nbad=1\n[broken\n[b]\nbs=x1\n").unwrap_err();
    assert_eq!(errors.iter().map(|d| d.line).collect::<Vec<_>>(), [2, 3, 5]);
}

#[test]
fn the_wrong_part_of_a_list_is_underlined() {
    let error = &faults("bs=4k,x8")[0];
    assert_eq!((error.column, error.length), (7, 2));
    let error = &faults("rw = raed:8")[0];
    assert_eq!((error.column, error.length), (6, 4));
    assert!(
        error
            .help
            .as_ref()
            .unwrap()
            .contains("did you mean `read`?")
    );
}

#[test]
fn an_unset_variable_is_named() {
    let errors = file("[a]\nsize=${NO}\n").unwrap_err();
    assert!(
        errors[0]
            .message
            .ends_with("(environment variable NO is not set)"),
        "{errors:?}"
    );
    assert!(
        errors[0]
            .peer
            .contains(&"fio: failed parsing size=${NO}".to_owned())
    );
    let compiled = file("[a]\nsize=4k\nfilename=${NO}/x\n").unwrap();
    assert!(compiled.notes[0].contains("NO is not set"));
}

#[test]
fn words_are_echoed_with_canonical_names_and_replaced_values() {
    let job = job("iomem=mmap\nbs=2*$pagesize\ngroup_reporting\nstonewall=1");
    let words: Vec<_> = job
        .words
        .iter()
        .map(|w| (w.key.as_str(), w.value.as_deref()))
        .collect();
    assert_eq!(
        words[2..],
        [
            ("mem", Some("mmap")),
            ("bs", Some("8192")),
            ("group_reporting", None),
            ("stonewall", Some("1"))
        ]
    );
}

#[test]
fn words_before_a_file_lie_under_it_and_sets_lie_over_it() {
    let files = memory(&[(
        "f",
        "[global]\nioengine=null\nsize=1g\n[a]\nbs=1m\n[b]\nbsrange=4k-8k\n",
    )]);
    let mut r = request(vec![
        words(&["--bs=128k", "--iodepth=2"]),
        JobSource::File("f".into()),
    ]);
    let read = |r: &_| {
        let compiled = compile_in(r, &files).unwrap();
        let max = |j: &&weir_schema::Job| block(j).sizes.size.read.max().0 >> 10;
        (
            jobs(&compiled).iter().map(max).collect::<Vec<_>>(),
            compiled,
        )
    };
    assert_eq!(read(&r).0, [1024, 8]);
    r.sets = vec!["bs=128k".into(), "b:iodepth=7".into()];
    let (sizes, compiled) = read(&r);
    assert_eq!(sizes, [128, 128]);
    assert_eq!(
        jobs(&compiled)
            .iter()
            .map(|j| j.load().depth.queue_depth.0)
            .collect::<Vec<_>>(),
        [2, 7]
    );
    assert_eq!(jobs(&compiled)[0].words.len(), 1);
    r.sets = vec!["bs=x8".into(), "c:bs=8k".into(), "=1".into()];
    let errors = compile_in(&r, &files).unwrap_err();
    let messages: Vec<_> = errors.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages.len(), 3, "{messages:#?}");
    let error = errors.iter().find(|d| d.message.contains("x8")).unwrap();
    assert_eq!((error.line, error.column), (0, "--set bs=".len() + 1));
    assert!(
        error.render().contains("--> command line\n"),
        "{}",
        error.render()
    );
}

#[test]
fn names_on_the_command_line_open_jobs() {
    let line = [
        "--ioengine=null",
        "--size=1m",
        "--name=a",
        "--bs=8k",
        "--name=global",
        "--bs=2k",
        "--name=b",
    ];
    let compiled = compile_in(&request(vec![words(&line)]), &memory(&[])).unwrap();
    let seen: Vec<_> = jobs(&compiled)
        .iter()
        .map(|j| (j.name.as_str(), block(j).sizes.size.read.max().0))
        .collect();
    assert_eq!(seen, [("a", 8192), ("b", 2048)]);
    let errors = compile_in(
        &request(vec![words(&["--name=a", "--blksz=1"])]),
        &memory(&[]),
    )
    .unwrap_err();
    assert_eq!(errors[0].peer[0], "fio: unrecognized option '--blksz=1'");
    assert!(
        errors[0].render().contains("command line, argument 2"),
        "{}",
        errors[0].render()
    );
    let errors = compile_in(&request(vec![words(&["--bs=4k"])]), &memory(&[])).unwrap_err();
    assert_eq!(errors[0].peer, ["No job(s) defined"]);
}

#[test]
fn a_further_file_starts_anew_behind_a_barrier() {
    let files = memory(&[
        ("f", "[global]\nioengine=null\nsize=1m\nbs=1k\n[a]\n"),
        (
            "g",
            "[b]\nioengine=null\nsize=2m\n[c]\nioengine=null\nsize=2m\n",
        ),
    ]);
    let sources = vec![JobSource::File("f".into()), JobSource::File("g".into())];
    let compiled = compile_in(&request(sources), &files).unwrap();
    assert_eq!(compiled.plan.groups.len(), 2);
    let all = jobs(&compiled);
    assert_eq!(
        all.iter().map(|j| j.start.barrier).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(block(all[1]).sizes.size.read.max(), Bytes(4096));
    let stdin = vec![JobSource::File("-".into()), JobSource::File("-".into())];
    let files = memory(&[("-", "[a]\nioengine=null\nsize=1m\n")]);
    assert_eq!(compile_in(&request(stdin), &files).unwrap_err().len(), 1);
}

#[test]
fn sections_are_chosen_by_name() {
    let files = memory(&[(
        "f",
        "[global]\nioengine=null\nsize=1m\n[a]\nbad=1\n[b]\n[c]\nwait_for=a\n",
    )]);
    let mut r = request(vec![JobSource::File("f".into())]);
    r.sections = vec!["b".into()];
    assert_eq!(jobs(&compile_in(&r, &files).unwrap()).len(), 1);
    r.sections = vec!["c".into()];
    let error = &compile_in(&r, &files).unwrap_err()[0];
    assert_eq!(error.help.as_deref(), Some("add --section=a"));
    r.sections = vec!["bb".into()];
    let error = &compile_in(&r, &files).unwrap_err()[0];
    assert!(
        error.help.as_ref().unwrap().contains("did you mean `b`"),
        "{error:?}"
    );
    r.sections = vec!["global".into()];
    let errors = compile_in(&r, &files).unwrap_err();
    assert_eq!(errors[0].peer, ["fio: can't use global as only section"]);
}

#[test]
fn read_only_refuses_writers() {
    let files = memory(&[(
        "f",
        "[global]\nioengine=null\nsize=1m\n[a]\nrw=write\n[b]\nrw=read\n",
    )]);
    let mut r = request(vec![JobSource::File("f".into())]);
    r.read_only = true;
    let errors = compile_in(&r, &files).unwrap_err();
    assert_eq!(
        errors[0].peer,
        [
            "fio: job <a> has write or trim bit set, but fio is in read-only mode",
            "Correct format for offending option",
            "                  rw: IO direction",
            "               alias: readwrite",
            "                type: string (opt=bla)",
            "             default: read",
            "fio: failed parsing rw=write",
            "fio: job a dropped"
        ]
    );
}

#[test]
fn includes_are_spliced_from_beside_the_file_too() {
    let files = memory(&[
        ("d/f", "[a]\nioengine=null\ninclude x.inc\n"),
        ("d/x.inc", "size=1m\ninclude y.inc\n"),
        ("y.inc", "iodepth=3\n"),
        ("loop", "[a]\ninclude loop2\n"),
        ("loop2", "include loop2\n[b]\n"),
    ]);
    let compiled = compile_in(&request(vec![JobSource::File("d/f".into())]), &files).unwrap();
    assert_eq!(jobs(&compiled)[0].load().depth.queue_depth, QueueDepth(3));
    let errors = compile_in(&request(vec![JobSource::File("loop".into())]), &files).unwrap_err();
    let text: String = errors
        .iter()
        .map(weir_jobfile::Diagnostic::render)
        .collect();
    assert!(
        text.contains("includes itself") && text.contains("a section within"),
        "{text}"
    );
    let errors = compile_in(&request(vec![JobSource::File("none".into())]), &files).unwrap_err();
    assert_eq!(errors[0].peer, ["fio: unable to open 'none' job file"]);
}

#[test]
fn what_does_not_exist_yet_is_refused_with_what_comes_nearest() {
    for (line, nearest) in [
        ("trim_percentage=10", "verified"),
        ("zonemode=zbd", "strided"),
        ("ioengine=netsplice", "the nearest is net;"),
        ("ioengine=io_uring_cmd", "io_uring"),
        ("ioengine=io_urign", "io_uring"),
    ] {
        let errors = faults(line);
        let help = errors[0].help.as_deref().unwrap_or_default();
        assert!(help.contains(nearest), "{line}: {help}");
    }
    // Values that ask for nothing are no reason to refuse.
    job("verify=0\nzonemode=none\nio_submit_mode=inline\nserialize_overlap=0\ndo_verify=0");
}

#[test]
fn a_file_without_jobs_is_told_in_the_words_of_its_door() {
    let help = |dialect| {
        let mut r = request(vec![JobSource::File("f".into())]);
        r.dialect = dialect;
        let wrong = compile_in(&r, &memory(&[("f", "\n")])).unwrap_err();
        wrong[0].help.clone().unwrap()
    };
    assert!(help(Dialect::Run).contains("a section such as `[a]`"));
    assert!(help(Dialect::Fio).contains("--name=JOB"));
}

#[test]
fn words_without_meaning_are_noted_once() {
    let compiled = file("[global]\nioengine=null\nsize=1m\nthread\n[a]\nthread=1\n[b]\n").unwrap();
    assert_eq!(
        compiled.notes,
        ["`thread` has no effect: workers are always threads"]
    );
    assert!(file("[a]\nioengine=null\nsize=1m\nclocksource=sundial\n").is_err());
}

#[test]
fn doors_record_what_their_reports_need() {
    let fio = job("").load().recording.clone();
    assert!(fio.exact_squares && fio.percentiles.len() == 17);
    let mut r = request(vec![JobSource::File("f".into())]);
    r.dialect = Dialect::Run;
    let files = memory(&[(
        "f",
        "[a]\nioengine=null\nsize=1m\n[b]\nioengine=null\nsize=1m\npercentile_list=99:50\n",
    )]);
    let compiled = compile_in(&r, &files).unwrap();
    let lists: Vec<Vec<f64>> = jobs(&compiled)
        .iter()
        .map(|j| j.load().recording.percentiles.iter().map(|p| p.0).collect())
        .collect();
    assert_eq!(lists, [vec![50.0, 90.0, 99.0, 99.9], vec![50.0, 99.0]]);
    assert_eq!(
        job("gtod_reduce=1").load().recording.timing,
        Timing::EndsOnly
    );
    assert_eq!(
        job("disable_slat=1").load().recording.timing,
        Timing::EveryOperation
    );
    assert_eq!(
        job("exitall\nexit_what=all").end.exit_all,
        Some(ExitAll::Everything)
    );
    assert_eq!(
        job("exitall_on_error").end.exit_all,
        Some(ExitAll::GroupOnError)
    );
}

#[test]
fn a_dash_before_a_value_is_refused_and_between_two_it_separates() {
    for line in ["bs=-4k", "bs=4k,-4k", "rate=-1m"] {
        assert!(faults(line)[0].message.contains("negative"), "{line}");
    }
    job("bs=4k-8k\nioengine=null\nsize=1m");
}

//! Jobs end to end: from the plan through the worker loop to the result.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::setting::{
    Scratch, failure, figures, job, refusals, run, run_in, skip, with_depth, with_setting,
    with_size, work,
};
use weir_block::generate::payload::Payload;
use weir_block::source::payload_rule;
use weir_run::generate::Streams;
use weir_schema::sample::JobSample;
use weir_schema::{
    Announcement, FileNames, Job, Kind, Mix, Preallocate, RunResult, Setting, Size, State,
};
use weir_sys::Availability;
use weir_units::{Bytes, Nanos};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn engines() -> impl Iterator<Item = &'static str> {
    let ready = |name: &&str| match weir_block::availability(name) {
        Availability::Ready => true,
        Availability::Missing { what, .. } => {
            skip(name, &format!("this machine lacks {what}"));
            false
        }
    };
    [
        "psync", "sync", "vsync", "pvsync", "pvsync2", "io_uring", "posixaio", "splice", "libaio",
        "mmap",
    ]
    .into_iter()
    .filter(ready)
}

#[test]
fn every_engine_reads_each_block_of_a_file_once() {
    let scratch = Scratch::on_disk();
    let path = text(&scratch.file("data", 256 * KIB));
    for engine in engines() {
        for depth in [1, 8] {
            let mut job = with_depth(job(engine, Kind::Read, &path), depth);
            work(&mut job).access.random = true;
            work(&mut job).targets.open.direct = engine != "mmap";
            let read = figures(&run(job), Kind::Read);
            assert_eq!(
                (read.operations, read.bytes),
                (64, Bytes(256 * KIB)),
                "{engine}"
            );
        }
    }
}

#[test]
fn every_engine_writes_what_the_payload_says() {
    let scratch = Scratch::on_disk();
    for engine in engines() {
        let path = scratch.0.join(engine);
        let mut job = with_size(job(engine, Kind::Write, &text(&path)), 64 * KIB);
        work(&mut job).content.scramble = false;
        work(&mut job).flush.fsync_at_end = true;
        let rule = payload_rule(&work(&mut job).content, 4096, 1 << 20);
        let written = figures(&run(job), Kind::Write);
        assert_eq!(written.bytes, Bytes(64 * KIB), "{engine}");
        let mut block = vec![0; 4096];
        Payload::new(rule, Streams::new(7, 0).payload())
            .unwrap()
            .fill(&mut block);
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len() as u64, 64 * KIB);
        for found in content.chunks(4096) {
            assert!(
                found == block,
                "{engine}: another content than the payload's"
            );
        }
    }
}

#[test]
fn mixes_with_flushes_count_each_kind() {
    let scratch = Scratch::on_disk();
    let path = text(&scratch.file("data", 256 * KIB));
    for engine in engines() {
        let mut job = with_depth(job(engine, Kind::Read, &path), 4);
        let workload = work(&mut job);
        workload.mix = Mix {
            read_percent: 50,
            write_percent: 50,
            trim_percent: 0,
            trim_then_write: false,
        };
        workload.access.random = true;
        workload.flush.fsync_every = Some(4);
        let result = run(job);
        let (reads, writes) = (figures(&result, Kind::Read), figures(&result, Kind::Write));
        assert_eq!(reads.operations + writes.operations, 64, "{engine}");
        let syncs = figures(&result, Kind::Sync);
        assert!(
            // None follows the last operation.
            syncs.operations >= writes.operations.saturating_sub(1) / 4,
            "{engine}: {syncs:?}"
        );
    }
}

#[test]
fn trims_punch_holes_into_a_file_that_was_laid_out() {
    let scratch = Scratch::on_disk();
    for engine in engines() {
        let path = scratch.0.join(format!("trim-{engine}"));
        let mut job = with_size(job(engine, Kind::Trim, &text(&path)), 64 * KIB);
        work(&mut job).targets.open.drop_cache = false;
        let result = run(job);
        let trims = figures(&result, Kind::Trim);
        assert_eq!(trims.operations, 16, "{engine}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 64 * KIB);
        assert!(
            std::fs::read(&path).unwrap().iter().all(|&byte| byte == 0),
            "{engine}"
        );
    }
}

#[test]
fn a_mapping_of_an_endless_device_may_begin_behind_its_start() {
    let mut job = with_size(job("mmap", Kind::Read, "/dev/zero"), 64 * KIB);
    work(&mut job).region.offset = Some(weir_schema::Size::Bytes(Bytes(MIB)));
    assert_eq!(figures(&run(job), Kind::Read).bytes, Bytes(64 * KIB));
}

fn laying_out(files: u64, bytes: u64) -> Announcement {
    Announcement::LayingOut {
        job: "job".to_owned(),
        files,
        bytes: Bytes(bytes),
    }
}

#[test]
fn a_missing_file_is_laid_out_with_data_and_announced() {
    let scratch = Scratch::on_disk();
    let path = scratch.0.join("new");
    let job = with_size(job("psync", Kind::Read, "new"), MIB);
    let (result, said) = run_in(&scratch.0, job);
    assert_eq!(figures(&result, Kind::Read).bytes, Bytes(MIB));
    assert_eq!(said, [laying_out(1, MIB)]);
    let content = std::fs::read(&path).unwrap();
    assert!(
        content
            .chunks(64)
            .all(|part| part.iter().any(|&byte| byte != 0)),
        "zeros"
    );
    assert!(!ids(&result).contains(&"never-written"));
}

#[test]
fn with_a_ramp_reads_come_from_the_page_cache_where_a_block_may_be_read_twice() {
    let scratch = Scratch::on_disk();
    let warned = |change: fn(&mut Job)| {
        let mut job = with_size(job("psync", Kind::Read, "ramped"), MIB);
        job.load_mut().bounds.ramp_ns = Nanos(10_000_000);
        job.load_mut().bounds.runtime_ns = Some(Nanos(30_000_000));
        work(&mut job).passes.time_based = true;
        change(&mut job);
        let (result, _) = run_in(&scratch.0, job);
        ids(&result).contains(&"page-cache")
    };
    assert!(!warned(|_| ()));
    assert!(!warned(|job| work(job).access.random = true));
    assert!(warned(|job| work(job).targets.open.drop_cache = false));
    assert!(warned(|job| job.clones = 2));
    assert!(warned(|job| {
        work(job).access.random = true;
        work(job).access.map = false;
    }));
}

fn ids(result: &RunResult) -> Vec<&str> {
    result.warnings.iter().map(|w| w.id.as_str()).collect()
}

#[test]
fn reads_may_come_from_the_page_cache_unless_the_disks_delivered_them() {
    let scratch = Scratch::on_disk();
    let read = |name, drop_cache| {
        let mut job = with_size(job("psync", Kind::Read, name), MIB);
        work(&mut job).targets.open.drop_cache = drop_cache;
        run_in(&scratch.0, job).0
    };
    for (name, drop_cache) in [("kept", false), ("dropped", true)] {
        let result = read(name, drop_cache);
        // Others may read from the disk too, and not every file system rests on one with counters.
        let delivered: u64 = result.disks.iter().map(|d| d.read_bytes.0).sum();
        let may_be_cached = delivered < MIB;
        let warned = ids(&result).contains(&"page-cache");
        let is_once = result.disks.is_empty() && drop_cache;
        assert_eq!(warned, may_be_cached && !is_once, "{name}");
    }
}

#[test]
fn a_layout_alone_reads_nothing() {
    let scratch = Scratch::on_disk();
    let mut job = with_size(job("psync", Kind::Read, "only"), 64 * KIB);
    work(&mut job).targets.create.only = true;
    let (result, _) = run_in(&scratch.0, job);
    assert_eq!(result.failed_jobs(), 0);
    assert_eq!(
        std::fs::metadata(scratch.0.join("only")).unwrap().len(),
        64 * KIB
    );
}

#[test]
fn clones_get_own_generated_files_and_directories_in_turn() {
    let scratch = Scratch::in_memory();
    std::fs::create_dir(scratch.0.join("a")).unwrap();
    std::fs::create_dir(scratch.0.join("b")).unwrap();
    let mut job = with_size(job("psync", Kind::Write, ""), 64 * KIB);
    job.clones = 2;
    work(&mut job).targets.files = FileNames::Generated {
        pattern: "$jobname.$jobnum.$filenum".into(),
        directories: vec!["a".into(), "b".into()],
        count: 2,
    };
    let (result, said) = run_in(&scratch.0, job);
    assert_eq!(result.failed_jobs(), 0);
    assert_eq!(said, [laying_out(2, 64 * KIB), laying_out(2, 64 * KIB)]);
    for name in ["a/job.0.0", "a/job.0.1", "b/job.1.0", "b/job.1.1"] {
        assert_eq!(
            std::fs::metadata(scratch.0.join(name)).unwrap().len(),
            32 * KIB,
            "{name}"
        );
    }
}

#[test]
fn a_read_job_never_grows_a_file() {
    let scratch = Scratch::in_memory();
    let path = scratch.file("short", 64 * KIB);
    let job = with_size(job("psync", Kind::Read, "short"), MIB);
    let (result, said) = run_in(&scratch.0, job);
    assert_eq!(figures(&result, Kind::Read).bytes, Bytes(64 * KIB));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 64 * KIB);
    assert!(
        matches!(said[0], Announcement::ShortFile { .. }),
        "{said:?}"
    );
    // Nor where the size of files is given.
    let mut job = self::job("psync", Kind::Read, "short");
    work(&mut job).region.file_size_bytes = Some((Bytes(MIB), Bytes(MIB)));
    let (result, said) = run_in(&scratch.0, job);
    assert_eq!(figures(&result, Kind::Read).bytes, Bytes(64 * KIB));
    assert_eq!(std::fs::metadata(path).unwrap().len(), 64 * KIB);
    assert!(
        matches!(said[0], Announcement::ShortFile { .. }),
        "{said:?}"
    );
}

#[test]
fn a_tail_shorter_than_a_block_is_not_moved() {
    let scratch = Scratch::in_memory();
    let path = text(&scratch.file("odd", 10_000));
    let mut job = job("psync", Kind::Read, &path);
    assert_eq!(figures(&run(job.clone()), Kind::Read).operations, 2);
    job.block_work().passes.loops = 3;
    assert_eq!(figures(&run(job), Kind::Read).operations, 6);
}

#[test]
fn forbidden_creation_fails_and_makes_nothing() {
    let scratch = Scratch::in_memory();
    let path = scratch.0.join("missing");
    let mut job = with_size(job("psync", Kind::Read, &text(&path)), MIB);
    work(&mut job).targets.create.allow = Some(false);
    let failure = failure(&run(job));
    assert!(failure.message.contains("making files is not allowed"));
    assert_eq!(failure.cause, "create");
    assert!(!path.exists());
}

#[test]
fn a_mistyped_device_does_not_become_a_file() {
    let path = "/dev/weir_no_such_device";
    let failure = failure(&run(with_size(job("psync", Kind::Write, path), MIB)));
    assert!(
        failure.message.contains("there is no such device"),
        "{failure:?}"
    );
    assert!(!Path::new(path).exists());
}

#[test]
fn a_missing_file_without_size_asks_for_one() {
    let failure = failure(&run(job("psync", Kind::Read, "/tmp/weir-no-such-file")));
    assert!(
        failure.message.contains("has no size of its own"),
        "{failure:?}"
    );
    assert_eq!(failure.errno, Some(22));
}

#[test]
fn a_full_file_system_removes_the_unfinished_layout() {
    let scratch = Scratch::in_memory();
    let tiny = scratch.0.join("tiny");
    std::fs::create_dir(&tiny).unwrap();
    let mount = |args: &[&str]| {
        std::process::Command::new("mount")
            .args(args)
            .arg(&tiny)
            .output()
            .unwrap()
            .status
            .success()
    };
    if !mount(&["-t", "tmpfs", "-o", "size=1m", "none"]) {
        skip(
            "a_full_file_system_removes_the_unfinished_layout",
            "mounting needs privilege",
        );
        return;
    }
    let path = tiny.join("large");
    let failed = failure(&run(with_size(
        job("psync", Kind::Read, &text(&path)),
        4 * MIB,
    )));
    let left = path.exists();
    let mut full = with_size(job("psync", Kind::Write, &text(&path)), 4 * MIB);
    work(&mut full).targets.create.preallocate = Preallocate::None;
    let in_run = run(full.clone());
    full.block_work().passes.until_full = true;
    work(&mut full).region.size = None;
    let until_full = run(full);
    let unmounted = std::process::Command::new("umount")
        .arg(&tiny)
        .output()
        .unwrap();
    assert!(unmounted.status.success());
    assert_eq!(
        (failed.errno, failed.cause.as_str()),
        (Some(28), "layout"),
        "{failed:?}"
    );
    assert!(!left && failed.message.contains("removed"), "{failed:?}");
    assert_eq!(failure(&in_run).errno, Some(28));
    assert_eq!(figures(&until_full, Kind::Write).bytes, Bytes(MIB));
}

#[test]
fn files_are_removed_afterwards_if_asked() {
    let scratch = Scratch::in_memory();
    let mut job = with_size(job("psync", Kind::Write, "gone"), 64 * KIB);
    work(&mut job).targets.remove_after = true;
    let (result, _) = run_in(&scratch.0, job);
    assert_eq!(result.failed_jobs(), 0);
    assert!(!scratch.0.join("gone").exists());
}

#[test]
fn preallocation_follows_the_plan() {
    let scratch = Scratch::on_disk();
    for (how, blocks) in [(Preallocate::Native, true), (Preallocate::Truncate, false)] {
        let mut job = with_size(job("psync", Kind::Write, "reserved"), MIB);
        work(&mut job).targets.create.preallocate = how;
        work(&mut job).targets.create.only = true;
        let (result, _) = run_in(&scratch.0, job);
        assert_eq!(result.failed_jobs(), 0);
        let path = scratch.0.join("reserved");
        let status = std::fs::metadata(&path).unwrap();
        assert_eq!(status.len(), MIB);
        assert_eq!(status.blocks() * 512 >= MIB, blocks, "{how:?}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn reads_of_holes_are_warned_about() {
    let scratch = Scratch::on_disk();
    let path = scratch.0.join("holes");
    std::fs::File::create(&path).unwrap().set_len(MIB).unwrap();
    let result = run(job("psync", Kind::Read, &text(&path)));
    let warning = result.warnings.iter().find(|w| w.id == "never-written");
    assert!(
        warning.unwrap().cause.starts_with("100 %"),
        "{:?}",
        result.warnings
    );
}

#[test]
fn character_devices_are_read_and_written_by_region() {
    for (kind, path) in [(Kind::Read, "/dev/zero"), (Kind::Write, "/dev/null")] {
        let mut job = with_size(job("psync", kind, path), 64 * KIB);
        work(&mut job).region.offset = Some(Size::Bytes(Bytes(48 << 30)));
        assert_eq!(figures(&run(job), kind).bytes, Bytes(64 * KIB));
    }
    let failure = failure(&run(job("psync", Kind::Read, "/dev/zero")));
    assert!(failure.message.contains("has no size of its own"));
}

#[test]
fn a_full_device_ends_the_job_with_its_errno() {
    let failure = failure(&run(with_size(job("psync", Kind::Write, "/dev/full"), MIB)));
    assert_eq!(
        (failure.errno, failure.target.as_deref()),
        (Some(28), Some("/dev/full"))
    );
}

#[test]
fn the_empty_engine_needs_no_target_and_no_directory() {
    for depth in [1, 32] {
        let result = run(with_size(
            with_depth(job("null", Kind::Read, ""), depth),
            64 * MIB,
        ));
        assert_eq!(figures(&result, Kind::Read).operations, 16_384);
        let listed = with_size(
            with_depth(job("null", Kind::Write, "/no/such/x"), depth),
            MIB,
        );
        assert_eq!(figures(&run(listed), Kind::Write).operations, 256);
    }
    assert!(!refusals(job("null", Kind::Read, "")).is_empty());
}

#[test]
fn a_deep_queue_of_a_synchronous_engine_is_capped() {
    let scratch = Scratch::in_memory();
    scratch.file("data", 64 * KIB);
    let (result, _) = run_in(&scratch.0, with_depth(job("psync", Kind::Read, "data"), 16));
    assert_eq!(figures(&result, Kind::Read).operations, 16);
    let depth = &result.groups[0].jobs[0].workers()[0].depth;
    assert_eq!(depth.in_flight, [16, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_touched() {
    let scratch = Scratch::on_disk();
    let path = text(&scratch.file("data", 64 * KIB));
    let message = |job| {
        let all = refusals(job);
        all.iter()
            .map(|f| f.message.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let directory = message(with_size(job("psync", Kind::Read, &text(&scratch.0)), MIB));
    assert!(directory.contains("is a directory"), "{directory}");
    let nowhere = message(with_size(job("psync", Kind::Write, "/no/such/file"), MIB));
    assert!(
        nowhere.contains("directory /no/such does not exist"),
        "{nowhere}"
    );
    let unknown = message(job("psink", Kind::Read, &path));
    assert!(unknown.contains("there is no engine `psink`"), "{unknown}");
    let setting = message(with_setting(
        job("psync", Kind::Read, &path),
        "polled",
        Setting::Bool(true),
    ));
    assert!(setting.contains("has no setting `polled`"), "{setting}");
    let number = with_setting(
        job("pvsync2", Kind::Read, &path),
        "polled_percent",
        Setting::Number(101),
    );
    assert!(message(number).contains("from 0 to 100"));
    let buffered = with_setting(
        job("pvsync2", Kind::Read, &path),
        "polled",
        Setting::Bool(true),
    );
    assert!(message(buffered).contains("needs direct I/O"));
    let mut read_only = job("psync", Kind::Write, &path);
    work(&mut read_only).targets.open.read_only = true;
    assert!(message(read_only).contains("nothing may be written"));
    let mut odd = job("psync", Kind::Read, &path);
    work(&mut odd).targets.open.direct = true;
    work(&mut odd).sizes.size.read = weir_schema::BlockSize::Fixed { bytes: Bytes(1000) };
    assert!(message(odd).contains("a block has 1000 bytes"));
    assert_eq!(message(job("psync", Kind::Read, &path)), "");
}

#[test]
fn a_file_system_without_direct_io_says_so() {
    let path = "/proc/version";
    let mut job = with_size(job("psync", Kind::Read, path), 4096);
    work(&mut job).targets.open.direct = true;
    let all = refusals(job);
    let found = all
        .iter()
        .any(|f| f.message.contains("does not take direct I/O"));
    assert!(found, "{all:?}");
}

#[test]
fn polled_io_on_a_device_without_queues_to_poll_is_refused() {
    let name = "polled_io_on_a_device_without_queues_to_poll_is_refused";
    let scratch = Scratch::on_disk();
    let path = text(&scratch.file("data", 64 * KIB));
    let mut job = with_setting(
        job("io_uring", Kind::Read, &path),
        "polled",
        Setting::Bool(true),
    );
    work(&mut job).targets.open.direct = true;
    let all = refusals(job);
    match all.first() {
        Some(failure) if failure.message.contains("has no queues to poll") => {}
        Some(failure) => skip(name, &failure.message),
        None => skip(
            name,
            "the device has queues to poll, or the kernel does not tell",
        ),
    }
}

#[test]
fn the_device_below_the_root_is_never_written() {
    let name = "the_device_below_the_root_is_never_written";
    let facts = weir_sys::device::path_facts(&weir_sys::Tree::real(), Path::new("/")).unwrap();
    let Some(block) = facts.block else {
        return skip(name, "the root lies on no block device");
    };
    let path = format!("/dev/{}", block.name);
    if !Path::new(&path).exists() {
        return skip(name, &format!("{path} does not exist"));
    }
    let all = refusals(job("psync", Kind::Write, &path));
    assert!(
        all.iter().any(|f| f.message.contains("refusing to write")),
        "{all:?}"
    );
}

#[test]
fn no_permission_is_a_clear_failure() {
    let name = "no_permission_is_a_clear_failure";
    let scratch = Scratch::on_disk();
    let path = scratch.file("secret", 4096);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        return skip(name, "this user may read everything");
    }
    let all = refusals(job("psync", Kind::Read, &text(&path)));
    assert!(all[0].message.contains("cannot read it"), "{all:?}");
}

#[test]
fn block_devices_are_read_written_and_discarded() {
    let name = "block_devices_are_read_written_and_discarded";
    let scratch = Scratch::on_disk();
    let backing = scratch.file("backing", 4 * MIB);
    let losetup = |args: &[&str]| std::process::Command::new("losetup").args(args).output();
    let device = match losetup(&["--find", "--show", &text(&backing)]) {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        _ => return skip(name, "no loop device can be set up"),
    };
    let device = device.trim();
    let mut results = Vec::new();
    for engine in engines() {
        for kind in [Kind::Read, Kind::Write, Kind::Trim] {
            let mut job = with_size(job(engine, kind, device), MIB);
            work(&mut job).targets.open.direct = engine != "mmap";
            results.push((engine, kind, run(job)));
        }
    }
    let large = refusals(with_size(job("psync", Kind::Read, device), 8 * MIB));
    let facts = run(job("psync", Kind::Read, device)).host.devices;
    losetup(&["--detach", device]).unwrap();
    for (engine, kind, result) in results {
        assert_eq!(figures(&result, kind).operations, 256, "{engine} {kind:?}");
    }
    assert!(
        large[0].message.contains("is longer than the device"),
        "{large:?}"
    );
    assert_eq!(facts[0].kind, "block device");
    assert_eq!(facts[0].size_bytes, Some(Bytes(4 * MIB)));
}

#[test]
fn several_clones_read_own_parts_of_one_file() {
    let scratch = Scratch::in_memory();
    let path = text(&scratch.file("shared", MIB));
    let mut job = with_size(job("psync", Kind::Read, &path), 256 * KIB);
    job.clones = 4;
    work(&mut job).region.offset_step = Some(Size::Bytes(Bytes(256 * KIB)));
    let result = run(job);
    let job = result.jobs().next().unwrap();
    assert_eq!(job.state, State::Done);
    assert_eq!(job.workers().len(), 4);
    for worker in job.workers() {
        assert_eq!(worker.kind(Kind::Read).unwrap().bytes, Bytes(256 * KIB));
    }
}

#[test]
fn memory_of_every_kind_moves_data() {
    use weir_schema::MemoryKind;
    let scratch = Scratch::in_memory();
    let path = text(&scratch.file("data", 64 * KIB));
    for kind in [
        MemoryKind::Private,
        MemoryKind::Shared,
        MemoryKind::File,
        MemoryKind::Huge,
    ] {
        let mut job = job("psync", Kind::Read, &path);
        job.block_work().memory.kind = kind;
        job.block_work().memory.path = Some(text(&scratch.0.join("memory")));
        let result = run(job);
        if kind == MemoryKind::Huge && result.failed_jobs() > 0 {
            assert!(
                failure(&result).message.contains("huge pages"),
                "{:?}",
                failure(&result)
            );
            skip(
                "memory_of_every_kind_moves_data",
                "no huge pages are reserved",
            );
            continue;
        }
        assert_eq!(figures(&result, Kind::Read).operations, 16, "{kind:?}");
    }
}

//! The engines through their own methods, without the loop: data, faults, time-outs.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use weir_run::{Completed, Submit, Wait};
use weir_schema::Setting;
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use super::falloc::{Falloc, Truncate};
use super::io_uring::Ring;
use super::libaio::Aio;
use super::mmap::Mmap;
use super::null::{NullInline, NullQueued};
use super::posixaio::PosixAio;
use super::psync::Psync;
use super::pvsync::Pvsync;
use super::pvsync2::Pvsync2;
use super::splice::Splice;
use super::sync::SyncFile;
use super::vsync::Vsync;
use super::*;
use crate::op::Verb;

const BLOCK: u32 = 4096;
const SLOTS: u32 = 8;
const ONE: Wait = Wait {
    at_least: 1,
    at_most: u32::MAX,
    timeout_ns: None,
};

/// Says that a test could not be done here.
fn skip(name: &str, reason: &str) {
    println!("SKIPPED: {name}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = OpenOptions::new().append(true).create(true).open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{name}: {reason}"));
    }
}

/// True if the engine can be tested here; prints a note if not.
fn is_ready(name: &str, test: &str) -> bool {
    match availability(name) {
        Availability::Ready => true,
        Availability::Missing { what, .. } => {
            skip(test, &format!("this machine lacks {what}"));
            false
        }
    }
}

/// A file that vanishes, 64 KiB long, each block filled with its number.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-engine-{}-{number}", std::process::id());
        // Where the build lies there is a real file system.
        let exe = std::env::current_exe().unwrap();
        let path = exe.parent().unwrap().join(name);
        let content: Vec<u8> = (0..16 * BLOCK)
            .map(|n| u8::try_from(n / BLOCK).unwrap())
            .collect();
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn open(&self, flags: i32) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(&self.0)
            .unwrap()
    }

    fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        File::open(&self.0)
            .unwrap()
            .read_to_end(&mut content)
            .unwrap();
        content
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An engine with memory for its slots.
struct Bench<E> {
    // Dropped before the memory.
    engine: E,
    buffers: SlotBuffers,
    warnings: Warnings,
}

fn try_bench<E>(file: File, choice: &[(&str, Setting)]) -> std::io::Result<Bench<E>>
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let spec = BufferSpec::private(Bytes(u64::from(BLOCK * SLOTS)));
    let buffers = SlotBuffers::new(AlignedBuf::new(&spec).unwrap(), BLOCK, None, false);
    let settings: BTreeMap<_, _> = choice
        .iter()
        .map(|(k, v)| ((*k).to_owned(), v.clone()))
        .collect();
    let warnings = Warnings::default();
    let length = file.metadata().unwrap().len().max(u64::from(BLOCK));
    let target = OpenTarget {
        file: Arc::new(file.into()),
        is_block: false,
        is_writable: true,
        extent: Extent { start: 0, length },
    };
    let engine = E::attach(EngineSetup {
        targets: vec![target],
        names: vec!["target".to_owned()],
        cards: dma_emu::EmulatedCards::default(),
        sessions: crate::engine::kernel::KernelSessions::default(),
        mappings: Mappings::default(),
        streams: Streams::new(1, 0),
        files: Vec::new(),
        depth: SLOTS,
        memory: SlotMemory::of(&buffers, SLOTS),
        choice: EngineChoice {
            settings,
            ..EngineChoice::new("test")
        },
        warnings: warnings.clone(),
    })?;
    Ok(Bench {
        engine,
        buffers,
        warnings,
    })
}

impl<E: Engine<Op = BlockOp, Setup = EngineSetup>> Bench<E> {
    fn op(&self, verb: Verb, slot: u32, offset: u64) -> BlockOp {
        let length = if matches!(verb, Verb::Sync | Verb::DataSync) {
            0
        } else {
            BLOCK
        };
        BlockOp {
            offset,
            buffer: self.buffers.at(slot),
            length,
            target: 0,
            range: 0,
            range_flags: 0,
            verb,
            priority: 0,
        }
    }

    fn slot(&mut self, slot: u32) -> &mut [u8] {
        let op = self.op(Verb::Read, slot, 0);
        calls::memory(op)
    }

    /// Carries one operation out.
    fn carry_out(&mut self, slot: u32, op: BlockOp) -> i64 {
        match self.engine.submit(slot, &op) {
            Submit::Done(result) => return result,
            Submit::Queued => {}
            other => panic!("an empty engine says {other:?}"),
        }
        assert_eq!(self.engine.commit().unwrap(), 1);
        let mut results = Vec::new();
        while results.is_empty() {
            self.engine.reap(ONE, |done| results.push(done)).unwrap();
        }
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].slot, slot);
        results[0].result
    }

    fn act(&mut self, verb: Verb, slot: u32, offset: u64) -> i64 {
        let op = self.op(verb, slot, offset);
        self.carry_out(slot, op)
    }
}

/// Checks that every engine that moves data has to pass.
fn moves_data<E>(choice: &[(&str, Setting)], flags: i32)
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let scratch = Scratch::new();
    let mut bench = try_bench::<E>(scratch.open(flags), choice).unwrap();
    let block = i64::from(BLOCK);
    // What was there is read.
    assert_eq!(bench.act(Verb::Read, 2, 3 * 4096), block);
    assert!(bench.slot(2).iter().all(|&byte| byte == 3));
    // What is written is there.
    bench.slot(1).fill(0xab);
    assert_eq!(bench.act(Verb::Write, 1, 5 * 4096), block);
    assert_eq!(bench.act(Verb::Sync, 0, 0), 0);
    assert_eq!(bench.act(Verb::DataSync, 0, 0), 0);
    assert_eq!(bench.act(Verb::Read, 7, 5 * 4096), block);
    assert!(bench.slot(7).iter().all(|&byte| byte == 0xab));
    // The rest of an operation begins inside the slot.
    let rest = weir_run::Operation::rest(&bench.op(Verb::Read, 7, 0), 512).unwrap();
    let direct = flags & libc::O_DIRECT != 0;
    assert_eq!(bench.carry_out(7, rest), block - 512);
    assert_eq!(bench.slot(7)[..512], [0xab; 512], "direct: {direct}");
    // A hole reads as zeros, and the file keeps its length.
    let trimmed = bench.act(Verb::Trim, 0, 9 * 4096);
    assert!(
        trimmed == block || trimmed == -i64::from(libc::EOPNOTSUPP),
        "{trimmed}"
    );
    // The end of the file.
    assert_eq!(bench.act(Verb::Read, 0, 16 * 4096), 0);
    let error = BlockOp {
        target: 9,
        ..bench.op(Verb::Read, 0, 0)
    };
    assert_eq!(bench.carry_out(0, error), -i64::from(libc::EBADF));
    bench.engine.finish().unwrap();
    let content = scratch.content();
    assert_eq!(content.len(), 16 * 4096);
    assert!(content[5 * 4096..6 * 4096].iter().all(|&byte| byte == 0xab));
    assert!(content[6 * 4096..7 * 4096].iter().all(|&byte| byte == 6));
    if trimmed == block {
        assert!(content[9 * 4096..10 * 4096].iter().all(|&byte| byte == 0));
    }
}

/// A full queue of reads comes back whole, each with its slot.
fn keeps_many_in_flight<E>(choice: &[(&str, Setting)])
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let scratch = Scratch::new();
    let mut bench = try_bench::<E>(scratch.open(libc::O_DIRECT), choice).unwrap();
    for slot in 0..SLOTS {
        let op = bench.op(Verb::Read, slot, u64::from(slot) * 4096);
        assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
    }
    let mut taken = 0;
    while taken < SLOTS {
        taken += bench.engine.commit().unwrap();
    }
    let mut seen = vec![false; SLOTS as usize];
    let mut harvests = 0;
    while seen.contains(&false) {
        let few = Wait {
            at_least: 2,
            at_most: 3,
            timeout_ns: None,
        };
        let mut count = 0;
        let all = bench.engine.reap(few, |done: Completed| {
            assert_eq!(done.result, i64::from(BLOCK));
            assert!(!std::mem::replace(&mut seen[done.slot as usize], true));
            count += 1;
        });
        assert_eq!(all.unwrap(), count);
        assert!(count <= 3);
        harvests += 1;
        if seen.iter().filter(|&&s| !s).count() == 1 {
            bench
                .engine
                .reap(ONE, |done| seen[done.slot as usize] = true)
                .unwrap();
        }
    }
    assert!(harvests >= 3);
    for slot in 0..SLOTS {
        assert!(bench.slot(slot).iter().all(|&byte| u32::from(byte) == slot));
    }
    returns_empty_handed(&mut bench);
}

/// Nothing is in flight.
fn returns_empty_handed<E>(bench: &mut Bench<E>)
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    // A look and a wait with an end both return empty-handed.
    let look = Wait {
        at_least: 0,
        at_most: u32::MAX,
        timeout_ns: None,
    };
    assert_eq!(
        bench
            .engine
            .reap(look, |_| panic!("nothing was submitted"))
            .unwrap(),
        0
    );
    let short = Wait {
        at_least: 1,
        at_most: u32::MAX,
        timeout_ns: Some(1_000_000),
    };
    assert_eq!(
        bench
            .engine
            .reap(short, |_| panic!("nothing was submitted"))
            .unwrap(),
        0
    );
}

/// Writes to a full device.
fn reports_a_full_device<E>(choice: &[(&str, Setting)])
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut bench = try_bench::<E>(full, choice).unwrap();
    assert_eq!(bench.act(Verb::Write, 0, 0), -i64::from(libc::ENOSPC));
}

/// Writes to a target that is open for reading.
fn reports_a_wrong_direction<E>(choice: &[(&str, Setting)])
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let scratch = Scratch::new();
    let mut bench = try_bench::<E>(File::open(&scratch.0).unwrap(), choice).unwrap();
    assert_eq!(bench.act(Verb::Write, 0, 0), -i64::from(libc::EBADF));
}

/// Reads across the end of a file.
fn reads_short_at_the_end<E>(choice: &[(&str, Setting)])
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let scratch = Scratch::new();
    scratch.open(0).set_len(4096 + 100).unwrap();
    let mut bench = try_bench::<E>(scratch.open(0), choice).unwrap();
    assert_eq!(bench.act(Verb::Read, 0, 4096), 100);
}

fn yes(name: &'static str) -> (&'static str, Setting) {
    (name, Setting::Bool(true))
}

fn no(name: &'static str) -> (&'static str, Setting) {
    (name, Setting::Bool(false))
}

#[test]
fn psync_moves_data() {
    moves_data::<Psync>(&[], 0);
    moves_data::<Psync>(&[], libc::O_DIRECT);
    reports_a_full_device::<Psync>(&[]);
    reports_a_wrong_direction::<Psync>(&[]);
    reads_short_at_the_end::<Psync>(&[]);
}

#[test]
fn sync_moves_data() {
    moves_data::<SyncFile>(&[], 0);
    moves_data::<SyncFile>(&[], libc::O_DIRECT);
    reports_a_full_device::<SyncFile>(&[]);
    reports_a_wrong_direction::<SyncFile>(&[]);
    reads_short_at_the_end::<SyncFile>(&[]);
}

#[test]
fn pvsync_moves_data() {
    moves_data::<Pvsync>(&[], 0);
    moves_data::<Pvsync>(&[], libc::O_DIRECT);
    reports_a_full_device::<Pvsync>(&[]);
    reports_a_wrong_direction::<Pvsync>(&[]);
    reads_short_at_the_end::<Pvsync>(&[]);
}

#[test]
fn vsync_moves_data() {
    moves_data::<Vsync>(&[], 0);
    moves_data::<Vsync>(&[], libc::O_DIRECT);
    reports_a_full_device::<Vsync>(&[]);
    reports_a_wrong_direction::<Vsync>(&[]);
    reads_short_at_the_end::<Vsync>(&[]);
    keeps_many_in_flight::<Vsync>(&[]);
}

#[test]
fn posixaio_moves_data() {
    moves_data::<PosixAio>(&[], 0);
    moves_data::<PosixAio>(&[], libc::O_DIRECT);
    reports_a_full_device::<PosixAio>(&[]);
    reports_a_wrong_direction::<PosixAio>(&[]);
    reads_short_at_the_end::<PosixAio>(&[]);
    keeps_many_in_flight::<PosixAio>(&[]);
}

#[test]
fn posixaio_dropped_in_flight_waits_for_the_library() {
    let scratch = Scratch::new();
    let mut bench = try_bench::<PosixAio>(scratch.open(0), &[]).unwrap();
    for slot in 0..SLOTS {
        bench.slot(slot).fill(0xcd);
        let op = bench.op(Verb::Write, slot, u64::from(slot) * 4096);
        assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
    }
    assert_eq!(bench.engine.commit().unwrap(), SLOTS);
    drop(bench);
    assert!(
        scratch.content()[..8 * 4096]
            .iter()
            .all(|&byte| byte == 0xcd)
    );
}

#[test]
fn splice_moves_data() {
    moves_data::<Splice>(&[], 0);
    reads_short_at_the_end::<Splice>(&[]);
}

#[test]
fn splice_leaves_nothing_of_a_failed_write_in_its_pipe() {
    let scratch = Scratch::new();
    let file = File::open(&scratch.0).unwrap();
    let mut bench = try_bench::<Splice>(file, &[]).unwrap();
    bench.slot(0).fill(0xee);
    assert!(bench.act(Verb::Write, 0, 0) < 0);
    assert_eq!(bench.act(Verb::Read, 1, 4096), 4096);
    assert!(bench.slot(1).iter().all(|&byte| byte == 1));
}

#[test]
fn vsync_joins_neighbours_of_one_kind_and_nothing_else() {
    let scratch = Scratch::new();
    let mut bench = try_bench::<Vsync>(scratch.open(0), &[]).unwrap();
    // Two neighbours, a gap, two more of which the second is of another kind.
    let plan = [
        (Verb::Read, 0),
        (Verb::Read, 4096),
        (Verb::Read, 3 * 4096),
        (Verb::Read, 4 * 4096),
        (Verb::Write, 5 * 4096),
    ];
    for (slot, (verb, offset)) in (0..).zip(plan) {
        let op = bench.op(verb, slot, offset);
        assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
    }
    assert_eq!(bench.engine.commit().unwrap(), 5);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let mut slots = Vec::new();
        bench.engine.reap(ONE, |c| slots.push(c.slot)).unwrap();
        calls.push(slots);
    }
    assert_eq!(calls, [vec![0, 1], vec![2, 3], vec![4]]);
    assert!(bench.slot(3).iter().all(|&byte| byte == 4));
}

#[test]
fn vsync_goes_on_after_a_call_that_moved_less() {
    let scratch = Scratch::new();
    scratch.open(0).set_len(4096 + 100).unwrap();
    let mut bench = try_bench::<Vsync>(scratch.open(0), &[]).unwrap();
    for slot in 0..3 {
        let op = bench.op(Verb::Read, slot, u64::from(slot) * 4096);
        assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
    }
    bench.engine.commit().unwrap();
    let mut results = Vec::new();
    while results.len() < 3 {
        bench
            .engine
            .reap(ONE, |c| results.push((c.slot, c.result)))
            .unwrap();
    }
    assert_eq!(results, [(0, 4096), (1, 100), (2, 0)]);
}

#[test]
fn falloc_reserves_and_gives_back() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let mut bench = try_bench::<Falloc>(scratch.open(0), &[]).unwrap();
    let length = || std::fs::metadata(&scratch.0).unwrap().len();
    assert_eq!(bench.act(Verb::Write, 0, 16 * 4096), 4096);
    assert_eq!(length(), 17 * 4096);
    assert_eq!(bench.act(Verb::Read, 0, 17 * 4096), 4096);
    assert_eq!(length(), 17 * 4096, "a read keeps the length");
    let before = std::fs::metadata(&scratch.0).unwrap().blocks();
    assert_eq!(bench.act(Verb::Trim, 0, 4096), 4096);
    assert!(std::fs::metadata(&scratch.0).unwrap().blocks() < before);
    assert!(scratch.content()[4096..8192].iter().all(|&byte| byte == 0));
}

#[test]
fn ftruncate_sets_the_length_to_the_offset() {
    let scratch = Scratch::new();
    let mut bench = try_bench::<Truncate>(scratch.open(0), &[]).unwrap();
    assert_eq!(bench.act(Verb::Write, 0, 3 * 4096), 4096);
    assert_eq!(std::fs::metadata(&scratch.0).unwrap().len(), 3 * 4096);
    assert_eq!(bench.act(Verb::Read, 0, 0), -i64::from(libc::EINVAL));
}

#[test]
fn pvsync2_moves_data() {
    moves_data::<Pvsync2>(&[], 0);
    moves_data::<Pvsync2>(&[], libc::O_DIRECT);
    reports_a_full_device::<Pvsync2>(&[]);
    reports_a_wrong_direction::<Pvsync2>(&[]);
    reads_short_at_the_end::<Pvsync2>(&[]);
}

#[test]
fn pvsync2_polls_for_other_operations_on_each_worker() {
    let polled = |worker: u32| {
        let mut rng = Streams::new(1, worker).polls();
        (0..64).map(|_| rng.below(100) < 50).collect::<Vec<_>>()
    };
    assert_ne!(polled(0), polled(1));
    let bench = try_bench::<Pvsync2>(
        Scratch::new().open(0),
        &[yes("polled"), ("polled_percent", Setting::Number(50))],
    );
    let mut engine = bench.unwrap().engine;
    let flags: Vec<bool> = (0..64).map(|_| engine.is_next_polled()).collect();
    assert_eq!(flags, polled(0));
}

#[test]
fn pvsync2_without_waiting_refuses_what_would_wait() {
    let scratch = Scratch::new();
    let file = scratch.open(0);
    rustix::fs::fsync(&file).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let mut bench = try_bench::<Pvsync2>(file, &[yes("no_wait")]).unwrap();
    let result = bench.act(Verb::Read, 0, 0);
    let agreed = [i64::from(BLOCK), -i64::from(libc::EAGAIN)];
    assert!(agreed.contains(&result), "{result}");
}

#[test]
fn mmap_moves_data() {
    moves_data::<Mmap>(&[], 0);
    moves_data::<Mmap>(&[yes("transparent_huge_pages")], 0);
}

#[test]
fn mmap_answers_for_a_page_that_cannot_be_had_and_goes_on() {
    let scratch = Scratch::new();
    let file = scratch.open(0);
    let mut bench = try_bench::<Mmap>(scratch.open(0), &[]).unwrap();
    let (block, error) = (i64::from(BLOCK), -i64::from(libc::EIO));
    file.set_len(8 * 4096).unwrap();
    for verb in [Verb::Read, Verb::Write] {
        for _ in 0..2 {
            assert_eq!(bench.act(verb, 0, 8 * 4096), error, "{verb:?}");
            assert_eq!(bench.act(verb, 1, 7 * 4096), block, "{verb:?}");
            // Of two pages.
            assert_eq!(bench.act(verb, 0, 9 * 4096 + 512), error, "{verb:?}");
        }
    }
    // The pages are the file's again.
    file.set_len(16 * 4096).unwrap();
    bench.slot(2).fill(0xab);
    for page in [8, 9, 10] {
        assert_eq!(bench.act(Verb::Write, 2, page * 4096), block);
    }
    assert_eq!(scratch.content()[8 * 4096..11 * 4096], [0xab; 3 * 4096]);
}

#[test]
fn mmap_says_what_cannot_be_mapped() {
    let full = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/full")
        .unwrap();
    let error = try_bench::<Mmap>(full, &[]).err().unwrap();
    assert!(error.to_string().contains("cannot map"), "{error}");
}

#[test]
fn io_uring_moves_data_registered_or_not() {
    if !is_ready("io_uring", "io_uring_moves_data_registered_or_not") {
        return;
    }
    let plain = [no("registered_buffers"), no("registered_files")];
    let vectors = [no("registered_buffers"), no("nonvectored")];
    let workers = [("force_async", Setting::Number(2))];
    for choice in [
        &[][..],
        &plain[..],
        &vectors[..],
        &workers[..],
        &[no("registered_buffers")][..],
    ] {
        moves_data::<Ring>(choice, 0);
        moves_data::<Ring>(choice, libc::O_DIRECT);
        keeps_many_in_flight::<Ring>(choice);
        reads_short_at_the_end::<Ring>(choice);
    }
    reports_a_full_device::<Ring>(&[]);
    reports_a_wrong_direction::<Ring>(&[]);
}

#[test]
fn io_uring_with_a_kernel_poll_thread_moves_data() {
    let name = "io_uring_with_a_kernel_poll_thread_moves_data";
    if !is_ready("io_uring", name) {
        return;
    }
    let choice = [yes("kernel_poll_thread")];
    let scratch = Scratch::new();
    if let Err(error) = try_bench::<Ring>(scratch.open(0), &choice) {
        return skip(name, &error.to_string());
    }
    moves_data::<Ring>(&choice, libc::O_DIRECT);
    keeps_many_in_flight::<Ring>(&choice);
    let pinned = [
        yes("kernel_poll_thread"),
        ("kernel_poll_cpu", Setting::Number(0)),
    ];
    moves_data::<Ring>(&pinned, libc::O_DIRECT);
}

#[test]
fn io_uring_on_an_unknown_cpu_says_so() {
    if !is_ready("io_uring", "io_uring_on_an_unknown_cpu_says_so") {
        return;
    }
    let choice = [
        yes("kernel_poll_thread"),
        ("kernel_poll_cpu", Setting::Number(60_000)),
    ];
    let scratch = Scratch::new();
    let error = try_bench::<Ring>(scratch.open(0), &choice).err().unwrap();
    assert!(error.to_string().contains("cannot set a ring"), "{error}");
}

#[test]
fn io_uring_polled_works_or_is_refused_by_the_device() {
    let name = "io_uring_polled_works_or_is_refused_by_the_device";
    if !is_ready("io_uring", name) {
        return;
    }
    let scratch = Scratch::new();
    let choice = [yes("polled")];
    let mut bench = try_bench::<Ring>(scratch.open(libc::O_DIRECT), &choice).unwrap();
    let result = bench.act(Verb::Read, 0, 0);
    let refused = -i64::from(libc::EOPNOTSUPP);
    assert!(result == i64::from(BLOCK) || result == refused, "{result}");
    // Flushes and holes are done inside the call.
    assert_eq!(bench.act(Verb::Sync, 0, 0), 0);
    if result == refused {
        skip(
            name,
            "the device has no queues to poll: only the refusal was seen",
        );
    }
}

#[test]
fn io_uring_dropped_in_flight_waits_for_the_kernel() {
    if !is_ready(
        "io_uring",
        "io_uring_dropped_in_flight_waits_for_the_kernel",
    ) {
        return;
    }
    let scratch = Scratch::new();
    let mut bench = try_bench::<Ring>(scratch.open(libc::O_DIRECT), &[]).unwrap();
    for slot in 0..SLOTS {
        let op = bench.op(Verb::Read, slot, u64::from(slot) * 4096);
        bench.engine.submit(slot, &op);
    }
    bench.engine.commit().unwrap();
    let Bench {
        engine, buffers, ..
    } = bench;
    drop(engine);
    let last = buffers.memory().slot(7 * 4096, 4096);
    assert!(last.iter().all(|&byte| byte == 7));
}

#[test]
fn io_uring_tells_of_no_completion_before_it_has_waited_for_the_others() {
    let name = "io_uring_tells_of_no_completion_before_it_has_waited_for_the_others";
    if !is_ready("io_uring", name) {
        return;
    }
    let (reading, writing) = rustix::pipe::pipe().unwrap();
    let mut writing = File::from(writing);
    let block = [1; BLOCK as usize];
    let mut bench = try_bench::<Ring>(reading.into(), &[]).unwrap();
    for slot in 0..2 {
        let op = bench.op(Verb::Read, slot, 0);
        assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
    }
    // The first read ends at once, the second waits for data.
    writing.write_all(&block).unwrap();
    assert_eq!(bench.engine.commit().unwrap(), 2);
    let wait = Wait {
        at_least: 2,
        at_most: u32::MAX,
        timeout_ns: Some(50_000_000),
    };
    let start = std::time::Instant::now();
    let mut seen = Vec::new();
    let done = |_: Completed| seen.push(start.elapsed().as_millis());
    bench.engine.reap(wait, done).unwrap();
    // The loop reads the clock when it is told.
    assert!(seen.len() == 1 && seen[0] >= 50, "{seen:?}");
    // What is in flight is waited for at the end.
    writing.write_all(&block).unwrap();
}

#[test]
fn io_uring_hands_everything_over_although_the_kernel_refuses_it() {
    let name = "io_uring_hands_everything_over_although_the_kernel_refuses_it";
    if !is_ready("io_uring", name) {
        return;
    }
    if !super::io_uring::submits_all() {
        return skip(name, "this kernel is older than 5.18");
    }
    let scratch = Scratch::new();
    let mut results = Vec::new();
    let refused_all = || {
        let mut bench = try_bench::<Ring>(scratch.open(0), &[]).unwrap();
        // The real-time class is for the privileged; who is not root is none already.
        let nobody = rustix::process::Uid::from_raw(65_534);
        let _ = rustix::thread::set_thread_res_uid(None, nobody, None);
        for slot in 0..SLOTS {
            let op = BlockOp {
                priority: 0x2000,
                ..bench.op(Verb::Read, slot, u64::from(slot) * 4096)
            };
            assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
        }
        assert_eq!(bench.engine.commit().unwrap(), SLOTS);
        while results.len() < SLOTS as usize {
            let done = |completed: Completed| results.push(completed.result);
            bench.engine.reap(ONE, done).unwrap();
        }
    };
    std::thread::scope(|scope| scope.spawn(refused_all).join()).unwrap();
    let refused = -i64::from(libc::EPERM);
    assert!(
        results.iter().all(|&result| result == refused),
        "{results:?}"
    );
}

#[test]
fn io_uring_without_locked_memory_goes_on_with_a_note() {
    let name = "io_uring_without_locked_memory_goes_on_with_a_note";
    if !is_ready("io_uring", name) {
        return;
    }
    let scratch = Scratch::new();
    let spec = BufferSpec::private(Bytes(u64::from(BLOCK * SLOTS)));
    let buffers = SlotBuffers::new(AlignedBuf::new(&spec).unwrap(), BLOCK, None, false);
    // Memory that is not there is refused like memory that may not be locked.
    let memory = SlotMemory {
        base: std::ptr::without_provenance_mut(1 << 12),
        ..SlotMemory::of(&buffers, SLOTS)
    };
    let warnings = Warnings::default();
    let target = OpenTarget {
        file: Arc::new(scratch.open(0).into()),
        is_block: false,
        is_writable: true,
        extent: Extent {
            start: 0,
            length: 65_536,
        },
    };
    let engine = Ring::attach(EngineSetup {
        targets: vec![target],
        names: vec!["target".to_owned()],
        cards: dma_emu::EmulatedCards::default(),
        sessions: crate::engine::kernel::KernelSessions::default(),
        mappings: Mappings::default(),
        streams: Streams::new(1, 0),
        files: Vec::new(),
        depth: SLOTS,
        memory,
        choice: EngineChoice::new("io_uring"),
        warnings: warnings.clone(),
    });
    let mut bench = Bench {
        engine: engine.unwrap(),
        buffers,
        warnings,
    };
    assert_eq!(bench.act(Verb::Read, 0, 4096), i64::from(BLOCK));
    let raised = bench.warnings.list();
    assert_eq!(raised.len(), 1, "{raised:?}");
    assert_eq!(raised[0].id, "not-registered");
}

#[test]
fn libaio_moves_data() {
    if !is_ready("libaio", "libaio_moves_data") {
        return;
    }
    for choice in [&[][..], &[yes("user_space_reap")][..]] {
        moves_data::<Aio>(choice, 0);
        moves_data::<Aio>(choice, libc::O_DIRECT);
        keeps_many_in_flight::<Aio>(choice);
        reads_short_at_the_end::<Aio>(choice);
        reports_a_wrong_direction::<Aio>(choice);
    }
}

#[test]
fn libaio_reports_what_the_kernel_does_not_take_as_a_completion() {
    let name = "libaio_reports_what_the_kernel_does_not_take_as_a_completion";
    if !is_ready("libaio", name) {
        return;
    }
    // This device has no asynchronous calls: io_submit refuses the block.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut bench = try_bench::<Aio>(full, &[]).unwrap();
    let result = bench.act(Verb::Write, 3, 0);
    let agreed = [-i64::from(libc::EINVAL), -i64::from(libc::ENOSPC)];
    assert!(agreed.contains(&result), "{result}");
}

#[test]
fn operations_with_a_priority_carry_it_to_the_kernel() {
    let name = "operations_with_a_priority_carry_it_to_the_kernel";
    if is_ready("libaio", name) {
        let scratch = Scratch::new();
        let mut bench = try_bench::<Aio>(scratch.open(0), &[]).unwrap();
        let op = BlockOp {
            priority: 0x4006,
            ..bench.op(Verb::Read, 0, 0)
        };
        bench.carry_out(0, op);
        bench.act(Verb::Write, 1, 0);
        assert_eq!(bench.engine.priority(0), Some(0x4006));
        assert_eq!(bench.engine.priority(1), None);
    }
}

#[test]
fn libaio_reserves_more_requests_than_there_are_with_a_message() {
    let name = "libaio_reserves_more_requests_than_there_are_with_a_message";
    if !is_ready("libaio", name) {
        return;
    }
    let scratch = Scratch::new();
    let bench = try_bench::<Aio>(scratch.open(0), &[]).unwrap();
    let setup = EngineSetup {
        files: Vec::new(),
        targets: Vec::new(),
        names: Vec::new(),
        cards: dma_emu::EmulatedCards::default(),
        sessions: crate::engine::kernel::KernelSessions::default(),
        mappings: Mappings::default(),
        streams: Streams::new(1, 0),
        depth: 1 << 30,
        memory: SlotMemory::of(&bench.buffers, SLOTS),
        choice: EngineChoice::new("libaio"),
        warnings: Warnings::default(),
    };
    let error = Aio::attach(setup).unwrap_err();
    assert!(error.to_string().contains("fs.aio-max-nr"), "{error}");
    assert!(matches!(
        engine_failure(&error).errno,
        Some(libc::EAGAIN | libc::EINVAL)
    ));
}

#[test]
fn the_empty_engine_answers_at_once_or_through_its_queue() {
    let scratch = Scratch::new();
    let mut inline = try_bench::<NullInline>(scratch.open(0), &[]).unwrap();
    assert_eq!(inline.act(Verb::Write, 0, 1 << 40), i64::from(BLOCK));
    let mut queued = try_bench::<NullQueued>(scratch.open(0), &[]).unwrap();
    for slot in 0..SLOTS {
        let op = queued.op(Verb::Read, slot, 0);
        assert_eq!(queued.engine.submit(slot, &op), Submit::Queued);
    }
    let op = queued.op(Verb::Read, 0, 0);
    assert_eq!(queued.engine.submit(0, &op), Submit::Full);
    // What was not handed over does not come back.
    assert_eq!(
        queued
            .engine
            .reap(ONE, |_| panic!("not handed over"))
            .unwrap(),
        0
    );
    assert_eq!(queued.engine.commit().unwrap(), SLOTS);
    let mut slots = Vec::new();
    let three = Wait { at_most: 3, ..ONE };
    assert_eq!(
        queued
            .engine
            .reap(three, |done| slots.push(done.slot))
            .unwrap(),
        3
    );
    assert_eq!(
        queued
            .engine
            .reap(ONE, |done| slots.push(done.slot))
            .unwrap(),
        SLOTS - 3
    );
    assert_eq!(slots, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(Path::new(&scratch.0).exists());
}

#[test]
fn the_catalogue_has_each_engine_once() {
    let catalogue = catalogue();
    let names: std::collections::BTreeSet<_> = catalogue.engines.iter().map(|e| e.name).collect();
    assert_eq!(names.len(), catalogue.engines.len());
    for engine in &catalogue.engines {
        let mut settings: Vec<_> = engine.settings.iter().map(|s| s.name).collect();
        settings.sort_unstable();
        settings.dedup();
        assert_eq!(settings.len(), engine.settings.len());
    }
}

#[test]
fn an_unknown_engine_names_those_that_exist() {
    let Availability::Missing { remedy, .. } = availability("io_urin") else {
        panic!("missing")
    };
    assert!(remedy.contains("io_uring"), "{remedy}");
}

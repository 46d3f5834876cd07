//! The engine on a drive that a thread plays: data, lengths, ends that are bad or do not come.

use weir_schema::{EngineChoice, Setting};
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use super::*;
use crate::engine::{Mappings, calls};
use crate::source::SlotBuffers;

const SLOTS: u32 = 4;
const ONE: Wait = Wait {
    at_least: 1,
    // A second end would be lost.
    at_most: 1,
    timeout_ns: None,
};

/// An engine with memory for its slots.
struct Bench {
    // Dropped before the memory.
    engine: UserQueue,
    buffers: SlotBuffers,
    warnings: Warnings,
}

fn attach(name: &str, stride: u32, settings: &[&str]) -> io::Result<Bench> {
    let spec = BufferSpec::private(Bytes(u64::from(stride * SLOTS)));
    let buffers = SlotBuffers::new(AlignedBuf::new(&spec).unwrap(), stride, None, false);
    let warnings = Warnings::default();
    let settings = settings
        .iter()
        .map(|name| ((*name).to_owned(), Setting::Bool(true)));
    let engine = UserQueue::attach(EngineSetup {
        targets: Vec::new(),
        names: vec![name.to_owned()],
        cards: crate::engine::dma_emu::EmulatedCards::default(),
        sessions: crate::engine::kernel::KernelSessions::default(),
        mappings: Mappings::default(),
        streams: weir_run::generate::Streams::new(1, 0),
        files: Vec::new(),
        depth: SLOTS,
        memory: SlotMemory::of(&buffers, SLOTS),
        choice: EngineChoice {
            settings: settings.collect(),
            ..EngineChoice::new("vfio")
        },
        warnings: warnings.clone(),
    })?;
    Ok(Bench {
        engine,
        buffers,
        warnings,
    })
}

impl Bench {
    fn op(&self, verb: Verb, slot: u32, offset: u64, length: u32) -> BlockOp {
        BlockOp {
            offset,
            buffer: self.buffers.at(slot),
            length,
            verb,
            ..BlockOp::default()
        }
    }

    fn end(&mut self) -> io::Result<Completed> {
        let mut ended = None;
        while ended.is_none() {
            self.engine.reap(ONE, |done| ended = Some(done))?;
        }
        Ok(ended.unwrap())
    }

    /// Carries one operation out.
    fn act(&mut self, verb: Verb, slot: u32, offset: u64, length: u32) -> i64 {
        let op = self.op(verb, slot, offset, length);
        match self.engine.submit(slot, &op) {
            Submit::Done(result) => return result,
            Submit::Queued => {}
            other => panic!("an empty queue says {other:?}"),
        }
        assert_eq!(self.engine.commit().unwrap(), 1);
        let ended = self.end().unwrap();
        assert_eq!(ended.slot, slot);
        ended.result
    }

    fn slot(&mut self, slot: u32, length: u32) -> &mut [u8] {
        calls::memory(self.op(Verb::Read, slot, 0, length))
    }
}

#[test]
fn data_come_back_whatever_their_length_and_place() {
    // A sector, a page, two, many; more than the drive takes in a command (128 KiB).
    let lengths = [512, 4096, 6144, 8192, 12_288, 131_072, 131_584, 1 << 20];
    let mut bench = attach("data/1", 1 << 20, &["simulated"]).unwrap();
    for (number, length) in (1_u8..).zip(lengths) {
        let offset = (u64::from(number) << 21) + 1536;
        for (at, byte) in (0_u8..251).cycle().zip(bench.slot(1, length)) {
            *byte = at ^ number;
        }
        assert_eq!(bench.act(Verb::Write, 1, offset, length), i64::from(length));
        bench.slot(2, length).fill(0);
        assert_eq!(bench.act(Verb::Read, 2, offset, length), i64::from(length));
        let written = bench.slot(1, length).to_vec();
        assert!(bench.slot(2, length) == written, "{length} bytes");
        // What lies behind is as it was.
        assert_eq!(
            bench.act(Verb::Read, 2, offset + u64::from(length), 512),
            512
        );
        assert!(
            bench.slot(2, 512).iter().all(|byte| *byte == 0),
            "{length} bytes"
        );
    }
    assert_eq!(bench.act(Verb::Sync, 0, 0, 0), 0);
    assert_eq!(bench.act(Verb::Trim, 0, 4096, 4096), 4096);
    assert_eq!(bench.act(Verb::Read, 0, 100, 512), -i64::from(libc::EINVAL));
    assert_eq!(bench.warnings.list(), []);
}

#[test]
fn a_status_of_the_drive_is_an_error_with_its_words() {
    let mut bench = attach("status/1", 4096, &["simulated"]).unwrap();
    let end = 64 << 20;
    assert_eq!(bench.act(Verb::Read, 0, end - 4096, 4096), 4096);
    assert_eq!(bench.act(Verb::Read, 0, end, 4096), -i64::from(libc::EIO));
    let [warning] = &bench.warnings.list()[..] else {
        panic!("{:?}", bench.warnings.list())
    };
    assert!(
        warning.cause.contains("block out of range (status 0h/80h)"),
        "{}",
        warning.cause
    );
}

#[test]
fn several_workers_have_queues_of_their_own_on_one_drive() {
    let mut benches: Vec<Bench> = (0..3)
        .map(|_| attach("several/1", 4096, &["simulated"]).unwrap())
        .collect();
    for round in 0..5000_u64 {
        for (number, bench) in (0..).zip(&mut benches) {
            let offset = (round % 7 * 3 + number) * 4096;
            let mark = u8::try_from(round % 251).unwrap();
            bench.slot(0, 4096).fill(mark);
            assert_eq!(bench.act(Verb::Write, 0, offset, 4096), 4096);
            bench.slot(1, 4096).fill(255);
            assert_eq!(bench.act(Verb::Read, 1, offset, 4096), 4096);
            assert!(bench.slot(1, 4096).iter().all(|byte| *byte == mark));
        }
    }
    // A pair that was given back is had again: the drive has 16.
    for _ in 0..40 {
        drop(benches.pop());
        benches.push(attach("several/1", 4096, &["simulated"]).unwrap());
    }
}

#[test]
fn a_full_queue_takes_no_more_until_ends_are_taken() {
    let mut bench = attach("full/1", 256 << 10, &["simulated"]).unwrap();
    for slot in 0..SLOTS {
        let op = bench.op(Verb::Read, slot, 0, 256 << 10);
        assert_eq!(bench.engine.submit(slot, &op), Submit::Queued);
    }
    let op = bench.op(Verb::Read, 0, 0, 512);
    assert_eq!(bench.engine.submit(0, &op), Submit::Full);
    assert_eq!(bench.engine.commit().unwrap(), SLOTS);
    let mut slots: Vec<u32> = (0..SLOTS).map(|_| bench.end().unwrap().slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2, 3]);
}

#[test]
fn a_drive_that_ends_nothing_is_given_up() {
    let mut bench = attach("hang/1", 4096, &["simulated"]).unwrap();
    let Board::Simulated(drive) = &*bench.engine.drive.board else {
        panic!("a simulated drive")
    };
    drive.hang();
    bench.engine.patience = Duration::from_millis(50);
    let op = bench.op(Verb::Read, 0, 0, 4096);
    assert_eq!(bench.engine.submit(0, &op), Submit::Queued);
    bench.engine.commit().unwrap();
    let error = bench.end().unwrap_err();
    assert!(error.to_string().contains("is given up"), "{error}");
    assert!(bench.engine.drive.is_lost());
}

#[test]
fn what_cannot_work_is_refused() {
    let why = |name: &str, stride, settings: &[&str]| {
        let refused = attach(name, stride, settings).err().unwrap();
        refused.to_string()
    };
    let allowed = why("0000:01:00.0/1", 4096, &[]);
    assert!(allowed.contains("--takeover"), "{allowed}");
    for name in ["/dev/nvme0n1", "x", "x/y"] {
        let said = why(name, 4096, &["simulated"]);
        assert!(said.contains("no namespace of a drive"), "{said}");
    }
    // 4 slots of 2048 commands.
    let long = why("long/1", 256 << 20, &["simulated"]);
    assert!(
        long.contains("a queue of the drive has 4096 entries, and 8193"),
        "{long}"
    );
}

//! The channels of the emulated card: what they hold, what they take, and each fault.

use weir_schema::Setting;
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use super::super::{SlotMemory, Warnings};
use super::*;
use crate::op::Buffer;
use crate::source::SlotBuffers;

const BLOCK: u32 = 4096;
const SLOTS: u32 = 4;
const AT: u64 = BLOCK as u64;

/// A worker on channels, with a buffer for each slot.
struct Bench {
    engine: DmaEmu,
    buffers: SlotBuffers,
}

impl Bench {
    fn new(cards: &EmulatedCards, names: &[&str], settings: &[(&str, Setting)]) -> Self {
        let spec = BufferSpec::private(Bytes(u64::from(BLOCK * SLOTS)));
        let buffers = SlotBuffers::new(AlignedBuf::new(&spec).unwrap(), BLOCK, None, false);
        let engine = DmaEmu::attach(EngineSetup {
            targets: Vec::new(),
            files: Vec::new(),
            names: names.iter().map(ToString::to_string).collect(),
            depth: SLOTS,
            memory: SlotMemory::of(&buffers, SLOTS),
            choice: EngineChoice::with(NAME, settings),
            warnings: Warnings::default(),
            cards: cards.clone(),
            sessions: crate::engine::kernel::KernelSessions::default(),
            mappings: crate::engine::Mappings::default(),
            streams: weir_run::generate::Streams::new(1, 0),
        });
        Self {
            engine: engine.unwrap(),
            buffers,
        }
    }

    /// A channel of the card `c`.
    fn on_card(cards: &EmulatedCards, faults: &str) -> Self {
        let mut settings = vec![("emu_shared", text("c"))];
        if !faults.is_empty() {
            settings.push(("emu_fault", text(faults)));
        }
        Self::new(cards, &["ch"], &settings)
    }

    fn op(&self, verb: Verb, slot: u32, offset: u64) -> BlockOp {
        let start = self.buffers.memory().as_ptr();
        BlockOp {
            offset,
            buffer: Buffer(start.wrapping_add((slot * BLOCK) as usize)),
            length: BLOCK,
            target: 0,
            range: 0,
            range_flags: 0,
            verb,
            priority: 0,
        }
    }

    fn hand_over(&mut self, slot: u32, op: &BlockOp) {
        assert_eq!(self.engine.submit(slot, op), Submit::Queued);
        assert_eq!(self.engine.commit().unwrap(), 1);
    }

    fn wait(&mut self) -> i64 {
        let one = Wait {
            at_least: 1,
            at_most: 1,
            timeout_ns: None,
        };
        let mut result = None;
        while result.is_none() {
            self.engine.reap(one, |c| result = Some(c.result)).unwrap();
        }
        result.unwrap()
    }

    fn write(&mut self, offset: u64, byte: u8) -> i64 {
        let op = self.op(Verb::Write, 0, offset);
        super::super::calls::memory(op).fill(byte);
        self.hand_over(0, &op);
        self.wait()
    }

    /// Result and data of a read into a buffer full of 0xee.
    fn read(&mut self, offset: u64) -> (i64, Vec<u8>) {
        let op = self.op(Verb::Read, 1, offset);
        super::super::calls::memory(op).fill(0xee);
        self.hand_over(1, &op);
        (self.wait(), super::super::calls::memory(op).to_vec())
    }
}

fn text(word: &str) -> Setting {
    Setting::Text(word.to_owned())
}

fn full(byte: u8) -> (i64, Vec<u8>) {
    (i64::from(BLOCK), vec![byte; BLOCK as usize])
}

#[test]
fn channels_of_one_card_share_its_memory_and_others_have_their_own() {
    let cards = EmulatedCards::default();
    let mut writer = Bench::new(&cards, &["h2c"], &[("emu_shared", text("c"))]);
    let mut reader = Bench::new(&cards, &["c2h"], &[("emu_shared", text("c"))]);
    let mut other = Bench::new(&cards, &["h2c"], &[]);
    assert_eq!(writer.write(63 << 30, 7), i64::from(BLOCK));
    assert_eq!(reader.read(63 << 30), full(7));
    assert_eq!(reader.read(0), full(0));
    assert_eq!(other.read(63 << 30), full(0));
}

#[test]
fn a_one_way_channel_refuses_the_other_way_with_einval() {
    let cards = EmulatedCards::default();
    let refused = -i64::from(libc::EINVAL);
    let mut down = Bench::new(&cards, &["a"], &[("emu_dir", text("h2c"))]);
    let mut up = Bench::new(&cards, &["a"], &[("emu_dir", text("c2h"))]);
    assert_eq!((down.read(0).0, up.write(0, 1)), (refused, refused));
    assert_eq!((down.write(0, 1), up.read(0)), (i64::from(BLOCK), full(1)));
}

#[test]
fn the_card_ends_at_its_size() {
    let cards = EmulatedCards::default();
    let size = i64::from(BLOCK) + 512;
    let mut bench = Bench::new(&cards, &["a"], &[("emu_size", Setting::Number(size))]);
    assert_eq!(bench.write(0, 1), i64::from(BLOCK));
    assert_eq!(bench.write(AT, 1), 512);
    assert_eq!(bench.read(AT).0, 512);
    assert_eq!(bench.read(2 * AT).0, 0);
    assert_eq!(bench.write(2 * AT, 1), -i64::from(libc::ENOSPC));
}

#[test]
fn nothing_completes_before_latency_and_bandwidth_allow() {
    let cards = EmulatedCards::default();
    let settings = [
        ("emu_latency", Setting::Number(2000)),
        ("emu_bw", Setting::Number(i64::from(BLOCK) * 500)),
    ];
    let mut bench = Bench::new(&cards, &["a"], &settings);
    let start = Instant::now();
    for slot in 0..3 {
        let op = bench.op(Verb::Read, slot, 0);
        bench.hand_over(slot, &op);
    }
    for nth in 1..=3 {
        bench.wait();
        // Each keeps the channel for 2 ms; the latencies overlap.
        assert!(start.elapsed() >= Duration::from_millis(2 * nth + 2));
    }
}

#[test]
fn two_workers_on_one_channel_share_its_bandwidth() {
    let cards = EmulatedCards::default();
    let settings = [("emu_bw", Setting::Number(i64::from(BLOCK) * 500))];
    let mut one = Bench::new(&cards, &["a"], &settings);
    let mut two = Bench::new(&cards, &["a"], &settings);
    let start = Instant::now();
    for bench in [&mut one, &mut two] {
        let op = bench.op(Verb::Read, 0, 0);
        bench.hand_over(0, &op);
    }
    two.wait();
    assert!(start.elapsed() >= Duration::from_millis(4));
    one.wait();
}

#[test]
fn a_full_queue_says_so_and_a_look_waits_for_nothing() {
    let cards = EmulatedCards::default();
    let mut bench = Bench::new(
        &cards,
        &["a"],
        &[("emu_latency", Setting::Number(30_000_000))],
    );
    for slot in 0..SLOTS {
        let op = bench.op(Verb::Read, slot, 0);
        bench.hand_over(slot, &op);
    }
    let op = bench.op(Verb::Read, 0, 0);
    assert_eq!(bench.engine.submit(0, &op), Submit::Full);
    for (at_least, timeout_ns) in [(0, None), (1, Some(1_000_000))] {
        let look = Wait {
            at_least,
            at_most: 1,
            timeout_ns,
        };
        let reaped = bench.engine.reap(look, |_| panic!("too early"));
        assert_eq!(reaped.unwrap(), 0);
    }
}

#[test]
fn a_flip_changes_one_bit_once_and_leaves_the_buffer_alone() {
    for on_write in [true, false] {
        let cards = EmulatedCards::default();
        let fault = "flip@5000";
        let mut writer = Bench::on_card(&cards, if on_write { fault } else { "" });
        // A fault that every job is told strikes once, not back again.
        let mut reader = Bench::on_card(&cards, fault);
        writer.write(AT, 2);
        let op = writer.op(Verb::Write, 0, AT);
        assert!(super::super::calls::memory(op).iter().all(|&b| b == 2));
        let (_, data) = reader.read(AT);
        let bad: Vec<_> = data.iter().enumerate().filter(|(_, b)| **b != 2).collect();
        assert_eq!(bad, [(5000 - 4096, &3)], "on write: {on_write}");
    }
}

#[test]
fn a_misplaced_block_holds_its_neighbours_data() {
    for on_write in [true, false] {
        let cards = EmulatedCards::default();
        let mut writer = Bench::on_card(&cards, if on_write { "misplaced@4096" } else { "" });
        writer.write(0, 1);
        writer.write(AT, 2);
        let mut reader = Bench::on_card(&cards, if on_write { "" } else { "misplaced@4096" });
        assert_eq!(reader.read(AT), full(1), "on write: {on_write}");
        assert_eq!(reader.read(AT), full(if on_write { 1 } else { 2 }));
    }
    let cards = EmulatedCards::default();
    let mut first = Bench::on_card(&cards, "misplaced@0");
    first.write(AT, 2);
    assert_eq!(first.read(0), full(2));
}

#[test]
fn a_stale_block_keeps_what_was_there() {
    let cards = EmulatedCards::default();
    Bench::on_card(&cards, "").write(0, 1);
    assert_eq!(
        Bench::on_card(&cards, "stale@0").write(0, 2),
        i64::from(BLOCK)
    );
    assert_eq!(Bench::on_card(&cards, "").read(0), full(1));
    assert_eq!(Bench::on_card(&cards, "stale@100").read(0), full(0xee));
}

#[test]
fn a_short_operation_ends_in_the_middle() {
    let cards = EmulatedCards::default();
    let mut bench = Bench::on_card(&cards, "short@2");
    assert_eq!(bench.write(0, 1), i64::from(BLOCK));
    assert_eq!(bench.write(AT, 1), i64::from(BLOCK / 2));
    assert_eq!(bench.write(AT + u64::from(BLOCK / 2), 1), 0);
    assert_eq!(bench.write(AT, 1), i64::from(BLOCK));
}

#[test]
fn an_operation_by_number_fails_on_each_channel() {
    let cards = EmulatedCards::default();
    let fault = [("emu_shared", text("c")), ("emu_fault", text("eio@2"))];
    for name in ["a", "b"] {
        let mut bench = Bench::new(&cards, &[name], &fault);
        let answers = [1, 2, 3].map(|_| bench.write(0, 1));
        let good = i64::from(BLOCK);
        assert_eq!(answers, [good, -i64::from(libc::EIO), good]);
    }
}

#[test]
fn a_stall_holds_the_channel_until_its_end() {
    let cards = EmulatedCards::default();
    let mut bench = Bench::on_card(&cards, "stall@2:20");
    bench.write(0, 1);
    let start = Instant::now();
    assert_eq!(bench.write(0, 1), i64::from(BLOCK));
    assert!(start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn faults_that_struck_nothing_are_known() {
    let cards = EmulatedCards::default();
    let fault = "flip@0,flip@1m,eio@2";
    let mut bench = Bench::on_card(&cards, fault);
    bench.write(0, 1);
    let settings = [("emu_shared", text("c")), ("emu_fault", text(fault))];
    let choice = EngineChoice::with(NAME, &settings);
    let idle = idle_faults(&choice, &["ch".to_owned()], &cards);
    assert_eq!(idle, ["flip@1m", "eio@2"]);
}

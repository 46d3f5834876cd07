//! The source by itself: what it numbers, and when it stops drawing.

use std::sync::OnceLock;

use weir_schema::sample::{JobSample, block_job};
use weir_schema::{Mix, Verify, VerifyMethod};
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use super::*;
use crate::source::build::{Recipe, VariedSource, WorkLimits, build_varied};
use crate::source::{BetweenPasses, Extent, SlotBuffers};
use crate::verify::run_mark::RunMark;

const BLOCK: u64 = 4096;
const REGION: u64 = 1 << 40;

/// A source of writes that are verified, and where it leaves word of them.
fn source(only: bool) -> (Box<VerifiedSource>, std::sync::Arc<OnceLock<EarlierWrites>>) {
    let mut job = block_job("a");
    let workload = job.block_work();
    workload.mix = Mix::only(Kind::Write);
    workload.verify = Some(Verify {
        only,
        ..Verify::by(VerifyMethod::Crc32c)
    });
    let memory = AlignedBuf::new(&BufferSpec::private(Bytes(2 * BLOCK))).unwrap();
    let written = std::sync::Arc::default();
    let recipe = Recipe {
        workload,
        extents: &[Extent {
            start: 0,
            length: REGION,
        }],
        seed: 1,
        worker: 0,
        limits: WorkLimits {
            bytes: REGION,
            operations: u64::MAX,
            pass_bytes: None,
        },
        rates: None,
        priorities: None,
        findings: None,
        buffers: SlotBuffers::new(memory, 4096, None, false),
        passes: BetweenPasses::default(),
        verification: Some(Verification {
            mark: RunMark {
                written: None,
                required: None,
            },
            findings: std::sync::Arc::default(),
            names: vec!["target".to_owned()],
            directory: "/".into(),
            passes: 1,
            goes_on: false,
            is_endless: false,
            earlier: None,
            written: std::sync::Arc::clone(&written),
        }),
        recorded: None,
    };
    let VariedSource::Verified(source) = build_varied(recipe).unwrap() else {
        panic!("another source");
    };
    (source, written)
}

#[test]
fn lost_writes_have_their_own_numbers_when_stamps_have_started_over() {
    let (mut source, written) = source(false);
    let before = u64::from(u32::MAX) - 1;
    source.writes = before;
    source.next_stamp = Stamp(u32::MAX);
    for _ in 0..3 {
        let op = source.next(0).unwrap();
        source.completed(0, &op, false);
    }
    let _in_flight = source.next(1).unwrap();
    assert_eq!(source.next_stamp, Stamp(4));
    drop(source);
    let word = written.get().unwrap();
    assert_eq!(word.writes, before + 4);
    assert_eq!(word.lost, [0, 1, 2, 3].map(|n| before + n));
}

#[test]
fn drawing_for_checks_alone_ends_when_the_worker_is_to_end() {
    let (mut source, _) = source(true);
    source.checkers.findings().set_end_due();
    let op = source.next(0).unwrap();
    assert_eq!((op.verb, op.offset), (Verb::Read, 0));
    assert!(source.writes < DRAWN_AT_ONCE);
    assert!(source.checkers.findings().is_unchecked());
}

//! Recorded patterns, as `read_iolog` reads them.
//!
//! The first byte says how the pattern is to be carried out again, the rest is its text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_block::recorded::read;
use weir_schema::{Kind, Replay};
use weir_units::Bytes;

fuzz_target!(|data: &[u8]| {
    let Some((how, text)) = data.split_first() else {
        return;
    };
    let rule = rule(*how);
    match read(text, &rule) {
        Err(refused) => {
            let lines = text.split(|byte| *byte == b'\n').count();
            assert!((1..=lines).contains(&refused.line), "{refused}");
            assert!(!refused.reason.is_empty());
        }
        Ok(pattern) => {
            assert!(!pattern.operations.is_empty());
            assert_eq!(pattern.ends().len(), pattern.files.len());
            let mut before = 0;
            for op in &pattern.operations {
                assert!((op.file as usize) < pattern.files.len());
                assert!(op.offset + u64::from(op.length) <= i64::MAX.unsigned_abs());
                assert_eq!(op.length == 0, op.verb.kind() == Kind::Sync);
                assert!(!rule.leave_out.contains(&op.verb.kind()));
                assert!(op.at_ns >= before && !(rule.no_pauses && op.at_ns > 0));
                before = op.at_ns;
            }
            if let Some(onto) = &rule.onto {
                assert_eq!(pattern.files, [onto.clone()]);
            }
        }
    }
});

fn rule(how: u8) -> Replay {
    let bit = |n: u8| how >> n & 1 == 1;
    Replay {
        path: String::new(),
        no_pauses: bit(0),
        onto: bit(1).then(|| "onto".to_owned()),
        divide_offsets: if bit(2) { 3 } else { 1 },
        align_bytes: Bytes(if bit(3) { 4096 } else { 0 }),
        rate_percent: if bit(4) { 1 } else { 100 },
        leave_out: if bit(5) {
            vec![Kind::Write, Kind::Sync]
        } else {
            Vec::new()
        },
        in_pieces: false,
    }
}

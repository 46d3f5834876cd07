//! Speed of checksums.
//!
//! In: methods. Out: a line for each on standard output.

#![expect(clippy::cast_precision_loss, reason = "speeds for the eye")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use weir_schema::VerifyMethod;

use crate::output;
use crate::runners::checksum;

/// Checksums are worked out over blocks of this size.
const BLOCK: usize = 128 << 10;
/// Each is measured for this long.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

/// A line with the speed of each.
pub(crate) fn run(methods: &[VerifyMethod]) -> u8 {
    let block: Vec<u8> = (0_u8..=250).cycle().take(BLOCK).collect();
    let mut good = true;
    for method in methods {
        let begun = Instant::now();
        let mut blocks = 0_u32;
        while begun.elapsed() < LONG_ENOUGH {
            black_box(checksum(*method, black_box(&block)));
            blocks += 1;
        }
        let mib = f64::from(blocks) * BLOCK as f64 / f64::from(1 << 20);
        let speed = mib / begun.elapsed().as_secs_f64();
        let name = method.name();
        let gap = if name.len() < 7 { "\t\t" } else { "\t" };
        good &= output::print(&format!("{name}:{gap}{speed:8.2} MiB/sec\n"));
    }
    u8::from(!good)
}

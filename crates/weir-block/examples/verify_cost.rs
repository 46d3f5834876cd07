//! Prints what generating, marking and checking cost on this machine, for each method.
//!
//! `cargo run --release -p weir-block --example verify_cost [INTERVAL]`

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::error::Error;
use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use weir_block::verify::{Expected, Marker, Stamp};
use weir_schema::{Verify, VerifyMethod, VerifyPattern};

const BLOCK: usize = 1 << 20;
/// Blocks in a round.
const BLOCKS: u32 = 128;
/// Rounds, of which the best counts.
const ROUNDS: u32 = 5;

/// Each method with what fio 3.33 takes to check it, where that is known, in CPU seconds per GiB.
const METHODS: [(VerifyMethod, Option<f64>); 18] = [
    (VerifyMethod::Null, None),
    (VerifyMethod::Pattern, None),
    (VerifyMethod::PatternHeader, None),
    (VerifyMethod::Meta, None),
    (VerifyMethod::Crc32c, Some(0.07)),
    (VerifyMethod::Crc32, None),
    (VerifyMethod::Crc64, Some(2.1)),
    (VerifyMethod::Crc16, None),
    (VerifyMethod::Crc7, None),
    (VerifyMethod::Xxhash, Some(0.55)),
    (VerifyMethod::Md5, Some(1.42)),
    (VerifyMethod::Sha1, None),
    (VerifyMethod::Sha256, Some(3.0)),
    (VerifyMethod::Sha512, None),
    (VerifyMethod::Sha3_224, None),
    (VerifyMethod::Sha3_256, None),
    (VerifyMethod::Sha3_384, None),
    (VerifyMethod::Sha3_512, None),
];

fn main() -> Result<(), Box<dyn Error>> {
    let interval = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 1 << 20,
    };
    println!("intervals of {interval} bytes in blocks of 1 MiB; CPU seconds per GiB");
    println!("method             write    check   of fio's");
    for (method, peer) in METHODS {
        let marker = Marker::new(&verify(method), interval, 1, Some(1))?;
        let mut buffer = vec![0; BLOCK];
        let stamp = Stamp::default();
        let write = cost(|| marker.write(black_box(&mut buffer), stamp));
        marker
            .check(&buffer, Expected::default())
            .map_err(|finding| format!("{finding:?}"))?;
        let check = cost(|| {
            let checked = marker.check(black_box(&buffer), Expected::default());
            assert!(black_box(checked).is_ok(), "what was written is good");
        });
        let share = peer.map_or(String::new(), |peer| format!("{:8.3}", check / peer));
        println!(
            "{:<15} {write:8.3} {check:8.3} {share}",
            format!("{method:?}")
        );
    }
    Ok(())
}

/// CPU seconds per GiB, the best of some rounds.
fn cost(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = cpu_seconds();
        for _ in 0..BLOCKS {
            work();
        }
        best = best.min(cpu_seconds() - start);
    }
    best * 1024.0 / f64::from(BLOCKS)
}

/// CPU time of this thread.
#[expect(clippy::cast_precision_loss, reason = "a few seconds")]
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn verify(method: VerifyMethod) -> Verify {
    let patterned = matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader);
    Verify {
        pattern: patterned.then(|| VerifyPattern {
            bytes: b"weir".to_vec(),
            offsets_at: Vec::new(),
        }),
        ..Verify::by(method)
    }
}

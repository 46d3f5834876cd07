//! Cost of one record and of the analysis. Prints nanoseconds per value for the recorder with and
//! without the sum of squares, beside the bare loop that makes the values. With one value all fall
//! into one bucket, where each record waits for the one before.
//!
//! `cargo run --release -p weir-stats --example record_cost`
#![allow(clippy::print_stdout, reason = "an example's output")]

use std::hint::black_box;
use std::time::Instant;

use weir_stats::{Batch, BatchStore, Histogram, Recorder};
use weir_units::{Bytes, Nanos};

const VALUES: u32 = 50_000_000;

/// Latencies that hop over some thousand nanoseconds, made in about a nanosecond.
fn each_value(mut take: impl FnMut(u64)) -> f64 {
    let mut state = 1_u64;
    let start = Instant::now();
    for _ in 0..VALUES {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        take(70_000 + (state >> 50));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(VALUES)
}

/// One symbol, so that the machine code is easy to look at.
#[inline(never)]
fn record_one(recorder: &Recorder, value: u64) {
    recorder.record(value);
}

fn analysis_cost(snapshot: &Histogram) -> Result<f64, Box<dyn std::error::Error>> {
    let mut store = BatchStore::new(Nanos::from_millis(100), 1);
    let mut whole = Histogram::new();
    for _ in 0..40 {
        whole.merge(snapshot)?;
        store.push(Batch {
            stretches: 1,
            length_ns: Nanos::from_millis(100),
            operations: snapshot.count(),
            bytes: Bytes(0),
            histogram: snapshot.clone(),
        })?;
    }
    let start = Instant::now();
    black_box(store.percentiles(&whole, &[50.0, 99.0, 99.9]));
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plain = Recorder::<false>::new();
    let squares = Recorder::<true>::new();
    record_one(&plain, black_box(1));
    let bare = each_value(|value| {
        black_box(value);
    });
    let with_plain = each_value(|value| plain.record(value));
    let one_bucket = each_value(|value| plain.record(70_000 + (value >> 60)));
    let with_squares = each_value(|value| squares.record(value));
    println!("bare loop              {bare:.2} ns per value");
    println!("with record            {with_plain:.2} ns per value");
    println!("with record, squares   {with_squares:.2} ns per value");
    println!("with record, one value {one_bucket:.2} ns per value");
    let analysis = analysis_cost(&plain.snapshot())?;
    println!("3 percentiles of 40 batches with intervals {analysis:.2} ms");
    Ok(())
}

//! Cost of merging: the results of many simulated ranks go up the tree within one process.
//!
//! A rank's result is three histograms in their stored, sparse form and one line of summary.
//! Prints, by default for 10000 ranks, the time that rank 0 spends, the longest that any rank
//! does, and that of all together; messages take no time here.
//!
//! `cargo run --release -p weir-world --example merge_cost [RANKS]`
#![allow(clippy::print_stdout, reason = "an example's output")]

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::time::{Duration, Instant};

use weir_stats::Histogram;
use weir_world::{Collectives, World, WorldError};

const RANKS: u32 = 10_000;
const HISTOGRAMS: usize = 3;
/// Values in each histogram of a rank.
const VALUES: u32 = 2_000;

/// The results sent: histograms, which merge, and a line for each rank, which stays.
type Results = (Vec<Histogram>, Vec<Line>);

/// Rank, operations, their mean in nanoseconds.
type Line = (u32, u64, f64);

/// Messages by sender and receiver.
type Post = RefCell<HashMap<(u32, u32), VecDeque<Vec<u8>>>>;

/// A rank whose messages arrive at once. Ranks run one after the other, senders first.
struct Simulated<'a> {
    rank: u32,
    size: u32,
    post: &'a Post,
}

impl World for Simulated<'_> {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: u32, bytes: &[u8], _until: Instant) -> Result<(), WorldError> {
        let mut post = self.post.borrow_mut();
        let queue = post.entry((self.rank, to)).or_default();
        queue.push_back(bytes.to_vec());
        Ok(())
    }

    fn receive(&self, from: u32, _until: Instant) -> Result<Vec<u8>, WorldError> {
        let mut post = self.post.borrow_mut();
        let queue = post.get_mut(&(from, self.rank));
        queue.and_then(VecDeque::pop_front).ok_or(WorldError::Late {
            peer: from,
            seconds: 0,
        })
    }
}

/// Latencies between one and some thousand microseconds, most of them in the middle.
fn result_of(rank: u32) -> Results {
    let mut state = u64::from(rank) * 2 + 1;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    let histograms: Vec<Histogram> = (0..HISTOGRAMS)
        .map(|_| {
            let mut histogram = Histogram::new();
            for _ in 0..VALUES {
                let shift = draw() % 6 + draw() % 6;
                histogram.record((1_000 + draw() % 1_000) << shift);
            }
            histogram
        })
        .collect();
    let mean = histograms[0].mean().unwrap_or(0.0);
    (histograms, vec![(rank, u64::from(VALUES), mean)])
}

/// Both results in one, as bytes again.
fn merge(mine: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (mut histograms, mut lines): Results = serde_json::from_slice(mine)?;
    let (other_histograms, other_lines): Results = serde_json::from_slice(theirs)?;
    for (histogram, other) in histograms.iter_mut().zip(&other_histograms) {
        histogram.merge(other)?;
    }
    lines.extend(other_lines);
    Ok(serde_json::to_vec(&(histograms, lines))?)
}

/// Time per rank, and what rank 0 holds in the end.
fn climb(ranks: u32) -> Result<(Vec<Duration>, Vec<u8>), Box<dyn Error>> {
    let results = (0..ranks)
        .map(|rank| serde_json::to_vec(&result_of(rank)))
        .collect::<Result<Vec<_>, _>>()?;
    let sent: usize = results.iter().map(Vec::len).sum();
    println!("a rank sends  {:9} bytes", sent / results.len().max(1));
    let post = Post::default();
    let mut times = Vec::new();
    let mut last = None;
    for (rank, bytes) in (0..ranks).zip(results).rev() {
        let world = Simulated {
            rank,
            size: ranks,
            post: &post,
        };
        let begun = Instant::now();
        let mut merge = |a: Vec<u8>, b: Vec<u8>| merge(&a, &b).map_err(|e| e.to_string());
        last = world.reduce(bytes, &mut merge, Duration::from_secs(1))?;
        times.push(begun.elapsed());
    }
    Ok((times, last.ok_or("rank 0 got nothing")?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let wish = std::env::args().nth(1);
    let ranks = wish.map_or(Ok(RANKS), |word| word.parse())?;
    let (times, bytes) = climb(ranks)?;
    let (histograms, lines): Results = serde_json::from_slice(&bytes)?;
    let expected = u64::from(ranks) * u64::from(VALUES);
    let is_whole = lines.iter().map(|line| line.0).eq(0..ranks)
        && histograms.iter().all(|h| h.count() == expected);
    if !is_whole {
        return Err("something was lost on the way".into());
    }
    let show = |what: &str, time: Duration| {
        println!("{what:13} {:9.1} ms", time.as_secs_f64() * 1e3);
    };
    println!("rank 0 holds  {:9} bytes of {ranks} ranks", bytes.len());
    show("rank 0", times.last().copied().unwrap_or_default());
    show(
        "slowest rank",
        times.iter().max().copied().unwrap_or_default(),
    );
    show("all ranks", times.iter().sum());
    Ok(())
}

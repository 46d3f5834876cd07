//! A card with four DMA channels, emulated by one file in memory with a link
//! for each node.
//!
//! The jobs are those of a card's owner: four workers, each with its channel and
//! its quarter of the memory. CPU time per GiB of large blocks, rate of small
//! ones, and how long after the last of one step of a sweep the next one starts.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::side::{self, Side};
use super::table::Row;
use super::{Case, Metric, Target, child, in_turns};
use crate::ab;

const MIB: u64 = 1 << 20;
const GIB: f64 = (1_u64 << 30) as f64;
/// Memory of the card.
const MEMORY: u64 = 256 * MIB;
const CHANNELS: u64 = 4;
/// A large block.
const BLOCK: usize = 1 << 20;
/// Block sizes of a sweep.
const SWEEP: [&str; 8] = ["4k", "8k", "16k", "32k", "64k", "256k", "1m", "2m"];

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let large = [("card-1M-write", "write"), ("card-1M-read", "read")];
    let large = large.into_iter().map(|(name, kind)| Case {
        name: name.to_owned(),
        run: Box::new(move |rounds| large_blocks(name, kind, rounds)),
    });
    let small = Case {
        name: "card-4k".to_owned(),
        run: Box::new(small_blocks),
    };
    let steps = Case {
        name: "card-steps".to_owned(),
        run: Box::new(steps),
    };
    large.chain([small, steps])
}

fn large_blocks(name: &str, kind: &str, rounds: usize) -> Result<Vec<Row>> {
    let card = Card::new()?;
    let options = card.jobs(&format!("--rw={kind} --bs=1m --io_size=1g"));
    side::show(&options)?;
    let metric = Metric {
        name: "user + system time",
        unit: "s per GiB",
        target: Target::AtMost(0.8),
    };
    let start = |side: Side| {
        let one = card.jobs(&format!("--rw={kind} --bs=1m --io_size=1m"));
        let runs: Result<Vec<f64>> = (0..5)
            .map(|_| Ok(side.run(&one)?.ended.cpu.as_secs_f64()))
            .collect();
        Ok::<_, anyhow::Error>(ab::median(runs?))
    };
    let (weir_start, fio_start) = (start(Side::Weir)?, start(Side::Fio)?);
    let cpu = |side: Side, start: f64| {
        let done = side.run(&options)?;
        let seconds = done.ended.cpu.as_secs_f64() - start;
        Ok(vec![seconds * GIB / done.bytes as f64])
    };
    let mut rows = in_turns(
        name,
        &[metric],
        rounds,
        &mut || cpu(Side::Weir, weir_start),
        &mut || cpu(Side::Fio, fio_start),
    )?;
    let beside = Metric {
        name: "the same beside bare calls",
        target: Target::None,
        ..metric
    };
    rows.extend(in_turns(
        name,
        &[beside],
        rounds,
        &mut || cpu(Side::Weir, weir_start),
        &mut || Ok(vec![card.bare(kind == "write")?]),
    )?);
    Ok(rows)
}

fn small_blocks(rounds: usize) -> Result<Vec<Row>> {
    let card = Card::new()?;
    let options = card.jobs("--rw=read --bs=4k --time_based=1 --runtime=1");
    side::show(&options)?;
    let metric = Metric {
        name: "rate",
        unit: "operations/s",
        target: Target::AtLeast(1.0),
    };
    in_turns(
        "card-4k",
        &[metric],
        rounds,
        &mut || Ok(vec![Side::Weir.run(&options)?.iops]),
        &mut || Ok(vec![Side::Fio.run(&options)?.iops]),
    )
}

/// CPU time of this thread.
fn thread_seconds() -> Result<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text
        .split_whitespace()
        .next()
        .context("an empty schedstat")?;
    Ok(nanos.parse::<f64>()? / 1e9)
}

/// The longest time between two steps, as weir's own result has it; fio's output does not tell.
fn steps(rounds: usize) -> Result<Vec<Row>> {
    let card = Card::new()?;
    let file = card.sweep()?;
    let argv = [
        &side::text(&side::weir())?,
        "run",
        "--format",
        "json",
        &file,
    ]
    .map(str::to_owned);
    println!("$ {}", argv.join(" "));
    let gaps: Result<Vec<f64>> = (0..rounds)
        .map(|_| longest_gap(&child::run(&argv)?.stdout))
        .collect();
    let metric = Metric {
        name: "longest gap between steps",
        unit: "ms, of at most 5",
        target: Target::AtMost(1.0),
    };
    Ok(vec![Row::counted(
        "card-steps",
        &metric,
        ab::median(gaps?),
        5.0,
    )])
}

/// Milliseconds from the end of one step, four jobs, to the start of the next.
fn longest_gap(result: &str) -> Result<f64> {
    let result: Value = serde_json::from_str(result).context("weir's result")?;
    let groups = result["groups"].as_array().context("no `groups`")?;
    let jobs: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["jobs"].as_array().into_iter().flatten())
        .collect();
    let edge = |jobs: &[&Value], which: &str| -> Result<Vec<f64>> {
        jobs.iter()
            .map(|job| job["span"][which].as_f64().context("a job without a span"))
            .collect()
    };
    let mut longest: f64 = 0.0;
    for (step, next) in jobs.chunks(4).zip(jobs.chunks(4).skip(1)) {
        let end = edge(step, "end_ns")?.into_iter().fold(0.0, f64::max);
        let start = edge(next, "start_ns")?
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        longest = longest.max((start - end) / 1e6);
    }
    Ok(longest)
}

/// The file and its links, removed when the case is over.
struct Card {
    folder: PathBuf,
}

impl Card {
    fn new() -> Result<Self> {
        let folder = PathBuf::from(format!("/dev/shm/weir-bench-card.{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let card = Self { folder };
        let memory = card.folder.join("memory");
        // Every page is there before the first run.
        let mut file = File::create(&memory)?;
        let block = vec![1; BLOCK];
        for _ in 0..MEMORY / BLOCK as u64 {
            file.write_all(&block)?;
        }
        for channel in 0..CHANNELS {
            for direction in ["h2c", "c2h"] {
                symlink(&memory, card.folder.join(format!("{direction}_{channel}")))?;
            }
        }
        Ok(card)
    }

    /// A group of one job per channel on its own quarter.
    fn jobs(&self, options: &str) -> String {
        let quarter = MEMORY / CHANNELS / MIB;
        let direction = if options.contains("--rw=write") {
            "h2c"
        } else {
            "c2h"
        };
        let mut argv = format!(
            "--ioengine=psync --thread=1 --group_reporting=1 --allow_file_create=0 \
             --size={quarter}m {options}"
        );
        for channel in 0..CHANNELS {
            let _ = write!(
                argv,
                " --name=ch{channel} --offset={}m --filename={}/{direction}_{channel}",
                channel * quarter,
                self.folder.display()
            );
        }
        argv
    }

    /// CPU seconds per GiB of nothing but the system calls of large blocks: what no tool that
    /// makes them can fall below.
    fn bare(&self, writes: bool) -> Result<f64> {
        let memory = self.folder.join("memory");
        let file = File::options().read(true).write(true).open(memory)?;
        let quarter = MEMORY / CHANNELS;
        let channel = |number: u64| -> Result<f64> {
            let mut block = vec![1; BLOCK];
            let before = thread_seconds()?;
            for at in (0..1 << 30).step_by(BLOCK) {
                let offset = number * quarter + at % quarter;
                if writes {
                    file.write_all_at(&block, offset)?;
                } else {
                    file.read_exact_at(&mut block, offset)?;
                }
            }
            Ok(thread_seconds()? - before)
        };
        std::thread::scope(|scope| {
            let channel = &channel;
            let threads: Vec<_> = (0..CHANNELS)
                .map(|number| scope.spawn(move || channel(number)))
                .collect();
            let mut seconds = 0.0;
            for thread in threads {
                let joined = thread.join();
                seconds += joined.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            }
            Ok(seconds / CHANNELS as f64)
        })
    }

    /// A job file that reads with one block size after the other.
    fn sweep(&self) -> Result<String> {
        let quarter = MEMORY / CHANNELS / MIB;
        let mut text = format!("[global]\nioengine=psync\nrw=read\nsize={quarter}m\n");
        for block in SWEEP {
            for channel in 0..CHANNELS {
                let wait = if channel == 0 { "stonewall\n" } else { "" };
                let _ = write!(
                    text,
                    "[{block}B]\n{wait}bs={block}\noffset={}m\nfilename={}/c2h_{channel}\n",
                    channel * quarter,
                    self.folder.display()
                );
            }
        }
        let file = self.folder.join("sweep.fio");
        fs::write(&file, text)?;
        side::text(&file)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // What cannot be removed is in the way of nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_lies_between_the_last_end_and_the_first_start() {
        let job = |start: u64, end: u64| {
            format!("{{\"span\":{{\"start_ns\":{start},\"end_ns\":{end}}}}}")
        };
        let step = |start: u64, end: u64| {
            let jobs = [(1, 0), (0, 5), (2, 9), (3, 7)];
            let jobs = jobs.map(|(late, early)| job(start + late, end - early));
            format!("{{\"jobs\":[{}]}}", jobs.join(","))
        };
        let (second, third) = (step(2_000_000, 3_000_000), step(6_500_000, 7_000_000));
        let result = format!("{{\"groups\":[{},{second},{third}]}}", step(0, 1_000_000));
        assert!((longest_gap(&result).unwrap() - 3.5).abs() < 1e-9);
    }
}

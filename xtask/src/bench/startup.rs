//! Start-up: from the start of the process to its end for a job of one block,
//! and the memory that its workers take, with 1 worker and with 64; for a job
//! that reads 1 MiB; for a file of 10,000 jobs that is only parsed.
//!
//! Each value is the mean (memory: the median) over a burst: one start is too
//! short for a steady figure.

use std::fmt::Write as _;

use anyhow::Result;

use super::side::{self, Side};
use super::table::Row;
use super::{Case, Metric, Target, child, in_turns};
use crate::ab;

const BURST: u32 = 5;

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let targets = [
        (1, Target::None, Target::None),
        (64, Target::AtMost(0.2), Target::AtMost(0.5)),
    ];
    let starts = targets.into_iter().map(|(workers, wall, memory)| Case {
        name: format!("start-{workers}"),
        run: Box::new(move |rounds| measure(workers, wall, memory, rounds)),
    });
    let small = Case {
        name: "start-1m".to_owned(),
        run: Box::new(small_job),
    };
    let parse = Case {
        name: "parse-10000".to_owned(),
        run: Box::new(parse),
    };
    starts.chain([small, parse])
}

/// A job of 1 MiB; weir is to take 30 ms, whatever fio takes.
fn small_job(rounds: usize) -> Result<Vec<Row>> {
    let options = "--name=bench --rw=read --bs=4k --size=1m --filename=/dev/shm/weir-bench.1m";
    side::show(options)?;
    let wall = |side: Side| Ok(1e3 * side.run(options)?.ended.wall.as_secs_f64());
    let rows = limited("start-1m", "wall time", "ms", 30.0, rounds, &wall);
    std::fs::remove_file("/dev/shm/weir-bench.1m")?;
    rows
}

/// A file of many sections; weir is to take 0.2 s, whatever fio takes.
fn parse(rounds: usize) -> Result<Vec<Row>> {
    let mut text = String::from("[global]\nioengine=null\nrw=randread\nsize=16m\n");
    for number in 0..10_000 {
        writeln!(text, "[job{number}]\nbs=4k\noffset={number}m\nstonewall")?;
    }
    let file = format!("{}/many.fio", super::FOLDER);
    std::fs::write(&file, text)?;
    let options = format!("--parse-only --max-jobs=10000 {file}");
    side::show(&options)?;
    let wall = |side: Side| Ok(child::run(&side.argv(&options)?)?.wall.as_secs_f64());
    limited("parse-10000", "wall time", "s", 0.2, rounds, &wall)
}

/// Both sides in turns, and weir's median beside a limit of its own.
pub(super) fn limited(
    case: &str,
    name: &'static str,
    unit: &'static str,
    limit: f64,
    rounds: usize,
    wall: &dyn Fn(Side) -> Result<f64>,
) -> Result<Vec<Row>> {
    let metric = |target| Metric { name, unit, target };
    let mut times = Vec::new();
    let mut rows = in_turns(
        case,
        &[metric(Target::None)],
        rounds,
        &mut || {
            times.push(wall(Side::Weir)?);
            Ok(vec![times[times.len() - 1]])
        },
        &mut || Ok(vec![wall(Side::Fio)?]),
    )?;
    let of_limit = Metric {
        name: "wall time beside its limit",
        ..metric(Target::AtMost(1.0))
    };
    rows.push(Row::counted(case, &of_limit, ab::median(times), limit));
    Ok(rows)
}

fn measure(workers: u32, wall: Target, memory: Target, rounds: usize) -> Result<Vec<Row>> {
    let options = format!(
        "--name=bench --ioengine=null --rw=randread --bs=4k --size=4k --thread=1 --numjobs={workers}"
    );
    side::show(&options)?;
    let metrics = [
        Metric {
            name: "wall time",
            unit: "ms",
            target: wall,
        },
        Metric {
            name: "peak resident memory",
            unit: "MiB",
            target: memory,
        },
    ];
    in_turns(
        &format!("start-{workers}"),
        &metrics,
        rounds,
        &mut || burst(Side::Weir, &options),
        &mut || burst(Side::Fio, &options),
    )
}

fn burst(side: Side, options: &str) -> Result<Vec<f64>> {
    let mut seconds = 0.0;
    let mut memory = Vec::new();
    for _ in 0..BURST {
        let ended = side.run(options)?.ended;
        seconds += ended.wall.as_secs_f64();
        memory.push(ended.resident_kib as f64 / 1024.0);
    }
    Ok(vec![1e3 * seconds / f64::from(BURST), ab::median(memory)])
}

//! Start-up: from the start of the process to its end for a job of one block,
//! and the memory that its workers take, with 1 worker and with 64.
//!
//! Each value is the mean (memory: the median) over a burst: one start is too
//! short for a steady figure.

use anyhow::Result;

use super::side::{self, Side};
use super::table::Row;
use super::{Case, Metric, Target, in_turns};
use crate::ab;

const BURST: u32 = 5;

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let targets = [
        (1, Target::None, Target::None),
        (64, Target::AtMost(0.2), Target::AtMost(0.5)),
    ];
    targets.into_iter().map(|(workers, wall, memory)| Case {
        name: format!("start-{workers}"),
        run: Box::new(move |rounds| measure(workers, wall, memory, rounds)),
    })
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

//! Bench `fio`: the same jobs for weir and for fio.
//!
//! The cases and their targets are the table here; each job is a line of
//! options that both programs get word for word. Not here: how a side is run
//! (`side`), the file it reads (`image`); verification, the card, start-up,
//! instructions and the bare loop have a file each.

use anyhow::Result;

use super::image::Image;
use super::side::{self, Side};
use super::table::Row;
use super::{Case, Metric, Target, bare, callgrind, card, in_turns, startup, verify};

/// A job whose rate and CPU time are measured.
#[derive(Clone, Copy)]
struct Job {
    name: &'static str,
    /// The file it reads, if its options name none.
    on: Option<fn() -> Result<Image>>,
    options: &'static str,
    iops: Target,
    cpu: Target,
}

const JOBS: &[Job] = &[
    null(
        "null-1",
        "--ioengine=null --rw=randread --size=4g --iodepth=1 --norandommap=1",
        4.0,
    ),
    null(
        "null-32",
        "--ioengine=null --rw=randread --size=4g --iodepth=32 --norandommap=1",
        5.0,
    ),
    null(
        "map-1",
        "--ioengine=null --rw=randread --size=4g --iodepth=1",
        4.0,
    ),
    null(
        "map-32",
        "--ioengine=null --rw=randread --size=4g --iodepth=32",
        5.0,
    ),
    Job {
        name: "psync-tmpfs",
        on: Some(Image::in_memory),
        options: "--ioengine=psync --rw=randread --size=256m --norandommap=1",
        iops: Target::AtLeast(1.15),
        cpu: Target::AtMost(0.9),
    },
    Job {
        name: "zero",
        on: None,
        options: "--ioengine=psync --rw=read --size=4g --filename=/dev/zero",
        iops: Target::None,
        cpu: Target::None,
    },
    disk(
        "io_uring-1",
        "--ioengine=io_uring --rw=randread --direct=1 --size=1g --iodepth=1",
        1.15,
    ),
    disk(
        "io_uring-32",
        "--ioengine=io_uring --rw=randread --direct=1 --size=1g --iodepth=32",
        0.95,
    ),
    disk(
        "libaio-1",
        "--ioengine=libaio --rw=randread --direct=1 --size=1g --iodepth=1",
        1.15,
    ),
    disk(
        "libaio-32",
        "--ioengine=libaio --rw=randread --direct=1 --size=1g --iodepth=32",
        0.95,
    ),
];

const fn null(name: &'static str, options: &'static str, iops: f64) -> Job {
    Job {
        name,
        on: None,
        options,
        iops: Target::AtLeast(iops),
        cpu: Target::None,
    }
}

const fn disk(name: &'static str, options: &'static str, cpu: f64) -> Job {
    Job {
        name,
        on: Some(Image::on_disk),
        options,
        iops: Target::AtLeast(0.97),
        cpu: Target::AtMost(cpu),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let jobs = JOBS.iter().map(|&job| Case {
        name: job.name.to_owned(),
        run: Box::new(move |rounds| job.measure(rounds)),
    });
    jobs.chain(bare::cases())
        .chain(verify::cases())
        .chain(card::cases())
        .chain(startup::cases())
        .chain(callgrind::cases())
        .collect()
}

impl Job {
    fn measure(&self, rounds: usize) -> Result<Vec<Row>> {
        let image = self.on.map(|lay_out| lay_out()).transpose()?;
        let options = format!(
            "--name=bench --bs=4k --thread=1 --cpus_allowed={} --time_based=1 --runtime=1 {}{}",
            side::cpu(),
            self.options,
            image.as_ref().map_or(String::new(), Image::option),
        );
        side::show(&options)?;
        let metrics = [
            Metric {
                name: "rate",
                unit: "operations/s",
                target: self.iops,
            },
            Metric {
                name: "user + system time",
                unit: "s per million operations",
                target: self.cpu,
            },
        ];
        let weir_start = Side::Weir.start(&options, |ended| ended.cpu)?;
        let fio_start = Side::Fio.start(&options, |ended| ended.cpu)?;
        in_turns(
            self.name,
            &metrics,
            rounds,
            &mut || measure(Side::Weir, &options, weir_start),
            &mut || measure(Side::Fio, &options, fio_start),
        )
    }
}

/// Rate, and CPU seconds per million operations without those of the start.
fn measure(side: Side, options: &str, start: f64) -> Result<Vec<f64>> {
    let done = side.run(options)?;
    let cpu = done.ended.cpu.as_secs_f64() - start;
    Ok(vec![done.iops, cpu * 1e6 / done.operations as f64])
}

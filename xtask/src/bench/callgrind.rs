//! Instructions per operation in user mode, counted by callgrind.
//!
//! In: a job, run with two numbers of operations. Out: the difference of the
//! two counts of the worker's thread, per operation: start and end cancel, and
//! what other threads do while time passes does not disturb.
//! Not here: rates; nothing under callgrind has a meaningful speed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::child::Ended;
use super::image::Image;
use super::side::{self, Side};
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, child};
use crate::cmd;

const FEW: u64 = 20_000;
const MANY: u64 = 60_000;

/// A job whose instructions are counted.
#[derive(Clone, Copy)]
struct Job {
    name: &'static str,
    options: &'static str,
    /// The file it reads.
    on: Option<fn() -> Result<Image>>,
    limit: f64,
}

const JOBS: &[Job] = &[
    null("null-1", "--ioengine=null --iodepth=1 --size=4g"),
    null("null-32", "--ioengine=null --iodepth=32 --size=4g"),
    Job {
        name: "psync",
        options: "--ioengine=psync --size=256m",
        on: Some(Image::in_memory),
        limit: 0.25,
    },
    disk(
        "io_uring-1",
        "--ioengine=io_uring --iodepth=1 --direct=1 --size=1g",
    ),
    disk(
        "io_uring-32",
        "--ioengine=io_uring --iodepth=32 --direct=1 --size=1g",
    ),
    disk(
        "libaio-1",
        "--ioengine=libaio --iodepth=1 --direct=1 --size=1g",
    ),
    disk(
        "libaio-32",
        "--ioengine=libaio --iodepth=32 --direct=1 --size=1g",
    ),
];

const fn null(name: &'static str, options: &'static str) -> Job {
    Job {
        name,
        options,
        on: None,
        limit: 0.2,
    }
}

const fn disk(name: &'static str, options: &'static str) -> Job {
    Job {
        name,
        options,
        on: Some(Image::on_disk),
        limit: 0.25,
    }
}

pub(super) fn cases() -> impl Iterator<Item = Case> {
    JOBS.iter().map(|&job| Case {
        name: format!("instructions-{}", job.name),
        run: Box::new(move |_| measure(job)),
    })
}

fn measure(job: Job) -> Result<Vec<Row>> {
    let case = format!("instructions-{}", job.name);
    let metric = Metric {
        name: "user instructions",
        unit: "per operation",
        target: Target::AtMost(job.limit),
    };
    let image = job.on.map(|lay_out| lay_out()).transpose()?;
    let options = format!(
        "--name=bench --rw=randread --bs=4k --io_size=100g --norandommap=1 --thread=1 {}{}",
        job.options,
        image.as_ref().map_or(String::new(), Image::option),
    );
    let both = per_operation(Side::Weir, &options)
        .and_then(|weir| Ok((weir, per_operation(Side::Fio, &options)?)));
    Ok(vec![match both {
        Ok((weir, fio)) => Row::counted(&case, &metric, weir, fio),
        Err(error) => Row::not_measured(&case, &metric, &format!("{error:#}")),
    }])
}

fn per_operation(side: Side, options: &str) -> Result<f64> {
    let few = count(side, options, FEW)?;
    let many = count(side, options, MANY)?;
    ensure!(
        few.len() == many.len(),
        "the number of threads differs between runs"
    );
    // Both programs start the worker last.
    let grown = few.last().zip(many.last());
    let (few, many) = grown.context("no thread was counted")?;
    Ok(many.saturating_sub(*few) as f64 / (MANY - FEW) as f64)
}

/// Instructions of each thread of a run.
fn count(side: Side, options: &str, operations: u64) -> Result<Vec<u64>> {
    let argv = side.argv(&format!("{options} --number_ios={operations}"))?;
    let (ended, threads) = instructions(&argv)?;
    let done = side::done(ended)?;
    ensure!(
        done.operations == operations,
        "{} did {} operations instead of {operations}",
        side.name(),
        done.operations
    );
    Ok(threads)
}

/// A program's end, and the instructions of each of its threads.
pub(super) fn instructions(program: &[String]) -> Result<(Ended, Vec<u64>)> {
    let folder = Path::new(FOLDER).join("callgrind");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let valgrind = cmd::find("valgrind").context("valgrind is not installed")?;
    let mut argv = vec![
        side::text(&valgrind)?,
        "--tool=callgrind".to_owned(),
        "--separate-threads=yes".to_owned(),
        format!("--callgrind-out-file={}", side::text(&folder.join("out"))?),
    ];
    argv.extend_from_slice(program);
    println!("$ {}", argv.join(" "));
    let ended = child::run(&argv)?;
    let mut threads: Vec<_> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    threads.sort();
    // `out` itself is the frame; `out-01` and so on are the threads.
    threads.retain(|path| path.to_string_lossy().contains("out-"));
    let totals: Result<Vec<u64>> = threads
        .iter()
        .map(|path| total(&fs::read_to_string(path)?))
        .collect();
    Ok((ended, totals?))
}

/// The line `totals: N` of a profile.
fn total(profile: &str) -> Result<u64> {
    let line = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    Ok(line.context("a profile without totals")?.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_profile_is_found() {
        let profile = "events: Ir\nfn=(1)\n12 400\ntotals: 12345\n";
        assert_eq!(total(profile).unwrap(), 12_345);
        assert!(total("events: Ir\n").is_err());
    }
}

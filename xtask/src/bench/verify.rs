//! Verification: what checking costs, a case per method.
//!
//! Each side writes a file in memory with its own headers and reads it back;
//! user time, without that of the start, is divided by what was read. One pass
//! over the file: fio 3.33 checks nothing in later loops. Not here: what
//! generating costs, which the example `verify_cost` prints.

use anyhow::{Result, ensure};

use super::side::{self, Side};
use super::table::Row;
use super::{Case, Metric, Target, in_turns};

/// Method, MiB that are read, share of fio's time at most.
const METHODS: [(&str, u64, f64); 5] = [
    ("crc32c", 1024, 0.6),
    ("xxhash", 1024, 0.5),
    ("md5", 512, 1.0),
    ("crc64", 512, 0.05),
    ("sha256", 512, 0.25),
];
const GIB: f64 = (1_u64 << 30) as f64;

pub(super) fn cases() -> impl Iterator<Item = Case> {
    METHODS.into_iter().map(|(method, mib, most)| Case {
        name: format!("verify-{method}"),
        run: Box::new(move |rounds| measure(method, mib, most, rounds)),
    })
}

fn measure(method: &str, mib: u64, most: f64, rounds: usize) -> Result<Vec<Row>> {
    let weir = Written::new(Side::Weir, method, mib)?;
    let fio = Written::new(Side::Fio, method, mib)?;
    let metric = Metric {
        name: "user time",
        unit: "s per GiB",
        target: Target::AtMost(most),
    };
    let (weir_read, fio_read) = (weir.read(), fio.read());
    side::show(&weir_read)?;
    let weir_start = Side::Weir.start(&weir_read, |ended| ended.user)?;
    let fio_start = Side::Fio.start(&fio_read, |ended| ended.user)?;
    in_turns(
        &format!("verify-{method}"),
        &[metric],
        rounds,
        &mut || user_time(Side::Weir, &weir_read, weir_start),
        &mut || user_time(Side::Fio, &fio_read, fio_start),
    )
}

fn user_time(side: Side, options: &str, start: f64) -> Result<Vec<f64>> {
    let done = side.run(options)?;
    let seconds = done.ended.user.as_secs_f64() - start;
    Ok(vec![seconds * GIB / done.bytes as f64])
}

/// A file in memory with one side's headers, removed when its case is over.
struct Written {
    path: String,
    options: String,
}

impl Written {
    fn new(side: Side, method: &str, mib: u64) -> Result<Self> {
        let path = format!(
            "/dev/shm/weir-bench-verify.{}.{}",
            side.name(),
            std::process::id()
        );
        let options = format!(
            "--name=bench --ioengine=psync --thread=1 --bs=1m --size={mib}m --cpus_allowed={} \
             --verify={method} --verify_state_save=0 --filename={path}",
            side::cpu()
        );
        let file = Self { path, options };
        let done = side.run(&format!("{} --rw=write --do_verify=0", file.options))?;
        ensure!(done.bytes == mib << 20, "{} bytes were written", done.bytes);
        Ok(file)
    }

    fn read(&self) -> String {
        format!("{} --rw=read", self.options)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // What cannot be removed is in the way of nobody.
        let _ = std::fs::remove_file(&self.path);
    }
}

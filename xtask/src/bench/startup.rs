//! Bench `startup`: the wall time of a process that only says its version.
//!
//! Each value is the mean over a burst of starts: one start is too short for
//! a steady figure. Not here: the start of workers, which needs a job.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{Case, Metric, Target};
use crate::cmd;

const BURST: u32 = 50;

pub(super) fn cases() -> Result<Vec<Case>> {
    let weir = super::weir();
    let peer = cmd::find("fio").context("fio is not installed")?;
    Ok(vec![Case {
        name: "print the version",
        metrics: vec![Metric {
            name: "wall time",
            unit: "ms",
            target: Target::AtMost(1.0),
        }],
        weir: Box::new(move || start(&weir)),
        peer: Box::new(move || start(&peer)),
    }])
}

fn start(program: &Path) -> Result<Vec<f64>> {
    let begin = Instant::now();
    for _ in 0..BURST {
        let status = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .status()?;
        ensure!(
            status.success(),
            "`{} --version` failed ({status})",
            program.display()
        );
    }
    Ok(vec![begin.elapsed().as_secs_f64() * 1e3 / f64::from(BURST)])
}

//! weir's loop beside a bare loop of the same reads and updates.
//!
//! Both live in one program, an example of `weir-run`, which does one of them
//! per call and prints its rate. Not here: fio.

use anyhow::{Context, Result};

use super::side;
use super::table::Row;
use super::{Case, Metric, Target, child, in_turns};

const LOOPS: &[&str] = &["1", "32", "map"];

pub(super) fn cases() -> impl Iterator<Item = Case> {
    LOOPS.iter().map(|&name| Case {
        name: format!("loop-{name}"),
        run: Box::new(move |rounds| measure(name, rounds)),
    })
}

fn measure(name: &str, rounds: usize) -> Result<Vec<Row>> {
    let metric = Metric {
        name: "rate beside a bare loop",
        unit: "operations/s",
        target: Target::AtLeast(0.75),
    };
    let argv = |which: &str| -> Result<Vec<String>> {
        let program = side::text(&side::built("examples/loop_cost"))?;
        let cpu = side::cpu().to_string();
        Ok(vec![program, which.to_owned(), name.to_owned(), cpu])
    };
    let (weir, bare) = (argv("weir")?, argv("bare")?);
    println!("$ {}\n$ {}", weir.join(" "), bare.join(" "));
    in_turns(
        &format!("loop-{name}"),
        &[metric],
        rounds,
        &mut || rate(&weir),
        &mut || rate(&bare),
    )
}

fn rate(argv: &[String]) -> Result<Vec<f64>> {
    let said = child::run(argv)?.stdout;
    let rate = said.trim().parse().with_context(|| said.clone())?;
    Ok(vec![rate])
}

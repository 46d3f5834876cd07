//! Bench `kio`: instructions per I/O of 4 KiB, in a guest where an instruction takes a nanosecond.
//!
//! In: the module, its test client, weir and fio, in one guest (`kmod/kio/test/bench.sh`). Out: the
//! module's loop beside its limit, its histograms beside the loop, and both engines beside fio's
//! io_uring. Not here: the guest (`lab/vm`). Such counts repeat within 0.2 %, so one boot is enough.

use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};

use super::table::Row;
use super::{Case, Metric, Target};
use crate::cmd::Cmd;

const GUEST: &str = "lab/vm run --accel icount --mem 1024 --timeout 300 --module kmod/kio \
                     --dev null:queue_mode=2,irqmode=0,no_sched=1 --file kmod/kio/test/kio-client \
                     --file /usr/bin/fio --script kmod/kio/test/bench.sh";

/// Limit of the module's whole loop: 15 % over a loop that only submits.
const LOOP: f64 = 2735.0;

pub(super) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn() -> Result<Vec<Row>>| Case {
        name: name.to_owned(),
        run: Box::new(move |_| run()),
    };
    vec![
        case("loop", of_the_loop),
        case("kernel", || beside_fio("kernel", [0.4, 1.0 / 2.2])),
        case("user", || beside_fio("user", [0.8, 0.8])),
    ]
}

fn of_the_loop() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for depth in [1, 32] {
        let whole = figure(&format!("kernel-{depth}"))?;
        let bare = figure(&format!("bare-{depth}"))?;
        let row = |name, limit, weir, peer| {
            let metric = Metric {
                name,
                unit: "instructions/I/O",
                target: Target::AtMost(limit),
            };
            Row::counted(&format!("loop-{depth}"), &metric, weir, peer)
        };
        rows.push(row("loop, beside its limit", 1.0, whole, LOOP));
        rows.push(row("histograms, of the loop", 0.05, whole - bare, whole));
    }
    Ok(rows)
}

/// An engine at depth 1 and 32, the share of fio's instructions that it may take.
fn beside_fio(engine: &str, limits: [f64; 2]) -> Result<Vec<Row>> {
    let rows = [1, 32].into_iter().zip(limits).map(|(depth, limit)| {
        let metric = Metric {
            name: "beside io_uring of fio",
            unit: "instructions/I/O",
            target: Target::AtMost(limit),
        };
        let case = format!("{engine}-{depth}");
        match figure(&case) {
            Ok(weir) => Ok(Row::counted(
                &case,
                &metric,
                weir,
                figure(&format!("fio-{depth}"))?,
            )),
            Err(error) => Ok(Row::not_measured(&case, &metric, &error.to_string())),
        }
    });
    rows.collect()
}

/// A figure of the guest, which is booted for the first.
fn figure(name: &str) -> Result<f64> {
    static SAID: OnceLock<Result<String, String>> = OnceLock::new();
    let said = SAID.get_or_init(|| guest().map_err(|error| format!("{error:#}")));
    let said = said.as_ref().map_err(|error| anyhow!("{error}"))?;
    let mut lines = said.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(of, _)| *of == name);
    let (_, value) = found.with_context(|| format!("the guest has no {name}"))?;
    Ok(value.parse()?)
}

fn guest() -> Result<String> {
    Cmd::new("make -C kmod/kio client").run()?;
    Cmd::new(GUEST).read()
}

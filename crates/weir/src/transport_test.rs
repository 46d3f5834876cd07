//! `--selftest`: the door and its transports on this machine, as the peer's functional test does
//! it for a board.
//!
//! Every check runs a command line of the door and looks at the result. Files are in a directory
//! of their own, which is removed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use weir_doors::args::read_given;
use weir_doors::house::Input;
use weir_doors::request::Action;
use weir_doors::{Given, Machine, Refusal, beff};
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{ExchangeResult, Plan, RunResult};

use crate::machine::ThisMachine;
use crate::measure::{self, MeasureRequest, Silent};
use crate::{output, printed, runners};

type Checked = Result<(), String>;

/// Runs all checks and prints each; the exit code.
pub(crate) fn run() -> u8 {
    let (mut passed, mut failed) = (0u32, 0u32);
    let mut page = String::new();
    for (name, check) in checks() {
        let line = match check() {
            Ok(()) => {
                passed += 1;
                format!("ok      {name}\n")
            }
            Err(why) => {
                failed += 1;
                format!("FAILED  {name}: {why}\n")
            }
        };
        page += &line;
    }
    if failed == 0 {
        return printed(&format!("{page}PASSED {passed} tests\n"));
    }
    output::print(&page);
    output::error(&format!("FAILED {failed} of {} tests\n", passed + failed));
    1
}

type Check = Box<dyn Fn() -> Checked>;

fn checks() -> Vec<(String, Check)> {
    let mut out: Vec<(String, Check)> = Vec::new();
    let all = runners::transports();
    // Ranks of a launcher are not this program's to start.
    let testable = all
        .records
        .iter()
        .filter(|t| t.moves_data && !t.needs_launcher);
    for transport in testable.map(|t| t.name) {
        if (all.lacks)(transport).is_some() {
            continue;
        }
        for (what, bounds) in [
            ("2 bytes, once", "-n 1 -u 1 -l 1 --sizes 1"),
            ("256 bytes, 4 times in 2 runs", "-n 2 -u 4 -l 4 --sizes 8"),
        ] {
            for ranks in [1, 2] {
                let words = format!("--comm-type {transport} --ranks {ranks} {bounds}");
                let name = format!("{transport}: {ranks} ranks exchange {what}");
                out.push((name, Box::new(move || validated(&words))));
            }
        }
    }
    if all.find("file").is_some() {
        for (exponent, loops) in [(5, 4), (6, 4), (8, 1)] {
            let name = format!("file: 2^{exponent} bytes {loops} times leave 128 in each channel");
            out.push((name, Box::new(move || channels(exponent, loops))));
        }
    }
    out.push(("a flipped byte is found".to_owned(), Box::new(flipped)));
    out.push(("JSON has the peer's keys".to_owned(), Box::new(keys)));
    out
}

/// This machine without its launcher, as the checks are runs of their own.
struct Alone(ThisMachine);

impl Machine for Alone {
    fn transports(&self) -> TransportCatalogue {
        self.0.transports()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.0.memory_bytes()
    }
}

fn given(words: &str) -> Result<Given, Refusal> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    read_given(&beff::DOOR, &words)
}

fn plan(words: &str) -> Result<Plan, Refusal> {
    let measures = beff::DOOR.measures;
    let measures = measures.ok_or_else(|| Refusal::usage("the door measures nothing"))?;
    match (measures.read)(&given(words)?, &Alone(ThisMachine::new()))?.action {
        Action::Measure(Input::Made(plan)) => Ok(*plan),
        other => Err(Refusal::usage(format!("not a run: {other:?}"))),
    }
}

fn measured(words: &str) -> Result<RunResult, String> {
    let measured = OnceLock::new();
    let code = measure::measure(&MeasureRequest::of(
        &|| plan(words),
        &|_| Box::new(Silent),
        &|result| {
            measured.get_or_init(|| result.clone());
            Ok(0)
        },
    ));
    code.map_err(|refusal| refusal.message)?;
    measured.into_inner().ok_or_else(|| "no result".to_owned())
}

fn exchanged(words: &str) -> Result<ExchangeResult, String> {
    let result = measured(words)?;
    let job = result.jobs().next().ok_or("no job")?;
    if let Some(failure) = &job.failure {
        return Err(failure.message.clone());
    }
    job.exchange()
        .cloned()
        .ok_or_else(|| "no result".to_owned())
}

fn validated(words: &str) -> Checked {
    let done = exchanged(words)?;
    match (done.wrong_bytes(), done.lost()) {
        (0, 0) if !done.sizes.is_empty() => Ok(()),
        (wrong, lost) => Err(format!(
            "{} sizes, {wrong} wrong bytes, {lost} messages lost",
            done.sizes.len()
        )),
    }
}

fn flipped() -> Checked {
    let fault = "--inject flip:rank=0,size=8,byte=3";
    let done = exchanged(&format!("-n 1 -u 2 -l 2 --sizes 8 {fault}"))?;
    match done.wrong_bytes() {
        1 => Ok(()),
        other => Err(format!("{other} wrong bytes were found instead of 1")),
    }
}

fn keys() -> Checked {
    let words = "-n 1 -u 2 -l 2 --sizes 1 --format json";
    let result = measured(words)?;
    let print = beff::DOOR.measures.and_then(|measures| measures.print);
    let text = match (print, given(words)) {
        (Some(print), Ok(given)) => print(&result, &given, &ThisMachine::new()),
        (_, given) => return Err(format!("nothing is printed: {given:?}")),
    };
    let text = text.map_err(|refusal| refusal.message)?.out;
    let wanted = [
        "\"b_eff\"",
        "\"maxCalcBW\"",
        "\"timings\"",
        "\"settings\"",
        "\"validated\": true",
    ];
    match wanted.iter().find(|key| !text.contains(**key)) {
        None => Ok(()),
        Some(key) => Err(format!("{key} is missing")),
    }
}

/// A directory that goes with its owner.
struct Private(PathBuf);

impl Private {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("weir-selftest-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Whatever is left is below the system's directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn channels(exponent: u8, loops: u32) -> Checked {
    let place = Private::new()?;
    validated(&format!(
        "--comm-type file -n 1 -u {loops} -l {loops} --sizes {exponent} --keep-channels \
         --channel-dir {}",
        place.0.display()
    ))?;
    (0..4).try_for_each(|channel| content(&place.0, channel, exponent))
}

fn content(directory: &Path, channel: u32, exponent: u8) -> Checked {
    let path = directory.join(format!("kernel_output_ch{channel}"));
    let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    if bytes.len() == 128 && bytes.iter().all(|b| *b == exponent) {
        return Ok(());
    }
    let wrong = bytes.iter().filter(|b| **b != exponent).count();
    Err(format!(
        "channel {channel}: {} bytes, {wrong} of them wrong",
        bytes.len()
    ))
}

//! Options about several files: which are used, in which order, and what the kernel is told.

use weir_schema::{Advice, FileOrder, Lifetime};

use super::needs;
use super::record::{Applied, Env, OptionRecord, option, refused};
use super::small;
use crate::diagnostic::Fault;
use crate::draft::Draft;
use crate::value::list;
use crate::value::number::{NumberScale, float, number};

/// Most files that may be open at the same time.
const MAX_FILES: u64 = 1 << 20;

fn service(draft: &mut Draft, word: &str, tail: Option<&str>, _: &Env<'_>) -> Applied {
    let shape = |default: Option<f64>| match tail {
        Some(tail) => float(tail).map(Some),
        None => Ok(default),
    };
    let out_of_range = |what: &str| {
        Fault::range(format!(
            "`file_service_type={word}:{}`: {what}",
            tail.unwrap_or_default()
        ))
        .label("out of range")
    };
    draft.service.run = None;
    draft.service.order = match word {
        "zipf" => match shape(Some(1.1))? {
            Some(theta) if theta > 0.0 && (theta - 1.0).abs() > f64::EPSILON => {
                FileOrder::Zipf { theta }
            }
            _ => {
                return Err(out_of_range("theta is above 0 and not 1")
                    .peer("fio: zipf theta must be different than 1.0"));
            }
        },
        "pareto" => match shape(Some(0.2))? {
            Some(h) if h > 0.0 && h < 1.0 => FileOrder::Pareto { h },
            _ => {
                return Err(out_of_range("h is between 0 and 1")
                    .peer("fio: pareto input out of range (0 < input < 1.0)"));
            }
        },
        "normal" | "gauss" => match shape(None)? {
            Some(deviation_percent) if deviation_percent > 0.0 && deviation_percent <= 100.0 => {
                FileOrder::Normal { deviation_percent }
            }
            _ => {
                return Err(out_of_range("a deviation in percent: normal:20")
                    .peer("fio: normal deviation out of range (0 <= input < 100.0)"));
            }
        },
        other => {
            draft.service.run = tail.map(|tail| run(draft, tail)).transpose()?;
            match other {
                "random" => FileOrder::Uniform,
                "sequential" => FileOrder::Sequential,
                _ => FileOrder::InTurn,
            }
        }
    };
    Ok(())
}

/// Operations on a file before the next one is chosen.
fn run(draft: &Draft, tail: &str) -> Result<u32, Fault> {
    let scale = NumberScale::Count {
        kb_base: draft.kb_base,
    };
    match number(tail, scale)? {
        0 => Err(Fault::range(format!("`:{tail}` operations on a file"))
            .label("expected 1 or more")
            .piece(tail)),
        n => Ok(small(n)),
    }
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("file_service_type", "In which order files are served")
        .needs(needs::FILES)
        .default("roundrobin")
        .long("`:N` after random, roundrobin or sequential: N operations on a file before the next one. `zipf:theta`, `pareto:h` and `normal:deviation%` prefer some files.")
        .words_with_tail(
            &[
                ("random", "Choose a file at random (uniform)"),
                ("zipf", "Zipf randomized"),
                ("pareto", "Pareto randomized"),
                ("normal", "Normal (Gaussian) randomized"),
                ("gauss", "Alias for normal"),
                ("roundrobin", "Round robin select files"),
                ("sequential", "Finish one file before moving to the next"),
            ],
            service,
        ),
    option("openfiles", "Files in use at the same time")
        .needs(needs::FILES)
        .long("Default: all. When one is done the next one comes into use. Descriptors of the others stay open.")
        .integer(0, MAX_FILES, |d, n| d.service.at_once = Some(small(n)).filter(|n| *n > 0)),
    option("opendir", "All files in this directory and below")
        .long("Several directories are separated by `:`. They are looked through when the run is checked.")
        .text(|d, v, _| {
            d.opened_below.extend(list::names(v));
            Ok(())
        }),
    option("file_append", "Begin at the end of the file")
        .long("As offset= with the file's size. Without effect on devices.")
        .bool(|d, on| d.append = on),
    option("fadvise_hint", "What the kernel is told about the order of offsets")
        .default("1")
        .words(
            &[
                ("0", "Don't issue fadvise/madvise"),
                ("1", "Advise using fio IO pattern"),
                ("random", "Advise using FADV_RANDOM"),
                ("sequential", "Advise using FADV_SEQUENTIAL"),
            ],
            |d, word| {
                d.open.advice = match word {
                    "0" => Advice::None,
                    "random" => Advice::Random,
                    "sequential" => Advice::Sequential,
                    _ => Advice::Pattern,
                };
            },
        ),
    option("write_hint", "How long written data will stay")
        .needs(needs::WRITES)
        .words(
            &[("none", ""), ("short", ""), ("medium", ""), ("long", ""), ("extreme", "")],
            |d, word| {
                d.open.lifetime = Some(match word {
                    "short" => Lifetime::Short,
                    "medium" => Lifetime::Medium,
                    "long" => Lifetime::Long,
                    "extreme" => Lifetime::Extreme,
                    _ => Lifetime::None,
                });
            },
        ),
    refused("lockfile", "Lock around each operation", "leave it out").neutral(&["none"]),
    option("unlink_each_loop", "Remove the job's files between loops")
        .needs(needs::LOOPS)
        .long("Each loop makes them anew by writing; for jobs that write.")
        .bool(|d, on| d.renew_each_pass = on),
];

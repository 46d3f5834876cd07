//! Options about the kinds, the order and the sizes of operations.

use weir_schema::{Distribution, Generator, SequencerStep};

use super::needs;
use super::record::{Applied, Category, Env, OptionRecord, option};
use super::small;
use crate::diagnostic::Fault;
use crate::draft::{Direction, Draft, Seed, overlay};
use crate::value::number::{NumberScale, float, number};
use crate::value::{list, split};

/// Lines that fio 3.33 prints about `rw` after it refused to write in read-only mode.
const CORRECT_FORMAT: [&str; 5] = [
    "Correct format for offending option",
    "                  rw: IO direction",
    "               alias: readwrite",
    "                type: string (opt=bla)",
    "             default: read",
];

/// Largest block: an operation's length is kept in 32 bits.
const MAX_BLOCK: u64 = u32::MAX as u64;

const DIRECTIONS: &[(&str, &str)] = &[
    ("read", "Sequential read"),
    ("write", "Sequential write"),
    ("trim", "Sequential trim"),
    ("randread", "Random read"),
    ("randwrite", "Random write"),
    ("randtrim", "Random trim"),
    ("rw", "Sequential read and write mix"),
    ("readwrite", "Sequential read and write mix"),
    ("randrw", "Random read and write mix"),
    ("trimwrite", "Trim and write mix, trims preceding writes"),
    (
        "randtrimwrite",
        "Randomly trim and write mix, trims preceding writes",
    ),
];

fn direction(draft: &mut Draft, word: &str, tail: Option<&str>, env: &Env<'_>) -> Applied {
    let (random, word) = word
        .strip_prefix("rand")
        .map_or((false, word), |rest| (true, rest));
    let direction = match word {
        "read" => Direction::Read,
        "write" => Direction::Write,
        "trim" => Direction::Trim,
        "trimwrite" => Direction::TrimWrite,
        _ => Direction::Mixed,
    };
    if env.read_only && direction != Direction::Read {
        let sentence = "has write or trim bit set, but fio is in read-only mode";
        let fault = Fault::new("job.read-only", format!("`rw={word}` in read-only mode"))
            .label("this job would write or trim")
            .help("leave --readonly out, or use rw=read or rw=randread")
            .peer(format!("fio: job <{}> {sentence}", draft.name));
        return Err(CORRECT_FORMAT.into_iter().fold(fault, Fault::peer));
    }
    (draft.direction, draft.random) = (direction, random);
    (draft.steps, draft.skip_bytes) = (1, 0);
    let Some(tail) = tail else { return Ok(()) };
    let scale = NumberScale::Count {
        kb_base: draft.kb_base,
    };
    if random {
        let steps = number(tail, scale)?;
        if steps == 0 || steps > u64::from(u32::MAX) {
            return Err(Fault::range(format!("`:{tail}` operations per position"))
                .label("expected 1 or more")
                .piece(tail));
        }
        draft.steps = small(steps);
    } else {
        let (sign, digits) = tail.strip_prefix('-').map_or((1, tail), |rest| (-1, rest));
        let bytes = i64::try_from(number(digits, scale)?)
            .map_err(|_| Fault::range("the skip is too large").piece(tail))?;
        draft.skip_bytes = sign * bytes;
    }
    Ok(())
}

fn spread(draft: &mut Draft, word: &str, tail: Option<&str>, _: &Env<'_>) -> Applied {
    let scale = NumberScale::Count {
        kb_base: draft.kb_base,
    };
    if let "zoned" | "zoned_abs" = word {
        let text = tail.ok_or_else(|| {
            Fault::value(format!("`{word}` needs its zones")).label("e.g. zoned:80/20:20/80")
        })?;
        let zones = split::zones(text, scale, word == "zoned_abs")?;
        draft.distribution = Distribution::Zoned { zones };
        return Ok(());
    }
    let (first, center) = match tail.map(|t| t.split_once(':').unwrap_or((t, ""))) {
        None => (None, None),
        Some((first, "")) => (Some(float(first)?), None),
        Some((first, center)) => (Some(float(first)?), Some(share(center)?)),
    };
    draft.distribution = match word {
        "zipf" => Distribution::Zipf {
            theta: zipf(first.unwrap_or(1.1))?,
            center,
        },
        "pareto" => Distribution::Pareto {
            h: pareto(first.unwrap_or(0.2))?,
            center,
        },
        "normal" => Distribution::Normal {
            deviation_percent: deviation(first)?,
            center,
        },
        _ => Distribution::Uniform,
    };
    Ok(())
}

fn share(text: &str) -> Result<f64, Fault> {
    float(text)
        .ok()
        .filter(|c| (0.0..=1.0).contains(c))
        .ok_or_else(|| {
            Fault::range(format!("the centre `{text}` is outside 0–1"))
                .label("a share of the region")
                .piece(text)
        })
}

fn zipf(theta: f64) -> Result<f64, Fault> {
    #[expect(clippy::float_cmp, reason = "the formula divides by 1 − theta")]
    if theta == 1.0 {
        return Err(Fault::range("zipf's theta must not be 1")
            .label("expected another exponent, e.g. 1.1")
            .peer("fio: zipf theta must different than 1.0"));
    }
    if theta > 0.0 && theta <= 100.0 {
        Ok(theta)
    } else {
        Err(
            Fault::range(format!("zipf's theta {theta} is outside 0–100"))
                .label("greater than 0, for example 1.1"),
        )
    }
}

fn pareto(h: f64) -> Result<f64, Fault> {
    if h > 0.0 && h < 1.0 {
        Ok(h)
    } else {
        Err(Fault::range(format!("pareto's h {h} is outside 0–1"))
            .label("between 0 and 1")
            .peer("fio: pareto input out of range (0 < input < 1.0)"))
    }
}

fn deviation(percent: Option<f64>) -> Result<f64, Fault> {
    percent.filter(|p| *p > 0.0 && *p <= 100.0).ok_or_else(|| {
        Fault::range("normal needs a deviation").label("in percent of the region: normal:20")
    })
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("rw", "Kinds and order of operations")
        .of(Category::Pattern)
        .aliases(&["readwrite"])
        .default("read")
        .long("`:N` after a random word: N operations per position; after a sequential one: signed bytes to skip after each operation.")
        .words_with_tail(DIRECTIONS, direction),
    option("bs", "Block size").of(Category::Pattern)
        .aliases(&["blocksize"])
        .default("4096")
        .long("`read,write,trim`; use bsrange for ranges.")
        .triple(1, MAX_BLOCK, |d, sizes| overlay(&mut d.sizes.fixed, sizes)),
    option("ba", "Alignment of random offsets")
        .needs(needs::RANDOM)
        .of(Category::Pattern)
        .aliases(&["blockalign"])
        .long("Default: the smallest block. Turns the random map off.")
        .triple(1, MAX_BLOCK, |d, align| d.align = Some(align)),
    option("bsrange", "Random block sizes between bounds").of(Category::Pattern)
        .aliases(&["blocksize_range"])
        .long("Up to three ranges for reads, writes, trims; multiples of the smallest unless bs_unaligned.")
        .text(|d, v, _| {
            let ranges = list::ranges(v, NumberScale::Count { kb_base: d.kb_base })?;
            for (min, max) in [ranges.read, ranges.write, ranges.trim] {
                if min == 0 || max > MAX_BLOCK {
                    return Err(Fault::range(format!("`bsrange={v}` is outside 1–{MAX_BLOCK}"))
                        .peer(format!("bsrange: min value out of range: {min} (1 min)")));
                }
            }
            d.sizes.range = Some(ranges);
            Ok(())
        }),
    option("bssplit", "Weighted block sizes").of(Category::Pattern)
        .long("`size/percent:size/percent[,write list[,trim list]]`; blank percentages share the rest.")
        .text(|d, v, _| {
            let scale = NumberScale::Count { kb_base: d.kb_base };
            d.sizes.split = Some(split::block_sizes(v, scale, MAX_BLOCK)?);
            Ok(())
        }),
    option("bs_unaligned", "Random sizes of any number of bytes")
        .needs(needs::SIZE_RANGE)
        .of(Category::Pattern)
        .aliases(&["blocksize_unaligned"])
        .flag(|d, on| d.sizes.unaligned = on),
    option("bs_is_seq_rand", "Block sizes are `sequential,random`").of(Category::Pattern)
        .bool(|d, on| d.sizes.by_pattern = on),
    option("rwmixread", "Percentage of reads in a mix")
        .needs(needs::MIX)
        .of(Category::Pattern)
        .default("50")
        .long("The last one given of rwmixread and rwmixwrite counts.")
        .integer(0, 100, |d, n| d.read_percent = u8::try_from(n).unwrap_or(100)),
    option("rwmixwrite", "Percentage of writes in a mix")
        .needs(needs::MIX)
        .of(Category::Pattern)
        .default("50")
        .integer(0, 100, |d, n| d.read_percent = 100 - u8::try_from(n).unwrap_or(100)),
    option("random_distribution", "Spread of random offsets")
        .needs(needs::RANDOM)
        .of(Category::Pattern)
        .default("random")
        .long("`zipf:theta`, `pareto:h`, `normal:deviation%`, each with an optional `:centre`; `zoned:access%/range%:…`, where the last range may be left out; `zoned_abs:access%/bytes:…`. Anything but random turns the map off.")
        .words_with_tail(
            &[
                ("random", "Completely random"),
                ("zipf", "Zipf distribution"),
                ("pareto", "Pareto distribution"),
                ("normal", "Normal (Gaussian) distribution"),
                ("zoned", "Zoned random distribution"),
                ("zoned_abs", "Zoned absolute random distribution"),
            ],
            spread,
        ),
    option("percentage_random", "Share of operations at random offsets")
        .needs(needs::RANDOM)
        .of(Category::Pattern)
        .default("100,100,100")
        .triple(0, 100, |d, p| overlay(&mut d.random_percent, p)),
    option("norandommap", "Random offsets may repeat within a pass")
        .needs(needs::RANDOM)
        .of(Category::Pattern)
        .flag(|d, on| d.map = !on),
    option("random_generator", "Generator of random offsets")
        .needs(needs::RANDOM)
        .of(Category::Pattern)
        .default("tausworthe")
        .long("`lfsr` visits each block once without a map; the other two both mean weir's own 64-bit generator.")
        .words(
            &[
                ("tausworthe", "Strong Tausworthe generator"),
                ("lfsr", "Variable length LFSR"),
                ("tausworthe64", "64-bit Tausworthe variant"),
            ],
            |d, word| {
                d.generator = if word == "lfsr" { Generator::Lfsr } else { Generator::Xoshiro };
            },
        ),
    option("randrepeat", "The same random sequence in each run").of(Category::Pattern)
        .long("0: a seed is drawn when the run starts (the plan's seed is 0).")
        .bool(|d, on| d.seed.repeat = on)
        .default("1"),
    option("allrandrepeat", "All random streams repeat").of(Category::Pattern)
        .long("Holds even with randrepeat=0.")
        .bool(|d, on| d.seed.repeat_all = on),
    option("randseed", "Seed of the random streams").of(Category::Pattern)
        .default("0x89")
        .long("Overrides randrepeat.")
        .integer(0, u64::MAX, |d, n| d.seed.given = Some(if n == 0 { Seed::FOR_ZERO } else { n })),
    option("rw_sequencer", "What `:N` after a random word does")
        .needs(needs::STEPS)
        .of(Category::Pattern)
        .default("sequential")
        .words(
            &[
                ("sequential", "Generate sequential offsets"),
                ("identical", "Generate identical offsets"),
            ],
            |d, word| {
                d.step = match word {
                    "identical" => SequencerStep::Identical,
                    _ => SequencerStep::Sequential,
                };
            },
        ),
    option("loops", "Passes over the region").of(Category::Pattern)
        .default("1")
        .integer(1, u64::MAX, |d, n| d.passes.loops = n),
];

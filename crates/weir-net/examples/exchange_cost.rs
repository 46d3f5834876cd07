//! Cost of an exchange: nanoseconds and bytes per second of each message size.
//!
//! `exchange_cost [TRANSPORT [RANKS [EXPONENT,... [MICROSECONDS [REPETITIONS [CPU,...
//! [VALIDATION]]]]]]]`
//!
//! On a busy machine, many short repetitions find moments in which all ranks run.
//!
//! Prints, per size, the exponent, the loop length, the time of one exchange on the slowest rank
//! in its best repetition, and the bytes per second that one rank receives meanwhile.
//!
//! VALIDATION `beside` measures `const` and `sample` in turns, [`ROUNDS`] times each, and prints the
//! median of each one's times, and of the ratios of neighbours with its quartiles.

use std::error::Error;
use std::io::Write as _;
use std::str::FromStr;

use weir_net::exchange;
use weir_run::execute::Signals;
use weir_schema::{
    EngineChoice, ExchangeWorkload, Job, MessageSize, RankTimes, ShareCpus, SizeResult, Validation,
};
use weir_sys::clock::Clock;
use weir_units::Nanos;
use weir_world::on_threads;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let transport = args.first().map_or("null", String::as_str);
    let ranks: u32 = number(&args, 1, 2)?;
    let exponents = list(args.get(2).map_or("3,12,16,20", String::as_str))?;
    let plan = ExchangeWorkload {
        sizes: exponents.into_iter().map(size).collect(),
        repetitions: number(&args, 4, 10)?,
        replications: 1,
        warmup: 100,
        min_time_ns: Some(Nanos::from_micros(number(&args, 3, 20_000)?)),
        validation: match args.get(6).map(String::as_str) {
            Some("sample") => Validation::Sample,
            Some("full") => Validation::Full,
            None if transport != "null" => Validation::Const,
            _ => Validation::None,
        },
        ..ExchangeWorkload::default()
    };
    let engine = EngineChoice::new(transport);
    let mut job = Job::of_exchanges("cost", engine, plan.clone());
    if let Some(cpus) = args.get(5) {
        job.placement.cpus = Some(list(cpus)?);
        job.placement.share = ShareCpus::Split;
    }
    if args.get(6).is_some_and(|word| word == "beside") {
        return beside(&job, &plan, ranks);
    }
    let mut out = std::io::stdout().lock();
    for size in measured(&job, &plan, ranks)? {
        writeln!(
            out,
            "{:3} {:10} {:12.1} ns {:10.3} GB/s  wrong {}",
            size.exponent,
            size.loop_length,
            each_ns(&size),
            as_float(1 << size.exponent) / each_ns(&size),
            size.ranks.iter().map(|r| r.wrong_bytes).sum::<u64>()
        )?;
    }
    Ok(())
}

type Measured = Result<Vec<SizeResult>, Box<dyn Error>>;

fn measured(job: &Job, plan: &ExchangeWorkload, ranks: u32) -> Measured {
    let (clock, signals) = (Clock::detect().0, Signals::default());
    let answers = on_threads(ranks, |world| {
        exchange::run(job, plan, &world, &clock, &signals, None).whole()
    });
    let first = answers?.into_iter().next().ok_or("no rank")?;
    Ok(first?.ok_or("no result at rank 0")?.sizes)
}

/// The time of one exchange on the slowest rank, in its best repetition; of one replication.
fn each_ns(size: &SizeResult) -> f64 {
    let best = |rank: &RankTimes| rank.times_ns.iter().min().copied();
    let slowest = size.ranks.iter().filter_map(best).max().unwrap_or_default();
    as_float(slowest.raw()) / as_float(size.loop_length)
}

/// Of each way of checking.
const ROUNDS: usize = 51;

fn beside(job: &Job, plan: &ExchangeWorkload, ranks: u32) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for size in &plan.sizes {
        let of = |validation| ExchangeWorkload {
            sizes: vec![*size],
            validation,
            ..plan.clone()
        };
        let plans = [Validation::Const, Validation::Sample].map(of);
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            // Either goes first as often as the other.
            for which in [round % 2, 1 - round % 2] {
                times[which].push(each_ns(&measured(job, &plans[which], ranks)?[0]));
            }
        }
        let ratios = times[0].iter().zip(&times[1]).map(|(a, b)| b / a).collect();
        let [low, ratio, high] = quartiles(ratios);
        let [_, plain, _] = quartiles(times[0].clone());
        let [_, sample, _] = quartiles(times[1].clone());
        let exponent = size.exponent;
        writeln!(
            out,
            "{exponent:3} const {plain:10.1} ns, sample {sample:10.1} ns, ratio {ratio:.3} ({low:.3} to {high:.3})"
        )?;
    }
    Ok(())
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn size(exponent: u8) -> MessageSize {
    MessageSize {
        exponent,
        loop_length: 100,
    }
}

fn number<T: FromStr>(args: &[String], index: usize, default: T) -> Result<T, T::Err> {
    args.get(index).map_or(Ok(default), |word| word.parse())
}

fn list<T: FromStr>(text: &str) -> Result<Vec<T>, T::Err> {
    text.split(',').map(str::parse).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds")]
fn as_float(count: u64) -> f64 {
    count as f64
}

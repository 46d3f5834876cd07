//! What an exchange costs: nanoseconds and bytes per second of each message size.
//!
//! `exchange_cost [TRANSPORT [RANKS [EXPONENT,... [MICROSECONDS [REPETITIONS [CPU,...
//! [VALIDATION]]]]]]]`
//!
//! On a busy machine, many short repetitions find moments in which all ranks run.
//!
//! Prints, per size, the exponent, the loop length, the time of one exchange on the slowest rank
//! in its best repetition, and the bytes per second that one rank receives meanwhile.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::str::FromStr;

use weir_net::exchange;
use weir_run::execute::Signals;
use weir_schema::{EngineChoice, ExchangeWorkload, Job, MessageSize, Validation};
use weir_sys::clock::Clock;
use weir_units::Nanos;
use weir_world::on_threads;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let transport = words.first().map_or("null", String::as_str);
    let ranks: u32 = number(&words, 1, 2)?;
    let exponents = list(words.get(2).map_or("3,12,16,20", String::as_str))?;
    let plan = ExchangeWorkload {
        sizes: exponents.into_iter().map(size).collect(),
        repetitions: number(&words, 4, 10)?,
        replications: 1,
        warmup: 100,
        min_time_ns: Some(Nanos::from_micros(number(&words, 3, 20_000)?)),
        validation: match words.get(6).map(String::as_str) {
            Some("sample") => Validation::Sample,
            Some("full") => Validation::Full,
            None if transport != "null" => Validation::Const,
            _ => Validation::None,
        },
        ..ExchangeWorkload::default()
    };
    let engine = EngineChoice {
        name: transport.to_owned(),
        settings: BTreeMap::new(),
    };
    let mut job = Job::of_exchanges("cost", engine, plan.clone());
    job.placement.cpus = words.get(5).map(|cpus| list(cpus)).transpose()?;
    let (clock, signals) = (Clock::detect().0, Signals::default());
    let answers = on_threads(ranks, |world| {
        exchange::run(&job, &plan, &world, &clock, &signals, None).whole()
    });
    let first = answers.into_iter().next().ok_or("no rank")?;
    let result = first?.ok_or("no result at rank 0")?;
    let mut out = std::io::stdout().lock();
    for size in &result.sizes {
        let best = |rank: &weir_schema::RankTimes| rank.times_ns.iter().min().copied();
        let slowest = size.ranks.iter().filter_map(best).max().unwrap_or_default();
        let exchanges = size.loop_length * u64::from(plan.replications);
        let each = slowest.as_secs_f64() / as_float(exchanges);
        let rate = as_float(1 << size.exponent) / each;
        writeln!(
            out,
            "{:3} {:10} {:12.1} ns {:10.3} GB/s  wrong {}",
            size.exponent,
            size.loop_length,
            each * 1e9,
            rate / 1e9,
            size.ranks.iter().map(|r| r.wrong_bytes).sum::<u64>()
        )?;
    }
    Ok(())
}

fn size(exponent: u8) -> MessageSize {
    MessageSize {
        exponent,
        loop_length: 100,
    }
}

fn number<T: FromStr>(words: &[String], index: usize, default: T) -> Result<T, T::Err> {
    words.get(index).map_or(Ok(default), |word| word.parse())
}

fn list<T: FromStr>(text: &str) -> Result<Vec<T>, T::Err> {
    text.split(',').map(str::parse).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds")]
fn as_float(count: u64) -> f64 {
    count as f64
}

//! The figures of a packet path that a limit may name, and the units of each.
//!
//! In: limits as `--slo` has them. Out: that each names a figure of `weir axio` in a unit of that figure, or what is
//! wrong, before anything is run. Not here: figures of other commands, which only their result knows; but that a
//! percentile is a time is so in all of them.

use super::path::TuneLimit;
use crate::flags::nearest;
use crate::refusal::Refusal;

/// Quantity that a figure measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureUnit {
    Time,
    Count,
    Share,
}

/// Figures with their quantities. Percentiles are `p` and a number.
const FIGURES: [(&str, FigureUnit); 14] = [
    ("p50", FigureUnit::Time),
    ("p99", FigureUnit::Time),
    ("p99.9", FigureUnit::Time),
    ("mean", FigureUnit::Time),
    ("message p50", FigureUnit::Time),
    ("message p99", FigureUnit::Time),
    ("message mean", FigureUnit::Time),
    ("cpu_per_op", FigureUnit::Time),
    ("packet rate", FigureUnit::Count),
    ("packet rate per core", FigureUnit::Count),
    ("message rate", FigureUnit::Count),
    ("bandwidth", FigureUnit::Count),
    ("message bandwidth", FigureUnit::Count),
    ("loss", FigureUnit::Share),
];

/// Looks at the limits of a packet path.
///
/// # Errors
/// The first that names no figure, or one in another unit.
pub(super) fn check(limits: &[TuneLimit]) -> Result<(), Refusal> {
    limits.iter().try_for_each(check_limit)
}

/// Refuses percentiles without a unit in the limits of any command: they would be seconds, which is never
/// meant.
///
/// # Errors
/// The first without its unit.
pub(super) fn check_percentiles(limits: &[TuneLimit]) -> Result<(), Refusal> {
    let is_percentile = |figure: &str| figure.rsplit(' ').next().is_some_and(percentile);
    let mut times = limits.iter().filter(|limit| is_percentile(&limit.figure));
    times.try_for_each(|limit| check_unit(limit, FigureUnit::Time))
}

fn check_limit(limit: &TuneLimit) -> Result<(), Refusal> {
    let TuneLimit { figure, text, .. } = limit;
    let Some(unit) = unit_of(figure) else {
        let names = FIGURES.map(|(name, _)| name);
        let near = nearest(figure, names.into_iter()).map_or_else(
            || format!("there are {}", names.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Refusal::usage(format!(
            "--slo {figure}={text}: a packet path has no figure `{figure}`\n  help: {near}"
        )));
    };
    check_unit(limit, unit)
}

fn check_unit(limit: &TuneLimit, unit: FigureUnit) -> Result<(), Refusal> {
    let TuneLimit { figure, text, .. } = limit;
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || " .e+-".contains(c));
    let (fits, takes) = match unit {
        FigureUnit::Time => (
            ["ns", "us", "µs", "ms", "s"].contains(&suffix),
            "a time: 50us, 2ms",
        ),
        FigureUnit::Count => (
            ["", "K", "k", "M", "G"].contains(&suffix),
            "a number: 500k, 2M",
        ),
        FigureUnit::Share => (["", "%"].contains(&suffix), "a share: 0, 0.5%"),
    };
    if fits {
        return Ok(());
    }
    if suffix.is_empty() {
        return Err(Refusal::usage(format!(
            "--slo {figure}={text}: a time has a unit\n  help: {figure}={text}us; there are ns, us, ms, s"
        )));
    }
    Err(Refusal::usage(format!(
        "--slo {figure}={text}: `{suffix}` is no unit of it\n  help: it takes {takes}"
    )))
}

fn unit_of(figure: &str) -> Option<FigureUnit> {
    let known = FIGURES.iter().find(|(name, _)| *name == figure);
    let base = figure.strip_prefix("message ").unwrap_or(figure);
    let time = || percentile(base).then_some(FigureUnit::Time);
    known.map(|(_, unit)| *unit).or_else(time)
}

/// True if the word names a percentile.
fn percentile(word: &str) -> bool {
    let number = word.strip_prefix('p').and_then(|n| n.parse::<f64>().ok());
    number.is_some_and(|number| (0.0..=100.0).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::super::path::limits;
    use super::*;

    #[test]
    fn limits_name_figures_of_a_packet_path_in_their_units() {
        let of = |text: &str| check(&limits(text).unwrap());
        for text in [
            "p99=50us,loss=0",
            "message p99.9=1ms",
            "packet rate=2M",
            "loss=0.5%,p50=5e1us",
        ] {
            assert_eq!(of(text), Ok(()), "{text}");
        }
        for (text, says) in [
            ("foo=1", "no figure `foo`\n  help: there are p50, "),
            ("p99=50us,packet rat=1", "did you mean `packet rate`?"),
            ("p99=50", "a time has a unit\n  help: p99=50us"),
            ("p99=2M", "`M` is no unit of it\n  help: it takes a time"),
            ("packet rate=5us", "`us` is no unit"),
            ("loss=1ms", "a share: 0, 0.5%"),
        ] {
            let why = of(text).unwrap_err();
            assert_eq!(why.code, crate::USAGE);
            assert!(why.message.contains(says), "{text}: {why}");
        }
    }
}

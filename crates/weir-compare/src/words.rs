//! Numbers and verdicts as all renderings for people write them.

use crate::comparison::Verdict;

/// More rounds than this are not counted.
const MOST_ROUNDS: u32 = 200;
/// An interval whose ends lie further apart than this, as a ratio, says nothing.
const WIDEST: f64 = 1e6;

/// `4.6`, `11`: a share in per cent, one decimal below ten.
pub fn brief_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 {
        format!("{percent:.0}")
    } else if percent.abs() >= 0.095 || percent == 0.0 {
        let text = format!("{percent:.1}");
        text.strip_suffix(".0")
            .filter(|t| *t != "0")
            .map_or(text.clone(), str::to_owned)
    } else {
        format!("{percent:.2}")
    }
}

/// `+4.6 %`, `-11 %`, and `×35` from ten times on, where nobody reads percent.
pub(crate) fn change_words(share: f64) -> String {
    let percent = share * 100.0;
    if share >= 9.0 {
        format!("×{:.0}", share + 1.0)
    } else if percent.abs() >= 9.95 {
        format!("{percent:+.0} %")
    } else {
        format!("{percent:+.1} %")
    }
}

/// `+3.9 … +5.4 %`: the interval of a ratio; `unknown` where it leaves everything open.
pub(crate) fn interval_words(low: f64, high: f64) -> String {
    // Ends that are no numbers leave everything open as well.
    if !(low > 0.0 && high / low <= WIDEST) {
        return "unknown".to_owned();
    }
    let [low, high] = [low, high].map(|end| change_words(end - 1.0));
    match low.strip_suffix(" %") {
        Some(low) if high.ends_with('%') => format!("{low} … {high}"),
        _ => format!("{low} … {high}"),
    }
}

/// A probability with two digits: `0.010`, `0.68`.
pub(crate) fn chance(p: f64) -> String {
    match p {
        p if p < 0.001 => "<0.001".to_owned(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// `same within 2.1 %`, `unsure, ~5 more`.
pub(crate) fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Same { within } => format!("same within {} %", brief_percent(*within)),
        Verdict::Unsure {
            more_rounds: Some(more),
        } if *more > MOST_ROUNDS => format!("unsure, >{MOST_ROUNDS} more"),
        Verdict::Unsure {
            more_rounds: Some(more),
        } => format!("unsure, ~{more} more"),
        Verdict::NotComparable { .. }
        | Verdict::Better
        | Verdict::Worse
        | Verdict::Small
        | Verdict::Unsure { more_rounds: None } => verdict.word().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_brief() {
        let signed = [0.046, 0.105, -0.0304, 0.0, -0.2].map(change_words);
        assert_eq!(signed, ["+4.6 %", "+10 %", "-3.0 %", "+0.0 %", "-20 %"]);
        assert_eq!(
            [8.99, 9.0, 34.2].map(change_words),
            ["+899 %", "×10", "×35"]
        );
        let brief = [0.95, 0.021, 0.02, 0.0, 0.0004].map(brief_percent);
        assert_eq!(brief, ["95", "2.1", "2", "0.0", "0.04"]);
        let chances = [0.0098, 0.34, 0.000_1, 1.0].map(chance);
        assert_eq!(chances, ["0.010", "0.34", "<0.001", "1.00"]);
    }

    #[test]
    fn an_interval_that_leaves_everything_open_is_unknown() {
        for (low, high, words) in [
            (1.039, 1.054, "+3.9 … +5.4 %"),
            (0.5, 12.0, "-50 % … ×12"),
            (4000.0, 6000.0, "×4000 … ×6000"),
            (0.01, 100.0, "-99 % … ×100"),
            (2.9e-22, 3.456e21, "unknown"),
            (0.0, f64::INFINITY, "unknown"),
            (0.9, f64::NAN, "unknown"),
        ] {
            assert_eq!(interval_words(low, high), words);
        }
    }

    #[test]
    fn unsure_says_how_much_is_missing() {
        let unsure = |more_rounds| verdict_words(&Verdict::Unsure { more_rounds });
        assert_eq!(unsure(Some(5)), "unsure, ~5 more");
        assert_eq!(unsure(Some(201)), "unsure, >200 more");
        assert_eq!(unsure(None), "unsure");
    }
}

//! Figures as the door prints them: the shortest text of a measured figure.

/// A figure of at most three decimals, as short as it can be, with one after the point at least.
pub(super) fn figure(value: f64) -> String {
    let fixed = format!("{value:.3}");
    let short = fixed.trim_end_matches('0');
    if short.ends_with('.') {
        format!("{short}0")
    } else {
        short.to_owned()
    }
}

/// A count that is printed like a figure.
pub(super) fn counted(value: f64) -> String {
    format!("{:.1}", value.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_as_short_as_they_can_be() {
        assert_eq!(figure(253.180_4), "253.18");
        assert_eq!(figure(7.0), "7.0");
        assert_eq!(figure(299.2112), "299.211");
        assert_eq!(figure(0.0), "0.0");
        assert_eq!(figure(1e15), "1000000000000000.0");
        assert_eq!(counted(73049.9), "73049.0");
    }
}

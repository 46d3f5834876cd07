//! Style of a rendering: width, character set, colour, raw numbers, percentiles.
//!
//! In: what the command line asked for, the environment and facts about the terminal, all as
//! data. Out: a [`Style`]. Not here: asking the terminal or reading the environment.

use std::collections::BTreeMap;

use weir_units::Percent;

/// Narrower than this nothing can be laid out.
const NARROWEST: usize = 20;

/// Style of a rendering.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Style {
    /// Display columns of a line.
    pub width: usize,
    /// Only ASCII characters.
    pub ascii: bool,
    /// The terminal's 16 colours.
    pub color: bool,
    /// Whole numbers in nanoseconds, bytes and operations.
    pub raw: bool,
    /// Every warning, not the gravest ones alone.
    pub all_warnings: bool,
    /// Percentiles to show; absent: 50, 90, 99, 99.9, and 99.99 where there is room.
    pub percentiles: Option<Vec<Percent>>,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: 80,
            ascii: false,
            color: false,
            raw: false,
            all_warnings: false,
            percentiles: None,
        }
    }
}

/// Use of colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// As environment and terminal say.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Flags of the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// `--color`.
    pub color: ColorChoice,
    /// `--width`.
    pub width: Option<usize>,
    /// `--ascii`.
    pub ascii: bool,
    /// `--raw`.
    pub raw: bool,
    /// `--warnings all`.
    pub all_warnings: bool,
    /// `--percentiles`.
    pub percentiles: Option<Vec<Percent>>,
}

/// Facts about the stream that the text goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// It is a terminal.
    pub is_terminal: bool,
    /// Its width, if it told.
    pub columns: Option<usize>,
}

impl Style {
    /// The style for a stream. Colour: flag, `NO_COLOR`, `CLICOLOR_FORCE`, then a terminal that
    /// is not dumb. Width: flag, terminal, `COLUMNS`, 80. ASCII: flag, or no UTF-8 locale.
    pub fn detect(
        flags: &Flags,
        environment: &BTreeMap<String, String>,
        terminal: Terminal,
    ) -> Self {
        let variable = |name: &str| {
            environment
                .get(name)
                .map(String::as_str)
                .filter(|v| !v.is_empty())
        };
        let color = match flags.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if variable("NO_COLOR").is_some() => false,
            ColorChoice::Auto if variable("CLICOLOR_FORCE").is_some_and(|v| v != "0") => true,
            ColorChoice::Auto => terminal.is_terminal && variable("TERM") != Some("dumb"),
        };
        let columns = || {
            variable("COLUMNS")
                .and_then(|v| v.parse().ok())
                .filter(|c| *c > 0)
        };
        let width = flags
            .width
            .or(terminal.columns.filter(|c| *c > 0))
            .or_else(columns)
            .unwrap_or(80)
            .max(NARROWEST);
        let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(variable)
            .is_some_and(|locale| {
                let locale = locale.to_ascii_lowercase();
                locale.contains("utf-8") || locale.contains("utf8")
            });
        Self {
            width,
            ascii: flags.ascii || !utf8,
            color,
            raw: flags.raw,
            all_warnings: flags.all_warnings,
            percentiles: flags.percentiles.clone(),
        }
    }

    /// The percentiles to show.
    pub(crate) fn shown_percentiles(&self) -> Vec<Percent> {
        let default = || {
            let mut list = [50.0, 90.0, 99.0, 99.9].map(Percent).to_vec();
            if self.width >= 100 {
                list.push(Percent(99.99));
            }
            list
        };
        self.percentiles.clone().unwrap_or_else(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect()
    }

    const TERMINAL: Terminal = Terminal {
        is_terminal: true,
        columns: Some(132),
    };
    const PIPE: Terminal = Terminal {
        is_terminal: false,
        columns: None,
    };

    fn color(choice: ColorChoice, pairs: &[(&str, &str)], terminal: Terminal) -> bool {
        let flags = Flags {
            color: choice,
            ..Flags::default()
        };
        Style::detect(&flags, &environment(pairs), terminal).color
    }

    #[test]
    fn colour_follows_flag_then_no_color_then_force_then_terminal() {
        use ColorChoice::{Always, Auto, Never};
        assert!(color(Always, &[("NO_COLOR", "1")], PIPE));
        assert!(!color(Never, &[("CLICOLOR_FORCE", "1")], TERMINAL));
        assert!(!color(
            Auto,
            &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
            TERMINAL
        ));
        assert!(color(
            Auto,
            &[("NO_COLOR", ""), ("CLICOLOR_FORCE", "1")],
            PIPE
        ));
        assert!(!color(Auto, &[("CLICOLOR_FORCE", "0")], PIPE));
        assert!(color(Auto, &[("TERM", "xterm")], TERMINAL));
        assert!(!color(Auto, &[("TERM", "dumb")], TERMINAL));
        assert!(!color(Auto, &[("TERM", "xterm")], PIPE));
    }

    #[test]
    fn width_comes_from_flag_terminal_columns_or_is_80() {
        let width = |flag, pairs: &[(&str, &str)], terminal| {
            let flags = Flags {
                width: flag,
                ..Flags::default()
            };
            Style::detect(&flags, &environment(pairs), terminal).width
        };
        assert_eq!(width(Some(60), &[("COLUMNS", "100")], TERMINAL), 60);
        assert_eq!(width(None, &[("COLUMNS", "100")], TERMINAL), 132);
        assert_eq!(width(None, &[("COLUMNS", "100")], PIPE), 100);
        assert_eq!(width(None, &[("COLUMNS", "wide")], PIPE), 80);
        assert_eq!(width(None, &[], PIPE), 80);
        assert_eq!(width(Some(1), &[], PIPE), NARROWEST);
    }

    #[test]
    fn only_a_utf8_locale_gets_more_than_ascii() {
        let ascii = |pairs: &[(&str, &str)]| {
            Style::detect(&Flags::default(), &environment(pairs), PIPE).ascii
        };
        assert!(!ascii(&[("LANG", "en_US.UTF-8")]));
        assert!(!ascii(&[
            ("LC_ALL", ""),
            ("LC_CTYPE", "C.utf8"),
            ("LANG", "C")
        ]));
        assert!(ascii(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(ascii(&[]));
    }

    #[test]
    fn a_wide_screen_shows_one_more_percentile() {
        let shown = |width, percentiles| {
            Style {
                width,
                percentiles,
                ..Style::default()
            }
            .shown_percentiles()
        };
        assert_eq!(shown(99, None).len(), 4);
        assert_eq!(shown(100, None).last(), Some(&Percent(99.99)));
        assert_eq!(shown(100, Some(vec![Percent(75.0)])), vec![Percent(75.0)]);
    }
}

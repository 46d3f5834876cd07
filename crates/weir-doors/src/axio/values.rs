//! Values of a configuration, read one by one.
//!
//! In: a configuration, a key, how its text is read. Out: the value, or its default; what is wrong, each with its
//! line and what the key takes. Not here: which keys there are (`keys`), what they are for (`plan`).

use weir_units::{Bytes, Nanos};

use super::config::AxioConfig;
use super::keys::KEYS;
use super::plan;

/// The reference's message for a value out of its range.
fn reference_words(key: &str) -> Option<&'static str> {
    Some(match key {
        "kAppCoreNum" => "App core number is too large",
        "kDispQueueNum" => "Dispatcher queue number is too large",
        "kAppTxMsgBatchSize" => "App TX batch size is too large",
        "kAppRxMsgBatchSize" => "App RX batch size is too large",
        "kDispTxBatchSize" => "Dispatcher TX batch size is too large",
        "kDispRxBatchSize" => "Dispatcher RX batch size is too large",
        "kNICTxPostSize" => "NIC TX post size is too large",
        "kNICRxPostSize" => "NIC RX post size is too large",
        _ => return None,
    })
}

/// Reader of a configuration's values, which gathers their errors.
pub(super) struct Values<'a> {
    pub(super) config: &'a AxioConfig,
    pub(super) wrong: Vec<String>,
}

impl Values<'_> {
    /// Reads a value with a function that returns `None` on an error.
    pub(super) fn read<T>(&mut self, key: &str, of: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.config.text(key)?;
        let value = of(text);
        if value.is_none() {
            let place = self.config.place_of(key);
            let takes = KEYS.iter().find(|known| known.name == key);
            let takes = takes.map_or_else(String::new, |known| known.takes().into_owned());
            let is_number = text.parse::<u64>().is_ok();
            let what = match reference_words(key).filter(|_| is_number && text != "0") {
                Some(words) => format!("{words}: {text}"),
                None => format!("`{text}`"),
            };
            self.wrong.push(format!("{place}: {what} (valid: {takes})"));
        }
        value
    }

    /// Adds an error in a value that was read.
    pub(super) fn refuse(&mut self, key: &str, why: &str) {
        let place = self.config.place_of(key);
        let text = self.config.text(key);
        let text = text.map_or_else(String::new, |text| format!("`{text}`: "));
        self.wrong.push(format!("{place}: {text}{why}"));
    }

    pub(super) fn number(&mut self, key: &str, low: u32, high: u32, default: u32) -> u32 {
        let of = |text: &str| text.parse().ok().filter(|n| (low..=high).contains(n));
        self.read(key, of).unwrap_or(default)
    }

    pub(super) fn switch(&mut self, key: &str, default: bool) -> bool {
        let of = |text: &str| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        self.read(key, of).unwrap_or(default)
    }

    pub(super) fn bytes(&mut self, key: &str, low: u64, high: u64, default: u64) -> Bytes {
        let of = |text: &str| plan::bytes(text).filter(|n| (low..=high).contains(n));
        Bytes(self.read(key, of).unwrap_or(default))
    }

    /// Reads a time in a unit of `unit` nanoseconds.
    pub(super) fn time(&mut self, key: &str, unit: f64, least: f64, default: Nanos) -> Nanos {
        let of = |text: &str| {
            let number = text.parse::<f64>().ok()?;
            let is_fit = number >= least && number * unit <= 1e15;
            is_fit.then(|| Nanos(rounded(number * unit)))
        };
        self.read(key, of).unwrap_or(default)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be from 0 to 10^15"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

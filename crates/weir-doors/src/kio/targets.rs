//! Devices of the threads, from the first of five places that names one.
//!
//! In: the arguments, a configuration, facts about this machine. Out: paths. Not here: what they are.

use super::settings::{Field, Settings};
use super::{MODPROBE, TargetFacts};
use crate::machine::Machine;
use crate::refusal::Refusal;

/// The longest file of options that is read.
const LONGEST: u64 = 1 << 20;

/// Resolves the targets of all threads.
///
/// # Errors
/// Nowhere: the five places.
pub(super) fn resolve(
    words: &[String],
    config: Option<&str>,
    module: Option<&str>,
    machine: &dyn Machine,
) -> Result<Vec<String>, Refusal> {
    if !words.is_empty() {
        return Ok(words.to_vec());
    }
    let own = |place: Option<&str>| place.filter(|path| !path.is_empty()).map(str::to_owned);
    let of_modprobe = || {
        let text = machine.file(MODPROBE, LONGEST).unwrap_or_default();
        own(of_modprobe(&text))
    };
    let found = own(config)
        .or_else(|| own(machine.variable("WEIR_KIO_DEVICE").as_deref()))
        .or_else(|| own(module))
        .or_else(of_modprobe);
    found.map(|path| vec![path]).ok_or_else(|| {
        Refusal::usage(format!(
            "no device is named\n  help: name one in one of five ways:\n    --device PATH\n    \
             block_device under `global` of the --config file\n    the variable WEIR_KIO_DEVICE\n    \
             block_device of the loaded module (/sys/module/kio/parameters)\n    \
             `options kio block_device=PATH` in {MODPROBE}"
        ))
    })
}

/// The last `block_device=` of the lines `options kio …`.
fn of_modprobe(text: &str) -> Option<&str> {
    let options = |line: &'_ str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("options") && words.next() == Some("kio")).then_some(())
    };
    let lines = text.lines().filter(|line| options(line).is_some());
    let words = lines.flat_map(str::split_whitespace);
    let mut devices = words.filter_map(|word| word.strip_prefix("block_device="));
    devices.next_back().map(|path| path.trim_matches('"'))
}

/// Checks settings against the facts of their target.
///
/// # Errors
/// The setting that does not fit the target.
pub(super) fn check_target(settings: &Settings, facts: &TargetFacts) -> Result<(), String> {
    let (low, high) = (
        settings.get(Field::OffsetLow),
        settings.get(Field::OffsetHigh),
    );
    let block = settings.get(Field::BlockSize);
    if facts.bytes == 0 {
        return Err("it has no bytes".to_owned());
    }
    if low >= high || high - low < block {
        return Err(format!(
            "an I/O of {block} bytes has no room between offset_low {low} and offset_high {high}"
        ));
    }
    let unit = i64::try_from(facts.logical_block.max(1)).unwrap_or(1);
    for field in [Field::BlockSize, Field::OffsetStride, Field::OffsetLow] {
        let value = settings.get(field);
        if value % unit != 0 {
            let name = field.setting().name;
            return Err(format!(
                "{name} is {value}, and its blocks have {unit} bytes: take a multiple of that"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_module_name_a_device() {
        for (text, device) in [
            ("options kio block_device=/dev/a\n", Some("/dev/a")),
            (
                "# options kio block_device=/dev/x\noptions kio io_submit_mode=1 block_device=\"/dev/b\"",
                Some("/dev/b"),
            ),
            ("options kios block_device=/dev/a", None),
            ("", None),
        ] {
            assert_eq!(of_modprobe(text), device, "{text}");
        }
    }
}

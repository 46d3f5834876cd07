//! Flags that are settings of a transport: which flag gives which setting, and in which form.
//!
//! In: checked arguments, the record of a transport. Out: settings of the plan; a refusal or a note
//! where a flag is given that this transport has no setting for. A new setting of a transport
//! without a flag here is reached through a stored plan.

use std::collections::BTreeMap;

use weir_schema::Setting;
use weir_schema::catalogue::{TransportCatalogue, TransportRecord};

use super::refuse;
use crate::flags::Flag;
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// A flag of the door, and the setting that it gives.
struct SettingFlag {
    flag: &'static str,
    setting: &'static str,
    form: Form,
    unused: Unused,
}

/// Conversion of a flag's value to that of a setting.
enum Form {
    /// A number, by default that of the flag.
    Number,
    /// A number, if given.
    GivenNumber,
    /// A number from 0; -1, the default, leaves it open.
    Index,
    Text,
    Switch,
    /// Bits per second; the setting has bytes.
    Rate,
}

/// Treatment of a flag where the transport lacks its setting.
enum Unused {
    Refused,
    /// A note: scripts written for the peer give the flag in every call.
    Noted,
    /// A note in runs. Tests use made-up devices, which take it.
    NotedInRuns,
    /// Others look at the flag.
    Silent,
}

const fn row(flag: &'static str, setting: &'static str, form: Form, unused: Unused) -> SettingFlag {
    SettingFlag {
        flag,
        setting,
        form,
        unused,
    }
}

const SETTING_FLAGS: &[SettingFlag] = &[
    row(
        "channel-width",
        "channel_width_bytes",
        Form::Number,
        Unused::Refused,
    ),
    row(
        "channel-dir",
        "channel_directory",
        Form::Text,
        Unused::Refused,
    ),
    row(
        "keep-channels",
        "keep_channels",
        Form::Switch,
        Unused::Refused,
    ),
    row(
        "payload-size",
        "payload_exponent",
        Form::Number,
        Unused::Noted,
    ),
    row("iface", "interface", Form::Text, Unused::Refused),
    row("port", "port", Form::GivenNumber, Unused::Refused),
    row("rate", "rate_bytes_per_s", Form::Rate, Unused::Refused),
    row(
        "platform_str",
        "platform_name",
        Form::Text,
        Unused::NotedInRuns,
    ),
    row("platform", "platform", Form::Index, Unused::NotedInRuns),
    row("device", "device", Form::Index, Unused::NotedInRuns),
    row("device-type", "device_type", Form::Text, Unused::Refused),
    row("device-map", "device_map", Form::Text, Unused::Refused),
    row("file", "kernel_file", Form::Text, Unused::Silent),
    row("pcie-batch", "batch", Form::Switch, Unused::Silent),
];

/// Settings of the transport, by their names in weir.
pub(super) fn settings(
    given: &GivenFlags,
    transport: &TransportRecord,
) -> BTreeMap<String, Setting> {
    let mut out = BTreeMap::new();
    for row in SETTING_FLAGS {
        if transport.has_setting(row.setting)
            && let Some(value) = row.value(given)
        {
            out.insert(row.setting.to_owned(), value);
        }
    }
    out
}

impl SettingFlag {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, as it should")]
    fn value(&self, given: &GivenFlags) -> Option<Setting> {
        let named = given.all(self.flag).last().filter(|text| !text.is_empty());
        let number: i64 = given.number(self.flag);
        match self.form {
            Form::Number => Some(Setting::Number(number)),
            Form::GivenNumber => named.map(|_| Setting::Number(number)),
            Form::Index => (number >= 0).then_some(Setting::Number(number)),
            Form::Text => named.map(|text| Setting::Text(text.to_owned())),
            Form::Switch => given.has(self.flag).then_some(Setting::Bool(true)),
            // More than a number holds is no limit.
            Form::Rate => {
                let rate = given.bits_per_second(self.flag).map(|bits| bits / 8.0);
                rate.map(|bytes| Setting::Number(bytes as i64))
            }
        }
    }
}

/// The row of a flag that is given and that the transport has no setting for.
fn unused(flag: &Flag, transport: &TransportRecord) -> Option<&'static SettingFlag> {
    let row = SETTING_FLAGS.iter().find(|row| row.flag == flag.name)?;
    (!transport.has_setting(row.setting)).then_some(row)
}

/// Refuses flags of weir's own that the transport has no setting for.
///
/// # Errors
/// The first such flag, with the transports that have the setting.
pub(super) fn refuse_unused(
    given: &GivenFlags,
    transport: &TransportRecord,
    all: &TransportCatalogue,
) -> Result<(), Refusal> {
    for (flag, _) in given.iter() {
        if let Some(row) = unused(flag, transport)
            && matches!(row.unused, Unused::Refused)
        {
            let of = all.records.iter().filter(|t| t.has_setting(row.setting));
            let of: Vec<_> = of.map(|t| t.name).collect();
            return Err(refuse(&format!(
                "{}: comm-type {} does not use it\n  help: comm-types that do: {}",
                flag.spelling(),
                transport.name,
                of.join(", ")
            )));
        }
    }
    Ok(())
}

/// The setting of a job, not of its transport, that a flag gives.
const OF_JOBS: &[(&str, &str)] = &[("pin", "cpus")];

/// Message about a plan, with the settings that it quotes replaced by flags.
pub fn in_flags(message: &str) -> String {
    let of_transports = SETTING_FLAGS.iter().map(|row| (row.flag, row.setting));
    let all = of_transports.chain(OF_JOBS.iter().copied());
    all.fold(message.to_owned(), |message, (flag, setting)| {
        message.replace(&format!("`{setting}`"), &format!("--{flag}"))
    })
}

/// True if a flag of the peer has no effect, which is worth a note.
pub(super) fn is_noted(flag: &Flag, transport: &TransportRecord, is_run: bool) -> bool {
    unused(flag, transport).is_some_and(|row| match row.unused {
        Unused::Noted => true,
        Unused::NotedInRuns => is_run,
        Unused::Refused | Unused::Silent => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beff::flags::FLAGS;
    use crate::flags::find;

    #[test]
    fn what_is_wrong_with_a_setting_is_told_with_its_flag() {
        let text = in_flags("transport `tcp`: `interface`: `eth9` is none; see `cpus`, `loss_ms`");
        assert_eq!(
            text,
            "transport `tcp`: --iface: `eth9` is none; see --pin, `loss_ms`"
        );
    }

    #[test]
    fn every_row_has_a_flag_and_a_transport_with_the_setting() {
        let all = weir_schema::sample::transports();
        for row in SETTING_FLAGS {
            assert!(find(FLAGS, row.flag).is_some(), "{}", row.flag);
            let is_there = all.records.iter().any(|t| t.has_setting(row.setting));
            assert!(is_there, "{}", row.setting);
        }
    }
}

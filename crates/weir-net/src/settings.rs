//! Settings of a transport: known by name, of the right kind, within bounds.

use weir_schema::catalogue::{SettingInfo, SettingKind};
use weir_schema::{EngineChoice, Setting};

use crate::error::NetError;
use crate::transport::TransportInfo;

/// Refuses what the transport does not know.
pub(crate) fn check(info: &TransportInfo, engine: &EngineChoice) -> Result<(), NetError> {
    for (name, value) in &engine.settings {
        let Some(known) = info.settings.iter().find(|known| known.name == name) else {
            let names: Vec<_> = info.settings.iter().map(|known| known.name).collect();
            let list = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(NetError::Plan(format!(
                "transport `{}` has no setting `{name}` (it has {list})",
                info.name
            )));
        };
        if let Some(wrong) = complaint(known, value) {
            return Err(NetError::Plan(format!(
                "transport `{}`: `{name}` {wrong}",
                info.name
            )));
        }
    }
    Ok(())
}

/// Error of a value.
fn complaint(known: &SettingInfo, value: &Setting) -> Option<String> {
    match (known.value, value) {
        (SettingKind::Bool, Setting::Bool(_)) | (SettingKind::Text, Setting::Text(_)) => None,
        (SettingKind::Bool, _) => Some("is a switch: true or false".to_owned()),
        (SettingKind::Number { min, max }, Setting::Number(n)) => {
            (!(min..=max).contains(n)).then(|| format!("is {n}, outside {min} to {max}"))
        }
        (SettingKind::Number { min, max }, _) => {
            Some(format!("takes a whole number from {min} to {max}"))
        }
        (SettingKind::Checked(check), Setting::Text(text)) => check(text).err(),
        (SettingKind::Text | SettingKind::Checked(_), _) => Some("takes a text".to_owned()),
        (SettingKind::Word(words), Setting::Text(text)) => (!words.contains(&text.as_str()))
            .then(|| format!("is `{text}`, not one of {}", words.join(", "))),
        (SettingKind::Word(words), _) => Some(format!("takes one of {}", words.join(", "))),
    }
}

/// A whole number that was checked to lie within bounds above 0, or its default.
pub(crate) fn number(engine: &EngineChoice, name: &str, default: u64) -> u64 {
    let given = engine.number(name).and_then(|n| u64::try_from(n).ok());
    given.unwrap_or(default)
}

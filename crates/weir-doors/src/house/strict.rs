//! Warnings that fail a run: `--strict`.

use std::collections::BTreeSet;

use weir_schema::{Warning, WarningKind};

use crate::flags::nearest;

/// Warnings that fail the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strict {
    /// None.
    No,
    /// All.
    All,
    /// Those with these ids.
    Ids(Vec<String>),
}

impl Strict {
    /// True if the warning of this id fails the run.
    pub fn holds(&self, id: &str) -> bool {
        match self {
            Self::No => false,
            Self::All => true,
            Self::Ids(ids) => ids.iter().any(|i| i == id),
        }
    }

    /// Message about the warnings that fail the run, each id once; `None` where none does.
    pub fn complaint<'a>(&self, warnings: impl Iterator<Item = &'a Warning>) -> Option<String> {
        let held = warnings.map(|w| w.id.as_str()).filter(|id| self.holds(id));
        let ids: BTreeSet<&str> = held.collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        (!ids.is_empty()).then(|| format!("error: --strict: {} (a warning)\n", ids.join(", ")))
    }
}

/// The list behind `--strict`, or nothing behind it.
pub(super) fn strict(list: &str) -> Result<Strict, String> {
    if list.is_empty() {
        return Ok(Strict::All);
    }
    let ids: Vec<&str> = list.split(',').map(str::trim).collect();
    if let Some(odd) = ids.iter().find(|id| WarningKind::of(id).is_none()) {
        let near = nearest(odd, WarningKind::ids());
        let hint = near.map_or_else(
            || {
                format!(
                    "the ids are {}",
                    WarningKind::ids().collect::<Vec<_>>().join(", ")
                )
            },
            |near| format!("did you mean `{near}`?"),
        );
        return Err(format!("no warning `{odd}`\n  help: {hint}"));
    }
    Ok(Strict::Ids(ids.into_iter().map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_the_run_is_named_once() {
        let warnings = ["slow", "cpu-steal", "slow"].map(|id| Warning::new(id, None, ""));
        let said = |strict| super::strict(strict).unwrap().complaint(warnings.iter());
        assert_eq!(Strict::No.complaint(warnings.iter()), None);
        assert_eq!(said("ramp"), None);
        assert_eq!(said("slow").unwrap(), "error: --strict: slow (a warning)\n");
        assert_eq!(
            said("").unwrap(),
            "error: --strict: cpu-steal, slow (a warning)\n"
        );
    }
}

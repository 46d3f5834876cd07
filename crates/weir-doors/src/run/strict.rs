//! Which warnings make a run fail: `--strict`.

use weir_schema::WarningKind;

use crate::flags::nearest;
use crate::refusal::Refusal;

/// Which warnings fail the run.
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
    /// Whether the warning of this id fails the run.
    pub fn holds(&self, id: &str) -> bool {
        match self {
            Self::No => false,
            Self::All => true,
            Self::Ids(ids) => ids.iter().any(|i| i == id),
        }
    }
}

/// The list behind `--strict`, or nothing behind it.
pub(super) fn strict(list: Option<&str>) -> Result<Strict, Refusal> {
    let list = match list {
        None => return Ok(Strict::No),
        Some("") => return Ok(Strict::All),
        Some(list) => list,
    };
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
        return Err(Refusal::usage(format!(
            "--strict: no warning `{odd}`\n  help: {hint}"
        )));
    }
    Ok(Strict::Ids(ids.into_iter().map(str::to_owned).collect()))
}

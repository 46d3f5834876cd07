//! Identity of a process among those of a world, from the variables it was started with.

/// The variables.
const RANK: &str = "WEIR_WORLD_RANK";
const SIZE: &str = "WEIR_WORLD_SIZE";
const NAME: &str = "WEIR_WORLD_NAME";
const PARENT: &str = "WEIR_WORLD_PARENT";
const TOKEN: &str = "WEIR_WORLD_TOKEN";

/// The place of a rank that another process started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RankIdentity {
    pub(super) rank: u32,
    pub(super) size: u32,
    /// Prefix of the names of all its sockets.
    pub(super) name: String,
    /// The process of rank 0.
    pub(super) parent: u32,
    /// Secret that only the ranks of this world know.
    pub(super) token: u64,
}

impl RankIdentity {
    /// Read from variables; `None` for a process that no world started.
    pub(super) fn of(value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name| value(name)?.parse::<u32>().ok();
        let place = Self {
            rank: number(RANK)?,
            size: number(SIZE)?,
            name: value(NAME)?,
            parent: number(PARENT)?,
            token: value(TOKEN)?.parse().ok()?,
        };
        (place.rank > 0 && place.rank < place.size).then_some(place)
    }

    /// The variables that tell it.
    pub(super) fn variables(&self) -> [(&'static str, String); 5] {
        [
            (RANK, self.rank.to_string()),
            (SIZE, self.size.to_string()),
            (NAME, self.name.clone()),
            (PARENT, self.parent.to_string()),
            (TOKEN, self.token.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_the_environment() {
        let place = RankIdentity {
            rank: 2,
            size: 3,
            name: "weir-1".to_owned(),
            parent: 77,
            token: u64::MAX,
        };
        let variables = place.variables();
        let value = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.clone())
        };
        assert_eq!(RankIdentity::of(value), Some(place));
        assert_eq!(RankIdentity::of(|_| None), None);
        assert_eq!(
            RankIdentity::of(|_| Some("3".to_owned())),
            None,
            "rank = size"
        );
    }
}

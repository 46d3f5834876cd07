//! Mixes: operations on an object store that are drawn one by one, with the keys that they act on.
//!
//! Not here: walks over keys in their order (`object_store`).

use serde::{Deserialize, Serialize};
use weir_units::{JsonSchema, Nanos};

/// Operations that are drawn in shares, until the first bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectMix {
    /// Weights of the operations.
    pub shares: MixShares,
    /// Frequency with which keys are drawn.
    pub keys: KeyDistribution,
    /// Most keys of a scan, which takes from 1 to so many.
    pub scan_keys: u32,
    /// Values that fetches read are held against those that were written.
    #[serde(default)]
    pub verify: bool,
    /// Operations of a rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// Time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ns: Option<Nanos>,
}

impl ObjectMix {
    /// Most keys of a scan, as YCSB has it.
    pub const SCAN_KEYS: u32 = 100;

    /// Operations of a rank that write a value, each a version of its own; `u64::MAX` where only time ends them.
    pub fn writes(&self) -> u64 {
        let MixShares {
            update,
            modify,
            insert,
            ..
        } = self.shares;
        let share: u64 = [update, modify, insert].into_iter().map(u64::from).sum();
        let all = u128::from(self.operations.unwrap_or(u64::MAX)) * u128::from(share);
        u64::try_from(all.div_ceil(self.shares.sum().max(1).into())).unwrap_or(u64::MAX)
    }
}

/// Weights of the operations of a mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixShares {
    /// Writes the value of a key.
    #[serde(default)]
    pub update: u32,
    /// Reads it.
    #[serde(default)]
    pub fetch: u32,
    /// Hides it.
    #[serde(default)]
    pub punch: u32,
    /// Reads the values of keys that follow each other by their numbers.
    #[serde(default)]
    pub scan: u32,
    /// Reads the value of a key, then writes it.
    #[serde(default)]
    pub modify: u32,
    /// Writes the value of a key that is not there yet.
    #[serde(default)]
    pub insert: u32,
}

impl MixShares {
    /// Operations by their names, each with its place in [`OBJECT_KINDS`](crate::OBJECT_KINDS).
    pub const KINDS: [(&'static str, usize); 6] = [
        ("update", 0),
        ("fetch", 1),
        ("punch", 3),
        ("scan", 10),
        ("modify", 11),
        ("insert", 12),
    ];

    /// Weights in the order of [`MixShares::KINDS`].
    pub fn weights(&self) -> [u32; 6] {
        let Self {
            update,
            fetch,
            punch,
            scan,
            modify,
            insert,
        } = *self;
        [update, fetch, punch, scan, modify, insert]
    }

    /// Weights in that order as shares.
    pub fn of_weights([update, fetch, punch, scan, modify, insert]: [u32; 6]) -> Self {
        Self {
            update,
            fetch,
            punch,
            scan,
            modify,
            insert,
        }
    }

    /// Sum of the weights.
    pub fn sum(&self) -> u64 {
        self.weights().into_iter().map(u64::from).sum()
    }
}

/// Frequency with which keys are drawn, among those that were written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "shape", rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyDistribution {
    /// All alike.
    Uniform,
    /// One after the other, from the first again after the last.
    Sequential,
    /// The key of popularity r as often as r to the power of -theta, on keys in no order.
    Zipf {
        /// The power.
        theta: f64,
    },
    /// A part of the keys, in no order, gets a part of the operations.
    Hotspot {
        /// Percent of the keys.
        keys_percent: f64,
        /// Percent of the operations.
        operations_percent: f64,
    },
    /// As zipf by age, the newest key first.
    Latest {
        /// The power.
        theta: f64,
    },
    /// Around the middle of the keys by their numbers.
    Normal {
        /// Standard deviation as a part of their number.
        sigma: f64,
    },
}

impl KeyDistribution {
    /// A number that it cannot have, and what it takes.
    pub fn wrong(&self) -> Option<&'static str> {
        let is_power = |theta: f64| theta > 0.0 && theta <= 100.0;
        let is_percent = |percent: f64| (0.0..=100.0).contains(&percent);
        match *self {
            Self::Zipf { theta } | Self::Latest { theta } if !is_power(theta) => {
                Some("theta is above 0, at most 100")
            }
            Self::Hotspot {
                keys_percent,
                operations_percent,
            } if !is_percent(keys_percent)
                || keys_percent == 0.0
                || !is_percent(operations_percent) =>
            {
                Some("a hot spot has percents of the keys, above 0, and of the operations")
            }
            Self::Normal { sigma } if !(sigma > 0.0 && sigma <= 1.0) => {
                Some("sigma is a part of the keys, above 0, at most 1")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OBJECT_KINDS;

    #[test]
    fn the_operations_of_a_mix_are_kinds_of_the_store() {
        for (name, kind) in MixShares::KINDS {
            assert_eq!(OBJECT_KINDS[kind].name, name);
        }
    }
}

//! Classes of objects: how they are spread over the targets of a store.

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

/// Spread of an object over targets, and what protects it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectClass {
    /// On one target, once.
    Tiny,
    /// On all targets, once.
    Large,
    /// On one group of targets, twice.
    R2s,
    /// The same, three times.
    R3s,
    /// The same, four times.
    R4s,
    /// On one group of targets in 2 parts, with 1 of parity.
    Ec2p1,
    /// The same in 2 parts, with 2 of parity.
    Ec2p2,
    /// The same in 4 parts, with 2 of parity.
    Ec4p2,
    /// The same in 8 parts, with 2 of parity.
    Ec8p2,
}

impl ObjectClass {
    /// All, in the order of help texts.
    pub const ALL: [Self; 9] = [
        Self::Tiny,
        Self::Large,
        Self::R2s,
        Self::R3s,
        Self::R4s,
        Self::Ec2p1,
        Self::Ec2p2,
        Self::Ec4p2,
        Self::Ec8p2,
    ];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "TINY",
            Self::Large => "LARGE",
            Self::R2s => "R2S",
            Self::R3s => "R3S",
            Self::R4s => "R4S",
            Self::Ec2p1 => "EC2P1",
            Self::Ec2p2 => "EC2P2",
            Self::Ec4p2 => "EC4P2",
            Self::Ec8p2 => "EC8P2",
        }
    }

    /// True if there is one copy of each value and no parity.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Tiny | Self::Large)
    }
}

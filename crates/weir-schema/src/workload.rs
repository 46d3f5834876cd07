//! Workloads of jobs: the list of them, and the facts that the house asks of each.
//!
//! Not here: what the jobs of a workload say, which is in a file for each.

use serde::{Deserialize, Serialize};
use weir_units::{JsonSchema, Nanos};

use crate::block_workload::BlockWorkload;
use crate::kind::{BLOCK_KINDS, KindInfo, MOST_KINDS};
use crate::load_of_loop::Load;

/// Facts that the house asks of a workload, whatever it does.
pub trait WorkloadFacts {
    /// Its work in a few words, for the title of a report.
    fn title(&self) -> String;

    /// The load of its loop, where it has one.
    fn load(&self) -> Option<&Load> {
        None
    }

    /// The same, to be changed.
    fn load_mut(&mut self) -> Option<&mut Load> {
        None
    }

    /// The seed of what it draws, where it draws anything; 0 asks for another one at each run.
    fn seed(&self) -> Option<u64> {
        None
    }

    /// Longest time without progress of its ranks, where they run it together.
    fn timeout_ns(&self) -> Option<Nanos> {
        None
    }

    /// Sets that, where there is such a limit.
    fn set_timeout(&mut self, _timeout: Nanos) {}
}

/// The enum of all workloads, from a line for each: its variant, its type, the kinds of operation
/// that it counts apart.
macro_rules! workloads {
    ($($(#[$summary:meta])* $name:ident($work:ty) counts $kinds:expr;)*) => {
        /// The work of a job.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Workload {
            $($(#[$summary])* $name(Box<$work>),)*
        }

        /// The names of the variants.
        const VARIANTS: &[&str] = &[$(stringify!($name)),*];

        /// The kinds of all workloads, in the order in which they are listed.
        pub(crate) const DECLARED_KINDS: &[&[KindInfo]] = &[$($kinds),*];

        $(const _: () = assert!($kinds.len() <= MOST_KINDS);)*

        impl Workload {
            /// The kinds of operation that it counts apart, in the order of reports.
            pub fn kinds(&self) -> &'static [KindInfo] {
                match self {
                    $(Self::$name(_) => $kinds,)*
                }
            }

            fn facts(&self) -> &dyn WorkloadFacts {
                match self {
                    $(Self::$name(work) => work.as_ref(),)*
                }
            }

            fn facts_mut(&mut self) -> &mut dyn WorkloadFacts {
                match self {
                    $(Self::$name(work) => work.as_mut(),)*
                }
            }
        }

        $(impl From<$work> for Workload {
            fn from(work: $work) -> Self {
                Self::$name(Box::new(work))
            }
        })*
    };
}

workloads! {
    /// Reads, writes and trims of blocks on files and devices.
    Block(BlockWorkload) counts BLOCK_KINDS;
    /// Messages between ranks.
    Exchange(crate::exchange::ExchangeWorkload) counts NO_KINDS;
    /// Requests to servers, each with a reply.
    Rpc(crate::rpc::RpcWorkload) counts crate::rpc::RPC_KINDS;
    /// Ping-pongs and rings of messages between ranks.
    LatencyBandwidth(crate::latency_bandwidth::LatencyBandwidthWorkload) counts NO_KINDS;
    /// Messages in packets through stages, and their answers.
    PacketPath(crate::packet_path::PacketPathWorkload) counts crate::packet_path::PACKET_PATH_KINDS;
    /// Tests on an object store, one after the other.
    ObjectStore(crate::object_store::ObjectWorkload) counts crate::object_store::OBJECT_KINDS;
    /// Work of a newer weir or another program, in a result of theirs.
    Unknown(UnknownWorkload) counts NO_KINDS;
}

/// A workload that this version does not know. Nothing carries it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnknownWorkload {
    /// Name in the newer version, or the other program's work in a few words.
    pub name: String,
}

impl WorkloadFacts for UnknownWorkload {
    fn title(&self) -> String {
        self.name.clone()
    }
}

/// Of a workload that counts no operations.
const NO_KINDS: &[KindInfo] = &[];

impl Workload {
    /// Names in plans of those that can be asked for.
    pub(crate) fn names() -> Vec<String> {
        let known = VARIANTS.iter().filter(|name| **name != "Unknown");
        known.map(|name| in_snake_case(name)).collect()
    }

    /// Its work in a few words, for the title of a report.
    pub fn title(&self) -> String {
        self.facts().title()
    }

    /// The load of its loop, where it has one.
    pub fn load(&self) -> Option<&Load> {
        self.facts().load()
    }

    /// The same, to be changed.
    pub fn load_mut(&mut self) -> Option<&mut Load> {
        self.facts_mut().load_mut()
    }

    /// The seed of what it draws, where it draws anything; 0 asks for another one at each run.
    pub fn seed(&self) -> Option<u64> {
        self.facts().seed()
    }

    /// Longest time without progress of its ranks, where they run it together.
    pub fn timeout_ns(&self) -> Option<Nanos> {
        self.facts().timeout_ns()
    }

    /// Sets that, where there is such a limit.
    pub fn set_timeout(&mut self, timeout: Nanos) {
        self.facts_mut().set_timeout(timeout);
    }

    /// Its block I/O, where that is its work.
    pub fn blocks(&self) -> Option<&BlockWorkload> {
        match self {
            Self::Block(work) => Some(work),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> Option<&mut BlockWorkload> {
        match self {
            Self::Block(work) => Some(work),
            _ => None,
        }
    }
}

/// As serde writes the name of a variant.
fn in_snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_by_which_plans_are_read() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../../schemas/plan.v2.schema.json")).unwrap();
        let all = schema["$defs"]["Workload"]["oneOf"]
            .as_array()
            .unwrap()
            .iter();
        let mut read: Vec<_> = all
            .map(|one| {
                one["properties"]["kind"]["const"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        read.retain(|name| name != "unknown");
        assert_eq!(Workload::names(), read);
    }
}

//! `weir nvme-perf`, also reached by a link named `spdk_nvme_perf`: reads and writes of NVMe namespaces, other
//! block devices and files, by a worker with a queue of its own on each core.
//!
//! In: arguments, the machine. Out: a [`Request`](crate::Request); from a result the tables of `output`. Spec:
//! NVMe device measurement, 1 to 4, 8 and 9. Not here: engines, the guard of what is in use, weir's report.

mod cores;
mod flags;
mod list;
mod output;
mod plan;
mod prepare;
mod targets;
#[cfg(test)]
mod tests;
mod values;

pub use flags::FLAGS;
pub use prepare::NamespaceUse;
pub use targets::NvmeNamespace;

use crate::door::{Door, DoorLink, Getopt, Manner, Measures};
use crate::refusal::{Refusal, USAGE};

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new(PEER)],
    flags: FLAGS,
    measures: Some(MEASURES),
    ..Door::new(
        "nvme-perf",
        "[OPTIONS] [FILE]...",
        "NVMe namespaces, block devices and files at a queue depth per core, as spdk_nvme_perf",
    )
};

/// The peer's name.
const PEER: &str = "spdk_nvme_perf";

/// Arguments as `getopt_long` of the C library takes them.
const MANNER: Getopt = Getopt {
    abbreviates: |flag| flag.category != flags::OWN,
    letters_stand_together: true,
    takes_any_value: true,
    operand: |_, _| Ok(()),
    ..Getopt::new(refuse, || DOOR.command().render_long_help().to_string())
};

const MEASURES: Measures = Measures {
    manner: Manner::Getopt(&MANNER),
    print: Some(|result, given, _| Ok(output::print(result, given))),
    observe: Some(|given, _| Box::new(output::Beginning::of(given))),
    // The peer has 1 for arguments; 2 is that something would lose its data.
    peer_code: |refusal, _, _| match refusal.code {
        USAGE if !refusal.is_guard => 1,
        code => code,
    },
    without: &["ranks", "rank-timeout"],
    help: include_str!("help.md"),
    examples: &[
        "weir nvme-perf -q 16 -o 1048576 -w read -c 0x1 -t 60",
        "weir nvme-perf -q 16 -o 4096 -w randread -t 10 -LL --voice peer /dev/nvme0n1",
        "weir nvme-perf -q 32 -o 4k -w randrw -M 70 -t 60 -a 5 --destroy /dev/nvme0n1 /dev/nvme0n1",
        "weir nvme-perf -q 8 -o 128k -w read -c [0-3] -d 100% -t 600 --allowed-pci-addr 0000:01:00.0",
        "weir nvme-perf --list",
    ],
    ..Measures::new(plan::read)
};

/// A refusal of arguments, to which the peer adds nothing.
fn refuse(why: &str) -> Refusal {
    Refusal::usage(why).by_peer(why)
}

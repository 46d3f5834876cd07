//! Side of the packet path that a run carries out, and its wait for the other side.

use std::net::Ipv4Addr;

use weir_schema::{PacketPathWorkload, PathSide};

use super::config::AxioConfig;
use crate::given::GivenFlags;
use crate::machine::Machine;
use crate::refusal::Refusal;

/// Sides of the packet path that a run carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxioRole {
    /// Both, as threads of one process.
    Loopback,
    /// One side.
    Alone(PathSide),
}

impl AxioRole {
    /// Role by the flags, else the configuration, else the variable.
    pub(super) fn of(
        config: &AxioConfig,
        given: &GivenFlags,
        machine: &dyn Machine,
    ) -> Result<Self, Refusal> {
        let words = ["loopback", "server", "client"];
        let flags: Vec<&str> = words.into_iter().filter(|word| given.has(word)).collect();
        if let [first, second, ..] = flags.as_slice() {
            let why = format!("--{second}: --{first} says another role; leave one of them out");
            return Err(Refusal::usage(why));
        }
        let variable = machine.variable("AXIO_NODE");
        let (from, role) = match (flags.first(), config.text("role"), variable) {
            (Some(flag), ..) => (format!("--{flag}"), (*flag).to_owned()),
            (None, Some(role), _) => (config.place_of("role"), role.to_owned()),
            (None, None, Some(role)) => ("AXIO_NODE".to_owned(), role),
            (None, None, None) => {
                return Err(Refusal::usage(
                    "the role is missing: --loopback, --server or --client, or `role` in the configuration",
                ));
            }
        };
        match role.as_str() {
            "loopback" => Ok(Self::Loopback),
            "server" => Ok(Self::Alone(PathSide::Server)),
            "client" => Ok(Self::Alone(PathSide::Client)),
            other => {
                let all = words.join(", ");
                Err(Refusal::usage(format!("{from}: `{other}` (valid: {all})")))
            }
        }
    }

    pub(super) fn side(self) -> Option<PathSide> {
        match self {
            Self::Loopback => None,
            Self::Alone(side) => Some(side),
        }
    }
}

/// Note on the other side that this one waits for, printed before the first result.
pub(super) fn waiting_note(work: &PacketPathWorkload) -> Option<String> {
    let server = Ipv4Addr::from(work.addresses[1]);
    let at = format!("{server}:{}", work.management_port);
    let side = work.side.filter(|_| work.management_port > 0);
    side.map(|side| match side {
        PathSide::Server => format!("the server waits for its client at {at}"),
        PathSide::Client => format!("the client calls its server at {at}"),
    })
}

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

/// Note of a client on the server that it waits for, printed before the first result. A server says where it
/// listens once it does.
pub(super) fn waiting_note(work: &PacketPathWorkload) -> Option<String> {
    let server = Ipv4Addr::from(work.addresses[1]);
    let is_client = work.side == Some(PathSide::Client) && work.management_port > 0;
    is_client.then(|| {
        format!(
            "the client calls its server at {server}:{}",
            work.management_port
        )
    })
}

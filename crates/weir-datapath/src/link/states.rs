//! Which links this machine can have: asked for without opening one.

use std::net::UdpSocket;

use rustix::net::{AddressFamily, SocketType, socket};

use crate::{dpdk_library, shm_link, verbs};

/// A link, and whether it is to be had here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// As plans name it.
    pub name: &'static str,
    /// Why it is not, and what helps; none where it is.
    pub lacks: Option<String>,
}

/// Check of the machine for what a link needs.
type MachineCheck = fn() -> Option<String>;

/// All of them.
pub fn link_states() -> Vec<LinkState> {
    const ALL: [(&str, MachineCheck); 7] = [
        ("ring", || None),
        ("shm", shm_link::lacks),
        ("udp", udp),
        ("packet", packet),
        ("xdp", xdp),
        ("dpdk", dpdk_library::lacks),
        ("verbs", || verbs::lacks(None)),
    ];
    let of = |(name, lacks): (&'static str, MachineCheck)| LinkState {
        name,
        lacks: lacks(),
    };
    ALL.into_iter().map(of).collect()
}

fn udp() -> Option<String> {
    let bound = UdpSocket::bind("127.0.0.1:0");
    bound.err().map(|why| format!("no UDP: {why}"))
}

fn packet() -> Option<String> {
    socket_lacks(
        AddressFamily::PACKET,
        "CAP_NET_RAW, as root has it",
        "CONFIG_PACKET",
    )
}

fn xdp() -> Option<String> {
    socket_lacks(
        AddressFamily::XDP,
        "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, as root has them",
        "CONFIG_XDP_SOCKETS",
    )
}

/// Why there is no raw socket of a family.
fn socket_lacks(family: AddressFamily, right: &str, option: &str) -> Option<String> {
    use rustix::io::Errno;
    Some(match socket(family, SocketType::RAW, None) {
        Ok(_) => return None,
        Err(Errno::PERM | Errno::ACCESS) => format!("it needs {right}"),
        Err(Errno::AFNOSUPPORT) => format!("the kernel was built without {option}"),
        Err(why) => format!("no socket of it: {why}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_shared_memory_are_to_be_had_everywhere() {
        let all = link_states();
        let lacks = |name: &str| {
            let one = all.iter().find(|one| one.name == name).unwrap();
            one.lacks.clone()
        };
        assert_eq!(
            [lacks("ring"), lacks("shm"), lacks("udp")],
            [None, None, None]
        );
        let absent = socket_lacks(AddressFamily::from_raw(39), "nothing", "CONFIG_X");
        assert!(absent.is_some());
    }
}

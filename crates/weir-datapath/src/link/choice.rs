//! Which link a job asks for, by the name of its engine, and what it needs of the machine.
//!
//! In: an engine's name and settings. Out: refusals; sockets of dispatchers. Not here: how they are used.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;

use weir_run::failure;
use weir_schema::{EngineChoice, Failure, PacketPathWorkload, PathSide, Setting};
use weir_sys::interface::{self, InterfaceFacts};

use super::datagrams::{frame_socket, make_room};
use super::{AnyLink, SocketKind, SocketLink};
use crate::dpdk_library;
use crate::dpdk_link::{self, DpdkSettings};
use crate::frame::longest_packet;
use crate::pool::BUFFER_BYTES;
use crate::shm_link::{self, ShmOffer};
use crate::verbs::{self, VerbsFacts, VerbsPort, VerbsSettings};
use crate::wiring::SideLinks;
use crate::xdp_link::{self, XdpSettings};

/// The links there are.
const LINKS: [&str; 7] = ["ring", "shm", "udp", "packet", "xdp", "dpdk", "verbs"];

/// A link that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkChoice {
    /// Rings in memory.
    Ring,
    /// Sockets of UDP.
    Udp,
    /// Frames of the interface of this name.
    Packet(String),
    /// Queues of an interface by `AF_XDP`.
    Xdp(XdpSettings),
    /// Queues of a device by DPDK.
    Dpdk(DpdkSettings),
    /// Queue pairs of an RDMA device.
    Verbs(VerbsSettings),
    /// Shared memory, which is handed over at this path.
    Shm(String),
}

/// The links of a run before the other side is known: of the client, of the server.
pub(crate) struct OpenedLinks {
    links: [SideLinks<AnyLink>; 2],
    /// Memory for the client that will come.
    offer: Option<ShmOffer>,
    /// The device whose queue pairs the other side has to know.
    port: Option<VerbsPort>,
}

impl LinkChoice {
    /// The link that an engine's name and settings ask for.
    ///
    /// # Errors
    /// A name or a setting that there is not.
    pub(crate) fn of(engine: &EngineChoice) -> Result<Self, Failure> {
        Self::read(engine).map_err(|why| failure("plan", None, why))
    }

    fn read(engine: &EngineChoice) -> Result<Self, String> {
        let mut settings = engine.settings.iter();
        let choice = match engine.name.as_str() {
            "xdp" => {
                let settings = XdpSettings::read(&engine.settings);
                return settings.map(Self::Xdp).map_err(|wrong| wrong.join("; "));
            }
            "dpdk" => {
                let settings = DpdkSettings::read(&engine.settings);
                return settings.map(Self::Dpdk).map_err(|wrong| wrong.join("; "));
            }
            "verbs" => {
                let settings = VerbsSettings::read(&engine.settings);
                return settings.map(Self::Verbs).map_err(|wrong| wrong.join("; "));
            }
            "ring" => Self::Ring,
            "udp" => Self::Udp,
            "packet" => match engine.settings.get("interface") {
                Some(Setting::Text(name)) => Self::Packet(name.clone()),
                _ => return Err("the link `packet` needs the setting `interface`".to_owned()),
            },
            "shm" => match engine.settings.get("path") {
                Some(Setting::Text(path)) if !path.is_empty() => Self::Shm(path.clone()),
                _ => return Err("the link `shm` needs the setting `path`".to_owned()),
            },
            other => {
                let all = LINKS.join(", ");
                return Err(format!(
                    "there is no link `{other}` between dispatchers (there are {all})"
                ));
            }
        };
        let known = |name: &str| match engine.name.as_str() {
            "packet" => name == "interface",
            "shm" => name == "path",
            _ => false,
        };
        match settings.find(|(name, _)| !known(name)) {
            Some((name, _)) => Err(format!("the link has no setting `{name}`")),
            None => Ok(choice),
        }
    }

    /// The part of a job that it cannot carry; touches nothing but facts about the machine.
    pub(crate) fn check(&self, work: &PacketPathWorkload) -> Option<Failure> {
        let refused = |why: &str| Some(failure("plan", None, why));
        match (self, work.side) {
            (Self::Ring, Some(_)) => {
                refused("the link `ring` is in memory of one run, which has to be both sides")
            }
            (Self::Shm(path), _) => match shm_link::check(work) {
                Some(why) => refused(&why),
                None => shm_link::path_lacks(path).map(|why| failure("missing", None, why)),
            },
            (Self::Packet(_), None) => refused(
                "the link `packet` has one interface: client and server are runs of their own",
            ),
            (Self::Packet(name), Some(_)) => check_interface(name, work),
            (Self::Xdp(settings), _) => {
                xdp_link::check(work, settings).and_then(|why| refused(&why))
            }
            (Self::Dpdk(settings), _) => {
                let unfit = dpdk_link::check(work, settings).and_then(|why| refused(&why));
                // Known before another side is waited for.
                unfit.or_else(|| dpdk_library::lacks().map(|why| failure("missing", None, why)))
            }
            (Self::Verbs(settings), _) => verbs::check(work, settings),
            _ => None,
        }
    }

    /// The Ethernet address of this side, where the link has one.
    pub(crate) fn hardware_address(&self) -> Option<[u8; 6]> {
        let name = match self {
            Self::Packet(name) => name,
            Self::Xdp(settings) => settings.interface(),
            _ => return None,
        };
        interface::facts(name)
            .ok()
            .map(|facts| facts.hardware_address)
    }

    /// Opens what can be opened before the other side is known.
    ///
    /// # Errors
    /// The part that the machine lacks, or does not let one have.
    pub(crate) fn open(&self, work: &PacketPathWorkload) -> Result<OpenedLinks, Failure> {
        let (mut offer, mut port) = (None, None);
        let links = match self {
            Self::Ring => <[SideLinks<AnyLink>; 2]>::default(),
            Self::Udp | Self::Packet(_) => self.sockets(work)?,
            Self::Xdp(settings) => xdp_link::links(work, settings)?
                .map(|side| any(side, |link| AnyLink::Xdp(Box::new(link)))),
            Self::Dpdk(settings) => {
                dpdk_link::links(work, settings)?.map(|side| any(side, AnyLink::Dpdk))
            }
            Self::Verbs(settings) => {
                port = Some(VerbsPort::open(work, settings)?);
                <[SideLinks<AnyLink>; 2]>::default()
            }
            Self::Shm(path) => {
                let is_server = work.side == Some(PathSide::Server);
                offer = is_server.then(|| ShmOffer::at(path, work)).transpose()?;
                <[SideLinks<AnyLink>; 2]>::default()
            }
        };
        Ok(OpenedLinks { links, offer, port })
    }

    /// The sockets of all dispatchers: of the client, of the server.
    fn sockets(&self, work: &PacketPathWorkload) -> Result<[SideLinks<AnyLink>; 2], Failure> {
        let mut all = <[SideLinks<AnyLink>; 2]>::default();
        for &side in work.sides() {
            for number in work.dispatchers() {
                if let Some(socket) = self.socket(work, side, number)? {
                    let at = usize::from(side == PathSide::Server);
                    all[at].insert(number, AnyLink::Socket(socket));
                }
            }
        }
        Ok(all)
    }

    /// The socket of a dispatcher; none where the link has none.
    ///
    /// # Errors
    /// It cannot be had.
    fn socket(
        &self,
        work: &PacketPathWorkload,
        side: PathSide,
        number: u8,
    ) -> Result<Option<SocketLink>, Failure> {
        let port = work.first_port.wrapping_add(u16::from(number));
        let [own, other] = match side {
            PathSide::Client => [0, 1],
            PathSide::Server => [1, 0],
        }
        .map(|at| Ipv4Addr::from(work.addresses[at]));
        let (socket, kind): (OwnedFd, _) = match self {
            Self::Ring | Self::Xdp(_) | Self::Dpdk(_) | Self::Verbs(_) | Self::Shm(_) => {
                return Ok(None);
            }
            Self::Udp => {
                let at = SocketAddrV4::new(own, port);
                let socket = UdpSocket::bind(at).and_then(|socket| {
                    socket.set_nonblocking(true)?;
                    Ok(socket)
                });
                let socket = socket.map_err(|why| unusable(&format!("UDP at {at}"), &why))?;
                (socket.into(), SocketKind::Udp(other))
            }
            Self::Packet(name) => {
                let facts = interface_of(name)?;
                let socket = frame_socket(facts.index, port);
                let socket = socket.map_err(|why| unusable(&format!("frames of {name}"), &why))?;
                (socket, SocketKind::Frames)
            }
        };
        // What the kernel counts for a packet is more than its bytes.
        make_room(&socket, work.queue_slots as usize * 2 * BUFFER_BYTES);
        let posts = (work.batches.link_tx, work.batches.link_rx);
        Ok(Some(SocketLink::new(socket, kind, port, posts)))
    }
}

impl OpenedLinks {
    /// The links, with what depends on the other side, which has these dispatchers. Facts about this side's go there,
    /// and those about the other's come from there.
    ///
    /// # Errors
    /// They cannot be had.
    pub(crate) fn complete(
        self,
        work: &PacketPathWorkload,
        choice: &LinkChoice,
        others: &[u8],
        exchange: impl FnOnce(VerbsFacts) -> Result<Option<VerbsFacts>, Failure>,
    ) -> Result<[SideLinks<AnyLink>; 2], Failure> {
        match (choice, self.port) {
            (LinkChoice::Shm(path), _) => {
                let shared = shm_link::links(work, (path, self.offer), others)?;
                Ok(shared.map(|side| any(side, |link| AnyLink::Shm(Box::new(link)))))
            }
            (_, Some(port)) => {
                let joined = verbs::links(work, &port, others, exchange)?;
                Ok(joined.map(|side| any(side, |link| AnyLink::Verbs(Box::new(link)))))
            }
            _ => Ok(self.links),
        }
    }
}

fn any<L>(links: SideLinks<L>, of: impl Fn(L) -> AnyLink) -> SideLinks<AnyLink> {
    let links = links.into_iter();
    links.map(|(number, link)| (number, of(link))).collect()
}

fn unusable(what: &str, why: &io::Error) -> Failure {
    let remedy = match why.kind() {
        io::ErrorKind::PermissionDenied if what.starts_with("UDP") => {
            ": ports below 1024 need root, or CAP_NET_BIND_SERVICE: choose a higher `udp_port_base`"
        }
        io::ErrorKind::PermissionDenied => ": that needs CAP_NET_RAW, as root has it",
        io::ErrorKind::AddrNotAvailable => {
            ": this machine has no such address; `local_ip` is one of its own (`ip address` lists \
             them)"
        }
        io::ErrorKind::AddrInUse => {
            ": another program has that port; choose another `udp_port_base`, the same on both sides"
        }
        _ => "",
    };
    failure(
        "missing",
        why.raw_os_error(),
        format!("cannot open {what}: {why}{remedy}"),
    )
}

fn interface_of(name: &str) -> Result<InterfaceFacts, Failure> {
    interface::facts(name).map_err(|why| {
        failure(
            "missing",
            why.raw_os_error(),
            format!("there is no interface {name}: {why}"),
        )
    })
}

/// The interface is there, up, and takes the longest packet.
fn check_interface(name: &str, work: &PacketPathWorkload) -> Option<Failure> {
    let facts = match interface_of(name) {
        Ok(facts) => facts,
        Err(why) => return Some(why),
    };
    if !facts.is_up {
        let why = format!("the interface {name} is down (`ip link set {name} up`)");
        return Some(failure("missing", None, why));
    }
    let longest = longest_packet(work);
    if longest > facts.mtu {
        return Some(failure(
            "plan",
            None,
            format!(
                "messages make packets of {longest} bytes (`packet_bytes` is {}), the interface {name} takes {} \
                 (its MTU)",
                work.packet_bytes, facts.mtu
            ),
        ));
    }
    // Whether it is allowed is known before anything is prepared.
    let trial = frame_socket(facts.index, work.first_port);
    trial
        .err()
        .map(|why| unusable(&format!("frames of {name}"), &why))
}

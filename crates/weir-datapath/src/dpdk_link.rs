//! The link over DPDK: a queue of a port for each dispatcher.
//!
//! In: the settings of a link. Out: a link for each dispatcher of both sides. Client and server have a
//! device each, with a wire between them: a device that DPDK makes (`net_af_packet0,iface=eth1`), or a card
//! by its address; or both have rings in memory, `rings`. The device does not steer, as with `AF_XDP`. Not
//! here: DPDK itself (`dpdk_library`).

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_run::failure;
use weir_schema::{Failure, PacketPathWorkload, PathSide, Setting};

use crate::arp::OwnAddress;
use crate::copy_link::{CopyLink, FrameQueue};
use crate::dpdk_library::{DpdkLibrary, DpdkPort, DpdkQueue};
use crate::frame::{LowerHeaders, longest_packet};
use crate::wiring::SideLinks;

/// The word for rings in memory, and the ports at their ends.
const RINGS: &str = "rings";
const RING_PORTS: [&str; 2] = ["weir_client", "weir_server"];

/// Settings of the link of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DpdkSettings {
    devices: DpdkDevices,
    /// Packets that a server sends at the start, for a device that brings them back.
    first_packets: u32,
}

/// Devices that packets go through.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DpdkDevices {
    /// Rings of DPDK in memory.
    Rings,
    /// Devices: of this side, or of client and server.
    Own(Vec<String>),
}

impl DpdkSettings {
    /// Reads them.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(settings: &BTreeMap<String, Setting>) -> Result<Self, Vec<String>> {
        let text = |name: &str| match settings.get(name) {
            Some(Setting::Text(text)) if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        let known = ["device", "peer_device", "first_packets"];
        let unknown = settings
            .keys()
            .filter(|name| !known.contains(&name.as_str()));
        let mut wrong: Vec<String> = unknown
            .map(|name| {
                format!("the link dpdk has no setting `{name}` (it has device, peer_device, first_packets)")
            })
            .collect();
        let first_packets = match settings.get("first_packets") {
            None => 0,
            Some(Setting::Number(packets @ 0..=1024)) => u32::try_from(*packets).unwrap_or(0),
            Some(_) => {
                wrong.push("`first_packets` of the link takes 0 to 1024".to_owned());
                0
            }
        };
        let devices = match (text("device"), text("peer_device")) {
            (Some(rings), None) if rings == RINGS => Some(DpdkDevices::Rings),
            (Some(client), Some(server)) if client != server => {
                Some(DpdkDevices::Own(vec![client, server]))
            }
            (Some(own), None) => Some(DpdkDevices::Own(vec![own])),
            _ => {
                wrong.push(
                    "`device` of the link is that of this side; with `peer_device` they are two devices, of \
                     client and server; or it is `rings`"
                        .to_owned(),
                );
                None
            }
        };
        let read = devices.filter(|_| wrong.is_empty());
        let settings = read.map(|devices| Self {
            devices,
            first_packets,
        });
        settings.ok_or(wrong)
    }

    /// Addresses of cards, which DPDK has to be told of as it starts.
    fn cards(&self) -> Vec<String> {
        let is_card = |name: &&String| {
            let mut parts = name.split([':', '.']);
            name.contains(':') && parts.all(|part| u32::from_str_radix(part, 16).is_ok())
        };
        match &self.devices {
            DpdkDevices::Rings => Vec::new(),
            DpdkDevices::Own(devices) => devices.iter().filter(is_card).cloned().collect(),
        }
    }
}

/// The part of a packet path that the link cannot do.
pub(crate) fn check(work: &PacketPathWorkload, settings: &DpdkSettings) -> Option<String> {
    let has_both = match &settings.devices {
        DpdkDevices::Rings => true,
        DpdkDevices::Own(devices) => devices.len() == 2,
    };
    let serves_alone = work.side == Some(PathSide::Server) && work.management_port == 0;
    if settings.first_packets > 0 && !serves_alone {
        let why = "first packets are those of a server without a client (`management_port` 0)";
        return Some(why.to_owned());
    }
    if has_both == work.side.is_some() {
        return Some(
            "a link dpdk has two devices, or rings, where client and server are in one run, and there alone"
                .to_owned(),
        );
    }
    let slots = work.queue_slots;
    (!slots.is_power_of_two() || slots > 1 << 15).then(|| {
        format!(
            "`queue_slots` is {slots}: queues of the link dpdk have a power of two, up to 32768"
        )
    })
}

/// The links of the run's dispatchers: of the client, of the server.
///
/// # Errors
/// The part that the machine lacks.
pub(crate) fn links(
    work: &PacketPathWorkload,
    settings: &DpdkSettings,
) -> Result<[SideLinks<CopyLink<DpdkQueue>>; 2], Failure> {
    let missing = |why: String| failure("missing", None, why);
    let library = DpdkLibrary::open(&settings.cards()).map_err(missing)?;
    let queues = u16::try_from(work.dispatchers().len()).unwrap_or(u16::MAX);
    let names = match &settings.devices {
        DpdkDevices::Rings => {
            library
                .cross(RING_PORTS, queues, work.queue_slots)
                .map_err(missing)?;
            RING_PORTS.map(|name| format!("net_ring_{name}")).to_vec()
        }
        DpdkDevices::Own(devices) => devices.clone(),
    };
    let first = settings.first_packets;
    let open = |device: &String, of| side(work, &library, device, (of, first)).map_err(missing);
    let [client_side, server_side] = [PathSide::Client, PathSide::Server];
    Ok(match (names.as_slice(), work.side) {
        ([client, server], _) => [open(client, client_side)?, open(server, server_side)?],
        ([own], Some(PathSide::Server)) => [SideLinks::new(), open(own, server_side)?],
        ([own], _) => [open(own, client_side)?, SideLinks::new()],
        _ => [SideLinks::new(), SideLinks::new()],
    })
}

fn side(
    work: &PacketPathWorkload,
    library: &Arc<DpdkLibrary>,
    device: &str,
    (side, first_packets): (PathSide, u32),
) -> Result<SideLinks<CopyLink<DpdkQueue>>, String> {
    // The kernel does not see what comes, and answers no questions.
    let address = OwnAddress {
        ip: work.addresses[usize::from(side == PathSide::Server)],
        ethernet: work.hardware_addresses[usize::from(side == PathSide::Server)],
    };
    let dispatchers = work.dispatchers();
    let queues = u16::try_from(dispatchers.len()).unwrap_or(u16::MAX);
    let sizes = (queues, work.queue_slots);
    let port = DpdkPort::open(library, device, sizes, longest_packet(work))?;
    let port = Arc::new(port);
    let link = |(queue, number): (u16, u8)| {
        let mut queue = DpdkQueue::new(&port, queue, work.queue_slots)?;
        begin(&mut queue, work, first_packets);
        Ok((number, CopyLink::new(queue, &work.batches, Some(address))))
    };
    (0..).zip(dispatchers).map(link).collect()
}

/// Sends so many packets, as far as there is room: what a client would.
fn begin(queue: &mut DpdkQueue, work: &PacketPathWorkload, packets: u32) {
    let mut frame = vec![0; work.frame_bytes(work.request_bytes) as usize];
    LowerHeaders::of(work, PathSide::Client).write(&mut frame);
    for _ in 0..packets {
        queue.push(&frame);
    }
    queue.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<DpdkSettings, Vec<String>> {
        let of =
            |(name, text): &(&str, &str)| ((*name).to_owned(), Setting::Text((*text).to_owned()));
        DpdkSettings::read(&settings.iter().map(of).collect())
    }

    #[test]
    fn settings_are_read_and_cards_are_known_by_their_addresses() {
        let rings = read(&[("device", "rings")]).unwrap();
        assert_eq!(
            (rings.devices, rings.first_packets),
            (DpdkDevices::Rings, 0)
        );
        let two = [
            ("device", "net_af_packet0,iface=a:b"),
            ("peer_device", "0000:98:00.1"),
        ];
        assert_eq!(read(&two).unwrap().cards(), ["0000:98:00.1"]);
        for wrong in [
            &[("device", "net_null0"), ("peer_device", "net_null0")][..],
            &[("peer_device", "net_null0")],
            &[],
        ] {
            let why = read(wrong).unwrap_err().join("\n");
            assert!(why.contains("two devices, of"), "{why}");
        }
        let why = read(&[("device", "rings"), ("devise", "a")]).unwrap_err();
        assert!(why[0].contains("no setting `devise`"), "{why:?}");
    }
}

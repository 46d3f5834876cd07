//! Settings of the link, the address of its port, and who is joined to whom.
//!
//! In: a plan, its other side. Out: an end for each dispatcher. Each dispatcher reaches each of the other side: a
//! frame goes to the one that its UDP port names. Both sides in one run have one device. Not here: calls of the
//! library (`library`, `queue`).

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_run::failure;
use weir_schema::{Failure, MOST_PATH_THREADS, PacketPathWorkload, PathSide, Setting};

use super::library::{self, PORT, VerbsDevice};
use super::queue::VerbsEnd;
use crate::copy_link::{CopyLink, FrameQueue};
use crate::frame::{longest_packet, target_port};
use crate::wiring::SideLinks;

/// Bytes of a frame before its packet.
const ETHERNET: u32 = 14;
/// The most bytes of a packet of RC that are asked for.
const MOST_MTU: u32 = 4096;

/// Kind of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// Datagrams, which are lost where there is no room.
    Ud,
    /// Connections, which lose nothing.
    Rc,
}

/// Settings of the link of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerbsSettings {
    transport: Transport,
    device: String,
    /// Its place among the addresses of the port; the first of RoCE v2 over IPv4 where none is asked for.
    gid_index: Option<u8>,
}

impl VerbsSettings {
    /// Reads them.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(settings: &BTreeMap<String, Setting>) -> Result<Self, Vec<String>> {
        let known = ["transport", "device", "gid_index"];
        let unknown = settings
            .keys()
            .filter(|name| !known.contains(&name.as_str()));
        let mut wrong: Vec<String> = unknown
            .map(|name| {
                format!(
                    "the link verbs has no setting `{name}` (it has {})",
                    known.join(", ")
                )
            })
            .collect();
        let transport = match settings.get("transport") {
            Some(Setting::Text(text)) if text == "ud" => Some(Transport::Ud),
            Some(Setting::Text(text)) if text == "rc" => Some(Transport::Rc),
            _ => None,
        };
        if transport.is_none() {
            wrong.push("`transport` of the link is ud or rc".to_owned());
        }
        let device = match settings.get("device") {
            Some(Setting::Text(text)) if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        if device.is_none() {
            wrong.push("`device` of the link is the name of an RDMA device".to_owned());
        }
        let gid_index = match settings.get("gid_index") {
            None => None,
            Some(Setting::Number(number)) if u8::try_from(*number).is_ok() => {
                u8::try_from(*number).ok()
            }
            Some(_) => {
                wrong.push("`gid_index` of the link is from 0 to 255".to_owned());
                None
            }
        };
        match (transport, device) {
            (Some(transport), Some(device)) if wrong.is_empty() => Ok(Self {
                transport,
                device,
                gid_index,
            }),
            _ => Err(wrong),
        }
    }
}

/// The part of a packet path that the link, or this machine, cannot do.
pub(crate) fn check(work: &PacketPathWorkload, settings: &VerbsSettings) -> Option<Failure> {
    if work.side.is_some() && work.management_port == 0 {
        let why =
            "sides of a link verbs say their queue pairs to each other: `management_port` is not 0";
        return Some(failure("plan", None, why));
    }
    library::lacks(Some(&settings.device)).map(|why| failure("missing", None, why))
}

/// The address of a port, and its place among those of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortAddress {
    index: u8,
    bytes: [u8; 16],
}

/// The address that is asked for, of the folder that the kernel has for a port; else its first of RoCE v2 over IPv4.
fn address(port: &Path, asked: Option<u8>) -> Result<PortAddress, String> {
    let read = |folder: &str, index: u8| {
        let text = fs::read_to_string(port.join(folder).join(index.to_string())).ok()?;
        Some(text.trim().to_owned())
    };
    let at = |index: u8| {
        let known = read("gids", index)?.parse::<Ipv6Addr>().ok()?;
        let is_second = read("gid_attrs/types", index)? == "RoCE v2";
        let known = Some(known).filter(|known| is_second && !known.is_unspecified());
        known.map(|known| (index, known))
    };
    let found = match asked {
        Some(index) => at(index),
        None => (0..=u8::MAX)
            .filter_map(at)
            .find(|(_, known)| known.to_ipv4_mapped().is_some()),
    };
    let found = found.map(|(index, known)| PortAddress {
        index,
        bytes: known.octets(),
    });
    found.ok_or_else(|| match asked {
        Some(index) => format!("its address {index} (`gid_index`) is none of RoCE v2"),
        None => "it has no address of RoCE v2 over IPv4: give its network interface one".to_owned(),
    })
}

/// The port of a device that is open, before the other side is known.
#[derive(Debug)]
pub(crate) struct VerbsPort {
    device: Arc<VerbsDevice>,
    transport: Transport,
    address: PortAddress,
}

impl VerbsPort {
    /// Opens the device of a link.
    ///
    /// # Errors
    /// The part that the machine lacks, and messages of UD that its port does not take.
    pub(crate) fn open(
        work: &PacketPathWorkload,
        settings: &VerbsSettings,
    ) -> Result<Self, Failure> {
        let missing = |why: String| failure("missing", None, why);
        let name = &settings.device;
        let device = VerbsDevice::open(name).map_err(missing)?;
        let port = format!("/sys/class/infiniband/{name}/ports/{PORT}");
        let address = address(Path::new(&port), settings.gid_index);
        let address = address.map_err(|why| missing(format!("{name}: {why}")))?;
        let (longest, mtu) = (longest_packet(work) + ETHERNET, device.mtu);
        if settings.transport == Transport::Ud && longest > mtu {
            let why = format!(
                "messages make frames of {longest} bytes, of which the port of {name} takes {mtu} as a message of UD \
                 (its MTU): make packets of at most {} bytes (`mtu`, `packet_bytes`), raise the MTU of its network \
                 interface, or take RC",
                mtu - ETHERNET
            );
            return Err(failure("plan", None, why));
        }
        Ok(Self {
            device,
            transport: settings.transport,
            address,
        })
    }
}

/// Facts about a side's queue pairs that the other side needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VerbsFacts {
    transport: Transport,
    address: [u8; 16],
    mtu: u32,
    pairs: Vec<FarPair>,
}

/// A queue pair: of which dispatcher, and for which of the other side.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct FarPair {
    own: u8,
    other: u8,
    pub(super) number: u32,
}

/// The ends of a side's dispatchers.
struct SideEnds<'a> {
    port: &'a VerbsPort,
    ends: Vec<(u8, VerbsEnd)>,
    others: &'a [u8],
}

impl<'a> SideEnds<'a> {
    fn new(
        work: &PacketPathWorkload,
        port: &'a VerbsPort,
        others: &'a [u8],
    ) -> Result<Self, String> {
        let kind = (port.transport, port.address.index);
        let end = |number| {
            let end = VerbsEnd::new(&port.device, kind, work.queue_slots, others.len());
            Ok((number, end?))
        };
        let ends: Result<_, String> = work.dispatchers().into_iter().map(end).collect();
        Ok(Self {
            port,
            ends: ends?,
            others,
        })
    }

    fn facts(&self) -> VerbsFacts {
        let mut pairs = Vec::new();
        for (own, end) in &self.ends {
            let numbers = end.numbers(self.others.len());
            let of = |(number, &other): (u32, &u8)| FarPair {
                own: *own,
                other,
                number,
            };
            pairs.extend(numbers.into_iter().zip(self.others).map(of));
        }
        VerbsFacts {
            transport: self.port.transport,
            address: self.port.address.bytes,
            mtu: self.port.device.mtu,
            pairs,
        }
    }

    /// Joins each end to those of the other side that are for it.
    fn join(
        mut self,
        work: &PacketPathWorkload,
        far: &VerbsFacts,
    ) -> Result<SideLinks<CopyLink<VerbsQueue>>, String> {
        let words = |transport| match transport {
            Transport::Ud => "ud",
            Transport::Rc => "rc",
        };
        if far.transport != self.port.transport {
            let (there, here) = (words(far.transport), words(self.port.transport));
            return Err(format!("its link is verbs:{there}, that here verbs:{here}"));
        }
        let mtu = far.mtu.min(self.port.device.mtu).min(MOST_MTU);
        let mut links = SideLinks::new();
        for (own, mut end) in self.ends.drain(..) {
            let of = |other: &u8| {
                let mut pairs = far.pairs.iter();
                pairs
                    .find(|one| one.own == *other && one.other == own)
                    .copied()
            };
            let pairs: Option<Vec<FarPair>> = self.others.iter().map(of).collect();
            let pairs = pairs.ok_or("it has no queue pair for each dispatcher here")?;
            end.join(far.address, &pairs, mtu)?;
            let queue = VerbsQueue {
                end,
                others: self.others.to_vec(),
                first_port: work.first_port,
                slots: work.queue_slots,
            };
            links.insert(own, CopyLink::new(queue, &work.batches, None));
        }
        Ok(links)
    }
}

/// The links of the run's dispatchers: of the client, of the server. Facts go to the other side, where that is a run
/// of its own, and come from it.
///
/// # Errors
/// The part that the device does not do, or that the other side has not.
pub(crate) fn links(
    work: &PacketPathWorkload,
    port: &VerbsPort,
    others: &[u8],
    exchange: impl FnOnce(VerbsFacts) -> Result<Option<VerbsFacts>, Failure>,
) -> Result<[SideLinks<CopyLink<VerbsQueue>>; 2], Failure> {
    let missing = |why: String| failure("missing", None, why);
    if others.len() > usize::from(MOST_PATH_THREADS) {
        let why = format!("the other side has {} dispatchers", others.len());
        return Err(failure("peer", None, why));
    }
    let own = SideEnds::new(work, port, others).map_err(missing)?;
    let Some(side) = work.side else {
        let server = SideEnds::new(work, port, others).map_err(missing)?;
        let facts = [server.facts(), own.facts()];
        let client = own.join(work, &facts[0]).map_err(missing)?;
        return Ok([client, server.join(work, &facts[1]).map_err(missing)?]);
    };
    let far = exchange(own.facts())?;
    let far =
        far.ok_or_else(|| missing("the other side says nothing of its queue pairs".to_owned()))?;
    let links = own
        .join(work, &far)
        .map_err(|why| failure("plan", None, why))?;
    Ok(match side {
        PathSide::Client => [links, SideLinks::new()],
        PathSide::Server => [SideLinks::new(), links],
    })
}

/// The end of a dispatcher, with the numbers of the other side's dispatchers.
#[derive(Debug)]
pub(crate) struct VerbsQueue {
    end: VerbsEnd,
    others: Vec<u8>,
    first_port: u16,
    slots: u32,
}

impl FrameQueue for VerbsQueue {
    // Nothing of it is inlined: packets over rings would pay 3 % for what is never called there.
    #[inline(never)]
    fn push(&mut self, frame: &[u8]) -> bool {
        let port = target_port(frame).unwrap_or(self.first_port);
        let to = port.wrapping_sub(self.first_port);
        // What names nobody arrives at the first.
        let at = self.others.iter().position(|one| u16::from(*one) == to);
        self.end.push(at.unwrap_or(0), frame)
    }

    #[inline(never)]
    fn flush(&mut self) {
        self.end.flush();
    }

    #[inline(never)]
    fn has_unsent(&mut self) -> bool {
        self.end.has_unsent()
    }

    #[inline(never)]
    fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        self.end.pop(into)
    }

    #[inline(never)]
    fn release(&mut self) {
        self.end.release();
    }

    #[inline(never)]
    fn waiting(&mut self) -> Option<(u32, u32)> {
        Some((self.end.look(), self.slots))
    }

    fn trouble(&mut self) -> Option<String> {
        self.end.trouble()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, Setting)]) -> Result<VerbsSettings, Vec<String>> {
        let settings = settings.iter().cloned();
        VerbsSettings::read(
            &settings
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    #[test]
    fn settings_are_read_and_what_is_wrong_with_them_is_named() {
        let text = |text: &str| Setting::Text(text.to_owned());
        let good = [("transport", text("rc")), ("device", text("mlx5_0"))];
        let settings = read(&good).unwrap();
        assert_eq!(
            (settings.transport, settings.gid_index),
            (Transport::Rc, None)
        );
        let with = |name, value| read(&[good.to_vec(), vec![(name, value)]].concat());
        let asked = with("gid_index", Setting::Number(3)).unwrap();
        assert_eq!(asked.gid_index, Some(3));
        for (name, value, word) in [
            ("transport", text("uc"), "ud or rc"),
            ("device", text(""), "the name of an RDMA device"),
            ("gid_index", Setting::Number(256), "from 0 to 255"),
            ("gid", Setting::Number(1), "no setting `gid`"),
        ] {
            let wrong = with(name, value).unwrap_err().join("\n");
            assert!(wrong.contains(word), "{wrong}");
        }
    }

    #[test]
    fn the_address_is_the_first_of_the_second_roce_over_ipv4_or_the_one_that_is_asked_for() {
        let port = std::env::temp_dir().join(format!("weir-gids-{}", std::process::id()));
        let (gids, types) = (port.join("gids"), port.join("gid_attrs/types"));
        fs::create_dir_all(&gids).unwrap();
        fs::create_dir_all(&types).unwrap();
        let mapped = "0000:0000:0000:0000:0000:ffff:0a4d:0001\n";
        let local = "fe80:0000:0000:0000:5054:00ff:fe12:3456\n";
        assert!(address(&port, None).unwrap_err().contains("over IPv4"));
        for (index, text, kind) in [
            (0, local, "RoCE v2\n"),
            (1, mapped, "IB/RoCE v1\n"),
            (2, mapped, "RoCE v2\n"),
        ] {
            fs::write(gids.join(index.to_string()), text).unwrap();
            fs::write(types.join(index.to_string()), kind).unwrap();
        }
        let found = address(&port, None).unwrap();
        assert_eq!(
            (found.index, &found.bytes[10..]),
            (2, &[255, 255, 10, 77, 0, 1][..])
        );
        assert_eq!(address(&port, Some(0)).unwrap().index, 0);
        for none in [1, 3] {
            let why = address(&port, Some(none)).unwrap_err();
            assert!(why.contains("none of RoCE v2"), "{why}");
        }
        fs::remove_dir_all(port).unwrap();
    }
}

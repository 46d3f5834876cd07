//! The link over `AF_XDP`: a socket of its own for each dispatcher, at a queue of an interface.
//!
//! In: the settings of a link, packets. Out: a link for each dispatcher of both sides. Client and server
//! have an interface each, with a wire between them; dispatcher after dispatcher has queue after queue,
//! from the first that is asked for. The device does not steer, so that a packet may come to a dispatcher
//! that does not serve it, which hands it over. Not here: rings of the kernel and its program
//! (`weir_sys::xdp`).

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_run::failure;
use weir_schema::{Failure, MOST_PATH_THREADS, PacketPathWorkload, PathSide, Setting, errno};
use weir_sys::xdp::{XdpMode, XdpProgram, XdpSocket, XdpSocketSpec};
use weir_sys::{SysError, interface};

use crate::copy_link::{CopyLink, FrameQueue};
use crate::frame::longest_packet;
use crate::wiring::SideLinks;

/// The words of the modes.
const MODES: [(&str, XdpMode); 4] = [
    ("any", XdpMode::Default),
    ("skb", XdpMode::Generic),
    ("drv", XdpMode::Native),
    ("zc", XdpMode::ZeroCopy),
];

/// Settings of the link of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct XdpSettings {
    /// Of this side; of both, the client's.
    interface: String,
    /// Of the server, where it is in the same run.
    peer: Option<String>,
    mode: XdpMode,
    first_queue: u32,
}

impl XdpSettings {
    /// Reads them.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(settings: &BTreeMap<String, Setting>) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        let text = |name: &str| match settings.get(name) {
            Some(Setting::Text(text)) if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        let interface = text("interface").unwrap_or_default();
        if interface.is_empty() {
            wrong.push("`interface` of the link is that of this side, or of the client".to_owned());
        }
        let peer = text("peer_interface");
        let mode = match settings.get("mode") {
            None => Some(XdpMode::Default),
            Some(Setting::Text(text)) => {
                let mut modes = MODES.iter();
                modes.find_map(|(word, mode)| (word == text).then_some(*mode))
            }
            Some(_) => None,
        };
        if mode.is_none() {
            wrong.push("`mode` of the link is any, skb, drv or zc".to_owned());
        }
        let queue = match settings.get("queue") {
            None => Some(0),
            Some(Setting::Number(number)) => u32::try_from(*number).ok().filter(|n| *n < 128),
            Some(_) => None,
        };
        if queue.is_none() {
            wrong.push("`queue` of the link is the first queue, from 0 to 127".to_owned());
        }
        let known = ["interface", "peer_interface", "mode", "queue"];
        let unknown = settings.keys().find(|name| !known.contains(&name.as_str()));
        wrong.extend(unknown.map(|name| {
            let known = known.join(", ");
            format!("the link xdp has no setting `{name}` (it has {known})")
        }));
        if wrong.is_empty() && peer.as_ref() == Some(&interface) {
            wrong.push(format!(
                "client and server have an interface each, not both {interface}"
            ));
        }
        match (mode, queue) {
            (Some(mode), Some(first_queue)) if wrong.is_empty() => Ok(Self {
                interface,
                peer,
                mode,
                first_queue,
            }),
            _ => Err(wrong),
        }
    }
}

/// The part of a packet path that the link cannot do.
pub(crate) fn check(work: &PacketPathWorkload, settings: &XdpSettings) -> Option<String> {
    if work.side.is_some() == settings.peer.is_some() {
        return Some(
            "a link xdp has `peer_interface` where client and server are in one run, and there alone"
                .to_owned(),
        );
    }
    (!work.queue_slots.is_power_of_two()).then(|| {
        format!(
            "`queue_slots` is {}: queues of the link xdp have a power of two",
            work.queue_slots
        )
    })
}

/// A dispatcher's socket.
#[derive(Debug)]
pub(crate) struct XdpQueue {
    socket: XdpSocket,
    /// Brings packets to all sockets of the interface.
    _program: Arc<XdpProgram>,
}

/// The link of a dispatcher.
pub(crate) type XdpLink = CopyLink<XdpQueue>;

/// The links of the run's dispatchers: of the client, of the server.
///
/// # Errors
/// The part that the machine lacks, or does not let one have.
pub(crate) fn links(
    work: &PacketPathWorkload,
    settings: &XdpSettings,
) -> Result<[SideLinks<XdpLink>; 2], Failure> {
    let own = side(work, settings, &settings.interface)?;
    Ok(match (&settings.peer, work.side) {
        (Some(peer), _) => [own, side(work, settings, peer)?],
        (None, Some(PathSide::Server)) => [SideLinks::new(), own],
        (None, _) => [own, SideLinks::new()],
    })
}

impl XdpSettings {
    /// The interface of this side.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }
}

fn side(
    work: &PacketPathWorkload,
    settings: &XdpSettings,
    name: &str,
) -> Result<SideLinks<XdpLink>, Failure> {
    let missing = |why: SysError| failure("missing", None, by_name(&why));
    let longest = longest_packet(work);
    let mtu = interface::find(name).map_err(missing)?.mtu;
    if longest > mtu {
        let why = format!(
            "messages have packets of {longest} bytes, and interface {name} has an MTU of {mtu}: \
             raise that (`ip link set dev {name} mtu 2048`) or lower `packet_bytes`"
        );
        return Err(failure("plan", None, why));
    }
    let last = work
        .first_port
        .saturating_add(u16::from(MOST_PATH_THREADS) - 1);
    let open = |(queue, number): (u32, u8)| {
        let spec = XdpSocketSpec {
            interface: name,
            queue,
            slots: work.queue_slots,
            mode: settings.mode,
        };
        Ok((number, XdpSocket::open(&spec)?))
    };
    let queues = (settings.first_queue..).zip(work.dispatchers());
    let sockets: Result<Vec<_>, SysError> = queues.map(open).collect();
    let sockets = sockets.map_err(missing)?;
    let program = XdpProgram::attach(name, settings.mode, &(work.first_port..=last));
    let program = Arc::new(program.map_err(missing)?);
    let mut links = SideLinks::new();
    for (number, socket) in sockets {
        program.serve(&socket).map_err(missing)?;
        let queue = XdpQueue {
            socket,
            _program: Arc::clone(&program),
        };
        // The program leaves questions for addresses to the kernel.
        links.insert(number, CopyLink::new(queue, &work.batches, None));
    }
    Ok(links)
}

/// The system's refusal, with the name of its errno in place of the number.
fn by_name(why: &SysError) -> String {
    let text = why.to_string();
    let SysError::Refused { source, .. } = why else {
        return text;
    };
    let number = source.raw_os_error().unwrap_or_default();
    match errno::name(number) {
        Some(name) => text.replace(&format!("(os error {number})"), &format!("({name})")),
        None => text,
    }
}

impl FrameQueue for XdpQueue {
    #[inline]
    fn push(&mut self, frame: &[u8]) -> bool {
        self.socket.push(frame)
    }

    /// An interface that goes down in mid-run loses packets like a wire that is cut: their messages are
    /// counted as lost, and without any answer the run ends.
    #[inline]
    fn flush(&mut self) {
        let _ = self.socket.flush();
    }

    #[inline]
    fn has_unsent(&mut self) -> bool {
        self.socket.unsent() > 0
    }

    #[inline]
    fn pop(&mut self, into: &mut [u8]) -> Option<usize> {
        self.socket.pop(into)
    }

    #[inline]
    fn release(&mut self) {
        self.socket.release();
    }

    #[inline]
    fn waiting(&mut self) -> Option<(u32, u32)> {
        Some((self.socket.waiting(), self.socket.slots()))
    }

    fn dropped(&self) -> Option<u64> {
        Some(self.socket.drops())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, Setting)]) -> Result<XdpSettings, Vec<String>> {
        let settings = settings.iter().cloned();
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        XdpSettings::read(&settings.collect())
    }

    fn text(text: &str) -> Setting {
        Setting::Text(text.to_owned())
    }

    #[test]
    fn settings_are_read_and_what_is_wrong_with_them_is_named() {
        let both = [("interface", text("a")), ("peer_interface", text("b"))];
        let read_as = read(&both).unwrap();
        assert_eq!((read_as.mode, read_as.first_queue), (XdpMode::Default, 0));
        let with = |name, value| {
            let mut all = both.to_vec();
            all.push((name, value));
            read(&all)
        };
        assert_eq!(with("mode", text("skb")).unwrap().mode, XdpMode::Generic);
        assert_eq!(with("queue", Setting::Number(3)).unwrap().first_queue, 3);
        for (name, value, word) in [
            ("mode", text("fast"), "any, skb, drv or zc"),
            ("queue", Setting::Number(-1), "from 0 to 127"),
            ("quueue", Setting::Number(1), "no setting `quueue`"),
            ("peer_interface", text("a"), "an interface each"),
        ] {
            let wrong = with(name, value).unwrap_err().join("\n");
            assert!(wrong.contains(word), "{wrong}");
        }
        assert_eq!(read(&both[..1]).unwrap().peer, None);
        let wrong = read(&both[1..]).unwrap_err();
        assert_eq!(
            wrong,
            ["`interface` of the link is that of this side, or of the client"]
        );
    }
}

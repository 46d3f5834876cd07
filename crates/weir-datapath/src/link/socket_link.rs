//! Links over sockets of the kernel: UDP, whose headers the kernel makes, and whole frames on an
//! interface (`AF_PACKET`).
//!
//! In: frames of the pipeline. Out: those that came, in buffers of the dispatcher's own pool. The kernel
//! copies: a frame that it took is freed at once. Not here: the calls themselves (`datagrams`).

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use crate::counts::ThreadCounts;
use crate::frame::{MESSAGE_AT, target_port, write_ports};
use crate::link::PacketLink;
use crate::link::datagrams::{Datagram, MOST_DATAGRAMS, dropped, receive_many, send_many};
use crate::pool::{BUFFER_BYTES, PacketBuffer, Pool};

/// Part of a frame that a socket carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketKind {
    /// The payload of UDP, to this address: the frame's port says which of its sockets.
    Udp(Ipv4Addr),
    /// All of it.
    Frames,
}

/// A socket as a link.
#[derive(Debug)]
pub(crate) struct SocketLink {
    socket: OwnedFd,
    kind: SocketKind,
    /// The dispatcher's own port.
    port: u16,
    /// Packets of one call.
    post_tx: usize,
    post_rx: usize,
    /// Buffers that are filled by the next call.
    empty: Vec<PacketBuffer>,
    /// Datagrams of others than the other side, which were passed over.
    strangers: u64,
    trouble: Option<io::Error>,
}

impl SocketLink {
    pub(crate) fn new(socket: OwnedFd, kind: SocketKind, port: u16, posts: (u32, u32)) -> Self {
        let post = |n: u32| (n as usize).clamp(1, MOST_DATAGRAMS);
        Self {
            socket,
            kind,
            port,
            post_tx: post(posts.0),
            post_rx: post(posts.1),
            empty: Vec::with_capacity(MOST_DATAGRAMS),
            strangers: 0,
            trouble: None,
        }
    }

    /// An error that does not pass by itself ends the run; the others are as a link without room.
    fn note(&mut self, why: io::Error) {
        let passes = [libc::EAGAIN, libc::EINTR, libc::ENOBUFS, libc::ECONNREFUSED];
        if !why
            .raw_os_error()
            .is_some_and(|code| passes.contains(&code))
        {
            self.trouble.get_or_insert(why);
        }
    }

    /// Sends once; how many were taken.
    fn send_some(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        let memory = &pool.memory;
        let datagrams = packets.iter().take(self.post_tx).map(|packet| {
            let frame = memory.frame(packet);
            match self.kind {
                SocketKind::Frames => (frame, None),
                SocketKind::Udp(address) => {
                    let port = target_port(frame).unwrap_or(self.port);
                    let bytes = frame.get(MESSAGE_AT..).unwrap_or_default();
                    (bytes, Some(SocketAddrV4::new(address, port)))
                }
            }
        });
        match send_many(self.socket.as_fd(), datagrams) {
            Ok(taken) => {
                packets
                    .drain(..taken.min(packets.len()))
                    .for_each(|packet| pool.free(packet));
                taken
            }
            Err(why) => {
                self.note(why);
                0
            }
        }
    }

    /// Receives once; how many came, those of strangers among them.
    fn receive_some(
        &mut self,
        pool: &mut Pool,
        into: &mut Vec<PacketBuffer>,
        most: usize,
    ) -> usize {
        while self.empty.len() < most {
            let Some(buffer) = pool.take() else { break };
            self.empty.push(buffer);
        }
        if self.empty.is_empty() {
            return 0;
        }
        let skipped = match self.kind {
            SocketKind::Udp(_) => MESSAGE_AT,
            SocketKind::Frames => 0,
        };
        let memory = &pool.memory;
        let rooms = self.empty.iter_mut().take(most);
        let rooms = rooms.map(|buffer| &mut memory.resize(buffer, BUFFER_BYTES)[skipped..]);
        let mut got = [Datagram::default(); MOST_DATAGRAMS];
        let came = match receive_many(self.socket.as_fd(), rooms, &mut got) {
            Ok(came) => came.min(self.empty.len()),
            Err(why) => {
                self.note(why);
                0
            }
        };
        let mut others = Vec::new();
        for (mut buffer, one) in self.empty.drain(..came).zip(&got) {
            let frame = memory.resize(&mut buffer, skipped + one.length);
            if let SocketKind::Udp(other) = self.kind {
                let Some(from) = one.from.filter(|from| *from.ip() == other) else {
                    others.push(buffer);
                    continue;
                };
                write_ports(frame, from.port(), self.port);
            }
            into.push(buffer);
        }
        self.strangers += others.len() as u64;
        self.empty.append(&mut others);
        came
    }
}

impl PacketLink for SocketLink {
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        let mut sent = 0;
        while !packets.is_empty() {
            let asked = packets.len().min(self.post_tx);
            let taken = self.send_some(pool, packets);
            sent += taken;
            if taken < asked {
                break;
            }
        }
        sent
    }

    fn receive(&mut self, pool: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let before = into.len();
        let mut received = 0;
        while received < most {
            let asked = (most - received).min(self.post_rx);
            let came = self.receive_some(pool, into, asked);
            received += came;
            if came < asked {
                break;
            }
        }
        into.len() - before
    }

    fn count(&mut self, counts: &mut ThreadCounts) {
        counts.sums.strays += std::mem::take(&mut self.strangers);
    }

    fn dropped(&self) -> Option<u64> {
        dropped(self.socket.as_fd())
    }

    fn trouble(&mut self) -> Option<String> {
        self.trouble
            .take()
            .map(|why| format!("the link failed: {why}"))
    }

    fn close(&mut self, pool: &mut Pool) {
        self.empty.drain(..).for_each(|buffer| pool.free(buffer));
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::pool::plain_pools;

    #[test]
    fn datagrams_of_strangers_are_counted_and_passed_over() {
        let bind = |address: &str| UdpSocket::bind((address, 0)).unwrap();
        let (own, other, stranger) = (bind("127.0.0.1"), bind("127.0.0.2"), bind("127.0.0.3"));
        own.set_nonblocking(true).unwrap();
        let to = own.local_addr().unwrap();
        for (socket, bytes) in [(&stranger, b"not"), (&other, b"one"), (&stranger, b"nor")] {
            socket.send_to(bytes, to).unwrap();
        }
        let kind = SocketKind::Udp(Ipv4Addr::new(127, 0, 0, 2));
        let mut link = SocketLink::new(own.into(), kind, to.port(), (1, 1));
        let mut pool = plain_pools(1, 16).remove(0);
        let mut came = Vec::new();
        let mut received = 0;
        while received + link.strangers < 3 {
            received += link.receive(&mut pool, &mut came, 2) as u64;
        }
        let mut counts = ThreadCounts::default();
        link.count(&mut counts);
        assert_eq!((came.len(), received, counts.sums.strays), (1, 1, 2));
        let frame = pool.memory.frame(&came[0]);
        assert_eq!(&frame[MESSAGE_AT..], b"one");
        link.count(&mut counts);
        assert_eq!(counts.sums.strays, 2, "each once");
        came.drain(..).for_each(|buffer| pool.free(buffer));
        link.close(&mut pool);
    }
}

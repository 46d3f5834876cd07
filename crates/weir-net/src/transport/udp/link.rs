//! One replication's socket: what has gone out, what has come, what credit there is.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use rustix::net::sockopt;

use super::wire::{HEADER, Header, PacketKind};
use crate::error::Halt;

/// Most datagrams under way.
const WIDEST: usize = 64;
/// Receive memory that is asked for; the kernel may give less.
const RECEIVE_BYTES: usize = 4 << 20;

/// One channel's end: sends to one rank, receives from one.
pub(super) struct UdpLink {
    socket: UdpSocket,
    receiver: SocketAddr,
    sender: SocketAddr,
    token: u64,
    replication: u32,
    epoch: u32,
    /// Bytes of a message in one datagram.
    payload: usize,
    /// Datagrams that may be under way.
    window: u64,
    /// Datagrams of a message, and bytes of the last.
    fragments: u64,
    last: usize,
    out: Outgoing,
    into: Incoming,
    /// Datagrams of later messages.
    ahead: Ahead,
    /// One datagram in so many is not sent; 0 for none.
    drops: u64,
}

/// Numbers of datagrams, counted over all messages of a size.
#[derive(Debug, Default)]
struct Outgoing {
    next: u64,
    /// Of this message.
    end: u64,
    /// Latest credit received: the next number that the receiver expects.
    credited: u64,
}

/// Datagrams of later messages that came early: at most a window of them.
#[derive(Debug)]
struct Ahead {
    count: usize,
    /// Number, length, bytes; free where there is no number.
    slots: Vec<(Option<u64>, usize, Box<[u8]>)>,
}

impl Ahead {
    fn new(window: usize, payload: usize) -> Self {
        let slot = |_| (None, 0, vec![0; payload].into_boxed_slice());
        Self {
            count: 0,
            slots: (0..window).map(slot).collect(),
        }
    }

    /// A sender that goes further than it may is not listened to.
    fn put(&mut self, number: u64, piece: &[u8]) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.0.is_none()) {
            slot.2[..piece.len()].copy_from_slice(piece);
            (slot.0, slot.1) = (Some(number), piece.len());
            self.count += 1;
        }
    }

    /// The place of one before `end`.
    #[inline]
    fn find(&self, end: u64) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let before = |slot: &(Option<u64>, usize, Box<[u8]>)| slot.0.is_some_and(|n| n < end);
        self.slots.iter().position(before)
    }

    fn clear(&mut self) {
        self.count = 0;
        self.slots.iter_mut().for_each(|slot| slot.0 = None);
    }
}

#[derive(Debug, Default)]
struct Incoming {
    /// First of this message.
    base: u64,
    end: u64,
    /// Of this message, which have come.
    here: Vec<bool>,
    missing: u64,
    /// One beyond the last that has come.
    seen: u64,
    /// Count that was last sent to the sender as credit.
    credited: u64,
    lost: u64,
}

impl UdpLink {
    pub(super) fn new(
        socket: UdpSocket,
        [receiver, sender]: [SocketAddr; 2],
        token: u64,
        replication: usize,
        payload: usize,
        drops: u64,
    ) -> Result<Self, Halt> {
        // Where the kernel grants less, the window is narrower.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES);
        let room = sockopt::socket_recv_buffer_size(&socket)
            .map_err(Halt::io("read a socket's receive memory"))?;
        // The kernel counts its own structures, up to another payload and 1 KiB; half of the
        // memory stays free for credit and for late ones.
        let window = (room / 2 / (2 * payload + 1024)).clamp(2, WIDEST);
        Ok(Self {
            socket,
            receiver,
            sender,
            token,
            replication: u32::try_from(replication).unwrap_or(u32::MAX),
            epoch: 0,
            payload,
            window: window as u64,
            fragments: 1,
            last: 0,
            out: Outgoing::default(),
            into: Incoming::default(),
            ahead: Ahead::new(window, payload),
            drops,
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Messages of this size that did not come as a whole.
    pub(super) fn lost(&self) -> u64 {
        self.into.lost
    }

    /// Another size.
    pub(super) fn begin(&mut self, message: u64) {
        let payload = self.payload as u64;
        self.epoch += 1;
        self.fragments = message.div_ceil(payload);
        let last = message - (self.fragments - 1) * payload;
        self.last = usize::try_from(last).unwrap_or(self.payload);
        self.out = Outgoing::default();
        self.ahead.clear();
        self.into = Incoming {
            here: vec![false; usize::try_from(self.fragments).unwrap_or(0)],
            ..Incoming::default()
        };
    }

    /// Another message each way.
    pub(super) fn next_message(&mut self) {
        self.out.end += self.fragments;
        let into = &mut self.into;
        (into.base, into.end) = (into.end, into.end + self.fragments);
        into.here.fill(false);
        into.missing = self.fragments;
    }

    /// This exchange is over: all is sent, nothing is waited for.
    pub(super) fn is_done(&self) -> bool {
        self.out.next == self.out.end && self.into.missing == 0
    }

    /// Bytes of a message that the next datagram carries, where there is one and credit for it.
    pub(super) fn sendable(&self) -> Option<usize> {
        let out = &self.out;
        let may = out.next < out.end && out.next < out.credited + self.window;
        may.then(|| self.len_of(out.next))
    }

    fn len_of(&self, number: u64) -> usize {
        if number % self.fragments == self.fragments - 1 {
            self.last
        } else {
            self.payload
        }
    }

    /// Range of a datagram's bytes in its message.
    fn range_of(&self, number: u64) -> std::ops::Range<usize> {
        let index = usize::try_from(number % self.fragments).unwrap_or(0);
        let start = index * self.payload;
        start..start + self.len_of(number)
    }

    fn header(&self, kind: PacketKind, number: u64) -> Header {
        Header {
            token: self.token,
            epoch: self.epoch,
            replication: self.replication,
            kind,
            number,
        }
    }

    /// Sends the next datagram; false when the socket takes none now.
    pub(super) fn send(&mut self, message: &[u8], datagram: &mut [u8]) -> Result<bool, Halt> {
        let number = self.out.next;
        let piece = &message[self.range_of(number)];
        self.header(PacketKind::Data, number).write(datagram);
        datagram[HEADER..HEADER + piece.len()].copy_from_slice(piece);
        let dropped = self.drops > 0 && (number + 1).is_multiple_of(self.drops);
        if !dropped && !self.post(&datagram[..HEADER + piece.len()], self.receiver)? {
            return Ok(false);
        }
        self.out.next += 1;
        Ok(true)
    }

    fn post(&self, datagram: &[u8], to: SocketAddr) -> Result<bool, Halt> {
        match self.socket.send_to(datagram, to) {
            Ok(_) => Ok(true),
            Err(error) if is_momentary(&error) => Ok(false),
            Err(source) => Err(Halt::Io {
                what: "send a datagram (is its payload too large for the interface?)".into(),
                source,
            }),
        }
    }

    /// Takes one datagram, if there is any that can be taken now: whether it was of data. Credit
    /// alone is no sign that what is missing will come: two ranks that wait for each other's lost
    /// message go on giving it.
    pub(super) fn receive(
        &mut self,
        message: &mut [u8],
        datagram: &mut [u8],
    ) -> Result<Option<bool>, Halt> {
        while let Some(place) = self.ahead.find(self.into.end) {
            self.ahead.count -= 1;
            let slot = &mut self.ahead.slots[place];
            let (number, len) = (slot.0.take().unwrap_or(0), slot.1);
            datagram[..len].copy_from_slice(&slot.2[..len]);
            self.take(number, &datagram[..len], message);
        }
        let len = match self.socket.recv_from(datagram) {
            Ok((len, _)) => len,
            Err(error) if is_momentary(&error) => return Ok(None),
            Err(source) => {
                let what = "receive a datagram".into();
                return Err(Halt::Io { what, source });
            }
        };
        let known = |header: &Header| {
            let mine = (self.token, self.epoch, self.replication);
            (header.token, header.epoch, header.replication) == mine
        };
        let Some(header) = Header::read(&datagram[..len]).filter(known) else {
            // A stranger's, or a leftover of another size.
            return Ok(Some(false));
        };
        match header.kind {
            PacketKind::Credit => self.out.credited = self.out.credited.max(header.number),
            PacketKind::Data => self.take(header.number, &datagram[HEADER..len], message),
        }
        if self.into.seen - self.into.credited > self.window / 4 {
            self.give_credit()?;
        }
        Ok(Some(matches!(header.kind, PacketKind::Data)))
    }

    /// A piece of this message, of one that was given up, or of a later one.
    fn take(&mut self, number: u64, piece: &[u8], message: &mut [u8]) {
        let into = &self.into;
        if number < into.base
            || number >= into.end + self.window
            || piece.len() != self.len_of(number)
        {
            return;
        }
        if number >= into.end {
            // The sender has gone on: what is missing does not come any more.
            self.miss();
            self.ahead.put(number, piece);
            return;
        }
        message[self.range_of(number)].copy_from_slice(piece);
        let index = usize::try_from(number - self.into.base).unwrap_or(0);
        let into = &mut self.into;
        if into.missing > 0 && !std::mem::replace(&mut into.here[index], true) {
            into.missing -= 1;
        }
        into.seen = into.seen.max(number + 1);
    }

    /// Does not wait for the rest of this message.
    fn miss(&mut self) {
        let into = &mut self.into;
        if into.missing > 0 {
            into.missing = 0;
            into.lost += 1;
        }
        into.seen = into.seen.max(into.end);
    }

    /// Tells the sender how far it may go.
    pub(super) fn give_credit(&mut self) -> Result<(), Halt> {
        let mut datagram = [0; HEADER];
        self.header(PacketKind::Credit, self.into.seen)
            .write(&mut datagram);
        if self.post(&datagram, self.sender)? {
            self.into.credited = self.into.seen;
        }
        Ok(())
    }

    /// Nothing has come for too long: ends this exchange without what is missing.
    pub(super) fn give_up(&mut self) -> Result<(), Halt> {
        if self.into.missing > 0 {
            self.miss();
            self.give_credit()?;
        }
        self.out.next = self.out.end;
        self.out.credited = self.out.credited.max(self.out.end);
        Ok(())
    }
}

/// Errors that pass: nothing to read, no room to send, or that nobody received an earlier datagram.
fn is_momentary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}

//! Heartbeats: a thread of each process sends rank 0 a sign of life some times per second, and rank
//! 0 answers.
//!
//! In: where rank 0 listens. Out: what was heard, to the [`RankMonitor`]. They never use MPI nor the
//! world's own connections: these belong to the thread of the rank, which may hang. Each is one
//! datagram that says all there is to say, so that one that is lost costs nothing: between
//! processes of one machine over sockets of their own, under a launcher over UDP. Not here: who is
//! lost when.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};
use weir_sys::socket::wait_ready;
use weir_sys::{interface, token};

use crate::rank_monitor::RankState;
use crate::{RankMonitor, WorldError};

/// Between two signs of life.
pub(crate) const PERIOD: Duration = Duration::from_millis(200);
/// Silence that one look may add: a longer one was this process's own stop.
const MOST_CHARGED: Duration = Duration::from_millis(500);
/// Tries to send where the receiver has no room, and the pause between them.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(2);

/// Rank 0 answers the first of a rank within this time.
const ANSWER: Duration = Duration::from_secs(1);

/// Bytes of a datagram: token, rank, state, lost rank, seconds.
const LENGTH: usize = 24;

/// Heartbeat of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beat {
    token: u64,
    rank: u32,
    state: RankState,
    /// The rank that is lost, and for how many seconds it was silent; 0 where its process has ended.
    lost: Option<(u32, u32)>,
}

impl Beat {
    fn to_bytes(self) -> [u8; LENGTH] {
        let (lost, seconds) = self
            .lost
            .map_or((0, 0), |(rank, seconds)| (rank + 1, seconds));
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&self.token.to_le_bytes());
        for (at, number) in (8..)
            .step_by(4)
            .zip([self.rank, self.state as u32, lost, seconds])
        {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let (token, rest) = bytes.split_first_chunk::<8>()?;
        let mut numbers = rest.chunks_exact(4).filter_map(|n| n.try_into().ok());
        let mut number = || numbers.next().map(u32::from_le_bytes);
        let (rank, state, lost, seconds) = (number()?, number()?, number()?, number()?);
        Some(Self {
            token: u64::from_le_bytes(*token),
            rank,
            state: RankState::of(state)?,
            lost: lost.checked_sub(1).map(|rank| (rank, seconds)),
        })
    }
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

#[derive(Clone, Debug)]
enum Address {
    Unix(UnixAddress),
    Udp(SocketAddr),
}

impl Socket {
    fn send(&self, bytes: &[u8], to: &Address) -> io::Result<()> {
        let sent = match (self, to) {
            (Self::Unix(socket), Address::Unix(to)) => socket.send_to_addr(bytes, to),
            (Self::Udp(socket), Address::Udp(to)) => socket.send_to(bytes, to),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        sent.map(|_| ())
    }

    fn receive(&self, bytes: &mut [u8]) -> io::Result<(usize, Address)> {
        match self {
            Self::Unix(socket) => {
                let (n, from) = socket.recv_from(bytes)?;
                Ok((n, Address::Unix(from)))
            }
            Self::Udp(socket) => {
                let (n, from) = socket.recv_from(bytes)?;
                Ok((n, Address::Udp(from)))
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}

/// Addresses on which rank 0 of a launcher's world listens, for the others.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListenAddresses {
    token: u64,
    addresses: Vec<SocketAddr>,
}

/// The heartbeats of one process. Dropped it says that it ends in order.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    over: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Shared {
    socket: Socket,
    token: u64,
    rank: u32,
    size: u32,
    monitor: RankMonitor,
    /// Addresses to send to: at rank 0 by rank, once they were heard of; elsewhere all places where
    /// rank 0 may listen, and the one alone once it has answered.
    addresses: Mutex<Vec<Option<Address>>>,
}

/// Name of the socket of a process's heartbeats.
fn unix_address(world: &str, rank: u32) -> io::Result<UnixAddress> {
    UnixAddress::from_abstract_name(format!("{world}/heartbeat/{rank}"))
}

impl Heartbeat {
    /// Between processes of this machine.
    pub(crate) fn of_process(
        world: &str,
        token: u64,
        (rank, size): (u32, u32),
        monitor: &RankMonitor,
    ) -> io::Result<Self> {
        let socket = UnixDatagram::bind_addr(&unix_address(world, rank)?)?;
        socket.set_nonblocking(true)?;
        let first = Address::Unix(unix_address(world, 0)?);
        Self::start(
            Socket::Unix(socket),
            token,
            (rank, size),
            vec![first],
            monitor,
        )
    }

    /// Rank 0 under a launcher, and what the others have to know. Where all ranks are on this
    /// machine nothing leaves it.
    pub(crate) fn of_first(
        size: u32,
        all_here: bool,
        monitor: &RankMonitor,
    ) -> io::Result<(Self, ListenAddresses)> {
        let (socket, addresses) = if all_here {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            let own = socket.local_addr()?;
            (socket, vec![own])
        } else {
            everywhere()?
        };
        socket.set_nonblocking(true)?;
        let token = token::number();
        let heartbeat = Self::start(Socket::Udp(socket), token, (0, size), Vec::new(), monitor)?;
        Ok((heartbeat, ListenAddresses { token, addresses }))
    }

    /// Another rank under a launcher.
    pub(crate) fn of_other(
        first: &ListenAddresses,
        (rank, size): (u32, u32),
        monitor: &RankMonitor,
    ) -> io::Result<Self> {
        let is_here = |address: &SocketAddr| address.ip().is_loopback();
        let any: IpAddr = if first.addresses.iter().all(is_here) {
            Ipv4Addr::LOCALHOST.into()
        } else if first.addresses.iter().all(SocketAddr::is_ipv4) {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        let addresses = first.addresses.iter().copied().map(Address::Udp).collect();
        let ranks = (rank, size);
        let heartbeat = Self::start(Socket::Udp(socket), first.token, ranks, addresses, monitor)?;
        // From here on rank 0 is heard of, wherever its datagrams come through at all.
        let until = Instant::now() + ANSWER;
        while monitor.state_of(0).is_none() && Instant::now() < until {
            std::thread::sleep(PAUSE / 4);
        }
        Ok(heartbeat)
    }

    fn start(
        socket: Socket,
        token: u64,
        (rank, size): (u32, u32),
        addresses: Vec<Address>,
        monitor: &RankMonitor,
    ) -> io::Result<Self> {
        let addresses = if rank == 0 {
            vec![None; size as usize]
        } else {
            addresses.into_iter().map(Some).collect()
        };
        let shared = Arc::new(Shared {
            socket,
            token,
            rank,
            size,
            monitor: monitor.clone(),
            addresses: Mutex::new(addresses),
        });
        let over = Arc::new(AtomicBool::new(false));
        let (thread, until) = (Arc::clone(&shared), Arc::clone(&over));
        let named = Builder::new().name("weir-heartbeat".to_owned());
        named.spawn(move || thread.run(&until))?;
        let all = Arc::clone(&shared);
        // The others need not wait for the next one.
        monitor.announce_by(move || all.send());
        Ok(Self { shared, over })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.shared.monitor.set_own_state(RankState::Leaves);
        // One of them holds what is shared here.
        self.shared.monitor.forget_callbacks();
    }
}

impl Shared {
    /// Nobody panics while holding it.
    fn addresses(&self) -> MutexGuard<'_, Vec<Option<Address>>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, over: &AtomicBool) {
        let mut charged = Instant::now();
        let mut next = charged;
        while !over.load(Ordering::Acquire) {
            let now = Instant::now();
            if now >= next {
                self.send();
                // What had come was taken before: it was sent in the time that counts now.
                self.monitor.charge((now - charged).min(MOST_CHARGED));
                (charged, next) = (now, now + PERIOD);
            }
            let mut waited = [PollFd::new(&self.socket, PollFlags::IN)];
            let left = next.saturating_duration_since(Instant::now());
            if wait_ready(&mut waited, left).is_err() {
                std::thread::sleep(PERIOD);
            }
            self.take();
        }
    }

    /// The present heartbeat of this rank.
    fn beat(&self) -> Beat {
        let lost = match self.monitor.lost().filter(|_| self.rank == 0) {
            Some(WorldError::Silent { peer, seconds }) => {
                Some((peer, u32::try_from(seconds).unwrap_or(u32::MAX)))
            }
            Some(WorldError::Gone { peer, .. }) => Some((peer, 0)),
            _ => None,
        };
        Beat {
            token: self.token,
            rank: self.rank,
            state: self.monitor.own_state(),
            lost,
        }
    }

    /// Says so to everybody whose place is known.
    fn send(&self) {
        let bytes = self.beat().to_bytes();
        let addresses: Vec<Address> = self.addresses().iter().flatten().cloned().collect();
        for address in addresses {
            // Rank 0 waits for nobody: the queue of one that is stopped stays full.
            for _ in 0..if self.rank == 0 { 1 } else { TRIES } {
                match self.socket.send(&bytes, &address) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        std::thread::sleep(PAUSE);
                    }
                    // Whoever has ended does not hear it.
                    _ => break,
                }
            }
        }
    }

    /// Takes all that has come.
    fn take(&self) {
        let mut bytes = [0; LENGTH + 1];
        loop {
            match self.socket.receive(&mut bytes) {
                Ok((length, from)) => {
                    let beat = Beat::of(&bytes[..length]);
                    if let Some(beat) = beat.filter(|beat| self.is_ours(beat)) {
                        self.heard(beat, from);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A refusal by a port where nobody listens any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => return,
            }
        }
    }

    fn is_ours(&self, beat: &Beat) -> bool {
        let is_expected = if self.rank == 0 {
            (1..self.size).contains(&beat.rank)
        } else {
            beat.rank == 0
        };
        beat.token == self.token && is_expected
    }

    fn heard(&self, beat: Beat, from: Address) {
        let mut addresses = self.addresses();
        if self.rank != 0 {
            if addresses.len() > 1 {
                *addresses = vec![Some(from)];
            }
        } else if addresses[beat.rank as usize].is_none() {
            // It waits for an answer before it goes on.
            let _ = self.socket.send(&self.beat().to_bytes(), &from);
            addresses[beat.rank as usize] = Some(from);
        }
        drop(addresses);
        self.monitor.heard(beat.rank, beat.state);
        match beat.lost {
            Some((peer, 0)) => {
                let detail = "its process has ended".to_owned();
                self.monitor
                    .report_loss(peer, &WorldError::Gone { peer, detail });
            }
            Some((peer, seconds)) => {
                let seconds = seconds.into();
                self.monitor
                    .report_loss(peer, &WorldError::Silent { peer, seconds });
            }
            None => {}
        }
    }
}

/// A socket that all may reach, and the addresses by which they may.
fn everywhere() -> io::Result<(UdpSocket, Vec<SocketAddr>)> {
    let leads_far = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    };
    let all = interface::addresses()?.into_iter().map(|one| one.ip);
    let own: Vec<IpAddr> = all.filter(leads_far).collect();
    let is_v4 = own.iter().any(IpAddr::is_ipv4);
    let any: IpAddr = if is_v4 {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    let socket = UdpSocket::bind((any, 0))?;
    let port = socket.local_addr()?.port();
    let alike = own.into_iter().filter(|ip| ip.is_ipv4() == is_v4);
    Ok((socket, alike.map(|ip| SocketAddr::new(ip, port)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn hears(monitor: &RankMonitor, rank: u32) -> bool {
        monitor.state_of(rank) == Some(RankState::Runs)
    }

    #[test]
    fn a_beat_survives_the_way() {
        for lost in [None, Some((0, 7)), Some((3, 0))] {
            let beat = Beat {
                token: 0x0123_4567_89ab_cdef,
                rank: 5,
                state: RankState::Hangs,
                lost,
            };
            assert_eq!(Beat::of(&beat.to_bytes()), Some(beat));
        }
        assert_eq!(Beat::of(&[0; LENGTH + 1]), None);
        assert_eq!(Beat::of(b""), None);
    }

    /// Monitors of three ranks, and their heartbeats.
    fn three(name: &str, token_of_last: u64) -> (Vec<RankMonitor>, Vec<Heartbeat>) {
        let world = format!("weir-test-{}-{name}", std::process::id());
        let monitors: Vec<_> = (0..3).map(|_| RankMonitor::default()).collect();
        let start = |(rank, monitor): (u32, &RankMonitor)| {
            monitor.set_limit(Duration::from_secs(1));
            let token = if rank == 2 { token_of_last } else { 7 };
            Heartbeat::of_process(&world, token, (rank, 3), monitor).unwrap()
        };
        let beats = (0..).zip(&monitors).map(start).collect();
        (monitors, beats)
    }

    #[test]
    fn a_rank_that_falls_silent_is_named_to_all() {
        let (monitors, beats) = three("silent", 7);
        until("rank 0 hears the others", || {
            hears(&monitors[0], 1) && hears(&monitors[0], 2) && hears(&monitors[1], 0)
        });
        // As if its process were stopped.
        beats[2].over.store(true, Ordering::Release);
        for monitor in &monitors[..2] {
            until("rank 2 is lost", || monitor.lost().is_some());
            let lost = monitor.lost().unwrap();
            assert!(matches!(lost, WorldError::Silent { peer: 2, .. }), "{lost}");
        }
    }

    #[test]
    fn a_rank_that_ends_in_order_is_not_lost_and_a_stranger_not_heard() {
        let (monitors, mut beats) = three("order", 8);
        until("rank 0 hears rank 1", || hears(&monitors[0], 1));
        drop(beats.remove(1));
        until("rank 1 has ended", || !hears(&monitors[0], 1));
        assert_eq!(monitors[0].lost(), None);
        assert!(!hears(&monitors[0], 2));
    }

    #[test]
    fn ranks_of_a_launcher_hear_each_other_over_udp() {
        let monitors = [RankMonitor::default(), RankMonitor::default()];
        let (_first, announced) = Heartbeat::of_first(2, true, &monitors[0]).unwrap();
        let bytes = serde_json::to_vec(&announced).unwrap();
        let announced = serde_json::from_slice(&bytes).unwrap();
        let _other = Heartbeat::of_other(&announced, (1, 2), &monitors[1]).unwrap();
        until("both hear each other", || {
            hears(&monitors[0], 1) && hears(&monitors[1], 0)
        });
    }
}

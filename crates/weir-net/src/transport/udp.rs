//! UDP: messages in numbered datagrams, never more under way than the receiver has given credit
//! for; what does not come is counted and not waited for for ever.
//!
//! All replications exchange at the same time, each over a socket of its own. A datagram carries
//! `64 * 2^E` bytes of its message behind a header that says whose it is; the receiver gives
//! credit in datagrams of the header alone. A message is complete when all its datagrams have
//! come; it is lost when a later one comes first or nothing comes for the loss time.

mod link;
mod wire;

use std::borrow::Cow;
use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_schema::catalogue::{SettingInfo, SettingKind};
use weir_schema::{MessageSize, Method};

use self::link::UdpLink;
use self::wire::HEADER;
use super::address::{self, INTERFACE};
use super::pace::{RATE, SendPace};
use super::{PLAIN, Setup, Transport, TransportInfo};
use crate::buffers::Buffers;
use crate::error::Halt;
use crate::exchange::drive;
use crate::settings::number;
use weir_world::Watchdog;

pub(super) const INFO: TransportInfo = TransportInfo {
    name: "udp",
    peer: Some("UDP"),
    summary: "numbered datagrams, losses counted",
    settings: &[
        INTERFACE,
        SettingInfo {
            name: "port",
            value: SettingKind::Number { min: 0, max: 65535 },
            default: "0: any",
            help: "channel i of rank p is bound to this port plus p times the channels plus i",
        },
        SettingInfo {
            name: "payload_exponent",
            value: SettingKind::Number { min: 0, max: 7 },
            default: "4",
            help: "E: a datagram carries up to 64 * 2^E bytes of a message",
        },
        RATE,
        SettingInfo {
            name: "loss_ms",
            value: SettingKind::Number {
                min: 1,
                max: 60_000,
            },
            default: "500",
            help: "what has not come for so many milliseconds is lost",
        },
        SettingInfo {
            name: "drop_every",
            value: SettingKind::Number {
                min: 1,
                max: i64::MAX,
            },
            default: "none",
            help: "one datagram of a message in so many is not sent, to see that losses are counted",
        },
    ],
    check: |asked| {
        let fit = address::fit(asked.engine, asked.ranks, asked.replications);
        fit.map_err(|why| asked.wrong(&why))
    },
    here: |asked| address::here(asked.engine, asked.ranks),
    drive: drive::<Udp>,
    ..PLAIN
};

/// Looks at the sockets that bring nothing before sleeping until something comes.
const LOOKS: u32 = 50;
/// Longest sleep: credit that got lost is given again after it.
const PIECE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// One rank's end.
pub(super) struct Udp {
    links: Vec<UdpLink>,
    buffers: Buffers,
    datagram: Vec<u8>,
    loss: Duration,
    /// Time in which nothing at all has come, as far as this was waited for.
    silent: Duration,
    pace: Option<SendPace>,
    /// The replication that is waited for.
    waiting: usize,
}

fn fail(what: impl Into<Cow<'static, str>>) -> impl FnOnce(io::Error) -> Halt {
    let what = what.into();
    move |source| Halt::Io { what, source }
}

impl Transport for Udp {
    fn together() -> bool {
        true
    }

    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let sockets = setup.partners.iter().enumerate();
        let sockets: Vec<UdpSocket> = sockets
            .map(|(replication, _)| {
                let mine = address::own_channel(setup, replication)?;
                let socket = UdpSocket::bind(mine).map_err(fail(format!("bind {mine}")))?;
                socket
                    .set_nonblocking(true)
                    .map_err(fail("set a socket up"))?;
                Ok(socket)
            })
            .collect::<Result<_, Halt>>()?;
        let token = address::token(setup)?;
        let names: Vec<Vec<u8>> = sockets
            .iter()
            .map(|socket| Ok(socket.local_addr()?.to_string().into_bytes()))
            .collect::<io::Result<_>>()
            .map_err(fail("read its address"))?;
        let receivers = setup.swap_with_senders(&names)?;
        let senders = setup.swap_with_receivers(&names)?;
        let payload = 64 << number(setup.engine, "payload_exponent", 4);
        let drops = number(setup.engine, "drop_every", 0);
        let ends = receivers.iter().zip(&senders);
        let links = sockets.into_iter().zip(ends).enumerate();
        let links = links.map(|(replication, (socket, (receiver, sender)))| {
            let ends = [address::parse(receiver)?, address::parse(sender)?];
            UdpLink::new(socket, ends, token, replication, payload, drops)
        });
        Ok(Self {
            links: links.collect::<Result<_, Halt>>()?,
            buffers: Buffers::default(),
            datagram: vec![0; HEADER + payload + 1],
            loss: Duration::from_millis(number(setup.engine, "loss_ms", 500)),
            silent: Duration::ZERO,
            pace: SendPace::of(setup.engine),
            waiting: 0,
        })
    }

    fn prepare(&mut self, size: MessageSize, _: Method, setup: &Setup<'_>) -> Result<(), Halt> {
        self.buffers = Buffers::new(setup.partners.len(), size.bytes())?;
        for link in &mut self.links {
            link.begin(size.bytes().0);
        }
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.outgoing(replication)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.incoming(replication)
    }

    fn rewind(&mut self, _: &Setup<'_>) -> Result<(), Halt> {
        self.silent = Duration::ZERO;
        Ok(())
    }

    fn exchange(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        self.exchange_some(replication, replication + 1, watchdog)
    }

    fn exchange_all(&mut self, replications: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        self.exchange_some(0, replications, watchdog)
    }

    fn waiting_for(&self) -> Option<usize> {
        Some(self.waiting)
    }

    fn losses(&self) -> Option<u64> {
        Some(self.links.iter().map(UdpLink::lost).sum())
    }
}

impl Udp {
    fn exchange_some(&mut self, first: usize, end: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        for link in &mut self.links[first..end] {
            link.next_message();
        }
        let mut looks = 0;
        let mut since = None;
        loop {
            let (moved, came) = self.step(first, end)?;
            let unfinished = (first..end).find(|i| !self.links[*i].is_done());
            let Some(unfinished) = unfinished else {
                return Ok(());
            };
            self.waiting = unfinished;
            if came {
                since = None;
                self.silent = Duration::ZERO;
            }
            if moved || came {
                looks = 0;
            } else if looks < LOOKS {
                looks += 1;
            } else {
                self.idle(first, end, &mut since, watchdog)?;
            }
        }
    }

    /// Sends what credit allows and takes what has come: whether any went, whether any came.
    fn step(&mut self, first: usize, end: usize) -> Result<(bool, bool), Halt> {
        let (mut moved, mut came) = (false, false);
        for replication in first..end {
            let link = &mut self.links[replication];
            let (out, into) = self.buffers.both(replication);
            while let Some(bytes) = link.sendable() {
                if self.pace.as_mut().is_some_and(|pace| !pace.may(bytes)) {
                    break;
                }
                if !link.send(out, &mut self.datagram)? {
                    break;
                }
                moved = true;
            }
            while let Some(is_data) = link.receive(into, &mut self.datagram)? {
                moved = true;
                came |= is_data;
            }
        }
        Ok((moved, came))
    }

    /// Nothing to do: sleeps until something comes, gives credit again, and gives up what has
    /// not come for too long.
    #[cold]
    fn idle(
        &mut self,
        first: usize,
        end: usize,
        since: &mut Option<Instant>,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        watchdog.check()?;
        if let Some(pace) = &self.pace
            && self.links[first..end]
                .iter()
                .any(|link| link.sendable().is_some())
        {
            pace.pause();
            return Ok(());
        }
        let begun = *since.get_or_insert_with(Instant::now);
        let mut fds: Vec<_> = self.links[first..end]
            .iter()
            .map(|link| PollFd::new(link.socket(), PollFlags::IN))
            .collect();
        match poll(&mut fds, Some(&PIECE)) {
            Ok(0) => {}
            Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(Halt::io("wait for a datagram")(errno)),
        }
        drop(fds);
        let waited = begun.elapsed();
        for link in &mut self.links[first..end] {
            link.give_credit()?;
            if waited > self.loss {
                link.give_up()?;
            }
        }
        if waited <= self.loss {
            return Ok(());
        }
        // Losing one message after the other is no progress.
        self.silent += waited;
        if self.silent > watchdog.limit() {
            let seconds = watchdog.limit().as_secs_f64();
            return Err(Halt::Silent { seconds });
        }
        Ok(())
    }
}

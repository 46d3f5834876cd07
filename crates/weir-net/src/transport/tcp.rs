//! One TCP stream per replication and direction, without delay.
//!
//! Every rank listens on an address of the interface asked for and tells it to the ranks that
//! send to it. A message goes out while the other comes in: whatever its size, neither side waits
//! for the other to read first. Not here: the beginning of a stream (`greeting`).

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use weir_schema::catalogue::{SettingInfo, SettingKind};
use weir_schema::{MessageSize, Method};
use weir_sys::socket::{is_passing, wait_ready};

use super::address::{self, INTERFACE};
use super::pace::{RATE, SendPace};
use super::{PLAIN, Setup, Transport, TransportInfo};
use crate::buffers::Buffers;
use crate::error::Halt;
use crate::exchange::drive;
use weir_world::Watchdog;

pub(crate) mod greeting;

pub(super) const INFO: TransportInfo = TransportInfo {
    name: "tcp",
    summary: "one stream per replication and direction",
    settings: &[
        INTERFACE,
        SettingInfo {
            name: "port",
            value: SettingKind::Number { min: 0, max: 65535 },
            default: "0: any",
            help: "rank p listens on this port plus p",
        },
        RATE,
    ],
    check: |asked| address::fit(asked.engine, asked.ranks, 1).map_err(|why| asked.wrong(&why)),
    here: |asked| address::here(asked.engine, asked.ranks),
    drive: drive::<Tcp>,
    ..PLAIN
};

/// Looks for readiness before sleeping until there is some.
const LOOKS: u32 = 50;
/// Longest sleep, so that the watchdog is seen.
const PIECE: Duration = Duration::from_millis(50);
/// Bytes that go out at once at a rate.
const PACED: usize = 4096;

/// A replication's two streams.
struct Streams {
    to: u32,
    from: u32,
    out: TcpStream,
    into: TcpStream,
}

/// One rank's end.
pub(super) struct Tcp {
    streams: Vec<Streams>,
    buffers: Buffers,
    pace: Option<SendPace>,
}

fn fail(what: impl Into<Cow<'static, str>>) -> impl FnOnce(io::Error) -> Halt {
    let what = what.into();
    move |source| Halt::Io { what, source }
}

impl Transport for Tcp {
    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let mine = address::own(setup, "port")?;
        let listener = TcpListener::bind(mine).map_err(fail(format!("listen on {mine}")))?;
        let mine = listener.local_addr().map_err(fail("read its address"))?;
        let token = address::token(setup)?;
        let words = vec![mine.to_string().into_bytes(); setup.partners.len()];
        let theirs = setup.swap_with_senders(&words)?;
        let theirs: Result<Vec<SocketAddr>, Halt> =
            theirs.iter().map(|bytes| address::parse(bytes)).collect();
        let theirs = setup.comm.together(theirs, setup.watchdog)?;
        let [out, into] = greeting::meet(&listener, &theirs, token, setup)?;
        let streams = setup.partners.iter().zip(out).zip(into);
        let streams = streams.map(|((partners, out), into)| {
            for stream in [&out, &into] {
                stream.set_nodelay(true)?;
            }
            Ok(Streams {
                to: partners.to,
                from: partners.from,
                out,
                into,
            })
        });
        Ok(Self {
            streams: streams
                .collect::<io::Result<_>>()
                .map_err(fail("set a stream up"))?,
            buffers: Buffers::default(),
            pace: SendPace::of(setup.engine),
        })
    }

    fn prepare(&mut self, size: MessageSize, _: Method, setup: &Setup<'_>) -> Result<(), Halt> {
        self.buffers = Buffers::new(setup.partners.len(), size.bytes())?;
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.outgoing(replication)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.incoming(replication)
    }

    fn exchange(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        let streams = &mut self.streams[replication];
        let (out, into) = self.buffers.both(replication);
        let (mut sent, mut received) = (0, 0);
        let mut looks = 0;
        while sent < out.len() || received < into.len() {
            let piece = allowed(&mut self.pace, &out[sent..]);
            let moved = streams.send(piece)?;
            let came = streams.receive(&mut into[received..])?;
            sent += moved;
            received += came;
            if moved + came > 0 {
                looks = 0;
                watchdog.progress();
            } else if looks < LOOKS {
                looks += 1;
            } else {
                watchdog.check()?;
                match &self.pace {
                    Some(pace) if sent < out.len() => pace.pause(),
                    _ => streams.wait(sent < out.len(), received < into.len())?,
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Halt> {
        for streams in &self.streams {
            // Whatever the other side has done already.
            let _ = streams.out.shutdown(Shutdown::Both);
        }
        Ok(())
    }
}

impl Streams {
    /// Bytes that went out; 0 when none fit.
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Halt> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.out.write(bytes) {
            Ok(moved) => Ok(moved),
            Err(error) => refused(&error, self.to, "send"),
        }
    }

    /// Bytes that came in; 0 when there were none.
    #[inline]
    fn receive(&mut self, bytes: &mut [u8]) -> Result<usize, Halt> {
        if bytes.is_empty() {
            return Ok(0);
        }
        match self.into.read(bytes) {
            Ok(0) => Err(Halt::Left { peer: self.from }),
            Ok(came) => Ok(came),
            Err(error) => refused(&error, self.from, "receive"),
        }
    }

    /// Until bytes can go out or come in, whichever is wanted, or a little while.
    fn wait(&self, out: bool, into: bool) -> Result<(), Halt> {
        let flags = |wanted, flags| if wanted { flags } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(&self.out, flags(out, PollFlags::OUT)),
            PollFd::new(&self.into, flags(into, PollFlags::IN)),
        ];
        let waited = wait_ready(&mut fds, PIECE);
        waited.map(drop).map_err(Halt::io("wait for a stream"))
    }
}

/// Bytes that may go out now: everything, or at a rate a piece of it.
#[inline]
fn allowed<'a>(pace: &mut Option<SendPace>, bytes: &'a [u8]) -> &'a [u8] {
    let Some(pace) = pace else { return bytes };
    let piece = &bytes[..bytes.len().min(PACED)];
    if piece.is_empty() || pace.may(piece.len()) {
        piece
    } else {
        &[]
    }
}

#[cold]
fn refused(error: &io::Error, peer: u32, what: &'static str) -> Result<usize, Halt> {
    match error.kind() {
        _ if is_passing(error) => Ok(0),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Err(Halt::Left { peer }),
        kind => Err(Halt::Io {
            what: what.into(),
            source: kind.into(),
        }),
    }
}

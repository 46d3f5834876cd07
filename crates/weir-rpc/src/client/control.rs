//! A stream to a server that is used by waiting: for handshakes, and to order tests.
//!
//! In: frames to send. Out: frames that come, within a time. Not here: calls, which never wait
//! (`RpcClient`).

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use weir_sys::interface::InterfaceAddress;
use weir_sys::socket::{send_with_descriptors, wait_ready};

use super::memory::unless_over;
use crate::group::address::{RpcAddress, StreamAddress};
use crate::links::PeerId;
use crate::links::assembly::Assemblies;
use crate::links::socket::{self, IsOver};
use crate::wire::{FrameHeader, HEADER, MAJOR, MINOR, PREAMBLE, PreambleReply, flag};
use crate::{DerCode, MemoryAccount, RpcError};

/// Longest body of several frames, in bytes.
const LONGEST: u64 = 1 << 30;

/// A stream with whole frames on it.
#[derive(Debug)]
pub struct ControlStream {
    stream: OwnedFd,
    input: Vec<u8>,
    assemblies: Assemblies,
    max_frame: u32,
}

fn lost(errno: Errno) -> RpcError {
    RpcError::new(
        DerCode::Unreachable,
        format!("the connection is lost: {errno}"),
    )
}

impl ControlStream {
    /// Connects, from the nearest of some addresses where there are any.
    ///
    /// # Errors
    /// Nobody listens there, or not within the time.
    pub(super) fn connect(
        address: &RpcAddress,
        from: &[InterfaceAddress],
        within: Duration,
        is_over: IsOver<'_>,
    ) -> Result<Self, RpcError> {
        // Whoever calls names the address.
        let fail = || RpcError::io("connect");
        let stream = match address.stream()? {
            StreamAddress::Tcp(at) => {
                let within = within.max(Duration::from_millis(1));
                socket::connect(at, from, within, is_over).map_err(fail())?
            }
            StreamAddress::Unix(path) => OwnedFd::from(UnixStream::connect(path).map_err(fail())?),
        };
        socket::prepare(&stream)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            assemblies: Assemblies::new(&MemoryAccount::unlimited()),
            max_frame: crate::wire::MAX_FRAME,
        })
    }

    /// The address that was called, by which the server knows itself: that of the other end, or the path.
    pub(super) fn called(&self, address: &RpcAddress) -> String {
        socket::far_end(&self.stream).map_or_else(|| address.place.clone(), |at| at.to_string())
    }

    /// Bodies above this travel in several frames.
    pub(super) fn set_max_frame(&mut self, max_frame: u32) {
        self.max_frame = max_frame;
    }

    /// The stream, and what was read of it but not handled.
    pub(super) fn into_parts(self) -> (OwnedFd, Vec<u8>) {
        (self.stream, self.input)
    }

    /// Writes bytes, with descriptors where there are some.
    pub(super) fn write(&self, bytes: &[u8], passed: &[OwnedFd]) -> Result<(), RpcError> {
        let mut rest = bytes;
        if !passed.is_empty() {
            let sent = send_with_descriptors(&self.stream, rest, passed).map_err(lost)?;
            rest = &rest[sent..];
        }
        while !rest.is_empty() {
            match send(&self.stream, rest, SendFlags::NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, Duration::from_secs(10))?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(lost(errno)),
            }
        }
        Ok(())
    }

    /// Sends bytes as they are, which may be no frames: for tests of servers.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<(), RpcError> {
        self.write(bytes, &[])
    }

    /// Sends a frame, or several where the body is long.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&self, header: &FrameHeader, body: &[u8]) -> Result<(), RpcError> {
        let most = self.max_frame as usize;
        if body.len() <= most {
            return self.send_one(header, &[], body);
        }
        let total = (body.len() as u64).to_le_bytes();
        let (first, rest) = body.split_at(most - total.len());
        let with = |flags| FrameHeader {
            flags: header.flags | flags,
            ..*header
        };
        self.send_one(&with(flag::MORE), &total, first)?;
        let mut pieces = rest.chunks(most).peekable();
        while let Some(piece) = pieces.next() {
            let more = if pieces.peek().is_some() {
                flag::MORE
            } else {
                0
            };
            self.send_one(&with(flag::CONTINUED | more), &[], piece)?;
        }
        Ok(())
    }

    fn send_one(&self, header: &FrameHeader, head: &[u8], body: &[u8]) -> Result<(), RpcError> {
        let length = u32::try_from(head.len() + body.len()).unwrap_or(u32::MAX);
        let mut frame = header.encode(length, true).to_vec();
        frame.extend_from_slice(head);
        frame.extend_from_slice(body);
        self.write(&frame, &[])
    }

    /// The next frame, its body whole; `None` when none came in time.
    ///
    /// # Errors
    /// The connection is lost, or what came is no frame.
    pub fn receive(
        &mut self,
        within: Duration,
    ) -> Result<Option<(FrameHeader, Vec<u8>)>, RpcError> {
        self.receive_unless(within, &|| false)
    }

    /// The same, given up once `is_over`.
    pub(crate) fn receive_unless(
        &mut self,
        within: Duration,
        is_over: IsOver<'_>,
    ) -> Result<Option<(FrameHeader, Vec<u8>)>, RpcError> {
        let until = Instant::now() + within;
        loop {
            if let Some((header, body)) = self.take_frame()? {
                if header.flags & (flag::MORE | flag::CONTINUED) == 0 {
                    return Ok(Some((header, body)));
                }
                let peer = PeerId::default();
                if let Some(whole) = self.assemblies.add(peer, &header, &body, LONGEST)? {
                    return Ok(Some((header, whole)));
                }
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            unless_over(is_over)?;
            self.wait(PollFlags::IN, left.min(socket::LOOK))?;
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), RpcError> {
        let mut bytes = [0; 16 << 10];
        match recv(&self.stream, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Err(RpcError::new(
                DerCode::Unreachable,
                "the server closed the connection",
            )),
            Ok((_, came)) => {
                self.input.extend_from_slice(&bytes[..came]);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(lost(errno)),
        }
    }

    fn take_frame(&mut self) -> Result<Option<(FrameHeader, Vec<u8>)>, RpcError> {
        if let Some(start) = self.input.first_chunk::<PREAMBLE>()
            && let Some(other) = PreambleReply::decode(start)
        {
            return Err(RpcError::new(
                DerCode::Protocol,
                format!(
                    "version mismatch: local {MAJOR}.{MINOR}, remote {}.{}",
                    other.major, other.minor
                ),
            ));
        }
        let Some(bytes) = self.input.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let (header, length) = FrameHeader::decode(bytes, true)?;
        if length > self.max_frame {
            return Err(RpcError::protocol("a frame is longer than agreed"));
        }
        let end = HEADER + length as usize;
        if self.input.len() < end {
            return Ok(None);
        }
        let body = self.input.drain(..end).skip(HEADER).collect();
        Ok(Some((header, body)))
    }

    fn wait(&self, what: PollFlags, within: Duration) -> Result<(), RpcError> {
        let waited = wait_ready(&mut [PollFd::new(&self.stream, what)], within);
        waited.map(drop).map_err(lost)
    }
}

//! Reading frames: as much as fits into one buffer, all whole frames of it at once.
//!
//! In: a connection with something to read. Out: calls of the handler. A body that does not fit is
//! read where it belongs, with the shared buffer behind it for what follows.

use std::io::IoSliceMut;

use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, recv};

use super::peer_stream::LongBody;
use super::{SHARED, StreamLink, gone};
use crate::RpcError;
use crate::links::{Frame, Link, LinkHandler, PeerId, Sent};
use crate::wire::{FrameHeader, FrameKind, HEADER, PushHead};
use crate::{DerCode, wire::WireError};

/// Bodies above this are read where they belong.
const LONG: usize = 16 << 10;
/// Step of reads behind a long body, and of streams that send such.
pub(super) const STEP: usize = 4 << 10;

/// Buffers of long bodies that are kept.
const SPARE: usize = 4;

/// End of a stretch of bytes that was read.
enum ParsedBytes {
    /// To here; the rest is the beginning of a frame.
    To(usize),
    /// To here; the rest waits until the peer has read what waits for it.
    Stopped(usize),
    /// The connection is gone.
    Ended,
}

impl StreamLink {
    /// Reads once from a connection and handles what is whole. Returns how many frames that were, at least 1
    /// where bytes came.
    #[inline]
    pub(super) fn read<H: LinkHandler<Self>>(&mut self, index: u32, handler: &mut H) -> u32 {
        let Some((peer, stream)) = self.streams.at(index) else {
            return 0;
        };
        if stream.broken || stream.is_stopped || stream.is_held_back() {
            return 0;
        }
        let room = stream.room();
        if room == 0 {
            stream.lacks_memory = true;
            self.stop(peer, true);
            return 0;
        }
        let mut shared = std::mem::take(&mut self.shared);
        let frames = if stream.long.is_some() {
            self.read_long(peer, room, &mut shared, handler)
        } else {
            self.read_short(peer, room, &mut shared, handler)
        };
        self.shared = shared;
        frames
    }

    /// It is not read until what was read can be handled, or there is memory for more; or it is again.
    fn stop(&mut self, peer: PeerId, is_stopped: bool) {
        let Some(stream) = self.streams.get(peer) else {
            return;
        };
        stream.is_stopped = is_stopped;
        stream.set_interest(&self.epoll, peer.index, stream.wanted());
        if is_stopped {
            self.early.push(peer);
        }
    }

    #[inline]
    fn read_short<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        room: usize,
        shared: &mut [u8],
        handler: &mut H,
    ) -> u32 {
        let Some(stream) = self.streams.get(peer) else {
            return 0;
        };
        let had = stream.partial.len();
        let step = if stream.sends_long { STEP } else { room };
        let end = SHARED.min(had + step);
        match recv(&stream.fd, &mut shared[had..end], RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.end(peer, left(), handler),
            Ok((_, came)) => {
                shared[..had].copy_from_slice(&stream.partial);
                stream.partial.clear();
                // Small frames fill the step: they are read by the buffer again. A long one among
                // them brings the steps back.
                stream.sends_long &= had + came < end;
                self.mark_hot(peer.index);
                self.handle(peer, &shared[..had + came], handler).max(1)
            }
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => self.end(peer, gone(errno), handler),
        }
    }

    /// Handles all that is whole, keeps the rest.
    #[inline]
    fn handle<H: LinkHandler<Self>>(&mut self, peer: PeerId, bytes: &[u8], handler: &mut H) -> u32 {
        let mut frames = 0;
        let (end, is_stopped) = match self.parse(peer, bytes, &mut frames, handler) {
            ParsedBytes::Ended => return frames,
            ParsedBytes::To(end) => (end, false),
            ParsedBytes::Stopped(end) => (end, end < bytes.len()),
        };
        if let Some(stream) = self.streams.get(peer) {
            stream.frames = stream.frames.wrapping_add(frames);
            if end < bytes.len() {
                stream.partial.extend_from_slice(&bytes[end..]);
                // Where there is no memory the next read waits for some.
                stream.stops();
            }
            if is_stopped || stream.is_stopped {
                self.stop(peer, is_stopped);
            }
        }
        frames
    }

    #[inline]
    fn parse<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        bytes: &[u8],
        frames: &mut u32,
        handler: &mut H,
    ) -> ParsedBytes {
        let Some(stream) = self.streams.get(peer) else {
            return ParsedBytes::Ended;
        };
        let (summed, max_frame) = (stream.summed, stream.max_frame);
        let mut at = 0;
        while let Some(header) = bytes[at..].first_chunk::<HEADER>() {
            let (header, length) = match FrameHeader::decode(header, summed) {
                Ok((header, length)) if length <= max_frame => (header, length as usize),
                Ok(_) => return self.refuse(peer, WireError::Field("length"), handler, frames),
                Err(error) => return self.refuse(peer, error, handler, frames),
            };
            let body = at + HEADER;
            if bytes.len() - body >= length {
                *frames += 1;
                handler.message(self, peer, &header, &bytes[body..body + length]);
                at = body + length;
                let Some(stream) = self.streams.get(peer) else {
                    return ParsedBytes::Ended;
                };
                if stream.stops() {
                    return ParsedBytes::Stopped(at);
                }
            } else if length > LONG && bytes.len() - body >= PushHead::LENGTH {
                self.begin_long(peer, &header, length, &bytes[body..], handler);
                return ParsedBytes::To(bytes.len());
            } else {
                break;
            }
        }
        ParsedBytes::To(at)
    }

    /// The first bytes of a long body are there.
    fn begin_long<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        length: usize,
        bytes: &[u8],
        handler: &mut H,
    ) {
        let mut long = LongBody {
            header: *header,
            head: [0; PushHead::LENGTH],
            head_length: header.head_length().unwrap_or(0),
            into: None,
            gathered: Vec::new(),
            got: 0,
            length,
        };
        let (head, data) = bytes.split_at(long.head_length);
        if header.head_length().is_some() {
            long.head[..long.head_length].copy_from_slice(head);
            let data_length = (length - long.head_length) as u64;
            let body = head;
            let into = handler.destination(Frame { peer, header, body }, data_length);
            long.into = into.filter(|into| {
                into.length == data_length && self.memory.part(*into).len() as u64 == data_length
            });
        }
        if let Some(into) = long.into {
            self.memory.pin(into.region);
            long.length -= long.head_length;
            self.memory.part_mut(into)[..data.len()].copy_from_slice(data);
            long.got = data.len();
        } else {
            long.gathered = self.spare.pop().unwrap_or_default();
            long.got = bytes.len();
            room_for_more(&mut long, 0);
            long.gathered[..bytes.len()].copy_from_slice(bytes);
        }
        if let Some(stream) = self.streams.get(peer) {
            stream.sends_long = true;
            stream.long = Some(Box::new(long));
            stream.stops();
        }
    }

    fn read_long<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        room: usize,
        shared: &mut [u8],
        handler: &mut H,
    ) -> u32 {
        let Some(stream) = self.streams.get(peer) else {
            return 0;
        };
        let Some(long) = &mut stream.long else {
            return 0;
        };
        let (got, length) = (long.got, long.length);
        let rest = match long.into {
            Some(into) => &mut self.memory.part_mut(into)[got..],
            None => room_for_more(long, room),
        };
        let room = rest.len();
        let mut pieces = [IoSliceMut::new(rest), IoSliceMut::new(&mut shared[..STEP])];
        // What lies behind a part of the body goes into the shared buffer only with the last part.
        let last = got + room == length;
        let pieces = if last {
            &mut pieces[..]
        } else {
            &mut pieces[..1]
        };
        let came = match readv(&stream.fd, pieces) {
            Ok(0) => return self.end(peer, left(), handler),
            Ok(came) => came,
            Err(Errno::AGAIN | Errno::INTR) => return 0,
            Err(errno) => return self.end(peer, gone(errno), handler),
        };
        long.got += came.min(room);
        if long.got < long.length {
            stream.stops();
            self.mark_hot(peer.index);
            return 1;
        }
        stream.frames = stream.frames.wrapping_add(1);
        if let Some(long) = stream.long.take() {
            stream.discharge();
            self.mark_hot(peer.index);
            self.end_long(peer, *long, handler);
        }
        let behind = came.saturating_sub(room).min(STEP);
        1 + self.handle(peer, &shared[..behind], handler)
    }

    fn end_long<H: LinkHandler<Self>>(&mut self, peer: PeerId, long: LongBody, handler: &mut H) {
        if let Some(into) = long.into {
            self.memory.unpin(into.region);
            let frame = Frame {
                peer,
                header: &long.header,
                body: &long.head[..long.head_length],
            };
            handler.placed(self, frame, into);
        } else {
            handler.message(self, peer, &long.header, &long.gathered[..long.length]);
            if self.spare.len() < SPARE {
                self.spare.push(long.gathered);
            }
        }
    }

    /// Keeps bytes that were read together with the handshake.
    pub(super) fn keep_early(&mut self, peer: PeerId, early: Vec<u8>) {
        if let Some(stream) = self.streams.get(peer) {
            stream.partial = early;
        }
        self.early.push(peer);
    }

    /// Handles what came with handshakes, and what waited for room.
    #[cold]
    pub(super) fn handle_early<H: LinkHandler<Self>>(&mut self, handler: &mut H) -> u32 {
        let mut frames = 0;
        for peer in std::mem::take(&mut self.early) {
            let Some(stream) = self.streams.get(peer) else {
                continue;
            };
            if stream.stops() || (stream.lacks_memory && stream.room() == 0) {
                self.early.push(peer);
            } else {
                stream.lacks_memory = false;
                let early = std::mem::take(&mut stream.partial);
                frames += self.handle(peer, &early, handler);
            }
        }
        frames
    }

    #[cold]
    fn end<H: LinkHandler<Self>>(&mut self, peer: PeerId, why: RpcError, handler: &mut H) -> u32 {
        self.remove(peer);
        handler.lost(self, peer, why);
        1
    }

    /// Says what is wrong, and closes.
    #[cold]
    fn refuse<H: LinkHandler<Self>>(
        &mut self,
        peer: PeerId,
        error: WireError,
        handler: &mut H,
        frames: &mut u32,
    ) -> ParsedBytes {
        let error = RpcError::from(error);
        let header = FrameHeader::plain(FrameKind::Error);
        let header = header.with_word(DerCode::Protocol.to_status());
        if self.send(peer, &header, &[error.message.as_bytes()]) == Sent::Queued {
            self.write(peer.index);
        }
        *frames += self.end(peer, error, handler);
        ParsedBytes::Ended
    }
}

fn left() -> RpcError {
    RpcError::new(DerCode::Unreachable, "the other side closed the connection")
}

/// The rest of a gathered body with room for so much more, so that a header alone takes no memory. The buffer may
/// be longer than the body, and hold an old one behind what has come.
fn room_for_more(long: &mut LongBody, room: usize) -> &mut [u8] {
    let step = (long.got + room).min(room.max(2 * long.got));
    let step = step.min(long.length);
    if long.gathered.len() < step {
        long.gathered.reserve_exact(step - long.gathered.len());
        long.gathered.resize(step, 0);
    }
    &mut long.gathered[long.got..step]
}

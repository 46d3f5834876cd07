//! A session with any service: the channel that families of engines call through.
//!
//! In: requests. Out: answers. One endpoint, one session, no time-outs of single calls: a lost
//! connection ends all of them. Not here: the load generator's client (`client`), which measures.

use std::io;
use std::time::{Duration, Instant};

use weir_run::{BulkMemory, BulkPart, BulkUse, ServiceChannel};

use crate::client::calls::HeldData;
use crate::client::{DialSetup, ServerEndpoint, dial};
use crate::links::{Frame, Link, LinkHandler, MemoryRange, PeerId, RegionId, Sent};
use crate::service::payload::check_inline;
use crate::wire::{
    BulkAccess, FrameHeader, FrameKind, OpenReply, OpenRequest, PullRange, PushHead, RpcId, flag,
};
use crate::{DerCode, RpcError};

/// A call.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelCall {
    generation: u32,
    is_out: bool,
    bulk: Option<BulkPart>,
}

/// An answer that nobody has taken.
#[derive(Debug)]
struct ChannelAnswer {
    slot: u32,
    result: Result<Vec<u8>, i64>,
}

#[derive(Debug, Default)]
struct ChannelState {
    calls: Vec<ChannelCall>,
    answers: Vec<ChannelAnswer>,
    opened: Option<Result<OpenReply, RpcError>>,
    lost: Option<RpcError>,
    /// Ranges that found no room.
    held: Vec<HeldData>,
    session: u32,
    max_frame: u32,
}

/// A session with a service, over a link of its own.
pub struct RpcChannel<L> {
    link: L,
    peer: PeerId,
    state: ChannelState,
    send_size: u32,
    /// The longest payload that the server takes, in bytes.
    longest: u64,
}

impl<L: Link> RpcChannel<L> {
    /// Connects and opens a session. It has as many slots as `asked` has credits.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the session.
    pub fn open(
        mut link: L,
        setup: &DialSetup,
        endpoint: &ServerEndpoint,
        asked: &OpenRequest,
    ) -> Result<Self, RpcError> {
        let greeting = link.greeting()?;
        let (new, reply) = dial(setup, endpoint, greeting, &|| false)?;
        check_inline(asked, reply.max_message)?;
        let peer = link.join(new)?;
        let mut channel = Self {
            link,
            peer,
            state: ChannelState {
                max_frame: reply.max_frame,
                ..ChannelState::default()
            },
            send_size: asked.send_size,
            longest: reply.max_message,
        };
        let mut body = Vec::new();
        asked.encode(&mut body);
        let header = FrameHeader::plain(FrameKind::Open);
        channel.link.send(peer, &header, &[&body]);
        let until = Instant::now() + setup.within;
        while channel.state.opened.is_none() && Instant::now() < until {
            let fail = RpcError::io("open a session");
            channel.round(Duration::from_millis(20)).map_err(fail)?;
        }
        let silent = || RpcError::new(DerCode::TimedOut, "the server opened no session in time");
        let granted = channel.state.opened.take().ok_or_else(silent)??;
        channel.state.session = granted.session;
        let calls = granted.credits.min(asked.credits) as usize;
        channel.state.calls = vec![ChannelCall::default(); calls];
        Ok(channel)
    }

    fn round(&mut self, wait: Duration) -> io::Result<u32> {
        for data in std::mem::take(&mut self.state.held) {
            self.state.send_data(&mut self.link, data);
        }
        self.link.flush()?;
        // A sleep of no length would still tell the other side to wake this one.
        let sleep = (!wait.is_zero()).then_some(wait);
        let events = self.link.poll(sleep, &mut self.state)?;
        self.link.flush()?;
        Ok(events)
    }

    fn send(
        &mut self,
        slot: u32,
        header: FrameHeader,
        bulk: Option<BulkPart>,
        body: &[&[u8]],
    ) -> io::Result<()> {
        if let Some(lost) = &self.state.lost {
            return Err(lost.clone().into());
        }
        let length: usize = body.iter().map(|part| part.len()).sum();
        let payload = body.last().map_or(0, |payload| payload.len() as u64);
        let calls = &mut self.state.calls;
        let call = calls.get_mut(slot as usize).filter(|call| !call.is_out);
        let fits = length <= self.state.max_frame as usize && payload <= self.longest;
        let Some(call) = call.filter(|_| fits) else {
            let message = "a slot that is not free, or a payload that is too long";
            return Err(RpcError::new(DerCode::Invalid, message).into());
        };
        call.generation = call.generation.wrapping_add(1).max(1);
        call.bulk = bulk;
        let rpc = RpcId {
            slot,
            generation: call.generation,
        };
        let header = FrameHeader {
            rpc,
            session: self.state.session,
            ..header
        };
        while self.link.send(self.peer, &header, body) == Sent::Full {
            self.round(Duration::from_millis(1))?;
        }
        if let Some(call) = self.state.calls.get_mut(slot as usize) {
            call.is_out = true;
        }
        Ok(())
    }
}

impl<L: Link> ServiceChannel for RpcChannel<L> {
    fn register(&mut self, bytes: usize) -> io::Result<BulkMemory> {
        Ok(BulkMemory(self.link.allocate(bytes, None)?.0))
    }

    fn memory(&mut self, memory: BulkMemory) -> &mut [u8] {
        self.link.bytes(RegionId(memory.0))
    }

    fn request(
        &mut self,
        slot: u32,
        operation: u16,
        payload: &[u8],
        bulk: Option<BulkPart>,
    ) -> io::Result<()> {
        let mut header = FrameHeader::plain(FrameKind::Request).with_word(operation);
        if payload.len() > self.send_size as usize {
            return Err(too_long());
        }
        let Some(part) = bulk else {
            return self.send(slot, header, None, &[payload]);
        };
        let range = whole(part);
        let has = self.link.bytes(range.region).len();
        if range.bounds().is_none_or(|bounds| bounds.end > has) {
            return Err(too_long());
        }
        let access = match part.access {
            BulkUse::Get => BulkAccess::READ,
            BulkUse::Put => BulkAccess::WRITE,
        };
        let mut descriptor = Vec::new();
        self.link
            .describe(self.peer, range, access)
            .encode(&mut descriptor);
        header.flags = flag::BULK;
        self.send(slot, header, bulk, &[&descriptor, payload])
    }

    fn poll(
        &mut self,
        wait: Duration,
        mut done: impl FnMut(u32, Result<&[u8], i64>),
    ) -> io::Result<u32> {
        if self.state.answers.is_empty() {
            if let Some(lost) = &self.state.lost {
                return Err(lost.clone().into());
            }
            self.round(wait)?;
        }
        let mut count = 0;
        for answer in self.state.answers.drain(..) {
            done(answer.slot, answer.result.as_deref().map_err(|code| *code));
            count += 1;
        }
        Ok(count)
    }
}

/// Memory of a call as a link names it.
const fn whole(part: BulkPart) -> MemoryRange {
    MemoryRange::new(RegionId(part.memory.0), part.offset, part.length)
}

fn too_long() -> io::Error {
    let message = "more bytes than the memory or the session has";
    RpcError::new(DerCode::Invalid, message).into()
}

impl ChannelState {
    /// The call that a frame belongs to, if it is out.
    fn call(&mut self, rpc: RpcId) -> Option<&mut ChannelCall> {
        let call = self.calls.get_mut(rpc.slot as usize)?;
        (call.is_out && call.generation == rpc.generation).then_some(call)
    }

    /// The memory of a call, where a server may do this with the range.
    fn range(&mut self, rpc: RpcId, access: BulkUse, range: PullRange) -> Option<MemoryRange> {
        let part = self.call(rpc)?.bulk?;
        let PullRange { offset, length } = range;
        let is_within = offset.checked_add(length)? <= part.length;
        let offset = part.offset.checked_add(offset)?;
        let at = MemoryRange::new(RegionId(part.memory.0), offset, length);
        (part.access == access && is_within).then_some(at)
    }

    fn send_data<L: Link>(&mut self, link: &mut L, mut data: HeldData) {
        let from = self.range(data.rpc, BulkUse::Get, data.range);
        let begin = |from: MemoryRange| from.offset - data.range.offset;
        let from = from.map(|from| (from.region, begin(from)));
        if from.is_some_and(|(region, begin)| data.send(link, region, begin)) {
            self.held.push(data);
        }
    }

    fn answered(&mut self, header: &FrameHeader, body: &[u8]) -> Result<(), RpcError> {
        let call = self
            .call(header.rpc)
            .ok_or_else(|| RpcError::protocol("an answer to no call"))?;
        call.is_out = false;
        let result = match header.word {
            0 => Ok(body.to_vec()),
            status => Err(DerCode::from_status(status).result()),
        };
        self.answers.push(ChannelAnswer {
            slot: header.rpc.slot,
            result,
        });
        Ok(())
    }

    /// Where the data of a server go: into what it was given for a call that is out.
    fn place_of_push(&mut self, frame: Frame<'_>, length: u64) -> Option<MemoryRange> {
        let (PushHead { offset }, _) = PushHead::decode(frame.body).ok()?;
        let range = PullRange { offset, length };
        self.range(frame.header.rpc, BulkUse::Put, range)
    }

    fn take<L: Link>(&mut self, link: &mut L, frame: Frame<'_>) -> Result<(), RpcError> {
        let Frame { peer, header, body } = frame;
        let outside = || RpcError::protocol("memory outside a descriptor");
        match header.kind {
            FrameKind::Response => self.answered(header, body)?,
            FrameKind::BulkPull => {
                let range = PullRange::decode(body)?;
                let allowed = self.range(header.rpc, BulkUse::Get, range);
                allowed.ok_or_else(outside)?;
                self.send_data(
                    link,
                    HeldData::of_call((peer, self.max_frame), header, range),
                );
            }
            FrameKind::BulkPush => {
                let (_, data) = PushHead::decode(body)?;
                let at = self.place_of_push(frame, data.len() as u64);
                link.write(at.ok_or_else(outside)?, data);
            }
            FrameKind::OpenAck if header.word == 0 => {
                self.opened = Some(Ok(OpenReply::decode(body)?));
            }
            FrameKind::OpenAck => self.opened = Some(Err(RpcError::said(header.word, body))),
            FrameKind::GoAway | FrameKind::Pong | FrameKind::CloseAck => {}
            FrameKind::Error => return Err(RpcError::said(header.word, body)),
            _ => return Err(RpcError::protocol("a frame of this kind may not come now")),
        }
        Ok(())
    }

    fn lose(&mut self, why: RpcError) {
        for (slot, call) in (0..).zip(&mut self.calls) {
            if std::mem::take(&mut call.is_out) {
                let result = Err(DerCode::Unreachable.result());
                self.answers.push(ChannelAnswer { slot, result });
            }
        }
        self.opened.get_or_insert_with(|| Err(why.clone()));
        self.lost = Some(why);
    }
}

impl<L: Link> LinkHandler<L> for ChannelState {
    fn destination(&mut self, frame: Frame<'_>, length: u64) -> Option<MemoryRange> {
        match frame.header.kind {
            FrameKind::BulkPush => self.place_of_push(frame, length),
            _ => None,
        }
    }

    fn message(&mut self, link: &mut L, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        if let Err(error) = self.take(link, Frame { peer, header, body }) {
            link.close(peer);
            self.lose(error);
        }
    }

    fn lost(&mut self, _: &mut L, _: PeerId, why: RpcError) {
        self.lose(why);
    }
}

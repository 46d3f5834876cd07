//! Steps of a call in the table: ask its service, move what that says, hold it, end it.
//!
//! In: steps that services name; ends of moves and of time. Out: moves, answers. Not here: how a call comes and
//! how it is answered (`serve`), how data move (`bulk`).

use super::calls::{CallStage, ServerCall};
use super::poller::PollerState;
use super::serve::service_call;
use super::thread::TICK;
use crate::DerCode;
use crate::links::Link;
use crate::service::{MOST_PARTS, NextStep, PushPart, RpcService, ServiceCall};
use crate::wire::BulkAccess;

/// A part that pushes nothing.
const NOTHING: PushPart = PushPart {
    from: 0,
    to: 0,
    length: 0,
};

/// Method of a service by which it goes on with a call.
type ServiceTurn = fn(&mut (dyn RpcService + 'static), &mut ServiceCall<'_>) -> NextStep;

impl PollerState {
    /// Lets the service say what is next for a call in the table.
    pub(super) fn ask_service<L: Link>(
        &mut self,
        link: &mut L,
        place: u32,
        turn: ServiceTurn,
    ) -> NextStep {
        let handle = self.calls.handle(place);
        let kept = self.calls.get(place);
        let Some(Some(session)) = self.sessions.get(kept.facts.header.session as usize - 1) else {
            return NextStep::Fail(DerCode::NotThere);
        };
        let service = &mut self.tags[session.tag].services[session.service];
        let buffer = kept.region.map_or(&mut [][..], |region| link.bytes(region));
        let bulk = kept.bulk.as_deref();
        let header = &kept.facts.header;
        let about = (handle, kept.checksum);
        let buffers = (buffer, &mut self.parts);
        let mut call = service_call(header, &kept.payload, bulk, buffers, about);
        let step = turn(&mut **service, &mut call);
        kept.facts.reply_checksum = call.reply_checksum;
        kept.facts.pull_from = call.pull_from;
        step
    }

    /// Begins the next step of a call in the table.
    pub(super) fn go_to<L: Link>(&mut self, link: &mut L, place: u32, step: NextStep, eager: bool) {
        let call = self.calls.get(place);
        call.stage = match step {
            NextStep::Reply(_) | NextStep::Fail(_) => return self.finish(link, place, step),
            NextStep::Later => CallStage::Held { since: self.ticks },
            NextStep::Pull(length) => CallStage::Pulling {
                from: call.facts.pull_from,
                asked: 0,
                to_ask: match call.stage {
                    CallStage::Waiting { dropped } if eager => dropped,
                    _ => length,
                },
                got: 0,
                total: length,
            },
            NextStep::PushAndReply(length) => {
                call.then = Some(0);
                CallStage::Pushing(PushPart { length, ..NOTHING })
            }
            NextStep::PushParts | NextStep::PushPartsAndReply(_) => {
                std::mem::swap(&mut call.parts, &mut self.parts);
                call.parts.retain(|part| part.length > 0);
                call.then = match step {
                    NextStep::PushPartsAndReply(length) => Some(length),
                    _ => None,
                };
                CallStage::Pushing(NOTHING)
            }
        };
        let room = call
            .region
            .map_or(0, |region| link.bytes(region).len() as u64);
        if !fits(call, room) {
            return self.abandon(link, place, DerCode::Invalid);
        }
        match call.stage {
            CallStage::Held { .. } => {}
            CallStage::Pulling { total: 0, .. } => self.step_done(link, place),
            CallStage::Pushing(part) if part.length == 0 => self.step_done(link, place),
            _ if !call.moves_by_frames() => self.move_memory(link, place),
            CallStage::Pulling { .. } => self.pull_more(link, place),
            _ => {
                let token = self.calls.token(place);
                self.push_piece(link, token);
            }
        }
    }

    /// All data of a step, or of a part, are where they belong.
    pub(super) fn step_done<L: Link>(&mut self, link: &mut L, place: u32) {
        let token = self.calls.token(place);
        let call = self.calls.get(place);
        let turn: ServiceTurn = if let CallStage::Pulling { .. } = call.stage {
            RpcService::pulled
        } else if let Some(part) = call.parts.pop() {
            call.stage = CallStage::Pushing(part);
            if call.moves_by_frames() {
                return self.pushing.push_back(token);
            }
            return self.move_memory(link, place);
        } else if let Some(length) = call.then {
            return self.finish(link, place, NextStep::Reply(length));
        } else if call.region.is_some_and(|region| link.is_in_use(region)) {
            call.stage = CallStage::Pushing(NOTHING);
            return self.pushing.push_back(token);
        } else {
            RpcService::resumed
        };
        let step = self.ask_service(link, place, turn);
        self.go_to(link, place, step, false);
    }

    /// Goes on with a call that its service has held.
    pub(super) fn resume<L: Link>(&mut self, link: &mut L, token: u64) {
        let Some(place) = self.calls.by_token(token) else {
            return;
        };
        let call = self.calls.get(place);
        if let CallStage::Held { .. } = call.stage {
            call.stage = CallStage::Pushing(NOTHING);
            let step = self.ask_service(link, place, RpcService::resumed);
            self.go_to(link, place, step, false);
        }
    }

    /// Ends calls that have been held for too long.
    pub(super) fn tick<L: Link>(&mut self, link: &mut L) {
        self.ticks = self.ticks.wrapping_add(1);
        let limit = self.shared.setup.limits.held.as_nanos() / TICK.as_nanos();
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        for place in self.calls.held_before(self.ticks.saturating_sub(limit)) {
            self.abandon(link, place, DerCode::TimedOut);
        }
    }

    /// Ends a call that its service has not answered.
    pub(super) fn abandon<L: Link>(&mut self, link: &mut L, place: u32, code: DerCode) {
        let number = self.calls.get(place).facts.header.session;
        if let Some(Some(session)) = self.sessions.get(number as usize - 1) {
            self.note_dropped(place, (session.tag, session.service));
        }
        self.finish(link, place, NextStep::Fail(code));
    }

    /// The service of a call that ends without its answer learns it, and cannot resume it any more.
    pub(super) fn note_dropped(&mut self, place: u32, (tag, service): (usize, usize)) {
        let handle = self.calls.handle(place);
        let call = self.calls.get(place);
        if let CallStage::Held { .. } = call.stage {
            call.stage = CallStage::Pushing(NOTHING);
        }
        self.tags[tag].services[service].dropped(handle);
    }
}

/// True if the data of a call's step lie within its caller's memory and its buffer, which has so much room.
fn fits(call: &ServerCall, room: u64) -> bool {
    let (first, access) = match call.stage {
        CallStage::Pulling { from, total, .. } => {
            let (to, length) = (from, total);
            (
                PushPart {
                    from: 0,
                    to,
                    length,
                },
                BulkAccess::READ,
            )
        }
        CallStage::Pushing(part) => (part, BulkAccess::WRITE),
        _ => return true,
    };
    let Some(bulk) = call.bulk.as_deref() else {
        return false;
    };
    let is_within = |part: &PushPart| {
        let end = part.from.checked_add(part.length);
        end.is_some_and(|end| end <= room) && bulk.contains(part.to, part.length)
    };
    bulk.access.allows(access)
        && call.parts.len() <= MOST_PARTS
        && call.then.is_none_or(|length| length <= room)
        && [first].iter().chain(&call.parts).all(is_within)
}

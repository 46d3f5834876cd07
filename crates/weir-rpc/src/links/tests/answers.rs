//! Answers that a test writes down, at a client: late ones, and ones that nobody may give.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use weir_schema::{RpcPayload, RpcPayloadKind};

use super::faults::{dummy, reply, setup_of};
use super::{Faults, SimulatedLink, SimulatedNet};
use crate::DerCode;
use crate::client::{CallPayload, ClientSetup, RpcClient};
use crate::links::stream::Collected;
use crate::links::{Link, LinkSide, PeerId, Sent};
use crate::transport::{Requested, RpcTransport};
use crate::wire::{FrameHeader, FrameKind, OpenReply, RpcId};

/// A client, and the side that answers it: endpoint n is connection n and has the session n + 1.
struct Answered {
    client: RpcClient<SimulatedLink>,
    server: Rc<RefCell<SimulatedLink>>,
    /// Buffers of the client.
    regions: Rc<RefCell<i64>>,
}

const TIMED_OUT: i64 = -1011;

fn rpc(generation: u32) -> RpcId {
    RpcId {
        slot: 0,
        generation,
    }
}

fn connection(endpoint: u32) -> PeerId {
    PeerId {
        index: endpoint,
        generation: 1,
    }
}

impl Answered {
    /// Of two endpoints, for calls in one slot that take a tenth of a second at most.
    fn new(payload: CallPayload) -> Self {
        let net = SimulatedNet::new(1, Faults::default());
        let server = SimulatedLink::new(&net, LinkSide::Server);
        let server = Rc::new(RefCell::new(server));
        let mut link = SimulatedLink::new(&net, LinkSide::Client);
        let regions = Rc::clone(&link.regions);
        // What nobody takes holds up the time.
        let taking = Rc::clone(&server);
        link.meanwhile = Some(Box::new(move || {
            let mut taken = Collected::default();
            taking.borrow_mut().poll(None, &mut taken).unwrap();
        }));
        let setup = ClientSetup {
            slots: 1,
            timeout: Duration::from_millis(100),
            ..setup_of(2, payload)
        };
        let has_session = payload != nothing();
        let time = Rc::clone(&net);
        let attached = RpcClient::attach_with(
            link,
            setup,
            Box::new(move || time.borrow().now_ns),
            |_, endpoint| {
                let mut server = server.borrow_mut();
                let peer = server.join(dummy())?;
                if has_session {
                    let granted = OpenReply {
                        session: endpoint.endpoint.tag + 1,
                        buffers: 1,
                        credits: 4,
                    };
                    let mut body = Vec::new();
                    granted.encode(&mut body);
                    let header = FrameHeader {
                        rpc: RpcId {
                            slot: endpoint.endpoint.tag,
                            generation: 0,
                        },
                        ..FrameHeader::plain(FrameKind::OpenAck)
                    };
                    server.send(peer, &header, &[&body]);
                }
                Ok((dummy(), reply()))
            },
            &|| false,
        );
        Self {
            client: attached.unwrap(),
            server,
            regions,
        }
    }

    fn call(&mut self, endpoint: u32) {
        assert_eq!(self.client.request(endpoint, 0), Requested::Queued);
    }

    /// Says on the connection of an endpoint that a call of one of a session has ended.
    fn answer(&mut self, endpoint: u32, session: u32, rpc: RpcId, code: Option<DerCode>) {
        let header = FrameHeader {
            word: code.map_or(0, DerCode::to_status),
            rpc,
            session,
            ..FrameHeader::plain(FrameKind::Response)
        };
        let mut server = self.server.borrow_mut();
        let sent = server.send(connection(endpoint), &header, &[]);
        assert_eq!(sent, Sent::Queued);
    }

    /// Result of the call, within so many looks.
    fn ended(&mut self, looks: u32) -> Option<i64> {
        let mut ended = None;
        for _ in 0..looks {
            let done = |_, result| ended = Some(result);
            self.client.poll(Some(0), 1, done).unwrap();
            if ended.is_some() {
                break;
            }
        }
        ended
    }

    fn late_replies(&self) -> u64 {
        self.client.counters().late_replies
    }
}

fn nothing() -> CallPayload {
    CallPayload::default()
}

/// Looks that bring everything that is on its way, and take less than a call may.
const FEW: u32 = 20;
/// Looks until a call has taken too long.
const MANY: u32 = 1000;

#[test]
fn a_late_answer_is_counted_and_ends_no_other_call() {
    let mut test = Answered::new(nothing());
    test.call(0);
    assert_eq!(test.ended(MANY), Some(TIMED_OUT));
    test.call(0);
    test.answer(0, 0, rpc(1), None);
    assert_eq!(test.ended(FEW), None);
    assert_eq!(test.late_replies(), 1);
    test.answer(0, 0, rpc(2), None);
    assert_eq!(test.ended(FEW), Some(0));
    assert_eq!(test.late_replies(), 1);
}

#[test]
fn the_answer_to_a_call_that_was_given_up_is_none_that_came_late() {
    let mut test = Answered::new(nothing());
    test.call(0);
    test.client.cancel();
    assert_eq!(test.ended(FEW), Some(DerCode::Canceled.result()));
    test.answer(0, 0, rpc(1), Some(DerCode::Canceled));
    assert_eq!(test.ended(FEW), None);
    assert_eq!(test.late_replies(), 0);
    assert!(test.client.is_up(0));
}

#[test]
fn whoever_answers_for_another_loses_its_connection_and_the_call_goes_on() {
    let mut test = Answered::new(nothing());
    test.call(0);
    test.answer(1, 0, rpc(1), None);
    assert_eq!(test.ended(FEW), None);
    assert!(test.client.is_up(0) && !test.client.is_up(1));
    test.answer(0, 0, rpc(1), None);
    assert_eq!(test.ended(FEW), Some(0));
}

#[test]
fn an_answer_from_another_session_or_to_no_call_ends_the_connection() {
    for (session, generation) in [(2, 1), (1, 2), (1, 0)] {
        let mut test = Answered::new(bulk());
        test.call(0);
        test.answer(0, session, rpc(generation), None);
        assert_eq!(test.ended(FEW), Some(DerCode::Unreachable.result()));
        assert!(test.client.is_up(1) && !test.client.is_up(0));
    }
}

fn bulk() -> CallPayload {
    CallPayload {
        request: RpcPayload::of(RpcPayloadKind::Bulk, 1000),
        ..CallPayload::default()
    }
}

#[test]
fn memory_of_a_call_that_was_given_up_is_used_again_once_its_answer_has_come() {
    let mut test = Answered::new(bulk());
    let regions = Rc::clone(&test.regions);
    let mut generation = 0;
    let mut times_out = |test: &mut Answered, endpoint| {
        test.call(endpoint);
        generation += 1;
        assert_eq!(test.ended(MANY), Some(TIMED_OUT));
        generation
    };
    times_out(&mut test, 0);
    let second = times_out(&mut test, 1);
    assert_eq!(
        *regions.borrow(),
        2,
        "the first server may still read the first one"
    );
    test.answer(1, 2, rpc(second), Some(DerCode::Canceled));
    assert_eq!(test.ended(FEW), None);
    times_out(&mut test, 1);
    assert_eq!(*regions.borrow(), 2, "the second one is free");
    times_out(&mut test, 0);
    assert_eq!(*regions.borrow(), 3);
}

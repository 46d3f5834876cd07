//! Channels to targets in this process: a client and a server without anything between them.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

use weir_object::remote::{
    BUFFERS, RemoteSetup, RemoteStore, ServerInfo, Step, Target, TargetRequest,
};
use weir_object::{Durability, ObjectCode, ObjectStore, ValueSums};
use weir_run::{BulkMemory, BulkPart, BulkUse, ServiceChannel};

thread_local! {
    /// True: a byte of each value changes on its way.
    pub(crate) static FLIPS: Cell<bool> = const { Cell::new(false) };
}

/// Numbers of updates and fetches.
const OF_VALUES: [u16; 2] = [3, 4];

/// Values that are on their way.
fn pass(bytes: &mut [u8]) {
    if let Some(last) = bytes.last_mut() {
        *last ^= u8::from(FLIPS.get());
    }
}

/// A call that has been made.
struct Call {
    operation: u16,
    payload: Vec<u8>,
    bulk: Option<BulkPart>,
    buffer: Vec<u8>,
}

/// A channel to a target.
pub(crate) struct Loopback<S> {
    pub(crate) target: Target<S, u32>,
    buffer: usize,
    memories: Vec<Vec<u8>>,
    calls: HashMap<u32, Call>,
    fresh: Vec<u32>,
    answers: Vec<(u32, Result<Vec<u8>, i64>)>,
}

/// A store on targets over these stores; over none it is echo.
pub(crate) fn remote<S: ObjectStore>(
    stores: Vec<Option<S>>,
    in_flight: u32,
    buffer: u32,
) -> RemoteStore<Loopback<S>> {
    let about = ServerInfo {
        targets: stores.len() as u32,
        pool: [7; 16],
        durability: Durability::None,
        sums: ValueSums::Crc32c,
    };
    let setup = RemoteSetup {
        in_flight,
        is_echo: false,
        usual: 0,
    };
    let channels = stores.into_iter().map(|store| {
        let channel = Loopback {
            target: Target::new(store, about, 256 << 20),
            buffer: buffer.clamp(BUFFERS.0, BUFFERS.1) as usize,
            memories: Vec::new(),
            calls: HashMap::new(),
            fresh: Vec::new(),
            answers: Vec::new(),
        };
        ("here".to_owned(), channel)
    });
    RemoteStore::over(channels.collect(), setup).unwrap()
}

impl<S: ObjectStore> Loopback<S> {
    /// Goes on with a call, as far as it goes now.
    fn carry_out(&mut self, slot: u32, mut step: Step) {
        loop {
            let parts: Vec<_> = self.target.parts().collect();
            let call = self.calls.get_mut(&slot).unwrap();
            if let Step::Push | Step::PushAndReply(_) = step {
                let bulk = call.bulk.unwrap();
                assert_eq!(bulk.access, BulkUse::Put);
                assert!(parts.len() <= 16);
                for part in parts {
                    assert!(part.to + part.length <= bulk.length);
                    let to = (bulk.offset + part.to) as usize;
                    let from = &call.buffer[part.from as usize..][..part.length as usize];
                    let place = &mut self.memories[bulk.memory.0 as usize][to..to + from.len()];
                    place.copy_from_slice(from);
                    pass(place);
                }
            }
            step = match step {
                Step::Later => return,
                Step::Pull { from, length } => {
                    let bulk = call.bulk.unwrap();
                    assert_eq!(bulk.access, BulkUse::Get);
                    assert!(from + length <= bulk.length);
                    let at = (bulk.offset + from) as usize;
                    let memory = &self.memories[bulk.memory.0 as usize];
                    call.buffer[..length as usize]
                        .copy_from_slice(&memory[at..at + length as usize]);
                    pass(&mut call.buffer[..length as usize]);
                    self.target.pulled(TargetRequest {
                        operation: call.operation,
                        payload: &call.payload,
                        bulk: Some(bulk.length),
                        buffer: &mut call.buffer,
                        handle: slot,
                    })
                }
                Step::Push => self.target.resumed(slot, &mut call.buffer),
                Step::Reply(length) | Step::PushAndReply(length) => {
                    let mut call = self.calls.remove(&slot).unwrap();
                    if call.operation == OF_VALUES[1] && call.bulk.is_none() {
                        pass(&mut call.buffer[..length]);
                    }
                    self.answers
                        .push((slot, Ok(call.buffer[..length].to_vec())));
                    return;
                }
                Step::Fail(code) => {
                    self.calls.remove(&slot);
                    self.answers.push((slot, Err(-i64::from(code.number()))));
                    return;
                }
            };
        }
    }
}

impl<S: ObjectStore> ServiceChannel for Loopback<S> {
    fn register(&mut self, bytes: usize) -> io::Result<BulkMemory> {
        self.memories.push(vec![0; bytes]);
        Ok(BulkMemory(self.memories.len() as u32 - 1))
    }

    fn memory(&mut self, memory: BulkMemory) -> &mut [u8] {
        &mut self.memories[memory.0 as usize]
    }

    fn request(
        &mut self,
        slot: u32,
        operation: u16,
        payload: &[u8],
        bulk: Option<BulkPart>,
    ) -> io::Result<()> {
        let mut call = Call {
            operation,
            payload: payload.to_vec(),
            bulk,
            buffer: vec![0x5a; self.buffer],
        };
        if operation == OF_VALUES[0] && bulk.is_none() {
            pass(&mut call.payload);
        }
        assert!(
            self.calls.insert(slot, call).is_none(),
            "slot {slot} is out"
        );
        self.fresh.push(slot);
        Ok(())
    }

    fn poll(
        &mut self,
        _: Duration,
        mut done: impl FnMut(u32, Result<&[u8], i64>),
    ) -> io::Result<u32> {
        for slot in std::mem::take(&mut self.fresh) {
            let call = self.calls.get_mut(&slot).unwrap();
            let step = self.target.request(TargetRequest {
                operation: call.operation,
                payload: &call.payload,
                bulk: call.bulk.map(|bulk| bulk.length),
                buffer: &mut call.buffer,
                handle: slot,
            });
            self.carry_out(slot, step);
        }
        let mut ready = Vec::new();
        self.target.end_of_round(&mut ready);
        for slot in ready {
            let call = self.calls.get_mut(&slot).unwrap();
            let step = self.target.resumed(slot, &mut call.buffer);
            self.carry_out(slot, step);
        }
        let count = self.answers.len();
        for (slot, answer) in self.answers.drain(..) {
            done(slot, answer.as_deref().map_err(|code| *code));
        }
        Ok(count as u32)
    }
}

/// The code of a failure.
#[allow(dead_code, reason = "not every test has one")]
pub(crate) fn code<T: std::fmt::Debug>(result: weir_object::Result<T>) -> ObjectCode {
    result.unwrap_err().code
}

//! Requests to a target of an object store, as a stranger may send them.
//!
//! The input is a series of requests, each behind its operation, the length of the caller's memory and its own
//! length. What is read is written again and has to be the same bytes. A target over a store and one over none
//! carry each request out.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_object::mem::MemStore;
use weir_object::remote::{BUFFERS, Reply, Request, ServerInfo, Step, Target, TargetRequest};
use weir_object::{Durability, PoolSpec, ValueSums};

/// Bytes before each request.
const HEAD: usize = 5;

fuzz_target!(|data: &[u8]| {
    let about = ServerInfo {
        targets: 1,
        pool: [0; 16],
        durability: Durability::None,
        sums: ValueSums::Crc32c,
    };
    let store = MemStore::open(&PoolSpec::anonymous(16 << 20)).expect("memory for a pool");
    let mut targets = [Some(store), None].map(|store| Target::new(store, about, 1 << 20));
    let mut buffer = vec![0; BUFFERS.0 as usize];
    let (mut rest, mut handle) = (data, 0_u32);
    while let Some(([operation, a, b, c, length], more)) = rest.split_first_chunk::<HEAD>() {
        let bytes = &more[..more.len().min(usize::from(*length))];
        rest = &more[bytes.len()..];
        if let Ok(request) = Request::decode((*operation).into(), bytes) {
            let mut again = Vec::new();
            assert_eq!(request.encode(&mut again), u16::from(*operation));
            assert_eq!(again, bytes, "{request:?}");
        }
        let bulk = u64::from(u32::from_le_bytes([*a, *b, *c, 0]));
        for target in &mut targets {
            handle += 1;
            carry_out(target, (*operation, bytes, bulk), &mut buffer, handle);
        }
    }
});

/// A request to its reply.
fn carry_out(
    target: &mut Target<MemStore, u32>,
    (operation, payload, bulk): (u8, &[u8], u64),
    buffer: &mut [u8],
    handle: u32,
) {
    let bulk = Some(bulk).filter(|bulk| *bulk > 0);
    let mut pulled = None;
    loop {
        let step = match pulled.take() {
            Some(step) => step,
            None => target.request(TargetRequest {
                operation: operation.into(),
                payload,
                bulk,
                buffer,
                handle,
            }),
        };
        for part in target.parts() {
            assert!(part.from + part.length <= buffer.len() as u64);
            assert!(part.to + part.length <= bulk.unwrap_or(0));
        }
        pulled = Some(match step {
            Step::Fail(_) => return,
            Step::Reply(length) | Step::PushAndReply(length) => {
                Reply::decode(&buffer[..length])
                    .expect("a reply has a head")
                    .0
                    .ok();
                return;
            }
            Step::Pull { from, length } => {
                assert!(length <= buffer.len() as u64 && from + length <= bulk.unwrap_or(0));
                target.pulled(TargetRequest {
                    operation: operation.into(),
                    payload,
                    bulk,
                    buffer,
                    handle,
                })
            }
            Step::Push => target.resumed(handle, buffer),
            Step::Later => {
                let mut ready = Vec::new();
                target.end_of_round(&mut ready);
                assert_eq!(ready, [handle]);
                target.resumed(handle, buffer)
            }
        });
    }
}

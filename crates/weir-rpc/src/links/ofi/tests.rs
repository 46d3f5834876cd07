//! Endpoints of the providers that every machine has, two of them in one process, over loopback.

use std::time::{Duration, Instant};

use weir_schema::RpcPoll;

use super::*;
use crate::links::MoveDirection;

/// Providers that need no device.
const PROVIDERS: [&str; 3] = ["tcp;ofi_rxm", "shm", "net"];
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn skip(test: &str, reason: &str) {
    use std::io::Write as _;
    println!("SKIPPED: {test}: {reason}");
    if let Ok(path) = std::env::var("WEIR_SKIP_LOG") {
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        let _ = log.and_then(|mut log| writeln!(log, "{test}: {reason}"));
    }
}

/// An offer of each provider that is here.
pub(super) fn offers(test: &str) -> Vec<FabricChoice> {
    let library = match FabricLibrary::open() {
        Ok(library) => library,
        Err(error) => {
            skip(test, &error.to_string());
            return Vec::new();
        }
    };
    let choices = PROVIDERS.map(FabricChoice::on_loopback).into_iter();
    choices
        .filter(|choice| match FabricOffer::find(&library, choice) {
            Ok(_) => true,
            Err(error) => {
                skip(test, &error.to_string());
                false
            }
        })
        .collect()
}

fn open(choice: &FabricChoice, waiting: RpcPoll) -> FabricEndpoint {
    let library = FabricLibrary::open().unwrap();
    let offer = FabricOffer::find(&library, choice).unwrap();
    let sizes = EndpointSizes {
        receives: 16,
        ..EndpointSizes::default()
    };
    FabricEndpoint::open(offer, sizes, waiting).unwrap()
}

/// Two endpoints that know each other.
fn pair(choice: &FabricChoice) -> [(FabricEndpoint, FabricPeer); 2] {
    let mut one = open(choice, RpcPoll::Busy);
    let mut other = open(choice, RpcPoll::Busy);
    let to_other = one.insert(&other.address().unwrap()).unwrap();
    let to_one = other.insert(&one.address().unwrap()).unwrap();
    [(one, to_other), (other, to_one)]
}

/// Lets both work until `done` says so of a completion at `at`.
#[track_caller]
fn until(
    both: &mut [(FabricEndpoint, FabricPeer); 2],
    at: usize,
    mut done: impl FnMut(&mut FabricEndpoint, FabricCompletion) -> bool,
) {
    let start = Instant::now();
    let mut completions = Vec::new();
    while start.elapsed() < PATIENCE {
        for (index, (endpoint, _)) in both.iter_mut().enumerate() {
            endpoint.poll(&mut completions).unwrap();
            for completion in completions.drain(..) {
                if index == at && done(endpoint, completion) {
                    return;
                }
            }
        }
    }
    panic!("nothing of the kind within {PATIENCE:?}");
}

/// Sends a message however long it is.
fn send(endpoint: &mut FabricEndpoint, peer: FabricPeer, bytes: &[u8]) -> FabricPosted {
    let slot = endpoint.take_send().unwrap();
    endpoint.send_bytes(&slot)[..bytes.len()].copy_from_slice(bytes);
    if let Some(posted) = endpoint.inject_slot(&slot, bytes.len(), peer).unwrap() {
        endpoint.give_send_back(slot);
        return posted;
    }
    match endpoint.send(slot, bytes.len(), peer, 7).unwrap() {
        None => FabricPosted::Taken,
        Some(slot) => {
            endpoint.give_send_back(slot);
            FabricPosted::Again
        }
    }
}

/// Sends a message however long it is, and waits until it is there.
fn exchange(both: &mut [(FabricEndpoint, FabricPeer); 2], from: usize, bytes: &[u8]) {
    let start = Instant::now();
    loop {
        let (endpoint, peer) = &mut both[from];
        let peer = *peer;
        let posted = send(endpoint, peer, bytes);
        if posted == FabricPosted::Taken {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "the provider never takes it");
        // What a provider cannot take now it can after both sides worked.
        for (endpoint, _) in both.iter_mut() {
            endpoint.poll(&mut Vec::new()).unwrap();
        }
    }
    until(both, 1 - from, |endpoint, completion| {
        let FabricWork::Receive(slot) = completion.work else {
            return false;
        };
        let messages = endpoint.lend_messages().unwrap();
        assert_eq!(messages.message(slot, completion.result.unwrap()), bytes);
        endpoint.take_messages_back(messages);
        assert_eq!(endpoint.receive(slot).unwrap(), FabricPosted::Taken);
        true
    });
}

#[test]
fn messages_of_every_length_arrive_on_both_sides() {
    for choice in offers("messages_of_every_length_arrive_on_both_sides") {
        let mut both = pair(&choice);
        for round in 0..40_usize {
            for len in [0, 1, 24, 64, 65, 4096, 4097, 16 << 10] {
                let bytes: Vec<u8> = (0..len)
                    .map(|at| (at * 7 + round).to_le_bytes()[0])
                    .collect();
                exchange(&mut both, round % 2, &bytes);
            }
        }
    }
}

#[test]
fn memory_is_moved_both_ways_by_one_side_alone() {
    for choice in offers("memory_is_moved_both_ways_by_one_side_alone") {
        let mut both = pair(&choice);
        for len in [1, 4096, 1 << 20, 1_048_578_usize] {
            let theirs = both[1].0.allocate(len + 8, 3).unwrap();
            let own = both[0].0.allocate(len, 0).unwrap();
            assert_eq!(both[1].0.bytes(theirs).as_ptr().addr() % 256, 3);
            let pattern: Vec<u8> = (0..len)
                .map(|at| (at * 13 + len).to_le_bytes()[0])
                .collect();
            both[1].0.bytes(theirs)[8..].copy_from_slice(&pattern);
            let remote = both[1].0.remote(theirs, 8).unwrap();
            let moved = FabricMove {
                peer: both[0].1,
                remote,
                region: own,
                offset: 0,
                len,
                owner: 42,
            };
            let is_done = |_: &mut FabricEndpoint, completion: FabricCompletion| {
                assert_eq!(
                    (completion.work, completion.result.is_ok()),
                    (FabricWork::Move(42), true)
                );
                true
            };
            until_taken(&mut both, |endpoint| {
                endpoint.start(MoveDirection::Get, &moved)
            });
            until(&mut both, 0, is_done);
            assert_eq!(both[0].0.bytes(own), pattern, "{choice:?} get {len}");
            both[0].0.bytes(own).fill(0xA7);
            until_taken(&mut both, |endpoint| {
                endpoint.start(MoveDirection::Put, &moved)
            });
            until(&mut both, 0, is_done);
            // It is there when a message is that was sent after it.
            exchange(&mut both, 0, b"done");
            let bytes = both[1].0.bytes(theirs);
            assert!(bytes[8..].iter().all(|byte| *byte == 0xA7), "put {len}");
            assert!(bytes[..8].iter().all(|byte| *byte == 0), "put {len}");
            both[0].0.release(own);
            both[1].0.release(theirs);
            assert!(both[0].0.bytes(own).is_empty());
        }
    }
}

fn until_taken(
    both: &mut [(FabricEndpoint, FabricPeer); 2],
    mut begin: impl FnMut(&mut FabricEndpoint) -> Result<FabricPosted, FabricError>,
) {
    let start = Instant::now();
    while begin(&mut both[0].0).unwrap() == FabricPosted::Again {
        assert!(start.elapsed() < PATIENCE, "the provider never takes it");
        for (endpoint, _) in both.iter_mut() {
            endpoint.poll(&mut Vec::new()).unwrap();
        }
    }
}

#[test]
fn a_move_beyond_own_memory_or_released_memory_is_refused() {
    for choice in offers("a_move_beyond_own_memory_or_released_memory_is_refused") {
        let mut both = pair(&choice);
        let (endpoint, peer) = &mut both[0];
        let region = endpoint.allocate(100, 0).unwrap();
        let mut moved = FabricMove {
            peer: *peer,
            remote: RemoteMemory { address: 0, key: 0 },
            region,
            offset: 1,
            len: 100,
            owner: 0,
        };
        assert!(matches!(
            endpoint.start(MoveDirection::Get, &moved),
            Err(FabricError::Invalid(_))
        ));
        (moved.offset, moved.len) = (usize::MAX, 2);
        assert!(matches!(
            endpoint.start(MoveDirection::Put, &moved),
            Err(FabricError::Invalid(_))
        ));
        (moved.offset, moved.len) = (0, 1);
        endpoint.release(region);
        assert!(matches!(
            endpoint.start(MoveDirection::Put, &moved),
            Err(FabricError::Invalid(_))
        ));
    }
}

#[test]
fn what_is_no_address_is_refused() {
    for choice in offers("what_is_no_address_is_refused") {
        let mut endpoint = open(&choice, RpcPoll::Busy);
        assert!(endpoint.insert(&[]).is_err());
        assert!(endpoint.insert(&[1; 600]).is_err());
    }
}

#[test]
fn a_provider_that_there_is_not_is_refused_with_those_that_there_are() {
    let test = "a_provider_that_there_is_not_is_refused_with_those_that_there_are";
    let Ok(library) = FabricLibrary::open() else {
        return skip(test, "no libfabric");
    };
    let choice = FabricChoice {
        provider: Some("nonesuch".to_owned()),
        ..FabricChoice::default()
    };
    let text = FabricOffer::find(&library, &choice)
        .unwrap_err()
        .to_string();
    assert!(text.contains("no provider nonesuch"), "{text}");
    for name in providers(&library).unwrap() {
        assert!(text.contains(&name), "{text}");
    }
}

#[test]
fn the_short_name_of_tcp_finds_a_provider_for_datagrams_and_sockets_is_objected_to() {
    let test = "the_short_name_of_tcp_finds_a_provider_for_datagrams_and_sockets_is_objected_to";
    let Ok(library) = FabricLibrary::open() else {
        return skip(test, "no libfabric");
    };
    let there = providers(&library).unwrap();
    let named = |name: &str| {
        let choice = FabricChoice::on_loopback(name);
        FabricOffer::find(&library, &choice).unwrap()
    };
    if there.iter().any(|name| name.starts_with("tcp")) {
        let facts = named("tcp").facts().clone();
        assert!(facts.provider.starts_with("tcp"), "{facts:?}");
        assert_eq!(facts.objection(), None);
    }
    if there.iter().any(|name| name == "sockets") {
        assert!(named("sockets").facts().objection().is_some());
    }
    if there.iter().any(|name| name == "shm") {
        assert!(named("shm").facts().can_hang());
    }
}

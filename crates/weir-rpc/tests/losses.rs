//! Servers and clients that vanish in the middle of their calls.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weir_schema::RpcServiceTime;
use weir_units::Nanos;

use crate::testbed::{client, client_setup, endpoints, payload, run, run_with, server_setup};
use weir_rpc::client::ServerEndpoint;
use weir_rpc::server::RpcServer;
use weir_rpc::transport::{Requested, RpcTransport};
use weir_schema::RpcPayloadKind::{Bulk, Empty};

/// Requests stay at the server for a while, so that some are out whenever it vanishes.
const BUSY: RpcServiceTime = RpcServiceTime::Constant(Nanos::from_micros(100));

fn start(port: Option<u16>) -> RpcServer {
    let mut setup = server_setup(1, BUSY);
    if let Some(port) = port {
        setup.ranks[0].addresses = vec![format!("tcp://127.0.0.1:{port}").parse().unwrap()];
    }
    // A port in use for a moment longer is no fault of this test.
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let mut again = server_setup(1, BUSY);
        again.ranks.clone_from(&setup.ranks);
        match RpcServer::start(again) {
            Ok(server) => return server,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn nothing() -> weir_rpc::client::CallPayload {
    payload((Empty, 0), (Empty, 0))
}

#[test]
fn the_only_server_vanishes_and_the_rest_is_not_sent() {
    for payload in [nothing(), payload((Bulk, 300_000), (Bulk, 300_000))] {
        let mut server = Some(start(None));
        let mut client = client(client_setup(
            endpoints(server.as_ref().unwrap(), 1),
            payload,
        ));
        let began = Instant::now();
        let outcome = run_with(&mut client, 16, 1, 1_000_000, |_, done| {
            if done > 50 {
                server = None;
            }
        });
        assert!(began.elapsed() < Duration::from_secs(15));
        assert!(
            outcome.good > 0 && outcome.not_sent > 900_000,
            "{outcome:?}"
        );
        assert!(
            outcome.failed.len() <= 16 && !outcome.failed.is_empty(),
            "{outcome:?}"
        );
        assert!(outcome.failed.iter().all(|&code| code == -1006));
        assert_eq!(client.counters().lost_connections, 1);
        assert_eq!(client.request(0, 0), Requested::Gone);
    }
}

fn two(first: &RpcServer, second: &RpcServer) -> Vec<ServerEndpoint> {
    let mut both = endpoints(first, 1);
    both.extend(endpoints(second, 1));
    both[1].endpoint.rank = 1;
    both
}

#[test]
fn one_of_two_servers_vanishes_and_the_other_goes_on() {
    let stays = start(None);
    let mut leaves = server_setup(1, BUSY);
    leaves.ranks[0].rank = 1;
    let mut leaves = Some(RpcServer::start(leaves).unwrap());
    let both = two(&stays, leaves.as_ref().unwrap());
    let mut client = client(client_setup(both, nothing()));
    let outcome = run_with(&mut client, 16, 2, 2000, |_, done| {
        if done > 200 {
            leaves = None;
        }
    });
    assert_eq!(outcome.not_sent, 0);
    assert!(
        !outcome.failed.is_empty() && outcome.failed.len() <= 16,
        "{outcome:?}"
    );
    assert!(!client.is_up(1) && client.is_up(0));
}

#[test]
fn a_server_that_comes_back_takes_load_again() {
    let mut server = Some(start(None));
    let mut setup = client_setup(
        endpoints(server.as_ref().unwrap(), 1),
        payload((Bulk, 5000), (Empty, 0)),
    );
    setup.reconnect = Some(Duration::from_secs(20));
    setup.endpoints[0].nonce = None;
    let port = setup.endpoints[0]
        .address
        .place
        .rsplit_once(':')
        .unwrap()
        .1
        .parse()
        .unwrap();
    let mut client = client(setup);
    assert_eq!(run(&mut client, 16, 1, 100).good, 100);
    drop(server.take());
    while client.is_up(0) {
        client.poll(Some(1_000_000), 0, |_, _| {}).unwrap();
    }
    assert!(client.may_return());
    let server = start(Some(port));
    let end = Instant::now() + Duration::from_secs(15);
    while !client.is_up(0) {
        assert!(Instant::now() < end, "{:?}", client.last_error());
        assert!(client.may_return());
        client.poll(Some(1_000_000), 0, |_, _| {}).unwrap();
    }
    assert_eq!(run(&mut client, 16, 1, 100).good, 100);
    drop(server);
}

#[test]
fn clients_that_vanish_in_bulk_traffic_leave_nothing_behind() {
    let server = start(None);
    let memory = server.memory_left();
    for round in 0..50 {
        let size = 400_000;
        let mut client = client(client_setup(
            endpoints(&server, 1),
            payload((Bulk, size), (Bulk, size)),
        ));
        for slot in 0..16 {
            client.request(0, slot);
        }
        client.flush().unwrap();
        for _ in 0..round % 7 {
            client.poll(Some(0), 16, |_, _| {}).unwrap();
        }
    }
    let end = Instant::now() + Duration::from_secs(10);
    while server.memory_left() != memory || server.counters().connections.load(Relaxed) > 0 {
        assert!(Instant::now() < end, "memory or connections are left");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut next = client(client_setup(endpoints(&server, 1), nothing()));
    assert_eq!(run(&mut next, 16, 1, 100).good, 100);
}

#[test]
fn many_idle_connections_do_not_disturb_one_that_talks() {
    let server = start(None);
    let idle: Vec<_> = (0..300)
        .map(|_| client(client_setup(endpoints(&server, 1), nothing())))
        .collect();
    let mut talking = client(client_setup(endpoints(&server, 1), nothing()));
    assert_eq!(run(&mut talking, 16, 1, 1000).good, 1000);
    for mut client in idle {
        assert_eq!(run(&mut client, 1, 1, 1).good, 1);
        client.close().unwrap();
    }
}

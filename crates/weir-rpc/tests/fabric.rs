//! Calls over fabrics on loopback: the same client and server, another link.

use weir_schema::{RpcPoll, RpcServiceTime, RpcVerify};
use weir_units::Nanos;

use crate::testbed::{client_setup, endpoints, gives_back, payload, run, server_setup, skip};
use weir_rpc::client::RpcClient;
use weir_rpc::links::ofi::{FabricChoice, OfiLink, OfiSettings};
use weir_rpc::server::RpcServer;
use weir_rpc::transport::RpcTransport as _;
use weir_schema::RpcPayloadKind::{self, Bulk, Empty, Inline};

/// Providers that need no device and are here.
fn providers(test: &str) -> Vec<&'static str> {
    let all = ["tcp;ofi_rxm", "shm", "net"].into_iter();
    all.filter(|name| match FabricChoice::on_loopback(name).find() {
        Ok(offer) if offer.facts().has_remote_memory => true,
        Ok(_) => {
            skip(test, &format!("provider {name} has no remote memory here"));
            false
        }
        Err(error) => {
            skip(test, &error.to_string());
            false
        }
    })
    .collect()
}

/// Makes calls of each pair of kinds, and checks that all end well and that all memory is given
/// back.
fn all_end_well(provider: &str, poll: RpcPoll, size: u32, calls: u64) {
    let mut setup = server_setup(2, RpcServiceTime::None);
    let address = format!("ofi+{provider}://127.0.0.1:0");
    setup.ranks[0].addresses = vec![address.parse().unwrap()];
    setup.poll = poll;
    let server = RpcServer::start(setup).unwrap();
    let memory = server.memory_left();
    for send in [Empty, Inline, Bulk] {
        for reply in [Empty, Inline, Bulk] {
            let bytes = |kind: RpcPayloadKind, size| if kind == Empty { 0 } else { size };
            let kinds = payload((send, bytes(send, size)), (reply, bytes(reply, size + 7)));
            let mut setup = client_setup(endpoints(&server, 2), kinds);
            setup.verify = RpcVerify::Full;
            setup.poll = poll;
            let choice = FabricChoice::on_loopback(provider);
            let link = OfiLink::<true>::open(choice.find().unwrap(), OfiSettings::of(poll));
            let slots = setup.slots;
            let mut client = RpcClient::attach(link.unwrap(), setup).unwrap();
            let outcome = run(&mut client, slots, 2, calls);
            let what = format!("{provider} {kinds:?}");
            assert_eq!(
                (outcome.good, outcome.failed),
                (calls, Vec::new()),
                "{what}"
            );
            client.close().unwrap();
            gives_back(&server, memory);
        }
    }
    server.stop().unwrap();
}

const SPIN: RpcPoll = RpcPoll::Spin {
    for_ns: Nanos::from_micros(50),
};

#[test]
fn every_pair_of_kinds_carries_small_payloads_whole_over_a_fabric() {
    for provider in providers("every_pair_of_kinds_carries_small_payloads_whole_over_a_fabric") {
        all_end_well(provider, SPIN, 1000, 500);
    }
}

#[test]
fn threads_that_sleep_are_woken_by_a_fabric() {
    for provider in providers("threads_that_sleep_are_woken_by_a_fabric") {
        all_end_well(provider, RpcPoll::Block, 1000, 100);
    }
}

/// Tests that take long.
mod slow {
    use super::*;

    #[test]
    fn every_pair_of_kinds_carries_long_payloads_whole_over_a_fabric() {
        for provider in providers("every_pair_of_kinds_carries_long_payloads_whole_over_a_fabric") {
            all_end_well(provider, SPIN, 1_048_578, 40);
        }
    }
}

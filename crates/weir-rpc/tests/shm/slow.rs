//! Slow tests: they take long.

use super::*;

#[test]
fn every_pair_of_kinds_carries_payloads_whole() {
    for payload in every_pair(&[1, 1_000, 5_000]) {
        all_end_well(payload, 300, SPIN, RpcVerify::Full);
    }
    for payload in every_pair(&[1_048_578]) {
        all_end_well(payload, 40, SPIN, RpcVerify::Full);
    }
}

#[test]
fn in_line_payloads_around_powers_of_two_arrive_whole_both_ways() {
    let mut setup = server_setup(1, RpcServiceTime::None);
    let path = socket();
    setup.limits.max_message = 32 << 20;
    setup.ranks[0].addresses = vec![format!("shm://{}", path.display()).parse().unwrap()];
    let server = RpcServer::start(setup).unwrap();
    let arrives = |send, reply, calls| {
        let kind = |size| if size == 0 { Empty } else { Inline };
        let both = payload((kind(send), send), (kind(reply), reply));
        let setup = ClientSetup {
            verify: RpcVerify::Checksum,
            ..client_setup(endpoints(&server, 1), both)
        };
        let mut client = client(setup);
        let outcome = run(&mut client, calls, 1, calls.into());
        let ended = (outcome.good, outcome.failed);
        let why = client.last_error();
        assert_eq!(ended, (calls.into(), Vec::new()), "{send} {reply}: {why:?}");
        client.close().unwrap();
    };
    for power in 12..=24 {
        // Of short ones as many as fill a slab, wherever that is in a message.
        let (offs, calls) = match power {
            12..=20 => (&[-72, -64, -8, -1, 0, 1, 8][..], 9),
            21..=22 => (&[-72, -1, 0, 8][..], 4),
            _ => (&[-72, 0][..], 2),
        };
        for size in offs
            .iter()
            .map(|off| (1_u32 << power).wrapping_add_signed(*off))
        {
            arrives(size, 0, calls);
            arrives(0, size, calls);
            arrives(size, size, calls);
        }
    }
    server.stop().unwrap();
    let _ = std::fs::remove_file(path);
}

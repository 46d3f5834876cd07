//! Clients and servers of stores over links, in one process, and a server that is killed.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use weir_object::remote::{Counters, RemoteSetup, RemoteStore};
use weir_object::{
    Conditions, ContainerId, ContainerMode, Epoch, Iod, KeyAt, ObjectId, ObjectStore as _, Ticket,
};
use weir_rpc::group::address::RpcAddress;

use super::*;
use crate::store_channel::{StoreChannel, StoreDial};

const OBJECT: ObjectId = ObjectId { hi: 0, lo: 3 };
const NONE: Conditions = Conditions::NONE;

fn pool(directory: Option<&Path>, targets: u32, mode: PoolMode) -> ServedPool {
    ServedPool {
        directory: directory.map(Path::to_owned),
        bytes: u64::from(targets) * (128 << 20),
        targets,
        uuid: [9; 16],
        mode,
        durability: directory.map(|_| Durability::Process),
        sums: ValueSums::Crc32c,
    }
}

fn server(scheme: &str, pool: &ServedPool) -> (Host, String) {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let place = match scheme {
        "shm" => {
            let name = format!("weir-store-{}-{number}.sock", std::process::id());
            std::env::temp_dir().join(name).display().to_string()
        }
        _ => "127.0.0.1:0".to_owned(),
    };
    let address = RpcAddress {
        scheme: scheme.to_owned(),
        place,
    };
    let asked = RpcServe::alone("", 1, address.to_string());
    let host = host(asked, pool.open().unwrap(), Box::new(|_| ())).unwrap();
    let address = host.addresses()[0].1.to_string();
    (host, address)
}

fn store(address: &str, in_flight: u32, is_echo: bool) -> RemoteStore<StoreChannel> {
    let setup = RemoteSetup {
        in_flight,
        is_echo,
        usual: 4096,
    };
    RemoteStore::open(&StoreDial::default(), &[address.to_owned()], setup).unwrap()
}

fn key(container: ContainerId, dkey: &[u8]) -> KeyAt<'_> {
    KeyAt {
        container,
        object: OBJECT,
        dkey,
    }
}

fn value(number: u64, length: usize) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(number + 7) % 251).to_le_bytes()[0];
    (0..length as u64).map(byte).collect()
}

fn length(number: u64) -> usize {
    let all = [
        1,
        100,
        4096,
        16 << 10,
        (16 << 10) + 1,
        100_000,
        (1 << 20) + 7,
    ];
    all[usize::try_from(number % 7).unwrap()]
}

#[test]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn sixteen_operations_in_flight_end_each_with_its_own_values() {
    const COUNT: u64 = 400;
    for scheme in ["tcp", "shm"] {
        let (host, address) = server(scheme, &pool(None, 2, PoolMode::Create));
        for is_echo in [false, true] {
            let mut store = store(&address, 16, is_echo);
            let c = store.container([1; 16], ContainerMode::Create).unwrap();
            let mut found = Counters::default();
            for fetches in [false, true] {
                let (mut next, mut flying, mut ends) = (0_u64, BTreeMap::new(), Vec::new());
                while next < COUNT || !flying.is_empty() {
                    while next < COUNT && flying.len() < 16 {
                        let (dkey, length) = (next.to_le_bytes(), length(next));
                        let mut iods = [Iod::single(b"a", length as u64)];
                        let ticket = if fetches {
                            let mut data = vec![0; length];
                            store.fetch(key(c, &dkey), &mut iods, Epoch::LATEST, NONE, &mut data)
                        } else {
                            let data = value(next, length);
                            store.update(key(c, &dkey), &iods, Epoch(1), NONE, &data)
                        };
                        let Ticket::Waits(ticket) = ticket.unwrap() else {
                            panic!("it waits for none")
                        };
                        flying.insert(ticket, next);
                        next += 1;
                    }
                    store.poll(&mut ends, 1);
                    for end in ends.drain(..) {
                        let number = flying.remove(&end.ticket).unwrap();
                        let length = length(number);
                        assert_eq!(end.result, Ok(length as u64), "{scheme}, {number}");
                        if fetches {
                            let mut data = vec![0; length];
                            let mut iods = [Iod::single(b"a", length as u64)];
                            store.receive(end.ticket, &mut iods, &mut data).unwrap();
                            assert!(
                                is_echo || data == value(number, length),
                                "{scheme}, {number}"
                            );
                            found.fetches += 1;
                            found.fetch_bytes += length as u64;
                        } else {
                            found.updates += 1;
                            found.update_bytes += length as u64;
                        }
                    }
                }
            }
            assert_eq!((found.updates, found.fetches), (COUNT, COUNT));
            assert_eq!(store.refresh().unwrap(), found, "{scheme}");
            assert_eq!(store.stats().objects > 0, !is_echo);
        }
        // What is in flight when a server ends fails, and so does everything later.
        let mut store = store(&address, 4, false);
        let c = store.container([1; 16], ContainerMode::Open).unwrap();
        host.stop().unwrap();
        let (mut ends, mut refused) = (Vec::new(), false);
        while !refused {
            let iods = [Iod::single(b"a", 1)];
            match store.update(key(c, b"d"), &iods, Epoch(5), NONE, b"x") {
                Ok(_) => {
                    store.poll(&mut ends, 1);
                }
                Err(why) => {
                    assert_eq!(why.code, ObjectCode::Io);
                    assert!(why.message.contains(&address), "{why}");
                    assert!(why.message.contains("was lost"), "{why}");
                    refused = true;
                }
            }
        }
        let is_lost = |end: &weir_object::Completion| {
            let why = end.result.as_ref().err().map(ToString::to_string);
            let lost = format!("the connection to the server at {address} was lost");
            why.is_some_and(|why| why.contains(&lost))
        };
        assert!(ends.iter().all(is_lost), "{ends:?}");
        if scheme == "shm" {
            let _ = std::fs::remove_file(address.trim_start_matches("shm://"));
        }
    }
}

const CHILD: &str = "WEIR_STORE_CHILD";

/// The server that is killed.
#[test]
fn child_that_serves() {
    let Ok(directory) = std::env::var(CHILD) else {
        return;
    };
    let (_host, address) = server("tcp", &pool(Some(Path::new(&directory)), 2, PoolMode::Open));
    // One write: the parent reads lines.
    let ready = format!("READY {address}\n");
    std::io::stderr().write_all(ready.as_bytes()).unwrap();
    // Until it is killed, or the parent is gone.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

fn child(directory: &Path) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "store_service::tests::child_that_serves",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut ready = lines.map_while(Result::ok).filter_map(|line| {
        let address = line.strip_prefix("READY ")?;
        Some(address.to_owned())
    });
    let address = ready.next().expect("it serves");
    (child, address)
}

#[test]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn updates_that_a_server_acknowledged_survive_its_kill() {
    let rounds = if std::env::var_os("WEIR_LONG").is_some() {
        1_000
    } else {
        3
    };
    let directory = std::env::temp_dir().join(format!("weir-store-kill-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    drop(pool(Some(&directory), 2, PoolMode::Create).open().unwrap());
    let mut acknowledged: BTreeMap<u64, u64> = BTreeMap::new();
    let mut epoch = 0_u64;
    for round in 0..rounds {
        let (mut child, address) = child(&directory);
        let mut store = store(&address, 8, false);
        let c = store
            .container([1; 16], ContainerMode::OpenOrCreate)
            .unwrap();
        let (mut flying, mut ends, mut count) = (BTreeMap::new(), Vec::new(), 0);
        let kill_at = 50 + round * 37 % 300;
        loop {
            while flying.len() < 8 {
                epoch += 1;
                let number: u64 = epoch % 97;
                let (dkey, data) = (number.to_le_bytes(), value(epoch, length(number)));
                let iods = [Iod::single(b"a", data.len() as u64)];
                match store.update(key(c, &dkey), &iods, Epoch(epoch), NONE, &data) {
                    Ok(Ticket::Waits(ticket)) => flying.insert(ticket, epoch),
                    Ok(Ticket::Done(_)) => panic!("it waits for none"),
                    Err(_) => break,
                };
            }
            store.poll(&mut ends, 1);
            for end in ends.drain(..) {
                let epoch = flying.remove(&end.ticket).unwrap();
                if end.result.is_ok() {
                    acknowledged.insert(epoch, epoch % 97);
                    count += 1;
                }
            }
            if count >= kill_at {
                // Others are still in flight.
                child.kill().unwrap();
            }
            if flying.is_empty() {
                break;
            }
        }
        child.wait().unwrap();
        assert!(count >= kill_at);
        let (mut child, address) = self::child(&directory);
        let mut store = self::store(&address, 0, false);
        let c = store.container([1; 16], ContainerMode::Open).unwrap();
        assert!(!store.stats().log_damaged);
        for (epoch, number) in &acknowledged {
            let (dkey, length) = (number.to_le_bytes(), length(*number));
            let mut data = vec![0; length];
            let mut iods = [Iod::single(b"a", length as u64)];
            let found = store.fetch(key(c, &dkey), &mut iods, Epoch(*epoch), NONE, &mut data);
            assert_eq!(
                found,
                Ok(Ticket::Done(length as u64)),
                "round {round}, {epoch}"
            );
            assert!(
                data == value(*epoch, length),
                "round {round}, epoch {epoch}"
            );
        }
        let damaged = store.scrub(&mut |bad| panic!("{bad:?}"));
        assert!(damaged.unwrap() >= acknowledged.len() as u64);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // One that is stopped leaves its index.
    let served = pool(Some(&directory), 2, PoolMode::Open);
    server("tcp", &served).0.stop().unwrap();
    let stores = served.open().unwrap().stores;
    assert!(stores.iter().all(|store| store.stats().recovered == 0));
    drop(stores);
    std::fs::remove_dir_all(&directory).unwrap();
}

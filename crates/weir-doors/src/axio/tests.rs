//! Configurations are read as they are written, and what is wrong is said with its line.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_schema::{MessageHandler, PathStage};

use super::plan::{tunable, workload};
use super::role::AxioRole;
use super::*;

const LINES: &str = "\
# a comment
  # an indented one
kAppCoreNum\t:\t4   # and one behind\r
workload : 1 : TxApplication, txdispatcher,RXDispatcher , RxApplication : 0,2 : 0-1,3 | 5 : 0|2
local_mac : 10:70:fd:86:cf:0e
remote_mac : 10.70.fd.86.cf.0f
local_ip : 192.168.1.2
msg_handler : KV
mem_region : 1m
";

#[test]
fn every_way_to_write_a_value_is_read() {
    let mut config = AxioConfig::read("c", LINES).unwrap();
    assert_eq!(config.text("kAppCoreNum"), Some("4"));
    assert_eq!(
        config.notes,
        ["c:4: workload: `txdispatcher` is read as TxDispatcher"]
    );
    let line = &config.workloads[0];
    assert_eq!((&line.remote, line.id), (&vec![0, 2], 1));
    assert_eq!(line.apps, [vec![0, 1, 3], vec![5]]);
    assert_eq!(line.dispatchers, [vec![0], vec![2]]);
    assert_eq!(line.stages[1], PathStage::DispatchTx);
    let work = workload(&config, AxioRole::Loopback).unwrap().work;
    assert_eq!(
        work.hardware_addresses[0],
        [0x10, 0x70, 0xfd, 0x86, 0xcf, 0x0e]
    );
    assert_eq!(work.hardware_addresses[1][5], 0x0f);
    assert_eq!(work.addresses[0], [192, 168, 1, 2]);
    assert_eq!(
        (work.handler, work.request_bytes.0),
        (MessageHandler::KeyValue, 97)
    );
    assert_eq!(work.region_bytes.0, 1 << 20);
    config.set("msg_handler=FS_READ").unwrap();
    config.set("duration=0.1").unwrap();
    let work = workload(&config, AxioRole::Loopback).unwrap().work;
    assert_eq!(
        (work.response_bytes.0, work.duration_ns.0),
        (102_400, 100_000_000)
    );
    assert_eq!(
        tunable(&config)["kDispQueueNum"],
        16,
        "what the reference has"
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once_with_its_line() {
    let wrong = AxioConfig::read("c", "kApp : 1\nnuma\n\nphase : 2").unwrap_err();
    let lines: Vec<&str> = wrong.iter().map(|why| &why[..4]).collect();
    assert_eq!(lines, ["c:1:", "c:2:", "c:4:"]);
    let config = AxioConfig::read("c", "inflight : x\nduration : 0\nidle : run").unwrap();
    let wrong = workload(&config, AxioRole::Loopback).unwrap_err();
    for line in ["c:1: inflight", "c:2: duration", "c:3: idle"] {
        assert!(wrong.iter().any(|why| why.starts_with(line)), "{wrong:?}");
    }
}

#[test]
fn no_beginning_of_a_configuration_is_more_than_refused() {
    for at in 0..LINES.len() {
        if let Ok(config) = AxioConfig::read("c", &LINES[..at]) {
            let _ = workload(&config, AxioRole::Loopback);
        }
    }
}

#[test]
fn every_key_that_works_has_a_place_in_the_help_of_the_book() {
    let book = include_str!("../../../../docs/book/src/data-path.md");
    for key in KEYS {
        assert!(book.contains(&format!("`{}`", key.name)), "{}", key.name);
    }
}

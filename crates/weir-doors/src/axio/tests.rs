//! Tests that configurations are read, and that errors name their lines.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use weir_diagnose::{RecordedPath, StageTables};
use weir_schema::{
    MessageHandler, PacketPathOutcome, PathIteration, PathSide, PathStage, PathThread, StageFigures,
};
use weir_units::Nanos;

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
    let line = "workload : 16 : TxNIC, Rx, Tx : 0 : 3-1 : a\n";
    let wrong = AxioConfig::read("c", line).unwrap_err();
    assert_eq!(wrong.len(), 5, "{wrong:?}");
    let config = AxioConfig::read("c", "inflight : x\nduration : 0\nidle : run").unwrap();
    let wrong = workload(&config, AxioRole::Loopback).unwrap_err();
    for line in ["c:1: inflight", "c:2: duration", "c:3: idle"] {
        assert!(wrong.iter().any(|why| why.starts_with(line)), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn a_configuration_reads_back_from_its_lines(
        values in btree_map(0..KEYS.len(), "[!-\"$-~]{1,6}( [!-\"$-~]{1,6})?", 0..8),
        (id, phases) in (0..16_u8, prop::sample::subsequence(PHASES.to_vec(), 1..=6)),
        (remote, apps, dispatchers) in (ids(), vec(ids(), 1..4), vec(ids(), 1..4)),
    ) {
        let joined = |all: &[u8]| all.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        let groups = |all: &[Vec<u8>]| all.iter().map(|one| joined(one)).collect::<Vec<_>>().join("|");
        let mut config = AxioConfig::default();
        for (at, text) in &values {
            // A value that is refused is not there to be written.
            let _ = config.set(&format!("{}={text}", KEYS[*at].name));
        }
        let line = format!(
            "{id} : {} : {} : {} : {}",
            phases.join(","), joined(&remote), groups(&apps), groups(&dispatchers)
        );
        config.set(&format!("workload={line}")).unwrap();
        let lines = config.lines();
        prop_assert!(lines.ends_with(&format!("workload : {line}\n")), "{}", lines);
        prop_assert_eq!(AxioConfig::read("c", &lines).unwrap().lines(), lines);
    }
}

fn ids() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::subsequence((0..16).collect::<Vec<u8>>(), 1..4).prop_shuffle()
}

/// Words of phases.
const PHASES: [&str; 6] = [
    "TxApplication",
    "TxDispatcher",
    "TxNIC",
    "RXNIC",
    "RXDispatcher",
    "RxApplication",
];

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

/// Values that each key refuses, with the message after the place: values of the wrong kind, beyond a range,
/// or none.
const REFUSED: &[(&str, &str, &str)] = &[
    ("kAppCoreNum", "17", "App core number is too large: 17"),
    ("kAppCoreNum", "0", "`0` (valid: 1 to 16)"),
    (
        "kDispQueueNum",
        "17",
        "Dispatcher queue number is too large: 17",
    ),
    (
        "kAppTxMsgBatchSize",
        "513",
        "App TX batch size is too large: 513",
    ),
    (
        "kAppRxMsgBatchSize",
        "513",
        "App RX batch size is too large: 513",
    ),
    (
        "kDispTxBatchSize",
        "513",
        "Dispatcher TX batch size is too large: 513",
    ),
    (
        "kDispRxBatchSize",
        "513",
        "Dispatcher RX batch size is too large: 513",
    ),
    (
        "kNICTxPostSize",
        "513",
        "NIC TX post size is too large: 513",
    ),
    (
        "kNICRxPostSize",
        "513",
        "NIC RX post size is too large: 513",
    ),
    ("kNICRxPostSize", "0", "`0` (valid: 1 to 512)"),
    ("numa", "first", "`first` (valid: a node, or auto)"),
    ("phy_port", "2", "`2` (valid: 0 or 1)"),
    ("iteration", "0", "`0` (valid: 1 to 1000000)"),
    ("iteration", "1000001", "`1000001`"),
    ("duration", "0", "`0` (valid: seconds, 0.001 to 1000000)"),
    (
        "duration",
        "1e9",
        "`1e9` (valid: seconds, 0.001 to 1000000)",
    ),
    (
        "ticks_per_msg",
        "4294967296",
        "`4294967296` (valid: ticks, 0 to 4294967295)",
    ),
    ("local_ip", "10.0.0", "`10.0.0` (valid: an IPv4 address)"),
    ("remote_ip", "10.0.0.256", "`10.0.0.256`"),
    ("local_mac", "02.00", "`02.00` (valid: six bytes)"),
    ("remote_mac", "02.00.00.00.00.0g", "`02.00.00.00.00.0g`"),
    ("backend", "roce", "`roce` (valid: ring, shm:PATH"),
    ("msg_handler", "t_app", "`t_app` (valid: Empty, T_APP"),
    ("pkt_handler", "echo", "`echo` (valid: Empty, Echo)"),
    ("req_size", "15", "`15` (valid: bytes, 16 to 64m"),
    ("resp_size", "65m", "`65m` (valid: bytes, 16 to 64m"),
    (
        "resp_size_rule",
        "longer",
        "`longer` (valid: same or reference)",
    ),
    ("scan", "yes", "`yes` (valid: 0 or 1)"),
    ("new_buffers", "2", "`2` (valid: 0 or 1)"),
    (
        "ticks_per_msg",
        "-1",
        "`-1` (valid: ticks, 0 to 4294967295)",
    ),
    (
        "work_ns",
        "-1",
        "`-1` (valid: nanoseconds, 0 to 1000000000000000)",
    ),
    ("inflight", "65536", "`65536` (valid: 0 to 65535)"),
    ("rate", "0", "`0` (valid: messages per second"),
    ("mtu", "63", "`63` (valid: 64 to 2048)"),
    ("mtu", "2049", "`2049` (valid: 64 to 2048)"),
    ("pool", "63", "`63` (valid: 64 to 1048576)"),
    ("ring", "1048577", "`1048577` (valid: 64 to 1048576)"),
    ("nic_ring", "0", "`0` (valid: 64 to 1048576)"),
    (
        "flush_us",
        "x",
        "`x` (valid: microseconds, 0 to 1000000000000)",
    ),
    (
        "msg_timeout_ms",
        "0",
        "`0` (valid: milliseconds, 1 to 1000000000)",
    ),
    (
        "stall_timeout",
        "0",
        "`0` (valid: seconds, 0.001 to 1000000)",
    ),
    ("loop_interval_ns", "soon", "`soon` (valid: nanoseconds"),
    ("idle", "run", "`run` (valid: auto, spin"),
    ("stage_timing", "1/0", "`1/0` (valid: all, off, 1/N)"),
    ("mem_region", "4095", "`4095` (valid: bytes, 4k to 4g)"),
    ("mem_touch", "7", "`7` (valid: bytes, 8 to 4g)"),
    ("hugepages", "4M", "`4M` (valid: auto, 2M, 1G, off)"),
    ("udp_port_base", "65001", "`65001` (valid: 1 to 65000)"),
    ("mgmt_port", "65536", "`65536` (valid: 1 to 65535, 0: none)"),
    ("first_packets", "1025", "`1025` (valid: 0 to 1024)"),
    ("gid_index", "256", "`256` (valid: 0 to 255, or auto)"),
    ("line_rate", "0", "`0` (valid: bits per second, 1k to 1000T"),
    ("messages", "0", "`0` (valid: "),
    ("imix", "xyz", "`xyz` (valid: simple, or letters"),
];

/// Keys whose value is any text, or that are refused themselves.
const OF_ANY_VALUE: [&str; 3] = ["role", "device_pcie", "device_name"];

#[test]
fn every_key_refuses_what_it_does_not_take_with_its_line_and_what_it_takes() {
    let base = "workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";
    for (key, value, why) in REFUSED {
        let config = AxioConfig::read("c", &format!("{base}{key} : {value}\n")).unwrap();
        let wrong = workload(&config, AxioRole::Loopback).unwrap_err();
        let begin = format!("c:2: {key}: {why}");
        assert!(
            wrong.iter().any(|line| line.starts_with(&begin)),
            "{begin}: {wrong:?}"
        );
    }
    for key in KEYS {
        let is_tested = REFUSED.iter().any(|(name, ..)| *name == key.name);
        assert!(
            is_tested || OF_ANY_VALUE.contains(&key.name),
            "{}",
            key.name
        );
    }
}

#[test]
fn batches_for_which_a_pool_has_too_few_buffers_are_refused_by_both_sides_sizes() {
    let base = "workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";
    for (key, size) in [
        ("kAppTxMsgBatchSize", "req_size"),
        ("kAppRxMsgBatchSize", "resp_size"),
    ] {
        let text = format!("{base}{size} : 2m\n{key} : 8\n");
        let config = AxioConfig::read("c", &text).unwrap();
        let wrong = workload(&config, AxioRole::Loopback)
            .unwrap_err()
            .join("\n");
        let why =
            format!("c:3: {key}: Mempool size is too small: 8 messages of 1039 packets need 8312");
        assert!(wrong.contains(&why), "{wrong}");
    }
}

#[test]
fn a_printed_table_is_read_as_the_figures_of_the_result() {
    let stage = |busy, stall| StageFigures {
        packets: 8_000_000,
        timed_packets: 8_000_000,
        polls: 1_000_000,
        empty_polls: 500_000,
        busy_ns: Nanos(busy),
        stall_ns: Nanos(stall),
        ..StageFigures::default()
    };
    let thread = |side| PathThread {
        side,
        is_application: true,
        is_dispatcher: true,
        span_ns: Nanos(1_000_000_000),
        timed_ns: Nanos(1_000_000_000),
        timed_passes: 1_000_000,
        application_tx: stage(80_000_000, 0),
        application_rx: stage(160_000_000, 0),
        dispatch_tx: stage(100_000_000, 60_000_000),
        dispatch_rx: stage(240_000_000, 200_000_000),
        link_tx: stage(60_000_000, 0),
        pool_use: Some(4096.0),
        ..PathThread::default()
    };
    let work = PacketPathWorkload::default();
    let threads = [PathSide::Client, PathSide::Server].map(thread).to_vec();
    let done = PacketPathOutcome {
        iterations: vec![PathIteration { threads }],
        ..PacketPathOutcome::default()
    };
    let printed = output::table(&done.iterations[0], &work, false);
    let pairs = |path: &StageTables| {
        let table = &path.tables[0];
        let stages = table.stages.iter();
        let cells = stages.flat_map(|row| {
            [&row.throughput_mpps, &row.average_us, &row.stall_us].map(|cell| cell.value)
        });
        let more = [table.throughput_mpps.value, table.pool_use.value];
        cells.chain(more).collect::<Vec<_>>()
    };
    let read = pairs(&StageTables::of_log(&printed).unwrap());
    let own = pairs(&RecordedPath::of(&work, &done).unwrap().local);
    // No packets waited in the link, which the table prints as `n/a`.
    let link_rx = 3 * PathStage::LinkRx.row_place() + 1;
    for (at, (read, own)) in read.into_iter().zip(own).enumerate() {
        match (read, own) {
            (Some(read), Some(own)) => assert!((read - own).abs() <= 0.0005, "{at}"),
            (read, own) => assert!(read == own || at == link_rx, "{at}: {read:?} {own:?}"),
        }
    }
}

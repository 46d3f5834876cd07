//! Comparison of two configurations: values of one that do not work with the other, as `--peer` reports them.
//!
//! In: the configurations of both sides. Out: a line for each difference, those apart that two runs find too when
//! they meet (`weir-datapath`), and end; this needs neither.

use weir_schema::{PacketPathWorkload, PathSide};

use super::config::AxioConfig;
use super::plan;
use super::role::AxioRole;

/// Differences between two configurations that are to work together.
#[derive(Debug, Default)]
pub(super) struct PeerDifferences {
    /// Differences with which two runs end before the first packet.
    pub(super) refused: Vec<String>,
    /// Differences with which two runs work, but not as meant.
    pub(super) warnings: Vec<String>,
}

/// Compares the configurations of two sides.
///
/// # Errors
/// All that is wrong with the other configuration.
pub(super) fn differences(
    mine: &AxioConfig,
    theirs: &AxioConfig,
    file: &str,
) -> Result<PeerDifferences, Vec<String>> {
    let is_server = mine.text("role") == Some("server") || theirs.text("role") == Some("client");
    let (own, other) = if is_server {
        (PathSide::Server, PathSide::Client)
    } else {
        (PathSide::Client, PathSide::Server)
    };
    let read = |config: &AxioConfig, side| plan::workload(config, AxioRole::Alone(side));
    let theirs_read = read(theirs, other)?;
    let mine_read = match read(mine, own) {
        Ok(mine) => mine,
        Err(refused) => {
            return Ok(PeerDifferences {
                refused,
                ..PeerDifferences::default()
            });
        }
    };
    let (a, b) = (&mine_read.work, &theirs_read.work);
    let mut all = numbers(a, b, file);
    if mine_read.engine.name != theirs_read.engine.name {
        all.push(format!(
            "backend is {} here and {} in {file}",
            mine_read.engine.name, theirs_read.engine.name
        ));
    }
    // Places in the memory are counted by the slots of each queue.
    if a.queue_slots != b.queue_slots
        && [&mine_read, &theirs_read]
            .iter()
            .all(|one| one.engine.name == "shm")
    {
        let (here, there) = (a.queue_slots, b.queue_slots);
        all.push(format!("nic_ring is {here} here and {there} in {file}"));
    }
    all.extend(streams(a, b, file, "here"));
    all.extend(streams(b, a, "here", file));
    all.extend(addresses(mine, theirs, file));
    let (client, server) = if is_server { (b, a) } else { (a, b) };
    let (window, batch) = (client.in_flight, server.batches.application_rx);
    let stops = window > 0 && client.messages_per_s == 0 && batch > window;
    let stops = stops.then(|| {
        format!(
            "inflight {window} (client) is smaller than kAppRxMsgBatchSize {batch} (server): the pipeline \
             would stop"
        )
    });
    Ok(PeerDifferences {
        refused: all,
        warnings: stops.into_iter().collect(),
    })
}

/// Compares the keys whose values have to be the same on both sides.
fn numbers(a: &PacketPathWorkload, b: &PacketPathWorkload, file: &str) -> Vec<String> {
    type Number = (&'static str, fn(&PacketPathWorkload) -> String);
    const NUMBERS: [Number; 9] = [
        ("req_size", |work| work.request_bytes.0.to_string()),
        ("resp_size", |work| work.whole_response().0.to_string()),
        ("mtu", |work| work.packet_bytes.to_string()),
        ("udp_port_base", |work| work.first_port.to_string()),
        ("mgmt_port", |work| work.management_port.to_string()),
        ("iteration", |work| work.iterations.to_string()),
        ("duration", |work| work.duration_ns.to_string()),
        ("rate", |work| work.messages_per_s.to_string()),
        ("pkt_handler", |work| format!("{:?}", work.packet_handler)),
    ];
    let other = NUMBERS.iter().filter(|(_, of)| of(a) != of(b));
    let line = |(key, of): &Number| format!("{key} is {} here and {} in {file}", of(a), of(b));
    other.map(line).collect()
}

/// Streams of one side that the other has not, and dispatchers that are sent to and are not there.
fn streams(a: &PacketPathWorkload, b: &PacketPathWorkload, there: &str, here: &str) -> Vec<String> {
    let mut all = Vec::new();
    let dispatchers = b.dispatchers();
    for stream in &a.streams {
        let id = stream.id;
        if !b.streams.iter().any(|other| other.id == id) {
            all.push(format!("workload {id} of {here} is not in {there}"));
        }
        let absent = stream
            .peers
            .iter()
            .filter(|peer| !dispatchers.contains(peer));
        all.extend(absent.map(|peer| {
            format!("workload {id} of {here} sends to {peer}, which is no dispatcher of {there}")
        }));
    }
    all
}

/// Compares each side's addresses with those that the other side states.
fn addresses(mine: &AxioConfig, theirs: &AxioConfig, file: &str) -> Vec<String> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('.', ":");
    let mut all = Vec::new();
    for (own, other) in [
        ("local_ip", "remote_ip"),
        ("remote_ip", "local_ip"),
        ("local_mac", "remote_mac"),
        ("remote_mac", "local_mac"),
    ] {
        if let (Some(a), Some(b)) = (mine.text(own), theirs.text(other))
            && plain(a) != plain(b)
        {
            all.push(format!("{own} is {a} here, and {other} {b} in {file}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> AxioConfig {
        AxioConfig::read("c", text).unwrap()
    }

    fn refused(mine: &AxioConfig, theirs: &AxioConfig) -> String {
        let found = differences(mine, theirs, "s").unwrap();
        assert_eq!(found.warnings, [""; 0]);
        found.refused.join("\n")
    }

    fn warned(mine: &AxioConfig, theirs: &AxioConfig) -> String {
        let found = differences(mine, theirs, "s").unwrap();
        assert_eq!(found.refused, [""; 0]);
        found.warnings.join("\n")
    }

    const CLIENT: &str = "role : client\nbackend : udp\nlocal_ip : 10.0.0.1\nremote_ip : 10.0.0.2\n\
        local_mac : 02.00.00.00.00.01\n\
        workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";

    #[test]
    fn sides_that_fit_have_no_differences_and_others_are_told_by_their_keys() {
        let server = "role : server\nbackend : udp\nlocal_ip : 10.0.0.2\nremote_ip : 10.0.0.1\n\
            remote_mac : 02:00:00:00:00:01\n\
            workload : 1 : TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";
        let said = |more: &str| {
            let mut other = config(server);
            for word in more.split_whitespace() {
                other.set(word).unwrap();
            }
            refused(&config(CLIENT), &other)
        };
        assert_eq!(said(""), "");
        for (change, why) in [
            ("req_size=100", "req_size is 982 here and 100 in s"),
            ("duration=2", "duration is 1.00 s here and 2.00 s in s"),
            ("pkt_handler=Echo", "pkt_handler is None here and Echo in s"),
            ("backend=ring", "backend is udp here and ring in s"),
            (
                "local_ip=10.0.0.3",
                "remote_ip is 10.0.0.2 here, and local_ip 10.0.0.3 in s",
            ),
            (
                "remote_mac=1:2:3:4:5:6",
                "local_mac is 02.00.00.00.00.01 here, and remote_mac 1:2:3:4:5:6 in s",
            ),
            ("kAppRxMsgBatchSize=512", ""),
            // Over shared memory alone both have to have as many.
            ("nic_ring=128", ""),
            (
                "workload=2:TxDispatcher,RXDispatcher,RxApplication:7:1:1",
                "workload 2 of s is not in here",
            ),
            (
                "workload=1:TxDispatcher,RXDispatcher,RxApplication:0:3:3",
                "workload 1 of here sends to 0, which is no dispatcher of s",
            ),
        ] {
            let said = said(change);
            assert!(said.contains(why), "{change}: {said}");
            assert_eq!(said.is_empty(), why.is_empty(), "{change}: {said}");
        }
        let shared = |more: &str| {
            let mut all = [config(CLIENT), config(server)];
            for one in &mut all {
                one.set("backend=shm:weir").unwrap();
            }
            all[1].set(more).unwrap();
            refused(&all[0], &all[1])
        };
        assert_eq!(shared("nic_ring=2048"), "");
        assert_eq!(shared("nic_ring=128"), "nic_ring is 2048 here and 128 in s");
        let mut small = config(CLIENT);
        small.set("inflight=16").unwrap();
        let said = warned(&small, &config(server));
        assert!(
            said.contains("inflight 16 (client) is smaller than kAppRxMsgBatchSize 32 (server)")
        );
        // The other way round the same is found.
        let said = warned(&config(server), &small);
        assert!(said.contains("inflight 16 (client)"), "{said}");
        let wrong = differences(&small, &config("# nothing"), "s").unwrap_err();
        assert!(wrong.join("\n").contains("there is no workload line"));
    }
}

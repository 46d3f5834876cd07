//! Lengths of frames on a wire, as somebody else sees them there.

use crate::stage::{Said, Stage, has, is_root, peer, said, skip};

/// A wire between two networks; the server's end is listened at while a client sends.
const NETWORK: &str = r#"
axio=$1
shift
ip link set lo up
unshare --net sleep 300 &
other=$!
trap 'kill $other' EXIT
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
there="nsenter --net=/proc/$other/ns/net"
ip link add weirA mtu 2048 type veth peer name weirB mtu 2048 netns $other
$there ip link set lo up
$there ip addr add 10.77.0.2/24 dev weirB
$there ip link set weirB up
ip addr add 10.77.0.1/24 dev weirA
ip link set weirA up
$there python3 listen.py >lengths &
listener=$!
while [ ! -s lengths ]; do sleep 0.01; done
$there "$axio" --server --open-to-anyone -c c.conf --set backend=packet:weirB --set local_ip=10.77.0.2 \
    --set remote_ip=10.77.0.1 "$@" >server 2>&1 &
server=$!
code=0
"$axio" --client -c c.conf --set backend=packet:weirA --set local_ip=10.77.0.1 \
    --set remote_ip=10.77.0.2 "$@" || code=$?
wait $server || code=8
kill $listener
wait $listener || true
exit $code
"#;

/// Prints each length of a frame to the server's port once.
const LISTENER: &str = "\
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(('weirB', 0))
print('ready', flush=True)
seen = set()
while True:
    frame, address = s.recvfrom(4096)
    if address[2] == 4 or frame[12:14] != b'\\x08\\x00' or frame[23] != 17 or frame[36:38] != b'\\x27\\x1a':
        continue
    if len(frame) not in seen:
        seen.add(len(frame))
        print(len(frame), flush=True)
";

const CONFIG: &str = "\
msg_handler : T_APP
kAppCoreNum : 1
kDispQueueNum : 1
workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0
inflight : 8
kAppTxMsgBatchSize : 1
kAppRxMsgBatchSize : 1
kDispTxBatchSize : 1
iteration : 1
duration : 0.1
msg_timeout_ms : 20000
stall_timeout : 30
";

/// Output of the client, and the lengths of its frames in ascending order.
fn lengths(sets: &[&str]) -> Option<(Said, Vec<u32>)> {
    let missing = ["unshare", "nsenter", "ip", "python3"]
        .into_iter()
        .find(|name| !has(name));
    if !is_root() || missing.is_some() {
        let what = missing.unwrap_or("root");
        skip("lengths of frames on a wire", &format!("no {what}"));
        return None;
    }
    let stage = Stage::new();
    stage.file("c.conf", CONFIG);
    stage.file("listen.py", LISTENER);
    let mut command = stage.command("unshare");
    command.args(["--net", "sh", "-ec", NETWORK, "sh", peer("axio")]);
    for set in sets {
        command.args(["--set", set]);
    }
    let said = said(command);
    let text = stage.read("lengths");
    let mut all: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    all.sort_unstable();
    Some((said, all))
}

#[test]
fn requests_are_as_long_on_the_wire_as_those_of_the_older_program() {
    for (request, frame) in [
        (22, 64),
        (86, 128),
        (214, 256),
        (470, 512),
        (982, 1024),
        (1458, 1500),
    ] {
        let set = format!("req_size={request}");
        let Some((said, all)) = lengths(&[&set]) else {
            return;
        };
        said.code(0);
        assert_eq!(all, [frame], "{request}");
    }
    let long = ["msg_handler=FS_WRITE", "req_size=16384"];
    let Some((said, all)) = lengths(&long) else {
        return;
    };
    said.code(0);
    assert_eq!(all, [266, 2062]);
}

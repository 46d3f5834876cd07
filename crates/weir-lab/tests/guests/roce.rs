//! `weir axio` over RoCE: `rdma_rxe` in guests, the two sides on one device, and on two devices at the ends of a wire.
//!
//! In: a kernel with every driver, weir's release build. Out: each case by name. Cases wait for what the kernel counts,
//! never for time.
#![allow(clippy::panic, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use weir_lab::{CaseBatch, CaseRun, Kernel, Lab, LabRun, Missing, Pin, Places, or_skip, skip};

use crate::shared::{Guest, case};

/// Words and functions of the cases.
const COMMON: &str = r#"
export WEIR_HISTORY=off
SETS="--set msg_timeout_ms=20000 --set stall_timeout=30 --set duration=0.2 --set iteration=1"
HERE="--set local_ip=127.0.0.1 --set remote_ip=127.0.0.2"
THERE="--set local_ip=127.0.0.2 --set remote_ip=127.0.0.1"
COUNTERS=/sys/class/infiniband/rxe0/ports/1/hw_counters

# NAME WORDS...: both sides in one process; what was measured goes to /out.
both() {
	name=$1
	shift
	lab_check weir axio --loopback --example scan $SETS --store-result "/out/$name.json" "$@"
}

# ROLE WORDS...: starts a side of two programs, whose process is $!; what it says goes to /tmp/ROLE.
start() {
	role=$1
	shift
	if [ "$role" = server ]; then at=$HERE; else at=$THERE; fi
	weir axio "--$role" --example scan $SETS $at "$@" >"/tmp/$role" 2>&1 &
}

# NUMBER: messages are on their way.
until_sent() {
	before=$(cat $COUNTERS/sent_pkts)
	while [ "$(cat $COUNTERS/sent_pkts)" -lt $((before + $1)) ]; do
		kill -0 "$!" || lab_fail "it ended before it sent"
	done
}

# WORDS FILE, whose lines may be broken anywhere
says() {
	tr '\n' ' ' <"$2" | tr -s ' ' | grep -q "$1" || lab_fail "no '$1' in: $(cat "$2")"
}
"#;

const FABRIC_PROGRAM: &str = "/usr/bin/fi_info";

/// Messages of 100 KiB, more packets than a window may have lie in a ring.
const LARGE: &str = "--set msg_handler=FS_READ --set resp_size=102400 --set inflight=16 --set kDispTxBatchSize=8 --set kAppTxMsgBatchSize=8 --set kAppRxMsgBatchSize=8";

/// Misses weir's release build, which the guest gets, where there is none.
pub(crate) fn has_weir(places: &Places) -> Result<()> {
    let built = places.root.join("target/release/weir");
    ensure!(
        std::env::var_os("WEIR_LAB_WEIR").is_some() || built.is_file(),
        Missing {
            what: "no release build of weir for the guest".to_owned(),
            remedy: "cargo build --release -p weir".to_owned(),
        }
    );
    Ok(())
}

fn lab() -> Result<Lab> {
    let places = Places::find()?;
    let lab = Lab::with_kernel(Some(&Kernel::full(&places)?.image))?;
    has_weir(&places)?;
    let lab = lab.timeout(Duration::from_secs(600));
    // A program brings its libraries: libfabric, which weir opens.
    let with_fabric = Path::new(FABRIC_PROGRAM).exists();
    Ok(if with_fabric {
        lab.file(FABRIC_PROGRAM, "lab/fi_info")
    } else {
        lab
    })
}

/// A script with the words and functions of all.
fn with(script: &str) -> String {
    format!("{COMMON}\n{script}")
}

/// Cases whose two sides have one device.
fn cases() -> CaseBatch {
    let batch = CaseBatch::default()
        .case(
            "listed",
            &with("weir axio --backend list >/tmp/list; cat /tmp/list; grep -A1 ^verbs /tmp/list | grep -q ' available$'"),
        )
        .case("ud", &with("both ud --backend verbs:ud:rxe0"))
        .case("rc", &with("both rc --backend verbs:rc:rxe0"))
        .case(
            "ud-large",
            &with(&format!(
                r#"weir axio --loopback --example scan $SETS {LARGE} --backend verbs:ud:rxe0 >/tmp/refused 2>&1
[ $? -eq 2 ] || lab_fail "status $?"
says "takes 1024 as a message of UD" /tmp/refused
both ud-large --backend verbs:ud:rxe0 {LARGE} --set mtu=1010"#
            )),
        )
        .case("rc-large", &with(&format!("both rc-large --backend verbs:rc:rxe0 {LARGE}")))
        .case(
            "two-programs",
            &with(
                r#"for kind in ud rc; do
	start server --backend verbs:$kind:rxe0
	server=$!
	start client --backend verbs:$kind:rxe0 --store-result /out/two-$kind.json
	wait $! || lab_fail "$(cat /tmp/client /tmp/server)"
	wait $server || lab_fail "$(cat /tmp/server)"
done
start server --backend verbs:ud:rxe0
server=$!
start client --backend verbs:rc:rxe0
wait $! && lab_fail "two kinds go together"
says "its link is verbs:ud, that here verbs:rc" /tmp/client
wait $server && lab_fail "the server goes together"; true"#,
            ),
        )
        .case(
            "four-dispatchers",
            &with(
                r#"for kind in ud rc; do
	{ echo "role : loopback"
	  echo "kAppCoreNum : 2"
	  echo "kDispQueueNum : 2"
	  echo "workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 1 : 0 : 0"
	  echo "workload : 2 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 1 : 1"
	} >/tmp/c.conf
	lab_check weir axio -c /tmp/c.conf $SETS --store-result /out/four-$kind.json --backend verbs:$kind:rxe0
done"#,
            ),
        );
    troubles(batch)
}

/// Those of them in which something is amiss.
fn troubles(batch: CaseBatch) -> CaseBatch {
    let killed = |victim: &str, left: &str| {
        with(&format!(
            r#"start {left} --backend verbs:rc:rxe0 --set duration=60
left=$!
start {victim} --backend verbs:rc:rxe0 --set duration=60
until_sent 100
kill -KILL $!
wait $left
[ $? -eq 1 ] || lab_fail "$(cat /tmp/{left})"
cat /tmp/{left}"#
        ))
    };
    batch
        .case(
            "tuned",
            &with(
                r#"weir axio show --example scan | sed "s/^backend.*/backend : verbs:rc:rxe0/; s/^duration.*/duration : 0.2/" >/tmp/rc.conf
cd /tmp
weir tune -c rc.conf -t 3 >/tmp/tuned 2>&1 || lab_fail "$(cat /tmp/tuned)"
says "packet rate, higher is better: 3 trials of" /tmp/tuned
lab_check weir axio -c rc.conf.out $SETS --store-result /out/tuned.json
weir diagnose /out/tuned.json >/tmp/diagnosed 2>&1 || lab_fail "$(cat /tmp/diagnosed)"
[ "$(grep -c "verdict: C" /tmp/diagnosed)" -eq 2 ] || lab_fail "$(cat /tmp/diagnosed)""#,
            ),
        )
        .case(
            "no-room",
            &with(
                r#"before=$(cat $COUNTERS/send_rnr_err)
both no-room --backend verbs:rc:rxe0 --set nic_ring=64 --inject-pause 50ms
echo "waits for room: $(($(cat $COUNTERS/send_rnr_err) - before))"
[ "$(cat $COUNTERS/send_rnr_err)" -gt "$before" ] || lab_fail "nobody waited for room""#,
            ),
        )
        .case("killed-client", &killed("client", "server"))
        .case("killed-server", &killed("server", "client"))
        .case(
            "rpc",
            &with(
                r#"[ -e /lab/fi_info ] || lab_skip "no fi_info (apt: libfabric-bin)"
export FI_UNIVERSE_SIZE=16
weir selftest --loopback=1 --transport "ofi+verbs;ofi_rxm" -e 0:0 -s 0,b4096 -r 10 >/tmp/rpc 2>&1 || lab_fail "$(cat /tmp/rpc)"
says "ofi+verbs;ofi_rxm, rma" /tmp/rpc
says "rpc failures 0" /tmp/rpc"#,
            ),
        )
        .case(
            "refused",
            &with(
                r#"weir axio --loopback --example scan --backend verbs:rc:mlx5_0 >/tmp/refused 2>&1
[ $? -eq 3 ] || lab_fail "status $?"
says "there is no device mlx5_0 (there is rxe0)" /tmp/refused
weir axio --loopback --example scan --backend verbs:rc:rxe0 --set gid_index=200 >/tmp/refused 2>&1
[ $? -eq 3 ] || lab_fail "status $?"
says "its address 200" /tmp/refused"#,
            ),
        )
}

/// Boots the guest with one device.
pub(crate) fn boot() -> Result<(LabRun, Vec<CaseRun>)> {
    lab()?.dev("rxe").batch(&cases())
}

/// The sum of a figure over all threads of a side.
fn sum(result: &Value, side: &str, path: &str) -> u64 {
    let outcome = &result["groups"][0]["jobs"][0]["outcome"];
    let iterations = outcome["iterations"].as_array().into_iter().flatten();
    let threads = iterations
        .filter_map(|one| one["threads"].as_array())
        .flatten();
    let figure = |thread: &Value| {
        let value = path.split('.').fold(thread, |at, name| &at[name]);
        value.as_u64().unwrap_or_else(|| panic!("{path}: {value}"))
    };
    threads.filter(|one| one["side"] == side).map(figure).sum()
}

/// A stored result in which messages were answered and nothing was lost.
fn whole(result: &Value) -> Result<()> {
    for side in ["client", "server"] {
        for figure in ["lost", "incomplete", "wrong", "strays", "dispatch_drops"] {
            let count = sum(result, side, figure);
            ensure!(count == 0, "{side}: {figure} {count}");
        }
        let packets = sum(result, side, "application_rx.packets");
        ensure!(packets > 0, "{side} has no packets");
    }
    Ok(())
}

macro_rules! cases_of_one_device {
    ($($test:ident: $case:literal => $results:expr,)*) => {
        $(#[test]
        fn $test() -> Result<()> {
            let Some((run, case)) = case(Guest::Roce, $case)? else {
                return Ok(());
            };
            if case.skipped() {
                skip($case, &case.output);
                return Ok(());
            }
            case.good()?;
            let results: &[&str] = $results;
            for name in results {
                whole(&run.json(name)?).with_context(|| format!("{name}: {}", case.output))?;
            }
            Ok(())
        })*
    };
}

cases_of_one_device! {
    where_there_is_a_device_the_list_says_so: "listed" => &[],
    datagrams_between_both_sides_on_one_device_lose_nothing: "ud" => &["ud.json"],
    connections_between_both_sides_on_one_device_lose_nothing: "rc" => &["rc.json"],
    messages_larger_than_the_mtu_are_cut_or_refused_over_datagrams: "ud-large" => &["ud-large.json"],
    messages_larger_than_the_mtu_travel_over_connections: "rc-large" => &["rc-large.json"],
    two_programs_share_a_device_and_two_kinds_do_not_go_together: "two-programs"
        => &["two-ud.json", "two-rc.json"],
    each_dispatcher_reaches_each_of_the_other_side: "four-dispatchers"
        => &["four-ud.json", "four-rc.json"],
    a_path_over_a_device_is_tuned_and_diagnosed: "tuned" => &["tuned.json"],
    who_has_no_room_is_waited_for_and_nothing_is_lost: "no-room" => &["no-room.json"],
    a_client_that_is_killed_ends_its_server: "killed-client" => &[],
    a_server_that_is_killed_ends_its_client: "killed-server" => &[],
    remote_procedures_are_called_over_the_same_device: "rpc" => &[],
    a_device_or_an_address_that_is_not_there_is_named: "refused" => &[],
}

/// Both ends of a wire, each a guest with a script.
fn two_guests(scripts: [&str; 2]) -> Result<[LabRun; 2]> {
    let wire = format!("t{}", std::process::id());
    let boot = |end: usize| -> Result<LabRun> {
        let pin = [Pin::Any, Pin::Beside][end];
        let lab = lab()?
            .pin(pin)
            .dev(&format!("rxe:wire={wire},end={end},mtu=4200"));
        lab.run(&format!("{COMMON}\n{}", scripts[end]))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| boot(1));
        let own = boot(0);
        let other = other
            .join()
            .unwrap_or_else(|_| bail!("the other guest's thread ended"));
        Ok([own?, other?])
    })
}

#[test]
fn a_cable_between_two_guests_loses_nothing_and_one_end_notices_when_the_other_is_gone()
-> Result<()> {
    let test =
        "a_cable_between_two_guests_loses_nothing_and_one_end_notices_when_the_other_is_gone";
    let Some(_) = or_skip(test, lab())? else {
        return Ok(());
    };
    let of = |role: &str, own: u8, other: u8, more: &str| {
        format!(
            "weir axio --{role} --example scan $SETS --set local_ip=10.77.0.{own} --set remote_ip=10.77.0.{other} {more}"
        )
    };
    let server = |kind: &str, more: &str| {
        of(
            "server",
            1,
            2,
            &format!("--open-to-anyone --backend verbs:{kind}:rxe0 {more}"),
        )
    };
    let client = |kind: &str, more: &str| {
        of(
            "client",
            2,
            1,
            &format!("--backend verbs:{kind}:rxe0 {more}"),
        )
    };
    let cut = "--set duration=60";
    // Its guest ends while messages are under way, as a machine does that loses its power.
    let serves = format!(
        "lab_check {}\nlab_check {}\n{} &\nuntil_sent 100\n",
        server("ud", ""),
        server("rc", LARGE),
        server("rc", cut)
    );
    let calls = format!(
        "lab_check {}\nlab_check {}\n{} >/tmp/cut 2>&1\n[ $? -eq 1 ] || lab_fail it ends well\ncat /tmp/cut\n",
        client("ud", "--store-result /out/ud.json"),
        client("rc", &format!("{LARGE} --store-result /out/rc.json")),
        client("rc", cut)
    );
    let [server, client] = two_guests([&serves, &calls])?;
    server.good().context("the server")?;
    client.good().context("the client")?;
    for name in ["ud.json", "rc.json"] {
        whole(&client.json(name)?).context(name)?;
    }
    let said = &client.output;
    ensure!(
        said.contains("is lost") || said.contains("the link failed"),
        "{said}"
    );
    Ok(())
}

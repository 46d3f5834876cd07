//! Packet paths beside what the machine gives packets with nothing around them: probes in C
//! (`bench/datapath`), built here, DPDK's own forwarder, and weir with other settings.
//!
//! weir's side is `weir axio` as users run it, both sides in one process unless a case says otherwise;
//! wires are pairs of interfaces in a network of their own, gone with the run. Each value is packets there
//! and back per second of a run of some tenths of a second. Not here: what a stage is.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::side::{self, text};
use super::{Case, FOLDER, Metric, Target, child, in_turns};
use crate::cmd::{self, Cmd};

/// Length of a run of a probe or of weir, in seconds.
const SECONDS: &str = "0.3";
const RUN: &str = "--set iteration=1 --set duration=0.3 --format json --history off";
/// Packets on their way over a wire: fewer than it has room for.
const OVER_WIRE: u32 = 128;
/// Packets that testpmd begins with on a device that brings them back.
const CIRCULATING: u32 = 32;
/// Two interfaces, the ends of a wire, in a network of their own; then the words.
const WIRE: &str = "\
ip link set lo up
ip link add weirA type veth peer name weirB
ip link set weirA mtu 2048 up
ip link set weirB mtu 2048 up
ip addr add 10.77.0.1/24 dev weirA
ip addr add 10.77.0.2/24 dev weirB
";
/// A server and its client there; what the client prints.
const TWO_PROGRAMS: &str = "\
\"$0\" --server --set local_ip=10.77.0.2 --set remote_ip=10.77.0.1 --set backend=$1:weirB $2 > /dev/null 2>&1 &
\"$0\" --client --set local_ip=10.77.0.1 --set remote_ip=10.77.0.2 --set backend=$1:weirA $2
wait
";

/// A rate, measured once for each call.
type Rate = Box<dyn FnMut() -> Result<f64>>;

pub(super) fn peer() -> Result<String> {
    let compiler = Cmd::new("cc --version").read()?;
    let compiler = compiler.lines().next().unwrap_or_default().to_owned();
    let dpdk = Cmd::new("pkg-config --modversion libdpdk").read()?;
    Ok(format!("{compiler}; DPDK: {dpdk}"))
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("ring-echo", Target::AtLeast(0.7), || echo(""), rings),
        case("ring-answer", Target::None, || loopback("scan", ""), rings),
        case(
            "ring-statistics",
            Target::AtLeast(0.95),
            || echo("--stage-timing all"),
            || echo("--stage-timing off"),
        ),
        case("xdp", Target::AtLeast(0.95), xdp, bare_xdp),
        case(
            "xdp-packet",
            Target::AtLeast(1.2),
            || two_programs("xdp"),
            || two_programs("packet"),
        ),
        case(
            "dpdk-null",
            Target::AtLeast(0.95),
            || dpdk_server("net_null0", 0),
            || testpmd("net_null0", "start"),
        ),
        case(
            "dpdk-ring",
            Target::AtLeast(0.95),
            || dpdk_server("net_ring0", CIRCULATING),
            || testpmd("net_ring0", "start tx_first"),
        ),
        case("dpdk-messages", Target::None, dpdk_rings, || {
            testpmd("net_ring0", "start tx_first")
        }),
        case("tuned", Target::AtLeast(1.0), tuned, start),
    ]
}

/// Two sides, each made ready once and then measured in turns.
fn case(
    name: &str,
    target: Target,
    mine: impl Fn() -> Result<Rate> + 'static,
    peer: impl Fn() -> Result<Rate> + 'static,
) -> Case {
    let of_case = name.to_owned();
    let run = move |rounds| {
        let (mut mine, mut peer) = (mine()?, peer()?);
        let metric = Metric {
            name: "packets there and back",
            unit: "per second",
            target,
        };
        in_turns(
            &of_case,
            &[metric],
            rounds,
            &mut || Ok(vec![mine()?]),
            &mut || Ok(vec![peer()?]),
        )
    };
    Case {
        name: name.to_owned(),
        run: Box::new(run),
    }
}

/// Both sides of `weir axio` over rings; the server's dispatcher sends packets back.
fn echo(more: &str) -> Result<Rate> {
    loopback("echo", more)
}

fn loopback(example: &str, more: &str) -> Result<Rate> {
    let axio = side::named("axio", &text(&side::weir())?)?;
    let words = format!("{axio} --example {example} {RUN} {more}");
    Ok(measured(split(&words), message_rate))
}

/// The probe of rings, with as many packets on their way and the same batches.
fn rings() -> Result<Rate> {
    let program = built("rings")?;
    let (client, server) = cpus();
    let argv = format!("{program} {client} {server} 1024 32 {SECONDS}");
    Ok(measured(split(&argv), number))
}

fn xdp() -> Result<Rate> {
    let axio = side::named("axio", &text(&side::weir())?)?;
    let argv = format!(
        "{axio} --example echo {RUN} --set inflight={OVER_WIRE} \
         --set backend=xdp:weirA,peer=weirB,mode=drv"
    );
    Ok(measured(on_a_wire("\"$0\" \"$@\"", &argv), message_rate))
}

fn bare_xdp() -> Result<Rate> {
    let program = built("xdp")?;
    let (client, server) = cpus();
    let argv = format!("{program} weirA weirB {client} {server} {OVER_WIRE} 32 {SECONDS}");
    Ok(measured(on_a_wire("\"$0\" \"$@\"", &argv), number))
}

/// A server and a client of its own over a wire, each a process.
fn two_programs(link: &str) -> Result<Rate> {
    let axio = side::named("axio", &text(&side::weir())?)?;
    let mut argv = on_a_wire(TWO_PROGRAMS, &format!("{axio} {link}"));
    let settings = format!("--example echo {RUN} --set inflight={OVER_WIRE}");
    // One word for each side, which its shell takes apart.
    argv.push(settings);
    Ok(measured(argv, message_rate))
}

/// Both sides of `weir axio` over rings of DPDK: two threads, messages made, carried and counted.
fn dpdk_rings() -> Result<Rate> {
    let axio = with_dpdk()?;
    let words = format!("{axio} --example echo {RUN} --set backend=dpdk:rings --stage-timing 1/8");
    Ok(measured(split(&words), message_rate))
}

/// A server alone at a port: one thread, whose dispatcher sends back what comes.
fn dpdk_server(device: &str, first: u32) -> Result<Rate> {
    let axio = with_dpdk()?;
    let argv = format!(
        "{axio} --server --example echo {RUN} --set backend=dpdk:{device} --set mgmt_port=0 \
         --set first_packets={first} --stage-timing 1/8"
    );
    Ok(measured(split(&argv), turned_rate))
}

/// The program, with the library by which it reaches DPDK.
fn with_dpdk() -> Result<String> {
    Cmd::new("make -s -C native/dpdk").run()?;
    let library = std::env::current_dir()?.join("native/dpdk/libweir_dpdk.so");
    let axio = side::named("axio", &text(&side::weir())?)?;
    Ok(format!("env WEIR_DPDK={} {axio}", text(&library)?))
}

/// DPDK's forwarder on a port: one core, which exchanges the Ethernet addresses of what comes and sends it.
fn testpmd(device: &str, start: &str) -> Result<Rate> {
    ensure!(
        cmd::find("dpdk-testpmd").is_some(),
        "dpdk-testpmd is missing (apt-get install dpdk-dev)"
    );
    let script = format!(
        "(sleep 0.7; echo {start}; sleep 1; echo stop; sleep 0.2; echo quit) | \
         dpdk-testpmd -l 0,1 --no-huge -m 256 --no-pci --no-telemetry --file-prefix weir-$$ \
         --vdev={device} -- -i --no-mlockall --total-num-mbufs=8192 --forward-mode=macswap"
    );
    let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
    Ok(measured(argv, |said| {
        let mut total = said.lines().filter_map(|line| line.split_once("RX-total:"));
        let packets = total.next_back().context("testpmd counted nothing")?;
        Ok(packets.1.trim().parse()?)
    }))
}

/// The layout and the batches that examples have, an application's workspace and a dispatcher's.
fn start() -> Result<Rate> {
    of_config("start.conf")
}

/// Rate after `weir tune` has searched 60 trials for better settings.
fn tuned() -> Result<Rate> {
    let batches = [
        "kAppTxMsgBatchSize",
        "kAppRxMsgBatchSize",
        "kDispTxBatchSize",
        "kDispRxBatchSize",
        "kNICTxPostSize",
        "kNICRxPostSize",
    ];
    let batches = batches.map(|key| format!("{key} : 32\n")).concat();
    let config = format!(
        "role : loopback\nmsg_handler : L_APP\nkAppCoreNum : 1\nkDispQueueNum : 1\n{batches}\
         iteration : 1\nduration : 0.2\n\
         workload : 0 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 1 : 0 : 1\n"
    );
    let file = format!("{FOLDER}/start.conf");
    std::fs::write(&file, config)?;
    let axio = side::named("axio", &text(&side::weir())?)?;
    Cmd::new(&format!("{axio} tools -c {file} -t 60")).run()?;
    of_config("start.conf.out")
}

fn of_config(name: &str) -> Result<Rate> {
    let axio = side::named("axio", &text(&side::weir())?)?;
    let words = format!("{axio} -c {FOLDER}/{name} {RUN}");
    Ok(measured(split(&words), message_rate))
}

/// CPUs of the client and of the server.
fn cpus() -> (usize, usize) {
    (side::cpu().saturating_sub(1), side::cpu())
}

/// A probe in C.
fn built(name: &str) -> Result<String> {
    let program = format!("{FOLDER}/{name}");
    let source = format!("bench/datapath/{name}.c");
    Cmd::new(&format!("cc -O2 -Wall -pthread -o {program} {source}")).run()?;
    Ok(program)
}

/// A script over a wire, with these words.
fn on_a_wire(script: &str, argv: &str) -> Vec<String> {
    let script = format!("{WIRE}{script}");
    let mut all = ["unshare", "--net", "sh", "-ec", &script]
        .map(str::to_owned)
        .to_vec();
    all.extend(split(argv));
    all
}

fn split(argv: &str) -> Vec<String> {
    argv.split_whitespace().map(str::to_owned).collect()
}

/// A command, and how its rate is read.
fn measured(argv: Vec<String>, rate: fn(&str) -> Result<f64>) -> Rate {
    println!("$ {}", argv.join(" "));
    Box::new(move || rate(&child::run(&argv)?.stdout))
}

fn number(said: &str) -> Result<f64> {
    said.trim()
        .parse()
        .with_context(|| format!("no rate: {said}"))
}

/// Packets that dispatchers turned round, each second.
fn turned_rate(said: &str) -> Result<f64> {
    let result: Value = serde_json::from_str(said).with_context(|| said.to_owned())?;
    let outcome = &result["groups"][0]["jobs"][0]["outcome"];
    let threads = outcome["iterations"][0]["threads"].as_array();
    let rates = threads.into_iter().flatten().filter_map(|one| {
        let packets = one["dispatch_rx"]["packets"].as_f64()?;
        Some(packets / (one["span_ns"].as_f64()? * 1e-9))
    });
    let rate: f64 = rates.sum();
    ensure!(rate > 0.0, "no packet was turned round");
    Ok(rate)
}

/// Messages that were answered, of a run that lost none.
fn message_rate(said: &str) -> Result<f64> {
    let result: Value = serde_json::from_str(said).with_context(|| said.to_owned())?;
    let job = &result["groups"][0]["jobs"][0];
    let iterations = job["outcome"]["iterations"].as_array();
    let threads = iterations.into_iter().flatten().map(|one| &one["threads"]);
    let threads = threads.filter_map(Value::as_array).flatten();
    let lost: u64 = threads.filter_map(|one| one["lost"].as_u64()).sum();
    ensure!(lost == 0, "{lost} messages were lost");
    let mut metrics = job["metrics"].as_array().into_iter().flatten();
    let rate = metrics.find(|metric| metric["name"] == "message rate");
    let rate = rate.and_then(|metric| metric["value"].as_f64());
    rate.context("the result has no rate of messages")
}

//! Which backends there are, what they lack, and memory that two programs share.

use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use super::stage::{Running, Stage, has, peer, said, skip, until};
use super::{SEND, example, stored, sum};

#[test]
fn every_backend_is_listed_with_what_it_needs_and_why_it_is_not_there() {
    let stage = Stage::new();
    let mut command = stage.peer(&["axio", "--backend", "list"]);
    command.env("WEIR_DPDK", "./absent.so");
    command.env("WEIR_VERBS", "./none.so");
    let list = said(command).code(0);
    for words in [
        "ring ",
        "shm:PATH",
        "udp ",
        "packet:INTERFACE",
        "xdp:INTERFACE",
        "dpdk:DEVICE",
        "verbs:ud|rc:DEVICE",
    ] {
        assert_eq!(list.out.matches(words).count(), 1, "{words}: {list}");
    }
    list.out("unavailable: cannot open ./absent.so")
        .out("make -C native/dpdk")
        .out("unavailable: cannot open ./none.so")
        .out("libibverbs1 and ibverbs-providers");
}

#[test]
fn without_rights_the_list_says_which_are_missing_and_a_run_is_refused() {
    let stage = Stage::new();
    let nobody = |words: &[&str]| {
        let mut command = stage.command("unshare");
        command.args(["--user", peer("axio")]).args(words);
        said(command)
    };
    if !has("unshare") || nobody(&["--backend", "list"]).code != Some(0) {
        return skip("backends of a user without rights", "no user namespaces");
    }
    let list = nobody(&["--backend", "list"]).code(0);
    assert_eq!(
        list.out
            .matches("unavailable: it needs CAP_NET_RAW")
            .count(),
        2,
        "{list}"
    );
    nobody(&[
        "--example",
        "scan",
        "--server",
        "--open-to-anyone",
        "--backend",
        "packet:lo",
    ])
    .code(3)
    .err("CAP_NET_RAW");
    nobody(&["--example", "scan", "--backend", "xdp:lo,peer=weirB"]).code(3);
}

#[test]
fn a_link_that_this_machine_has_not_is_missing_and_never_another() {
    let stage = Stage::new();
    stage.file("c.conf", SEND);
    let refused = |words: &[&str]| {
        let all = ["axio", "-c", "c.conf", "--server", "--open-to-anyone"];
        let all = [&all, words].concat();
        stage.peer_says(&all)
    };
    // Its card, or the library by which there would be one.
    refused(&["--backend", "verbs:rc:absent_0"]).code(3);
    refused(&["--set", "device_name=absent_0"]).code(3);
    refused(&["--backend", "verbs:rc:absent_0", "--set", "mgmt_port=0"])
        .code(2)
        .err("`management_port` is not 0");
    refused(&["--backend", "udp", "--set", "gid_index=3"])
        .code(2)
        .err("the link has no setting `gid_index`");
    let mut command = stage.peer(&["axio", "-c", "c.conf", "--loopback"]);
    command
        .args(["--backend", "verbs:ud:mlx5_0"])
        .env("WEIR_VERBS", "./none.so");
    said(command).code(3).err("cannot open ./none.so");
    refused(&[])
        .code(2)
        .err("backend: it is missing: a side alone has no ring (valid: ring, shm:PATH, udp");
    let mut command = stage.peer(&["axio", "-c", "c.conf", "--server"]);
    command.args(["--set", "device_pcie=0000.98.00.0", "--set", "nic_ring=64"]);
    command.env("WEIR_DPDK", "./absent.so");
    command.args([
        "--set",
        "remote_ip=127.0.0.1",
        "--set",
        "local_ip=127.0.0.1",
    ]);
    // It is known before the other side is waited for.
    said(command).code(3).err("./absent.so");
}

/// A side over shared memory, for a test of this number.
fn side(stage: &Stage, role: &str, test: u32, sets: &[&str]) -> Command {
    let mut command = stage.peer(&["axio", "--example", "scan", role, "--backend", "shm:link"]);
    let own = std::process::id() % 10_000;
    let port = format!("mgmt_port={}", 20_000 + own * 4 + test);
    let patient = [
        "msg_timeout_ms=20000",
        "stall_timeout=30",
        "duration=0.3",
        port.as_str(),
    ];
    for set in patient.iter().chain(sets) {
        command.args(["--set", set]);
    }
    command
}

#[test]
fn two_programs_share_memory_and_the_client_may_be_first() {
    let stage = Stage::new();
    let sets = [
        "msg_handler=FS_READ",
        "resp_size=102400",
        "inflight=64",
        "kAppRxMsgBatchSize=8",
    ];
    let mut client = side(&stage, "--client", 0, &sets);
    client.args(["--both", "--store-result", "r.json"]);
    let client = Running::start(client);
    until("it catches signals", || client.catches_signals());
    let server = Running::start(side(&stage, "--server", 0, &sets));
    let client = client.end().code(0);
    server.end().code(0);
    let outcome = stored(&stage);
    let both = |path: &str| sum(&outcome, "client", path) + sum(&outcome, "server", path);
    for none in [
        "lost",
        "incomplete",
        "wrong",
        "strays",
        "misrouted",
        "dispatch_drops",
    ] {
        assert_eq!(both(none), 0, "{none}: {client}");
    }
    let packets = sum(&outcome, "client", "application_rx.packets");
    assert!(packets > 0 && packets.is_multiple_of(51), "{client}");
    assert_eq!(outcome["buffers_in_use"], 0, "{client}");
    assert!(
        !stage.list().contains(&"link".to_owned()),
        "{:?}",
        stage.list()
    );
}

#[test]
fn queues_of_two_lengths_in_the_memory_are_refused_by_both() {
    let stage = Stage::new();
    let server = Running::start(side(&stage, "--server", 3, &["nic_ring=4096"]));
    said(side(&stage, "--client", 3, &["nic_ring=64"]))
        .code(2)
        .err("`nic_ring` is 4096 there and 64 here");
    server
        .end()
        .code(2)
        .err("`nic_ring` is 64 there and 4096 here");
}

#[test]
fn a_server_hears_what_its_client_lacks_after_they_have_met() {
    let stage = Stage::new();
    let server = Running::start(side(&stage, "--server", 2, &[]));
    let mut stranger = None;
    until("the server offers its memory", || {
        stranger = UnixStream::connect(stage.path("link")).ok();
        stranger.is_some()
    });
    // The first that comes to the path has the memory; nothing is left for the client.
    said(side(&stage, "--client", 2, &[]))
        .code(3)
        .err("cannot share memory at link");
    server
        .end()
        .code(1)
        .err(" cannot run: cannot share memory at link");
    drop(stranger);
}

#[test]
fn shared_memory_that_cannot_be_had_is_refused_by_its_path() {
    let stage = Stage::new();
    stage.file("link", "a file");
    said(side(&stage, "--server", 1, &[]))
        .code(3)
        .err("cannot share memory at link: there is a file that is no socket");
    said(side(&stage, "--loopback", 1, &[]))
        .code(2)
        .err("the link `shm` is between two processes");
    said(side(&stage, "--server", 1, &["nic_ring=1000"]))
        .code(2)
        .err("a power of two");
}

#[test]
fn pools_are_made_of_the_pages_that_are_asked_for_or_of_none() {
    let stage = Stage::new();
    example(&stage, "scan", "duration=0.1 hugepages=off")
        .code(0)
        .out("\npages of pools: 4 KiB\n");
    example(&stage, "scan", "duration=0.1")
        .code(0)
        .out("\npages of pools: ");
    let free = |size: &str| {
        let path = format!("/sys/kernel/mm/hugepages/hugepages-{size}kB/free_hugepages");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0)
    };
    for (pages, size, needed, remedy) in [
        ("2M", "2048", 19, "sysctl vm.nr_hugepages"),
        ("1G", "1048576", 1, "hugepages-1048576kB/nr_hugepages"),
    ] {
        let said = example(&stage, "scan", &format!("duration=0.1 hugepages={pages}"));
        if free(size) >= needed {
            said.code(0).out("pages of pools: ");
        } else {
            said.code(3).err(remedy);
        }
    }
    example(&stage, "scan", "hugepages=4M")
        .code(2)
        .err("hugepages: `4M` (valid: auto, 2M, 1G, off)");
}

#[test]
fn memory_that_cannot_be_shared_is_refused_with_what_to_do() {
    let stage = Stage::new();
    let _answers = UnixListener::bind(stage.path("link")).unwrap();
    said(side(&stage, "--server", 2, &[]))
        .code(3)
        .err("cannot share memory at link: ")
        .err("another server answers there: end it, or name another path, the same on both sides");
    let mut absent = stage.peer(&["axio", "--example", "scan", "--server"]);
    absent.args(["--backend", "shm:none/link"]);
    said(absent)
        .code(3)
        .err("cannot share memory at none/link: ")
        .err("make the folder");
}

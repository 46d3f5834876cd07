//! The commands of the five documents that weir began with, as printed there but for names of hosts and devices,
//! sizes and times; and those that are not run here, with the reason.

use std::process::Command;

use crate::stage::{Running, Said, Stage, WEIR, has, peer, root, said, skip, until};

/// Commands of one document, each with a text that its output has.
type Shown = [(&'static str, &'static str)];

/// Job files of a card with DMA channels.
const CARD: &Shown = &[
    ("fio --showcmd xdma_4-ch_4-1M_write.fio", "--rate_min=1m"),
    ("fio xdma_4-ch_4-1M_write.fio", "  WRITE: bw="),
    ("fio xdma_4-ch_4-1M_read.fio", "   READ: bw="),
    ("fio xdma_4-ch_4-1M_verify.fio; echo $?", "\n0\n"),
    (
        "fio xdma_4-ch_4-X_write.fio",
        "2MB: (groupid=7, jobs=4): err= 0",
    ),
    (
        "fio xdma_4-ch_4-X_read.fio",
        "2MB: (groupid=7, jobs=4): err= 0",
    ),
    ("fio --blocksize=128k xdma_4-ch_4_var_write.fio", "128KiB"),
    ("fio edma_4-ch_4-1M_write.fio", "  WRITE: bw="),
    ("fio edma_4-ch_4-1M_verify.fio; echo $?", "\n0\n"),
];

/// Block IO from kernel threads, here by user space.
const KERNEL_THREADS: &Shown = &[
    (
        "kio.py --num-threads 1 --runtime 1 --block-size 4096 --offset-stride 4096 --queue-depth 10 \
         --offset-random 1 --read-mix-percent 100 --offset-high $((0xFFFFFFFF)) --read-burst 100 \
         --read-mix-percent 100",
        "-   bw_MBps: ",
    ),
    (
        "kio.py --num-threads 2 --runtime 1 --block-size 4096 --queue-depth 10 --offset-random 1 \
         --read-mix-percent 100 -o rows.csv -y report.yaml && wc -l < rows.csv",
        "\n2\n",
    ),
    (
        "kio.py --generate-config all.yaml && cat all.yaml",
        "queue_depth: ",
    ),
    (
        "kio.py --runtime 1 --config all.yaml --output-csv rows.csv && wc -l < rows.csv",
        "\n3\n",
    ),
    ("kio.py --examples", "kio"),
    ("kio.py -h", "--read-mix-percent"),
];

/// Effective bandwidth between cards, here between threads.
const CARDS: &Shown = &[
    ("Network_intel -h", "--kernel-latency"),
    (
        "Network_intel -f kernel.aocx -n 2 -u 16 -l 4 -m 9",
        "Validation: SUCCESS!",
    ),
    (
        "Network_intel -f kernel.aocx -n 10 -r 2 -u 5 -l 5 --min-size 6 -m 8 --dump-json o.json && cat o.json",
        "\"b_eff\"",
    ),
    ("Network_test_intel -f kernel.aocx", "PASSED"),
];

/// RPCs of a storage system's servers; `$ALL` is each of them.
const SERVERS: &Shown = &[
    (
        "self_test -u --group-name daos_server --endpoint 0:2 --message-size '(0 b1048578)' \
         --max-inflight-rpcs 16 --repetitions 100",
        "RPC Bandwidth (MB/sec): ",
    ),
    (
        "taskset -c 0 self_test -u --group-name daos_server --endpoint 0:2 \
         --message-size \"(b1048578 0)\" --max-inflight-rpcs 16 --repetitions 100",
        "RPC Bandwidth (MB/sec): ",
    ),
    (
        "self_test -u --group-name daos_server --endpoint 0:2 --message-size \"(0 0)\" \
         --max-inflight-rpcs 16 --repetitions 100",
        "RPC Throughput (RPCs/sec): ",
    ),
    (
        "self_test -u --group-name daos_server --endpoint 0-1:0-4 \
         --message-size \"(0 0) (b1048578 0) (0 b1048578)\" --max-inflight-rpcs 16 --repetitions 100",
        "\t1:4 - ",
    ),
    (
        "self_test -u --group-name daos_server --endpoint 0-1:0 --master-endpoint 0-1:0-4 --message-sizes \
         \"b1048576,b1048576 0,0 b1048576,i2048,i2048 0,0 i2048\" --max-inflight-rpcs 16 --repetitions 10",
        "RPC Throughput (RPCs/sec): ",
    ),
    ("self_test --help", "--max-inflight-rpcs"),
];

/// A store on persistent memory and a drive, here both in memory.
const STORE: &Shown = &[
    ("vos_perf --help", "--pool_scm"),
    (
        "taskset -c 0 vos_perf -D . -P 100G -d 10000 -a 1 -n 1 -s 4K -z -R \"U;p F;p\"",
        "Completed test=FETCH\n",
    ),
    (
        "taskset -c 0 vos_perf -D . -P 100G -d 40 -a 1 -n 1 -s 1M -z -R \"U;p F;p\"",
        "Completed test=FETCH\n",
    ),
    ("daos_perf --help", "--credits"),
    (
        "spdk_nvme_perf -q 16 -o 1048576 -w read -c 0x1 -t 1 disk",
        "disk from core  0: ",
    ),
    (
        "spdk_nvme_perf -q 16 -o 4096 -w read -c 0x1 -t 1 disk",
        "disk from core  0: ",
    ),
];

/// A packet path and its tools, once both sides have written their tables.
const PACKET_PATH: &Shown = &[
    ("grep -c 'Perf Statistics' tmp/temp.log", "2"),
    (
        "python3 toolchain/main.py -c ./config/send_config -v",
        "Tunable Parameter Verification Passed",
    ),
    (
        "python3 toolchain/main.py -c ./config/send_config -p",
        "kNICTxPostSize: ",
    ),
    (
        "dur=1 bash scripts/host-metric/record-host-metrics.sh && ls scripts/host-metric/reports",
        "report.rpt",
    ),
    (
        "python3 toolchain/main.py -c ./config/send_config -p -d tmp/temp.log \
         -m scripts/host-metric/reports/report.rpt",
        "[INFO] The most critical pipe phase is: ",
    ),
];

/// Commands that nothing here can run.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "insmod kio.ko; cat /sys/module/kio/version",
        "the module is loaded in guests alone (tests/kio/module.rs)",
    ),
    (
        "Network_intel -f kernel.aocx",
        "on cards that need a maker's kernels (tests/beff has OpenCL on CPUs)",
    ),
    (
        "spdk_nvme_perf -q 16 -o 1048576 -w read -c 0xff -t 60",
        "on eight CPUs and NVMe drives (a file and one CPU above; in a guest: tests/guests/nvme.rs)",
    ),
    (
        "ior -a DFS -t … -b … -s …; mdtest; io500",
        "weir has no door for them yet",
    ),
];

/// Files, links and variables that the commands expect.
fn prepared() -> Stage {
    let stage = Stage::new();
    for (driver, sizes) in [("xdma", &["1M", "X", "var"][..]), ("edma", &["1M"])] {
        for size in sizes {
            let words = [
                "new", "xdma", "--memory", "64m", "-o", ".", "--driver", driver, "--size", size,
            ];
            stage.say(&words).code(0);
        }
        let mut lab = stage.command(root().join("lab/dma-card").to_str().unwrap());
        lab.args(["card", "--driver", driver]);
        said(lab).code(0);
    }
    let files = stage.list();
    for file in files.iter().filter(|file| file.contains("-ch_")) {
        let text = stage.read(file).replace("/dev/", &stage.path("card/"));
        stage.file(file, text);
    }
    stage.sparse("disk", 64 << 20);
    stage
}

/// A command, run by the shell.
fn shell(stage: &Stage, command: &str) -> Command {
    let links = [
        "fio",
        "kio.py",
        "Network_intel",
        "Network_test_intel",
        "self_test",
        "axio",
        "vos_perf",
        "daos_perf",
        "spdk_nvme_perf",
    ]
    .map(peer);
    let folder = std::path::Path::new(links[0]).parent().unwrap();
    let others = std::env::var("PATH").unwrap();
    let mut shell = stage.command("sh");
    shell.args(["-c", command]);
    shell.env("PATH", format!("{}:{others}", folder.display()));
    shell.env("WEIR", WEIR).env("WEIR_KIO_DEVICE", "disk");
    shell.env("CRT_ATTACH_INFO_PATH", ".");
    shell
}

fn walk(stage: &Stage, commands: &Shown) {
    for (command, text) in commands {
        let said: Said = said(shell(stage, command));
        let of = format!("`{command}`: {said}");
        assert!(said.code == Some(0) && said.out.contains(text), "{of}");
    }
}

#[test]
fn the_commands_of_the_founding_documents_run_as_printed() {
    let stage = prepared();
    walk(&stage, CARD);
    walk(&stage, KERNEL_THREADS);
    walk(&stage, CARDS);
    for (command, reason) in LEFT_OUT {
        skip(command, reason);
    }
}

#[test]
fn the_commands_for_a_store_run_as_printed() {
    let stage = Stage::in_memory();
    stage.sparse("disk", 64 << 20);
    walk(&stage, STORE);
}

#[test]
fn the_commands_for_servers_run_as_printed() {
    let stage = Stage::new();
    let servers = [0, 1].map(|rank| {
        let words =
            "--group daos_server --layout daos,targets=2,helpers=1 --path . --exit-after idle:30";
        let command = format!("exec {WEIR} rpc serve {words} --rank {rank} > ready{rank}");
        Running::start(shell(&stage, &command))
    });
    for rank in 0..2 {
        let file = format!("ready{rank}");
        until("it serves", || {
            stage.list().contains(&file) && stage.read(&file).contains("READY")
        });
    }
    walk(&stage, SERVERS);
    for server in servers {
        server.signal(rustix::process::Signal::TERM);
        server.end();
    }
}

#[test]
fn the_commands_of_a_packet_path_run_as_printed() {
    if !has("python3") {
        return skip("the commands of a packet path", "no python3");
    }
    let stage = Stage::new();
    for folder in ["config", "tmp"] {
        std::fs::create_dir(stage.path(folder)).unwrap();
    }
    for name in ["toolchain", "scripts"] {
        let from = root().join("share/axio").join(name);
        let mut copy = stage.command("cp");
        copy.arg("-r").arg(from).arg(name);
        said(copy).code(0);
    }
    let batches = [
        "AppTxMsgBatchSize",
        "AppRxMsgBatchSize",
        "DispTxBatchSize",
        "DispRxBatchSize",
    ];
    let posts = ["NICTxPostSize", "NICRxPostSize"];
    let sizes = batches
        .iter()
        .chain(&posts)
        .map(|key| format!("k{key} : 1\n"));
    let sizes: String = sizes.collect();
    let [client, server] = ["127.77.33.1", "127.77.33.2"];
    for (file, own, other) in [
        ("recv_config", server, client),
        ("send_config", client, server),
    ] {
        let text = format!(
            "{sizes}kAppCoreNum : 1\nkDispQueueNum : 1\nnuma : 0\niteration : 2\nduration : 0.2\nmsg_handler : L_APP\n\
             workload : 0 : TxApplication,TxDispatcher,TxNIC,RXNIC,RXDispatcher,RxApplication : 0 : 0 : 0\n\
             backend : udp\nlocal_ip : {own}\nremote_ip : {other}\n"
        );
        stage.file(&format!("config/{file}"), text);
    }
    // Each of both takes the configuration of its side.
    let mut serving = shell(&stage, "axio");
    serving.env("AXIO_NODE", "server");
    let server = Running::start(serving);
    let mut calling = shell(&stage, "axio > tmp/temp.log");
    calling.env("AXIO_NODE", "client");
    said(calling).code(0);
    server.end().code(0).out("Perf Statistics");
    walk(&stage, PACKET_PATH);
}

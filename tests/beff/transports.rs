//! Other ways of the data than shared memory, and the self test over all of them.

use crate::stage::{Running, Stage, skip, until};
use crate::{beff, has, table};

#[test]
fn channel_files_hold_what_went_through_them() {
    let stage = Stage::new();
    if !has(&stage, "file") {
        return skip("channel files", "no transport file");
    }
    let directory = stage.path("D");
    std::fs::create_dir(&directory).unwrap();
    let words = "--comm-type file --ranks 1 -r 2 -n 1 -u 4 -l 4 --min-size 5 -m 5 \
                 --channel-dir D --keep-channels";
    beff(&stage, words).code(0);
    for channel in 0..4 {
        let output = std::fs::read(format!("{directory}/kernel_output_ch{channel}")).unwrap();
        assert_eq!(output, vec![5; 128], "channel {channel}");
        let input = std::fs::read_link(format!("{directory}/kernel_input_ch{channel}")).unwrap();
        let wanted = format!("kernel_output_ch{}", channel ^ 1);
        assert_eq!(input.file_name().unwrap().to_str(), Some(wanted.as_str()));
    }
}

#[test]
fn the_peers_external_channels_are_emulated_by_files() {
    let stage = Stage::new();
    if !has(&stage, "file") {
        return skip("external channels", "no transport file");
    }
    let said = beff(
        &stage,
        "--ranks 1 -u 5 -l 5 --min-size 6 -m 8 --comm-type file",
    )
    .code(0)
    .out("Communication Type                      IEC\n")
    .out("Validation: SUCCESS!\n");
    let sizes: Vec<_> = table(&said.out).into_iter().map(|r| r[0].clone()).collect();
    assert_eq!(sizes, ["64", "128", "256"]);
    assert_eq!(stage.list(), Vec::<String>::new());
}

#[test]
fn what_a_killed_run_leaves_the_next_one_removes() {
    let stage = Stage::new();
    let below = stage.path("D");
    std::fs::create_dir(&below).unwrap();
    let names = || {
        let entries = std::fs::read_dir(&below).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    let long = "Network_intel --comm-type file --channel-dir D --ranks 2 --spawn procs --sizes 6 -u 16 -l 16 -n 1000000";
    let long: Vec<_> = long.split_whitespace().collect();
    // A run with a directory of its own, and no other one beside it.
    let start = |before: &[String]| {
        let running = Running::start(stage.peer(&long));
        until("it has its directory", || {
            let names = names();
            names.len() == 1 && names != before && !names[0].starts_with('.')
        });
        running
    };
    let killed = start(&[]);
    let left = names();
    killed.signal(rustix::process::Signal::KILL);
    killed.end();
    assert_eq!(names(), left);
    // Another run takes it away, and a third one nothing of the second.
    let lives = start(&left);
    let alive = names();
    beff(
        &stage,
        "--comm-type file --channel-dir D -n 1 -u 2 -l 2 -m 2",
    )
    .code(0);
    assert_eq!(names(), alive);
    lives.signal_all(rustix::process::Signal::INT);
    lives.end().code(130);
    assert!(names().is_empty());
}

#[test]
fn sockets_take_the_name_of_an_interface() {
    let stage = Stage::new();
    for transport in ["tcp", "udp"] {
        let words = format!("--comm-type {transport} --ranks 2 -n 1 -u 4 -l 4 -m 4 --iface");
        beff(&stage, &format!("{words} 0=lo,1=127.0.0.1")).code(0);
        beff(&stage, &format!("{words} nosuch0"))
            .code(2)
            .silent()
            .err("`nosuch0` is neither an address nor a network interface with one")
            .err("there are lo 127.0.0.1");
        beff(&stage, &format!("{words} a/b"))
            .code(2)
            .silent()
            .err("`a/b` is neither");
    }
}

#[test]
fn sockets_that_cannot_be_here_are_refused_before_a_rank_starts() {
    let stage = Stage::new();
    for spawn in ["threads", "procs"] {
        for (words, message) in [
            ("--iface 0=lo", "--iface 0=lo: there is no place for rank 1"),
            ("--iface 0=lo,1=lo,2=lo", "there is no rank 2"),
            ("--iface 0=lo,0=lo", "rank 0 stands twice"),
            ("--iface lo,lo", "mixes places"),
            (
                "--iface 198.51.100.77",
                "`198.51.100.77` is no address of this machine",
            ),
            ("--port 65535", "--port 65535: 2 ranks need"),
        ] {
            for transport in ["tcp", "udp"] {
                let words =
                    format!("--comm-type {transport} --ranks 2 --spawn {spawn} -m 2 {words}");
                beff(&stage, &words).code(2).silent().err(message);
            }
        }
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let stage = Stage::new();
    for transport in ["tcp", "udp"] {
        // Rank 1's port, for either kind of sockets; below those that the kernel hands out, so
        // that nobody has rank 0's.
        let taken = (20_001..30_000).find_map(|port| {
            let stream = std::net::TcpListener::bind(("127.0.0.1", port)).ok()?;
            let datagrams = std::net::UdpSocket::bind(("127.0.0.1", port)).ok()?;
            Some((port, stream, datagrams))
        });
        let (port, _stream, _datagrams) = taken.unwrap();
        let words = format!("--comm-type {transport} --ranks 2 -m 2 --port {}", port - 1);
        beff(&stage, &words)
            .code(1)
            .err(&format!(" 127.0.0.1:{port}: Address already in use"));
    }
}

#[test]
fn too_few_open_files_end_all_ranks_at_once() {
    let stage = Stage::new();
    let mut command = stage.command("sh");
    // Each rank listens, and cannot connect to all.
    let words = "ulimit -n 40; exec \"$0\" --comm-type tcp --ranks 16 -r 8 -m 3 --timeout 3600";
    command.args(["-c", words, crate::stage::peer("Network_intel")]);
    crate::stage::said(command)
        .code(1)
        .err(": Too many open files")
        .err("ulimit -n");
}

#[test]
fn a_directory_of_channels_has_to_be_there() {
    let stage = Stage::new();
    stage.file("plain", "");
    for (directory, why) in [
        (
            "no/such",
            "channels cannot be in no/such: there is no such directory",
        ),
        (
            "plain",
            "channels cannot be in plain: it is not a directory",
        ),
        ("/proc", "channels cannot be in /proc: "),
    ] {
        for kept in ["", "--keep-channels"] {
            let words = format!("--comm-type file -u 2 -l 2 -m 2 --channel-dir {directory} {kept}");
            beff(&stage, &words).code(2).silent().err(why);
        }
    }
    assert_eq!(stage.list(), ["plain"]);
}

#[test]
fn sockets_and_memory_carry_every_byte() {
    let stage = Stage::new();
    for transport in ["shm", "tcp", "udp"] {
        if !has(&stage, transport) {
            skip("sockets and memory", &format!("no transport {transport}"));
            continue;
        }
        let words = format!("--ranks 2 --comm-type {transport} -m 16 -u 64 -l 8 -n 2");
        let said = beff(&stage, &words);
        if transport == "udp" && said.code == Some(1) {
            // A machine that has no time for its sockets loses datagrams, and says how many.
            said.err("messages were lost");
            continue;
        }
        let said = said.code(0).out("Validation: SUCCESS!\n");
        assert_eq!(
            said.out.contains("\nlost: 0\n"),
            transport == "udp",
            "{said}"
        );
    }
}

#[test]
fn every_transport_is_listed_with_what_it_lacks() {
    let stage = Stage::new();
    let page = beff(&stage, "--list-comm").code(0).calm().out;
    let names: Vec<_> = page.lines().filter_map(|l| l.split(' ').next()).collect();
    let built = weir_net::transports().iter().map(|t| t.name);
    let known: Vec<_> = built.chain(["ofi", "cuda"]).collect();
    assert_eq!(names, known);
    assert!(has(&stage, "shm") && !has(&stage, "cuda"), "{page}");
}

#[test]
fn without_an_mpi_library_the_others_are_available() {
    let stage = Stage::new();
    let mut command = stage.peer(&["Network_intel", "--list-comm"]);
    command.env("WEIR_MPI_LIB", "/nowhere/libmpi.so");
    let page = crate::stage::said(command).code(0).calm().out;
    let line = |name: &str| page.lines().find(|l| l.split(' ').next() == Some(name));
    for name in ["shm", "tcp", "udp", "file"] {
        assert!(line(name).unwrap().ends_with(" available"), "{page}");
    }
    let mpi = line("mpi").unwrap();
    assert!(mpi.contains("/nowhere/libmpi.so: cannot open"), "{page}");
}

#[test]
fn the_self_test_passes() {
    let stage = Stage::new();
    let said = stage.peer_says(&["Network_test_intel"]).code(0);
    let last = said.out.lines().last().unwrap();
    let good = said.out.lines().filter(|l| l.starts_with("ok ")).count();
    assert!(good >= 6, "{said}");
    assert_eq!(last, format!("PASSED {good} tests"));
}

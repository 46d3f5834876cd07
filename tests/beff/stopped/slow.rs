//! Slow tests: they take long, or need the launchers of MPI.

use super::*;

#[test]
fn a_rank_of_a_launcher_that_stops_is_named_whatever_the_transport() {
    each_launcher("a stopped rank of a launcher", |stage, launcher| {
        for transport in ["mpi", "shm", "tcp", "udp", "file", "null"] {
            if !has(stage, transport) {
                let reason = format!("no transport {transport}");
                skip("a stopped rank of a launcher", &reason);
                continue;
            }
            let all = words(transport);
            let command = |s: &Stage| under(s, launcher, 3, &all);
            for (rank, said) in each_rank_stopped(command).into_iter().enumerate() {
                let said = said.err(&silence_of(rank));
                assert_ne!(said.code, Some(0), "{said}");
            }
        }
    });
}

#[test]
fn a_rank_that_never_comes_is_told_while_mpi_starts() {
    each_launcher("a rank that never comes", |stage, launcher| {
        let program = peer("Network_intel");
        let ours = format!("{program} --comm-type mpi --timeout {TIMEOUT}");
        // The other one does not know of MPI.
        let other = ": -n 1 sleep 60";
        let words: Vec<_> = ours.split(' ').chain(other.split(' ')).collect();
        let running = Running::start(launch_program(stage, launcher, 1, &words));
        let (said, has_ended) = running.end_within(Duration::from_secs(20));
        assert!(has_ended, "it goes on: {said}");
        let said = said.err("error: MPI has not started for 2 s: not every rank came");
        assert_ne!(said.code, Some(0), "{said}");
    });
}

#[test]
fn the_rank_that_died_under_a_launcher_is_named() {
    each_launcher("a rank that died", |stage, launcher| {
        for transport in ["shm", "mpi"].into_iter().filter(|t| has(stage, t)) {
            let words = format!("--comm-type {transport} {DIES}");
            said(under(stage, launcher, 3, &words)).err(": rank 1 is gone: ");
        }
    });
}

#[test]
fn processes_that_were_stopped_together_go_on() {
    let stage = Stage::new();
    let all =
        "Network_intel --ranks 3 --spawn procs --timeout 1 --sizes 6 -n 1 -u 1 -l 1 --min-time 3";
    let all: Vec<_> = all.split_whitespace().collect();
    let ranks = RankProcesses::of(Running::start(stage.peer(&all)), RANKS);
    let running = ranks.pause_all(Duration::from_secs(3));
    running.end().code(0).out("Validation: SUCCESS!");
}

#[test]
fn the_rank_that_died_is_named_and_not_one_that_saw_it() {
    for transport in ["shm", "tcp", "udp", "file"] {
        for ranks in [3, 4] {
            for spawn in ["threads", "procs"] {
                let stage = Stage::new();
                std::fs::create_dir(stage.path("D")).unwrap();
                let own = if transport == "file" {
                    "--channel-dir D"
                } else {
                    ""
                };
                let words =
                    format!("--comm-type {transport} {own} --ranks {ranks} --spawn {spawn}");
                beff(&stage, &format!("{words} {DIES}"))
                    .code(1)
                    .err("rank 0, messages of 256 B")
                    .err(": rank 1 is gone: ");
            }
        }
    }
}

#[test]
fn a_process_that_stops_is_named_whatever_the_transport() {
    for transport in ["shm", "tcp", "udp", "file", "null"] {
        if !has(&Stage::new(), transport) {
            skip("a stopped process", &format!("no transport {transport}"));
            continue;
        }
        let all = format!(
            "Network_intel --ranks {RANKS} --spawn procs {}",
            words(transport)
        );
        let all: Vec<_> = all.split_whitespace().collect();
        for (rank, said) in each_rank_stopped(|s| s.peer(&all)).into_iter().enumerate() {
            let said = said.err(&silence_of(rank));
            // Rank 0 is killed by the test.
            assert_eq!(said.code, (rank > 0).then_some(1), "{said}");
            assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
        }
    }
}

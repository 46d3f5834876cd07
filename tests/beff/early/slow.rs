//! Slow tests: they take long, or need the launchers of MPI.

use super::*;

#[test]
fn a_signal_to_another_rank_of_a_launcher_ends_all() {
    each_launcher("an interrupted rank of a launcher", |stage, launcher| {
        if !has(stage, "mpi") {
            return skip("an interrupted rank of a launcher", "no transport mpi");
        }
        // Rank 0 is in a call of MPI that waits for the other; nobody waits for the time-out.
        let words = format!("--comm-type mpi --timeout 3600 {LONG}");
        let running = Running::start(under(stage, launcher, 2, &words));
        let ranks = || {
            let all = running.children().into_iter();
            all.filter(|p| catches_signals(*p)).collect::<Vec<_>>()
        };
        until("two ranks catch signals", || ranks().len() == 2);
        let ranks = ranks();
        let other = ranks.iter().find(|p| rank_of(**p) == Some(1));
        rustix::process::kill_process(*other.unwrap(), Signal::INT).unwrap();
        running.end().code(130).err("interrupted by SIGINT");
    });
}

#[test]
fn a_rank_in_a_call_that_does_not_come_back_leaves_the_sizes_before() {
    each_launcher("a call that hangs", |stage, launcher| {
        if !has(stage, "mpi") {
            return skip("a call that hangs", "no transport mpi");
        }
        let fault = "--inject stall:rank=1,size=6,after=2 --timeout 1";
        let words = format!("--comm-type mpi {fault} {LONG}");
        let said = said(under(stage, launcher, 2, &words)).err("messages of 64 B");
        assert_ne!(said.code, Some(0), "{said}");
        has_one_of_two(stage, &said);
    });
}

#[test]
fn a_place_for_the_result_that_is_none_ends_all_ranks() {
    each_launcher("no place for the result", |stage, launcher| {
        let words = "-n 1 -u 2 -l 2 -m 2 --comm-type shm --dump-json no/such/place.json";
        let said = said(under(stage, launcher, 2, words))
            .code_of_a_rank(2)
            .silent();
        assert_eq!(said.err.matches("no/such/place.json").count(), 1, "{said}");
    });
}

#[test]
fn the_line_of_progress_is_for_terminals() {
    if !crate::stage::has("script") {
        return skip("a line of progress", "no script");
    }
    let stage = Stage::new();
    let words = "--comm-type shm --sizes 6 -u 1 -l 1 -n 4 --min-time 0.5 --quiet";
    for (words, shown) in [(words.trim_end_matches(" --quiet"), true), (words, false)] {
        let mut command = stage.command("script");
        command.args([
            "-qec",
            &format!("{} {words}", crate::stage::peer("Network_intel")),
            "/dev/null",
        ]);
        let out = command.env("NO_COLOR", "1").output().unwrap();
        let out = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(out.contains("\x1b[2Kb_eff 64 B  "), shown, "{out}");
        assert!(out.contains("b_eff = "), "{out}");
    }
}

//! Slow tests: under the launchers of MPI.

use super::{
    LONG, Running, Signal, catches_signals, each_launcher, has, has_one_of_two, rank_of, said,
    skip, under, until,
};

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

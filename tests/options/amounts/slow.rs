//! Slow tests: they take long.

use super::*;

#[test]
fn loops_multiply_operations_and_bytes_as_in_fio() {
    if let Err(missing) = has_all(&["fio"]) {
        return skip("loops_multiply_operations_and_bytes_as_in_fio", &missing);
    }
    for words in [
        "--loops=3 --number_ios=10",
        "--loops=3 --number_ios=20",
        "--io_size=150k --number_ios=20",
        "--loops=2 --io_size=24k",
        "--loops=2 --io_size=100k",
        "--loops=2 --io_size=150k",
        "--loops=3 --io_size=300k",
        "--loops=3 --io_size=130k --end_fsync=1",
        "--loops=2 --io_size=62000",
        "--size=121k --norandommap --rw=randwrite",
        "--size=121k --norandommap --rw=randwrite --loops=2",
        "--size=121k --norandommap --rw=randwrite --random_generator=lfsr",
        "--size=121k --rw=randwrite --loops=2",
        "--size=121k --rw=randwrite --random_distribution=zoned:60/20:40/80",
    ] {
        let (theirs, ours) = (Stage::new(), Stage::new());
        let words: Vec<&str> = ["--rw=write", "--size=64k"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        let (theirs, ours) = (fios(&theirs, &words), done(&ours, &words));
        if words.contains(&"--rw=randwrite") {
            // Each has generators of its own.
            assert_eq!(ours.len(), theirs.len(), "{words:?}");
        } else {
            assert_eq!(ours, theirs, "{words:?}");
        }
    }
}

//! `weir obj run` as a user sees it: mixes count what they did, and do what their seed says.

use weir_schema::{ObjectRun, RunResult, Stage as LoopStage};

use super::stage::{Stage, skip};
use weir_object::DiskLibrary;

/// The result of a run.
fn result(stage: &Stage, words: &str) -> RunResult {
    result_in(stage, "256M", words)
}

/// The same in a pool of this size.
fn result_in(stage: &Stage, size: &str, words: &str) -> RunResult {
    let stored = stage.path("r.json");
    let words = format!("obj run -D . -P {size} --store-result {stored} {words}");
    stage.say(&words.split(' ').collect::<Vec<_>>()).code(0);
    serde_json::from_str(&stage.read("r.json")).unwrap()
}

/// The mix of a group's job as its outcome has it, and its operations by kind as its phase counts them.
fn mix(result: &RunResult, group: usize) -> (ObjectRun, Vec<(String, u64)>) {
    let job = &result.groups[group].jobs[0];
    let run = job.object_store().unwrap().ranks[0].runs[1].clone();
    assert_eq!(run.name, "mix");
    let phase = job.phases.iter().find(|phase| phase.name == "mix").unwrap();
    let workers = phase.measured.as_ref().unwrap().workers();
    let kinds = workers.iter().flat_map(|worker| &worker.kinds);
    let counts = kinds.filter(|kind| kind.operations > 0).map(|kind| {
        // Each operation is in the histogram of its kind.
        let histogram = kind.stage(LoopStage::Lat).unwrap();
        assert_eq!(histogram.count(), kind.operations, "{:?}", kind.kind);
        (kind.kind.to_string(), kind.operations)
    });
    (run, counts.collect())
}

#[test]
fn a_mix_has_its_shares_counts_all_of_them_and_repeats_with_its_seed() {
    let stage = &Stage::in_memory();
    let words =
        "--mix update=50,fetch=45,punch=5 --ops 20000 --keys 1000 --dist zipf:0.99 --verify";
    let (run, counts) = mix(&result(stage, words), 0);
    assert_eq!(run.operations, 20_000);
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 20_000);
    let expected = [("update", 10_000), ("fetch", 9_000), ("punch", 1_000)];
    for ((kind, count), (name, about)) in counts.iter().zip(expected) {
        assert_eq!(kind, name);
        // Four standard deviations at the most.
        assert!(count.abs_diff(about) < 300, "{kind}: {count}");
    }
    // Fetches of punched keys find nothing.
    assert!(run.misses > 0, "{run:?}");
    let (again, same) = mix(&result(stage, words), 0);
    let (other, _) = mix(&result(stage, &format!("{words} --seed 2")), 0);
    assert_eq!(counts, same);
    assert_eq!(run.misses, again.misses);
    assert_ne!(run.misses, other.misses);
    assert!(!stage.list().contains(&"obj0".to_owned()));
}

#[test]
fn presets_run_and_read_what_they_wrote() {
    let stage = &Stage::in_memory();
    for preset in ["a", "b", "c", "d", "e", "f"] {
        let words = format!("--preset ycsb-{preset} --ops 2000 --keys 500 --size 100 --verify");
        let (run, _) = mix(&result(stage, &words), 0);
        assert_eq!(run.hits, 2000, "{preset}");
    }
}

#[test]
fn updates_of_a_full_pool_wait_for_an_aggregation() {
    let stage = &Stage::in_memory();
    let words = "--mix update=1 --ops 20000 --keys 1000";
    let (run, _) = mix(&result_in(stage, "32M", words), 0);
    assert!(run.freed_versions > 10_000, "{run:?}");
}

#[test]
fn a_rate_is_kept_over_all_kinds_and_engines_follow_each_other() {
    let stage = &Stage::in_memory();
    let words = "--mix update=1,fetch=9 --ops 500 --rate 5000 --engine mem,mem";
    let result = result(stage, words);
    for group in [0, 1] {
        let (run, counts) = mix(&result, group);
        // The last of them starts after 99.8 ms, and no kind has a schedule of its own that would hold it.
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 500);
        assert!(run.span.length().0 >= 99_800_000, "{run:?}");
        let job = &result.groups[group].jobs[0];
        let phase = job.phases.iter().find(|phase| phase.name == "mix").unwrap();
        let kinds = phase.measured.as_ref().unwrap().workers()[0].kinds.iter();
        let late = kinds.filter_map(|kind| kind.stage(LoopStage::Rlat));
        assert_eq!(late.map(weir_stats::Histogram::count).sum::<u64>(), 500);
    }
}

#[test]
fn mixes_that_cannot_be_are_refused() {
    let stage = &Stage::in_memory();
    for (words, why) in [
        ("--ops 1", "--mix SHARES or --preset NAME"),
        ("--mix fetch=1", "--ops N or --time TIME"),
        ("--mix fetsh=1 --ops 1", "did you mean fetch?"),
        ("--preset ycsb-a --ops 1 --dist zipf:0", "theta is above 0"),
        ("--preset ycsb-a --ops 1 --keys 1000000", "DER_NOSPACE"),
        ("--preset ycsb-a --ops 1 --arrival poisson", "with `--rate`"),
    ] {
        let words = format!("obj run -D . -P 64M {words}");
        let said = stage.say(&words.split(' ').collect::<Vec<_>>()).code(2);
        assert!(said.err.contains(why), "{said}");
    }
}

#[test]
fn libraries_on_a_disk_stand_in_one_table_and_leave_nothing() {
    let stage = &Stage::new();
    let with = |engines: &str| {
        let words = format!("obj run -D . --preset ycsb-a --ops 300 --keys 100 --engine {engines}");
        stage.say(&words.split(' ').collect::<Vec<_>>())
    };
    for (engine, library) in [("fjall", DiskLibrary::Fjall), ("lmdb", DiskLibrary::Lmdb)] {
        if let Some(why) = library.lacks() {
            // As the library of this test the program was built without it.
            with(engine).code(3).err(why);
            skip("libraries_on_a_disk", why);
            return;
        }
    }
    let mut said = with("redb,fjall,lmdb --verify -P 512M").code(0);
    for engine in ["redb", "fjall", "lmdb"] {
        said = said.out(&format!("{engine} update"));
    }
    with("fjall -P 64M").code(2).err("the updates take 256 MiB");
    assert_eq!(stage.list(), [] as [&str; 0]);
}

#[test]
fn targets_share_the_keys_the_pool_and_the_operations() {
    let stage = &Stage::in_memory();
    let words = "--preset ycsb-d --ops 3001 --keys 1001 --targets 3 --verify";
    let result = result(stage, words);
    let job = &result.groups[0].jobs[0];
    let targets = &job.object_store().unwrap().ranks;
    let all = |number: usize| -> Vec<u64> {
        targets
            .iter()
            .map(|target| target.runs[number].operations)
            .collect()
    };
    assert_eq!(all(0), [334, 334, 333]);
    assert_eq!(all(1), [1001, 1000, 1000]);
    let files: Vec<_> = targets
        .iter()
        .filter_map(|target| target.file.clone())
        .collect();
    assert_eq!(files, ["./obj0.0", "./obj0.1", "./obj0.2"]);
    let metrics = job.object_store().unwrap().figures(1).unwrap();
    assert_eq!(metrics.operations, 3001);
}

//! Batches and their figures, with values computed by hand or by an independent implementation.

use super::*;

const STRETCH: Nanos = Nanos(100_000_000);

fn stretch(operations: u64) -> Batch {
    let mut histogram = Histogram::new();
    histogram.record_n(1000 + operations, operations);
    Batch {
        stretches: 1,
        length_ns: STRETCH,
        operations,
        bytes: Bytes(operations * 4096),
        histogram,
    }
}

fn store(stretches: impl IntoIterator<Item = u64>) -> BatchStore {
    let mut store = BatchStore::new(STRETCH, 1);
    for operations in stretches {
        store.push(stretch(operations)).unwrap();
    }
    store
}

fn whole(store: &BatchStore) -> Histogram {
    let mut whole = Histogram::new();
    for batch in store.batches() {
        whole.merge(&batch.histogram).unwrap();
    }
    whole
}

#[test]
fn memory_is_bounded_and_nothing_is_lost() {
    for (count, batches, stretches_each) in [
        (200, 200, 1),
        (201, 100, 2),
        (400, 200, 2),
        (404, 101, 4),
        (1000, 125, 8),
    ] {
        let store = store((0..count).map(|i| i + 1));
        assert_eq!(store.batches().len(), batches, "{count}");
        let held = store.batches().iter();
        assert!(held.clone().all(|b| b.stretches == stretches_each));
        let length = STRETCH.saturating_mul(stretches_each);
        assert!(held.clone().all(|b| b.length_ns == length));
        let in_batches = batches as u64 * stretches_each;
        let operations: u64 = held.clone().map(|b| b.operations).sum();
        assert_eq!(operations, in_batches * (in_batches + 1) / 2);
        let recorded: u64 = held.map(|b| b.histogram.count()).sum();
        assert_eq!(recorded, operations);
        let left: u64 = (in_batches + 1..=count).sum();
        assert_eq!(store.current.operations, left);
        assert_eq!(store.seen(), count);
        assert_eq!(store.next_end(), in_batches + stretches_each);
    }
}

#[test]
fn stretches_that_were_seen_at_once_are_one_batch() {
    let mut store = store([100; 3]);
    let late = Batch {
        stretches: 5,
        length_ns: STRETCH.saturating_mul(5),
        ..stretch(500)
    };
    store.push(late).unwrap();
    assert_eq!(
        (store.batches().len(), store.seen(), store.next_end()),
        (4, 8, 9)
    );
    assert_eq!(store.rates(of_operations), [1000.0; 4]);
}

#[test]
fn a_batch_may_have_several_stretches_from_the_begin() {
    let mut store = BatchStore::new(STRETCH, 4);
    assert_eq!(store.next_end(), 4);
    for _ in 0..6 {
        store.push(stretch(100)).unwrap();
    }
    assert_eq!(
        (store.batches().len(), store.seen(), store.next_end()),
        (1, 6, 8)
    );
    let mut merged = self::store([100; 6]);
    merged.merge(&store).unwrap();
    assert_eq!(merged.rates(of_operations), [2000.0]);
}

#[test]
fn the_rate_of_a_stretch_is_over_its_own_length() {
    let mut store = BatchStore::new(STRETCH, 1);
    for i in 0..20 {
        // Read late or early by a tenth, and so many operations more or less.
        let off = if i % 2 == 0 { 9 } else { 11 };
        let batch = Batch {
            length_ns: Nanos(STRETCH.0 / 10 * off),
            ..stretch(10 * off)
        };
        store.push(batch).unwrap();
    }
    let half = store.operations_per_second(1000.0).half_width().unwrap();
    // One operation in 2 s.
    assert!((half - 0.5).abs() < 1e-9, "{half}");
}

#[test]
fn a_rate_has_the_half_width_of_its_series_and_one_operation() {
    // 990 and 1010 per second alternate, as 1 and 2 do with a half width of 0.066422.
    let store = store((0..20).map(|i| 99 + 2 * (i % 2)));
    let rate = store.operations_per_second(1000.0);
    let half = 20.0 * 0.066_421_960_960_783_15 + 0.5;
    assert!((rate.half_width().unwrap() - half).abs() < 1e-6);
    let bytes = store.bytes_per_second(4_096_000.0);
    assert!((bytes.half_width().unwrap() - half * 4096.0).abs() < 1e-2);
}

#[test]
fn an_interval_lies_about_the_figure_of_the_run() {
    // What the batches leave out moves the figure, and the interval with it.
    let store = store((0..20).map(|i| 99 + 2 * (i % 2)));
    for of_run in [900.0, 1000.0, 1100.0] {
        let rate = store.operations_per_second(of_run);
        assert!(
            rate.low < Some(of_run) && Some(of_run) < rate.high,
            "{rate:?}"
        );
        let mean = store.mean(of_run);
        assert!(
            mean.low <= Some(of_run) && Some(of_run) <= mean.high,
            "{mean:?}"
        );
    }
}

#[test]
fn the_mean_weighs_operations() {
    let store = store((0..40).map(|i| 100 + 10 * (i % 2)));
    let exact = (100.0 * 1100.0 + 110.0 * 1110.0) / 210.0;
    let mean = store.mean(exact);
    assert!(
        mean.half_width()
            .is_some_and(|half| half > 0.0 && half < 2.0),
        "{mean:?}"
    );
}

/// The ends of percentiles of 20 batches, of which batch j has `count(i, j)` values of i; a bucket
/// holds one value.
fn percentile_ends(count: impl Fn(u64, u64) -> u64, wanted: &[f64]) -> Vec<(f64, f64)> {
    let mut store = BatchStore::new(STRETCH, 1);
    for j in 0..20 {
        let mut histogram = Histogram::new();
        (0..60).for_each(|i| histogram.record_n(i, count(i, j)));
        let batch = Batch {
            histogram,
            ..stretch(0)
        };
        store.push(batch).unwrap();
    }
    let found = store.percentiles(&whole(&store), wanted);
    let ends = |(_, e): &(f64, Estimate)| (e.low.unwrap(), e.high.unwrap());
    found.iter().map(ends).collect()
}

#[test]
fn percentiles_end_where_an_independent_implementation_has_them_end() {
    let count = |i, j| if i < 20 { (7 * i + 3 * j) % 11 } else { 0 };
    let ends = percentile_ends(count, &[50.0, 90.0, 99.0]);
    // Its buckets end before the next value.
    assert_eq!(ends, [(9.0, 10.0), (17.0, 18.0), (19.0, 19.0)]);
}

#[test]
fn tails_that_show_no_dependence_are_as_unsure_as_the_means_that_do() {
    // Half of each batch is greater than in the batch before; what is beyond comes and goes. The
    // tails' own shares would give (51, 52), (55, 56) and (58, 59).
    let count = |i, j| match i {
        _ if i == 20 + j => 100,
        44.. => (i * i + 7 * j * j + 3 * i * j) % 5,
        _ => 0,
    };
    let ends = percentile_ends(count, &[90.0, 95.0, 99.0]);
    assert_eq!(ends, [(45.0, 58.0), (50.0, 59.0), (56.0, 59.0)]);
}

#[test]
fn a_short_run_prints_its_figures_without_intervals() {
    let store = store([100; 9]);
    let rate = store.operations_per_second(1000.0);
    assert_eq!(rate, Estimate::without(1000.0, NoInterval::ShortRun));
    let mut whole = Histogram::new();
    whole.record_n(1100, 900);
    let percentiles = store.percentiles(&whole, &[50.0, 99.9, 101.0]);
    let short = Estimate::without(1100.0, NoInterval::ShortRun);
    assert_eq!(percentiles, [(50.0, short), (99.9, short)]);
    assert_eq!(store.mean(1100.0), short);
}

#[test]
fn values_that_are_all_seen_at_the_end_have_no_interval() {
    let mut late = BatchStore::new(STRETCH, 1);
    for at in 0..40 {
        let batch = stretch(100);
        let all = whole(&store([100; 40]));
        let histogram = if at == 39 { all } else { Histogram::new() };
        late.push(Batch { histogram, ..batch }).unwrap();
    }
    let seen_at_end = Estimate::without(1100.0, NoInterval::SeenAtEnd);
    assert_eq!(late.mean(1100.0), seen_at_end);
    let percentiles = late.percentiles(&whole(&late), &[50.0]);
    assert_eq!(percentiles, [(50.0, seen_at_end)]);
    assert!(late.operations_per_second(1000.0).half_width().is_some());
    // A stretch that happens to have none is nothing.
    let mut once = store([100; 39]);
    let histogram = Histogram::new();
    once.push(Batch {
        histogram,
        ..stretch(100)
    })
    .unwrap();
    assert!(once.mean(1100.0).half_width().is_some());
}

#[test]
fn a_run_without_any_operation_is_no_panic() {
    let rate = store([0; 40]).operations_per_second(0.0);
    assert!(rate.low == Some(0.0) && (rate.high.unwrap() - 0.25).abs() < 1e-9);
    assert_eq!(
        store([]).operations_per_second(0.0).absent,
        Some(NoInterval::ShortRun)
    );
    let mut whole = Histogram::new();
    whole.record_n(5, 100);
    for stretches in [vec![], vec![0; 40], [vec![0; 39], vec![7]].concat()] {
        let percentiles = store(stretches).percentiles(&whole, &[50.0]);
        assert!(percentiles[0].1.value > 0.0);
    }
}

#[test]
fn batches_of_ranks_add_up_stretch_by_stretch() {
    let of = |seed: u64| (0..200).map(move |i| 100 + i * seed % 7);
    let ranks = [3, 5, 11, 13].map(of);
    let sums = (0..200).map(|i| ranks.iter().map(|r| r.clone().nth(i).unwrap()).sum());
    let mut merged = store(ranks[0].clone());
    for rank in &ranks[1..] {
        merged.merge(&store(rank.clone())).unwrap();
    }
    let expected = store(sums);
    let counts = |store: &BatchStore| -> Vec<_> {
        let of = |b: &Batch| (b.stretches, b.length_ns, b.operations, b.bytes);
        store.batches().iter().map(of).collect()
    };
    assert_eq!(counts(&merged), counts(&expected));
    let held = |store: &BatchStore| whole(store).count();
    assert_eq!(held(&merged), held(&expected));
    assert_eq!(merged.members, 4);
}

#[test]
fn a_rank_that_ended_much_earlier_did_nothing_more_and_one_by_chance_ran_as_long() {
    let rates = |first: usize, second: usize| {
        let mut merged = store(vec![100; first]);
        merged.merge(&store(vec![100; second])).unwrap();
        merged.rates(of_operations)
    };
    assert_eq!(rates(20, 19), [2000.0; 19]);
    assert_eq!(rates(19, 20), [2000.0; 19]);
    let mut merged = store(vec![100; 20]);
    merged.merge(&store(vec![100; 19])).unwrap();
    assert_eq!(whole(&merged).count(), 3900);
    let early = [vec![2000.0; 10], vec![1000.0; 10]].concat();
    assert_eq!(rates(20, 10), early);
    assert_eq!(rates(10, 20), early);
}

#[test]
fn a_rank_that_was_read_late_is_taken_apart_by_time() {
    let mut late = BatchStore::new(STRETCH, 1);
    for stretches in [1, 4, 1, 6] {
        let batch = Batch {
            stretches,
            length_ns: STRETCH.saturating_mul(stretches),
            ..stretch(100 * stretches)
        };
        late.push(batch).unwrap();
    }
    let mut merged = store([50; 12]);
    merged.merge(&late).unwrap();
    assert_eq!(merged.rates(of_operations), [1500.0; 12]);
    assert_eq!(whole(&merged).count(), 12 * 150);
}

#[test]
fn ranks_with_stretches_of_two_lengths_are_refused() {
    let mut merged = store([50; 12]);
    let error = merged.merge(&BatchStore::new(Nanos(7), 1)).unwrap_err();
    assert_eq!(error, BatchError::StretchDiffers(STRETCH, Nanos(7)));
}

#[test]
fn batches_are_stored_and_read_again_and_nonsense_is_refused() {
    let store = store((0..251).map(|i| 100 + i % 7));
    let text = serde_json::to_string(&store).unwrap();
    assert_eq!(serde_json::from_str::<BatchStore>(&text).unwrap(), store);
    for (from, to) in [
        ("\"stretch_ns\":100000000", "\"stretch_ns\":0"),
        ("\"members\":1", "\"members\":0"),
        ("\"per_batch\":2", "\"per_batch\":0"),
        ("\"stretches\":2", "\"stretches\":0"),
        ("\"length_ns\":200000000", "\"length_ns\":0"),
    ] {
        let bad = text.replacen(from, to, 1);
        assert!(
            bad != text && serde_json::from_str::<BatchStore>(&bad).is_err(),
            "{to}"
        );
    }
}

#[test]
fn estimates_come_from_at_most_80_batches_in_which_nothing_is_lost() {
    for (count, batches) in [(80, 80), (81, 40), (160, 80), (162, 40), (1000, 62)] {
        let few = store((0..count).map(|i| i + 1)).for_estimates();
        assert_eq!(few.batches().len(), batches, "{count}");
        let done: u64 = few.all().map(|b| b.operations).sum();
        assert_eq!(done, count * (count + 1) / 2);
        assert_eq!(few.seen(), count);
    }
}

#[test]
fn what_came_after_the_last_stretch_is_part_of_the_last_batch() {
    let rest = || Batch {
        length_ns: Nanos(STRETCH.0 / 2),
        ..stretch(50)
    };
    let mut store = store([100; 3]);
    store.extend(rest()).unwrap();
    assert_eq!((store.seen(), store.batches().len()), (3, 3));
    assert_eq!(whole(&store).count(), 350);
    assert_eq!(store.rates(of_operations), [1000.0; 3]);
    let mut nothing = BatchStore::new(STRETCH, 1);
    nothing.extend(rest()).unwrap();
    assert_eq!(nothing.all().count(), 0);
}

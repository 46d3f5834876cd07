//! The generators from outside: passes, distributions, and the sequences that
//! no later version may change.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "test helpers; small numbers are exact"
)]

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::path::Path;

use proptest::prelude::*;
use weir_block::generate::distribution::{Normal, OffsetDistribution, Pareto, Zipf, Zone, Zoned};
use weir_block::generate::lfsr::Lfsr;
use weir_block::generate::mix::{DataKind, KindMix};
use weir_block::generate::offsets::{
    Cursor, Offsets, PartlyRandom, RunStyle, Sequential, SequentialRuns, Skewed, Uniform,
    UniformMapped,
};
use weir_block::generate::payload::{Payload, PayloadContent, PayloadRule};
use weir_block::generate::sizes::{SizeDraw, SizeRule};
use weir_block::op::BlockOp;
use weir_block::source::{
    AnySource, BetweenPasses, Extent, Recipe, SlotBuffers, VariedSource, WorkLimits, build,
    build_varied,
};
use weir_run::Source;
use weir_run::generate::Streams;
use weir_run::generate::arrivals::{Arrivals, Even, Poisson, Rate};
use weir_run::generate::rng::Rng;
use weir_schema::{BlockWorkload, Mix};
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

fn blocks(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap()
}

fn mapped(n: u64, seed: u64) -> UniformMapped {
    UniformMapped::new(blocks(n), Rng::new(seed)).unwrap()
}

/// Runs one pass and counts how often each block came.
fn pass(offsets: &mut impl Offsets, n: u64) -> Vec<u32> {
    let mut counts = vec![0; usize::try_from(n).unwrap()];
    while let Some(block) = offsets.next_block() {
        counts[usize::try_from(block).unwrap()] += 1;
    }
    assert_eq!(offsets.next_block(), None, "an ended pass stays ended");
    counts
}

fn assert_each_block_once_per_pass(mut offsets: impl Offsets, n: u64) {
    for _ in 0..2 {
        let counts = pass(&mut offsets, n);
        assert!(counts.iter().all(|&count| count == 1), "n {n}");
        offsets.restart();
    }
}

const REGIONS: [u64; 17] = [
    1, 2, 7, 8, 9, 63, 64, 65, 100, 4095, 4096, 4097, 12_345, 65_535, 65_537, 262_144, 262_145,
];

#[test]
fn with_a_map_every_block_comes_exactly_once_per_pass() {
    for n in REGIONS {
        assert_each_block_once_per_pass(mapped(n, 1), n);
    }
}

#[test]
fn with_a_register_every_block_comes_exactly_once_per_pass() {
    for n in REGIONS {
        assert_each_block_once_per_pass(Lfsr::new(blocks(n), Rng::new(1)), n);
    }
}

#[test]
fn sequentially_every_block_comes_exactly_once_per_pass() {
    for n in REGIONS {
        assert_each_block_once_per_pass(Sequential::new(blocks(n)), n);
        assert_each_block_once_per_pass(Sequential::with_skip(blocks(n), -2), n);
    }
}

#[test]
fn a_map_serves_larger_operations_without_giving_a_block_twice() {
    let n = 10_007;
    let mut offsets = mapped(n, 3);
    let mut counts = vec![0; usize::try_from(n).unwrap()];
    while let Some(block) = offsets.next_block() {
        let more = offsets.extend(block, 7);
        for taken in block..=block + more {
            counts[usize::try_from(taken).unwrap()] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count == 1));
}

#[test]
fn passes_of_a_map_differ_in_order() {
    let mut offsets = mapped(1000, 4);
    let first: Vec<_> = std::iter::from_fn(|| offsets.next_block()).collect();
    offsets.restart();
    let second: Vec<_> = std::iter::from_fn(|| offsets.next_block()).collect();
    assert_ne!(first, second);
}

/// Pearson's statistic against equal shares.
fn chi_square(counts: &[u32]) -> f64 {
    let total: f64 = counts.iter().map(|&c| f64::from(c)).sum();
    let expected = total / counts.len() as f64;
    counts
        .iter()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .sum()
}

/// Inside five standard deviations of a chi-square with that many cells less one.
fn assert_uniform(counts: &[u32]) {
    let freedom = counts.len() as f64 - 1.0;
    let chi = chi_square(counts);
    let allowed = 5.0 * (2.0 * freedom).sqrt();
    assert!((chi - freedom).abs() < allowed, "{chi} for {freedom}");
}

#[test]
fn uniform_draws_pass_a_chi_square_test() {
    for (n, seed) in [(10_u64, 1), (1000, 2), (1024, 3), (4097, 4)] {
        let mut offsets = Uniform::new(blocks(n), Rng::new(seed));
        let mut counts = vec![0; usize::try_from(n).unwrap()];
        for _ in 0..n * 200 {
            counts[usize::try_from(offsets.next_block().unwrap()).unwrap()] += 1;
        }
        assert_uniform(&counts);
    }
}

#[test]
fn pairs_of_uniform_draws_pass_a_chi_square_test() {
    let mut offsets = Uniform::new(blocks(32), Rng::new(5));
    let mut counts = vec![0; 32 * 32];
    for _ in 0..200_000 {
        let (a, b) = (offsets.next_block().unwrap(), offsets.next_block().unwrap());
        counts[usize::try_from(a * 32 + b).unwrap()] += 1;
    }
    assert_uniform(&counts);
}

#[test]
fn the_first_quarter_of_a_mapped_pass_is_spread_evenly() {
    let mut counts = vec![0; 64];
    for seed in 0..40 {
        let mut offsets = mapped(64 * 256, seed);
        for _ in 0..64 * 64 {
            counts[usize::try_from(offsets.next_block().unwrap() / 256).unwrap()] += 1;
        }
    }
    // Drawn without repeats, so closer to equal than independent draws.
    assert!(chi_square(&counts) < 63.0 + 5.0 * 126.0_f64.sqrt());
}

/// Checks drawn ranks against P(rank < k), each within five standard deviations.
fn assert_ranks(draw: impl Fn(f64) -> u64, seed: u64, cumulative: impl Fn(u64) -> f64, n: u64) {
    const DRAWS: u32 = 400_000;
    let mut rng = Rng::new(seed);
    let mut counts = vec![0_u32; usize::try_from(n).unwrap()];
    for _ in 0..DRAWS {
        counts[usize::try_from(draw(rng.unit())).unwrap()] += 1;
    }
    let mut below = 0;
    for k in 1..n {
        below += counts[usize::try_from(k - 1).unwrap()];
        let truth = cumulative(k);
        let share = f64::from(below) / f64::from(DRAWS);
        let allowed = 5.0 * (truth * (1.0 - truth) / f64::from(DRAWS)).sqrt() + 1e-6;
        assert!(
            (share - truth).abs() < allowed,
            "P(rank < {k}): {share} for {truth}"
        );
    }
}

#[test]
fn zipf_rank_frequencies_match_the_closed_form() {
    for (theta, seed) in [(1.2, 1), (0.6, 2), (0.99, 3)] {
        let n = 1000;
        let size = 1000.0_f64;
        let zipf = Zipf::new(blocks(n), theta, 1, None).unwrap();
        let zeta_n: f64 = (1..=1000).map(|i| f64::from(i).powf(-theta)).sum();
        let zeta_2 = 1.0 + 2.0_f64.powf(-theta);
        let eta = (1.0 - (2.0 / size).powf(1.0 - theta)) / (1.0 - zeta_2 / zeta_n);
        let cumulative = |k: u64| match k {
            1 => 1.0 / zeta_n,
            2 => zeta_2 / zeta_n,
            // The u at which 1 + floor(n·(η·u − η + 1)^α) passes k.
            k => 1.0 + ((k as f64 / size).powf(1.0 - theta) - 1.0) / eta,
        };
        assert_ranks(|u| zipf.rank(u), seed, cumulative, n);
    }
}

#[test]
fn pareto_rank_frequencies_match_the_closed_form() {
    for (h, seed) in [(0.2_f64, 4), (0.4, 5), (0.7, 6)] {
        let n = 1000;
        let pareto = Pareto::new(blocks(n), h, 1, None).unwrap();
        let exponent = h.ln() / (1.0 - h).ln();
        let cumulative = |k: u64| (k as f64 / 999.0).powf(1.0 / exponent).min(1.0);
        assert_ranks(|u| pareto.rank(u), seed, cumulative, n);
    }
}

#[test]
fn four_fifths_of_pareto_point_two_go_to_a_fifth_of_the_blocks() {
    let pareto = Pareto::new(blocks(1_000_000), 0.2, 1, None).unwrap();
    let mut rng = Rng::new(7);
    let inside = (0..100_000)
        .filter(|_| pareto.rank(rng.unit()) < 200_000)
        .count();
    assert!((79_000..81_000).contains(&inside), "{inside}");
}

#[test]
fn the_top_shares_of_zipf_agree_with_those_measured_from_fio() {
    let zipf = Zipf::new(blocks(1000), 1.2, 1, None).unwrap();
    let mut offsets = Skewed::new(OffsetDistribution::Zipf(zipf), Rng::new(8));
    let mut counts = vec![0_u32; 1000];
    for _ in 0..200_000 {
        counts[usize::try_from(offsets.next_block().unwrap()).unwrap()] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    for (count, fio) in counts.into_iter().zip([0.235, 0.104, 0.073, 0.053]) {
        let share = f64::from(count) / 200_000.0;
        assert!((share / fio - 1.0).abs() < 0.1, "{share} for {fio}");
    }
}

#[test]
fn a_share_of_random_operations_leaves_the_others_sequential() {
    let n = blocks(1_000_000);
    let jumps = Uniform::new(n, Rng::new(9));
    let mut offsets = PartlyRandom::new(jumps, n, 30, Rng::new(10));
    let mut last = offsets.next_block().unwrap();
    let mut followed = 0;
    for _ in 0..100_000 {
        let block = offsets.next_block().unwrap();
        followed += u32::from(block == last + 1);
        last = block;
    }
    assert!((69_000..71_000).contains(&followed), "{followed}");
}

#[test]
fn runs_follow_each_jump_and_end_with_the_region() {
    let n = blocks(1000);
    for (style, step) in [(RunStyle::Onwards, 1), (RunStyle::Identical, 0)] {
        let mut jumps = mapped(1000, 11);
        let mut runs = SequentialRuns::new(jumps.clone(), n, blocks(4), style);
        for _ in 0..100 {
            let jump = jumps.next_block().unwrap();
            if jump + 4 > 1000 {
                break;
            }
            for i in 0..4 {
                assert_eq!(runs.next_block(), Some(jump + i * step));
            }
        }
    }
}

/// The first 32 values of every generator, one line each.
fn golden() -> String {
    let streams = Streams::new(0x89, 3);
    let mut lines = golden_offsets(streams);
    lines.extend(golden_skewed(streams));
    lines.extend(golden_choices(streams));
    lines
        .into_iter()
        .fold(String::new(), |mut text, (name, values)| {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            writeln!(text, "{name}: {}", values.join(" ")).unwrap();
            text
        })
}

type Line = (&'static str, Vec<u64>);

fn take(mut offsets: impl Offsets) -> Vec<u64> {
    (0..32).map(|_| offsets.next_block().unwrap()).collect()
}

fn golden_offsets(streams: Streams) -> Vec<Line> {
    let n = blocks(1000);
    let mut rng = streams.offsets();
    let uniform = Uniform::new(n, streams.offsets());
    let mapped = |n| UniformMapped::new(blocks(n), streams.offsets()).unwrap();
    let runs = SequentialRuns::new(uniform.clone(), n, blocks(5), RunStyle::Onwards);
    let partly = PartlyRandom::new(uniform.clone(), n, 40, streams.jumps());
    vec![
        ("words", (0..32).map(|_| rng.next_u64()).collect()),
        ("uniform", take(uniform)),
        ("mapped", take(mapped(1000))),
        ("mapped-small", take(mapped(32))),
        ("register", take(Lfsr::new(n, streams.offsets()))),
        (
            "register-short",
            take(Lfsr::new(blocks(32), streams.offsets())),
        ),
        ("sequential-skip", take(Sequential::with_skip(n, 99))),
        ("backwards", take(Sequential::with_skip(n, -2))),
        ("runs", take(runs)),
        ("partly", take(partly)),
    ]
}

fn golden_skewed(streams: Streams) -> Vec<Line> {
    let n = blocks(1000);
    let zipf = |n, theta, center| {
        let zipf = Zipf::new(n, theta, streams.placement(), center).unwrap();
        OffsetDistribution::Zipf(zipf)
    };
    let pareto = Pareto::new(n, 0.2, streams.placement(), None).unwrap();
    let normal = Normal::new(n, 10.0, None).unwrap();
    let zones = [(60, 10), (30, 20), (10, 70)].map(|(accesses, length)| Zone { accesses, length });
    let zoned = Zoned::by_percent(n, &zones).unwrap();
    [
        ("zipf:0.8", zipf(n, 0.8, None)),
        ("zipf:1.2", zipf(n, 1.2, None)),
        ("zipf:1.1:0.5-large", zipf(blocks(1 << 40), 1.1, Some(0.5))),
        ("pareto:0.2", OffsetDistribution::Pareto(pareto)),
        ("normal:10", OffsetDistribution::Normal(normal)),
        ("zoned", OffsetDistribution::Zoned(zoned)),
    ]
    .map(|(name, shape)| (name, take(Skewed::new(shape, streams.offsets()))))
    .to_vec()
}

fn golden_choices(streams: Streams) -> Vec<Line> {
    let mut mix = KindMix::new([70, 20, 10], streams.mix()).unwrap();
    let mut lines = vec![("mix", (0..32).map(|_| mix.next_kind() as u64).collect())];
    for (name, rule) in size_rules() {
        let mut sizes = SizeDraw::new([rule.clone(), rule.clone(), rule], streams.sizes()).unwrap();
        let choose = |_| sizes.choose(DataKind::Read, u64::MAX).unwrap();
        lines.push((name, (0..32).map(choose).collect()));
    }
    for (name, rule) in payload_rules() {
        let mut payload = Payload::new(rule, streams.payload()).unwrap();
        let mut buffer = vec![0; 2048];
        payload.fill(&mut buffer);
        payload.prepare(&mut buffer);
        let (words, _) = buffer.as_chunks::<8>();
        let some = words
            .iter()
            .step_by(8)
            .map(|word| u64::from_le_bytes(*word));
        lines.push((name, some.collect()));
    }
    let rate = Rate::Operations(blocks(300_000));
    let by_bytes = Rate::Bytes(blocks(77_777_777));
    for (name, mut arrivals) in [
        ("even", Arrivals::Even(Even::new(rate))),
        ("even-bytes", Arrivals::Even(Even::new(by_bytes))),
        (
            "poisson",
            Arrivals::Poisson(Poisson::new(rate, streams.arrivals())),
        ),
    ] {
        let starts = (1..33).map(|i| arrivals.next_start_ns(512 * i));
        lines.push((name, starts.collect()));
    }
    lines
}

fn size_rules() -> [(&'static str, SizeRule); 3] {
    let range = |unaligned| SizeRule::Range {
        min_bytes: 4096,
        max_bytes: 65_536,
        unaligned,
    };
    [
        ("range", range(false)),
        ("range-unaligned", range(true)),
        (
            "split",
            SizeRule::Split(vec![(512, 10), (4096, 50), (65_536, 40)]),
        ),
    ]
}

fn payload_rules() -> [(&'static str, PayloadRule); 3] {
    let compressible = PayloadRule {
        content: PayloadContent::Pattern(Box::from(*b"weir")),
        compress_percent: 50,
        ..PayloadRule::default()
    };
    let repeating = PayloadRule {
        dedupe_percent: 50,
        unit_bytes: 512,
        ..PayloadRule::default()
    };
    [
        ("payload", PayloadRule::default()),
        ("payload-compressible", compressible),
        ("payload-repeating", repeating),
    ]
}

/// `WEIR_BLESS=1` writes the file: only for a generator that is new.
#[test]
fn sequences_are_those_of_the_first_version() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/generate.txt");
    let now = golden();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let pinned = std::fs::read_to_string(&file).unwrap();
    for (now, pinned) in now.lines().zip(pinned.lines()) {
        assert_eq!(now, pinned);
    }
    assert_eq!(now.lines().count(), pinned.lines().count());
}

fn inside(mut offsets: impl Offsets, n: u64) -> bool {
    (0..100).all(|_| offsets.next_block().is_none_or(|block| block < n))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_region_is_passed_exactly_once(n in 1_u64..20_000, seed: u64) {
        assert_each_block_once_per_pass(mapped(n, seed), n);
        assert_each_block_once_per_pass(Lfsr::new(blocks(n), Rng::new(seed)), n);
        assert_each_block_once_per_pass(Sequential::new(blocks(n)), n);
    }

    #[test]
    fn a_restart_in_mid_pass_begins_a_whole_pass(n in 1_u64..5_000, seed: u64, part in 0_u64..5_000) {
        let (mut map, mut register) = (mapped(n, seed), Lfsr::new(blocks(n), Rng::new(seed)));
        for _ in 0..part.min(n) {
            map.next_block();
            register.next_block();
        }
        map.restart();
        register.restart();
        assert_each_block_once_per_pass(map, n);
        assert_each_block_once_per_pass(register, n);
    }

    #[test]
    fn draws_stay_in_the_region(
        n in 1_u64..=u64::MAX,
        seed: u64,
        theta in 0.01_f64..3.0,
        h in 0.01_f64..0.99,
        deviation in 0.0_f64..100.0,
        center in proptest::option::of(0.0_f64..=1.0),
        skip: i64,
        run in 1_u64..10,
    ) {
        prop_assume!((theta - 1.0).abs() > 1e-9);
        let size = blocks(n);
        let rng = || Rng::new(seed);
        let skewed = |distribution| inside(Skewed::new(distribution, rng()), n);
        prop_assert!(skewed(OffsetDistribution::Zipf(Zipf::new(size, theta, seed, center).unwrap())));
        prop_assert!(skewed(OffsetDistribution::Pareto(Pareto::new(size, h, seed, center).unwrap())));
        prop_assert!(skewed(OffsetDistribution::Normal(Normal::new(size, deviation, center).unwrap())));
        let zones = [Zone { accesses: 30, length: 20 }, Zone { accesses: 70, length: 80 }];
        prop_assert!(skewed(OffsetDistribution::Zoned(Zoned::by_blocks(size, &zones).unwrap())));
        if n >= 5 {
            prop_assert!(skewed(OffsetDistribution::Zoned(Zoned::by_percent(size, &zones).unwrap())));
        }
        prop_assert!(inside(Sequential::with_skip(size, skip), n));
        prop_assert!(inside(Lfsr::new(size, rng()), n));
        let uniform = Uniform::new(size, rng());
        let runs = SequentialRuns::new(uniform.clone(), size, blocks(run), RunStyle::Onwards);
        prop_assert!(inside(runs, n));
        prop_assert!(inside(PartlyRandom::new(uniform, size, 50, rng()), n));
    }

    #[test]
    fn a_cursor_with_any_skip_and_sizes_stays_in_the_region(
        region in 1_u64..1_000_000,
        skip: i64,
        near in -10_000_i64..10_000,
        sizes in proptest::collection::vec(1_u64..10_000, 1..50),
    ) {
        let smallest = blocks(*sizes.iter().min().unwrap());
        for skip in [skip, near] {
            let mut cursor = Cursor::new(region, skip, smallest);
            for &size in &sizes {
                let size = size.min(cursor.room_bytes());
                if size < smallest.get() {
                    break;
                }
                prop_assert!(cursor.advance(size) + size <= region);
            }
        }
    }

    #[test]
    fn sizes_fit_the_room_and_the_rule(room in 0_u64..200_000, seed: u64) {
        for (_, rule) in size_rules() {
            let mut sizes =
                SizeDraw::new([rule.clone(), rule.clone(), rule.clone()], Rng::new(seed)).unwrap();
            for _ in 0..50 {
                match sizes.choose(DataKind::Write, room) {
                    Some(bytes) => prop_assert!(
                        bytes <= room && (rule.min_bytes()..=rule.max_bytes()).contains(&bytes)
                    ),
                    None => prop_assert!(room < rule.min_bytes()),
                }
            }
        }
    }

    #[test]
    fn intended_starts_never_go_back(rate in 1_u64..1_000_000_000, seed: u64) {
        for unit in [Rate::Operations(blocks(rate)), Rate::Bytes(blocks(rate))] {
            for mut arrivals in [
                Arrivals::Even(Even::new(unit)),
                Arrivals::Poisson(Poisson::new(unit, Rng::new(seed))),
            ] {
                let mut last = 0;
                for bytes in 1..200 {
                    let start = arrivals.next_start_ns(bytes * 512);
                    prop_assert!(start >= last);
                    last = start;
                }
            }
        }
    }
}

/// The first operations of a source, all of them where they are fewer.
fn drawn(mut source: impl Source<Op = BlockOp>) -> Vec<BlockOp> {
    let next = |_| source.next(0);
    let without_memory = |op: BlockOp| BlockOp {
        buffer: BlockOp::default().buffer,
        ..op
    };
    (0..3000).map_while(next).map(without_memory).collect()
}

#[test]
fn the_sources_of_the_commonest_workloads_draw_what_the_general_one_draws() {
    let limits = [
        (u64::MAX, 2500),
        (1_000_000, u64::MAX),
        (u64::MAX, u64::MAX),
    ];
    for (random, map) in [(false, true), (true, true), (true, false)] {
        for mix in [(100, 0, 0), (0, 100, 0), (0, 0, 100)] {
            for (bytes, operations) in limits {
                let mut workload = BlockWorkload::default();
                workload.access.random = random;
                workload.access.map = map;
                workload.mix = Mix {
                    read_percent: mix.0,
                    write_percent: mix.1,
                    trim_percent: mix.2,
                    trim_then_write: false,
                };
                // Several passes; the last block of each is too short.
                let extents = [Extent {
                    start: 4096,
                    length: 4096 * 700 + 2048,
                }];
                let recipe = || Recipe {
                    workload: &workload,
                    extents: &extents,
                    seed: 3,
                    worker: 1,
                    limits: WorkLimits {
                        bytes,
                        operations,
                        pass_bytes: None,
                    },
                    rates: None,
                    priorities: None,
                    findings: None,
                    buffers: SlotBuffers::new(
                        AlignedBuf::new(&BufferSpec::private(Bytes(4096))).unwrap(),
                        4096,
                        None,
                        false,
                    ),
                    passes: BetweenPasses::default(),
                    verification: None,
                    recorded: None,
                };
                let own = match build(recipe()).unwrap() {
                    AnySource::Sequential(source) => drawn(source),
                    AnySource::Mapped(source) => drawn(source),
                    AnySource::Uniform(source) => drawn(source),
                    AnySource::Varied(source) => panic!("{source:?} is general"),
                };
                let VariedSource::General(general) = build_varied(recipe()).unwrap() else {
                    panic!("nothing is verified")
                };
                assert_eq!(own, drawn(*general), "{random} {map} {mix:?} {bytes}");
                assert!(!own.is_empty());
            }
        }
    }
}

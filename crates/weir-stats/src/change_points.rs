//! Change points of a series of runs: a test for each place, not an eye for steps.
//!
//! In: one value per run, in order of time. Out: the runs at which a new level begins, with how far
//! it lies from the one before. Not here: which runs count, and what changed there.
//!
//! The statistic is the energy distance of the runs before and after a place, the largest over all
//! places and all ends of the new level, so that a level which ends again is found as well. How often
//! chance reaches as much is counted over permutations of the runs. Levels are found one after the
//! other, on both sides of those found before, and each is tested again between its neighbours.
//! Everything is seeded by the values: the same series has the same change points everywhere.

use crate::estimate::Estimate;
use crate::random::Random;

/// Fewer runs have no change points.
pub const FEWEST_RUNS: usize = 8;
/// Runs of a level, at least: one odd run is none.
const SHORTEST_LEVEL: usize = 3;
/// Permutations that the found place is held against.
const PERMUTATIONS: u32 = 999;
/// Largest number of permutations that may reach as much where the place is a change: p ≤ 0.01.
const MOST_REACHING: u32 = 9;
/// Neighbouring runs that are more alike than this are no independent samples.
const MOST_CORRELATED: f64 = 0.2;
/// From so many runs on such series are permuted in blocks.
const RUNS_FOR_BLOCKS: usize = 40;
const BLOCK: usize = 3;
/// A new level is beyond so many median deviations of the old one.
const DEVIATIONS: f64 = 2.0;
const RESAMPLES: usize = 2000;

/// The first run of a new level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Its place in the series.
    pub index: usize,
    /// Median of the level before.
    pub before: f64,
    /// Median of the new level.
    pub after: f64,
    /// The new median over the old one, with its 95 % interval.
    pub ratio: Estimate,
    /// Neighbouring runs are alike and too few to judge by blocks of them: more runs may show it to
    /// be none.
    pub is_tentative: bool,
}

/// The change points of a series of positive values, in order; levels that differ by less than
/// `least_change` of themselves count as one.
pub fn change_points(values: &[f64], least_change: f64) -> Vec<ChangePoint> {
    let is_usable = |value: &f64| value.is_finite() && *value > 0.0;
    if values.len() < FEWEST_RUNS || !values.iter().all(is_usable) {
        return Vec::new();
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mut search = Search::new(&logarithms, 1);
    let mut places = search.places();
    let mut is_tentative = false;
    if correlation(&logarithms, &places) > MOST_CORRELATED {
        is_tentative = values.len() < RUNS_FOR_BLOCKS;
        if !is_tentative {
            search = Search::new(&logarithms, BLOCK);
            places = search.places();
        }
    }
    levels(values, &places, least_change)
        .into_iter()
        .map(|point| ChangePoint {
            is_tentative,
            ..point
        })
        .collect()
}

/// The search of one series.
struct Search<'a> {
    logarithms: &'a [f64],
    random: Random,
    block: usize,
    /// 1 / (m over 2), by m.
    pairs: Vec<f64>,
}

/// The place of a segment where the statistic is largest.
#[derive(Clone, Copy)]
struct Found {
    place: usize,
    statistic: f64,
}

impl<'a> Search<'a> {
    fn new(logarithms: &'a [f64], block: usize) -> Self {
        let pairs = (0..=logarithms.len()).map(|m| {
            let m = m as f64;
            2.0 / (m * (m - 1.0))
        });
        Self {
            logarithms,
            random: Random::new(seed(logarithms)),
            block,
            pairs: pairs.collect(),
        }
    }

    /// All places, each tested between its neighbours.
    fn places(&mut self) -> Vec<usize> {
        let mut places = Vec::new();
        self.divide(0, self.logarithms.len(), &mut places);
        places.sort_unstable();
        self.found_again(places)
    }

    fn divide(&mut self, start: usize, end: usize, places: &mut Vec<usize>) {
        if let Some(place) = self.test(start, end) {
            places.push(place);
            self.divide(start, place, places);
            self.divide(place, end, places);
        }
    }

    /// Each place was found in a segment that held others; those stay that are found without them.
    fn found_again(&mut self, mut places: Vec<usize>) -> Vec<usize> {
        let mut at = 0;
        while at < places.len() && places.len() > 1 {
            let start = at.checked_sub(1).map_or(0, |before| places[before]);
            let end = places.get(at + 1).copied();
            match self.test(start, end.unwrap_or(self.logarithms.len())) {
                Some(place) => {
                    places[at] = place;
                    at += 1;
                }
                None => {
                    places.remove(at);
                }
            }
        }
        places
    }

    /// The place of a segment at which a level begins, where chance seldom makes as much of one.
    fn test(&mut self, start: usize, end: usize) -> Option<usize> {
        let segment = &self.logarithms[start..end];
        let mut drawn = Vec::with_capacity(segment.len());
        let mut sums = Vec::new();
        let found = largest(segment, &self.pairs, &mut sums)?;
        let mut reaching = 0;
        for _ in 0..PERMUTATIONS {
            self.permute(segment, &mut drawn);
            let by_chance = largest(&drawn, &self.pairs, &mut sums)?;
            // A permutation of equal sums adds up to them but for rounding.
            if by_chance.statistic >= found.statistic * (1.0 - 1e-12) {
                reaching += 1;
                if reaching > MOST_REACHING {
                    return None;
                }
            }
        }
        Some(start + found.place)
    }

    /// Shuffles values, or blocks of neighbours that begin anywhere on the circle of them. Each time
    /// from the series itself: blocks of what was shuffled before have other neighbours in them.
    fn permute(&mut self, values: &[f64], drawn: &mut Vec<f64>) {
        drawn.clear();
        drawn.extend_from_slice(values);
        let random = &mut self.random;
        if self.block == 1 {
            shuffle(drawn, random);
            return;
        }
        drawn.rotate_left(random.below(values.len()));
        let mut blocks: Vec<&[f64]> = drawn.chunks(self.block).collect();
        shuffle(&mut blocks, random);
        let shuffled = blocks.concat();
        *drawn = shuffled;
    }
}

/// Every order is as likely as every other.
fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last + 1));
    }
}

/// The largest energy statistic over all places of a new level and all its ends. `sums` is room for
/// what is added up on the way.
fn largest(values: &[f64], pairs: &[f64], sums: &mut Vec<f64>) -> Option<Found> {
    let runs = values.len();
    let mut best: Option<Found> = None;
    // What lies apart within [t, k), for every t; and of that with t = 0 for every k.
    sums.clear();
    sums.resize(runs * 2 + 1, 0.0);
    let (within, whole) = sums.split_at_mut(runs);
    for (last, value) in values.iter().enumerate() {
        let mut apart = 0.0;
        for place in (0..last).rev() {
            apart += (values[place] - value).abs();
            within[place] += apart;
        }
        let end = last + 1;
        whole[end] = within[0];
        for place in SHORTEST_LEVEL..(end + 1).saturating_sub(SHORTEST_LEVEL) {
            let (m, n) = (place as f64, (end - place) as f64);
            let (before, after) = (whole[place], within[place]);
            let between = whole[end] - before - after;
            let distance =
                2.0 * between / (m * n) - before * pairs[place] - after * pairs[end - place];
            let statistic = distance * m * n / (m + n);
            if best.is_none_or(|best| statistic > best.statistic) {
                best = Some(Found { place, statistic });
            }
        }
    }
    best
}

/// One number for each series.
fn seed(values: &[f64]) -> u64 {
    let mix = |hash: u64, value: &f64| {
        (hash ^ value.to_bits())
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(29)
    };
    values.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Correlation of neighbours within their levels.
fn correlation(logarithms: &[f64], places: &[usize]) -> f64 {
    let mut residuals = Vec::with_capacity(logarithms.len());
    for (start, end) in segments(places, logarithms.len()) {
        let level = &logarithms[start..end];
        let mean = level.iter().sum::<f64>() / level.len() as f64;
        residuals.extend(level.iter().map(|value| value - mean));
    }
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let found = products / squares;
    // What the mean of a level takes away, each time.
    let levels = (places.len() + 1) as f64;
    found + levels * (1.0 + 3.0 * found) / logarithms.len() as f64
}

/// From each place to the next.
fn segments(places: &[usize], runs: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let starts = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain(std::iter::once(runs));
    starts.zip(ends)
}

/// The levels that these places begin. Where two differ too little they become one, and what follows
/// is held against both together.
fn levels(values: &[f64], places: &[usize], least_change: f64) -> Vec<ChangePoint> {
    let mut points = Vec::new();
    let mut start = 0;
    for (at, place) in places.iter().copied().enumerate() {
        let end = places.get(at + 1).copied().unwrap_or(values.len());
        let (before, after) = (&values[start..place], &values[place..end]);
        let (old, new) = (median(before), median(after));
        let apart: Vec<f64> = before.iter().map(|value| (value - old).abs()).collect();
        let least = least_change.max(DEVIATIONS * median(&apart) / old);
        if (new / old - 1.0).abs() < least {
            continue;
        }
        points.push(ChangePoint {
            index: place,
            before: old,
            after: new,
            ratio: ratio(before, after),
            is_tentative: false,
        });
        start = place;
    }
    points
}

/// The ratio of the medians, with a percentile bootstrap of both sides.
fn ratio(before: &[f64], after: &[f64]) -> Estimate {
    let mut random = Random::new(seed(before) ^ seed(after));
    let mut draw = |from: &[f64]| {
        let drawn: Vec<f64> = from
            .iter()
            .map(|_| from[random.below(from.len())])
            .collect();
        median(&drawn)
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| draw(after) / draw(before)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    Estimate::within(
        median(after) / median(before),
        ratios[tail - 1],
        ratios[RESAMPLES - tail],
    )
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        None => f64::NAN,
        Some(upper) if sorted.len() % 2 == 1 => *upper,
        Some(upper) => f64::midpoint(sorted[middle - 1], *upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve uniform numbers add up to as good as a normal one.
    struct Noise(Random);

    impl Noise {
        fn new(seed: u64) -> Self {
            Self(Random::new(seed))
        }

        fn normal(&mut self) -> f64 {
            let sum: f64 = (0..12)
                .map(|_| self.0.below(1 << 30) as f64 / f64::from(1 << 30))
                .sum();
            sum - 6.0
        }

        /// These levels, one value each, with noise of 1 %.
        fn around(&mut self, levels: &[(usize, f64)]) -> Vec<f64> {
            let each = levels
                .iter()
                .flat_map(|(runs, level)| std::iter::repeat_n(*level, *runs));
            each.map(|level| level * (0.01 * self.normal()).exp())
                .collect()
        }
    }

    fn indices(values: &[f64]) -> Vec<usize> {
        let points = change_points(values, 0.01);
        points.iter().map(|point| point.index).collect()
    }

    #[test]
    fn a_drop_of_five_percent_is_one_point_at_its_first_run() {
        for seed in 1..=20 {
            let values = Noise::new(seed).around(&[(30, 100.0), (10, 95.0)]);
            let points = change_points(&values, 0.01);
            let [point] = points[..] else {
                panic!("seed {seed}: {points:?}")
            };
            assert!((29..=31).contains(&point.index), "seed {seed}: {point:?}");
            assert!((point.ratio.value - 0.95).abs() < 0.015, "{point:?}");
            let (low, high) = (point.ratio.low.unwrap(), point.ratio.high.unwrap());
            assert!(low < point.ratio.value && point.ratio.value < high && high < 1.0);
        }
    }

    #[test]
    fn one_odd_run_is_no_level() {
        for seed in 1..=20 {
            let values = Noise::new(seed).around(&[(25, 100.0), (1, 70.0), (14, 100.0)]);
            assert_eq!(indices(&values), [0; 0], "seed {seed}");
        }
    }

    #[test]
    fn noise_alone_seldom_has_a_level() {
        let mut alarms = 0;
        for seed in 1..=300 {
            let runs = [10, 20, 40][seed % 3];
            let values = Noise::new(seed as u64).around(&[(runs, 100.0)]);
            alarms += usize::from(!indices(&values).is_empty());
        }
        assert!(alarms <= 6, "{alarms} of 300");
    }

    #[test]
    fn three_bad_runs_are_found_most_of_the_time_and_five_always() {
        let found = |bad: usize| {
            let is_found = |seed: &u64| {
                let values = Noise::new(*seed).around(&[(20 - bad, 100.0), (bad, 95.0)]);
                !indices(&values).is_empty()
            };
            (1..=100).filter(is_found).count()
        };
        let (three, five) = (found(3), found(5));
        assert!(three >= 78 && five >= 98, "{three} {five}");
    }

    #[test]
    fn a_level_that_ends_again_has_two_points() {
        for seed in 1..=10 {
            let values = Noise::new(seed).around(&[(20, 100.0), (8, 92.0), (20, 100.0)]);
            let found = indices(&values);
            let [first, second] = found[..] else {
                panic!("seed {seed}: {found:?}")
            };
            assert!((19..=21).contains(&first) && (27..=29).contains(&second));
        }
    }

    #[test]
    fn changes_that_nobody_asked_for_are_hidden() {
        let values = Noise::new(3).around(&[(30, 100.0), (30, 97.0)]);
        let found = indices(&values);
        assert!(
            found.len() == 1 && (29..=31).contains(&found[0]),
            "{found:?}"
        );
        assert_eq!(change_points(&values, 0.05), []);
    }

    /// A series of `runs` values, each like the one before, the last of them at another level.
    fn alike(seed: u64, runs: usize, (last, level): (usize, f64)) -> Vec<f64> {
        let mut noise = Noise::new(seed);
        let mut deviation = 0.0;
        let value = |run: usize| {
            deviation = 0.4 * deviation + 0.01 * noise.normal();
            let level = if run < runs - last { 100.0 } else { level };
            level * f64::exp(deviation)
        };
        (0..runs).map(value).collect()
    }

    #[test]
    fn runs_like_their_neighbours_are_judged_by_blocks() {
        let found = |search: &dyn Fn(&[f64]) -> Vec<usize>, last| {
            let series = (1..=50).map(|seed| alike(seed, 60, last));
            series.filter(|values| !search(values).is_empty()).count()
        };
        let in_blocks = |block: usize| {
            move |values: &[f64]| {
                let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
                Search::new(&logarithms, block).places()
            }
        };
        let (alone, blocks) = (
            found(&in_blocks(1), (0, 0.0)),
            found(&in_blocks(BLOCK), (0, 0.0)),
        );
        assert!(alone >= 8 && blocks <= 3, "{alone} and {blocks} of 50");
        // Points that are none take some of the likeness with them, so that not all are tested again.
        let chosen = found(&indices, (0, 0.0));
        assert!(chosen <= 3, "{chosen} of 50");
        let eight = found(&indices, (8, 95.0));
        assert!(eight >= 47, "{eight} of 50");
    }

    #[test]
    fn few_runs_like_their_neighbours_are_marked() {
        let points = (1..=100).flat_map(|seed| change_points(&alike(seed, 30, (0, 0.0)), 0.01));
        assert!(points.filter(|point| point.is_tentative).count() > 0);
    }

    #[test]
    fn the_statistic_is_that_of_its_definition() {
        let values = [1.0, 1.5, 1.2, 3.0, 3.5, 2.8, 1.1, 1.3];
        let apart = |x: &[f64], y: &[f64]| -> f64 {
            let each = x.iter().flat_map(|a| y.iter().map(move |b| (a - b).abs()));
            each.sum()
        };
        let mut best = (0, f64::NEG_INFINITY);
        for end in 6..=values.len() {
            for place in 3..=end - 3 {
                let (x, y) = (&values[..place], &values[place..end]);
                let (m, n) = (x.len() as f64, y.len() as f64);
                let within = |z: &[f64], k: f64| apart(z, z) / 2.0 / (k * (k - 1.0) / 2.0);
                let distance = 2.0 / (m * n) * apart(x, y) - within(x, m) - within(y, n);
                let statistic = m * n / (m + n) * distance;
                if statistic > best.1 {
                    best = (place, statistic);
                }
            }
        }
        let search = Search::new(&values, 1);
        let found = largest(&values, &search.pairs, &mut Vec::new()).unwrap();
        assert_eq!(found.place, best.0);
        assert!((found.statistic - best.1).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_series_of_rates_has_no_points() {
        assert_eq!(change_points(&[1.0; 7], 0.01), []);
        assert_eq!(change_points(&[1.0; 100], 0.01), []);
        let mut values = vec![1.0; 20];
        values[3] = 0.0;
        assert_eq!(change_points(&values, 0.01), []);
        values[3] = f64::NAN;
        assert_eq!(change_points(&values, 0.01), []);
    }
}

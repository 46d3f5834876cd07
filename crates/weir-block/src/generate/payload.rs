//! Payload: what the written bytes are.
//!
//! In: a rule and a random stream. Out: filled buffers. Content depends on the
//! rule, the seed and the number of fills before, never on where it goes; data
//! that is to be verified has its own content elsewhere. Random bytes are
//! little-endian words of a folded counter (as in Wang Yi's wyrand), each unit
//! of content from its own start, so that an earlier unit can be written again
//! without keeping it. Cost: example `draw_cost`.

use weir_run::generate::rng::{GOLDEN, Rng, mix64};

use super::GenerateError;

/// Largest distance of a repeated unit, in fresh units: near enough that the original is still
/// stored.
const RECENT: u64 = 1024;
/// First unit of the sets that payloads share.
const SHARED_SET: u64 = 0x5eed_0f5e_75a2_e5ed;
/// Scrambling touches every piece of this size.
const SECTOR: usize = 512;

/// Content of buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadContent {
    /// Zeros.
    Zero,
    /// These bytes over and over, from the start of the buffer. With a share of
    /// compressible data, that share only, and random bytes before it.
    Pattern(Box<[u8]>),
    /// Random bytes, with zeros for the compressible share.
    Random,
}

/// Rule by which buffers are filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadRule {
    /// Content of the buffers.
    pub content: PayloadContent,
    /// New content before every write; implied by the two percentages below.
    pub refill: bool,
    /// A few random bytes into every 512 before every write, so that equal
    /// buffers do not store as one. Without effect on zeros and patterns, and
    /// with refilling.
    pub scramble: bool,
    /// This share of each chunk is zeros or pattern, at its end.
    pub compress_percent: u8,
    /// Size of such a chunk; 0 is the whole unit.
    pub compress_chunk_bytes: usize,
    /// This share of the units repeats one of the last 1024 fresh ones.
    pub dedupe_percent: u8,
    /// Repeated units come from a set of so many that no fresh one belongs to; 0: from the last
    /// fresh ones.
    pub dedupe_set_units: u64,
    /// The set is that of every payload which shares it.
    pub dedupe_set_is_shared: bool,
    /// Size of a unit of content, normally the block; 0 is the whole buffer.
    pub unit_bytes: usize,
}

impl Default for PayloadRule {
    /// Random once, then scrambled.
    fn default() -> Self {
        Self {
            content: PayloadContent::Random,
            refill: false,
            scramble: true,
            compress_percent: 0,
            compress_chunk_bytes: SECTOR,
            dedupe_percent: 0,
            dedupe_set_units: 0,
            dedupe_set_is_shared: false,
            unit_bytes: 0,
        }
    }
}

/// Work on a buffer before each write is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Scramble,
    Refill,
}

/// Fills buffers by a rule.
#[derive(Debug, Clone)]
pub struct Payload {
    rule: PayloadRule,
    before: Before,
    unit_key: u64,
    fresh_units: u64,
    scramble_state: u64,
    rng: Rng,
}

impl Payload {
    /// Content by `rule`, from the stream `rng`.
    ///
    /// # Errors
    /// [`GenerateError::Percent`] for a percentage above 100.
    pub fn new(rule: PayloadRule, mut rng: Rng) -> Result<Self, GenerateError> {
        for (what, percent) in [
            ("compressible share", rule.compress_percent),
            ("repeated share", rule.dedupe_percent),
        ] {
            if percent > 100 {
                return Err(GenerateError::Percent { what, percent });
            }
        }
        let varied = match &rule.content {
            PayloadContent::Zero => false,
            PayloadContent::Pattern(bytes) => bytes.is_empty() || rule.compress_percent > 0,
            PayloadContent::Random => true,
        };
        let shaped = rule.compress_percent > 0 || rule.dedupe_percent > 0;
        let before = if varied && (rule.refill || shaped) {
            Before::Refill
        } else if varied && rule.scramble {
            Before::Scramble
        } else {
            Before::Nothing
        };
        Ok(Self {
            before,
            unit_key: rng.next_u64(),
            fresh_units: 0,
            rule,
            scramble_state: rng.next_u64(),
            rng,
        })
    }

    /// Fills a buffer whole: before the run, or whenever new content is wanted.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        if self.rule.content == PayloadContent::Zero {
            buffer.fill(0);
            return;
        }
        let unit = whole_if_zero(self.rule.unit_bytes, buffer.len());
        for part in buffer.chunks_mut(unit) {
            self.fill_unit(part);
        }
    }

    /// Prepares a buffer that [`fill`](Self::fill) has filled for its next write.
    #[inline(always)]
    pub fn prepare(&mut self, buffer: &mut [u8]) {
        match self.before {
            Before::Nothing => {}
            Before::Scramble => self.scramble(buffer),
            Before::Refill => self.fill(buffer),
        }
    }

    /// True if [`prepare`](Self::prepare) changes anything.
    pub fn changes_every_write(&self) -> bool {
        self.before != Before::Nothing
    }

    fn fill_unit(&mut self, unit: &mut [u8]) {
        let filler: &[u8] = match &self.rule.content {
            PayloadContent::Pattern(bytes) => bytes,
            PayloadContent::Zero | PayloadContent::Random => &[],
        };
        if !filler.is_empty() && self.rule.compress_percent == 0 {
            repeat(filler, unit);
            return;
        }
        let percent = usize::from(self.rule.compress_percent);
        let dedupe = u64::from(self.rule.dedupe_percent);
        let mut number = self.fresh_units;
        if dedupe > 0 && number > 0 && self.rng.below(100) < dedupe {
            number = match self.rule.dedupe_set_units {
                0 => number - 1 - self.rng.below(number.min(RECENT)),
                // The first units that there were are the set.
                set => self.rng.below(set.min(number)),
            };
        } else {
            self.fresh_units += 1;
        }
        let is_shared = self.rule.dedupe_set_is_shared && number < self.rule.dedupe_set_units;
        let key = if is_shared { SHARED_SET } else { self.unit_key };
        let start = key.wrapping_add(number.wrapping_mul(GOLDEN));
        let mut words = Words::new(mix64(start));
        let chunk = whole_if_zero(self.rule.compress_chunk_bytes, unit.len());
        if percent == 0 {
            random(&mut words, unit);
            return;
        }
        for part in unit.chunks_mut(chunk) {
            let fill = part.len() * percent / 100;
            let (head, tail) = part.split_at_mut(part.len() - fill);
            random(&mut words, head);
            if filler.is_empty() {
                tail.fill(0);
            } else {
                repeat(filler, tail);
            }
        }
    }

    /// Puts a word that never comes twice into each sector, at a place that the
    /// word itself chooses.
    #[inline]
    fn scramble(&mut self, buffer: &mut [u8]) {
        let mut state = self.scramble_state;
        let mut word = || {
            state = state.wrapping_add(GOLDEN);
            mix64(state)
        };
        let (sectors, rest) = buffer.as_chunks_mut::<SECTOR>();
        for sector in sectors {
            let word = word();
            let (slots, _) = sector.as_chunks_mut::<8>();
            slots[(word >> 58) as usize] = word.to_le_bytes();
        }
        for (byte, new) in rest.iter_mut().zip(word().to_le_bytes()) {
            *byte = new;
        }
        self.scramble_state = state;
    }
}

/// Words for filling: a counter times itself in disguise, the halves of the
/// product folded. One multiplication per word, none waiting for another.
pub(crate) struct Words {
    state: u64,
}

impl Words {
    /// Starts from a mixed key: neighbouring keys share words.
    pub(crate) const fn new(key: u64) -> Self {
        Self { state: key }
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves of a 128-bit product"
    )]
    const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0xa076_1d64_78bd_642f);
        let other = self.state ^ 0xe703_7ed1_a0b4_28db;
        let product = self.state as u128 * other as u128;
        (product >> 64) as u64 ^ product as u64
    }
}

/// Random bytes: whole words, and the low bytes of one more for a rest.
pub(crate) fn random(words: &mut Words, buffer: &mut [u8]) {
    let (whole, rest) = buffer.as_chunks_mut::<8>();
    for place in whole {
        *place = words.next_u64().to_le_bytes();
    }
    if !rest.is_empty() {
        let last = words.next_u64().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// The bytes of `pattern` (not empty) over and over.
fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    let first = pattern.len().min(buffer.len());
    buffer[..first].copy_from_slice(&pattern[..first]);
    extend(buffer, first);
}

/// Repeats the first `done` bytes (at least one) through the buffer.
pub(crate) fn extend(buffer: &mut [u8], mut done: usize) {
    // Each round doubles what is there; a multiple of the pattern stays in step.
    while done < buffer.len() {
        let more = done.min(buffer.len() - done);
        buffer.copy_within(..more, done);
        done += more;
    }
}

const fn whole_if_zero(bytes: usize, whole: usize) -> usize {
    // A piece has at least one byte, even of an empty buffer.
    match (bytes, whole) {
        (0, 0) => 1,
        (0, whole) => whole,
        (bytes, _) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn payload(rule: PayloadRule) -> Payload {
        Payload::new(rule, Rng::new(6)).unwrap()
    }

    #[test]
    fn zeros_and_patterns_stay_as_they_are() {
        let mut buffer = vec![1_u8; 1000];
        let mut zeros = payload(PayloadRule {
            content: PayloadContent::Zero,
            refill: true,
            ..PayloadRule::default()
        });
        zeros.fill(&mut buffer);
        assert!(buffer.iter().all(|&byte| byte == 0) && !zeros.changes_every_write());
        let mut pattern = payload(PayloadRule {
            content: PayloadContent::Pattern(Box::from(*b"abc")),
            ..PayloadRule::default()
        });
        pattern.fill(&mut buffer);
        pattern.prepare(&mut buffer);
        assert!(
            buffer
                .iter()
                .zip(b"abc".iter().cycle())
                .all(|(a, b)| a == b)
        );
        let mut short = [0; 2];
        pattern.fill(&mut short);
        assert_eq!(&short, b"ab");
    }

    #[test]
    fn random_content_uses_every_byte_value_equally() {
        let mut buffer = vec![0_u8; 1 << 20];
        payload(PayloadRule::default()).fill(&mut buffer);
        let mut counts = [0_u32; 256];
        for byte in buffer {
            counts[usize::from(byte)] += 1;
        }
        let expected = f64::from(1 << 12);
        let chi: f64 = counts
            .iter()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        assert!((160.0..370.0).contains(&chi), "{chi}");
    }

    #[test]
    fn scrambled_sectors_never_repeat() {
        let mut payload = payload(PayloadRule::default());
        let mut buffer = vec![0_u8; 8 * 512];
        payload.fill(&mut buffer);
        let mut seen = HashSet::new();
        for _ in 0..200 {
            payload.prepare(&mut buffer);
            for sector in buffer.chunks(512) {
                assert!(seen.insert(sector.to_vec()));
            }
        }
    }

    #[test]
    fn buffers_without_a_whole_sector_are_scrambled_too() {
        let mut payload = payload(PayloadRule::default());
        for len in [0, 1, 5, 100, 511, 513] {
            let mut buffer = vec![0; len];
            payload.fill(&mut buffer);
            let before = buffer.clone();
            payload.prepare(&mut buffer);
            assert!(len < 5 || before != buffer);
        }
    }

    #[test]
    fn the_compressible_share_of_each_chunk_is_filler() {
        let mut buffer = vec![0xff_u8; 4096 + 100];
        payload(PayloadRule {
            compress_percent: 75,
            ..PayloadRule::default()
        })
        .fill(&mut buffer);
        for chunk in buffer.chunks(512) {
            let head = chunk.len() - chunk.len() * 75 / 100;
            assert!(chunk[head..].iter().all(|&byte| byte == 0));
            assert!(chunk[..head].iter().filter(|&&byte| byte != 0).count() > head * 8 / 10);
        }
        let mut patterned = payload(PayloadRule {
            content: PayloadContent::Pattern(Box::from(*b"xy")),
            compress_percent: 50,
            compress_chunk_bytes: 0,
            ..PayloadRule::default()
        });
        assert!(patterned.changes_every_write());
        patterned.fill(&mut buffer);
        assert_eq!(&buffer[buffer.len() - 4..], b"xyxy");
    }

    #[test]
    fn the_repeated_share_of_units_has_been_written_before() {
        let mut payload = payload(PayloadRule {
            dedupe_percent: 40,
            unit_bytes: 512,
            ..PayloadRule::default()
        });
        let mut buffer = vec![0_u8; 16 * 512];
        let (mut seen, mut repeats) = (HashSet::new(), 0_u32);
        for _ in 0..1000 {
            payload.prepare(&mut buffer);
            for unit in buffer.chunks(512) {
                repeats += u32::from(!seen.insert(unit.to_vec()));
            }
        }
        let share = f64::from(repeats) / 16_000.0;
        assert!((share - 0.4).abs() < 0.02, "{share}");
    }

    #[test]
    fn payloads_that_share_their_set_repeat_the_same_units() {
        let units = |is_shared, seed| {
            let rule = PayloadRule {
                dedupe_percent: 50,
                dedupe_set_units: 10,
                dedupe_set_is_shared: is_shared,
                unit_bytes: 512,
                ..PayloadRule::default()
            };
            let mut payload = Payload::new(rule, Rng::new(seed)).unwrap();
            let mut buffer = vec![0_u8; 200 * 512];
            payload.fill(&mut buffer);
            buffer
                .chunks(512)
                .map(<[u8]>::to_vec)
                .collect::<HashSet<_>>()
        };
        let common = |is_shared| {
            let (one, other) = (units(is_shared, 1), units(is_shared, 2));
            one.intersection(&other).count()
        };
        assert_eq!((common(true), common(false)), (10, 0));
    }

    #[test]
    fn repeated_units_of_a_fixed_set_are_of_that_set_alone() {
        let mut payload = payload(PayloadRule {
            dedupe_percent: 60,
            dedupe_set_units: 10,
            unit_bytes: 512,
            ..PayloadRule::default()
        });
        let mut buffer = vec![0_u8; 16 * 512];
        let mut times = HashMap::<Vec<u8>, u32>::new();
        for _ in 0..1000 {
            payload.prepare(&mut buffer);
            for unit in buffer.chunks(512) {
                *times.entry(unit.to_vec()).or_default() += 1;
            }
        }
        let again: Vec<u32> = times.into_values().filter(|n| *n > 1).collect();
        assert_eq!(again.len(), 10);
        let share = f64::from(again.iter().sum::<u32>()) / 16_000.0;
        assert!((share - 0.6).abs() < 0.02, "{share}");
    }

    #[test]
    fn shares_above_the_whole_are_refused() {
        let rule = PayloadRule {
            dedupe_percent: 101,
            ..PayloadRule::default()
        };
        let refused = Payload::new(rule, Rng::new(1)).unwrap_err();
        assert!(matches!(
            refused,
            GenerateError::Percent { percent: 101, .. }
        ));
    }
}

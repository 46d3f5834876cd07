//! Space of a pool: chunks of 2 MiB, cut into slots of one size or used whole.
//!
//! In: lengths of values. Out: places for them; free lists per size. Not here: when freed space may be
//! used again (the store defers that).

use super::image::words;
use super::medium::{CHUNK, Medium};
use crate::prelude::*;

/// Sizes: eight multiples of 64 B, then eight to each doubling up to a chunk.
const CLASSES: usize = 8 + 12 * 8;
const FREE: u8 = 255;
const LOG: u8 = 254;
const WHOLE: u8 = 253;

/// Class and slot size of a length from 1 to a chunk.
#[inline]
fn class_of(len: u64) -> (usize, u64) {
    let last = len - 1;
    if len <= 512 {
        return ((last / 64) as usize, last / 64 * 64 + 64);
    }
    let power = last.ilog2();
    let step = (last - (1 << power)) >> (power - 3);
    let class = 8 + (power as usize - 9) * 8 + step as usize;
    (class, (1 << power) + ((step + 1) << (power - 3)))
}

/// Bytes of the pool that a value of a length takes.
pub(super) fn slot_size(len: u64) -> u64 {
    if len > CHUNK {
        len.next_multiple_of(CHUNK)
    } else {
        class_of(len).1
    }
}

#[derive(Debug, Default)]
struct Class {
    next: u64,
    end: u64,
    freed: Vec<u64>,
}

words!(Class { next, end, freed });

/// Free and used space.
#[derive(Debug)]
pub(super) struct Space {
    /// Use of each chunk: a class, or one of the constants.
    uses: Vec<u8>,
    backed: Vec<bool>,
    /// Slots in use in a chunk of a class.
    live: Vec<u32>,
    classes: Vec<Class>,
    free: usize,
    /// Chunks before it are in use.
    hint: usize,
    /// Free chunks that values leave to the log, so that collecting can always write a new one.
    pub(super) reserve: usize,
    pub(super) value_bytes: u64,
}

words!(Space {
    uses,
    backed,
    live,
    classes,
    free,
    hint,
    reserve,
    value_bytes
});

impl Space {
    /// Space of a pool whose first chunk is its superblock's.
    pub(super) fn new(len: u64) -> Self {
        let chunks = (len / CHUNK) as usize;
        let mut uses = vec![FREE; chunks];
        uses[0] = LOG;
        Self {
            uses,
            backed: vec![false; chunks],
            live: vec![0; chunks],
            classes: (0..CLASSES).map(|_| Class::default()).collect(),
            free: chunks - 1,
            hint: 1,
            reserve: 2,
            value_bytes: 0,
        }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        let slots = |(class, c): (usize, &Class)| {
            c.freed.len() as u64 * class_size(class) + (c.end - c.next)
        };
        self.free as u64 * CHUNK + self.classes.iter().enumerate().map(slots).sum::<u64>()
    }

    pub(super) fn free_chunks(&self) -> usize {
        self.free
    }

    /// Says that the first bytes of the pool have backing.
    pub(super) fn set_backed(&mut self, bytes: u64) {
        let chunks = bytes.div_ceil(CHUNK) as usize;
        self.backed[..chunks].fill(true);
    }

    fn take(&mut self, medium: &mut impl Medium, count: usize, usage: u8) -> Result<u64> {
        let reserve = if usage == LOG { 0 } else { self.reserve };
        let full = || ObjectCode::NoSpace.error("the pool is full");
        if self.free < count.saturating_add(reserve) {
            return Err(full());
        }
        while self.uses.get(self.hint).is_some_and(|&usage| usage != FREE) {
            self.hint += 1;
        }
        let (mut first, mut run) = (self.hint, 0);
        while run < count {
            match self.uses.get(first + run) {
                Some(&FREE) => run += 1,
                Some(_) => (first, run) = (first + run + 1, 0),
                None => return Err(full()),
            }
        }
        for chunk in first..first + count {
            if !self.backed[chunk] {
                medium.back(chunk as u64 * CHUNK, CHUNK)?;
                self.backed[chunk] = true;
            }
        }
        self.uses[first..first + count].fill(usage);
        self.free -= count;
        Ok(first as u64 * CHUNK)
    }

    fn give(&mut self, at: u64, count: usize) {
        let first = (at / CHUNK) as usize;
        self.uses[first..first + count].fill(FREE);
        self.free += count;
        self.hint = self.hint.min(first);
    }

    /// A chunk for the log.
    pub(super) fn take_segment(&mut self, medium: &mut impl Medium) -> Result<u64> {
        self.take(medium, 1, LOG)
    }

    /// Free chunks, one behind the other, for bytes that nothing keeps from being used again.
    pub(super) fn lend(&mut self, medium: &mut impl Medium, len: u64) -> Result<u64> {
        let count = len.div_ceil(CHUNK) as usize;
        let at = self.take(medium, count, LOG)?;
        self.give(at, count);
        Ok(at)
    }

    pub(super) fn give_segment(&mut self, at: u64) {
        self.give(at, 1);
    }

    /// Marks a chunk that a recovered log has.
    pub(super) fn mark_segment(&mut self, at: u64) {
        self.uses[(at / CHUNK) as usize] = LOG;
        self.free -= 1;
    }

    /// A place for a value.
    #[inline]
    pub(super) fn alloc(&mut self, medium: &mut impl Medium, len: u64) -> Result<u64> {
        if len > CHUNK {
            let count = len.div_ceil(CHUNK);
            let at = self.take(medium, count as usize, WHOLE)?;
            self.value_bytes += count * CHUNK;
            return Ok(at);
        }
        let (class, size) = class_of(len);
        if let Some(at) = self.classes[class].freed.pop() {
            self.live[(at / CHUNK) as usize] += 1;
            self.value_bytes += size;
            return Ok(at);
        }
        if self.classes[class].next == self.classes[class].end {
            let at = self.take(medium, 1, class as u8)?;
            self.classes[class].next = at;
            self.classes[class].end = at + CHUNK / size * size;
        }
        let at = self.classes[class].next;
        self.classes[class].next += size;
        self.live[(at / CHUNK) as usize] += 1;
        self.value_bytes += size;
        Ok(at)
    }

    /// Gives a value's place back.
    pub(super) fn free(&mut self, at: u64, len: u64) {
        self.value_bytes -= slot_size(len);
        if len > CHUNK {
            return self.give(at, len.div_ceil(CHUNK) as usize);
        }
        self.live[(at / CHUNK) as usize] -= 1;
        self.classes[class_of(len).0].freed.push(at);
    }

    /// Gives chunks back whose slots are all free.
    pub(super) fn give_empty_chunks(&mut self) {
        for class in 0..CLASSES {
            let c = &mut self.classes[class];
            let current = if c.next < c.end {
                c.next / CHUNK
            } else {
                u64::MAX
            };
            let live = &self.live;
            c.freed
                .retain(|at| at / CHUNK == current || live[(at / CHUNK) as usize] > 0);
            let full = |chunk: &usize| self.uses[*chunk] == class as u8 && live[*chunk] == 0;
            let empty: Vec<usize> = (1..self.uses.len()).filter(full).collect();
            for chunk in empty.into_iter().filter(|&chunk| chunk as u64 != current) {
                self.give(chunk as u64 * CHUNK, 1);
            }
        }
    }

    /// Space of a recovered pool: everything is free but the values and what was marked before.
    /// False if values overlap or lie outside.
    pub(super) fn mark_values(&mut self, values: impl Iterator<Item = (u64, u64)>) -> bool {
        let mut used: Vec<Vec<u64>> = vec![Vec::new(); self.uses.len()];
        for (at, len) in values {
            let (first, count) = ((at / CHUNK) as usize, len.div_ceil(CHUNK) as usize);
            let Some(chunks) = self.uses.get_mut(first..first.saturating_add(count)) else {
                return false;
            };
            self.value_bytes += slot_size(len);
            if len > CHUNK {
                if chunks.iter().any(|&usage| usage != FREE) || at % CHUNK != 0 {
                    return false;
                }
                chunks.fill(WHOLE);
                self.free -= count;
                continue;
            }
            let (class, size) = class_of(len);
            if chunks[0] == FREE {
                chunks[0] = class as u8;
                self.free -= 1;
                used[first] = vec![0; (CHUNK / size).div_ceil(64) as usize];
            }
            let (slot, rest) = (at % CHUNK / size, at % CHUNK % size);
            let (word, bit) = ((slot / 64) as usize, 1 << (slot % 64));
            if chunks[0] != class as u8
                || rest != 0
                || slot >= CHUNK / size
                || used[first][word] & bit != 0
            {
                return false;
            }
            used[first][word] |= bit;
            self.live[first] += 1;
        }
        let numbered = used.iter().enumerate().rev();
        for (chunk, words) in numbered.filter(|(_, words)| !words.is_empty()) {
            let class = usize::from(self.uses[chunk]);
            let size = class_size(class);
            let free = |slot: &u64| words[(slot / 64) as usize] & 1 << (slot % 64) == 0;
            let slots = (0..CHUNK / size).rev().filter(free);
            let places = slots.map(|slot| chunk as u64 * CHUNK + slot * size);
            self.classes[class].freed.extend(places);
        }
        true
    }
}

fn class_size(class: usize) -> u64 {
    if class < 8 {
        return class as u64 * 64 + 64;
    }
    let (power, step) = ((class - 8) / 8 + 9, (class as u64 - 8) % 8);
    (1 << power) + ((step + 1) << (power - 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_gets_the_smallest_slot_that_holds_it() {
        for len in (1..=CHUNK)
            .step_by(37)
            .chain([64, 65, 512, 513, 1_024, 4_096, CHUNK])
        {
            let (class, size) = class_of(len);
            assert_eq!(class_size(class), size);
            assert!(
                size >= len && size <= (len + 63).max(len + len / 8),
                "{len} in {size}"
            );
            assert!(class == 0 || class_size(class - 1) < len, "{len}");
        }
        assert_eq!(slot_size(4_096), 4_096);
        assert_eq!(class_of(CHUNK).0, CLASSES - 1);
    }
}

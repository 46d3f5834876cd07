//! Image of the index in the pool: a clean end leaves it, and the next open need not read the log.
//!
//! In: the parts of a store that are not in the pool's values and log. Out: their words in free chunks, whose
//! place one line names. The line goes before anything changes, so that an image never differs from its log.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_64_with_seed};

use super::Mem;
use super::index::{Index, advised};
use super::log::{Log, LogPlace};
use super::medium::Medium;
use super::space::Space;
use crate::prelude::*;

/// Line that names the image: its place, its words, their sum, and the sum of these three.
const NAMED_AT: u64 = 8_320;
const NAMED: usize = 32;
/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// Form of a part as words of 64 bits.
pub(super) trait Words: Sized {
    fn put_words(&self, out: &mut impl FnMut(u64));
    /// The part again; `None` where the words end or make no sense.
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self>;
}

/// Gives structures the words of their fields.
macro_rules! words {
    ($name:ident { $($field:tt),* $(,)? }) => {
        impl $crate::mem::image::Words for $name {
            fn put_words(&self, out: &mut impl FnMut(u64)) {
                $(self.$field.put_words(out);)*
            }
            fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
                Some(Self { $($field: $crate::mem::image::Words::take(from)?),* })
            }
        }
    };
}
pub(super) use words;

macro_rules! numbers {
    ($($number:ty: $long:expr),*) => {$(
        impl Words for $number {
            fn put_words(&self, out: &mut impl FnMut(u64)) {
                out($long(*self));
            }
            fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
                <$number>::try_from(from.next()?).ok()
            }
        }
    )*};
}
numbers!(u8: u64::from, u32: u64::from, u64: std::convert::identity, usize: |number| number as u64);

impl Words for bool {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        out(u64::from(*self));
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        Some(from.next()? != 0)
    }
}

impl Words for StoreUuid {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        out(word(self));
        out(word(&self[8..]));
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let [lo, hi] = [from.next()?, from.next()?].map(u128::from);
        Some((hi << 64 | lo).to_le_bytes())
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        self.0.put_words(out);
        self.1.put_words(out);
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Words> Words for Vec<T> {
    fn put_words(&self, out: &mut impl FnMut(u64)) {
        self.len().put_words(out);
        for one in self {
            one.put_words(out);
        }
    }
    fn take(from: &mut impl ExactSizeIterator<Item = u64>) -> Option<Self> {
        let count = usize::take(from)?;
        // Each takes a word at least.
        let mut all = advised(count.min(from.len()));
        for _ in 0..count {
            all.push(T::take(from)?);
        }
        Some(all)
    }
}

words!(Container {
    uuid,
    snapshots,
    is_gone
});
words!(ObjectId { hi, lo });

/// The words at a place.
fn words_at(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> {
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word))
}

/// The line for an image.
fn line(at: u64, words: u64, sum: u64, generation: u64) -> [u8; NAMED] {
    let mut line = [0; NAMED];
    for (slot, word) in line.as_chunks_mut::<8>().0.iter_mut().zip([at, words, sum]) {
        *slot = word.to_le_bytes();
    }
    let own = xxh3_64_with_seed(&line[..NAMED - 8], generation);
    line[NAMED - 8..].copy_from_slice(&own.to_le_bytes());
    line
}

fn write_line(medium: &mut impl Medium, line: &[u8; NAMED]) {
    medium.bytes_mut(NAMED_AT, NAMED).copy_from_slice(line);
    medium.write_back(NAMED_AT, NAMED);
    medium.fence();
}

fn put_parts(
    (index, space, log): (&Index, &Space, &Log),
    (deferred, bytes): (&Vec<(u64, u64)>, u64),
    out: &mut impl FnMut(u64),
) {
    index.put_words(out);
    space.put_words(out);
    log.put_words(out);
    deferred.put_words(out);
    bytes.put_words(out);
}

impl<M: Medium> Mem<M> {
    /// Leaves an image in the pool, where that has room for it.
    pub(super) fn leave_image(&mut self) {
        if self.stats.log_damaged {
            return;
        }
        let mut words = 0;
        let parts = (&self.index, &self.space, &self.log);
        put_parts(parts, (&self.deferred, self.deferred_bytes), &mut |_| {
            words += 1;
        });
        let Ok(at) = self.space.lend(&mut self.medium, words * 8) else {
            return;
        };
        let mut piece = Vec::with_capacity(PIECE);
        let (mut hash, mut end) = (Xxh3Default::new(), at);
        // The parts are read while the medium is written.
        let Self {
            medium,
            index,
            space,
            log,
            deferred,
            deferred_bytes,
            ..
        } = self;
        let mut store = |piece: &mut Vec<u8>| {
            hash.update(piece);
            medium.bytes_mut(end, piece.len()).copy_from_slice(piece);
            medium.write_back(end, piece.len());
            end += piece.len() as u64;
            piece.clear();
        };
        put_parts(
            (index, space, log),
            (deferred, *deferred_bytes),
            &mut |word| {
                piece.extend_from_slice(&word.to_le_bytes());
                if piece.len() == PIECE {
                    store(&mut piece);
                }
            },
        );
        store(&mut piece);
        self.medium.fence();
        let line = line(at, words, hash.digest(), self.generation);
        write_line(&mut self.medium, &line);
    }

    /// Takes the image that the pool has, and its line away; false where it has none that is whole.
    pub(super) fn take_image(&mut self) -> bool {
        let taken = self.read_image();
        if words_at(self.medium.bytes(NAMED_AT, NAMED)).any(|word| word != 0) {
            write_line(&mut self.medium, &[0; NAMED]);
        }
        taken.is_some()
    }

    fn read_image(&mut self) -> Option<()> {
        let named = self.medium.bytes(NAMED_AT, NAMED);
        let mut of_line = words_at(named);
        let (at, words, sum) = (of_line.next()?, of_line.next()?, of_line.next()?);
        let end = words.checked_mul(8).and_then(|len| at.checked_add(len))?;
        if named != line(at, words, sum, self.generation) || end > self.medium.len() {
            return None;
        }
        let bytes = self.medium.bytes(at, (end - at) as usize);
        if xxh3_64(bytes) != sum {
            return None;
        }
        let mut from = words_at(bytes);
        let mut index = Index::take(&mut from)?;
        let space = Space::take(&mut from)?;
        let log = <(LogPlace, Vec<u64>)>::take(&mut from)?;
        let (deferred, bytes) = Words::take(&mut from)?;
        self.log.resume(log, &self.medium)?;
        index.order_dkeys(&self.medium);
        (self.index, self.space) = (index, space);
        (self.deferred, self.deferred_bytes) = (deferred, bytes);
        Some(())
    }
}

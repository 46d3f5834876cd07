//! Random streams: one per consumer, all from the plan's seed.
//!
//! In: the seed and the worker's number. Out: independent generators. A stream
//! depends on the seed, the worker and its own name alone, so that a new
//! consumer never shifts the sequence of an old one. Not here: who draws.

use super::rng::{GOLDEN, Rng, mix64};

/// The named random streams of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    worker: u64,
}

impl Streams {
    /// The streams of worker number `worker` under the plan's `seed`.
    pub const fn new(seed: u64, worker: u32) -> Self {
        // Two rounds, so that (seed, worker) and (seed + 1, worker - 1) differ.
        let seeded = mix64(seed.wrapping_add(GOLDEN));
        Self {
            worker: mix64(seeded ^ (worker as u64 + 1).wrapping_mul(GOLDEN)),
        }
    }

    /// Stream of offsets.
    pub const fn offsets(&self) -> Rng {
        Rng::new(self.key(*b"offsets_"))
    }

    /// Key by which a skewed distribution places its ranks (see `Permutation`). Workers
    /// that shall share one hot set take the key of the same worker number.
    pub const fn placement(&self) -> u64 {
        self.key(*b"place___")
    }

    /// Random or sequential, where only a share of the operations is random.
    pub const fn jumps(&self) -> Rng {
        Rng::new(self.key(*b"jumps___"))
    }

    /// Stream of operation kinds.
    pub const fn mix(&self) -> Rng {
        Rng::new(self.key(*b"mix_____"))
    }

    /// Stream of operation sizes.
    pub const fn sizes(&self) -> Rng {
        Rng::new(self.key(*b"sizes___"))
    }

    /// Stream of written data.
    pub const fn payload(&self) -> Rng {
        Rng::new(self.key(*b"payload_"))
    }

    /// Stream that chooses the polled operations, where a share is polled.
    pub const fn polls(&self) -> Rng {
        Rng::new(self.key(*b"polls___"))
    }

    /// Stream of arrival times.
    pub const fn arrivals(&self) -> Rng {
        Rng::new(self.key(*b"arrivals"))
    }

    /// Stream that chooses one of several files.
    pub const fn targets(&self) -> Rng {
        Rng::new(self.key(*b"targets_"))
    }

    /// Stream that chooses operations with a priority of their own.
    pub const fn priorities(&self) -> Rng {
        Rng::new(self.key(*b"priority"))
    }

    const fn key(self, name: [u8; 8]) -> u64 {
        mix64(self.worker ^ u64::from_le_bytes(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_consumer_seed_and_worker_has_its_own_stream() {
        let mut first_words = HashSet::new();
        for seed in 0..50 {
            for worker in 0..50 {
                let s = Streams::new(seed, worker);
                for mut rng in [
                    s.offsets(),
                    s.jumps(),
                    s.mix(),
                    s.sizes(),
                    s.payload(),
                    s.polls(),
                    s.arrivals(),
                    s.targets(),
                    s.priorities(),
                    Rng::new(s.placement()),
                ] {
                    first_words.insert(rng.next_u64());
                }
            }
        }
        assert_eq!(first_words.len(), 50 * 50 * 10);
    }
}

//! Skewed distributions: how often which block is wanted.
//!
//! In: the number of blocks, a shape and a random stream. Out: block indices in
//! [0, n). The shapes are the closed forms of the job language; zipf and pareto
//! give *ranks* of popularity, which a seeded bijection
//! ([`Permutation`](super::Permutation)) places on blocks; normal and zoned
//! speak of places already. None of them remembers: a pass never ends by itself.

mod normal;
mod pareto;
mod zipf;
mod zoned;

pub use normal::Normal;
pub use pareto::Pareto;
pub use zipf::Zipf;
pub use zoned::{Zone, Zoned};

use weir_run::generate::rng::Rng;

use super::GenerateError;

/// One of the skewed distributions.
#[derive(Debug, Clone)]
pub enum OffsetDistribution {
    /// A few blocks get most accesses, falling by a power of the rank.
    Zipf(Zipf),
    /// Self-similar: share h of the blocks gets share 1 − h of the accesses.
    Pareto(Pareto),
    /// Gaussian around a centre.
    Normal(Normal),
    /// Shares of the accesses to parts of the region.
    Zoned(Zoned),
}

impl OffsetDistribution {
    /// The next block.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Zipf(zipf) => zipf.draw(rng),
            Self::Pareto(pareto) => pareto.draw(rng),
            Self::Normal(normal) => normal.draw(rng),
            Self::Zoned(zoned) => zoned.draw(rng),
        }
    }
}

/// Refuses a centre outside the region.
fn checked_center(center: Option<f64>) -> Result<Option<f64>, GenerateError> {
    match center {
        Some(c) if !(0.0..=1.0).contains(&c) => Err(GenerateError::Center(c)),
        other => Ok(other),
    }
}

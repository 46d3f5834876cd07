//! Random offsets over one target: which generator, from what the workload says.

use std::num::NonZeroU64;

use weir_run::generate::Streams;
use weir_schema::{Access, Distribution, Generator, HotZone, Kind, SequencerStep, Size};

use crate::generate::distribution::{Normal, OffsetDistribution, Pareto, Zipf, Zone, Zoned};
use crate::generate::lfsr::Lfsr;
use crate::generate::offsets::{
    PartlyRandom, RunStyle, SequentialRuns, Skewed, Uniform, UniformMapped,
};
use crate::source::block_order::Blocks;
use crate::source::build::BuildError;

/// Parts of a random generator over one target.
pub(super) struct TargetOffsets<'a> {
    pub(super) access: &'a Access,
    pub(super) blocks: NonZeroU64,
    pub(super) unit: u64,
    pub(super) seed: u64,
    pub(super) target: u32,
}

impl TargetOffsets<'_> {
    /// The generator of one target.
    pub(super) fn generator(&self, streams: Streams) -> Result<Blocks, BuildError> {
        let shares = self.access.random_percent;
        let same_share = shares.read == shares.write && shares.write == shares.trim;
        let same_zones = match &self.access.distribution {
            Distribution::Zoned { zones } => zones.read == zones.write && zones.write == zones.trim,
            _ => true,
        };
        if same_share && same_zones {
            return self.for_kind(streams, Kind::Read, 0);
        }
        let [read, write, trim] = Kind::DATA;
        Ok(Blocks::PerKind(Box::new([
            self.for_kind(streams, read, 0)?,
            self.for_kind(streams, write, 1)?,
            self.for_kind(streams, trim, 2)?,
        ])))
    }

    fn for_kind(&self, streams: Streams, kind: Kind, turn: u32) -> Result<Blocks, BuildError> {
        // Each target and kind continues the worker's stream from a point of its own.
        let mut rng = streams.offsets();
        for _ in 0..self.target.wrapping_mul(3).wrapping_add(turn) {
            rng = weir_run::generate::rng::Rng::new(rng.next_u64());
        }
        let mut blocks = match &self.access.distribution {
            Distribution::Uniform if self.access.generator == Generator::Lfsr => {
                Blocks::Lfsr(Lfsr::new(self.blocks, rng))
            }
            Distribution::Uniform if self.access.map => {
                Blocks::Mapped(UniformMapped::new(self.blocks, rng)?)
            }
            Distribution::Uniform => Blocks::Uniform(Uniform::new(self.blocks, rng)),
            skewed => Blocks::Skewed(Skewed::new(self.skewed(skewed, kind)?, rng)),
        };
        if let Some(steps) = NonZeroU64::new(self.access.steps.into()).filter(|s| s.get() > 1) {
            let style = match self.access.step {
                SequencerStep::Sequential => RunStyle::Onwards,
                SequencerStep::Identical => RunStyle::Identical,
            };
            blocks = Blocks::Runs(Box::new(SequentialRuns::new(
                blocks,
                self.blocks,
                steps,
                style,
            )));
        }
        let share = *self.access.random_percent.of(kind);
        if share < 100 {
            let partly = PartlyRandom::new(blocks, self.blocks, share, streams.jumps());
            blocks = Blocks::Partly(Box::new(partly));
        }
        Ok(blocks)
    }

    fn skewed(&self, planned: &Distribution, kind: Kind) -> Result<OffsetDistribution, BuildError> {
        // Workers of one seed share their hot blocks.
        let placement = Streams::new(self.seed, 0).placement();
        Ok(match planned {
            Distribution::Zipf { theta, center } => {
                OffsetDistribution::Zipf(Zipf::new(self.blocks, *theta, placement, *center)?)
            }
            Distribution::Pareto { h, center } => {
                OffsetDistribution::Pareto(Pareto::new(self.blocks, *h, placement, *center)?)
            }
            Distribution::Normal {
                deviation_percent,
                center,
            } => OffsetDistribution::Normal(Normal::new(self.blocks, *deviation_percent, *center)?),
            Distribution::Zoned { zones } => OffsetDistribution::Zoned(self.zoned(zones.of(kind))?),
            Distribution::Uniform => {
                let all = [Zone {
                    accesses: 1,
                    length: 100,
                }];
                OffsetDistribution::Zoned(Zoned::by_percent(self.blocks, &all)?)
            }
        })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "shares in hundredths of a percent and lengths that were checked as sizes"
    )]
    fn zoned(&self, zones: &[HotZone]) -> Result<Zoned, BuildError> {
        let accesses = |z: &HotZone| (z.access_percent.0 * 100.0) as u32;
        let by_blocks = zones.iter().any(|z| matches!(z.length, Size::Bytes(_)));
        let list: Vec<Zone> = zones
            .iter()
            .map(|z| Zone {
                accesses: accesses(z),
                length: match z.length {
                    Size::Bytes(bytes) => bytes.0.div_ceil(self.unit),
                    Size::Percent(p) if by_blocks => (p / 100.0 * self.blocks.get() as f64) as u64,
                    Size::Percent(p) => p as u64,
                },
            })
            .collect();
        Ok(if by_blocks {
            Zoned::by_blocks(self.blocks, &list)?
        } else {
            Zoned::by_percent(self.blocks, &list)?
        })
    }
}

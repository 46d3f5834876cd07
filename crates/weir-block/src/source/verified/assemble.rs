//! Puts the source of verified data together.
//!
//! In: a recipe. Out: the source; how it knows what was written depends on whether anything is
//! written twice.

use weir_schema::{BlockSize, Distribution, FileOrder, Generator, Kind, PerKind};
use weir_units::Bytes;

use crate::generate::sizes::SizeRule;
use crate::source::Extent;
use crate::source::buffers::SlotBuffers;
use crate::source::build::{BuildError, Recipe, SourceRules, VariedSource, drawn, general};
use crate::source::verified::{History, Inspector, Kept, Redrawn, VerifiedSource, interval};

/// Makes the source.
pub(in crate::source) fn verified(
    mut recipe: Recipe<'_>,
    rules: [SizeRule; 3],
) -> Result<VariedSource, BuildError> {
    let workload = recipe.workload;
    let (Some(verify), Some(verification)) = (&workload.verify, recipe.verification.take()) else {
        return general(recipe, rules);
    };
    let draw = SourceRules::of(&recipe);
    let interval = interval(workload).ok_or(BuildError::Interval)?;
    let history = if !workload.reads_back() {
        History::None
    } else if writes_once(draw, verification.earlier.as_ref().map_or(0, |e| e.writes)) {
        History::Redrawn(Redrawn::new(drawn(
            draw,
            rules.clone(),
            SlotBuffers::none()?,
        )?))
    } else {
        History::Kept(Kept::new(recipe.extents, interval, workload))
    };
    let mut own = drawn(draw, rules, recipe.buffers)?;
    own.passes = recipe.passes;
    own.priorities = recipe.priorities;
    let inspector = Inspector::new(
        verify,
        workload,
        interval,
        (draw.seed, draw.worker),
        verification,
    )
    .map_err(|unfit| BuildError::Unfit(unfit.to_string()))?;
    let source = VerifiedSource::new(own, history, inspector, workload, draw.limits.bytes);
    Ok(VariedSource::Verified(Box::new(source)))
}

/// True if no byte is written twice in a pass, and the writes of an earlier run are no more than one.
fn writes_once(draw: SourceRules<'_>, earlier: u64) -> bool {
    let workload = draw.workload;
    let access = &workload.access;
    let occurring = || Kind::DATA.into_iter().filter(|&k| workload.mix.has(k));
    let mut sizes = occurring().map(|k| workload.sizes.size.of(k));
    let Some(BlockSize::Fixed {
        bytes: Bytes(block),
    }) = sizes.next()
    else {
        return false;
    };
    let one_size = sizes.all(|size| {
        *size
            == BlockSize::Fixed {
                bytes: Bytes(*block),
            }
    });
    let aligned = occurring().all(|k| access.align_bytes.is_none_or(|a| a.of(k).0 == *block));
    let block = (*block).max(1);
    let whole = |e: &Extent| e.length / block * block;
    let room = draw.extents.iter().map(whole).fold(0, u64::saturating_add);
    let each_once = if access.random {
        let uniform = access.distribution == Distribution::Uniform;
        let mapped = access.map || access.generator == Generator::Lfsr;
        uniform && mapped && access.steps <= 1 && access.random_percent == PerKind::all(100)
    } else {
        access.skip_bytes == 0
    };
    let skewed = !matches!(
        workload.targets.service.order,
        FileOrder::InTurn | FileOrder::Sequential | FileOrder::Uniform
    );
    let each_once = each_once && !(skewed && draw.extents.len() > 1);
    let is_one_pass = earlier.saturating_mul(block) <= draw.limits.bytes;
    access.zones.is_none()
        && one_size
        && aligned
        && each_once
        && draw.limits.bytes <= room
        && is_one_pass
}

//! Check that operations can be drawn from a workload, before its targets are looked at.
//!
//! In: a workload of a plan. Out: what a generator refuses of it. Not here: what the sizes of the
//! targets decide.

use weir_run::generate::Streams;
use weir_schema::{BlockWorkload, Kind};

use crate::generate::GenerateError;
use crate::generate::mix::KindMix;
use crate::generate::payload::Payload;
use crate::generate::sizes::SizeDraw;
use crate::source::Extent;
use crate::source::build::{BuildError, payload_rule, size_rules, walk};
use crate::source::service::Service;

/// Blocks of a region that stands for those that are not known yet.
const SOME_BLOCKS: u64 = 4096;

/// Looks for numbers that no generator takes.
///
/// # Errors
/// [`BuildError`].
pub(crate) fn check(workload: &BlockWorkload) -> Result<(), BuildError> {
    let streams = Streams::new(1, 0);
    let content = &workload.content;
    if let Some(percent) = content.dedupe_set_percent.filter(|percent| *percent > 100) {
        let what = "set of repeated blocks";
        return Err(GenerateError::Percent { what, percent }.into());
    }
    Payload::new(payload_rule(content, 1, 1), streams.offsets())?;
    let rules = size_rules(workload)?;
    if workload.access.replay.is_some() {
        // Its operations are those of the file.
        return Ok(());
    }
    let mix = workload.mix;
    KindMix::new(
        [mix.read_percent, mix.write_percent, mix.trim_percent].map(u32::from),
        streams.mix(),
    )?;
    let smallest = Kind::DATA.map(|kind| rules[kind.index()].min_bytes());
    SizeDraw::new(rules.clone(), streams.sizes())?;
    Service::new(&workload.targets.service, 1, streams)?;
    let aligned = workload.access.align_bytes.map_or(smallest, |align| {
        Kind::DATA.map(|kind| align.of(kind).0.max(smallest[kind.index()]))
    });
    let unit = aligned.into_iter().max().unwrap_or(1).max(1);
    let region = Extent {
        start: 0,
        length: unit.saturating_mul(SOME_BLOCKS),
    };
    let smallest = smallest.into_iter().min().unwrap_or(1).max(1);
    match walk(workload, &rules, region, smallest, 1, streams, 0) {
        // Zones may lie beyond the region that is looked at here.
        Err(BuildError::Generate(GenerateError::NoZone)) => Ok(()),
        walk => walk.map(|_| ()),
    }
}

//! The targets of a job: names, sizes, regions, layout, opening.
//!
//! In: a job and the directory where relative names begin. Out: for each clone its open targets
//! with the region it uses; facts about them. Not here: engines and operations.

mod cache;
mod facts;
mod layout;
mod made_files;
mod names;
mod open;
mod region;
mod sites;

pub(crate) use cache::between_passes;
pub(crate) use facts::{devices, disks, facts_of, reads_blocks_once, spoilers};
pub(crate) use layout::{FileLayout, lay_out, may_create, needs_write_access};
pub(crate) use made_files::MadeFiles;
pub(crate) use names::{NamedTarget, names};
pub(crate) use open::{open_all, warm};
pub(crate) use region::{Ground, Misplaced, RegionRequest, part_of, place, roomy};
pub(crate) use sites::{Site, SiteKind, SitePart, Sites, look, no_sites, survey, writes};

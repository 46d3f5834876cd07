//! The engines of this family, and how a worker gets from an entry of the registry into a loop
//! of its own.
//!
//! In: an engine's name and its settings; a worker's open targets and its source. Out: the end of
//! its loop. Not here: opening targets ([`crate::target`]), the loop itself (`weir_run`).

mod calls;
pub(crate) mod dma_emu;
mod falloc;
mod files;
mod io_uring;
pub(crate) mod kernel;
mod libaio;
mod missing_pages;
mod mmap;
pub(crate) mod net;
mod null;
mod posixaio;
pub(crate) mod priority;
mod program;
mod psync;
mod pvsync;
mod pvsync2;
mod spin;
mod splice;
mod sync;
mod transfer_calls;
#[cfg(feature = "vfio")]
pub(crate) mod vfio;
mod vsync;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use weir_run::generate::Streams;
use weir_run::{Engine, LoopPlan, LoopStop, WorkerContext, failure};
use weir_schema::catalogue::{Catalogue, EngineInfo, SettingInfo, SettingKind};
use weir_schema::{EngineChoice, Failure, Warning};
use weir_sys::Availability;

use crate::op::BlockOp;
use crate::source::{
    AnySource, BuildError, Extent, Recipe, SlotBuffers, VariedSource, build, build_varied,
};

pub(crate) use calls::{drop_device_cache, set_lifetime, sync_all};
pub(crate) use io_uring::command::NAME as COMMANDS;
pub(crate) use mmap::Mappings;

/// Every engine: one line each.
const REGISTRY: &[&EngineEntry] = &[
    &null::ENTRY,
    &psync::ENTRY,
    &sync::ENTRY,
    &vsync::ENTRY,
    &pvsync::ENTRY,
    &pvsync2::ENTRY,
    &io_uring::ENTRY,
    &io_uring::command::ENTRY,
    #[cfg(feature = "vfio")]
    &vfio::ENTRY,
    &kernel::ENTRY,
    &libaio::ENTRY,
    &posixaio::ENTRY,
    &splice::ENTRY,
    &mmap::ENTRY,
    &dma_emu::ENTRY,
    &falloc::FALLOC,
    &falloc::TRUNCATE,
    &files::CREATE,
    &files::STAT,
    &files::DELETE,
    &net::ENTRY,
    &spin::ENTRY,
    &program::ENTRY,
];

/// Entry of an engine in the registry.
pub(crate) struct EngineEntry {
    /// For parsers and help texts.
    pub(crate) info: EngineInfo,
    /// Finds out if this machine has what the engine needs.
    pub(crate) availability: fn() -> Availability,
    /// True if it completes inside the call at this queue depth.
    pub(crate) is_inline: fn(u32) -> bool,
    /// Access with which its targets are opened.
    pub(crate) opens: Opens,
    /// Attaches it and runs the loop.
    pub(crate) drive: fn(EngineRun<'_, '_>) -> Result<LoopStop, Failure>,
}

/// Access with which an engine's targets are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    /// For reading or writing, as the job does either.
    AsNeeded,
    /// For reading too: what is mapped for writing has to be readable.
    ReadingToo,
    /// For writing too: its reads change the file's blocks.
    WritingToo,
}

/// The engines of this build and their settings.
pub fn catalogue() -> Catalogue {
    Catalogue {
        engines: REGISTRY.iter().map(|entry| entry.info).collect(),
    }
}

/// Availability of the engine on this machine.
pub fn availability(name: &str) -> Availability {
    match find(name) {
        Some(entry) => (entry.availability)(),
        None => Availability::missing(
            format!("an engine called `{name}`"),
            format!("use one of {}", names()),
        ),
    }
}

pub(crate) fn find(name: &str) -> Option<&'static EngineEntry> {
    REGISTRY
        .iter()
        .copied()
        .find(|entry| entry.info.name == name)
}

fn names() -> String {
    let names: Vec<_> = REGISTRY.iter().map(|entry| entry.info.name).collect();
    names.join(", ")
}

const fn switch(name: &'static str, default: &'static str, help: &'static str) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Bool,
        default,
        help,
    }
}

const fn number(
    name: &'static str,
    (min, max): (i64, i64),
    default: &'static str,
    help: &'static str,
) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Number { min, max },
        default,
        help,
    }
}

/// An open target.
#[derive(Debug)]
pub(crate) struct OpenTarget {
    /// Open as the job needs it.
    pub(crate) file: Arc<OwnedFd>,
    /// A block device rather than a file or character device.
    pub(crate) is_block: bool,
    /// Open for writing.
    pub(crate) is_writable: bool,
    /// The part in use.
    pub(crate) extent: Extent,
}

impl OpenTarget {
    /// The same open file, for another use.
    pub(crate) fn again(&self) -> Self {
        let file = Arc::clone(&self.file);
        Self { file, ..*self }
    }
}

/// A file that is used by its name.
#[derive(Clone, Debug)]
pub(crate) struct FileName {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// The first byte of the part in use.
    pub(crate) start: u64,
}

/// Memory of the slots. It outlives the engine: see [`run_engine`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotMemory {
    base: *mut u8,
    stride: usize,
    slots: u32,
}

impl SlotMemory {
    pub(crate) fn of(buffers: &SlotBuffers, slots: u32) -> Self {
        Self {
            base: buffers.memory().as_ptr(),
            stride: buffers.stride(),
            slots,
        }
    }
}

/// Warnings of all workers of a job, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<Warning>>>);

impl Warnings {
    pub(crate) fn add(&self, id: &str, cause: String) {
        let warning = Warning::new(id, None, cause);
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !list.contains(&warning) {
            list.push(warning);
        }
    }

    pub(crate) fn list(&self) -> Vec<Warning> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The worker's parts that every engine of this family is attached to.
#[derive(Debug)]
pub(crate) struct EngineSetup {
    /// By the index that operations carry; none for engines without targets.
    pub(crate) targets: Vec<OpenTarget>,
    /// The targets' names, also for engines that open none.
    pub(crate) names: Vec<String>,
    /// The targets as files of a name, for engines that do not want them open.
    pub(crate) files: Vec<FileName>,
    /// Most operations in flight.
    pub(crate) depth: u32,
    /// Memory of the slots.
    pub(crate) memory: SlotMemory,
    /// Settings in house words.
    pub(crate) choice: EngineChoice,
    /// Warnings about things that it had to do without.
    pub(crate) warnings: Warnings,
    /// The emulated cards of the run.
    pub(crate) cards: dma_emu::EmulatedCards,
    /// Sessions of the kernel module.
    pub(crate) sessions: kernel::KernelSessions,
    /// Mappings that it makes.
    pub(crate) mappings: Mappings,
    /// The worker's random numbers.
    pub(crate) streams: Streams,
}

/// A refusal with its errno and a sentence that helps, inside an [`std::io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    pub(crate) errno: i32,
    pub(crate) message: String,
}

impl Refused {
    fn error(error: &std::io::Error, message: &str) -> std::io::Error {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        std::io::Error::other(Self {
            errno,
            message: format!("{message}: {error}"),
        })
    }
}

/// A worker with what its source and its engine are made of.
pub(crate) struct EngineRun<'a, 's> {
    pub(crate) worker: &'a mut WorkerContext<'s>,
    pub(crate) recipe: Recipe<'a>,
    pub(crate) plan: LoopPlan,
    pub(crate) setup: EngineSetup,
}

/// Attaches the engine and runs the loop that was made for it and the source.
pub(crate) fn run_engine<E>(run: EngineRun<'_, '_>) -> Result<LoopStop, Failure>
where
    E: Engine<Op = BlockOp, Setup = EngineSetup>,
{
    let EngineRun {
        worker,
        recipe,
        plan,
        setup,
    } = run;
    // The source is declared before the engine, so that the engine is dropped (and drained) before
    // the buffers even when the loop unwinds.
    if E::QUICK {
        let mut source = build(recipe).map_err(|e| source_failure(&e))?;
        let mut engine = E::attach(setup).map_err(|e| engine_failure(&e))?;
        let stop = match &mut source {
            AnySource::Sequential(source) => worker.drive(&mut engine, source, &plan),
            AnySource::Mapped(source) => worker.drive(&mut engine, source, &plan),
            AnySource::Uniform(source) => worker.drive(&mut engine, source, &plan),
            AnySource::Varied(source) => run_varied(worker, &mut engine, source, &plan),
        };
        engine.finish().map_err(|e| engine_failure(&e))?;
        Ok(stop)
    } else {
        let mut source = varied_source(recipe)?;
        let mut engine = E::attach(setup).map_err(|e| engine_failure(&e))?;
        let stop = run_varied(worker, &mut engine, &mut source, &plan);
        engine.finish().map_err(|e| engine_failure(&e))?;
        Ok(stop)
    }
}

/// The source of an engine whose calls take so long that one of the commonest workloads' own
/// sources would gain nothing.
fn varied_source(recipe: Recipe<'_>) -> Result<VariedSource, Failure> {
    build_varied(recipe).map_err(|e| source_failure(&e))
}

/// Runs the loop that was made for an engine and a source of whatever workload.
fn run_varied<E: Engine<Op = BlockOp>>(
    worker: &mut WorkerContext<'_>,
    engine: &mut E,
    source: &mut VariedSource,
    plan: &LoopPlan,
) -> LoopStop {
    match source {
        VariedSource::General(source) => worker.drive(engine, &mut **source, plan),
        VariedSource::Verified(source) => worker.drive(engine, &mut **source, plan),
        VariedSource::Bursts(source) => worker.drive(engine, &mut **source, plan),
        VariedSource::Watched(source) => worker.drive(engine, &mut **source, plan),
    }
}

fn source_failure(error: &BuildError) -> Failure {
    failure("plan", Some(libc::EINVAL), error.to_string())
}

fn engine_failure(error: &std::io::Error) -> Failure {
    let refused = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Refused>());
    let errno = refused.map_or(error.raw_os_error(), |refused| Some(refused.errno));
    failure("engine", errno, error.to_string())
}

#[cfg(test)]
pub(crate) mod tests;

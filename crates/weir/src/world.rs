//! Who takes part: this process alone, what an MPI launcher started, or processes of our own.

use std::time::Duration;

use weir_doors::Refusal;
use weir_doors::run::{LACKS, USAGE};
use weir_world::mpi::{LIBRARY_VARIABLE, MpiError, MpiLibrary, MpiWorld};
use weir_world::{Launcher, ProcessWorld, World, WorldError};

/// Ranks that have told everything end within this time.
const FAREWELL: Duration = Duration::from_secs(10);

/// A world of several processes.
pub(crate) enum Entered {
    /// What a launcher started.
    Mpi(MpiWorld),
    /// Copies of this process.
    Processes(ProcessWorld),
}

/// Joins a launcher's world, or starts `ranks` processes; nothing where this process is alone.
pub(crate) fn enter(ranks: Option<u32>) -> Result<Option<Entered>, Refusal> {
    if let Some(launcher) = Launcher::of_this_process() {
        return match ranks {
            Some(asked) if asked != launcher.size => Err(two_answers(asked, &launcher)),
            _ => join(launcher).map(|world| Some(Entered::Mpi(world))),
        };
    }
    match ranks {
        None | Some(1) => Ok(None),
        Some(ranks) => {
            let world = ProcessWorld::enter(ranks).map_err(|e| came_apart(&e))?;
            Ok(Some(Entered::Processes(world)))
        }
    }
}

/// MPI as the launcher speaks it. What goes wrong for all is told once.
pub(crate) fn join(launcher: Launcher) -> Result<MpiWorld, Refusal> {
    let wish = std::env::var(LIBRARY_VARIABLE).ok();
    let library = MpiLibrary::open(Some(launcher), wish.as_deref());
    let world = library.and_then(MpiLibrary::start);
    world.map_err(|error| of_speaker(&launcher, mpi_refused(&error)))
}

fn mpi_refused(error: &MpiError) -> Refusal {
    Refusal {
        message: format!("error: {error}\n"),
        code: if error.is_lack() { LACKS } else { 1 },
    }
}

fn two_answers(asked: u32, launcher: &Launcher) -> Refusal {
    let message = format!(
        "error: --ranks {asked}, and {} started {}\n  help: leave --ranks out\n",
        launcher.kind, launcher.size
    );
    let code = USAGE;
    of_speaker(launcher, Refusal { message, code })
}

fn of_speaker(launcher: &Launcher, refusal: Refusal) -> Refusal {
    if launcher.speaks() {
        return refusal;
    }
    silent()
}

/// For ranks that leave the word to the first.
pub(crate) fn silent() -> Refusal {
    Refusal {
        message: String::new(),
        code: 0,
    }
}

/// How ranks that lost each other end.
pub(crate) fn came_apart(error: &WorldError) -> Refusal {
    Refusal {
        message: format!("error: {error}\n"),
        code: 1,
    }
}

impl Entered {
    pub(crate) fn world(&self) -> &dyn World {
        match self {
            Self::Mpi(world) => world,
            Self::Processes(world) => world,
        }
    }

    /// Leaves it, after the other ranks' end where they were started here.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        match self {
            Self::Mpi(_) => Ok(()),
            Self::Processes(world) => world.finish(FAREWELL).map_err(|e| came_apart(&e)),
        }
    }
}

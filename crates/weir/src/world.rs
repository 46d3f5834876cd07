//! Who takes part: threads of this process, what an MPI launcher started, or processes of our own.

use std::time::Duration;

use weir_doors::Refusal;
use weir_doors::run::{LACKS, USAGE};
use weir_schema::{Ranks, Spawn};
use weir_world::mpi::{LIBRARY_VARIABLE, MpiError, MpiLibrary, MpiWorld};
use weir_world::{
    Collectives as _, Crew, First, Launcher, ProcessWorld, World, WorldError, on_threads,
};

use crate::{signals, speaks};

/// Ranks that have told everything end within this time.
const FAREWELL: Duration = Duration::from_secs(10);
/// For what takes no time.
const SOON: Duration = Duration::from_secs(60);
/// Instead of the word of rank 0's process.
const NOT_READY: &[u8] = b"-";

/// This process among the ranks.
pub(crate) enum Party {
    /// All ranks are here.
    Threads(u32),
    /// One rank is here, the others are copies of this process.
    Processes(Box<ProcessWorld>),
    /// One rank is here, by a launcher.
    Mpi(Box<MpiWorld>),
}

/// Joins a launcher's world, or starts `ranks` processes; nothing where this process is alone.
pub(crate) fn enter(ranks: Option<u32>) -> Result<Option<Party>, Refusal> {
    if let Some(launcher) = Launcher::of_this_process() {
        return match ranks {
            Some(asked) if asked != launcher.size => Err(two_answers(asked, &launcher)),
            _ => join(launcher).map(Some),
        };
    }
    match ranks {
        None | Some(1) => Ok(None),
        Some(ranks) => start(ranks).map(Some),
    }
}

/// The ranks that a plan asks for. Where it asks for its own and a launcher started this process, one
/// of the launcher's makes them; the others have no part.
pub(crate) fn gather(ranks: Ranks) -> Result<Party, Refusal> {
    if ranks.spawn != Spawn::Launcher && !speaks() {
        return Err(silent());
    }
    match ranks.spawn {
        Spawn::Threads => Ok(Party::Threads(ranks.count)),
        Spawn::Processes => start(ranks.count),
        Spawn::Launcher => launched(ranks.count),
    }
}

fn start(ranks: u32) -> Result<Party, Refusal> {
    let world = ProcessWorld::enter(ranks).map_err(|e| came_apart(&e))?;
    Ok(Party::Processes(Box::new(world)))
}

fn launched(planned: u32) -> Result<Party, Refusal> {
    let refuse = |message: String, code| Err(Refusal { message, code });
    let Some(launcher) = Launcher::of_this_process() else {
        let message =
            "error: the plan is for ranks of an MPI launcher (start it with `mpirun -n N`)\n";
        return refuse(message.to_owned(), LACKS);
    };
    let party = join(launcher)?;
    if launcher.size == planned {
        return Ok(party);
    }
    let started = launcher.size;
    let message =
        format!("error: the plan is for {planned} ranks, the launcher started {started}\n");
    refuse(message, USAGE)
}

/// MPI as the launcher speaks it. What goes wrong for all is told once.
fn join(launcher: Launcher) -> Result<Party, Refusal> {
    // MPICH looks for devices of OpenCL, with whatever their drivers bring.
    signals::claim()?;
    let wish = std::env::var(LIBRARY_VARIABLE).ok();
    let library = MpiLibrary::open(Some(launcher), wish.as_deref());
    let world = library.and_then(MpiLibrary::start);
    let world = world.map_err(|error| of_speaker(&launcher, mpi_refused(&error)))?;
    let watched = world.watch_ranks();
    watched.map_err(|error| of_speaker(&launcher, came_apart(&error)))?;
    Ok(Party::Mpi(Box::new(world)))
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

impl Party {
    /// Whether rank 0 is here.
    pub(crate) fn speaks(&self) -> bool {
        match self {
            Self::Threads(_) => true,
            Self::Processes(world) => world.rank() == 0,
            Self::Mpi(world) => world.rank() == 0,
        }
    }

    /// The processes of the ranks, where weir has started them.
    pub(crate) fn crew(&self) -> Option<&Crew> {
        match self {
            Self::Processes(world) => world.crew(),
            Self::Threads(_) | Self::Mpi(_) => None,
        }
    }

    /// Goes on where rank 0 is ready. What it says against it, it says alone. The answer is its
    /// process, for ranks of a launcher that see it.
    ///
    /// # Errors
    /// Rank 0 is not ready; at others without a word.
    pub(crate) fn follow(
        &self,
        ready: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<Option<First>, Refusal> {
        let world: &dyn World = match self {
            Self::Threads(_) => return ready().map(|()| None),
            Self::Processes(world) => world.as_ref(),
            Self::Mpi(world) => world.as_ref(),
        };
        let mine = if world.rank() == 0 { ready() } else { Ok(()) };
        let verdict = match mine {
            Ok(()) => First::word(),
            Err(_) => NOT_READY.to_vec(),
        };
        let told = world.broadcast(0, verdict, SOON);
        mine?;
        match told.map_err(|e| came_apart(&e))?.as_slice() {
            NOT_READY => Err(silent()),
            word => Ok(First::of(word).filter(|_| self.crew().is_none() && !self.speaks())),
        }
    }

    /// Does this on every rank that is here; the answer of the first of them.
    ///
    /// # Errors
    /// There is no thread for a rank.
    pub(crate) fn each<T: Send>(
        &self,
        work: impl Fn(&dyn World) -> T + Sync,
    ) -> Result<T, WorldError> {
        match self {
            Self::Threads(ranks) => {
                on_threads(*ranks, |world| work(&world)).map(|mut all| all.swap_remove(0))
            }
            Self::Processes(world) => Ok(work(world.as_ref())),
            Self::Mpi(world) => Ok(work(world.as_ref())),
        }
    }

    /// Waits for the end of the other ranks where they were started here. What is left ends with
    /// its owner: MPI waits for all ranks then, which may take long after a signal.
    ///
    /// # Errors
    /// One did not end well.
    pub(crate) fn leave(self) -> Result<Option<Self>, Refusal> {
        match self {
            Self::Processes(world) => world
                .finish(FAREWELL)
                .map(|()| None)
                .map_err(|e| came_apart(&e)),
            other => Ok(Some(other)),
        }
    }
}

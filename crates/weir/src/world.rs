//! Who takes part: threads of this process, what an MPI launcher started, or processes of our own.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use weir_doors::Refusal;
use weir_units::Nanos;
use weir_world::mpi::{LIBRARY_VARIABLE, MpiError, MpiLibrary, MpiWorld};
use weir_world::{Launcher, ProcessWorld, RankHost, World, WorldError};

use crate::{output, signals};

/// Ranks that have told everything end within this time.
const FAREWELL: Duration = Duration::from_secs(10);
/// A rank that works no more answers within this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// World of ranks that this process takes part in.
pub(crate) enum RankWorld {
    /// All ranks are here.
    Threads(u32),
    /// One rank is here, the others are copies of this process.
    Processes(Box<ProcessWorld>),
    /// One rank is here, by a launcher.
    Mpi(Box<MpiWorld>),
}

/// Starts so many processes, or takes the place that this one was started for.
pub(crate) fn start(ranks: u32) -> Result<RankWorld, Refusal> {
    let world = ProcessWorld::enter(ranks).map_err(|e| came_apart(&e))?;
    Ok(RankWorld::Processes(Box::new(world)))
}

/// A plan for ranks that nobody launched.
pub(crate) fn not_launched() -> Refusal {
    Refusal::lacks("the plan is for ranks of an MPI launcher (start it with `mpirun -n N`)")
}

/// MPI as the launcher speaks it. What goes wrong for all is told once.
pub(crate) fn join(launcher: Launcher, timeout: Option<Nanos>) -> Result<RankWorld, Refusal> {
    // MPICH looks for devices of OpenCL, with whatever their drivers bring.
    signals::claim()?;
    let name = std::env::var(LIBRARY_VARIABLE).ok();
    let library = MpiLibrary::open(Some(launcher), name.as_deref());
    let limit = timeout.map_or(START_LIMIT, Duration::from);
    let started = end_unless_started(limit, &launcher);
    let world = library.and_then(MpiLibrary::start);
    let world = world.map_err(|error| of_speaker(&launcher, mpi_refused(&error)))?;
    let watched = world.watch_ranks();
    watched.map_err(|error| of_speaker(&launcher, came_apart(&error)))?;
    // The thread may have ended this process; else it ends now.
    drop(started);
    Ok(RankWorld::Mpi(Box::new(world)))
}

/// Time for MPI to start where no other is stated: the same as for a silent rank.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The others leave the word to the first for so long.
const PRECEDENCE: Duration = Duration::from_millis(1500);

/// MPI waits for every rank without a limit of its own: where it has not started by then, this process
/// ends, unless what is returned was dropped.
#[expect(
    clippy::exit,
    reason = "another thread hangs in the library, which nothing ends"
)]
fn end_unless_started(limit: Duration, launcher: &Launcher) -> mpsc::Sender<()> {
    let prints = launcher.prints_for_all();
    let patience = if prints { limit } else { limit + PRECEDENCE };
    let (started, wait) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if wait.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            output::error(&format!(
                "error: MPI has not started for {:.0} s: not every rank came\n  help: a process \
                 that is stopped, or a host that cannot be reached\n",
                limit.as_secs_f64()
            ));
            std::process::exit(1);
        }
    });
    started
}

/// Refusal for an error of MPI.
pub(crate) fn mpi_refused(error: &MpiError) -> Refusal {
    if error.is_lack() {
        return Refusal::lacks(error);
    }
    Refusal::new(1, format!("error: {error}"))
}

fn of_speaker(launcher: &Launcher, refusal: Refusal) -> Refusal {
    if launcher.prints_for_all() {
        return refusal;
    }
    silent()
}

/// For ranks that leave the word to the first.
pub(crate) fn silent() -> Refusal {
    Refusal::new(0, "")
}

/// Refusal for ranks that lost each other.
pub(crate) fn came_apart(error: &WorldError) -> Refusal {
    Refusal::new(1, format!("error: {error}"))
}

/// The rank hangs in a call that nothing ends, and everything is said: the process ends here, in
/// place of the thread that would have to come back first.
pub(crate) fn end_in_place(host: &RankHost, code: u8) {
    host.set_exit_code(code);
    if !host.answers(PATIENCE) {
        signal_hook::low_level::exit(code.into());
    }
}

impl RankWorld {
    /// Does the work of this process beside its ranks.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn serve<R: Send>(
        &self,
        work: impl FnOnce(&RankHost) -> R + Send,
    ) -> Result<R, WorldError> {
        let world: &dyn World = match self {
            Self::Threads(ranks) => return Ok(work(&RankHost::threads(*ranks))),
            Self::Processes(world) => world.as_ref(),
            Self::Mpi(world) => world.as_ref(),
        };
        weir_world::serve(world, work)
    }

    /// Waits for the end of the other ranks where they were started here. MPI waits for all ranks.
    ///
    /// # Errors
    /// One did not end well.
    pub(crate) fn leave(self) -> Result<(), Refusal> {
        match self {
            Self::Processes(world) => world.finish(FAREWELL).map_err(|e| came_apart(&e)),
            Self::Threads(_) | Self::Mpi(_) => Ok(()),
        }
    }
}

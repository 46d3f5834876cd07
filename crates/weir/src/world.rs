//! Ranks of a run: threads of this process, processes of an MPI launcher, or processes of weir's own.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use weir_doors::Refusal;
use weir_sys::KeptSignalActions;
use weir_units::Nanos;
use weir_world::mpi::{LIBRARY_VARIABLE, MpiError, MpiLibrary, MpiWorld};
use weir_world::{Launcher, ProcessWorld, RankHost, World, WorldError};

use crate::{output, signals};

/// Time within which ranks end that have sent everything.
const FAREWELL: Duration = Duration::from_secs(10);
/// A rank that works no more answers within this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// World of ranks that this process takes part in.
pub(crate) enum RankWorld {
    /// All ranks are here.
    Threads(u32),
    /// One rank is in this process, the others are copies of it.
    Processes(Box<ProcessWorld>),
    /// One rank is in this process, which a launcher started.
    Mpi(Box<MpiWorld>),
}

/// Starts this many processes, or takes the place that this one was started for.
pub(crate) fn start(ranks: u32) -> Result<RankWorld, Refusal> {
    let world = ProcessWorld::enter(ranks).map_err(|e| came_apart(&e))?;
    Ok(RankWorld::Processes(Box::new(world)))
}

/// Refusal of a plan for ranks without a launcher.
pub(crate) fn not_launched() -> Refusal {
    Refusal::lacks("the plan is for ranks of an MPI launcher (start it with `mpirun -n N`)")
}

/// Opens the MPI of the launcher. An error of all ranks is printed once.
pub(crate) fn join(launcher: Launcher, timeout: Option<Nanos>) -> Result<RankWorld, Refusal> {
    // MPICH looks for devices of OpenCL, with whatever their drivers bring.
    signals::claim()?;
    // Such a driver takes signals for one time: a second one, passed on by another rank, would end this process
    // in the middle of the first.
    let kept = KeptSignalActions::now();
    let name = std::env::var(LIBRARY_VARIABLE).ok();
    let library = MpiLibrary::open(Some(launcher), name.as_deref());
    let limit = timeout.map_or(START_LIMIT, Duration::from);
    let started = end_unless_started(limit, &launcher);
    let world = library.and_then(MpiLibrary::start);
    drop(kept);
    let world = world.map_err(|error| of_speaker(&launcher, mpi_refused(&error)))?;
    let watched = world.watch_ranks();
    watched.map_err(|error| of_speaker(&launcher, came_apart(&error)))?;
    // The thread may have ended this process; else it ends now.
    drop(started);
    Ok(RankWorld::Mpi(Box::new(world)))
}

/// Time for MPI to start where no other is stated: the same as for a silent rank.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Time by which the other ranks let the first one report first.
const PRECEDENCE: Duration = Duration::from_millis(1500);

/// Ends this process where MPI has not started in time, as MPI waits for every rank without a limit. Dropping
/// the returned sender cancels that.
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

/// Refusal without a message, for ranks that let the first one report.
pub(crate) fn silent() -> Refusal {
    Refusal::new(0, "")
}

/// Refusal for ranks that lost each other.
pub(crate) fn came_apart(error: &WorldError) -> Refusal {
    Refusal::new(1, format!("error: {error}"))
}

/// Ends the process here, where the rank hangs in a call that nothing ends and everything is reported: the
/// thread would have to return first.
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

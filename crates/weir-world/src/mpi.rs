//! MPI, opened at run time: one program for both families of libraries, built without either.
//!
//! In: the launcher's family and, from its owner, the library's name. Out: an [`MpiWorld`] for
//! this process, whose variants hold the typed calls of one family ([`Mpi`]) for transports that
//! are compiled once for each. Not here: which transport is measured.
//!
//! ```text
//! let library = MpiLibrary::open(Launcher::of_this_process(), wish)?;
//! match library.start()? {
//!     MpiWorld::OpenMpi(mpi) => measure(&mpi),
//!     MpiWorld::Mpich(mpi) => measure(&mpi),
//! }
//! ```

mod abi;
mod calls;
mod control;
mod end;
mod error;
mod facts;
mod level;
mod nonblocking;
mod pieces;
mod rank;

pub use abi::{Abi, Constant, Family, MpichAbi, OmpiAbi};
pub use error::MpiError;
pub use facts::MpiLibraryFacts;
pub use nonblocking::{Posting, Requests};
pub use rank::{Emergency, MessageLayout, Mpi, PeerRank, Sendrecvs, Tag};

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_sys::library::{Library, SymbolScope};

use crate::first::here;
use crate::heartbeat::{Heartbeat, ListenAddresses};
use crate::{Collectives as _, Launcher, LauncherKind, RankMonitor, World, WorldError};

/// The variable that names the library to open.
pub const LIBRARY_VARIABLE: &str = "WEIR_MPI_LIB";

const OPEN_MPI: &[&str] = &["libmpi.so.40"];
const MPICH: &[&str] = &["libmpi.so.12", "libmpich.so.12"];
const ANY: &[&str] = &["libmpi_abi.so.0", "libmpi.so"];

/// For what takes no time.
const SOON: Duration = Duration::from_secs(60);

/// MPI can be started once, and not again after it was ended.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Names under which the library may be found, the launcher's family first.
fn candidates(launcher: Option<LauncherKind>) -> Vec<&'static str> {
    let families = match launcher {
        Some(LauncherKind::Hydra | LauncherKind::Mvapich2) => [MPICH, OPEN_MPI, ANY],
        Some(LauncherKind::OpenMpi | LauncherKind::Slurm) | None => [OPEN_MPI, MPICH, ANY],
    };
    families.concat()
}

/// An opened library; MPI is not started yet.
#[derive(Debug)]
pub struct MpiLibrary {
    library: Library,
    facts: MpiLibraryFacts,
    launcher: Option<Launcher>,
}

impl MpiLibrary {
    /// Opens the library named by `wish` (the value of [`LIBRARY_VARIABLE`]), or the first that
    /// is found, those of the launcher's family before others.
    ///
    /// # Errors
    /// There is none, or it is of no known family.
    pub fn open(launcher: Option<Launcher>, wish: Option<&str>) -> Result<Self, MpiError> {
        let names = candidates(launcher.map(|l| l.kind));
        // The components that Open MPI loads later expect its symbols.
        let opened = Library::open_first(wish, &names, SymbolScope::Everybody);
        let (library, name) = opened.map_err(|(wish, reason)| match wish {
            Some(name) => MpiError::NotLoaded {
                name: name.to_owned(),
                reason,
            },
            None => MpiError::Missing {
                tried: names.join(", "),
            },
        })?;
        let facts = MpiLibraryFacts::of(&library, name)?;
        Ok(Self {
            library,
            facts,
            launcher,
        })
    }

    /// Facts that the library gives about itself.
    pub fn facts(&self) -> &MpiLibraryFacts {
        &self.facts
    }

    /// Starts MPI on this thread and joins the world.
    ///
    /// # Errors
    /// It was started before; the library fails; or the library knows another number of
    /// processes than the launcher started ([`MpiError::OtherLauncher`]): each is a world of its
    /// own then, and one of them ([`Launcher::prints_for_all`](crate::Launcher::prints_for_all)) should say so.
    pub fn start(self) -> Result<MpiWorld, MpiError> {
        if STARTED.swap(true, Ordering::Relaxed) {
            return Err(MpiError::InUse);
        }
        let (library, facts) = (&self.library, &self.facts);
        let world = match facts.family {
            Family::OpenMpi => MpiWorld::OpenMpi(Rc::new(Mpi::start(library, facts)?)),
            Family::Mpich => MpiWorld::Mpich(Rc::new(Mpi::start(library, facts)?)),
        };
        match self.launcher {
            Some(launcher) if launcher.size != world.size() => Err(MpiError::OtherLauncher {
                launcher,
                facts: self.facts,
                library_size: world.size(),
            }),
            _ => Ok(world),
        }
    }
}

/// This process's rank under MPI, by the library's family. MPI ends with the last holder of it.
#[derive(Debug)]
pub enum MpiWorld {
    /// Open MPI.
    OpenMpi(Rc<Mpi<OmpiAbi>>),
    /// MPICH and those compatible with it.
    Mpich(Rc<Mpi<MpichAbi>>),
}

impl MpiWorld {
    fn world(&self) -> &dyn World {
        match self {
            Self::OpenMpi(mpi) => mpi.as_ref(),
            Self::Mpich(mpi) => mpi.as_ref(),
        }
    }

    /// The library.
    pub fn facts(&self) -> &MpiLibraryFacts {
        match self {
            Self::OpenMpi(mpi) => mpi.facts(),
            Self::Mpich(mpi) => mpi.facts(),
        }
    }

    /// Starts heartbeats between all ranks, which all have to call it: from here on a rank whose
    /// process is stopped is lost.
    ///
    /// # Errors
    /// A rank is gone or late; there is no socket.
    pub fn watch_ranks(&self) -> Result<(), WorldError> {
        let (rank, size) = (self.rank(), self.size());
        let failed = |error: std::io::Error| WorldError::NotStarted {
            rank,
            detail: format!("heartbeats: {error}"),
        };
        let place = here().unwrap_or_default().into_bytes();
        let mut common = |a: Vec<u8>, b: Vec<u8>| Ok(if a == b { a } else { Vec::new() });
        let place = self.reduce(place, &mut common, SOON)?;
        let monitor = match self {
            Self::OpenMpi(mpi) => &mpi.monitor,
            Self::Mpich(mpi) => &mpi.monitor,
        };
        let heartbeat = if let Some(place) = place {
            let is_one_host = !place.is_empty();
            if is_one_host {
                // One that stops before it has said a word is missed as well.
                monitor.expect(1..size);
            }
            let started = Heartbeat::of_first(size, is_one_host, monitor);
            let (heartbeat, announcement) = match started {
                Ok((heartbeat, announcement)) => (Ok(heartbeat), Some(announcement)),
                Err(error) => (Err(error), None),
            };
            // Where there is none the others hear of it.
            let bytes = serde_json::to_vec(&announcement).unwrap_or_default();
            self.broadcast(0, bytes, SOON)?;
            heartbeat.map_err(failed)?
        } else {
            let bytes = self.broadcast(0, Vec::new(), SOON)?;
            let first: Option<ListenAddresses> =
                serde_json::from_slice(&bytes).map_err(|error| WorldError::Garbled {
                    peer: 0,
                    detail: error.to_string(),
                })?;
            let first = first.ok_or_else(|| WorldError::NotStarted {
                rank: 0,
                detail: "it has no socket for heartbeats".to_owned(),
            })?;
            Heartbeat::of_other(&first, (rank, size), monitor).map_err(failed)?
        };
        let kept = match self {
            Self::OpenMpi(mpi) => &mpi.heartbeat,
            Self::Mpich(mpi) => &mpi.heartbeat,
        };
        kept.replace(Some(heartbeat));
        Ok(())
    }
}

impl World for MpiWorld {
    fn rank(&self) -> u32 {
        self.world().rank()
    }

    fn size(&self) -> u32 {
        self.world().size()
    }

    fn send(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError> {
        self.world().send(to, bytes, until)
    }

    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        self.world().receive(from, until)
    }

    fn mpi(&self) -> Option<&MpiWorld> {
        Some(self)
    }

    fn monitor(&self) -> Option<&RankMonitor> {
        self.world().monitor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_own_family_is_looked_for_first() {
        assert_eq!(candidates(Some(LauncherKind::OpenMpi))[0], "libmpi.so.40");
        assert_eq!(candidates(Some(LauncherKind::Hydra))[0], "libmpi.so.12");
        assert_eq!(candidates(None).last(), Some(&"libmpi.so"));
    }

    #[test]
    fn a_library_that_is_not_there_or_is_none_is_named() {
        let absent = MpiLibrary::open(None, Some("/nowhere/libmpi.so")).unwrap_err();
        assert!(absent.is_lack());
        let text = absent.to_string();
        assert!(
            text.starts_with("WEIR_MPI_LIB=/nowhere/libmpi.so: "),
            "{text}"
        );
        let other = MpiLibrary::open(None, Some("libc.so.6")).unwrap_err();
        let text = other.to_string();
        assert!(
            text.starts_with("libc.so.6 is neither Open MPI nor"),
            "{text}"
        );
        assert!(other.is_lack());
    }
}

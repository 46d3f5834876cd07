//! Errors of an exchange, named by cause and place.

use std::borrow::Cow;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use weir_world::mpi::MpiError;
use weir_world::{CauseDistance, CommError, RankEnd, RankFailure, StopCause, WorldError};

use crate::opencl::OpenClError;

/// Place of a rank in its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// The rank that says so.
    pub rank: u32,
    /// Of the messages.
    pub bytes: u64,
    /// The channel, where there are several.
    pub replication: Option<u32>,
    /// The rank that messages go to.
    pub to: u32,
    /// The rank that messages come from.
    pub from: u32,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, messages of {} B", self.rank, self.bytes)?;
        if let Some(replication) = self.replication {
            write!(f, ", replication {replication}")?;
        }
        write!(f, " (to rank {}, from rank {})", self.to, self.from)
    }
}

/// Reason that a rank stopped exchanging.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// The rank's own watchdog stopped it, and knows why.
    #[error("stopped")]
    Stopped,
    /// Another rank ended before its time.
    #[error("rank {peer} has left")]
    Left {
        /// The rank that left.
        peer: u32,
    },
    /// Nothing happened for too long.
    #[error("no progress for {seconds} s")]
    Silent {
        /// Length of the time without progress.
        seconds: f64,
    },
    /// A signal.
    #[error("interrupted")]
    Interrupted,
    /// A fault of the plan took this rank out.
    #[error("{what} on purpose at exchange {at}")]
    Fault {
        /// `stalled` or `died`.
        what: &'static str,
        /// Of the loop.
        at: u64,
    },
    /// The system refused.
    #[error("cannot {what}: {source}{}", remedy(source))]
    Io {
        /// The action tried, as a verb phrase.
        what: Cow<'static, str>,
        /// The answer.
        source: io::Error,
    },
    /// The message is not the one that was expected.
    #[error("{0}")]
    Garbled(String),
    /// The MPI library failed.
    #[error(transparent)]
    Mpi(#[from] MpiError),
    /// OpenCL failed.
    #[error("{0}")]
    OpenCl(String),
    /// The world between the ranks failed.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Advice, where the answer alone does not give it.
fn remedy(error: &io::Error) -> &'static str {
    let too_many = rustix::io::Errno::MFILE.raw_os_error();
    if error.raw_os_error() == Some(too_many) {
        return " (allow more of them with `ulimit -n`, or ask for fewer ranks or replications)";
    }
    ""
}

impl From<CommError> for Halt {
    fn from(error: CommError) -> Self {
        match error {
            CommError::Stopped => Self::Stopped,
            CommError::Left { peer } => Self::Left { peer },
            CommError::World(error) => Self::World(error),
        }
    }
}

impl From<StopCause> for Halt {
    fn from(cause: StopCause) -> Self {
        match cause {
            StopCause::NoProgress { seconds } => Self::Silent { seconds },
            StopCause::Interrupted => Self::Interrupted,
            StopCause::Lost(lost) => Self::World(lost),
        }
    }
}

impl From<OpenClError> for Halt {
    fn from(error: OpenClError) -> Self {
        Self::OpenCl(error.to_string())
    }
}

impl Halt {
    /// For `map_err`: the system refused to do `what`.
    pub fn io(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::Io {
            what: what.into(),
            source: errno.into(),
        }
    }

    /// The cause in place of what came of it, where the watchdog stopped the rank.
    pub(crate) fn with_stop_cause(self, stop: Option<StopCause>) -> Self {
        match (self, stop) {
            (Self::Stopped, Some(cause))
            | (_, Some(cause @ (StopCause::Interrupted | StopCause::Lost(_)))) => cause.into(),
            (halt, _) => halt,
        }
    }

    fn distance(&self) -> CauseDistance {
        match self {
            Self::Fault { .. }
            | Self::Io { .. }
            | Self::Garbled(_)
            | Self::Mpi(_)
            | Self::OpenCl(_) => CauseDistance::Cause,
            Self::World(_) => CauseDistance::World,
            Self::Silent { .. } => CauseDistance::NoProgress,
            Self::Left { .. } => CauseDistance::Left,
            Self::Stopped | Self::Interrupted => CauseDistance::Stopped,
        }
    }
}

/// Reason that there is no result.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The plan asks for what cannot be.
    #[error("{0}")]
    Plan(String),
    /// The machine lacks something.
    #[error("transport `{transport}`: this machine lacks {what} ({remedy})")]
    Missing {
        /// Name of the transport.
        transport: String,
        /// The missing thing.
        what: String,
        /// Its remedy.
        remedy: String,
    },
    /// Before or between the sizes.
    #[error("rank {rank}, before the exchanges: {cause}")]
    Setup {
        /// The rank that reports it.
        rank: u32,
        /// The reason.
        cause: Halt,
    },
    /// In the exchanges.
    #[error("{spot}: {cause}")]
    At {
        /// Its place.
        spot: Spot,
        /// The reason.
        cause: Halt,
    },
    /// Error that another rank reported, in its own words.
    #[error("{message}")]
    Other {
        /// The rank that reported it.
        rank: u32,
        /// Its words.
        message: String,
    },
}

/// End of a rank's part.
#[derive(Debug)]
pub struct Ended<R> {
    /// At rank 0 what was done, all of it or what there is; nothing elsewhere.
    pub done: Option<R>,
    /// Reason that the result is not whole; at rank 0 in the words of the rank nearest to the
    /// cause. A signal is no error.
    pub error: Option<NetError>,
}

impl<R> Ended<R> {
    /// The result, where nothing went wrong.
    ///
    /// # Errors
    /// Why it is not all.
    pub fn whole(self) -> Result<Option<R>, NetError> {
        self.error.map_or(Ok(self.done), Err)
    }
}

impl NetError {
    /// End of the rank that has this error to report.
    pub(crate) fn end(&self) -> RankEnd {
        let distance = match self {
            Self::At {
                cause: Halt::Fault { what: "died", .. },
                ..
            } => return RankEnd::Vanished,
            error if error.is_interruption() => return RankEnd::Interrupted,
            Self::Plan(_) | Self::Missing { .. } => CauseDistance::Cause,
            Self::Setup { cause, .. } | Self::At { cause, .. } => cause.distance(),
            Self::Other { .. } => CauseDistance::World,
        };
        let message = self.to_string();
        RankEnd::Failed(RankFailure { distance, message })
    }

    /// A rank was lost, which ended this one where it says it was.
    pub(crate) fn lost(lost: &WorldError, own: Option<&Self>) -> Self {
        let cause = Halt::World(lost.clone());
        match own {
            Some(&Self::At { spot, .. }) => Self::At { spot, cause },
            Some(&Self::Setup { rank, .. }) => Self::Setup { rank, cause },
            _ => Self::Other {
                rank: 0,
                message: lost.to_string(),
            },
        }
    }

    /// The same once a signal has come. That others have left comes of it then: they saw it a
    /// moment before this rank's watchdog looked. So may a failure of OpenCL: compilers of drivers
    /// catch signals themselves, and take away the files of a build under way.
    pub(crate) fn after_signal(mut self) -> Self {
        if let Self::Setup { cause, .. } | Self::At { cause, .. } = &mut self
            && matches!(cause, Halt::Left { .. } | Halt::Stopped | Halt::OpenCl(_))
        {
            *cause = Halt::Interrupted;
        }
        self
    }

    /// A signal ended it.
    pub fn is_interruption(&self) -> bool {
        let (Self::Setup { cause, .. } | Self::At { cause, .. }) = self else {
            return false;
        };
        matches!(cause, Halt::Interrupted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_signal(cause: Halt) -> NetError {
        NetError::Setup { rank: 1, cause }.after_signal()
    }

    #[test]
    fn after_a_signal_only_what_comes_of_it_is_an_interruption() {
        assert!(after_signal(Halt::Left { peer: 0 }).is_interruption());
        assert!(after_signal(Halt::Stopped).is_interruption());
        assert!(after_signal(Halt::OpenCl("no file".to_owned())).is_interruption());
        assert!(!after_signal(Halt::Garbled("x".to_owned())).is_interruption());
        assert!(!after_signal(Halt::Silent { seconds: 1.0 }).is_interruption());
    }
}

//! Launcher of this process: an MPI launcher, known by the environment it left.
//!
//! In: variables. Out: the launcher, with this process's rank and the number of processes it
//! started. Pure: nothing is opened. Not here: whether the library agrees ([`crate::mpi`]).

use std::fmt;

/// A family of launchers, by the variables it sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LauncherKind {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// Hydra and others that speak PMI: MPICH, Intel MPI, Cray.
    Hydra,
    /// `mpirun_rsh` of MVAPICH2.
    Mvapich2,
    /// `srun` of SLURM, without a word about the MPI it expects.
    Slurm,
}

impl fmt::Display for LauncherKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI's launcher",
            Self::Hydra => "a PMI launcher (Hydra of MPICH, Intel MPI)",
            Self::Mvapich2 => "MVAPICH2's launcher",
            Self::Slurm => "SLURM's srun",
        })
    }
}

/// Rank and size that a launcher gave this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Family of the launcher.
    pub kind: LauncherKind,
    /// This process, from 0.
    pub rank: u32,
    /// Processes in all.
    pub size: u32,
    /// This process among those of its machine, where the launcher says so.
    pub local_rank: Option<u32>,
}

/// The variables of one family.
struct Words {
    kind: LauncherKind,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
    /// Set beside them, or they mean something else.
    beside: &'static str,
}

/// In the order of trust: `srun` may have started another launcher's daemons, and some MVAPICH2
/// launchers set the variables of PMI too.
const FAMILIES: [Words; 4] = [
    Words {
        kind: LauncherKind::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        beside: "OMPI_COMM_WORLD_SIZE",
    },
    Words {
        kind: LauncherKind::Mvapich2,
        rank: "MV2_COMM_WORLD_RANK",
        size: "MV2_COMM_WORLD_SIZE",
        local_rank: "MV2_COMM_WORLD_LOCAL_RANK",
        beside: "MV2_COMM_WORLD_SIZE",
    },
    Words {
        kind: LauncherKind::Hydra,
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: "MPI_LOCALRANKID",
        beside: "PMI_SIZE",
    },
    // The number of tasks alone is set in every allocation, started by srun or not.
    Words {
        kind: LauncherKind::Slurm,
        rank: "SLURM_PROCID",
        size: "SLURM_NTASKS",
        local_rank: "SLURM_LOCALID",
        beside: "SLURM_STEP_ID",
    },
];

impl Launcher {
    /// The launcher that these variables tell of; `None` for a process that nobody launched.
    pub fn of<K, V>(variables: impl IntoIterator<Item = (K, V)>) -> Option<Self>
    where
        K: AsRef<str>,
        V: AsRef<str>,
    {
        let mut found = Vec::new();
        for (name, value) in variables {
            let is_ours =
                |w: &Words| [w.rank, w.size, w.local_rank, w.beside].contains(&name.as_ref());
            if FAMILIES.iter().any(is_ours) {
                found.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
            }
        }
        FAMILIES.iter().find_map(|words| words.read(&found))
    }

    /// The launcher of this process.
    pub fn of_this_process() -> Option<Self> {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::of(std::env::vars_os().filter_map(text))
    }

    /// True if this process prints for all. The others are silent and exit with 0: a launcher ends
    /// all processes, this one before it has spoken among them, as soon as one exits with another
    /// code.
    pub fn prints_for_all(&self) -> bool {
        self.rank == 0
    }
}

impl Words {
    fn read(&self, variables: &[(String, String)]) -> Option<Launcher> {
        let value = |wanted: &str| {
            let entry = variables.iter().find(|(name, _)| name == wanted)?;
            Some(entry.1.as_str())
        };
        let number = |wanted: &str| value(wanted)?.trim().parse::<u32>().ok();
        value(self.beside)?;
        let (rank, size) = (number(self.rank)?, number(self.size)?);
        (rank < size).then_some(Launcher {
            kind: self.kind,
            rank,
            size,
            local_rank: number(self.local_rank),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Launcher> {
        Launcher::of(text.split_whitespace().filter_map(|w| w.split_once('=')))
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        let cases = [
            (
                "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1",
                (LauncherKind::OpenMpi, 3, 4, Some(1)),
            ),
            (
                "PMI_SIZE=2 PMI_RANK=0 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2",
                (LauncherKind::Hydra, 0, 2, Some(0)),
            ),
            (
                "MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_RANK=1 PMI_SIZE=2 PMI_RANK=1",
                (LauncherKind::Mvapich2, 1, 2, None),
            ),
            (
                "SLURM_NTASKS=8 SLURM_PROCID=7 SLURM_STEP_ID=0 SLURM_LOCALID=3",
                (LauncherKind::Slurm, 7, 8, Some(3)),
            ),
        ];
        for (text, (kind, rank, size, local_rank)) in cases {
            let expected = Launcher {
                kind,
                rank,
                size,
                local_rank,
            };
            assert_eq!(of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_launcher_within_slurm_comes_before_slurm() {
        let slurm = "SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0";
        let found = of(&format!("{slurm} PMI_SIZE=4 PMI_RANK=2")).unwrap();
        assert_eq!((found.kind, found.size), (LauncherKind::Hydra, 4));
    }

    #[test]
    fn an_allocation_or_nonsense_is_no_launcher() {
        for text in [
            "",
            "SLURM_NTASKS=8 SLURM_PROCID=0",
            "PMI_SIZE=2",
            "PMI_RANK=2 PMI_SIZE=2",
            "OMPI_COMM_WORLD_SIZE=four OMPI_COMM_WORLD_RANK=0",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn one_process_speaks_for_all() {
        assert!(of("PMI_RANK=0 PMI_SIZE=2").unwrap().prints_for_all());
        assert!(!of("PMI_RANK=1 PMI_SIZE=2").unwrap().prints_for_all());
    }
}

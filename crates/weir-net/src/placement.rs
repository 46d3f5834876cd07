//! CPU of each rank, agreed upon between all of them.
//!
//! In: a job's placement, and on each rank the CPUs that it may use. Out: the rank's thread, where
//! its job puts it. Where ranks shall have a CPU each, those of one machine get different ones as
//! long as there are any, and cores that nobody uses before other threads of a core. A rank that a
//! launcher has bound stays within what it was given.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use weir_schema::{Placement, ShareCpus};
use weir_sys::topology::Topology;
use weir_sys::{CpuList, SysError, Tree, pin};

use crate::error::{Halt, NetError};
use weir_world::RankComm;
use weir_world::Watchdog;

/// Refuses what a job says of its threads and ranks do not do.
pub(crate) fn check(place: &Placement) -> Result<(), NetError> {
    let understood = Placement {
        cpus: place.cpus.clone(),
        share: place.share,
        ..Placement::default()
    };
    if *place == understood {
        return Ok(());
    }
    let why = "ranks that exchange messages take `cpus` and `share` of a placement, nothing else";
    Err(NetError::Plan(why.to_owned()))
}

/// Error of a rank that cannot be where it was to be, with the places where it could be.
fn pinned_wrong(error: &SysError) -> String {
    let allowed = pin::affinity().map(|cpus| format!(" (allowed are {cpus})"));
    format!("`cpus`: {error}{}", allowed.unwrap_or_default())
}

/// CPUs that ranks of this machine would get and may not use.
pub(crate) fn here(place: &Placement, ranks: u32) -> Result<(), String> {
    let Some(listed) = place.cpus.as_deref() else {
        return Ok(());
    };
    let taken = match place.share {
        ShareCpus::Shared => listed.len(),
        ShareCpus::Split if listed.len() < ranks as usize => {
            return Err(format!(
                "`cpus`: {ranks} ranks have a CPU each, and the list has {} (name one twice to \
                 share it)",
                listed.len()
            ));
        }
        // One after another; what is left of the list nobody gets.
        ShareCpus::Split => ranks as usize,
    };
    // The kernel would let threads leave the CPUs that this process was started with.
    pin::check_allowed(listed).map_err(|why| format!("`cpus`: {why}"))?;
    for (rank, cpu) in listed[..taken].iter().enumerate() {
        let only = CpuList::from_iter([*cpu]);
        // On a thread of its own: this one stays where it is.
        let tried = std::thread::scope(|scope| scope.spawn(|| pin::set_affinity(&only)).join());
        if let Ok(Err(error)) = tried {
            return Err(match place.share {
                ShareCpus::Shared => pinned_wrong(&error),
                ShareCpus::Split => format!("rank {rank}: {}", pinned_wrong(&error)),
            });
        }
    }
    Ok(())
}

/// CPUs on which a rank could run.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct CpuRequest {
    /// Ranks of different machines do not get in each other's way.
    machine: String,
    /// The first are as good as the last, and taken before them.
    candidates: Vec<CandidateCpu>,
}

/// A CPU, for one of several ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct CandidateCpu {
    cpu: u32,
    /// Entries of one number are one place to run.
    number: u32,
    /// Entries of one core share it.
    core: u32,
}

impl CpuRequest {
    /// One of the CPUs of a list, in its order; else one of those that the thread may use.
    fn of(listed: Option<&[u32]>) -> Result<Self, SysError> {
        let tree = Tree::real();
        let machine = tree.word("proc/sys/kernel/random/boot_id");
        let in_turn = |(number, cpu): (u32, &u32)| CandidateCpu {
            cpu: *cpu,
            number,
            core: number,
        };
        let candidates = match listed {
            Some(listed) => (0..).zip(listed).map(in_turn).collect(),
            None => candidates(&pin::affinity()?, Topology::of_this_machine()),
        };
        Ok(Self {
            machine: machine.unwrap_or_else(crate::exchange::hostname),
            candidates,
        })
    }
}

/// The CPUs of a set, each with its core: the first of the CPUs that share it.
fn candidates(cpus: &CpuList, topology: &Topology) -> Vec<CandidateCpu> {
    let core = |cpu: u32| {
        let known = topology.cpus.iter().find(|known| known.id == cpu);
        known.and_then(|known| known.siblings.as_slice().first().copied())
    };
    let candidate = |&cpu: &u32| CandidateCpu {
        cpu,
        number: cpu,
        core: core(cpu).unwrap_or(cpu),
    };
    cpus.as_slice().iter().map(candidate).collect()
}

/// A CPU for each rank, in rank order: of those it could take one with the fewest users, then on
/// the core with the fewest.
fn assign(requests: &[CpuRequest]) -> Vec<Option<u32>> {
    let mut users: HashMap<(&str, u32), u32> = HashMap::new();
    let mut busy: HashMap<(&str, u32), u32> = HashMap::new();
    let mut cpus = Vec::with_capacity(requests.len());
    for request in requests {
        let machine = request.machine.as_str();
        let load = |candidate: &&CandidateCpu| {
            let count = |of: &HashMap<_, u32>, what| of.get(&(machine, what)).copied();
            (
                count(&users, candidate.number),
                count(&busy, candidate.core),
            )
        };
        let candidate = request.candidates.iter().min_by_key(load);
        if let Some(candidate) = candidate {
            *users.entry((machine, candidate.number)).or_default() += 1;
            *busy.entry((machine, candidate.core)).or_default() += 1;
        }
        cpus.push(candidate.map(|candidate| candidate.cpu));
    }
    cpus
}

/// Rank 0 hears all requests and tells each rank its CPU.
fn agree(
    request: CpuRequest,
    comm: &RankComm<'_>,
    watchdog: &Watchdog,
) -> Result<Option<u32>, Halt> {
    let garbled = |error: serde_json::Error| Halt::Garbled(format!("a place of a rank: {error}"));
    if comm.rank() != 0 {
        let request = serde_json::to_vec(&request).map_err(garbled)?;
        comm.send(0, &request, watchdog)?;
        let placed = comm.receive(0, watchdog)?;
        return serde_json::from_slice(&placed).map_err(garbled);
    }
    let mut requests = vec![request];
    for rank in 1..comm.size() {
        let said = comm.receive(rank, watchdog)?;
        requests.push(serde_json::from_slice(&said).map_err(garbled)?);
    }
    let cpus = assign(&requests);
    for (rank, cpu) in (0..).zip(&cpus).skip(1) {
        let placed = serde_json::to_vec(cpu).map_err(garbled)?;
        comm.send(rank, &placed, watchdog)?;
    }
    Ok(cpus[0])
}

/// A rank where its job puts it. The thread goes back where it was afterwards.
#[derive(Debug, Default)]
pub(crate) struct Pinned {
    /// The one CPU that it runs on.
    pub(crate) cpu: Option<u32>,
    before: Option<CpuList>,
}

impl Pinned {
    /// All ranks call this together, and all fail where one does: nobody goes on into a call of
    /// MPI in which it would wait for a rank that has left.
    ///
    /// # Errors
    /// CPUs that a rank may not use; a rank is gone, or the watchdog ended the wait.
    pub(crate) fn new(
        place: &Placement,
        comm: &RankComm<'_>,
        watchdog: &Watchdog,
    ) -> Result<Self, Halt> {
        comm.together(Self::alone(place, comm, watchdog), watchdog)
    }

    fn alone(place: &Placement, comm: &RankComm<'_>, watchdog: &Watchdog) -> Result<Self, Halt> {
        let refused = |error: SysError| Halt::Garbled(error.to_string());
        let listed = place.cpus.as_deref();
        let (cpus, cpu): (CpuList, _) = match (place.share, listed) {
            (ShareCpus::Shared, None) => return Ok(Self::default()),
            (ShareCpus::Shared, Some(listed)) => (listed.iter().copied().collect(), None),
            (ShareCpus::Split, listed) => {
                let (request, failure) = match CpuRequest::of(listed) {
                    Ok(request) => (request, None),
                    // The others wait for a word of this rank all the same.
                    Err(error) => (CpuRequest::default(), Some(error)),
                };
                let cpu = agree(request, comm, watchdog)?;
                failure.map_or(Ok(()), |error| Err(refused(error)))?;
                (cpu.into_iter().collect(), cpu)
            }
        };
        let before = pin::affinity().map_err(refused)?;
        pin::set_affinity(&cpus).map_err(|error| Halt::Garbled(pinned_wrong(&error)))?;
        Ok(Self {
            cpu,
            before: Some(before),
        })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The thread was allowed there before.
            let _ = pin::set_affinity(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_sys::topology::Cpu;

    use super::*;

    /// Two cores of two threads; siblings lie two apart.
    fn topology() -> Topology {
        let cpu = |id: u32| Cpu {
            id,
            package: None,
            core: None,
            siblings: [id % 2, id % 2 + 2].into_iter().collect(),
            node: None,
        };
        Topology {
            cpus: (0..4).map(cpu).collect(),
            ..Topology::default()
        }
    }

    fn request(machine: &str, cpus: &[u32]) -> CpuRequest {
        CpuRequest {
            machine: machine.to_owned(),
            candidates: candidates(&cpus.iter().copied().collect(), &topology()),
        }
    }

    fn cpus(requests: &[CpuRequest]) -> Vec<u32> {
        assign(requests).into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn cores_are_taken_before_other_threads_of_a_core() {
        let six: Vec<CpuRequest> = (0..6).map(|_| request("a", &[0, 1, 2, 3])).collect();
        assert_eq!(cpus(&six), [0, 1, 2, 3, 0, 1]);
        // Threads of a core that are numbered one after the other.
        let four: Vec<CpuRequest> = (0..2).map(|_| request("a", &[0, 2, 3])).collect();
        assert_eq!(cpus(&four), [0, 3]);
    }

    #[test]
    fn ranks_stay_within_the_cpus_that_the_process_was_started_with() {
        let placed = |cpus: &[u32], share| {
            let place = Placement {
                cpus: Some(cpus.to_vec()),
                share,
                ..Placement::default()
            };
            here(&place, 1)
        };
        let all = pin::affinity().unwrap();
        let first = all.as_slice()[0];
        let test = || {
            pin::set_affinity(&CpuList::from_iter([first])).unwrap();
            for share in [ShareCpus::Shared, ShareCpus::Split] {
                assert_eq!(placed(&[first], share), Ok(()));
                // Also those that no rank would get.
                for outside in all.as_slice().iter().skip(1).chain(&[60_000]) {
                    let refused = placed(&[first, *outside], share).unwrap_err();
                    let says = format!("`cpus`: CPUs {outside} are outside those");
                    assert!(refused.starts_with(&says), "{refused}");
                }
            }
        };
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    #[test]
    fn a_bound_rank_stays_within_its_own_cpus() {
        let bound = [
            request("a", &[2]),
            request("a", &[0, 1]),
            request("a", &[0, 1]),
        ];
        assert_eq!(cpus(&bound), [2, 1, 0]);
    }

    #[test]
    fn machines_count_for_themselves() {
        let two = [
            request("a", &[0, 1]),
            request("b", &[0, 1]),
            request("b", &[0, 1]),
        ];
        assert_eq!(cpus(&two), [0, 0, 1]);
    }

    #[test]
    fn a_list_is_taken_in_its_order_again_and_again() {
        let listed = || CpuRequest::of(Some(&[3, 3, 0])).unwrap();
        let five: Vec<CpuRequest> = (0..5).map(|_| listed()).collect();
        assert_eq!(cpus(&five), [3, 3, 0, 3, 3]);
    }

    #[test]
    fn a_rank_without_a_wish_gets_nothing_and_disturbs_nobody() {
        let some = [CpuRequest::default(), request("a", &[1])];
        assert_eq!(assign(&some), [None, Some(1)]);
    }
}

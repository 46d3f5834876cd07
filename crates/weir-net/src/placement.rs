//! Which CPU each rank runs on, agreed upon between all of them.
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

/// Why a rank is not where it was to be, and where it could be.
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

/// Where a rank could run.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wish {
    /// Ranks of different machines do not get in each other's way.
    machine: String,
    /// The first are as good as the last, and taken before them.
    seats: Vec<Seat>,
}

/// A CPU, for one of several ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Seat {
    cpu: u32,
    /// Seats of one number are one seat.
    number: u32,
    /// Seats of one core share it.
    core: u32,
}

impl Wish {
    /// One of the CPUs of a list, in its order; else one of those that the thread may use.
    fn of(listed: Option<&[u32]>) -> Result<Self, SysError> {
        let tree = Tree::real();
        let machine = tree.word("proc/sys/kernel/random/boot_id");
        let in_turn = |(number, cpu): (u32, &u32)| Seat {
            cpu: *cpu,
            number,
            core: number,
        };
        let seats = match listed {
            Some(listed) => (0..).zip(listed).map(in_turn).collect(),
            None => seats(&pin::affinity()?, &Topology::read(&tree)),
        };
        Ok(Self {
            machine: machine.unwrap_or_else(crate::exchange::hostname),
            seats,
        })
    }
}

/// The CPUs of a set, each with its core: the first of the CPUs that share it.
fn seats(cpus: &CpuList, topology: &Topology) -> Vec<Seat> {
    let core = |cpu: u32| {
        let known = topology.cpus.iter().find(|known| known.id == cpu);
        known.and_then(|known| known.siblings.as_slice().first().copied())
    };
    let seat = |&cpu: &u32| Seat {
        cpu,
        number: cpu,
        core: core(cpu).unwrap_or(cpu),
    };
    cpus.as_slice().iter().map(seat).collect()
}

/// A seat for each rank, in rank order: of those it could take one with the fewest users, then on
/// the core with the fewest.
fn assign(wishes: &[Wish]) -> Vec<Option<u32>> {
    let mut users: HashMap<(&str, u32), u32> = HashMap::new();
    let mut busy: HashMap<(&str, u32), u32> = HashMap::new();
    let mut cpus = Vec::with_capacity(wishes.len());
    for wish in wishes {
        let machine = wish.machine.as_str();
        let crowd = |seat: &&Seat| {
            let count = |of: &HashMap<_, u32>, what| of.get(&(machine, what)).copied();
            (count(&users, seat.number), count(&busy, seat.core))
        };
        let seat = wish.seats.iter().min_by_key(crowd);
        if let Some(seat) = seat {
            *users.entry((machine, seat.number)).or_default() += 1;
            *busy.entry((machine, seat.core)).or_default() += 1;
        }
        cpus.push(seat.map(|seat| seat.cpu));
    }
    cpus
}

/// Rank 0 hears all wishes and tells each rank its CPU.
fn agree(wish: Wish, comm: &RankComm<'_>, watchdog: &Watchdog) -> Result<Option<u32>, Halt> {
    let garbled = |error: serde_json::Error| Halt::Garbled(format!("a place of a rank: {error}"));
    if comm.rank() != 0 {
        let wish = serde_json::to_vec(&wish).map_err(garbled)?;
        comm.send(0, &wish, watchdog)?;
        let told = comm.receive(0, watchdog)?;
        return serde_json::from_slice(&told).map_err(garbled);
    }
    let mut wishes = vec![wish];
    for rank in 1..comm.size() {
        let said = comm.receive(rank, watchdog)?;
        wishes.push(serde_json::from_slice(&said).map_err(garbled)?);
    }
    let cpus = assign(&wishes);
    for (rank, cpu) in (0..).zip(&cpus).skip(1) {
        let told = serde_json::to_vec(cpu).map_err(garbled)?;
        comm.send(rank, &told, watchdog)?;
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
                let (wish, failure) = match Wish::of(listed) {
                    Ok(wish) => (wish, None),
                    // The others wait for a word of this rank all the same.
                    Err(error) => (Wish::default(), Some(error)),
                };
                let cpu = agree(wish, comm, watchdog)?;
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

    fn wish(machine: &str, cpus: &[u32]) -> Wish {
        Wish {
            machine: machine.to_owned(),
            seats: seats(&cpus.iter().copied().collect(), &topology()),
        }
    }

    fn cpus(wishes: &[Wish]) -> Vec<u32> {
        assign(wishes).into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn cores_are_taken_before_other_threads_of_a_core() {
        let six: Vec<Wish> = (0..6).map(|_| wish("a", &[0, 1, 2, 3])).collect();
        assert_eq!(cpus(&six), [0, 1, 2, 3, 0, 1]);
        // Threads of a core that are numbered one after the other.
        let four: Vec<Wish> = (0..2).map(|_| wish("a", &[0, 2, 3])).collect();
        assert_eq!(cpus(&four), [0, 3]);
    }

    #[test]
    fn a_bound_rank_stays_within_its_own_cpus() {
        let bound = [wish("a", &[2]), wish("a", &[0, 1]), wish("a", &[0, 1])];
        assert_eq!(cpus(&bound), [2, 1, 0]);
    }

    #[test]
    fn machines_count_for_themselves() {
        let two = [wish("a", &[0, 1]), wish("b", &[0, 1]), wish("b", &[0, 1])];
        assert_eq!(cpus(&two), [0, 0, 1]);
    }

    #[test]
    fn a_list_is_taken_in_its_order_again_and_again() {
        let listed = || Wish::of(Some(&[3, 3, 0])).unwrap();
        let five: Vec<Wish> = (0..5).map(|_| listed()).collect();
        assert_eq!(cpus(&five), [3, 3, 0, 3, 3]);
    }

    #[test]
    fn a_rank_without_a_wish_gets_nothing_and_disturbs_nobody() {
        let some = [Wish::default(), wish("a", &[1])];
        assert_eq!(assign(&some), [None, Some(1)]);
    }
}

//! Ranks as threads of this process: mailboxes, one per pair of ranks.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use crate::deadline::Deadline;
use crate::{World, WorldError};

/// A rank that is a thread.
#[derive(Debug)]
pub struct ThreadWorld {
    rank: u32,
    rooms: Arc<[Room]>,
    /// Only one thread listens at a time, see [`Inbox::awaited`].
    _one_thread: PhantomData<Cell<()>>,
}

/// Messages that arrive at one rank.
#[derive(Debug, Default)]
struct Room {
    inbox: Mutex<Inbox>,
    arrival: Condvar,
    /// Its own rank has ended.
    ended: AtomicBool,
}

#[derive(Debug, Default)]
struct Inbox {
    /// By sender, from its first message on.
    queues: HashMap<u32, VecDeque<Vec<u8>>>,
    /// The rank that this one sleeps for: nobody else wakes it. Where many ranks end, each tells
    /// all others, and a call into the kernel for each would take minutes from some thousands on.
    awaited: Option<u32>,
}

/// Runs `work` once per rank, each on a thread of its own, rank 0 on the caller's; the answers
/// in rank order.
///
/// # Errors
/// [`WorldError::NotStarted`]: the machine has no thread for a rank. Those before it found that rank
/// gone, and have ended.
///
/// # Panics
/// Passes on a panic of a rank, after all have ended.
pub fn on_threads<T: Send>(
    ranks: u32,
    work: impl Fn(ThreadWorld) -> T + Sync,
) -> Result<Vec<T>, WorldError> {
    let mut worlds = worlds(ranks.max(1)).into_iter();
    let (first, work) = (worlds.next(), &work);
    // The worlds end in there, before it waits for the threads: these may wait for them.
    std::thread::scope(move |scope| {
        let start = |world: ThreadWorld| {
            let rank = world.rank;
            let thread = Builder::new().spawn_scoped(scope, move || work(world));
            thread.map_err(|error| WorldError::NotStarted {
                rank,
                detail: error.to_string(),
            })
        };
        let threads: Vec<_> = worlds.by_ref().map(start).collect::<Result<_, _>>()?;
        let mut answers: Vec<T> = first.into_iter().map(work).collect();
        for thread in threads {
            match thread.join() {
                Ok(answer) => answers.push(answer),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(answers)
    })
}

fn worlds(ranks: u32) -> Vec<ThreadWorld> {
    let rooms: Arc<[Room]> = (0..ranks).map(|_| Room::default()).collect();
    let world = |rank| ThreadWorld {
        rank,
        rooms: Arc::clone(&rooms),
        _one_thread: PhantomData,
    };
    (0..ranks).map(world).collect()
}

impl ThreadWorld {
    fn room(&self, rank: u32) -> Result<&Room, WorldError> {
        let size = self.size();
        self.rooms
            .get(rank as usize)
            .ok_or(WorldError::NoSuchRank { rank, size })
    }
}

fn gone(peer: u32) -> WorldError {
    let detail = "its thread has ended".to_owned();
    WorldError::Gone { peer, detail }
}

impl Room {
    /// No one panics while holding it; were it so, the queues would still be whole.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, inbox: MutexGuard<'_, Inbox>, sender: u32) {
        let is_awaited = inbox.awaited == Some(sender);
        drop(inbox);
        if is_awaited {
            self.arrival.notify_all();
        }
    }
}

impl World for ThreadWorld {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        u32::try_from(self.rooms.len()).unwrap_or(u32::MAX)
    }

    fn send(&self, to: u32, bytes: &[u8], _until: Instant) -> Result<(), WorldError> {
        let room = self.room(to)?;
        if room.ended.load(Ordering::Acquire) {
            return Err(gone(to));
        }
        let mut inbox = room.lock();
        let queue = inbox.queues.entry(self.rank).or_default();
        queue.push_back(bytes.to_vec());
        room.wake(inbox, self.rank);
        Ok(())
    }

    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let sender = self.room(from)?;
        let mut wait = Deadline::new(from, until, None);
        let room = self.room(self.rank)?;
        let mut inbox = room.lock();
        loop {
            let queue = inbox.queues.get_mut(&from);
            if let Some(bytes) = queue.and_then(VecDeque::pop_front) {
                return Ok(bytes);
            }
            // Who has ended had put everything here before.
            if sender.ended.load(Ordering::Acquire) {
                return Err(gone(from));
            }
            let left = wait.left()?;
            inbox.awaited = Some(from);
            inbox = room
                .arrival
                .wait_timeout(inbox, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            inbox.awaited = None;
        }
    }
}

impl Drop for ThreadWorld {
    fn drop(&mut self) {
        let own = &self.rooms[self.rank as usize];
        // Pairs with the Acquire of whoever asks.
        own.ended.store(true, Ordering::Release);
        for room in self.rooms.iter() {
            room.wake(room.lock(), self.rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::Collectives;

    const LIMIT: Duration = Duration::from_secs(20);

    fn number(rank: u32) -> u8 {
        u8::try_from(rank).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn everybody_gets_what_was_sent(ranks in 1u32..20, root in 0u32..20) {
            let root = root % ranks;
            let seen = on_threads(ranks, |w| {
                let mine = format!("from {}", w.rank()).into_bytes();
                let received = w.broadcast(root, mine.clone(), LIMIT).unwrap();
                w.barrier(LIMIT).unwrap();
                let gathered = w.gather(&mine, LIMIT).unwrap();
                let merged = w
                    .reduce(vec![number(w.rank())], &mut |a, b| Ok([a, b].concat()), LIMIT)
                    .unwrap();
                (received, gathered, merged)
            });
            for (rank, (received, gathered, merged)) in seen.unwrap().into_iter().enumerate() {
                prop_assert_eq!(received, format!("from {root}").into_bytes());
                prop_assert_eq!(gathered.is_some(), rank == 0);
                prop_assert_eq!(merged.is_some(), rank == 0);
                if rank == 0 {
                    let names = (0..ranks).map(|r| format!("from {r}").into_bytes());
                    prop_assert_eq!(gathered.unwrap(), names.collect::<Vec<_>>());
                    prop_assert_eq!(merged.unwrap(), (0..number(ranks)).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_come() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let here = AtomicU32::new(0);
        on_threads(5, |w| {
            std::thread::sleep(Duration::from_millis(u64::from(w.rank()) * 5));
            here.fetch_add(1, Ordering::SeqCst);
            w.barrier(LIMIT).unwrap();
            assert_eq!(here.load(Ordering::SeqCst), 5);
        })
        .unwrap();
    }

    #[test]
    fn the_others_part_from_a_rank_that_ended_and_keep_what_they_have() {
        let answers = on_threads(4, |w| {
            if w.rank() == 2 {
                return None;
            }
            // Rank 1 has to do with rank 2 in no barrier: it hears it from rank 3.
            let lanes = crate::Lanes::new(&w);
            lanes.lane(0).barrier(LIMIT).unwrap_err();
            let mine = vec![number(w.rank())];
            // Rank 3 would have told rank 2.
            lanes
                .lane(1)
                .reduce(mine, &mut |a, b| Ok([a, b].concat()), LIMIT)
                .unwrap()
        })
        .unwrap();
        assert_eq!(answers, [Some(vec![0, 1, 3]), None, None, None]);
    }

    #[test]
    fn a_rank_that_ended_or_sleeps_is_named() {
        let answers = on_threads(3, |w| match w.rank() {
            0 => w
                .receive(1, Instant::now() + LIMIT)
                .unwrap_err()
                .to_string(),
            1 => String::new(),
            _ => {
                let soon = Instant::now() + Duration::from_millis(20);
                w.receive(2, soon).unwrap_err().to_string()
            }
        });
        let answers = answers.unwrap();
        assert_eq!(answers[0], "rank 1 is gone: its thread has ended");
        assert_eq!(answers[2], "rank 2 did not answer within 0 s");
    }
}

//! Starting and stopping a server.
//!
//! In: a setup. Out: a running server, its addresses, its counters; its end. Not here: what the
//! threads do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_schema::{RpcEndpoint, RpcPoll};
use weir_sys::{CpuList, pin};

use super::connections::Connections;
use super::inbox::{PollerInbox, PollerOrder};
use super::listener::{BoundListener, run_listener, spare};
use super::thread::{PollerThread, TICK, run_poller};
use super::{ServerCounters, ServerLimits, TestMasters};
use crate::auth::{Token, nonce};
use crate::group::address::RpcAddress;
use crate::service::RpcService;
use crate::{DerCode, MemoryAccount, RpcError};

/// A rank of a server.
#[derive(Clone, Debug)]
pub struct RankSetup {
    /// Its number in the group.
    pub rank: u32,
    /// Number of its tags.
    pub tags: u32,
    /// Where it listens; port 0 is any port.
    pub addresses: Vec<RpcAddress>,
}

/// Makes the services of a tag (rank, tag). The first answers requests without a session.
pub type ServicesOfTag = dyn Fn(u32, u32) -> Vec<Box<dyn RpcService>> + Send + Sync;

/// Setup of a server.
pub struct ServerSetup {
    /// The group that clients name.
    pub group: String,
    /// Its ranks.
    pub ranks: Vec<RankSetup>,
    /// Number of threads that serve; at least 1.
    pub pollers: usize,
    /// Poller p runs on the p-th of these; empty: where it likes.
    pub cpus: Vec<u32>,
    /// Waits of these threads.
    pub poll: RpcPoll,
    /// Services of each tag.
    pub services: Box<ServicesOfTag>,
    /// The domain of fabrics; none: the provider's first.
    pub domain: Option<String>,
    /// Limits of clients.
    pub limits: ServerLimits,
    /// Secret of clients.
    pub token: Option<Token>,
    /// Who runs ordered tests.
    pub masters: Arc<dyn TestMasters>,
    /// Takes lines about strange clients; at most one a second.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// State that the threads of a server share.
pub(super) struct ServerShared {
    pub(super) setup: ServerSetup,
    /// The run of the server.
    pub(super) run: [u8; 16],
    pub(super) memory: MemoryAccount,
    pub(super) counters: ServerCounters,
    pub(super) connections: Connections,
    /// No more connections are taken.
    pub(super) closing: AtomicBool,
}

impl ServerShared {
    pub(super) fn new(setup: ServerSetup, run: [u8; 16]) -> Self {
        Self {
            run,
            memory: MemoryAccount::new(setup.limits.memory),
            counters: ServerCounters::default(),
            connections: Connections::default(),
            closing: AtomicBool::new(false),
            setup,
        }
    }

    /// A tag's number over all ranks, which counts up the tags of each.
    pub(super) fn tag_number(&self, rank: u32, tag: u32) -> Option<usize> {
        let mut before = 0;
        for one in &self.setup.ranks {
            if one.rank == rank {
                return (tag < one.tags).then_some(before + tag as usize);
            }
            before += one.tags as usize;
        }
        None
    }

    /// Rank and tag of all tags, in order of their numbers.
    fn all_tags(&self) -> impl Iterator<Item = RpcEndpoint> + '_ {
        let tags = |one: &RankSetup| {
            let rank = one.rank;
            (0..one.tags).map(move |tag| RpcEndpoint { rank, tag })
        };
        self.setup.ranks.iter().flat_map(tags)
    }
}

/// A running server. Dropped without [`RpcServer::stop`] it ends at once.
pub struct RpcServer {
    shared: Arc<ServerShared>,
    inboxes: Vec<Arc<PollerInbox>>,
    addresses: Vec<(u32, RpcAddress)>,
    pollers: Vec<JoinHandle<std::io::Result<()>>>,
    listener: Option<JoinHandle<()>>,
    at_rest: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl RpcServer {
    /// Binds, makes links, starts threads.
    ///
    /// # Errors
    /// An address cannot be bound, a link is not to be had, a thread cannot be started, a CPU is not one of
    /// this process's.
    pub fn start(setup: ServerSetup) -> Result<Self, RpcError> {
        check_cpus(&setup.cpus)?;
        let mut links: Vec<RpcAddress> = Vec::new();
        for address in setup.ranks.iter().flat_map(|rank| &rank.addresses) {
            if !links.iter().any(|link| link.scheme == address.scheme) {
                links.push(address.clone());
            }
        }
        let bound = bind_all(&setup.ranks, &links)?;
        let run = nonce().map_err(RpcError::io("a number for this run"))?;
        let shared = Arc::new(ServerShared::new(setup, run));
        let Pollers {
            inboxes,
            threads,
            greetings,
            rests,
        } = start_pollers(&shared, &links)?;
        let address_of = |one: &BoundListener| (one.rank, one.address.clone());
        let addresses = bound.iter().map(address_of).collect();
        let (for_listener, inboxes_there) = (Arc::clone(&shared), inboxes.clone());
        let spare = spare();
        let listener = spawn("weir-listener".to_owned(), move || {
            run_listener(&for_listener, bound, &inboxes_there, &greetings, spare);
        })?;
        Ok(Self {
            shared,
            inboxes,
            addresses,
            pollers: threads,
            listener: Some(listener),
            at_rest: Arc::new(move || rests.iter().all(|at_rest| at_rest.load(Ordering::Relaxed))),
        })
    }

    /// Where each rank listens, with the port that it got.
    pub fn addresses(&self) -> &[(u32, RpcAddress)] {
        &self.addresses
    }

    /// This run of the server: the group table has it too.
    pub fn nonce(&self) -> [u8; 16] {
        self.shared.run
    }

    /// Its counters.
    pub fn counters(&self) -> &ServerCounters {
        &self.shared.counters
    }

    /// Memory that sessions have not taken, in bytes.
    pub fn memory_left(&self) -> u64 {
        self.shared.memory.left()
    }

    /// Takes no more connections, asks clients to go, waits a little for their calls, ends.
    ///
    /// # Errors
    /// A poller had failed.
    pub fn stop(mut self) -> std::io::Result<()> {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.post(|| PollerOrder::GoAway);
        let began = Instant::now();
        while began.elapsed() < self.shared.setup.limits.drain {
            std::thread::sleep(Duration::from_millis(10));
            // What pollers say of themselves may be as old as their last tick.
            if began.elapsed() > 2 * TICK && (self.at_rest)() {
                break;
            }
        }
        self.end()
    }

    fn post(&self, order: impl Fn() -> PollerOrder) {
        for inbox in &self.inboxes {
            inbox.post(order());
        }
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.post(|| PollerOrder::Stop);
        let mut result = Ok(());
        for poller in self.pollers.drain(..) {
            let failed = |_| Err(std::io::Error::other("a poller panicked"));
            result = result.and(poller.join().unwrap_or_else(failed));
        }
        if let Some(listener) = self.listener.take() {
            let failed = |_| std::io::Error::other("the listener panicked");
            result = result.and(listener.join().map_err(failed));
        }
        result
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        // Nobody is left to hear why.
        let _ = self.end();
    }
}

/// Handles of the threads that serve.
#[derive(Default)]
struct Pollers {
    inboxes: Vec<Arc<PollerInbox>>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    /// The addresses of each one's links.
    greetings: Vec<Vec<Vec<u8>>>,
    rests: Vec<Arc<AtomicBool>>,
}

fn start_pollers(shared: &Arc<ServerShared>, links: &[RpcAddress]) -> Result<Pollers, RpcError> {
    let (count, cpus) = (shared.setup.pollers.max(1), &shared.setup.cpus);
    let mut pollers = Pollers::default();
    for number in 0..count {
        let inbox = Arc::new(PollerInbox::default());
        let at_rest = Arc::new(AtomicBool::new(true));
        let (ready, made) = mpsc::channel();
        let thread = PollerThread {
            shared: Arc::clone(shared),
            inbox: Arc::clone(&inbox),
            links: links.to_vec(),
            tags: shared.all_tags().skip(number).step_by(count).collect(),
            cpu: cpus.get(number % cpus.len().max(1)).copied(),
            at_rest: Arc::clone(&at_rest),
            ready,
        };
        let name = format!("weir-poller-{number}");
        pollers
            .threads
            .push(spawn(name, move || run_poller(&thread))?);
        pollers.inboxes.push(inbox);
        pollers.rests.push(at_rest);
        let died = |_| RpcError::new(DerCode::Other, "a poller ended before it began");
        pollers.greetings.push(made.recv().map_err(died)??);
    }
    Ok(pollers)
}

fn bind_all(ranks: &[RankSetup], links: &[RpcAddress]) -> Result<Vec<BoundListener>, RpcError> {
    let mut bound = Vec::new();
    for rank in ranks {
        for address in &rank.addresses {
            let link = links.iter().position(|link| link.scheme == address.scheme);
            bound.push(BoundListener::bind(rank.rank, address, link.unwrap_or(0))?);
        }
    }
    Ok(bound)
}

fn spawn<R: Send + 'static>(
    name: String,
    run: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, RpcError> {
    let thread = std::thread::Builder::new().name(name);
    thread.spawn(run).map_err(RpcError::io("start a thread"))
}

/// Pollers stay within the CPUs that this process was started with.
fn check_cpus(wanted: &[u32]) -> Result<(), RpcError> {
    pin::check_allowed(wanted).map_err(|why| RpcError::new(DerCode::NotThere, why))
}

fn not_there(error: &dyn ToString) -> RpcError {
    RpcError::new(DerCode::NotThere, error.to_string())
}

/// The calling thread runs on this processor from now on.
pub(crate) fn pin_to(cpu: Option<u32>) -> Result<(), RpcError> {
    cpu.map_or(Ok(()), |cpu| {
        let only: CpuList = [cpu].into_iter().collect();
        pin::set_affinity(&only).map_err(|error| not_there(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_outside_the_mask_are_refused_and_the_mask_is_named() {
        std::thread::spawn(|| {
            let all = pin::affinity().unwrap();
            let first = all.as_slice()[0];
            assert_eq!(check_cpus(all.as_slice()), Ok(()));
            pin_to(Some(first)).unwrap();
            assert_eq!(check_cpus(&[first]), Ok(()));
            for outside in all.as_slice().iter().skip(1).chain(&[60_000]) {
                let refused = check_cpus(&[first, *outside]).unwrap_err();
                let says = format!("CPUs {outside} are outside");
                assert!(refused.message.contains(&says), "{refused}");
                assert!(refused.message.contains(&format!("({first})")), "{refused}");
            }
            assert!(pin_to(Some(60_000)).is_err());
        })
        .join()
        .unwrap();
    }
}

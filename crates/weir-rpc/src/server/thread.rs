//! A poller's thread: its links in turn, orders of other threads, sleep when there is nothing.
//!
//! In: tags to serve. Out: nothing until the order to stop. Not here: what a round does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use weir_schema::RpcEndpoint;

use super::inbox::{PollerInbox, PollerOrder};
use super::poller::{Poller, PollerRound, obey};
use super::start::{ServerShared, pin_to};
use super::tags::ServedTag;
use crate::group::address::RpcAddress;
use crate::links::ofi::{self, FabricChoice, OfiLink, OfiSettings};
use crate::links::shm::RpcShmLink;
use crate::links::stream::StreamLink;
use crate::links::{Link, LinkSide};
use crate::service::CallHandle;
use crate::thread_wait::patience;
use crate::{DerCode, RpcError};

/// Longest sleep.
const SLEEP: Duration = Duration::from_millis(50);
/// Longest sleep of one of several links, which the others do not end.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// Between two looks for what has gone stale.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// Rounds between two looks at the clock.
const LOOK: u32 = 256;

/// Start of a poller's thread.
pub(super) struct PollerThread {
    pub(super) shared: Arc<ServerShared>,
    pub(super) inbox: Arc<PollerInbox>,
    /// One address of each scheme.
    pub(super) links: Vec<RpcAddress>,
    /// Rank and tag of each tag that it serves.
    pub(super) tags: Vec<RpcEndpoint>,
    pub(super) cpu: Option<u32>,
    /// No call is on its way.
    pub(super) at_rest: Arc<AtomicBool>,
    /// Takes the links' addresses once they are made.
    pub(super) ready: Sender<Result<Vec<Vec<u8>>, RpcError>>,
}

/// A poller's part on the link of a scheme, and the link's address.
fn poller_of(
    thread: &PollerThread,
    number: usize,
    address: &RpcAddress,
) -> Result<(Box<dyn PollerRound>, Vec<u8>), RpcError> {
    match address.scheme.as_str() {
        "tcp" => with_link(thread, number, StreamLink::new()?),
        "shm" => with_link(thread, number, RpcShmLink::new(LinkSide::Server)?),
        scheme if scheme.starts_with(ofi::SCHEME) => {
            let mut choice = FabricChoice::of_address(address, ofi::listening(address))?;
            choice.domain.clone_from(&thread.shared.setup.domain);
            let (offer, settings) = (choice.find()?, OfiSettings::of(thread.shared.setup.poll));
            if offer.facts().has_remote_memory {
                with_link(thread, number, OfiLink::<true>::open(offer, settings)?)
            } else {
                with_link(thread, number, OfiLink::<false>::open(offer, settings)?)
            }
        }
        scheme => Err(RpcError::new(
            DerCode::Invalid,
            format!("this build has no transport `{scheme}`"),
        )),
    }
}

fn with_link<L: Link + 'static>(
    thread: &PollerThread,
    number: usize,
    mut link: L,
) -> Result<(Box<dyn PollerRound>, Vec<u8>), RpcError> {
    link.limit_memory(thread.shared.memory.clone());
    let address = link.greeting()?.address;
    let (shared, inbox) = (Arc::clone(&thread.shared), Arc::clone(&thread.inbox));
    let poller = Poller::new(link, (number, thread.links.len()), shared, inbox);
    Ok((Box::new(poller), address))
}

/// Serves until it is to stop.
pub(super) fn run_poller(thread: &PollerThread) -> std::io::Result<()> {
    let links = (0..).zip(&thread.links);
    let made: Result<Vec<_>, RpcError> = pin_to(thread.cpu).and_then(|()| {
        links
            .map(|(number, address)| poller_of(thread, number, address))
            .collect()
    });
    let (mut pollers, addresses): (Vec<Box<dyn PollerRound>>, Vec<_>) = match made {
        Ok(made) => made.into_iter().unzip(),
        Err(error) => {
            // The starter hears it; where there is none there is nobody to serve.
            let _ = thread.ready.send(Err(error));
            return Ok(());
        }
    };
    // One set for all links: whoever calls a tag, over whatever link, reaches the same services.
    let tags = thread.tags.iter().map(|endpoint| ServedTag {
        endpoint: *endpoint,
        services: (thread.shared.setup.services)(endpoint.rank, endpoint.tag),
    });
    let tags = tags.collect();
    let wakers = pollers.iter().map(|poller| poller.waker());
    thread.inbox.set_wakers(wakers.collect());
    let _ = thread.ready.send(Ok(addresses));
    serve(thread, &mut pollers, tags)
}

/// Services learn that a round is over, and the calls that they name go on. True if services hold calls.
fn end_round(
    pollers: &mut [Box<dyn PollerRound>],
    tags: &mut Vec<ServedTag>,
    ready: &mut Vec<CallHandle>,
) -> std::io::Result<bool> {
    ready.clear();
    let mut holds = false;
    for service in tags.iter_mut().flat_map(|tag| &mut tag.services) {
        holds |= service.end_of_round(ready);
    }
    for poller in pollers.iter_mut().filter(|_| !ready.is_empty()) {
        poller.resume(ready, tags)?;
    }
    Ok(holds)
}

fn serve(
    thread: &PollerThread,
    pollers: &mut [Box<dyn PollerRound>],
    mut tags: Vec<ServedTag>,
) -> std::io::Result<()> {
    let mut services = tags.iter().flat_map(|tag| &tag.services);
    let has_rounds = services.any(|service| service.answers_later());
    let (mut holds, mut ready) = (false, Vec::new());
    let sleep = if pollers.len() > 1 {
        SHORT_SLEEP
    } else {
        SLEEP
    };
    let patience = patience(thread.shared.setup.poll);
    let mut idle_since = None;
    let mut last_tick = Instant::now();
    let mut rounds = 0_u32;
    let mut wait = None;
    loop {
        let mut events = 0;
        for poller in pollers.iter_mut() {
            events += poller.round(wait, &mut tags)?;
        }
        if has_rounds && (events > 0 || holds) {
            holds = end_round(pollers, &mut tags, &mut ready)?;
            // What waited for the buffers of these calls has to go on.
            events += u32::from(!ready.is_empty());
        }
        rounds = rounds.wrapping_add(1);
        let had_slept = wait.take().is_some();
        if events > 0 {
            idle_since = None;
        } else if let Some(patience) = patience {
            if patience.is_zero() {
                wait = Some(sleep);
            } else if had_slept || rounds.is_multiple_of(16) {
                let since = *idle_since.get_or_insert_with(Instant::now);
                wait = (had_slept || since.elapsed() >= patience).then_some(sleep);
            }
        }
        if holds {
            wait = wait.map(|wait: Duration| wait.min(SHORT_SLEEP));
        }
        for order in thread.inbox.take() {
            if matches!(order, PollerOrder::Stop) {
                return Ok(());
            }
            obey(pollers, order);
        }
        if (had_slept || rounds.is_multiple_of(LOOK)) && last_tick.elapsed() >= TICK {
            last_tick = Instant::now();
            for poller in pollers.iter_mut() {
                poller.tick(&mut tags);
            }
            let at_rest = pollers.iter().all(|poller| poller.is_at_rest());
            thread.at_rest.store(at_rest, Ordering::Relaxed);
        }
    }
}

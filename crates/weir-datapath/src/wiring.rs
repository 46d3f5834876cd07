//! Who is connected to whom: rings between threads and dispatchers, between dispatchers, over the link.
//!
//! In: the streams of a plan. Out: for each thread of both sides what it owns, clients first. Not here:
//! whether the streams make sense (`runner`).

use std::collections::BTreeMap;

use weir_schema::{PacketPathWorkload, PacketStream, PathSide, PathStage};

use crate::application::ApplicationParts;
use crate::dispatcher::{DispatcherParts, Route, Routes, StreamRoute, ThreadSource};
use crate::flush::FlushTimer;
use crate::link::{AnyLink, LoneLink, LoneRound, RingLink, RingLinkParts};
use crate::pool::{BufferReceiver, BufferSender, Pool, buffer_ring};

/// The links of a side's dispatchers, by their numbers.
pub(crate) type SideLinks<L> = BTreeMap<u8, L>;

/// Parts that a thread owns.
pub(crate) struct ThreadWiring {
    pub(crate) side: PathSide,
    pub(crate) thread: u8,
    pub(crate) pool: Pool,
    pub(crate) application: Option<ApplicationParts>,
    pub(crate) dispatcher: Option<DispatcherParts<AnyLink>>,
    pub(crate) stages: Vec<PathStage>,
}

/// Rings between dispatchers, by the one that has an end: where it sends, to which, and where it receives.
#[derive(Debug, Default)]
struct RingEnds {
    to: BTreeMap<u8, Vec<(u8, BufferSender)>>,
    from: BTreeMap<u8, Vec<BufferReceiver>>,
}

/// Parts of each thread of the run's sides, clients first, each side by number; a pool for each.
pub(crate) fn wire(
    work: &PacketPathWorkload,
    mut opened: [SideLinks<AnyLink>; 2],
    pools: Vec<Pool>,
    seed: u64,
) -> Vec<ThreadWiring> {
    let mut pools = pools.into_iter();
    if let Some(stage) = work.only_stage {
        let of = |pool| alone(work, stage, pool, seed);
        return pools.filter_map(of).collect();
    }
    let threads = work.threads();
    let mut links = links(work);
    let mut all = Vec::new();
    for &side in work.sides() {
        let at = usize::from(side == PathSide::Server);
        let ends = (&mut links[at], &mut opened[at]);
        let mut wired = SideWiring::of(work, side, ends, seed);
        for &thread in &threads {
            let Some(pool) = pools.next() else {
                continue;
            };
            all.push(ThreadWiring {
                side,
                thread,
                pool,
                application: wired.applications.remove(&thread),
                dispatcher: wired.dispatchers.remove(&thread),
                stages: stages_of(work, thread),
            });
        }
    }
    all
}

/// A thread that has a stage alone, of one workspace: the parts beside it are left out, and its link has their ends of
/// rings.
fn alone(
    work: &PacketPathWorkload,
    stage: PathStage,
    pool: Pool,
    seed: u64,
) -> Option<ThreadWiring> {
    use PathStage::{ApplicationRx, ApplicationTx, DispatchRx, DispatchTx, LinkRx, LinkTx};
    let [client, server] = links(work);
    let (side, mut own, far) = match stage {
        ApplicationTx | DispatchTx | LinkTx => (PathSide::Client, client, server),
        ApplicationRx | DispatchRx | LinkRx => (PathSide::Server, server, client),
    };
    let wired = SideWiring::of(work, side, (&mut own, &mut SideLinks::new()), seed);
    let mut dispatcher = wired.dispatchers.into_values().next()?;
    let mut applications = wired.applications.into_values();
    let is_application = matches!(stage, ApplicationTx | ApplicationRx);
    let (application, mut to, mut from) = if is_application {
        let sources = dispatcher.sources.drain(..).map(|source| source.ring);
        let from = sources.collect();
        (applications.next(), dispatcher.targets.pop()?, from)
    } else {
        let ends = applications.map(|parts| (parts.tx, parts.rx));
        let (mut to, from): (Vec<_>, Vec<_>) = ends.unzip();
        (None, to.pop()?, from)
    };
    match stage {
        LinkTx => from.extend(far.from.into_values().flatten()),
        LinkRx => to = far.to.into_values().flatten().next()?.1,
        _ => {}
    }
    let link = LoneLink {
        stage,
        source: None,
        to,
        from,
        ring: dispatcher.link,
        batch: work.batches.dispatch_tx as usize,
        round: LoneRound::default(),
    };
    let dispatcher = DispatcherParts {
        link: AnyLink::Alone(Box::new(link)),
        ..dispatcher
    };
    Some(ThreadWiring {
        side,
        thread: 0,
        pool,
        application,
        dispatcher: Some(dispatcher),
        // The link turns round before the stage of an application.
        stages: vec![DispatchTx, DispatchRx, ApplicationTx, ApplicationRx],
    })
}

/// The part of a plan's work that a stage alone has.
pub(crate) fn narrowed(mut work: PacketPathWorkload) -> PacketPathWorkload {
    let Some(stage) = work.only_stage else {
        return work;
    };
    work.streams.truncate(1);
    for stream in &mut work.streams {
        stream.groups.truncate(1);
        if stage != PathStage::DispatchRx {
            let groups = stream.groups.iter_mut();
            groups.for_each(|group| group.threads.truncate(1));
        }
    }
    if stage != PathStage::LinkTx {
        // A round goes on as a whole; a link alone sends a batch at a time.
        work.batches.dispatch_tx = 1;
    }
    if stage != PathStage::ApplicationTx {
        work.in_flight = 0;
    }
    work
}

/// Rings from each of these dispatchers to each that it is linked to, in the order of their numbers.
fn rings(slots: u32, numbers: &[u8], are_linked: impl Fn(u8, u8) -> bool) -> RingEnds {
    let mut ends = RingEnds::default();
    for &from in numbers {
        for &to in numbers.iter().filter(|to| are_linked(from, **to)) {
            let (sender, receiver) = buffer_ring(slots);
            ends.to.entry(from).or_default().push((to, sender));
            ends.from.entry(to).or_default().push(receiver);
        }
    }
    ends
}

/// Queues of the link, from each dispatcher of one side to each of the other: of the client, of the server.
fn links(work: &PacketPathWorkload) -> [RingEnds; 2] {
    let one_way = |_| rings(work.queue_slots, &work.dispatchers(), |_, _| true);
    let [forth, back] = [0, 1].map(one_way);
    let ends = |to, from| RingEnds { to, from };
    [ends(forth.to, back.from), ends(back.to, forth.from)]
}

/// Stages of a thread in a pass: streams by number, their stages in order, each once.
fn stages_of(work: &PacketPathWorkload, thread: u8) -> Vec<PathStage> {
    let mut streams: Vec<&PacketStream> = work.streams.iter().collect();
    streams.sort_by_key(|stream| stream.id);
    let mut all = Vec::new();
    for stream in streams {
        let mut groups = stream.groups.iter();
        let makes = groups.any(|group| group.threads.contains(&thread));
        let dispatches = stream.groups.iter().any(|group| group.dispatcher == thread);
        for &stage in &stream.stages {
            let is_own = match stage {
                PathStage::ApplicationTx | PathStage::ApplicationRx => makes,
                PathStage::DispatchTx | PathStage::DispatchRx => dispatches,
                PathStage::LinkTx | PathStage::LinkRx => false,
            };
            if is_own && !all.contains(&stage) {
                all.push(stage);
            }
        }
    }
    all
}

/// The parts of a side by thread.
struct SideWiring {
    applications: BTreeMap<u8, ApplicationParts>,
    dispatchers: BTreeMap<u8, DispatcherParts<AnyLink>>,
}

/// The rings of a dispatcher to its threads, while they are made.
#[derive(Default)]
struct ServedRings {
    sources: Vec<ThreadSource>,
    targets: Vec<BufferSender>,
    /// Stream and number of the thread of each target.
    served: Vec<(u8, u8)>,
}

impl SideWiring {
    fn of(
        work: &PacketPathWorkload,
        side: PathSide,
        (ends, opened): (&mut RingEnds, &mut SideLinks<AnyLink>),
        seed: u64,
    ) -> Self {
        let (applications, served) = applications(work, side);
        let numbers = work.dispatchers();
        let mut hand_overs = rings(work.ring_slots, &numbers, |from, to| from != to);
        let mut dispatchers = BTreeMap::new();
        for (number, rings) in served {
            let routes = routes(work, side, number, &rings.served);
            let ring = RingLinkParts {
                to: ends.to.remove(&number).unwrap_or_default(),
                from: ends.from.remove(&number).unwrap_or_default(),
                first_port: work.first_port,
                post_tx: work.batches.link_tx,
                post_rx: work.batches.link_rx,
            };
            let others = hand_overs.to.remove(&number).unwrap_or_default();
            let link = opened.remove(&number);
            let link = link.unwrap_or_else(|| AnyLink::Ring(Box::new(RingLink::new(ring))));
            let parts = DispatcherParts {
                sources: rings.sources,
                targets: rings.targets,
                routes,
                others: others.into_iter().map(|(_, ring)| ring).collect(),
                handed: hand_overs.from.remove(&number).unwrap_or_default(),
                link,
                side,
                seed: seed ^ u64::from(number),
            };
            dispatchers.insert(number, parts);
        }
        Self {
            applications,
            dispatchers,
        }
    }
}

/// The parts that make and take messages, and what their dispatchers have of them.
fn applications(
    work: &PacketPathWorkload,
    side: PathSide,
) -> (BTreeMap<u8, ApplicationParts>, BTreeMap<u8, ServedRings>) {
    let makers = work.streams.iter().flat_map(|stream| &stream.groups);
    let makers = makers.map(|group| group.threads.len()).sum();
    let mut applications = BTreeMap::new();
    let mut served: BTreeMap<u8, ServedRings> = BTreeMap::new();
    for stream in &work.streams {
        for group in &stream.groups {
            let rings = served.entry(group.dispatcher).or_default();
            for &thread in &group.threads {
                let (tx, source) = buffer_ring(work.ring_slots);
                let (target, rx) = buffer_ring(work.ring_slots);
                rings.sources.push(ThreadSource {
                    ring: source,
                    timer: FlushTimer::default(),
                });
                rings.targets.push(target);
                rings.served.push((stream.id, thread));
                let parts = ApplicationParts {
                    side,
                    stream: stream.id,
                    thread,
                    peers: stream.peers.clone(),
                    turn: (applications.len(), makers),
                    tx,
                    rx,
                };
                applications.insert(thread, parts);
            }
        }
    }
    (applications, served)
}

/// Where packets go that come to a dispatcher which serves these streams and threads.
fn routes(work: &PacketPathWorkload, side: PathSide, number: u8, served: &[(u8, u8)]) -> Routes {
    // The place of another dispatcher in the list of hand-overs.
    let mut others = work.dispatchers();
    others.retain(|dispatcher| *dispatcher != number);
    let place = |dispatcher: u8| others.iter().position(|d| *d == dispatcher);
    if side == PathSide::Client {
        let mut threads = [Route::Nowhere; 16];
        let groups = work.streams.iter().flat_map(|stream| &stream.groups);
        for group in groups.filter(|group| group.dispatcher != number) {
            for thread in &group.threads {
                let other = place(group.dispatcher).map_or(Route::Nowhere, Route::Other);
                threads[usize::from(thread & 15)] = other;
            }
        }
        for (at, (_, thread)) in served.iter().enumerate() {
            threads[usize::from(thread & 15)] = Route::Own(at);
        }
        return Routes::Origin(Box::new(threads));
    }
    let of_stream = |stream: &PacketStream| {
        let own = served.iter().enumerate();
        let own = own.filter(|(_, (id, _))| *id == stream.id);
        let mut dispatchers = stream.groups.iter().map(|group| group.dispatcher);
        StreamRoute {
            stream: stream.id,
            own: own.map(|(at, _)| at).collect(),
            other: dispatchers.find_map(place),
        }
    };
    Routes::Stream(work.streams.iter().map(of_stream).collect())
}

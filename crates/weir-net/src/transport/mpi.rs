//! MPI, as the launcher brought it: the library's own calls on host buffers.
//!
//! One exchange is one call (or three, or a collective one) with nothing around it, compiled for
//! each family of libraries, so that the figures are the library's. A call that does not come
//! back cannot be ended from here; then the watchdog ends the whole world.

mod point_to_point;

use std::collections::BTreeSet;
use std::rc::Rc;

use weir_schema::{MessageSize, Method, MpiFacts};
use weir_sys::Availability;
use weir_world::Launcher;
use weir_world::mpi::{
    Abi, MessageLayout, Mpi, MpiError, MpiLibrary, MpiWorld, PeerRank, Requests, Tag,
};

use self::point_to_point::MpiPointToPoint;
use super::{Facts, PLAIN, Setup, Transport, TransportInfo};
use crate::buffers::Buffers;
use crate::error::{Halt, NetError};
use crate::exchange::{ExchangeContext, ExchangeOutcome, drive};
use crate::latency_bandwidth::{self, measure_rank};
use weir_world::RankComm;
use weir_world::Watchdog;

pub(super) const INFO: TransportInfo = TransportInfo {
    name: NAME,
    peer: Some("CPU"),
    summary: "host buffers, MPI send and receive",
    methods: &[Method::Sendrecv, Method::Nonblocking, Method::Alltoallv],
    needs_launcher: true,
    availability,
    drive: drive_family,
    measure_rank: Some(measure_with_family),
    ..PLAIN
};

const NAME: &str = "mpi";

/// Availability of a library. It is not started.
fn availability() -> Availability {
    let wish = std::env::var(weir_world::mpi::LIBRARY_VARIABLE).ok();
    match MpiLibrary::open(Launcher::of_this_process(), wish.as_deref()) {
        Ok(_) => Availability::Ready,
        Err(error) => Availability::Missing {
            // Its further lines say what helps.
            what: format!("an MPI library: {error}").lines().take(1).collect(),
            remedy: "install openmpi-bin or mpich, or name a library in WEIR_MPI_LIB".to_owned(),
        },
    }
}

/// The loop of the family that the world speaks.
fn drive_family(
    context: &ExchangeContext<'_>,
    info: &TransportInfo,
    outcome: &mut ExchangeOutcome,
) -> Result<(), NetError> {
    match context.comm.mpi() {
        Some(MpiWorld::OpenMpi(_)) => {
            drive::<MpiCalls<weir_world::mpi::OmpiAbi>>(context, info, outcome)
        }
        Some(MpiWorld::Mpich(_)) => {
            drive::<MpiCalls<weir_world::mpi::MpichAbi>>(context, info, outcome)
        }
        None => Err(no_launcher()),
    }
}

/// The same for ping-pongs and rings.
fn measure_with_family(
    context: &latency_bandwidth::LatencyBandwidthContext<'_>,
    outcome: &mut latency_bandwidth::LatencyBandwidthOutcome,
) -> Result<(), NetError> {
    match context.comm.mpi() {
        Some(MpiWorld::OpenMpi(_)) => {
            measure_rank::<MpiPointToPoint<weir_world::mpi::OmpiAbi>>(context, outcome)
        }
        Some(MpiWorld::Mpich(_)) => {
            measure_rank::<MpiPointToPoint<weir_world::mpi::MpichAbi>>(context, outcome)
        }
        None => Err(no_launcher()),
    }
}

fn no_launcher() -> NetError {
    NetError::Missing {
        transport: NAME.to_owned(),
        what: "an MPI launcher around it".to_owned(),
        remedy: "start it with `mpirun -n N`, or take the transport shm".to_owned(),
    }
}

/// The library of a binary interface, from a world over it.
pub(super) trait FromMpiWorld: Abi {
    fn of(world: &MpiWorld) -> Option<Rc<Mpi<Self>>>
    where
        Self: Sized;
}

impl FromMpiWorld for weir_world::mpi::OmpiAbi {
    fn of(world: &MpiWorld) -> Option<Rc<Mpi<Self>>> {
        match world {
            MpiWorld::OpenMpi(mpi) => Some(Rc::clone(mpi)),
            MpiWorld::Mpich(_) => None,
        }
    }
}

impl FromMpiWorld for weir_world::mpi::MpichAbi {
    fn of(world: &MpiWorld) -> Option<Rc<Mpi<Self>>> {
        match world {
            MpiWorld::Mpich(mpi) => Some(Rc::clone(mpi)),
            MpiWorld::OpenMpi(_) => None,
        }
    }
}

/// One rank's calls.
pub(super) struct MpiCalls<A: Abi> {
    mpi: Rc<Mpi<A>>,
    buffers: Buffers,
    channels: Vec<Channel>,
    method: Method,
    requests: Requests<A>,
    /// All that channels go to or come from, once each.
    neighbours: Vec<PeerRank>,
}

/// The ends of a replication.
struct Channel {
    to: PeerRank,
    from: PeerRank,
    tag: Tag,
    /// For the collective call: this rank's message to one rank alone, and from one.
    out: MessageLayout,
    into: MessageLayout,
}

impl<A: FromMpiWorld> Transport for MpiCalls<A> {
    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let mpi = world_of::<A>(setup.comm, setup.watchdog)?;
        let ranks = setup.partners.iter().flat_map(|p| [p.to, p.from]);
        let ranks: BTreeSet<_> = ranks.collect();
        let peers = ranks.into_iter().map(|rank| mpi.peer(rank));
        Ok(Self {
            neighbours: peers.collect::<Result<_, _>>()?,
            mpi,
            buffers: Buffers::default(),
            channels: Vec::new(),
            method: Method::Sendrecv,
            requests: Requests::with_capacity(2),
        })
    }

    fn prepare(
        &mut self,
        size: MessageSize,
        method: Method,
        setup: &Setup<'_>,
    ) -> Result<(), Halt> {
        self.buffers = Buffers::new(setup.partners.len(), size.bytes())?;
        self.method = method;
        let bytes = usize::try_from(size.bytes().0)
            .map_err(|_| Halt::Garbled("messages beyond the address space".to_owned()))?;
        let ranks = setup.comm.size();
        let alone = |rank: u32| {
            let part = |other| (0, if other == rank { bytes } else { 0 });
            MessageLayout::new(&(0..ranks).map(part).collect::<Vec<_>>())
        };
        let channel = |(number, partners): (usize, &crate::pairing::Partners)| {
            Ok(Channel {
                to: self.mpi.peer(partners.to)?,
                from: self.mpi.peer(partners.from)?,
                tag: Tag::from(u8::try_from(number).unwrap_or(u8::MAX)),
                out: alone(partners.to)?,
                into: alone(partners.from)?,
            })
        };
        let channels = setup.partners.iter().enumerate().map(channel);
        self.channels = channels.collect::<Result<_, Halt>>()?;
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.outgoing(replication)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.incoming(replication)
    }

    /// Ranks tell each other things between runs.
    fn rewind(&mut self, _setup: &Setup<'_>) -> Result<(), Halt> {
        self.mpi.level(&self.neighbours)?;
        Ok(())
    }

    fn barrier(&mut self, _setup: &Setup<'_>) -> Result<(), Halt> {
        Ok(self.mpi.barrier()?)
    }

    #[inline]
    fn exchange(&mut self, replication: usize, _watchdog: &Watchdog) -> Result<(), Halt> {
        self.exchanges(replication, 1, || Ok(()))
    }

    fn exchange_often(
        &mut self,
        replication: usize,
        loops: u64,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        self.exchanges(replication, loops, || {
            watchdog.progress();
            Ok(watchdog.check()?)
        })
    }

    fn facts(&self) -> Facts {
        facts_of(self.mpi.facts())
    }
}

impl<A: FromMpiWorld> MpiCalls<A> {
    /// Exchanges with nothing around each call but what comes `after` it.
    #[inline]
    fn exchanges(
        &mut self,
        replication: usize,
        loops: u64,
        after: impl FnMut() -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let channel = &self.channels[replication];
        let (out, into) = self.buffers.both(replication);
        let (to, from, tag) = (channel.to, channel.from, channel.tag);
        match self.method {
            Method::Sendrecv | Method::Best => {
                let mut calls = self.mpi.sendrecvs(to, out, from, into, tag)?;
                again(loops, || calls.again(), after)
            }
            Method::Nonblocking => {
                let (mpi, requests) = (&self.mpi, &mut self.requests);
                let both = || {
                    mpi.together(requests, |posting| {
                        posting.irecv(from, into, tag)?;
                        posting.isend(to, out, tag)
                    })
                };
                again(loops, both, after)
            }
            Method::Alltoallv => {
                let (out_of, into_of) = (&channel.out, &channel.into);
                let all = || self.mpi.alltoallv(out, out_of, into, into_of);
                again(loops, all, after)
            }
        }
    }
}

#[inline]
fn again(
    loops: u64,
    mut call: impl FnMut() -> Result<(), MpiError>,
    mut after: impl FnMut() -> Result<(), Halt>,
) -> Result<(), Halt> {
    for _ in 0..loops {
        call()?;
        after()?;
    }
    Ok(())
}

/// This family's world, which the watchdog ends when nothing else can.
fn world_of<A: FromMpiWorld>(comm: &RankComm<'_>, watchdog: &Watchdog) -> Result<Rc<Mpi<A>>, Halt> {
    let mpi = comm.mpi().and_then(A::of);
    let mpi = mpi.ok_or_else(|| Halt::Garbled("not a world of this MPI".to_owned()))?;
    let emergency = mpi.emergency();
    watchdog.on_hang(move |code| emergency.abort(code));
    Ok(mpi)
}

fn facts_of(facts: &weir_world::mpi::MpiLibraryFacts) -> Facts {
    Facts {
        mpi: Some(MpiFacts {
            family: facts.family.to_string(),
            library: facts.library.clone(),
            version: facts.version,
            subversion: facts.subversion,
            file: facts.file.clone(),
        }),
        device: None,
    }
}

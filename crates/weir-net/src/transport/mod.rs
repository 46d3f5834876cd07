//! Transports of messages between ranks: the trait, and the registry.
//!
//! A transport is one file here and one line in [`transports`], which doors read as data
//! ([`catalogue`]). Each is compiled into an exchange loop of its own, so that the loop calls it
//! without a detour.

mod address;
mod file;
mod interface;
pub mod messages;
mod mpi;
mod null;
mod ocl;
mod pace;
mod shm;
pub(crate) mod tcp;
mod udp;

use weir_schema::catalogue::{SettingInfo, TransportCatalogue, TransportRecord};
use weir_schema::{EngineChoice, MessageSize, Method, MpiFacts, Transfer};
use weir_sys::Availability;

use crate::error::{Halt, NetError};
use crate::exchange::{ExchangeContext, ExchangeOutcome, drive};
use crate::latency_bandwidth::MeasureRank;
use crate::pairing::Partners;
use weir_world::RankComm;
use weir_world::Watchdog;

/// Parts that a transport opens with.
#[expect(missing_debug_implementations, reason = "holds the world")]
pub struct Setup<'a> {
    /// Everybody, for addresses and meetings.
    pub comm: &'a RankComm<'a>,
    /// Long waits look at it.
    pub watchdog: &'a Watchdog,
    /// The transport's settings, checked.
    pub engine: &'a EngineChoice,
    /// The ends of this rank's channels, by replication.
    pub partners: &'a [Partners],
    /// The sizes that will come.
    pub sizes: &'a [MessageSize],
}

impl Setup<'_> {
    /// Bytes of the largest message.
    pub fn largest(&self) -> u64 {
        let bytes = self.sizes.iter().map(|size| size.bytes().0);
        bytes.max().unwrap_or(1)
    }

    /// Swaps bytes along every channel: each rank gives its own to whoever sends to it, and gets
    /// those of whoever it sends to.
    ///
    /// # Errors
    /// A rank is gone or late.
    pub fn swap_with_senders(&self, mine: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Halt> {
        for (partners, bytes) in self.partners.iter().zip(mine) {
            self.comm.send(partners.from, bytes, self.watchdog)?;
        }
        let answers = self.partners.iter();
        answers
            .map(|partners| Ok(self.comm.receive(partners.to, self.watchdog)?))
            .collect()
    }

    /// The same the other way round: bytes for whoever it sends to, from whoever sends to it.
    ///
    /// # Errors
    /// A rank is gone or late.
    pub fn swap_with_receivers(&self, mine: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Halt> {
        for (partners, bytes) in self.partners.iter().zip(mine) {
            self.comm.send(partners.to, bytes, self.watchdog)?;
        }
        let answers = self.partners.iter();
        answers
            .map(|partners| Ok(self.comm.receive(partners.from, self.watchdog)?))
            .collect()
    }
}

/// Facts that a transport found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The MPI library, where there is one.
    pub mpi: Option<MpiFacts>,
    /// The device this rank used.
    pub device: Option<RankDevice>,
}

/// A rank's device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankDevice {
    /// Among those of its kind.
    pub index: u32,
    /// Name that it reports.
    pub name: String,
    /// Name that its platform reports.
    pub platform: String,
    /// Index and name of those that could have been taken as well.
    pub others: Vec<String>,
}

/// One rank's end of everything that messages travel on.
///
/// The exchanges call, per size: `prepare`, fill `outgoing`, blank `incoming`, `filled`; then per
/// run `rewind`, `barrier`, `exchange` again and again, `complete`; then `arrived`, and look at
/// `incoming`. All ranks do so in the same order.
pub trait Transport {
    /// All replications exchange at the same time, around a ring, instead of one after another.
    fn together() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// There is no partner: each rank does this with its own device.
    fn transfer() -> Option<Transfer>
    where
        Self: Sized,
    {
        None
    }

    /// Finds the other ranks.
    ///
    /// # Errors
    /// The thing that is missing, or the rank that did not answer.
    fn open(setup: &Setup<'_>) -> Result<Self, Halt>
    where
        Self: Sized;

    /// Gets ready for messages of this size. All messages before have arrived everywhere.
    ///
    /// # Errors
    /// Mostly memory.
    fn prepare(&mut self, size: MessageSize, method: Method, setup: &Setup<'_>)
    -> Result<(), Halt>;

    /// The message that a replication sends.
    fn outgoing(&mut self, replication: usize) -> &mut [u8];

    /// The message that a replication has received.
    fn incoming(&mut self, replication: usize) -> &mut [u8];

    /// Takes over the filled outgoing and blanked incoming buffers. What lies elsewhere than in
    /// these buffers gets its own from them.
    ///
    /// # Errors
    /// Of the transport.
    fn filled(&mut self) -> Result<(), Halt> {
        Ok(())
    }

    /// Before the barrier of each run, and before barriers themselves are timed; outside of what
    /// is timed.
    ///
    /// # Errors
    /// Of the transport.
    fn rewind(&mut self, _setup: &Setup<'_>) -> Result<(), Halt> {
        Ok(())
    }

    /// Returns on no rank before all have called it.
    ///
    /// # Errors
    /// A rank is gone, or the watchdog ended the wait.
    fn barrier(&mut self, setup: &Setup<'_>) -> Result<(), Halt> {
        Ok(setup.comm.barrier(setup.watchdog)?)
    }

    /// Sends one message and receives one. When it returns, the message has arrived here, and
    /// what goes out may be changed.
    ///
    /// # Errors
    /// A rank is gone, or the watchdog ended the wait.
    fn exchange(&mut self, replication: usize, watchdog: &Watchdog) -> Result<(), Halt>;

    /// That again and again, each one a beat of the watchdog. Here for transports that can get
    /// something ready before the first.
    ///
    /// # Errors
    /// As [`Transport::exchange`].
    #[inline]
    fn exchange_often(
        &mut self,
        replication: usize,
        loops: u64,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        for _ in 0..loops {
            self.exchange(replication, watchdog)?;
            watchdog.progress();
            watchdog.check()?;
        }
        Ok(())
    }

    /// Sends and receives one message on every replication.
    ///
    /// # Errors
    /// As [`Transport::exchange`].
    fn exchange_all(&mut self, replications: usize, watchdog: &Watchdog) -> Result<(), Halt> {
        (0..replications).try_for_each(|replication| self.exchange(replication, watchdog))
    }

    /// At the end of a run, inside of what is timed: waits for what was only begun.
    ///
    /// # Errors
    /// Of the transport.
    #[inline]
    fn complete(&mut self, _replication: usize) -> Result<(), Halt> {
        Ok(())
    }

    /// After the last run of a size, before `incoming` is looked at: brings there what came in,
    /// where that lies elsewhere.
    ///
    /// # Errors
    /// Of the transport.
    fn arrived(&mut self) -> Result<(), Halt> {
        Ok(())
    }

    /// The replication that an exchange of all of them waits for.
    fn waiting_for(&self) -> Option<usize> {
        None
    }

    /// Messages of this size that never came; nothing where none can be lost.
    fn losses(&self) -> Option<u64> {
        None
    }

    /// Facts that it found out.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// After the last size, when everybody is done.
    ///
    /// # Errors
    /// The resource that could not be released.
    fn finish(self) -> Result<(), Halt>
    where
        Self: Sized,
    {
        Ok(())
    }
}

type Drive = fn(&ExchangeContext<'_>, &TransportInfo, &mut ExchangeOutcome) -> Result<(), NetError>;

/// A transport, as data.
#[derive(Clone, Copy, Debug)]
pub struct TransportInfo {
    /// Name in plans.
    pub name: &'static str,
    /// Name in `HPCC_FPGA`, where it has one.
    pub peer: Option<&'static str>,
    /// The path that the data takes, in one line.
    pub summary: &'static str,
    /// Settings in house words.
    pub settings: &'static [SettingInfo],
    /// Ways there and back that it knows, the first by default.
    pub methods: &'static [Method],
    /// Received data is what was sent: it can be checked.
    pub moves_data: bool,
    /// Messages can be looked at inside the loop: they pass through the buffers that are filled
    /// and checked.
    pub samples: bool,
    /// Transfers that can be measured in place of exchanges.
    pub transfers: &'static [Transfer],
    /// Its ranks are the processes of an MPI launcher.
    pub needs_launcher: bool,
    /// Finds out if this machine can use it.
    pub availability: fn() -> Availability,
    /// Checks its settings for so many ranks, and if this machine has what they need.
    pub(crate) check: fn(&Asked<'_>) -> Result<(), NetError>,
    /// Checks its settings on this machine where all ranks are on it.
    pub(crate) here: fn(&Asked<'_>) -> Result<(), String>,
    /// Its exchange loop.
    pub(crate) drive: Drive,
    /// Its ping-pongs and rings, where any two ranks can reach each other over it.
    pub(crate) measure_rank: Option<MeasureRank>,
}

impl TransportInfo {
    /// Record for doors.
    pub fn record(&self) -> TransportRecord {
        TransportRecord {
            name: self.name,
            peer: self.peer,
            summary: self.summary,
            settings: self.settings,
            methods: self.methods,
            transfers: self.transfers,
            moves_data: self.moves_data,
            connects_any_two: self.measure_rank.is_some(),
            needs_launcher: self.needs_launcher,
        }
    }

    /// The method asked for, or all there are.
    pub(crate) fn tried<'a>(&self, asked: &'a Method) -> &'a [Method] {
        match asked {
            Method::Best => self.methods,
            one => std::slice::from_ref(one),
        }
    }
}

/// A transport's settings, and who is to use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) engine: &'a EngineChoice,
    pub(crate) ranks: u32,
    /// Channels of a rank.
    pub(crate) replications: u32,
}

impl Asked<'_> {
    /// For `map_err`: what is wrong with the plan.
    pub(crate) fn wrong(&self, why: &str) -> NetError {
        NetError::Plan(format!("transport `{}`: {why}", self.engine.name))
    }
}

/// Every transport of this build.
pub fn transports() -> &'static [TransportInfo] {
    const ALL: &[TransportInfo] = &[
        mpi::INFO,
        shm::INFO,
        tcp::INFO,
        udp::INFO,
        file::INFO,
        ocl::INFO,
        null::INFO,
    ];
    ALL
}

/// The transport of this name.
pub fn find(name: &str) -> Option<&'static TransportInfo> {
    transports().iter().find(|info| info.name == name)
}

/// Every transport of this build, as data for the doors.
pub fn catalogue() -> TransportCatalogue {
    TransportCatalogue {
        records: transports().iter().map(TransportInfo::record).collect(),
        lacks,
    }
}

/// Needs of the transport of this name that this machine lacks.
fn lacks(name: &str) -> Option<String> {
    match (find(name)?.availability)() {
        Availability::Ready => None,
        Availability::Missing { what, remedy } => {
            Some(format!("this machine lacks {what}; {remedy}"))
        }
    }
}

/// For transports that need nothing.
fn always() -> Availability {
    Availability::Ready
}

/// Properties of most transports.
const PLAIN: TransportInfo = TransportInfo {
    name: "",
    peer: None,
    summary: "",
    settings: &[],
    methods: &[Method::Sendrecv],
    moves_data: true,
    samples: true,
    transfers: &[],
    needs_launcher: false,
    availability: always,
    check: |_| Ok(()),
    here: |_| Ok(()),
    drive: drive::<null::Null>,
    measure_rank: None,
};

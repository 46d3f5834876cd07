//! Exchanges: every rank sends and receives messages of growing size, several channels one after
//! the other or all at once (spec: effective bandwidth). What shall be done, and what was.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema, Nanos};

use crate::workload::WorkloadFacts;
use crate::world::{MpiFacts, RankFacts};

/// Largest exponent of a message that is sent.
pub const LARGEST_EXPONENT: u8 = 34;

/// Exchanges over one transport, which is the engine of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeWorkload {
    /// Message sizes in order.
    pub sizes: Vec<MessageSize>,
    /// Timed runs per size.
    pub repetitions: u32,
    /// Channels per rank.
    pub replications: u32,
    /// Pairing of the ranks.
    pub pairing: Pairing,
    /// Method by which a message goes there and back.
    pub method: Method,
    /// Exchanges per size before the first timed run.
    pub warmup: u32,
    /// Loops are made longer until a run takes this long.
    pub min_time_ns: Option<Nanos>,
    /// No further size is begun after this time.
    pub max_time_ns: Option<Nanos>,
    /// Check of arriving data.
    pub validation: Validation,
    /// Of patterns.
    pub seed: u64,
    /// Damage done on purpose.
    #[serde(default)]
    pub faults: Vec<InjectedFault>,
    /// Without progress for this long the run ends.
    pub timeout_ns: Nanos,
    /// Model that the results are set beside.
    #[serde(default)]
    pub model: Option<Model>,
    /// In place of exchanges: what each rank does with its device alone, one after the other.
    #[serde(default)]
    pub transfers: Vec<Transfer>,
}

impl ExchangeWorkload {
    /// Sizes to be measured, of each kind of transfer where there are such; a launch has none and
    /// counts as one.
    pub fn measurements(&self) -> usize {
        let of = |transfer: &Transfer| match transfer {
            Transfer::KernelLaunch => 1,
            _ => self.sizes.len(),
        };
        if self.transfers.is_empty() {
            self.sizes.len()
        } else {
            self.transfers.iter().map(of).sum()
        }
    }

    /// Reason that a fault is no part of this work of so many ranks.
    pub fn misfit(&self, fault: &InjectedFault, ranks: u32) -> Option<String> {
        if fault.rank >= ranks {
            return Some(format!("the ranks are 0 to {}", ranks.saturating_sub(1)));
        }
        if self.transfers == [Transfer::KernelLaunch] {
            return Some("launches of a kernel have no messages".to_owned());
        }
        let Some(size) = self.sizes.iter().find(|s| s.exponent == fault.exponent) else {
            return Some("no messages of this size are exchanged".to_owned());
        };
        let (length, replications) = (size.loop_length, u64::from(self.replications));
        match fault.kind {
            FaultKind::Flip => {
                let last = size.bytes().0.saturating_mul(replications) - 1;
                (fault.at > last).then(|| format!("a rank receives bytes 0 to {last}"))
            }
            // With a shortest time the loop may become longer.
            FaultKind::Stall | FaultKind::Die => (fault.at > length && self.min_time_ns.is_none())
                .then(|| format!("the loop has {length} exchanges of this size")),
        }
    }
}

impl WorkloadFacts for ExchangeWorkload {
    fn title(&self) -> String {
        "exchange".to_owned()
    }

    fn timeout_ns(&self) -> Option<Nanos> {
        Some(self.timeout_ns)
    }

    fn set_timeout(&mut self, timeout: Nanos) {
        self.timeout_ns = timeout;
    }
}

impl Default for ExchangeWorkload {
    /// Ten runs on two channels, without warm-up, of no size yet.
    fn default() -> Self {
        Self {
            sizes: Vec::new(),
            repetitions: 10,
            replications: 2,
            pairing: Pairing::Auto,
            method: Method::Sendrecv,
            warmup: 0,
            min_time_ns: None,
            max_time_ns: None,
            validation: Validation::Const,
            seed: 0,
            faults: Vec::new(),
            timeout_ns: Nanos::from_secs(60),
            model: None,
            transfers: Vec::new(),
        }
    }
}

/// Between a host and its own device; each is timed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transfer {
    /// Copies of the host's memory to the device.
    HostToDevice,
    /// Launches of a kernel of one work item; the size means nothing.
    KernelLaunch,
    /// Copies of the device's memory to the host.
    DeviceToHost,
}

/// One size and its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageSize {
    /// Two to this power are the bytes of a message; also the byte that it is filled with.
    pub exponent: u8,
    /// Exchanges per timed run.
    pub loop_length: u64,
}

impl MessageSize {
    /// Of one message.
    pub const fn bytes(self) -> Bytes {
        Bytes(1 << self.exponent)
    }
}

/// Pairing of ranks that exchange messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Pairs where the number of ranks is even, else the ring.
    #[default]
    Auto,
    /// Neighbours in turns to both sides; even numbers of ranks only.
    Pairs,
    /// To the next and from the one before; the other way round in odd replications.
    Ring,
}

impl Pairing {
    /// Reason that so many ranks cannot be paired like this.
    pub fn misfit(self, ranks: u32) -> Option<String> {
        let is_odd = self == Self::Pairs && ranks > 1 && !ranks.is_multiple_of(2);
        is_odd.then(|| format!("{ranks} ranks have no pairs; use ring, or an even number"))
    }
}

/// Method by which a message goes there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// One combined call.
    #[default]
    Sendrecv,
    /// Receive and send begun, then both waited for.
    Nonblocking,
    /// The collective call.
    Alltoallv,
    /// Whichever was fastest, per size.
    Best,
}

/// Check of arriving data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// Not at all.
    None,
    /// Every byte of the last message against the size's own byte.
    #[default]
    Const,
    /// First and last byte of every message, inside the loop.
    Sample,
    /// Every byte of the last message against a pattern of place, rank and seed.
    Full,
}

/// Damage done on purpose, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InjectedFault {
    /// Kind of fault.
    pub kind: FaultKind,
    /// Rank at which it arrives.
    pub rank: u32,
    /// In messages of this exponent.
    pub exponent: u8,
    /// At this byte, or at this exchange of the loop.
    pub at: u64,
}

impl InjectedFault {
    /// The byte stands first or last in its message, where [`Validation::Sample`] looks.
    pub fn is_at_an_end(&self) -> bool {
        let bytes = 1 << self.exponent;
        [0, bytes - 1].contains(&(self.at % bytes))
    }
}

/// Kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// One byte is changed.
    Flip,
    /// The rank stops taking part.
    Stall,
    /// The rank ends.
    Die,
}

/// A prediction by latency and width of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// From constants of the hardware.
    Channel {
        /// External channels that one replication uses.
        channels: u32,
        /// Bytes that a channel takes per cycle.
        width_bytes: u32,
        /// Cycles per second.
        frequency_hz: f64,
        /// Of one message.
        latency_s: f64,
        /// Sending and receiving go on at the same time.
        duplex: bool,
    },
    /// Latency and bandwidth fitted to what was measured.
    Fit,
}

/// Result of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeResult {
    /// The transport.
    pub transport: String,
    /// Host and CPU of each rank.
    pub ranks: Vec<RankFacts>,
    /// The MPI library, where there is one.
    pub mpi: Option<MpiFacts>,
    /// The pairing that `auto` came to.
    pub pairing: Pairing,
    /// The only rank exchanged with itself.
    pub loopback: bool,
    /// Index and name of the devices that the only rank could have had as well, where nothing
    /// said which.
    #[serde(default)]
    pub other_devices: Vec<String>,
    /// In plan order; sizes that `max_time_ns` cut off are absent.
    pub sizes: Vec<SizeResult>,
    /// Time of a barrier, the median of some.
    pub barrier_ns: Option<Nanos>,
    /// Filling the buffers took.
    pub generation_ns: Nanos,
    /// Exchanging took.
    pub execution_ns: Nanos,
    /// Checking took.
    pub validation_ns: Nanos,
}

impl ExchangeResult {
    /// Bytes of all sizes and ranks that were not what was sent.
    pub fn wrong_bytes(&self) -> u64 {
        let ranks = self.sizes.iter().flat_map(|s| &s.ranks);
        ranks.map(|r| r.wrong_bytes).sum()
    }

    /// Messages that never came.
    pub fn lost(&self) -> u64 {
        let ranks = self.sizes.iter().flat_map(|s| &s.ranks);
        ranks.filter_map(|r| r.lost).sum()
    }
}

/// One message size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeResult {
    /// Two to this power are the bytes of a message.
    pub exponent: u8,
    /// Exchanges per timed run, as they were.
    pub loop_length: u64,
    /// Exchanges before the first timed run, as they were.
    #[serde(default)]
    pub warmup: u64,
    /// The method that counted, where several were tried.
    pub method: Method,
    /// Transfer measured in place of exchanges.
    #[serde(default)]
    pub transfer: Option<Transfer>,
    /// In rank order.
    pub ranks: Vec<RankTimes>,
}

/// One rank's runs of one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankTimes {
    /// Number of the rank.
    pub rank: u32,
    /// Of each repetition, the sum over replications.
    pub times_ns: Vec<Nanos>,
    /// Bytes that were not what was sent.
    pub wrong_bytes: u64,
    /// Messages that never came; absent where the transport cannot lose any.
    pub lost: Option<u64>,
}

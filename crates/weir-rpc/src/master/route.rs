//! Route of a master's calls: a transport, and the endpoints of a group.
//!
//! In: what a job asks for, its group. Out: a transport per thread, of the kind that it asks for. Each
//! kind has a loop of its own, so that no call goes through a pointer. Not here: the transports.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use weir_run::failure;
use weir_schema::{
    BulkPath, Failure, RpcAddresses, RpcEndpoint, RpcInterface, RpcPayloadKind, RpcPoll,
    RpcWorkload, Warning,
};

use crate::RpcError;
use crate::auth::read_token;
use crate::client::{self, CallPayload, ClientSetup, DialSetup, RpcClient};
use crate::error::refused;
use crate::group::RpcGroup;
use crate::group::address::{RpcAddress, StreamAddress};
use crate::group::{count_servers, node_name};
use crate::interface::local::LocalInterface;
use crate::links::ofi::{self, FabricChoice, FabricOffer, OfiLink, OfiSettings};
use crate::links::shm::RpcShmLink;
use crate::links::stream::StreamLink;
use crate::links::{Link, LinkSide};
use crate::master::call_list::CallList;
use crate::master::calling::{calls_of, check_slots, slots_of};
use crate::master::null_transport::NullTransport;
use crate::master::ordered::OrderedMasters;
use crate::server::pin_to;
use crate::thread_wait::{choose_poll, cpu_for_each};
use crate::transport::RpcTransport;

/// Transport and targets of a master's calls.
#[derive(Clone, Debug)]
pub struct CallRoute {
    kind: RouteKind,
    scheme: String,
    dial: DialSetup,
    local: LocalInterface,
    group: RpcGroup,
    poll: RpcPoll,
    addresses: RpcAddresses,
    /// Objection to a fabric's provider.
    objection: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RouteKind {
    /// Nowhere.
    Null,
    /// Streams of the network.
    Tcp,
    /// Memory that both sides map.
    Shm,
    /// Messages of a fabric.
    Fabric,
    /// A fabric that reads and writes the memory of others as well.
    FabricMemory,
}

impl RouteKind {
    /// Paths of bulk data that it has, the usual one first.
    const fn bulk_paths(self) -> &'static [BulkPath] {
        match self {
            Self::Null => &[],
            Self::Shm | Self::FabricMemory => &[BulkPath::Rma],
            Self::Tcp | Self::Fabric => &[BulkPath::Rendezvous, BulkPath::Eager],
        }
    }

    /// Bulk data move as they are asked to, or not at all.
    fn refuse_bulk_path(self, scheme: &str, asked: BulkPath) -> Result<(), Failure> {
        let own = self.bulk_paths();
        if asked == BulkPath::Automatic || own.contains(&asked) {
            return Ok(());
        }
        let asked = bulk_word(asked);
        let why = match own.first() {
            Some(nearest) => format!("the nearest that it has is {}", bulk_word(*nearest)),
            None => "it moves no data; auto is all that it has".to_owned(),
        };
        let why = format!("bulk mode {asked}: transport {scheme} does not have it; {why}");
        Err(failure("plan", None, why))
    }
}

const fn bulk_word(path: BulkPath) -> &'static str {
    match path {
        BulkPath::Automatic => "auto",
        BulkPath::Rma => "rma",
        BulkPath::Rendezvous => "rendezvous",
        BulkPath::Eager => "eager",
    }
}

/// User of a transport, whatever its kind.
pub trait TransportUser {
    /// Result of the use.
    type Output;

    /// Uses it.
    fn with(self, transport: impl RpcTransport) -> Self::Output;
}

impl CallRoute {
    /// As a job asks for it, with so many threads on this machine.
    ///
    /// # Errors
    /// There is no such transport or interface, the token cannot be read.
    pub fn of(
        work: &RpcWorkload,
        group: RpcGroup,
        threads: u32,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let asked = work.transport.as_deref();
        let asked = asked.map(|name| name.trim_end_matches("://"));
        let scheme = asked.or_else(|| group.first_scheme());
        let scheme = scheme.unwrap_or("tcp").to_owned();
        let local = LocalInterface::of(work, &scheme, &group).map_err(|why| refused(&why))?;
        let mut objection = None;
        let kind = match scheme.as_str() {
            "null" => RouteKind::Null,
            "tcp" => RouteKind::Tcp,
            "shm" => RouteKind::Shm,
            fabric if fabric.starts_with(ofi::SCHEME) => {
                let offer = offer(&group, fabric, &local).map_err(|why| refused(&why))?;
                objection = offer.facts().objection();
                if offer.facts().has_remote_memory {
                    RouteKind::FabricMemory
                } else {
                    RouteKind::Fabric
                }
            }
            other => {
                let why = format!("this build has no transport `{other}`");
                return Err(failure("missing", None, why));
            }
        };
        kind.refuse_bulk_path(&scheme, work.bulk_path)?;
        let token = work.token_file.as_ref();
        let token = token.map(|file| read_token(&directory.join(file)));
        let token = token.transpose().map_err(|why| refused(&why))?;
        Ok(Self {
            kind,
            dial: DialSetup {
                group: work.group.clone(),
                token,
                from: local.addresses.clone(),
                within: Duration::from_nanos(work.attach_timeout_ns.0),
            },
            poll: poll_mode(work.poll, threads, &group),
            addresses: work.addresses,
            objection,
            local,
            scheme,
            group,
        })
    }

    /// As the beginning of an address.
    pub fn name(&self) -> &str {
        &self.scheme
    }

    /// The interface that calls leave this machine by, and who uses it.
    pub fn interface(&self) -> Option<&RpcInterface> {
        self.local.interface.as_ref()
    }

    /// Warnings for the user.
    pub fn warnings(&self) -> Vec<Warning> {
        let notes = self.local.notes.iter();
        let notes = notes.map(|note| Warning::new("rpc-interface", None, note.clone()));
        let of_size = self.group.said_size.map(|said| {
            let (name, ranks) = (&self.group.name, self.group.members.len());
            let cause = format!("the table of group {name} says {said} ranks and has {ranks}");
            Warning::new("rpc-table", None, cause)
        });
        let of_fabric = self
            .objection
            .map(|why| Warning::new("rpc-fabric", None, why));
        notes.chain(of_size).chain(of_fabric).collect()
    }

    /// Nothing leaves this process.
    pub fn is_null(&self) -> bool {
        self.kind == RouteKind::Null
    }

    /// A thread of it uses a CPU all the time.
    pub fn never_sleeps(&self) -> bool {
        self.is_null() || self.poll == RpcPoll::Busy
    }

    /// Path of bulk data, where a job has some.
    pub fn bulk_path(&self, work: &RpcWorkload) -> Option<&'static str> {
        let is_bulk = |payload: weir_schema::RpcPayload| payload.kind == RpcPayloadKind::Bulk;
        let has_bulk = is_bulk(work.request) || is_bulk(work.reply);
        match self.kind {
            _ if !has_bulk => None,
            RouteKind::Null => None,
            RouteKind::Shm => Some("shm"),
            RouteKind::FabricMemory => Some("rma"),
            _ if work.bulk_path == BulkPath::Eager => Some("emulated-eager"),
            _ => Some("emulated-rendezvous"),
        }
    }

    /// Whom to connect to.
    ///
    /// # Errors
    /// The group has no such endpoint.
    pub fn endpoints(&self, list: &[RpcEndpoint]) -> Result<Vec<client::ServerEndpoint>, Failure> {
        if self.is_null() {
            return Ok(Vec::new());
        }
        let endpoint = |one: &RpcEndpoint| self.group.endpoint(*one, &self.scheme);
        list.iter().map(endpoint).collect()
    }

    /// Asks every rank of the group whether it is there, unless `is_over`.
    ///
    /// # Errors
    /// One of them is not, or does not answer in time; it was given up.
    pub fn ping_ranks(&self, is_over: &(dyn Fn() -> bool + Sync)) -> Result<(), Failure> {
        let ranks = self.group.members.keys();
        let ranks = ranks.map(|rank| RpcEndpoint {
            rank: *rank,
            tag: 0,
        });
        let endpoints = self.endpoints(&ranks.collect::<Vec<_>>())?;
        let asked = OrderedMasters::connect(&endpoints, &self.dial, &self.scheme, is_over);
        asked.are_there().map_err(|why| refused(&why))
    }

    /// Setup of connections.
    pub fn dial(&self) -> &DialSetup {
        &self.dial
    }

    /// Connects the calling thread, and has the transport used. It has a CPU of its own from then on, where
    /// the process has as many as threads. `stop` gives it up once it is not 0.
    ///
    /// # Errors
    /// No server could be reached, there is not enough memory, it was given up.
    pub fn connect<U: TransportUser>(
        &self,
        work: &RpcWorkload,
        list: &CallList,
        (thread, threads): (u32, u32),
        stop: &AtomicU32,
        user: U,
    ) -> Result<U::Output, Failure> {
        check_slots(work).map_err(|why| refused(&why))?;
        let cpu = cpu_for_each(threads as usize).get(thread as usize);
        pin_to(cpu.copied()).map_err(|why| refused(&why))?;
        let slots = slots_of(work, thread, threads);
        if self.is_null() {
            return Ok(user.with(NullTransport::new(slots, work.bytes().0)));
        }
        let calls = calls_of(work, thread, threads).unwrap_or(u64::MAX);
        let setup = ClientSetup {
            dial: self.dial.clone(),
            endpoints: self.endpoints(&list.entries)?,
            own_connections: work.connections.is_some(),
            slots,
            payload: CallPayload {
                request: work.request,
                reply: work.reply,
            },
            buffers: if work.matrix {
                slots
            } else {
                slots.div_ceil(list.len().max(1))
            },
            credits: u32::try_from(calls).unwrap_or(u32::MAX).min(slots),
            credits_per_rank: work.credits_per_rank,
            quota: work.quota,
            verify: work.verify,
            eager: work.bulk_path == BulkPath::Eager,
            timeout: Duration::from_nanos(work.timeout_ns.0),
            reconnect: work.reconnect_ns.map(|time| Duration::from_nanos(time.0)),
            low_byte: work.buffer_low_byte,
            poll: self.poll,
        };
        match self.kind {
            RouteKind::Null => Ok(user.with(NullTransport::new(slots, work.bytes().0))),
            RouteKind::Tcp => self.attach(StreamLink::new(), setup, stop, user),
            RouteKind::Shm => self.attach(RpcShmLink::new(LinkSide::Client), setup, stop, user),
            RouteKind::Fabric => self.attach(self.fabric::<false>(), setup, stop, user),
            RouteKind::FabricMemory => self.attach(self.fabric::<true>(), setup, stop, user),
        }
    }

    fn fabric<const RMA: bool>(&self) -> Result<OfiLink<RMA>, RpcError> {
        let offer = offer(&self.group, &self.scheme, &self.local)?;
        OfiLink::open(offer, OfiSettings::of(self.poll))
    }

    fn attach<L: Link, U: TransportUser>(
        &self,
        link: Result<L, RpcError>,
        setup: ClientSetup,
        stop: &AtomicU32,
        user: U,
    ) -> Result<U::Output, Failure> {
        let is_over = || stop.load(Ordering::Relaxed) != 0;
        let client = link.and_then(|link| RpcClient::attach_unless(link, setup, &is_over));
        let mut client = client.map_err(|why| refused(&why))?;
        if let Some(directory) = self.group.directory.clone() {
            let name = self.group.name.clone();
            let kind = self.addresses;
            client.set_lookup(move |of| RpcGroup::look_again(&directory, &name, of, kind));
        }
        Ok(user.with(client))
    }
}

/// Offer of a fabric on the interface that was chosen, else on that which the group is reached by.
fn offer(group: &RpcGroup, scheme: &str, local: &LocalInterface) -> Result<FabricOffer, RpcError> {
    let all = group.members.values().flat_map(|member| &member.addresses);
    let mut fitting = all.filter(|address| address.scheme == scheme);
    let nowhere = RpcAddress {
        scheme: scheme.to_owned(),
        place: "127.0.0.1:0".to_owned(),
    };
    let address = fitting.next().unwrap_or(&nowhere);
    let own = match address.stream()? {
        StreamAddress::Tcp(there) => local.address_towards(there.ip()),
        StreamAddress::Unix(_) => None,
    };
    let mut choice = FabricChoice::of_address(address, own)?;
    choice.domain.clone_from(&local.domain);
    choice.find()
}

/// Busy only where each of the threads and each server of this machine has a CPU.
fn poll_mode(asked: RpcPoll, threads: u32, group: &RpcGroup) -> RpcPoll {
    let here = node_name();
    let servers = group.members.values().filter(|member| member.is_on(&here));
    let spinners = threads as usize + count_servers(servers).max(1);
    choose_poll(asked, spinners, RpcPoll::Busy)
}

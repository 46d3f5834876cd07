//! A server with all that belongs to it: its services, its entries in the table of the group, who runs
//! tests by order.
//!
//! In: which ranks and tags, addresses, limits. Out: a running server that others find; its end, after
//! which they do not. The same for `weir rpc serve` and for a server of a run's own. Not here: words,
//! signals.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_schema::RpcPoll;
use weir_sys::device::NetworkInterface;

use crate::auth::{Token, read_token};
use crate::group::address::RpcAddress;
use crate::group::dead_sockets::{remove_dead_of, socket_name};
use crate::group::held_rank::refuse_held;
use crate::group::known_groups::KnownGroups;
use crate::group::nonce_text;
use crate::group::table::{GroupMember, GroupTable, TablePlace};
use crate::interface::choice::{interfaces_of_this_machine, named_interface};
use crate::interface::local::{addresses_of_interface, reachable_address};
use crate::master::host::{HostedMasters, MasterHost};
use crate::master::route::{SERVER_POLL, choose_poll, cpu_for_each};
use crate::server::{
    NoMasters, RankSetup, RpcServer, ServerCounters, ServerLimits, ServerSetup, TestMasters,
};
use crate::service::RpcService;
use crate::service::self_test::{SelfTestService, ServiceTime};
use crate::{DerCode, RpcError};

/// What is to be served.
#[derive(Clone, Debug)]
pub struct Hosting {
    /// The group.
    pub group: String,
    /// First and last rank; none: the next free one of the table.
    pub ranks: Option<(u32, u32)>,
    /// Ranks that the group shall have, where whoever started this one knows.
    pub size: Option<u32>,
    /// Endpoints of each rank.
    pub tags: u32,
    /// Where it listens, for each rank; port 0 is any.
    pub addresses: Vec<RpcAddress>,
    /// The interface by which the tests call that others order here.
    pub interface: Option<String>,
    /// The domain of its fabrics.
    pub domain: Option<String>,
    /// The table that names it.
    pub table: Option<TablePlace>,
    /// Threads that answer; none: as many as there are CPUs for, those that are named before all.
    pub pollers: Option<u32>,
    /// A CPU for each.
    pub cpus: Vec<u32>,
    /// How they wait.
    pub poll: RpcPoll,
    /// The file with the secret that clients must know.
    pub token_file: Option<PathBuf>,
    /// Tests may be ordered.
    pub allows_masters: bool,
    /// Bounds.
    pub limits: ServerLimits,
    /// How long it is busy with each request.
    pub service_time: ServiceTime,
}

/// A server that others find.
pub struct Host {
    server: RpcServer,
    addresses: Vec<(u32, RpcAddress)>,
    notes: Vec<String>,
    table: Option<TablePlace>,
    ranks: Vec<u32>,
}

impl Hosting {
    /// One rank with these tags, found by nobody else.
    pub fn alone(group: &str, tags: u32, address: RpcAddress) -> Self {
        Self {
            group: group.to_owned(),
            ranks: Some((0, 0)),
            size: None,
            tags,
            addresses: vec![address],
            interface: None,
            domain: None,
            table: None,
            pollers: None,
            cpus: Vec::new(),
            poll: RpcPoll::Automatic,
            token_file: None,
            allows_masters: false,
            limits: ServerLimits::default(),
            service_time: ServiceTime::None,
        }
    }

    /// Serves from now on. `log` takes lines about strange clients.
    ///
    /// # Errors
    /// An address cannot be bound, the table cannot be changed, the token cannot be read, another server
    /// serves one of the ranks.
    pub fn start(self, log: Box<dyn Fn(&str) + Send + Sync>) -> Result<Host, RpcError> {
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        if let Some(name) = &self.interface {
            named_interface(interfaces_of_this_machine(), name)?;
        }
        let Some(place) = self.table.clone() else {
            let (first, last) = self.ranks.unwrap_or_default();
            let server = self.serve(&ranks_of(first, last), token, 1, log)?;
            return self.host(server, ranks_of(first, last));
        };
        // While nobody else takes the same rank.
        place.change(|table| {
            let free = table.free_rank();
            let (first, last) = self.ranks.unwrap_or((free, free));
            let ranks = ranks_of(first, last);
            for rank in &ranks {
                refuse_held(&self.group, *rank, table.members.get(rank))?;
            }
            let server = self.serve(&ranks, token, others_here(table, &ranks) + 1, log)?;
            let host = self.host(server, ranks)?;
            for rank in &host.ranks {
                table.members.insert(*rank, self.member(&host, *rank));
            }
            table.said_size = self.size.map(u64::from).or(table.said_size);
            Ok(host)
        })
    }

    fn host(&self, server: RpcServer, ranks: Vec<u32>) -> Result<Host, RpcError> {
        let (mut addresses, mut notes) = (server.addresses().to_vec(), Vec::new());
        for (_, address) in &mut addresses {
            notes.extend(name_interface(address, self.interface.as_deref())?);
        }
        notes.dedup();
        Ok(Host {
            server,
            addresses,
            notes,
            table: self.table.clone(),
            ranks,
        })
    }

    fn member(&self, host: &Host, rank: u32) -> GroupMember {
        let addresses = host.addresses.iter().filter(|(of, _)| *of == rank);
        GroupMember {
            addresses: addresses.map(|(_, address)| address.clone()).collect(),
            tags: Some(self.tags),
            node: Some(node_name()),
            nonce: Some(nonce_text(host.server.nonce())),
        }
    }

    fn serve(
        &self,
        ranks: &[u32],
        token: Option<Token>,
        servers_here: usize,
        log: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<RpcServer, RpcError> {
        self.remove_dead_sockets(ranks, &*log);
        let time = self.service_time;
        let (pollers, cpus) = self.pollers(ranks.len() * self.tags as usize);
        let directory = self.table.as_ref().map(|place| place.directory.clone());
        let masters: Arc<dyn TestMasters> = if self.allows_masters {
            Arc::new(MasterHost::new(HostedMasters {
                group: self.group.clone(),
                table: directory,
                token_file: self.token_file.clone(),
                interface: self.interface.clone(),
                domain: self.domain.clone(),
                known: KnownGroups::default(),
            }))
        } else {
            Arc::new(NoMasters)
        };
        let rank_setup = |rank: &u32| {
            let places = self.addresses.iter();
            let places = places.map(|address| self.place(address, *rank));
            Ok(RankSetup {
                rank: *rank,
                tags: self.tags,
                addresses: places.collect::<Result<_, RpcError>>()?,
            })
        };
        let setups: Result<_, RpcError> = ranks.iter().map(rank_setup).collect();
        RpcServer::start(ServerSetup {
            group: self.group.clone(),
            ranks: setups?,
            domain: self.domain.clone(),
            pollers,
            cpus,
            poll: choose_poll(self.poll, pollers + servers_here, SERVER_POLL),
            services: Box::new(move |rank, tag| {
                let seed = u64::from(rank) << 32 | u64::from(tag);
                let service: Box<dyn RpcService> = Box::new(SelfTestService::new(time, seed | 1));
                vec![service]
            }),
            limits: self.limits.clone(),
            token,
            masters,
            log,
        })
    }

    /// How many threads answer for so many tags, and the CPU of each where it has one.
    fn pollers(&self, tags: usize) -> (usize, Vec<u32>) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cpus = match self.cpus.len() {
            // One CPU for a client on this machine.
            0 => cpus.saturating_sub(1).max(1),
            named => named,
        };
        let pollers = self.pollers.map_or(tags.min(cpus), |count| count as usize);
        if self.cpus.is_empty() {
            return (pollers, cpu_for_each(pollers).to_vec());
        }
        (pollers, self.cpus.clone())
    }

    /// Where a rank listens: sockets of the file system lie beside the table.
    fn place(&self, address: &RpcAddress, rank: u32) -> Result<RpcAddress, RpcError> {
        if address.scheme != "shm" {
            return Self::of_interface(address);
        }
        if !address.place.is_empty() {
            return Ok(address.clone());
        }
        let name = socket_name(&self.group, rank, std::process::id());
        let directory = self.socket_directory();
        Ok(RpcAddress {
            scheme: address.scheme.clone(),
            place: directory.join(name).display().to_string(),
        })
    }

    /// Where sockets of the file system lie.
    fn socket_directory(&self) -> PathBuf {
        let directory = self.table.as_ref().map(|place| place.directory.clone());
        let directory = directory.unwrap_or_else(std::env::temp_dir);
        std::path::absolute(&directory).unwrap_or(directory)
    }

    /// Nobody is left who would remove the sockets of servers that were killed.
    fn remove_dead_sockets(&self, ranks: &[u32], log: &dyn Fn(&str)) {
        let directory = self.socket_directory();
        for rank in ranks {
            for path in remove_dead_of(&directory, &self.group, *rank) {
                log(&format!(
                    "removed {}: who listened there is gone",
                    path.display()
                ));
            }
        }
    }

    /// An address whose host is the name of an interface, with that one's address.
    fn of_interface(address: &RpcAddress) -> Result<RpcAddress, RpcError> {
        let Some((host, port)) = address.place.rsplit_once(':') else {
            return Ok(address.clone());
        };
        let is_named = |one: &NetworkInterface| one.name == host;
        if !interfaces_of_this_machine().iter().any(is_named) {
            return address.stream().map(|_| address.clone()).map_err(|why| {
                let also = format!("{why}; and no network interface is called `{host}`");
                RpcError::new(DerCode::NotThere, also)
            });
        }
        let first = addresses_of_interface(host)?.into_iter().next();
        let host = first.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let host = match host {
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        Ok(RpcAddress {
            scheme: address.scheme.clone(),
            place: format!("{host}:{port}"),
        })
    }
}

fn ranks_of(first: u32, last: u32) -> Vec<u32> {
    (first..=last).collect()
}

/// Whoever listens everywhere is reached by one interface: what to write in its place, and what to say where
/// there is none but the loopback.
fn name_interface(
    address: &mut RpcAddress,
    interface: Option<&str>,
) -> Result<Option<String>, RpcError> {
    let Ok(everywhere) = address.place.parse::<SocketAddr>() else {
        return Ok(None);
    };
    if !everywhere.ip().is_unspecified() {
        return Ok(None);
    }
    let found = reachable_address(interface, everywhere.is_ipv4())?;
    let ip = found.unwrap_or(if everywhere.is_ipv4() {
        Ipv4Addr::LOCALHOST.into()
    } else {
        Ipv6Addr::LOCALHOST.into()
    });
    let before = address.to_string();
    address.place = SocketAddr::new(ip, everywhere.port()).to_string();
    Ok(found.is_none().then(|| {
        format!(
            "{before}: no interface but the loopback has an address of that kind, so that only this \
             machine reaches this server, at {address}"
        )
    }))
}

/// Servers of this machine that the table names, apart from these ranks.
fn others_here(table: &GroupTable, ranks: &[u32]) -> usize {
    let here = node_name();
    let others = table
        .members
        .iter()
        .filter(|(rank, _)| !ranks.contains(rank));
    let others = others.filter(|(_, member)| member.node.as_deref() == Some(&here));
    let mut runs: Vec<_> = others.map(|(_, member)| member.nonce.as_deref()).collect();
    runs.sort_unstable();
    runs.dedup();
    runs.len()
}

/// This machine in tables.
pub(crate) fn node_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    name.replace(char::is_whitespace, "-")
}

impl Host {
    /// Where others reach each rank.
    pub fn addresses(&self) -> &[(u32, RpcAddress)] {
        &self.addresses
    }

    /// What the user should know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its ranks.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// What it has counted.
    pub fn counters(&self) -> &ServerCounters {
        self.server.counters()
    }

    /// Nobody finds it any more; calls that are out may end.
    ///
    /// # Errors
    /// The table could not be changed, or a thread had failed.
    pub fn stop(self) -> Result<(), RpcError> {
        let nonce = nonce_text(self.server.nonce());
        let removed = self
            .table
            .map_or(Ok(()), |place| place.remove(&self.ranks, &nonce));
        let stopped = self.server.stop();
        stopped.map_err(|error| RpcError::new(DerCode::Other, error.to_string()))?;
        removed
    }
}

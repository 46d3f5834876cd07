//! A server with all that belongs to it: its services, its entries in the table of the group, who runs
//! tests by order.
//!
//! In: which ranks and tags, addresses, limits. Out: a running server that others find; its end, after
//! which they do not. The same for `weir rpc serve` and for a server of a run's own. Not here: words,
//! signals.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_schema::RpcPoll;
use weir_sys::device::NetworkInterface;

use super::address::RpcAddress;
use super::auth::Token;
use super::group::nonce_text;
use super::group_table::{GroupMember, GroupTable, TablePlace};
use super::interface_choice::{interfaces_of_this_machine, named_interface};
use super::local_interface::addresses_of_interface;
use super::master_host::{HostedMasters, MasterHost};
use super::self_test::{SelfTestService, ServiceTime};
use super::server::{
    NoMasters, RankSetup, RpcServer, ServerCounters, ServerLimits, ServerSetup, TestMasters,
};
use super::service::RpcService;
use super::way::{SERVER_POLL, choose_poll};
use super::{DerCode, RpcError};

/// What is to be served.
#[derive(Clone, Debug)]
pub struct Hosting {
    /// The group.
    pub group: String,
    /// First and last rank; none: the next free one of the table.
    pub ranks: Option<(u32, u32)>,
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
    /// Threads that answer; none: as many as there are CPUs for.
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
    table: Option<TablePlace>,
    ranks: Vec<u32>,
}

impl Hosting {
    /// One rank with these tags, found by nobody else.
    pub fn alone(group: &str, tags: u32, address: RpcAddress) -> Self {
        Self {
            group: group.to_owned(),
            ranks: Some((0, 0)),
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
    /// An address cannot be bound, the table cannot be changed, the token cannot be read.
    pub fn start(self, log: Box<dyn Fn(&str) + Send + Sync>) -> Result<Host, RpcError> {
        let token = self.token_file.as_deref().map(Token::read).transpose()?;
        if let Some(name) = &self.interface {
            named_interface(interfaces_of_this_machine(), name)?;
        }
        let Some(place) = self.table.clone() else {
            let (first, last) = self.ranks.unwrap_or_default();
            let ranks: Vec<u32> = (first..=last).collect();
            let server = self.serve(&ranks, token, 1, log)?;
            return Ok(Host {
                server,
                table: None,
                ranks,
            });
        };
        // While nobody else takes the same rank.
        let (server, ranks) = place.change(|table| {
            let free = table.free_rank();
            let (first, last) = self.ranks.unwrap_or((free, free));
            let ranks: Vec<u32> = (first..=last).collect();
            let server = self.serve(&ranks, token, others_here(table, &ranks) + 1, log)?;
            for rank in &ranks {
                table.members.insert(*rank, self.member(&server, *rank));
            }
            Ok((server, ranks))
        })?;
        Ok(Host {
            server,
            table: Some(place),
            ranks,
        })
    }

    fn member(&self, server: &RpcServer, rank: u32) -> GroupMember {
        let addresses = server.addresses().iter().filter(|(of, _)| *of == rank);
        GroupMember {
            addresses: addresses.map(|(_, address)| address.clone()).collect(),
            tags: Some(self.tags),
            node: Some(node_name()),
            nonce: Some(nonce_text(server.nonce())),
        }
    }

    fn serve(
        &self,
        ranks: &[u32],
        token: Option<Token>,
        servers_here: usize,
        log: Box<dyn Fn(&str) + Send + Sync>,
    ) -> Result<RpcServer, RpcError> {
        let time = self.service_time;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let tags = ranks.len() * self.tags as usize;
        // One CPU for a client on this machine.
        let fitting = tags.min(cpus.saturating_sub(1)).max(1);
        let pollers = self.pollers.map_or(fitting, |pollers| pollers as usize);
        let directory = self.table.as_ref().map(|place| place.directory.clone());
        let masters: Arc<dyn TestMasters> = if self.allows_masters {
            Arc::new(MasterHost::new(HostedMasters {
                group: self.group.clone(),
                table: directory,
                token_file: self.token_file.clone(),
                interface: self.interface.clone(),
                domain: self.domain.clone(),
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
            cpus: self.cpus.clone(),
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

    /// Where a rank listens: sockets of the file system lie beside the table.
    fn place(&self, address: &RpcAddress, rank: u32) -> Result<RpcAddress, RpcError> {
        if address.scheme != "shm" {
            return Self::of_interface(address);
        }
        if !address.place.is_empty() {
            return Ok(address.clone());
        }
        let directory = self.table.as_ref().map(|place| place.directory.clone());
        let directory = directory.unwrap_or_else(std::env::temp_dir);
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        let process = std::process::id();
        let name = format!("{}-{rank}-{process}.sock", self.group);
        Ok(RpcAddress {
            scheme: address.scheme.clone(),
            place: directory.join(name).display().to_string(),
        })
    }

    /// An address whose host is the name of an interface, with that one's address.
    fn of_interface(address: &RpcAddress) -> Result<RpcAddress, RpcError> {
        let Some((host, port)) = address.place.rsplit_once(':') else {
            return Ok(address.clone());
        };
        let is_named = |one: &NetworkInterface| one.name == host;
        if !interfaces_of_this_machine().iter().any(is_named) {
            return Ok(address.clone());
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
pub(super) fn node_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    name.replace(char::is_whitespace, "-")
}

impl Host {
    /// Where each rank listens.
    pub fn addresses(&self) -> &[(u32, RpcAddress)] {
        self.server.addresses()
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

/// The directory of tables where nothing names one: the first that the surroundings name, made where it
/// is weir's own.
pub fn default_directory(variable: impl Fn(&str) -> Option<String>) -> PathBuf {
    let named = ["WEIR_GROUP_DIR", "CRT_ATTACH_INFO_PATH"];
    let named = named
        .iter()
        .find_map(|name| variable(name).filter(|path| !path.is_empty()));
    if let Some(path) = named {
        return PathBuf::from(path);
    }
    if let Some(runtime) = variable("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
        let own = Path::new(&runtime).join("weir");
        if own.is_dir() || std::fs::create_dir_all(&own).is_ok() {
            return own;
        }
    }
    std::env::temp_dir()
}

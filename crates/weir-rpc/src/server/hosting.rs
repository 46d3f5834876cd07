//! A server with all that belongs to it: its services, its entries in the table of the group, who runs
//! tests by order.
//!
//! In: which ranks and tags, addresses, limits. Out: a running server that others find; its end, after
//! which they do not. The same for `weir rpc serve` and for a server of a run's own. Not here: words,
//! signals.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use weir_schema::{RpcServe, RpcTable};
use weir_sys::device::NetworkInterface;

use crate::auth::{Token, read_token};
use crate::group::address::RpcAddress;
use crate::group::dead_sockets::{remove_dead_of, socket_name};
use crate::group::held_rank::refuse_held;
use crate::group::table::{GroupMember, GroupTable, change_table, remove_from_table};
use crate::group::{count_servers, node_name, nonce_text};
use crate::interface::choice::{interfaces_of_this_machine, named_interface};
use crate::interface::local::{address_of_interface, reachable_address};
use crate::machine_memory;
use crate::master::host::MasterHost;
use crate::server::{
    NoMasters, RankSetup, RpcServer, ServerCounters, ServerLimits, ServerSetup, ServicesOfTag,
    TestMasters,
};
use crate::service::RpcService;
use crate::service::self_test::SelfTestService;
use crate::thread_wait::{SERVER_POLL, choose_poll, cpu_for_each};
use crate::{DerCode, RpcError};

/// A server that others find.
pub struct Host {
    server: RpcServer,
    addresses: Vec<(u32, RpcAddress)>,
    notes: Vec<String>,
    table: Option<RpcTable>,
    ranks: Vec<u32>,
}

/// Request for a server, with its addresses.
struct Hosting {
    asked: RpcServe,
    addresses: Vec<RpcAddress>,
    services: Arc<ServicesOfTag>,
}

/// Serves the self-test from now on. `log` takes lines about strange clients.
///
/// # Errors
/// An address cannot be bound, the table cannot be changed, the token cannot be read, another server
/// serves one of the ranks.
pub fn host(asked: RpcServe, log: Box<dyn Fn(&str) + Send + Sync>) -> Result<Host, RpcError> {
    let time = asked.service_time;
    let self_test = move |rank: u32, tag: u32| {
        let seed = u64::from(rank) << 32 | u64::from(tag);
        let service: Box<dyn RpcService> = Box::new(SelfTestService::new(time, seed | 1));
        vec![service]
    };
    host_services(asked, Arc::new(self_test), log)
}

/// The same with other services.
///
/// # Errors
/// As [`host`].
pub fn host_services(
    asked: RpcServe,
    services: Arc<ServicesOfTag>,
    log: Box<dyn Fn(&str) + Send + Sync>,
) -> Result<Host, RpcError> {
    let listens = |text: &String| text.parse().map(with_port);
    let addresses = asked.addresses.iter().map(listens);
    let addresses = addresses.collect::<Result<_, RpcError>>()?;
    let hosting = Hosting {
        asked,
        addresses,
        services,
    };
    hosting.start(log)
}

/// An address of the network without a port gets any.
fn with_port(mut address: RpcAddress) -> RpcAddress {
    let port = address.place.rsplit_once(':');
    let has_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if address.scheme != "shm" && !has_port {
        address.place.push_str(":0");
    }
    address
}

impl Hosting {
    fn start(self, log: Box<dyn Fn(&str) + Send + Sync>) -> Result<Host, RpcError> {
        let token = self.asked.token_file.as_deref().map(read_token);
        let token = token.transpose()?;
        if let Some(name) = &self.asked.interface {
            named_interface(interfaces_of_this_machine(), name)?;
        }
        let Some(place) = self.asked.table.clone() else {
            let (first, last) = self.asked.ranks.unwrap_or_default();
            let server = self.serve(&ranks_of(first, last), token, 1, log)?;
            return self.host(server, ranks_of(first, last));
        };
        // While nobody else takes the same rank.
        change_table(&place, |table| {
            let free = table.free_rank();
            let (first, last) = self.asked.ranks.unwrap_or((free, free));
            let ranks = ranks_of(first, last);
            for rank in &ranks {
                refuse_held(&self.asked.group, *rank, table.members.get(rank))?;
            }
            let server = self.serve(&ranks, token, others_here(table, &ranks) + 1, log)?;
            let host = self.host(server, ranks)?;
            for rank in &host.ranks {
                table.members.insert(*rank, self.member(&host, *rank));
            }
            table.said_size = self.asked.group_size.map(u64::from).or(table.said_size);
            Ok(host)
        })
    }

    fn host(&self, server: RpcServer, ranks: Vec<u32>) -> Result<Host, RpcError> {
        let mut addresses = server.addresses().to_vec();
        let mut notes = Vec::new();
        for (_, address) in &mut addresses {
            notes.extend(name_interface(address, self.asked.interface.as_deref())?);
        }
        notes.dedup();
        Ok(Host {
            server,
            addresses,
            notes,
            table: self.asked.table.clone(),
            ranks,
        })
    }

    fn member(&self, host: &Host, rank: u32) -> GroupMember {
        let addresses = host.addresses.iter().filter(|(of, _)| *of == rank);
        GroupMember {
            addresses: addresses.map(|(_, address)| address.clone()).collect(),
            tags: Some(self.asked.tags),
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
        let services = Arc::clone(&self.services);
        let (pollers, cpus) = self.pollers(ranks.len() * self.asked.tags as usize);
        let masters: Arc<dyn TestMasters> = if self.asked.allows_masters {
            Arc::new(MasterHost::new(self.asked.clone()))
        } else {
            Arc::new(NoMasters)
        };
        let rank_setup = |rank: &u32| {
            let places = self.addresses.iter();
            let places = places.map(|address| self.place(address, *rank));
            Ok(RankSetup {
                rank: *rank,
                tags: self.asked.tags,
                addresses: places.collect::<Result<_, RpcError>>()?,
            })
        };
        let setups: Result<Vec<RankSetup>, RpcError> = ranks.iter().map(rank_setup).collect();
        let setups = setups?;
        self.refuse_exposed(setups.iter().flat_map(|rank| &rank.addresses))?;
        RpcServer::start(ServerSetup {
            group: self.asked.group.clone(),
            ranks: setups,
            domain: self.asked.domain.clone(),
            pollers,
            cpus,
            poll: choose_poll(self.asked.poll, pollers + servers_here, SERVER_POLL),
            services: Box::new(move |rank, tag| services(rank, tag)),
            limits: self.limits(),
            token,
            masters,
            log,
        })
    }

    fn limits(&self) -> ServerLimits {
        let memory = self.asked.memory_limit;
        ServerLimits {
            max_message: self.asked.max_message.0,
            memory: memory.map_or_else(machine_memory::default_limit, |limit| limit.0),
            connections: self.asked.max_connections,
            sessions: self.asked.max_sessions,
            half_frame: self.asked.half_frame_timeout_ns.into(),
            ..ServerLimits::default()
        }
    }

    /// # Errors
    /// It would listen beyond this machine without a secret, and nobody has said that it shall.
    fn refuse_exposed<'a>(
        &self,
        mut addresses: impl Iterator<Item = &'a RpcAddress>,
    ) -> Result<(), RpcError> {
        let is_local = |address: &RpcAddress| {
            let host = address.place.rsplit_once(':').map_or("", |(host, _)| host);
            let host = host.trim_matches(['[', ']']);
            let is_loopback = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
            address.scheme == "shm" || is_loopback || ["localhost", "lo"].contains(&host)
        };
        let open = addresses.find(|address| !is_local(address));
        let is_asked_for = self.asked.is_open || self.asked.token_file.is_some();
        let Some(open) = open.filter(|_| !is_asked_for) else {
            return Ok(());
        };
        let why = format!(
            "{open}: whoever reaches it can have this server use memory and start tests against its group\n  \
             help: --token-file FILE asks for a secret; --open-to-anyone lets everyone in"
        );
        Err(RpcError::new(DerCode::Invalid, why))
    }

    /// Number of threads that answer for so many tags, and the CPU of each where it has one.
    fn pollers(&self, tags: usize) -> (usize, Vec<u32>) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cpus = match self.asked.cpus.len() {
            // One CPU for a client on this machine.
            0 => cpus.saturating_sub(1).max(1),
            named => named,
        };
        let pollers = self.asked.pollers;
        let pollers = pollers.map_or(tags.min(cpus), |count| count as usize);
        if self.asked.cpus.is_empty() {
            return (pollers, cpu_for_each(pollers).to_vec());
        }
        (pollers, self.asked.cpus.clone())
    }

    /// Where a rank listens: sockets of the file system lie beside the table.
    fn place(&self, address: &RpcAddress, rank: u32) -> Result<RpcAddress, RpcError> {
        if address.scheme != "shm" {
            return Self::of_interface(address);
        }
        if !address.place.is_empty() {
            return Ok(address.clone());
        }
        let name = socket_name(&self.asked.group, rank, std::process::id());
        let directory = self.socket_directory();
        Ok(RpcAddress {
            scheme: address.scheme.clone(),
            place: directory.join(name).display().to_string(),
        })
    }

    /// Where sockets of the file system lie.
    fn socket_directory(&self) -> PathBuf {
        let table = self.asked.table.clone();
        let directory = table.map_or_else(std::env::temp_dir, |table| table.directory);
        std::path::absolute(&directory).unwrap_or(directory)
    }

    /// Nobody is left who would remove the sockets of servers that were killed.
    fn remove_dead_sockets(&self, ranks: &[u32], log: &dyn Fn(&str)) {
        let directory = self.socket_directory();
        for rank in ranks {
            for path in remove_dead_of(&directory, &self.asked.group, *rank) {
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
        let host = match address_of_interface(host)? {
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
    let members = table.members.iter();
    let others = members.filter(|(rank, _)| !ranks.contains(rank));
    let others = others.map(|(_, member)| member);
    count_servers(others.filter(|member| member.node.as_deref() == Some(&here)))
}

impl Host {
    /// Where others reach each rank.
    pub fn addresses(&self) -> &[(u32, RpcAddress)] {
        &self.addresses
    }

    /// Notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its ranks.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Its counters.
    pub fn counters(&self) -> &ServerCounters {
        self.server.counters()
    }

    /// Nobody finds it any more; calls that are out may end.
    ///
    /// # Errors
    /// The table could not be changed, or a thread had failed.
    pub fn stop(self) -> Result<(), RpcError> {
        let nonce = nonce_text(self.server.nonce());
        let removed = self.table.map_or(Ok(()), |place| {
            remove_from_table(&place, &self.ranks, &nonce)
        });
        let stopped = self.server.stop();
        stopped.map_err(|error| RpcError::new(DerCode::Other, error.to_string()))?;
        removed
    }
}

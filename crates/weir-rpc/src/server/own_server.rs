//! A server of a run's own, which nobody else knows of.
//!
//! In: a job that asks for one. Out: the server, and the group that it alone is. Not here: serving
//! (`hosting`).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use weir_schema::{Failure, RpcWorkload};

use crate::group::RpcGroup;
use crate::group::address::RpcAddress;
use crate::interface::local::addresses_of_interface;
use crate::master::route::refused;
use crate::server::ServerLimits;
use crate::server::hosting::{Host, Hosting};

fn set_tags(group: &mut RpcGroup, tags: u32) {
    group
        .members
        .values_mut()
        .for_each(|member| member.tags = Some(tags));
}

/// The group of a server that is not there yet.
///
/// # Errors
/// The interface that was asked for is not there.
pub fn nobody(work: &RpcWorkload, tags: u32) -> Result<RpcGroup, Failure> {
    let mut group = RpcGroup::at(&work.group, [(0, own_address(work)?)]);
    set_tags(&mut group, tags);
    Ok(group)
}

/// Where a server of the run's own listens: on the interface that was asked for, else nobody else
/// reaches it.
fn own_address(work: &RpcWorkload) -> Result<RpcAddress, Failure> {
    let scheme = work.transport.as_deref().unwrap_or("tcp");
    let scheme = scheme.trim_end_matches("://").to_owned();
    let place = match &work.interface {
        _ if scheme == "shm" => String::new(),
        Some(name) => {
            let addresses = addresses_of_interface(name).map_err(|why| refused(&why))?;
            let first = addresses.first().copied();
            SocketAddr::new(first.unwrap_or(Ipv4Addr::LOCALHOST.into()), 0).to_string()
        }
        None => "127.0.0.1:0".to_owned(),
    };
    Ok(RpcAddress { scheme, place })
}

/// Nobody else is there whom its longest payload could harm.
fn limits_for(work: &RpcWorkload) -> ServerLimits {
    let usual = ServerLimits::default();
    let longest = u64::from(work.request.bytes.max(work.reply.bytes));
    ServerLimits {
        max_message: usual.max_message.max(longest),
        ..usual
    }
}

/// A server of the run's own with so many tags, and its group.
///
/// # Errors
/// It cannot listen, or its token cannot be read.
pub fn start(work: &RpcWorkload, tags: u32) -> Result<(Host, RpcGroup), Failure> {
    let hosting = Hosting {
        token_file: work.token_file.as_ref().map(PathBuf::from),
        domain: work.domain.clone(),
        limits: limits_for(work),
        ..Hosting::alone(&work.group, tags, own_address(work)?)
    };
    let host = hosting.start(Box::new(|_| ()));
    let host = host.map_err(|why| refused(&why))?;
    let mut group = RpcGroup::at(&work.group, host.addresses().iter().cloned());
    set_tags(&mut group, tags);
    Ok((host, group))
}

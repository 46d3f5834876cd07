//! A server of a run's own, which nobody else knows of.
//!
//! In: a job that asks for one. Out: the server, and the group that it alone is. Not here: serving
//! (`hosting`).

use std::net::SocketAddr;
use std::path::PathBuf;

use weir_schema::{Failure, RpcServe, RpcWorkload};
use weir_units::Bytes;

use crate::error::refused;
use crate::group::RpcGroup;
use crate::group::address::RpcAddress;
use crate::interface::local::address_of_interface;
use crate::server::hosting::{Host, host};

fn set_tags(group: &mut RpcGroup, tags: u32) {
    for member in group.members.values_mut() {
        member.tags = Some(tags);
    }
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
            let address = address_of_interface(name).map_err(|why| refused(&why))?;
            SocketAddr::new(address, 0).to_string()
        }
        None => "127.0.0.1:0".to_owned(),
    };
    Ok(RpcAddress { scheme, place })
}

/// A server of the run's own with so many tags, and its group.
///
/// # Errors
/// It cannot listen, or its token cannot be read.
pub fn start(work: &RpcWorkload, tags: u32) -> Result<(Host, RpcGroup), Failure> {
    let usual = RpcServe::alone(&work.group, tags, own_address(work)?.to_string());
    // No other client is there that a long payload could harm.
    let longest = u64::from(work.request.bytes.max(work.reply.bytes));
    let asked = RpcServe {
        token_file: work.token_file.as_ref().map(PathBuf::from),
        domain: work.domain.clone(),
        // It starts no tests for others, and is gone with the run.
        is_open: true,
        max_message: usual.max_message.max(Bytes(longest)),
        ..usual
    };
    let host = host(asked, Box::new(|_| ())).map_err(|why| refused(&why))?;
    let mut group = RpcGroup::at(&work.group, host.addresses().iter().cloned());
    set_tags(&mut group, tags);
    Ok((host, group))
}

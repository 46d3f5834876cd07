//! A server of a run's own, which nobody else knows of.
//!
//! In: a job that asks for one. Out: the server, and the group that it alone is. Not here: serving
//! (`hosting`).

use std::path::PathBuf;

use weir_schema::{Failure, RpcWorkload};

use super::address::RpcAddress;
use super::group::RpcGroup;
use super::hosting::{Host, Hosting};
use super::way::refused;

fn set_tags(group: &mut RpcGroup, tags: u32) {
    group
        .members
        .values_mut()
        .for_each(|member| member.tags = Some(tags));
}

/// The group of a server that is not there yet.
pub fn nobody(work: &RpcWorkload, tags: u32) -> RpcGroup {
    let address = RpcAddress {
        scheme: work.transport.clone().unwrap_or_else(|| "tcp".to_owned()),
        place: "127.0.0.1:0".to_owned(),
    };
    let mut group = RpcGroup::at(&work.group, [(0, address)]);
    set_tags(&mut group, tags);
    group
}

/// A server of the run's own with so many tags, and its group.
///
/// # Errors
/// It cannot listen, or its token cannot be read.
pub fn start(work: &RpcWorkload, tags: u32) -> Result<(Host, RpcGroup), Failure> {
    let scheme = work
        .transport
        .as_deref()
        .unwrap_or("tcp")
        .trim_end_matches("://");
    let place = match scheme {
        "shm" => "",
        _ => "127.0.0.1:0",
    };
    let address = RpcAddress {
        scheme: scheme.to_owned(),
        place: place.to_owned(),
    };
    let hosting = Hosting {
        token_file: work.token_file.as_ref().map(PathBuf::from),
        ..Hosting::alone(&work.group, tags, address)
    };
    let host = hosting.start(Box::new(|_| ()));
    let host = host.map_err(|why| refused(&why))?;
    let mut group = RpcGroup::at(&work.group, host.addresses().iter().cloned());
    set_tags(&mut group, tags);
    Ok((host, group))
}

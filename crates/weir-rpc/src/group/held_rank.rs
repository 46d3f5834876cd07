//! Ranks that belong to a server that lives: their entry in the table of the group is tried.
//!
//! In: an entry of a table. Out: nothing where nobody is there any more, else why the rank cannot be had.
//! Not here: the table (`group_table`), taking a rank (`hosting`).

use std::time::Duration;

use weir_schema::RpcEndpoint;

use crate::client::{DialSetup, ServerEndpoint, open_control};
use crate::group::address::RpcAddress;
use crate::group::nonce_of;
use crate::group::table::GroupMember;
use crate::links::LinkGreeting;
use crate::{DerCode, RpcError};

/// Limit of a server's answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Refuses a rank that somebody serves, as far as its entry says.
///
/// # Errors
/// Somebody does: [`DerCode::Busy`], with who it is.
pub(crate) fn refuse_held(
    group: &str,
    rank: u32,
    member: Option<&GroupMember>,
) -> Result<(), RpcError> {
    let Some(member) = member else { return Ok(()) };
    let mut addresses = member.addresses.iter();
    let Some(address) = addresses.find(|address| is_held(group, rank, member, address)) else {
        return Ok(());
    };
    let node = member.node.as_deref();
    let node = node.map_or_else(String::new, |node| format!(" on {node}"));
    let why = format!(
        "rank {rank} of group {group} is that of the server at {address}{node}: end that one first, or take \
         another rank (--rank)"
    );
    Err(RpcError::new(DerCode::Busy, why))
}

fn is_held(group: &str, rank: u32, member: &GroupMember, address: &RpcAddress) -> bool {
    let setup = DialSetup {
        group: group.to_owned(),
        token: None,
        from: Vec::new(),
        within: PATIENCE,
    };
    let endpoint = ServerEndpoint {
        endpoint: RpcEndpoint { rank, tag: 0 },
        address: address.clone(),
        nonce: member.nonce.as_deref().and_then(nonce_of),
    };
    match open_control(&setup, &endpoint, LinkGreeting::default(), &|| false) {
        Ok(_) => true,
        // It asks for a token, or takes connections and says nothing: it has only been stopped. Whoever is
        // at its address without being it answers otherwise.
        Err(why) => matches!(
            why.code,
            DerCode::NoPermission | DerCode::Busy | DerCode::TimedOut
        ),
    }
}

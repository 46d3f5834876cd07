//! Channels from the tests on object stores to the targets of servers, over the links of remote procedure
//! calls.
//!
//! In: an address, a target. Out: a channel. Not here: what is said over it (`weir-object`), servers
//! (`store_service`).

use std::io;
use std::time::Duration;

use weir_object::remote::{Dial, GROUP, LONGEST_REQUEST, TargetCall, VERSION};
use weir_rpc::RpcError;
use weir_rpc::client::channel::RpcChannel;
use weir_rpc::client::{DialSetup, ServerEndpoint};
use weir_rpc::group::address::RpcAddress;
use weir_rpc::links::ofi::{self, FabricChoice, OfiLink, OfiSettings};
use weir_rpc::links::shm::RpcShmLink;
use weir_rpc::links::stream::StreamLink;
use weir_rpc::links::{Link, LinkSide};
use weir_rpc::wire::OpenRequest;
use weir_run::{BulkMemory, BulkPart, ServiceChannel};
use weir_schema::{RpcEndpoint, RpcPoll};

/// Limit of connecting to a target.
const WITHIN: Duration = Duration::from_secs(10);
/// Most buffers that a session asks for; calls wait for a free one.
const MOST_BUFFERS: u32 = 64;

/// Makes channels by addresses as `tcp://host:port`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreDial;

/// A channel over any link.
pub(crate) enum StoreChannel {
    Tcp(Box<RpcChannel<StreamLink>>),
    Shm(Box<RpcChannel<RpcShmLink>>),
    Fabric(Box<RpcChannel<OfiLink<false>>>),
    FabricMemory(Box<RpcChannel<OfiLink<true>>>),
}

impl Dial for StoreDial {
    type Channel = StoreChannel;

    fn dial(&self, address: &str, call: &TargetCall) -> io::Result<StoreChannel> {
        Ok(open(address.parse()?, call)?)
    }
}

fn open(address: RpcAddress, call: &TargetCall) -> Result<StoreChannel, RpcError> {
    let scheme = address.scheme.clone();
    let offer = if scheme.starts_with(ofi::SCHEME) {
        Some(FabricChoice::of_address(&address, None)?.find()?)
    } else {
        None
    };
    let endpoint = ServerEndpoint {
        endpoint: RpcEndpoint {
            rank: 0,
            tag: call.tag,
        },
        address,
        nonce: None,
    };
    let settings = OfiSettings::of(RpcPoll::Automatic);
    Ok(match (offer, scheme.as_str()) {
        (Some(offer), _) if offer.facts().has_remote_memory => {
            let link = OfiLink::<true>::open(offer, settings)?;
            StoreChannel::FabricMemory(session(link, &endpoint, call)?)
        }
        (Some(offer), _) => {
            let link = OfiLink::<false>::open(offer, settings)?;
            StoreChannel::Fabric(session(link, &endpoint, call)?)
        }
        (None, "shm") => {
            let link = RpcShmLink::new(LinkSide::Client)?;
            StoreChannel::Shm(session(link, &endpoint, call)?)
        }
        // Another scheme is refused by its name.
        (None, _) => StoreChannel::Tcp(session(StreamLink::new()?, &endpoint, call)?),
    })
}

fn session<L: Link>(
    link: L,
    endpoint: &ServerEndpoint,
    call: &TargetCall,
) -> Result<Box<RpcChannel<L>>, RpcError> {
    let setup = DialSetup {
        group: GROUP.to_owned(),
        token: None,
        from: Vec::new(),
        within: WITHIN,
    };
    let asked = OpenRequest {
        service: call.service.to_owned(),
        version: VERSION,
        send_size: LONGEST_REQUEST,
        reply_size: call.buffer,
        buffers: call.slots.min(MOST_BUFFERS),
        credits: call.slots,
        ..OpenRequest::default()
    };
    RpcChannel::open(link, &setup, endpoint, &asked).map(Box::new)
}

/// The same call on whichever link it is.
macro_rules! on {
    ($channel:expr, $one:ident => $call:expr) => {
        match $channel {
            StoreChannel::Tcp($one) => $call,
            StoreChannel::Shm($one) => $call,
            StoreChannel::Fabric($one) => $call,
            StoreChannel::FabricMemory($one) => $call,
        }
    };
}

impl ServiceChannel for StoreChannel {
    fn register(&mut self, bytes: usize) -> io::Result<BulkMemory> {
        on!(self, one => one.register(bytes))
    }

    fn memory(&mut self, memory: BulkMemory) -> &mut [u8] {
        on!(self, one => one.memory(memory))
    }

    fn request(
        &mut self,
        slot: u32,
        operation: u16,
        payload: &[u8],
        bulk: Option<BulkPart>,
    ) -> io::Result<()> {
        on!(self, one => one.request(slot, operation, payload, bulk))
    }

    fn poll(
        &mut self,
        wait: Duration,
        done: impl FnMut(u32, Result<&[u8], i64>),
    ) -> io::Result<u32> {
        on!(self, one => one.poll(wait, done))
    }
}

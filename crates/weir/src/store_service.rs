//! Servers of object stores: the targets of a pool as services for remote procedure calls, a tag for each.
//!
//! In: a pool, addresses. Out: a host whose targets answer until it is stopped. Target t is tag t, and all tags
//! are alike. Not here: what a target answers (`weir-object`), words, the life of the program (`rpc`).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use weir_object::mem::MemStore;
use weir_object::remote::{
    BUFFERS, GROUP, LONGEST, SERVICES, ServerInfo, Step, Target, TargetRequest, VERSION,
};
use weir_object::{Durability, ObjectCode, ObjectError, PoolMode, PoolSpec, StoreUuid, ValueSums};
use weir_rpc::server::hosting::{Host, host_services};
use weir_rpc::service::{CallHandle, NextStep, PushPart, RpcService, ServiceCall, SessionShape};
use weir_rpc::wire::OpenRequest;
use weir_rpc::{DerCode, RpcError};
use weir_schema::RpcServe;

use crate::rpc::ServerLog;

/// Bytes of values longer than a buffer that clients can make one target hold.
const MOST_HELD: u64 = 4 * LONGEST;

/// Pool to serve.
#[derive(Clone, Debug)]
pub(crate) struct ServedPool {
    /// Directory of its files; none: in memory.
    pub(crate) directory: Option<PathBuf>,
    /// Its size, all targets together.
    pub(crate) bytes: u64,
    pub(crate) targets: u32,
    /// Name of a new pool, or of the one that is there.
    pub(crate) uuid: StoreUuid,
    pub(crate) mode: PoolMode,
    /// None: the best that the directory has.
    pub(crate) durability: Option<Durability>,
    pub(crate) sums: ValueSums,
}

/// The targets' stores, and what is said of them.
pub(crate) struct OpenPool {
    stores: Vec<MemStore>,
    about: ServerInfo,
}

impl ServedPool {
    /// Its files, in the order of its targets; none in memory.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let targets = self.directory.iter().flat_map(|_| 0..self.targets);
        targets.filter_map(|target| self.file(target))
    }

    fn file(&self, target: u32) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join(format!("obj{target}")))
    }

    /// Opens or makes the pool: all targets, or none.
    pub(crate) fn open(&self) -> Result<OpenPool, ObjectError> {
        let best = match (self.durability, &self.directory) {
            (Some(level), _) => level,
            (None, None) => Durability::None,
            (None, Some(_)) => Durability::Power,
        };
        match self.open_at(best) {
            Err(why) if self.durability.is_none() && why.code == ObjectCode::NoSys => {
                self.open_at(Durability::Process)
            }
            opened => opened,
        }
    }

    fn open_at(&self, durability: Durability) -> Result<OpenPool, ObjectError> {
        let mut stores = Vec::new();
        let mut made = Vec::new();
        for target in 0..self.targets {
            let path = self.file(target);
            let place = path
                .as_ref()
                .map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
            let opened = MemStore::open(&PoolSpec {
                path: path.clone(),
                uuid: Some(self.uuid),
                mode: self.mode,
                durability,
                sums: self.sums,
                ..PoolSpec::anonymous(self.bytes / u64::from(self.targets.max(1)))
            });
            match opened {
                Ok(store) => {
                    stores.push(store);
                    made.extend(path.filter(|_| self.mode == PoolMode::Create));
                }
                Err(why) => {
                    // Part of a pool is of no use; these files are this call's own.
                    drop(stores);
                    for file in made {
                        let _ = std::fs::remove_file(file);
                    }
                    let text = format!("{place}: {}", why.message);
                    return Err(ObjectError::new(why.code, text));
                }
            }
        }
        let first = stores.first().map(MemStore::facts);
        Ok(OpenPool {
            about: ServerInfo {
                targets: self.targets,
                pool: self.uuid,
                durability,
                sums: first.map_or(self.sums, |facts| facts.sums),
            },
            stores,
        })
    }
}

/// Serves a pool from now on.
pub(crate) fn host(asked: RpcServe, pool: OpenPool, log: ServerLog) -> Result<Host, RpcError> {
    let OpenPool { stores, about } = pool;
    let asked = RpcServe {
        group: GROUP.to_owned(),
        tags: about.targets,
        ranks: Some((0, 0)),
        ..asked
    };
    let stores: Vec<_> = stores.into_iter().map(Some).collect();
    let stores = Mutex::new(stores);
    let services = move |_rank: u32, tag: u32| {
        let mut stores = stores.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.get_mut(tag as usize).and_then(Option::take);
        let of = |name, store| -> Box<dyn RpcService> {
            let target = Target::new(store, about, MOST_HELD);
            Box::new(TargetService { name, target })
        };
        let [stored, echo] = SERVICES;
        vec![of(stored, store), of(echo, None)]
    };
    host_services(asked, Arc::new(services), log)
}

/// A target as a service.
struct TargetService {
    name: &'static str,
    target: Target<MemStore, CallHandle>,
}

impl Drop for TargetService {
    fn drop(&mut self) {
        self.target.close();
    }
}

impl TargetService {
    fn step(&mut self, step: Step, call: &mut ServiceCall<'_>) -> NextStep {
        let part = |part: weir_object::remote::Part| PushPart {
            from: part.from,
            to: part.to,
            length: part.length,
        };
        if matches!(step, Step::Push | Step::PushAndReply(_)) {
            call.parts.extend(self.target.parts().map(part));
        }
        match step {
            Step::Reply(length) => NextStep::Reply(length as u64),
            Step::Pull { from, length } => {
                call.pull_from = from;
                NextStep::Pull(length)
            }
            Step::Push => NextStep::PushParts,
            Step::PushAndReply(length) => NextStep::PushPartsAndReply(length as u64),
            Step::Later => NextStep::Later,
            Step::Fail(code) => {
                let code = DerCode::from_number(-i32::from(code.number()));
                NextStep::Fail(code.unwrap_or(DerCode::Other))
            }
        }
    }
}

/// A call as a target takes it.
fn request<'c>(call: &'c mut ServiceCall<'_>) -> TargetRequest<'c, CallHandle> {
    TargetRequest {
        operation: call.operation,
        payload: call.payload,
        bulk: call.bulk,
        buffer: &mut *call.buffer,
        handle: call.handle,
    }
}

impl RpcService for TargetService {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u16 {
        VERSION
    }

    fn open(&mut self, _session: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
        Ok(SessionShape {
            buffer_bytes: asked.reply_size.clamp(BUFFERS.0, BUFFERS.1).into(),
            fill: 0x5a,
            longest_bulk: Some(LONGEST),
        })
    }

    fn needs_buffer(&self, _operation: u16) -> bool {
        // Also for failures, which have words. Calls without a session have none, and fail.
        true
    }

    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let step = self.target.request(request(call));
        self.step(step, call)
    }

    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let step = self.target.pulled(request(call));
        self.step(step, call)
    }

    fn answers_later(&self) -> bool {
        true
    }

    fn end_of_round(&mut self, ready: &mut Vec<CallHandle>) -> bool {
        self.target.end_of_round(ready)
    }

    fn resumed(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let step = self.target.resumed(call.handle, &mut *call.buffer);
        self.step(step, call)
    }

    fn dropped(&mut self, call: CallHandle) {
        self.target.dropped(call);
    }
}

#[cfg(test)]
mod tests;

//! `weir obj VERB`: a server of a store, and what is done with the files of pools.
//!
//! In: the words after `obj`. Out: text or JSON, the exit code. A file that is no pool is never changed. Not
//! here: what the words mean (`weir-doors`), pools (`weir-object`).

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_doors::Refusal;
use weir_doors::obj::{Action, PoolCall, PoolTask, ServeSettings, Sums, read};
use weir_object::mem::{MemStore, PoolFacts, may_be_pool, pool_uuid};
use weir_object::{
    ContainerMode, DamagedValue, DiskLibrary, Durability, Epoch, EpochRange, FreedVersions,
    ObjectCode, ObjectStore as _, PoolMode, PoolSpec, StoreUuid, ValueSums, uuid_of, uuid_text,
};
use weir_schema::ObjectDurability;
use weir_sys::token;

use crate::store_service::{self, ServedPool};
use crate::{Outcome, output, rpc};

/// The words after `obj`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let variable = |name: &str| std::env::var(name).ok();
    match read(words, &variable)? {
        Action::Print(text) => Ok(crate::printed(&text)),
        Action::Serve(settings) => serve(*settings),
        Action::Pool(call) => carry_out(&call),
    }
}

/// Makes or opens the pool, which no client can, and serves it.
fn serve(settings: ServeSettings) -> Outcome {
    let named = settings.pool.as_deref().and_then(uuid_of);
    let uuid = named
        .map_or_else(token::nonce, Ok)
        .map_err(Refusal::lacks)?;
    let found = match (&settings.directory, named) {
        (Some(directory), Some(uuid)) => targets_in(directory, &uuid)?,
        _ => None,
    };
    if let (Some(found), Some(given)) = (found, settings.targets)
        && found != given
    {
        let why = "leave --targets out, or give the number of its files";
        let uuid = uuid_text(&uuid);
        return Err(Refusal::usage(format!(
            "--targets {given}: pool {uuid} has {found}; {why}"
        )));
    }
    let pool = ServedPool {
        directory: settings.directory,
        bytes: settings.pool_bytes.0,
        targets: found.or(settings.targets).unwrap_or(1),
        uuid,
        mode: named.map_or(PoolMode::Create, |_| PoolMode::Open),
        durability: settings.durability.map(|level| match level {
            ObjectDurability::None => Durability::None,
            ObjectDurability::Process => Durability::Process,
            ObjectDurability::Power => Durability::Power,
        }),
        sums: match settings.sums {
            Sums::None => ValueSums::None,
            Sums::Crc32c => ValueSums::Crc32c,
            Sums::Xxh3 => ValueSums::Xxh3,
        },
    };
    let opened = pool.open().map_err(|why| {
        if why.code.is_of_place() {
            Refusal::lacks(why)
        } else {
            Refusal::usage(why)
        }
    })?;
    if named.is_none() {
        output::error(&format!("note: the pool is {}\n", uuid_text(&uuid)));
    }
    let served = rpc::serve(settings.rpc, |asked, log| {
        store_service::host(asked, opened, log)
    });
    if named.is_none() && !settings.keep {
        for file in pool.files() {
            std::fs::remove_file(&file).map_err(|why| unusable(&file, why))?;
        }
    }
    served
}

/// Number of the files that a pool has in a directory, or should have: up to the last one; none without any.
fn targets_in(directory: &Path, uuid: &StoreUuid) -> Result<Option<u32>, Refusal> {
    let lacks = |why| Refusal::lacks(format!("{}: {why}", directory.display()));
    let mut last = None;
    for entry in fs::read_dir(directory).map_err(lacks)? {
        let path = entry.map_err(lacks)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("obj")?.parse::<u32>().ok());
        let Some(number) = number.filter(|_| path.is_file()) else {
            continue;
        };
        let is_of_pool = match pool_uuid(&head(&path).map_err(lacks)?) {
            Ok(found) => found == *uuid,
            // One that is damaged may be: it is refused when it is opened.
            Err(why) => why.code != ObjectCode::Inval,
        };
        last = last.max(is_of_pool.then_some(number));
    }
    Ok(last.map(|last| last.saturating_add(1)))
}

fn durability_name(level: Durability) -> &'static str {
    match level {
        Durability::None => "none",
        Durability::Process => "process",
        Durability::Power => "power",
    }
}

/// Answer of a task about one pool.
struct Found {
    text: String,
    json: Value,
    is_damaged: bool,
}

fn carry_out(call: &PoolCall) -> Outcome {
    let (mut text, mut pools, mut code) = (String::new(), Vec::new(), 0);
    for path in files(&call.path)? {
        let found = Pool::open(&path)?.carry_out(call.task)?;
        let _ = write!(text, "{}\n{}", path.display(), found.text);
        let mut pool = found.json;
        pool["file"] = json!(path.display().to_string());
        pools.push(pool);
        code = code.max(u8::from(found.is_damaged));
    }
    if call.json {
        text = json!({ "schema": "weir.pools.v1", "pools": pools }).to_string() + "\n";
    }
    Ok(u8::from(!output::print(&text)).max(code))
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> Refusal {
    Refusal::usage(format!("{}: {why}", path.display()))
}

/// The file of this path, or those of pools in it.
fn files(path: &Path) -> Result<Vec<PathBuf>, Refusal> {
    let lacks = |why| Refusal::lacks(format!("{}: {why}", path.display()));
    if !fs::metadata(path).map_err(lacks)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(lacks)? {
        let file = entry.map_err(lacks)?.path();
        if file.is_file() && has_magic(&file).unwrap_or(false) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(unusable(path, "no pool of weir is in this directory"));
    }
    Ok(files)
}

fn has_magic(path: &Path) -> std::io::Result<bool> {
    head(path).map(|head| may_be_pool(&head))
}

/// The first bytes of a file, by which a pool is known.
fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(8192).read_to_end(&mut head)?;
    Ok(head)
}

/// A pool that is open.
struct Pool {
    store: MemStore,
    facts: PoolFacts,
    durability: Durability,
}

impl Pool {
    /// Opens a pool that exists, at the best level of durability that its place has.
    fn open(path: &Path) -> Result<Self, Refusal> {
        let metadata = fs::metadata(path).map_err(|why| unusable(path, why))?;
        if !metadata.is_file() {
            return Err(unusable(path, "it is no file"));
        }
        if metadata.len() == 0 {
            return Err(unusable(path, "the file is empty"));
        }
        let head = head(path).map_err(|why| unusable(path, why))?;
        if DiskLibrary::of_pool(&head).is_some() {
            let why = "the pool is one of a library on a disk, which checks it itself; obj looks at pools of mem";
            return Err(unusable(path, why));
        }
        if !may_be_pool(&head) {
            return Err(unusable(path, "the file is no pool of weir"));
        }
        let open = |durability| {
            MemStore::open(&PoolSpec {
                path: Some(path.to_owned()),
                mode: PoolMode::Open,
                durability,
                ..PoolSpec::anonymous(0)
            })
        };
        let (mut durability, mut store) = (Durability::Power, open(Durability::Power));
        if matches!(&store, Err(why) if why.code == ObjectCode::NoSys) {
            // No DAX.
            (durability, store) = (Durability::Process, open(Durability::Process));
        }
        let store = store.map_err(|why| unusable(path, why))?;
        let facts = store.facts();
        Ok(Self {
            store,
            facts,
            durability,
        })
    }

    fn carry_out(mut self, task: PoolTask) -> Result<Found, Refusal> {
        let found = match task {
            PoolTask::Info => self.info(),
            PoolTask::Check => self.check()?,
            PoolTask::Aggregate => self.aggregate()?,
        };
        Box::new(self.store).close().map_err(Refusal::lacks)?;
        Ok(found)
    }

    fn info(&self) -> Found {
        let (stats, facts) = (self.store.stats(), &self.facts);
        let containers: Vec<String> = facts.containers.iter().map(uuid_text).collect();
        let sums = match facts.sums {
            ValueSums::None => "none",
            ValueSums::Crc32c => "crc32c",
            ValueSums::Xxh3 => "xxh3",
        };
        let rows = [
            ("uuid", json!(uuid_text(&facts.uuid))),
            ("bytes", json!(facts.bytes)),
            ("durability", json!(durability_name(self.durability))),
            ("sums", json!(sums)),
            ("containers", json!(containers)),
            ("objects", json!(stats.objects)),
            ("akeys", json!(stats.akeys)),
            ("versions", json!(stats.versions)),
            ("value_bytes", json!(stats.value_bytes)),
            ("log_bytes", json!(stats.log_bytes)),
            ("free_bytes", json!(stats.free_bytes)),
            ("log_damaged", json!(stats.log_damaged)),
        ];
        found(rows.into(), false)
    }

    fn check(&mut self) -> Result<Found, Refusal> {
        let mut damaged = Vec::new();
        let mut visit = |value: &DamagedValue| damaged.push(named(value));
        let values = self.store.scrub(&mut visit).map_err(Refusal::lacks)?;
        let log_damaged = self.store.stats().log_damaged;
        let is_damaged = !damaged.is_empty() || log_damaged;
        let rows = vec![
            ("values_with_sums", json!(values)),
            ("damaged", json!(damaged)),
            ("log_damaged", json!(log_damaged)),
        ];
        let mut found = found(rows, is_damaged);
        if self.facts.sums == ValueSums::None {
            found.text += "  the pool has no sums: its values cannot be compared\n";
        }
        Ok(found)
    }

    fn aggregate(&mut self) -> Result<Found, Refusal> {
        let all = EpochRange {
            after: Epoch(0),
            upto: Epoch::LATEST,
        };
        let mut freed = FreedVersions::default();
        for uuid in &self.facts.containers {
            let of_one = self.store.container(*uuid, ContainerMode::Open);
            let of_one = of_one.and_then(|container| self.store.aggregate(container, all));
            let of_one = of_one.map_err(Refusal::usage)?;
            freed.versions += of_one.versions;
            freed.bytes += of_one.bytes;
        }
        let gained = self.store.collect().map_err(Refusal::usage)?;
        let rows = vec![
            ("freed_versions", json!(freed.versions)),
            ("freed_bytes", json!(freed.bytes)),
            ("usable_bytes", json!(gained)),
        ];
        Ok(found(rows, false))
    }
}

/// Rows as text and as an object of JSON.
fn found(rows: Vec<(&'static str, Value)>, is_damaged: bool) -> Found {
    let mut text = String::new();
    for (name, value) in &rows {
        let name = name.replace('_', " ");
        let lines = match value {
            Value::Array(all) if all.is_empty() => vec!["none".to_owned()],
            Value::Array(all) => all.iter().map(plain).collect(),
            one => vec![plain(one)],
        };
        for line in lines {
            let _ = writeln!(text, "  {name:17} {line}");
        }
    }
    let pairs = rows
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Found {
        text,
        json: Value::Object(pairs.collect()),
        is_damaged,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
        other => other.to_string(),
    }
}

/// A damaged value by its keys.
fn named(value: &DamagedValue) -> String {
    let key = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let (dkey, akey) = (key(&value.dkey), key(&value.akey));
    let extent = value.extent.map_or_else(String::new, |extent| {
        format!(", {} records from {}", extent.count, extent.index)
    });
    format!(
        "object {}, dkey '{dkey}', akey '{akey}'{extent}, epoch {}",
        value.object, value.epoch.0
    )
}

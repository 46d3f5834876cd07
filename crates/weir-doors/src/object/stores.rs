//! Which store a command line asks for: one of this process with its files, or one of servers.
//!
//! In: arguments, the machine. Out: the beginning of an [`ObjectWorkload`], with notes. Not here: its keys,
//! values and tests (`plan`).

use std::path::PathBuf;

use weir_schema::{ObjectClass, ObjectEngine, ObjectWorkload};

use super::command_string::Tests;
use super::flags::{MOST_CREDITS, credits, uuid};
use super::plan::usage;
use crate::given::Given;
use crate::machine::{Machine, NamedPath};
use crate::refusal::Refusal;
use crate::selftest::values::server_uris;

/// Variable that names servers where no flag does.
const SERVERS: &str = "WEIR_OBJ_SERVER";

/// The engine that was named, if it is one of this process.
fn local_engine(given: &Given) -> Option<ObjectEngine> {
    let is_named = |engine: &ObjectEngine| given.is("engine", engine.name());
    ObjectEngine::EMBEDDED.into_iter().find(is_named)
}

/// True if the store is one of this process.
pub(super) fn is_embedded(given: &Given) -> bool {
    given.is("type", "vos") || local_engine(given).is_some()
}

/// Tests that can be asked for.
pub(super) fn tests(given: &Given) -> Tests {
    if is_embedded(given) {
        return Tests::EMBEDDED;
    }
    Tests {
        are_kept: !given.is("type", "echo"),
        ..Tests::REACHED
    }
}

/// The store, and notes on what arguments mean for it.
///
/// # Errors
/// Arguments that the store does not have; neither a server nor the library of DAOS (exit 3).
pub(super) fn read(
    given: &Given,
    machine: &dyn Machine,
) -> Result<(ObjectWorkload, Vec<String>), Refusal> {
    let mut notes = Vec::new();
    let mut store = if is_embedded(given) {
        refuse_given(
            given,
            &["server", "token-file", "class"],
            "a store of this process has none",
        )?;
        if given.is("type", "echo") || given.is("engine", "remote") || given.is("engine", "daos") {
            let why = "that store is one of this process; leave one of both out";
            return Err(wrong(given, "type", why));
        }
        embedded(given, machine, &mut notes)
    } else {
        reached(given, machine, &mut notes)?
    };
    store.pool = given.text("pool").map(str::to_owned);
    if store.engine != ObjectEngine::Daos {
        let is_named = given.text("pool").map_or(Ok(()), uuid);
        is_named.map_err(|why| wrong(given, "pool", &why))?;
        store.pool = store.pool.map(|uuid| uuid.to_ascii_lowercase());
    }
    let asked = given.parsed("credits", credits).unwrap_or_default();
    let in_flight = u32::try_from(asked.max(0)).unwrap_or(u32::MAX);
    store.in_flight = in_flight.min(MOST_CREDITS);
    if in_flight > MOST_CREDITS {
        notes.push(format!(
            "-C {asked}: {MOST_CREDITS} operations are in flight, which are the most"
        ));
    }
    Ok((store, notes))
}

fn wrong(given: &Given, flag: &str, why: &str) -> Refusal {
    let text = given.text(flag).unwrap_or_default();
    Refusal::usage(format!("--{flag} {text}: {why}"))
}

/// Refuses flags that this store does not have.
fn refuse_given(given: &Given, flags: &[&str], why: &str) -> Result<(), Refusal> {
    let mut all = given.own.iter().map(|(flag, _)| flag);
    let found = all.find(|flag| flags.contains(&flag.name));
    found.map_or(Ok(()), |flag| {
        let name = flag.spelling();
        Err(Refusal::usage(format!("{name}: {why}; leave it out")))
    })
}

/// A store of this process.
fn embedded(given: &Given, machine: &dyn Machine, notes: &mut Vec<String>) -> ObjectWorkload {
    let (path, path_end, note) = pool_path(given, machine);
    notes.extend(note);
    ObjectWorkload {
        engine: local_engine(given).unwrap_or_default(),
        path,
        path_end,
        ..ObjectWorkload::default()
    }
}

/// A store that is reached over a network.
fn reached(
    given: &Given,
    machine: &dyn Machine,
    notes: &mut Vec<String>,
) -> Result<ObjectWorkload, Refusal> {
    let class = class(given)?;
    let why = "the server's own holds, which `weir obj serve` has";
    refuse_given(given, &["durability", "prefault"], why)?;
    refuse_given(given, &["f"], "it names the pool files of -T vos")?;
    let (engine, servers) = engine(given, machine)?;
    if engine != ObjectEngine::Daos && !class.is_plain() {
        let why = "weir's servers have TINY and LARGE; replicas and erasure code are those of --engine daos";
        return Err(wrong(given, "class", why));
    }
    if engine == ObjectEngine::Daos && !given.has("pool") {
        let why = "weir makes no pools there; name one that is there with -u";
        return Err(Refusal::usage(format!("--engine daos: {why}")));
    }
    if given.has("pool_scm") {
        notes.push("-P changes nothing: the pool is the server's, which has its size".to_owned());
    }
    Ok(ObjectWorkload {
        engine,
        servers,
        token_file: given.text("token-file").map(PathBuf::from),
        class: Some(class),
        ..ObjectWorkload::default()
    })
}

/// The engine, and the addresses of its servers.
fn engine(given: &Given, machine: &dyn Machine) -> Result<(ObjectEngine, Vec<String>), Refusal> {
    let echoes = given.is("type", "echo");
    let daos = || match machine.lacks_daos() {
        None => Ok((ObjectEngine::Daos, Vec::new())),
        Some(why) => Err(why),
    };
    if given.is("engine", "daos") {
        refuse_given(
            given,
            &["server", "token-file"],
            "--engine daos finds its servers itself",
        )?;
        if echoes {
            let why = "that of DAOS needs classes made for it; --server names servers of weir";
            return Err(wrong(given, "type", why));
        }
        return daos().map_err(|why| Refusal::lacks(format!("--engine daos: {why}")));
    }
    let servers = servers(given, machine)?;
    if !servers.is_empty() {
        let engine = if echoes {
            ObjectEngine::Echo
        } else {
            ObjectEngine::Remote
        };
        return Ok((engine, servers));
    }
    if echoes || given.is("engine", "remote") {
        return Err(no_server(""));
    }
    daos().map_err(|why| no_server(&format!("; and {why}")))
}

/// Addresses of servers, of the flag or of the variable.
pub(crate) fn servers(given: &Given, machine: &dyn Machine) -> Result<Vec<String>, Refusal> {
    let variable = machine.variable(SERVERS).filter(|text| !text.is_empty());
    Ok(match (given.text("server"), variable) {
        (Some(text), _) => server_uris(text).unwrap_or_default(),
        (None, Some(text)) => server_uris(&text)
            .map_err(|why| Refusal::usage(format!("the variable {SERVERS}={text}: {why}")))?,
        (None, None) => Vec::new(),
    })
}

/// The refusal where nobody names a server.
pub(crate) fn no_server(more: &str) -> Refusal {
    let help = "`weir obj serve` is one, and its line READY has the address";
    Refusal::lacks(format!(
        "no server: neither --server nor {SERVERS} names one{more}\n  help: {help}"
    ))
}

/// The class of objects, in capitals or not.
fn class(given: &Given) -> Result<ObjectClass, Refusal> {
    let text = given.text("class").unwrap_or_default();
    let mut all = ObjectClass::ALL.into_iter();
    let known = all.find(|class| class.name().eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        let names = ObjectClass::ALL.map(ObjectClass::name).join(", ");
        let why = format!("there are {names}");
        let peer = format!("Unknown object class: {text}\n{}", usage(given));
        wrong(given, "class", &why).by_peer(peer)
    })
}

/// The path behind `-f`, as older versions have it.
pub(super) fn older_path(given: &Given) -> Option<&str> {
    let mut operands = given.operands.iter();
    let is_path = |word: &&String| !word.eq_ignore_ascii_case("r");
    operands.find(is_path).map(String::as_str)
}

/// Begin and end of the pool files' paths; a note where a word is taken as older versions take it.
fn pool_path(given: &Given, machine: &dyn Machine) -> (String, String, Option<String>) {
    let end = || String::new();
    if let Some(path) = older_path(given) {
        let note = format!(
            "-f {path}: taken as the beginning of the pool file's name, as in older versions"
        );
        return (path.to_owned(), end(), Some(note));
    }
    if let Some(path) = given.text("f") {
        return (path.to_owned(), end(), None);
    }
    let dir = given.text("dir").unwrap_or_default();
    let (parent, last) = match dir.rsplit_once('/') {
        None => (".", dir),
        Some(("", last)) => ("/", last),
        Some(parts) => parts,
    };
    // What older versions were called with; any other word is a directory that is missing.
    let is_prefix = given.has("dir")
        && last.starts_with("vos")
        && machine.named_path(dir) == NamedPath::Missing
        && machine.named_path(parent) == NamedPath::Directory;
    if is_prefix {
        let note =
            format!("-D {dir} is no directory; taken as the beginning of the pool file's name");
        return (dir.to_owned(), end(), Some(note));
    }
    let dir = dir.strip_suffix('/').unwrap_or(dir);
    if given.is("output-style", "2.9") {
        return (format!("{dir}/vos_perf"), ".pmem".to_owned(), None);
    }
    (format!("{dir}/vos"), end(), None)
}

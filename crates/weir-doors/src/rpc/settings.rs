//! Settings of `weir rpc serve`, as plain data: every value is within its range.
//!
//! In: flags. Out: [`ServeSettings`], which the server uses unchanged. Not here: serving, files,
//! which rank is free.

use std::path::PathBuf;

use weir_schema::{RpcServe, RpcServiceTime, RpcTable};
use weir_units::{Bytes, Nanos, parse};

use crate::given::GivenFlags;
use crate::refusal::Refusal;
use crate::selftest::values::{listen_uris, poll};
use crate::selftest::{TableDirectory, UsedVariables};

/// Most ranks of one process, and most tags of a rank.
const MOST_RANKS: u64 = 4096;
const MOST_TAGS: u64 = 65_536;
/// The largest rank and tag.
const LARGEST: u64 = u32::MAX as u64 - 1;

/// Settings of the server, and of the program around it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeSettings {
    /// The server. The directory of its table is still to be chosen.
    pub serve: RpcServe,
    /// Directories for the table: the first of these that can be used.
    pub directories: Vec<TableDirectory>,
    /// Descriptor that is notified once the server is ready.
    pub ready_descriptor: Option<i32>,
    /// Condition on which the server ends by itself.
    pub end: ServeEnd,
    /// Notes for standard error, printed before anything else.
    pub notes: Vec<String>,
}

/// Condition on which a server ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeEnd {
    /// Never.
    Never,
    /// Ends after this many requests.
    Requests(u64),
    /// Ends after this time without a request.
    Idle(Nanos),
}

/// The settings of these flags.
///
/// # Errors
/// Values out of range, flags that contradict each other.
pub(super) fn of(
    given: &GivenFlags,
    variables: &mut UsedVariables<'_>,
) -> Result<ServeSettings, Refusal> {
    let mut settings = reached(given, variables)?;
    settings.directories = variables.table_directories(given.text("path"));
    let serve = &mut settings.serve;
    refuse_both(given, "rank", "ranks")?;
    serve.ranks = match given.whole("rank") {
        Some(rank) => Some((rank, rank)),
        None => given.parsed("ranks", ranks),
    };
    serve.tags = tags(given, variables)?;
    serve.table = Some(RpcTable {
        directory: PathBuf::new(),
        group: serve.group.clone(),
        is_public: given.has("public"),
        is_plain: given.is("table-format", "cart"),
    });
    Ok(settings)
}

/// The settings of a server of one rank and tag, without a table.
///
/// # Errors
/// Values out of range, flags that contradict each other.
pub(crate) fn reached(
    given: &GivenFlags,
    variables: &mut UsedVariables<'_>,
) -> Result<ServeSettings, Refusal> {
    let poll = match given.parsed("poll", poll) {
        Some(poll) => poll,
        None => variables.poll()?.unwrap_or_default(),
    };
    let interface = variables.interface();
    let pollers = given.whole("pollers");
    let cpus = given.cpus("cpus").unwrap_or_default();
    refuse_cpus(given, cpus.len(), pollers)?;
    let mut listen = ["transport", "listen"].into_iter();
    let serve = RpcServe {
        ranks: Some((0, 0)),
        group_size: None,
        tags: 1,
        addresses: match listen.find(|name| given.has(name)) {
            Some(name) => given.parsed(name, listen_uris).unwrap_or_default(),
            None => vec![transport(interface.as_deref(), variables)?],
        },
        interface,
        domain: variables.domain(),
        table: None,
        group: given.text("group").unwrap_or("object").to_owned(),
        pollers,
        cpus,
        poll,
        token_file: given.text("token-file").map(PathBuf::from),
        is_open: given.has("open-to-anyone"),
        allows_masters: !given.is("allow-master", "no"),
        max_message: given.size("max-msg").unwrap_or(Bytes(16 << 20)),
        memory_limit: given.size("mem-limit"),
        max_connections: given.number("max-conns"),
        max_sessions: given.number("max-sessions"),
        half_frame_timeout_ns: given.time("half-frame-timeout").unwrap_or_default(),
        service_time: given
            .parsed("service-time", service_time)
            .unwrap_or_default(),
    };
    Ok(ServeSettings {
        serve,
        directories: Vec::new(),
        ready_descriptor: given.whole("ready-fd"),
        end: given.parsed("exit-after", end).unwrap_or(ServeEnd::Never),
        notes: Vec::new(),
    })
}

/// Refuses two flags that exclude each other.
fn refuse_both(given: &GivenFlags, one: &str, other: &str) -> Result<(), Refusal> {
    if !given.has(one) || !given.has(other) {
        return Ok(());
    }
    let text = given.text(one).unwrap_or_default();
    let why = format!("--{other} says it as well; leave one out");
    Err(Refusal::usage(format!("--{one} {text}: {why}")))
}

fn small(text: &str, range: (u64, u64)) -> Result<u32, String> {
    let number = parse::whole(text, range)?;
    u32::try_from(number).map_err(|_| format!("it goes up to {}", u32::MAX))
}

/// Refuses CPUs that no poller has.
fn refuse_cpus(given: &GivenFlags, count: usize, pollers: Option<u32>) -> Result<(), Refusal> {
    let Some(pollers) = pollers.filter(|pollers| count > *pollers as usize) else {
        return Ok(());
    };
    let plural = if pollers == 1 { "" } else { "s" };
    let text = given.text("cpus").unwrap_or_default();
    let why = format!("{count} CPUs for {pollers} poller{plural}");
    Err(Refusal::usage(format!("--cpus {text}: {why}")))
}

/// `3`, `0-3`.
pub(super) fn ranks(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("it takes N or FIRST-LAST, at most {MOST_RANKS} ranks, as 0-3");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text| small(text, (0, LARGEST)).map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    let count = u64::from(last.checked_sub(first).ok_or_else(wrong)?) + 1;
    (count <= MOST_RANKS)
        .then_some((first, last))
        .ok_or_else(wrong)
}

/// Transport by the variables: at the interface, else at the loopback address.
fn transport(
    interface: Option<&str>,
    variables: &mut UsedVariables<'_>,
) -> Result<String, Refusal> {
    let scheme = variables.transport()?.unwrap_or_else(|| "tcp".to_owned());
    if scheme == "shm" {
        return Ok("shm://".to_owned());
    }
    let host = interface.unwrap_or("127.0.0.1");
    let port = variables.port()?.unwrap_or(0);
    Ok(format!("{scheme}://{host}:{port}"))
}

fn tags(given: &GivenFlags, variables: &mut UsedVariables<'_>) -> Result<u32, Refusal> {
    refuse_both(given, "tags", "layout")?;
    match given.whole("tags").or(given.parsed("layout", layout)) {
        Some(tags) => Ok(tags),
        None => Ok(variables.contexts()?.unwrap_or(1)),
    }
}

/// `daos,targets=16,helpers=4`: metadata, monitoring, targets, helpers.
pub(super) fn layout(text: &str) -> Result<u32, String> {
    let wrong = || "it takes daos,targets=T,helpers=H, as daos,targets=16,helpers=4".to_owned();
    let rest = text.strip_prefix("daos,").ok_or_else(wrong)?;
    let (mut targets, mut helpers) = (None, None);
    for word in rest.split(',') {
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        let place = match name {
            "targets" => &mut targets,
            "helpers" => &mut helpers,
            _ => return Err(wrong()),
        };
        let least = u64::from(name == "targets");
        let number =
            small(value, (least, MOST_TAGS - 2)).map_err(|why| format!("{name}: {why}"))?;
        if place.replace(number).is_some() {
            return Err(format!("{name}= stands there twice"));
        }
    }
    let (targets, helpers) = targets.zip(helpers).ok_or_else(wrong)?;
    let tags = u64::from(targets) + u64::from(helpers) + 2;
    let tags = u32::try_from(tags).ok().filter(|_| tags <= MOST_TAGS);
    tags.ok_or_else(|| format!("a rank has at most {MOST_TAGS} tags"))
}

/// `1000`, `idle:30`.
pub(super) fn end(text: &str) -> Result<ServeEnd, String> {
    match text.strip_prefix("idle:") {
        Some(idle) => parse::seconds(idle).map(ServeEnd::Idle),
        None => parse::whole(text, (1, u64::MAX))
            .map(ServeEnd::Requests)
            .map_err(|_| "it takes a number of requests, or idle:SECONDS".to_owned()),
    }
}

/// `const:100`, `exp:50`, `bimodal:10,0.99,1000`; microseconds.
pub(super) fn service_time(text: &str) -> Result<RpcServiceTime, String> {
    let wrong = || "it takes const:US, exp:US or bimodal:US1,P,US2, as const:100".to_owned();
    let micros = |text: &str| {
        let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let number = text
            .parse::<f64>()
            .ok()
            .filter(|us| is_plain && *us <= 60e6);
        number
            .and_then(|us| Nanos::from_secs_f64(us / 1e6))
            .ok_or_else(wrong)
    };
    if text == "0" {
        return Ok(RpcServiceTime::None);
    }
    let (form, numbers) = text.split_once(':').ok_or_else(wrong)?;
    let numbers: Vec<&str> = numbers.split(',').collect();
    match (form, numbers.as_slice()) {
        ("const", [us]) => micros(us).map(RpcServiceTime::Constant),
        ("exp", [us]) => micros(us).map(RpcServiceTime::Exponential),
        ("bimodal", [first, probability, second]) => {
            let probability = probability.parse::<f64>().ok();
            let probability = probability.filter(|p| (0.0..=1.0).contains(p));
            Ok(RpcServiceTime::Bimodal {
                first: micros(first)?,
                probability: probability.ok_or("the probability lies between 0 and 1")?,
                second: micros(second)?,
            })
        }
        _ => Err(wrong()),
    }
}

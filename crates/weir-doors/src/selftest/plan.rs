//! From options to a plan: a group with one job for each pair of message sizes.
//!
//! In: the options, variables of the variables, which tables of groups there are. Out: a plan; notes
//! for standard error. Not here: the words (`argv`), reaching any server.

use weir_schema::{
    BulkPath, EndpointError, EndpointSet, Group, Job, KindName, Plan, RPC_KINDS, RankTags,
    RpcEndpoint, RpcPoll, RpcSpread, RpcVerify, RpcWarmup, RpcWorkload, Schedule, count_endpoints,
    expand_endpoints,
};
use weir_units::{Iops, Nanos, QueueDepth, parse};

use super::endpoints::endpoint_set;
use super::sizes::message_pairs;
use super::values::{self, MOST};
use super::{rate_search, refuse, sweep, variables};
use crate::given::{Given, GivenFlags};
use crate::machine::Machine;
use crate::refusal::Refusal;

/// Tags of a server of the run's own, where nothing says how many: enough for those of the defaults.
const LOOPBACK_TAGS: u32 = 3;

/// A plan and what is said about how it came about.
pub(super) struct Made {
    pub(super) plan: Plan,
    pub(super) notes: Vec<String>,
}

/// The sets of an option, in order.
fn sets(given: &GivenFlags, name: &str) -> Vec<EndpointSet> {
    let sets = given.all(name).map(endpoint_set);
    sets.filter_map(Result::ok).collect()
}

/// The endpoints that are asked where nothing says which.
pub(super) fn default_endpoint(has_agent: bool) -> RpcEndpoint {
    let tag = if has_agent { 2 } else { 0 };
    RpcEndpoint { rank: 0, tag }
}

/// The plan of these options.
///
/// # Errors
/// Values out of range, options that contradict each other, a group that is not there.
pub(super) fn of(given: &Given, machine: &dyn Machine) -> Result<Made, Refusal> {
    let variable = |name: &str| machine.variable(name);
    let mut used = variables::UsedVariables::new(&variable);
    let common = workload(given, machine, &mut used)?;
    let members = members(&common, machine)?;
    let endpoints = counted("endpoint", &common.endpoints, &members)?;
    counted("master-endpoint", &common.masters, &members)?;
    let threads = threads(given, &mut used)?;
    let mut common = bounded(given, explicit(common, &members)?, endpoints)?;
    let mut notes = Vec::new();
    if let Some(asked) = given.whole("connect-storm") {
        let (count, note) = connections(&common, asked, machine.most_open_files());
        let asked_for = given.text("connect-storm").unwrap_or_default();
        notes.extend(note.map(|note| format!("--connect-storm {asked_for}: {note}")));
        common.connections = Some(count);
        common.repetitions = 1;
        common.load.bounds.operations = Some(count.into());
        common.warmup = RpcWarmup::Requests { count: 0 };
    }
    let depths = depths(given)?;
    let is_compat = given.link.is_some() || given.has("use-daos-agent-env");
    let mut groups = Vec::new();
    let pairs = given.parsed("message-sizes", message_pairs);
    for pair in pairs.unwrap_or_default() {
        for depth in &depths {
            let mut work = common.clone();
            (work.request, work.reply) = (pair.request, pair.reply);
            // Before the run: a server that is lost in it is missed by its own RPCs alone.
            work.ping &= groups.is_empty();
            set_depth(given, &mut work, *depth, is_compat);
            let threads = callers(&work, threads);
            work.load.pacing.schedule = schedule(given, &work, threads);
            let words = pair.words();
            let words = words.trim_matches(['(', ')']);
            let name = match depths.as_slice() {
                [_] => words.to_owned(),
                _ => format!("{words}, {depth} in flight"),
            };
            let mut job = Job::of_rpcs(&name, work);
            job.clones = threads;
            job.start.barrier = !groups.is_empty();
            groups.push(Group { jobs: vec![job] });
        }
    }
    let plan = Plan {
        command: given.command(),
        groups,
        ..Plan::new("selftest", "selftest", Vec::new())
    };
    notes.extend(cut_depth(given, &common));
    notes.extend(cut_threads(given, &plan));
    notes.extend(used.notes());
    Ok(Made { plan, notes })
}

/// That so many at once as were asked for there never are.
fn cut_depth(given: &GivenFlags, work: &RpcWorkload) -> Option<String> {
    let asked = given
        .text("max-inflight-rpcs")
        .filter(|_| given.has("max-inflight-rpcs"))?;
    let all = work
        .load
        .bounds
        .operations
        .filter(|_| work.connections.is_none())?;
    let is_cut = asked.parse::<u64>().is_ok_and(|asked| asked > all);
    is_cut.then(|| {
        format!("--max-inflight-rpcs {asked}: there are {all} RPCs in all, and no more at once")
    })
}

/// Threads of the own master: none without an RPC at once.
fn callers(work: &RpcWorkload, threads: u32) -> u32 {
    if work.masters.is_empty() {
        let most = u32::try_from(work.in_flight()).unwrap_or(u32::MAX);
        threads.min(most.max(1))
    } else {
        threads
    }
}

/// That there are fewer threads than were asked for.
fn cut_threads(given: &GivenFlags, plan: &Plan) -> Option<String> {
    let asked = given.text("threads")?;
    let fewest = plan.jobs().map(|(_, job)| job.clones).min()?;
    let is_cut = asked.parse::<u32>().is_ok_and(|asked| asked > fewest);
    is_cut.then(|| {
        format!(
            "--threads {asked}: there are {fewest} RPCs at once, and no thread without one of them"
        )
    })
}

/// Files that are open for other reasons.
const OTHER_FILES: u64 = 64;

/// So many connections as a process may have, and what is said where those are fewer.
fn connections(work: &RpcWorkload, asked: u64, most: Option<u64>) -> (u32, Option<String>) {
    let transport = work.transport.as_deref().unwrap_or("tcp");
    let each = if transport.starts_with("tcp") { 1 } else { 4 };
    // A server of the run's own has the other ends.
    let each = if work.loopback.is_some() {
        2 * each
    } else {
        each
    };
    let room = most.map(|most| (most.saturating_sub(OTHER_FILES) / each).max(1));
    let count = room.map_or(asked, |room| asked.min(room));
    let note = most
        .filter(|_| count < asked)
        .map(|most| format!("a process may have {most} files open here: {count} connections"));
    (u32::try_from(count).unwrap_or(u32::MAX), note)
}

/// Threads of the own master, where that is the one that asks.
fn threads(given: &GivenFlags, used: &mut variables::UsedVariables<'_>) -> Result<u32, Refusal> {
    match given.whole("threads") {
        Some(threads) => Ok(threads),
        None if given.has("master-endpoint") => Ok(1),
        None => Ok(used.contexts()?.unwrap_or(1)),
    }
}

/// Everything but the sizes and what depends on how many endpoints there are.
fn workload(
    given: &GivenFlags,
    machine: &dyn Machine,
    used: &mut variables::UsedVariables<'_>,
) -> Result<RpcWorkload, Refusal> {
    let has_agent = given.has("use-daos-agent-env");
    let mut endpoints = sets(given, "endpoint");
    if endpoints.is_empty() {
        endpoints.push(EndpointSet::one(default_endpoint(has_agent)));
    }
    let mut work = RpcWorkload {
        group: given.text("group-name").unwrap_or_default().to_owned(),
        targets: given
            .parsed("target", values::server_uris)
            .unwrap_or_default(),
        loopback: loopback(given),
        transport: given.parsed("transport", values::transport_or_null),
        endpoints,
        masters: sets(given, "master-endpoint"),
        buffer_low_byte: given.whole("align"),
        shuffle: given.has("randomize-endpoints"),
        ping: !has_agent && !given.has("no-sync") && !given.has("loopback"),
        matrix: given.has("matrix"),
        first: given.has("first"),
        samples: given.has("samples"),
        seed: given.whole("seed").unwrap_or_else(|| machine.seed().max(1)),
        attach_timeout_ns: given.seconds("attach-timeout").unwrap_or_default(),
        reconnect_ns: given.seconds("reconnect"),
        token_file: given.text("token-file").map(str::to_owned),
        in_flight_per_endpoint: given.whole("inflight-per-endpoint"),
        ..RpcWorkload::default()
    };
    words(given, &mut work);
    work.poll = match given.parsed("poll", values::poll) {
        Some(poll) => poll,
        None => used.poll()?.unwrap_or(RpcPoll::Automatic),
    };
    work.timeout_ns = match given.seconds("timeout") {
        Some(timeout) => timeout,
        None => used.timeout()?.unwrap_or(Nanos::from_secs(60)),
    };
    used.fill(given, machine, &mut work)?;
    Ok(work)
}

/// Options that take one of some words.
fn words(given: &GivenFlags, work: &mut RpcWorkload) {
    work.verify = match given.text("verify") {
        Some("off") => RpcVerify::Off,
        Some("crc") => RpcVerify::Checksum,
        Some("full") => RpcVerify::Full,
        _ => RpcVerify::First,
    };
    work.spread = match given.text("spread") {
        Some("least") => RpcSpread::Least,
        Some("random") => RpcSpread::Random,
        Some("per-endpoint") => RpcSpread::PerEndpoint,
        _ => RpcSpread::RoundRobin,
    };
    work.bulk_path = match given.text("bulk-mode") {
        Some("rma") => BulkPath::Rma,
        Some("rendezvous") => BulkPath::Rendezvous,
        Some("eager") => BulkPath::Eager,
        _ => BulkPath::Automatic,
    };
}

fn loopback(given: &GivenFlags) -> Option<u32> {
    let tags = given.whole("loopback").unwrap_or(LOOPBACK_TAGS);
    given.has("loopback").then_some(tags)
}

/// The members of the group, where a set says `all`.
fn members(work: &RpcWorkload, machine: &dyn Machine) -> Result<Vec<RankTags>, Refusal> {
    let mut sets = work.endpoints.iter().chain(&work.masters);
    if !sets.any(EndpointSet::needs_group) {
        return Ok(Vec::new());
    }
    if let Some(tags) = work.loopback {
        return Ok(vec![RankTags { rank: 0, tags }]);
    }
    machine.group_members(work).map_err(Refusal::lacks)
}

fn counted(name: &str, sets: &[EndpointSet], members: &[RankTags]) -> Result<u64, Refusal> {
    let refuse = |why: &str| Err(refuse(name, "", why));
    match count_endpoints(sets, members) {
        Ok(0) if !sets.is_empty() => refuse("there is no such endpoint"),
        Ok(count) => Ok(count),
        Err(EndpointError::NoGroup) => refuse("`all`, and the group has no members"),
        Err(wrong) => refuse(&wrong.to_string()),
    }
}

/// Where the order is drawn, what `all` stands for is written out: the order is printed.
fn explicit(mut work: RpcWorkload, members: &[RankTags]) -> Result<RpcWorkload, Refusal> {
    if work.shuffle && work.endpoints.iter().any(EndpointSet::needs_group) {
        let all = expand_endpoints(&work.endpoints, members);
        let all = all.map_err(|wrong| refuse("endpoint", "", &wrong.to_string()))?;
        work.endpoints = all.into_iter().map(EndpointSet::one).collect();
    }
    Ok(work)
}

/// Numbers of RPCs at once, one after another.
fn depths(given: &GivenFlags) -> Result<Vec<u64>, Refusal> {
    match given.parsed("sweep-inflight", sweep::depths) {
        Some(_) if given.has("max-inflight-rpcs") => Err(refuse(
            "sweep-inflight",
            given.text("sweep-inflight").unwrap_or_default(),
            "--max-inflight-rpcs says how many at once; leave one out",
        )),
        Some(depths) => Ok(depths),
        None => Ok(vec![given.number("max-inflight-rpcs")]),
    }
}

/// So many at once, and no more than there are in all.
fn set_depth(given: &GivenFlags, work: &mut RpcWorkload, depth: u64, is_compat: bool) {
    let depth = work
        .load
        .bounds
        .operations
        .map_or(depth, |all| depth.min(all));
    work.load.depth.queue_depth = QueueDepth(u32::try_from(depth).unwrap_or(u32::MAX));
    if work.connections.is_some() {
        return;
    }
    work.warmup = match given.parsed("warmup", values::warmup) {
        Some(warmup) => warmup,
        // As short as it can be without the set-up of connections in the maximum.
        None if is_compat => {
            let most = work.load.bounds.operations.unwrap_or(u64::MAX);
            let count = (2 * depth).min(most);
            RpcWarmup::Requests { count }
        }
        None => RpcWarmup::Automatic,
    };
}

/// Bounds of the load: how many RPCs, for how long, how fast.
fn bounded(
    given: &GivenFlags,
    mut work: RpcWorkload,
    endpoints: u64,
) -> Result<RpcWorkload, Refusal> {
    let duration = given.time("duration");
    let is_search = given.has("find-max") && !given.has("repetitions-per-size");
    let duration = duration.or(is_search.then_some(rate_search::STEP));
    let repetitions = repetitions(given, endpoints)?;
    let is_bounded = duration.is_none() || given.has("repetitions-per-size");
    work.repetitions = if is_bounded { repetitions } else { 0 };
    let total = is_bounded.then(|| repetitions.saturating_mul(endpoints));
    work.load.bounds.operations = total;
    work.load.bounds.runtime_ns = duration;
    work.load.errors.go_on = [KindName::from(&RPC_KINDS[0])].into();
    Ok(work)
}

/// When RPCs are due, where there is a rate.
fn schedule(given: &GivenFlags, work: &RpcWorkload, threads: u32) -> Option<Schedule> {
    let rate = given.parsed("rate", |text| parse::rate(text, "RPCs"));
    rate.map(|rate| {
        let of_thread = Iops(rate / f64::from(rate_sharers(work, threads)));
        Schedule::OpsPerSecond {
            limit_per_s: [(KindName::from(&RPC_KINDS[0]), of_thread)].into(),
            poisson: given.text("arrival") == Some("poisson"),
            open_loop: true,
            ignore_thinktime: false,
        }
    })
}

/// Threads that share the rate of a master; on a server it is one.
pub(super) fn rate_sharers(work: &RpcWorkload, clones: u32) -> u32 {
    if work.masters.is_empty() {
        clones.max(1)
    } else {
        1
    }
}

/// RPCs to each endpoint: in all no more than the older program could count.
fn repetitions(given: &GivenFlags, endpoints: u64) -> Result<u64, Refusal> {
    let name = "repetitions-per-size";
    let number = given.number(name);
    let product = u128::from(number) * u128::from(endpoints);
    if product <= MOST.unsigned_abs().into() {
        return Ok(number);
    }
    let peer = values::out_of_range(name, product);
    let why = format!("with {endpoints} endpoints there are at most {MOST} RPCs in all");
    Err(refuse(name, &number.to_string(), &why).by_peer(format!(
        "error: --{name} {number}: {peer} ({number} × {endpoints} endpoints)"
    )))
}

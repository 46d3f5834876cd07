//! From what the loop's threads recorded to the figures of a master.
//!
//! In: recorders with figures per endpoint, what the transports counted, how long it took. Out: an
//! [`RpcMaster`]. The same for this command's own master and for one on a server. Not here: text.

use std::time::Duration;

use weir_run::{LiveTarget, WorkerLive};
use weir_schema::{
    CpuUse, ErrorCode, RpcEndpoint, RpcEndpointResult, RpcFirst, RpcMaster, RpcSample,
    RpcServerUse, RpcTrouble, RpcWorkload, Schedule, Span, rpc_error_name, rpc_histogram,
};
use weir_stats::Histogram;
use weir_units::Nanos;

use crate::master::call_list::CallList;
use crate::master::calling::CallsMade;
use crate::master::route::CallRoute;
use crate::master::sample_log::SampledCall;
use crate::transport::ConnectionTrouble;

/// A rate that is kept by less than this share is not kept.
const KEPT: f64 = 0.99;

/// Threads that work for more of their time have none left for more calls.
const BOUND: f64 = 0.95;

/// Figures of a master, in pieces.
#[derive(Debug)]
pub struct MasterParts<'a> {
    /// Which it is.
    pub endpoint: RpcEndpoint,
    /// Route of its calls.
    pub route: &'a CallRoute,
    /// When its calls were made.
    pub span: Option<Span>,
    /// Its work.
    pub work: &'a RpcWorkload,
    /// Whom it called.
    pub list: &'a CallList,
    /// Recorders of each of its threads.
    pub lives: &'a [&'a WorkerLive],
    /// From the first call to the end of the last.
    pub duration_ns: Nanos,
    /// Calls that there were to be in all, where a number is the bound.
    pub requested: Option<u64>,
    /// Results of its threads beside.
    pub made: &'a [CallsMade],
    /// Their CPU use.
    pub cpu: CpuUse,
}

/// The code of a failed call, by its number without the sign.
pub fn error_code(number: i32) -> ErrorCode {
    match rpc_error_name(-number) {
        Some(name) => name.into(),
        None => number.into(),
    }
}

/// Calls that a master shall make in all, where their number is the bound and not a time.
pub fn requested(work: &RpcWorkload) -> Option<u64> {
    let bounds = &work.load.bounds;
    bounds.operations.filter(|_| bounds.runtime_ns.is_none())
}

impl MasterParts<'_> {
    /// The figures.
    pub fn master(&self) -> RpcMaster {
        let mut master = RpcMaster::new(self.endpoint, self.route.name());
        master.span = self.span;
        master.bulk_path = self.route.bulk_path(self.work).map(str::to_owned);
        master.interface = self.route.interface().cloned();
        master.duration_ns = self.duration_ns;
        let mut service = rpc_histogram();
        for (number, endpoint) in self.list.distinct.iter().enumerate() {
            let (result, served) = self.endpoint_result(number, *endpoint);
            add(&mut master.latency, &result.latency);
            add(&mut service, &served);
            master.endpoints.push(result);
        }
        let sent = master.endpoints.iter().map(RpcEndpointResult::sent).sum();
        master.requested = self.requested.unwrap_or(sent).max(sent);
        master.effective_in_flight = in_flight(&service, self.duration_ns);
        if let Some(rate) = self.rate() {
            // The last calls are answered after the time in which they were sent.
            let answer = service.mean().unwrap_or(0.0) / 1e9;
            let sending = (self.duration_ns.as_secs_f64() - answer).max(0.0);
            master.overload = as_float(sent) + 1.0 < sending * rate * KEPT;
            master.service = Some(service);
        }
        self.add_counters(&mut master);
        master.cpu = self.cpu;
        master.busy = self.busy();
        master.client_bound = master.busy.is_some_and(|share| share > BOUND);
        master.conclude();
        if self.work.samples {
            master.samples = self.samples();
            master.set_exact_figures();
        }
        master
    }

    /// Every call of all threads that counts, in the order in which they were begun: first those of the
    /// warm-up that failed.
    fn samples(&self) -> Vec<RpcSample> {
        let calls = self.made.iter().flat_map(|thread| &thread.samples);
        let mut calls: Vec<SampledCall> = calls.copied().collect();
        // Those of a batch were begun together, in the order of the list.
        calls.sort_by_key(|call| (call.began, call.entry));
        let sample = |entry: u32, took_ns: u64, code: i32| {
            Some(RpcSample {
                latency_ns: Nanos(took_ns),
                endpoint: *self.list.entries.get(entry as usize)?,
                code,
            })
        };
        let warm_ups = self.made.iter().flat_map(|thread| &thread.failed);
        let warm_ups = warm_ups.filter_map(|one| sample(one.entry, nanos(one.took), one.code));
        let sent = calls.iter();
        let sent = sent.filter_map(|call| sample(call.entry, call.took_ns, call.code));
        warm_ups.chain(sent).collect()
    }

    /// The places of an endpoint in the list.
    fn places(&self, number: usize) -> impl Iterator<Item = usize> {
        let targets = self.list.targets.iter().enumerate();
        let own = targets.filter(move |(_, target)| **target as usize == number);
        own.map(|(place, _)| place)
    }

    /// Time for which an entry was called alone.
    fn turn(&self, number: usize) -> Nanos {
        let turns = self.made.iter().map(|thread| &thread.turns);
        let own = turns.flat_map(|turns| self.places(number).filter_map(|at| turns.get(at)));
        Nanos(u64::try_from(own.map(Duration::as_nanos).sum::<u128>()).unwrap_or(u64::MAX))
    }

    /// The first of its first calls.
    fn first(&self, number: usize) -> Option<RpcFirst> {
        let threads = self.made.iter().map(|thread| &thread.first);
        let mut own = threads.flat_map(|all| self.places(number).map(|at| all.get(at)));
        own.find_map(|first| *first?)
    }

    /// Of one endpoint over all threads, and how long its calls took from when they were sent.
    fn endpoint_result(
        &self,
        number: usize,
        endpoint: RpcEndpoint,
    ) -> (RpcEndpointResult, Histogram) {
        let mut result = RpcEndpointResult::new(endpoint);
        let place = u32::try_from(number).unwrap_or(u32::MAX);
        let mut service = rpc_histogram();
        let kinds = self.lives.iter().map(|live| &live.kinds[0]);
        for target in kinds.filter_map(|kind| kind.targets.get(number)) {
            add(&mut service, &target.latency());
            match LiveTarget::response(target) {
                Some(response) => add(&mut result.latency, &response),
                None => add(&mut result.latency, &target.latency()),
            }
            for (code, count) in target.failed() {
                *result.failed.entry(error_code(code)).or_default() += count;
            }
        }
        let warm_ups = self.made.iter().flat_map(|thread| &thread.failed);
        let targets = &self.list.targets;
        for one in warm_ups.filter(|one| targets.get(one.entry as usize).copied() == Some(place)) {
            *result.failed.entry(error_code(-one.code)).or_default() += 1;
        }
        result.succeeded = result.latency.count();
        result.turn_ns = self.work.matrix.then(|| self.turn(number));
        result.first = self.first(number);
        (result, service)
    }

    /// The share of their time in which its threads worked. One that looks for answers again and again uses
    /// a CPU all the time: that is no work. One that was not let run did not work either.
    fn busy(&self) -> Option<f64> {
        let threads = as_float(self.made.len() as u64);
        let whole = threads * self.duration_ns.as_secs_f64();
        if whole <= 0.0 || self.work.load.pacing.schedule.is_some() {
            return None;
        }
        let looked: Option<Duration> = self.made.iter().map(|thread| thread.looked).sum();
        let used = self.cpu.user_ns.as_secs_f64() + self.cpu.system_ns.as_secs_f64();
        Some(share_of_work(whole, looked?.as_secs_f64(), used))
    }

    /// Calls per second that there were to be.
    fn rate(&self) -> Option<f64> {
        let Schedule::OpsPerSecond { limit_per_s, .. } = self.work.load.pacing.schedule.as_ref()?
        else {
            return None;
        };
        let per_thread = limit_per_s.values().next()?.0;
        Some(per_thread * as_float(self.lives.len() as u64))
    }

    fn add_counters(&self, master: &mut RpcMaster) {
        if self.work.connections.is_some() {
            let made = self.made.iter().map(|thread| thread.counters.connections);
            master.connections = Some(made.sum());
        }
        for CallsMade {
            counters, servers, ..
        } in self.made
        {
            master.verified += counters.verified;
            master.verify_ns.0 += counters.verify_ns;
            let fewest = master.credits.into_iter().chain(counters.fewer_credits);
            master.credits = fewest.min();
            master.late_replies += counters.late_replies;
            master.buffer_waits += counters.buffer_waits;
            master.credit_waits += counters.credit_waits;
            master.credit_wait_ns.0 += counters.credit_wait_ns;
            if let Some(again) = counters.retransmits {
                *master.retransmits.get_or_insert(0) += again;
            }
            if let Some(bytes) = counters.wire_bytes {
                master.bytes_on_wire.get_or_insert_default().0 += bytes;
            }
            for one in servers {
                add_server(master, one);
            }
        }
        self.add_missing_credits(master);
        master.servers.sort_by_key(|one| one.endpoint);
        let troubles = self.made.iter().flat_map(|thread| &thread.troubles);
        for (one, before_end) in troubles {
            self.add_trouble(master, one, *before_end);
        }
    }

    /// Calls that a limit held back had not begun: the time for which so many fewer were out.
    fn add_missing_credits(&self, master: &mut RpcMaster) {
        let (work, mean) = (self.work, master.effective_in_flight.unwrap_or(0.0));
        let is_limited = work.credits_per_rank > 0 || work.quota > 0 || master.credits.is_some();
        if is_limited && self.rate().is_none() {
            let asked = as_float(work.in_flight().min(master.requested));
            let missing = (asked - mean).max(0.0) * self.duration_ns.as_secs_f64();
            master.credit_wait_ns.0 += Nanos::from_secs_f64(missing).unwrap_or_default().0;
        }
    }

    /// Adds a trouble of one thread to those of the others.
    fn add_trouble(&self, master: &mut RpcMaster, one: &ConnectionTrouble, before_end: Duration) {
        let code = error_code(-one.why.code.number());
        let before = Nanos(nanos(before_end));
        let after = self.duration_ns.saturating_sub(before);
        let mut known = master.troubles.iter_mut();
        let is_same =
            |known: &&mut RpcTrouble| known.code == code && known.after_ns.is_some() == one.is_loss;
        if let Some(known) = known.find(is_same) {
            known.count += one.count;
            return;
        }
        master.troubles.push(RpcTrouble {
            endpoint: one.endpoint,
            after_ns: one.is_loss.then_some(after),
            code,
            cause: one.why.message.to_string(),
            count: one.count,
        });
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU use of two threads together.
pub(crate) fn added(one: CpuUse, other: CpuUse) -> CpuUse {
    let both = |of: fn(&CpuUse) -> u64| of(&one) + of(&other);
    CpuUse {
        user_ns: Nanos(both(|cpu| cpu.user_ns.0)),
        system_ns: Nanos(both(|cpu| cpu.system_ns.0)),
        voluntary_switches: both(|cpu| cpu.voluntary_switches),
        involuntary_switches: both(|cpu| cpu.involuntary_switches),
        minor_faults: both(|cpu| cpu.minor_faults),
        major_faults: both(|cpu| cpu.major_faults),
        first_cpu: one.first_cpu.or(other.first_cpu),
        last_cpu: one.last_cpu.or(other.last_cpu),
        ..CpuUse::default()
    }
}

/// The share of a time that was work, of which so much was spent on a CPU, and so much of that looking for answers
/// while there were none.
fn share_of_work(whole: f64, looked: f64, used: f64) -> f64 {
    ((used - looked) / whole).clamp(0.0, 1.0)
}

/// Threads that asked the same server saw the same thread of it: the one that looked for longest counts.
fn add_server(master: &mut RpcMaster, used: &RpcServerUse) {
    let time = |used: &RpcServerUse| used.cpu.user_ns.0 + used.cpu.system_ns.0;
    let same = |known: &&mut RpcServerUse| known.endpoint == used.endpoint;
    match master.servers.iter_mut().find(same) {
        Some(known) if time(known) >= time(used) => {}
        Some(known) => *known = used.clone(),
        None => master.servers.push(used.clone()),
    }
}

/// Histograms of one precision always fit.
fn add(to: &mut Histogram, from: &Histogram) {
    let _ = to.merge(from);
}

/// In flight on the mean, by Little's law.
fn in_flight(service: &Histogram, duration: Nanos) -> Option<f64> {
    let mean = service.mean()?;
    (duration.0 > 0).then(|| mean * as_float(service.count()) / as_float(duration.0))
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_look_for_replies_nor_a_wait_for_a_cpu_is_work() {
        for (whole, looked, used, share) in [
            (10.0, 9.0, 10.0, 0.1),
            (10.0, 0.0, 10.0, 1.0),
            (10.0, 11.0, 10.0, 0.0),
            // Others had the CPU for most of the time, or it slept.
            (10.0, 1.0, 3.0, 0.2),
        ] {
            let found = share_of_work(whole, looked, used);
            assert!((found - share).abs() < 1e-9, "{looked} {used}: {found}");
        }
    }
}

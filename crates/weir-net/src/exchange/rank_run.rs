//! One rank's run through the sizes: get ready, warm up, run, check.

use weir_schema::{FaultKind, MessageSize, Method, Pairing, RankFacts, Transfer, Validation};
use weir_sys::clock::Tick;
use weir_sys::topology::Topology;
use weir_units::Nanos;

use super::ExchangeContext;
use super::report::{self, ExchangeOutcome, SizeOfRank};
use super::timed::{EndsCheck, TimedTransport};
use crate::error::{Halt, NetError, Spot};
use crate::pattern::Pattern;
use crate::placement::Pinned;
use crate::transport::{Setup, Transport, TransportInfo};

/// Barriers that the cost of one is the median of.
const BARRIERS: usize = 33;

/// Loops never become longer than this.
const LONGEST: u64 = 1 << 40;

/// Carries the exchanges out over one transport.
pub(crate) fn drive<T: Transport>(
    context: &ExchangeContext<'_>,
    info: &TransportInfo,
    outcome: &mut ExchangeOutcome,
) -> Result<(), NetError> {
    let rank = context.comm.rank();
    let (pairing, partners) = match T::transfer() {
        None => context.pairs(T::together())?,
        Some(_) => (Pairing::Auto, context.alone()),
    };
    outcome.pairing = pairing;
    let setup = Setup {
        comm: context.comm,
        watchdog: context.watchdog,
        engine: &context.job.engine,
        partners: &partners,
        sizes: &context.workload.sizes,
    };
    let early = |halt| context.ended(None, halt);
    let place = &context.job.placement;
    let pinned = Pinned::new(place, context.comm, context.watchdog).map_err(early)?;
    let mut transport = T::open(&setup).map_err(early)?;
    let facts = transport.facts();
    outcome.facts = facts_of(rank, pinned.cpu);
    outcome.mpi = facts.mpi;
    if let Some(device) = facts.device {
        outcome.facts.device = Some(device.index);
        outcome.facts.device_name = Some(device.name);
        outcome.facts.platform_name = Some(device.platform);
        outcome.other_devices = device.others;
    }
    let mut run = ExchangeRun {
        context,
        setup: &setup,
        together: T::together(),
        transfer: T::transfer(),
        transport: &mut transport,
        sample: EndsCheck::default(),
        at: None,
        begun: context.clock.now(),
    };
    let measured = run.measure_sizes(info, outcome);
    let at = run.at;
    let measured = measured.and_then(|()| transport.finish());
    measured.map_err(|halt| context.ended(at, halt))
}

/// The untimed part of an exchange, compiled once for all transports.
struct ExchangeRun<'a> {
    context: &'a ExchangeContext<'a>,
    setup: &'a Setup<'a>,
    together: bool,
    transfer: Option<Transfer>,
    transport: &'a mut dyn TimedTransport,
    sample: EndsCheck,
    /// Its place, for errors.
    at: Option<Spot>,
    /// Begin of the first size.
    begun: Tick,
}

impl ExchangeRun<'_> {
    fn measure_sizes(
        &mut self,
        info: &TransportInfo,
        outcome: &mut ExchangeOutcome,
    ) -> Result<(), Halt> {
        outcome.barrier_ns = Some(self.barrier_cost()?);
        self.begun = self.context.clock.now();
        for (index, &size) in self.context.workload.sizes.iter().enumerate() {
            if index > 0 && self.time_left()? == Some(Nanos(0)) {
                break;
            }
            let best = self.size(size, info, outcome)?;
            outcome.sizes.push(best);
            report::send_report(self.context, outcome)?;
        }
        Ok(self.setup.comm.barrier(self.setup.watchdog)?)
    }

    /// Until nobody begins another size: what the slowest rank has; nothing where there is no
    /// limit.
    fn time_left(&self) -> Result<Option<Nanos>, Halt> {
        let Some(limit) = self.context.workload.max_time_ns else {
            return Ok(None);
        };
        let spent = self.since(self.begun).raw();
        let spent = self.setup.comm.agree(spent, self.setup.watchdog)?;
        Ok(Some(Nanos(limit.raw().saturating_sub(spent))))
    }

    fn since(&self, begun: Tick) -> Nanos {
        let ticks = self.context.clock.now().since(begun);
        Nanos(self.context.clock.scale().to_nanos(ticks))
    }

    fn barrier_cost(&mut self) -> Result<Nanos, Halt> {
        let mut times = Vec::with_capacity(BARRIERS);
        self.transport.rewind(self.setup)?;
        for _ in 0..BARRIERS {
            let begun = self.context.clock.now();
            self.transport.barrier(self.setup)?;
            times.push(self.since(begun));
        }
        times.sort_unstable();
        Ok(times[BARRIERS / 2])
    }

    /// A size by the method asked for, or by whichever is fastest on the slowest rank.
    fn size(
        &mut self,
        size: MessageSize,
        info: &TransportInfo,
        outcome: &mut ExchangeOutcome,
    ) -> Result<SizeOfRank, Halt> {
        let mut best: Option<(u64, SizeOfRank)> = None;
        let mut wrong_bytes = 0;
        for &method in info.tried(&self.context.workload.method) {
            let this = self.measure(size, method, outcome)?;
            wrong_bytes += this.wrong_bytes;
            let fastest = this.times_ns.iter().min().map_or(0, |time| time.raw());
            let slowest = self.setup.comm.agree(fastest, self.setup.watchdog)?;
            if best.as_ref().is_none_or(|(before, _)| slowest < *before) {
                best = Some((slowest, this));
            }
        }
        // Wrong is what any of them brought.
        best.map(|(_, size)| SizeOfRank {
            wrong_bytes,
            ..size
        })
        .ok_or_else(|| Halt::Garbled("no method".to_owned()))
    }

    fn measure(
        &mut self,
        size: MessageSize,
        method: Method,
        outcome: &mut ExchangeOutcome,
    ) -> Result<SizeOfRank, Halt> {
        self.stand_at(size, 0);
        let begun = self.context.clock.now();
        self.make_ready(size, method)?;
        outcome.generation_ns = outcome.generation_ns.saturating_add(self.since(begun));
        self.setup.comm.barrier(self.setup.watchdog)?;

        let begun = self.context.clock.now();
        let warmup = self.warm_up(size)?;
        let loop_length = self.lengthen(size)?;
        self.break_down(size, loop_length)?;
        let times_ns = (0..self.context.workload.repetitions)
            .map(|_| {
                let time = self.repetition(size, loop_length)?;
                self.setup.watchdog.step();
                Ok(time)
            })
            .collect::<Result<_, Halt>>()?;
        self.setup.comm.barrier(self.setup.watchdog)?;
        outcome.execution_ns = outcome.execution_ns.saturating_add(self.since(begun));

        let begun = self.context.clock.now();
        self.transport.arrived()?;
        let wrong_bytes = self.wrong_bytes(size);
        outcome.validation_ns = outcome.validation_ns.saturating_add(self.since(begun));
        Ok(SizeOfRank {
            exponent: size.exponent,
            loop_length,
            warmup,
            method,
            transfer: self.transfer,
            times_ns,
            wrong_bytes,
            lost: self.transport.losses(),
        })
    }

    fn make_ready(&mut self, size: MessageSize, method: Method) -> Result<(), Halt> {
        let partners = self.setup.partners;
        self.transport.prepare(size, method, self.setup)?;
        let rank = self.setup.comm.rank();
        self.sample = EndsCheck::new(rank, partners.iter().map(|p| p.from));
        for (replication, partner) in partners.iter().enumerate() {
            self.pattern(size, rank, replication)
                .fill(self.transport.outgoing(replication));
            self.pattern(size, partner.from, replication)
                .blank(self.transport.incoming(replication));
            if self.is_sampled() {
                let message = self.transport.incoming(replication);
                self.sample.blot(replication, message);
            }
            self.setup.watchdog.progress();
        }
        self.transport.filled()
    }

    fn is_sampled(&self) -> bool {
        self.context.workload.validation == Validation::Sample
    }

    fn pattern(&self, size: MessageSize, sender: u32, replication: usize) -> Pattern {
        Pattern {
            validation: self.context.workload.validation,
            size,
            seed: self.context.workload.seed,
            sender,
            replication: u32::try_from(replication).unwrap_or(u32::MAX),
        }
    }

    /// One run on every replication, or of all at once: the sum of their times.
    fn repetition(&mut self, size: MessageSize, loops: u64) -> Result<Nanos, Halt> {
        let count = self.setup.partners.len();
        let first = if self.together { count - 1 } else { 0 };
        let mut ticks = 0;
        for replication in first..count {
            self.stand_at(size, replication);
            self.transport.rewind(self.setup)?;
            self.transport.barrier(self.setup)?;
            let begun = self.context.clock.now();
            if let Err(halt) = self.exchanges(replication, loops) {
                let waiting = self.transport.waiting_for();
                self.stand_at(size, waiting.unwrap_or(replication));
                return Err(halt);
            }
            ticks += self.context.clock.now().since(begun);
        }
        Ok(Nanos(self.context.clock.scale().to_nanos(ticks)))
    }

    fn exchanges(&mut self, replication: usize, loops: u64) -> Result<(), Halt> {
        let sample = self.is_sampled().then_some(&mut self.sample);
        let watchdog = self.setup.watchdog;
        self.transport
            .exchanges(replication, loops, sample, watchdog)
    }

    /// Exchanges that nobody times. Where time is limited they come in pieces, each at most twice as
    /// long as the one before and within what is left, and end with the time. How many they were.
    fn warm_up(&mut self, size: MessageSize) -> Result<u64, Halt> {
        let wanted = u64::from(self.context.workload.warmup);
        let mut rest = wanted;
        let (mut piece, mut before) = (1, None);
        while rest > 0 {
            // The same on all ranks, and so is what follows from it.
            match self.time_left()?.map(Nanos::raw) {
                None => piece = rest,
                Some(0) => break,
                Some(left) => {
                    if let Some(before) = before.replace(left) {
                        piece = next_piece(piece, before - left, left);
                    }
                }
            }
            let now = piece.min(rest);
            self.repetition(size, now)?;
            rest -= now;
        }
        Ok(wanted - rest)
    }

    /// The loop length with which a run takes the least time asked for on the slowest rank.
    fn lengthen(&mut self, size: MessageSize) -> Result<u64, Halt> {
        let mut loops = size.loop_length;
        let Some(least) = self.context.workload.min_time_ns else {
            return Ok(loops);
        };
        loop {
            let mine = self.repetition(size, loops)?.raw();
            let took = self.setup.comm.agree(mine, self.setup.watchdog)?.max(1);
            if took >= least.raw() || loops >= LONGEST {
                return Ok(loops);
            }
            // A fifth more than it looks like, and never more than a hundredfold on short trials.
            let wanted = u128::from(loops) * u128::from(least.raw()) * 6 / (u128::from(took) * 5);
            let wanted = u64::try_from(wanted).unwrap_or(LONGEST);
            loops = wanted
                .clamp(loops + 1, loops.saturating_mul(100))
                .min(LONGEST);
        }
    }

    /// A fault that takes this rank out: some exchanges, then no more.
    fn break_down(&mut self, size: MessageSize, loops: u64) -> Result<(), Halt> {
        let outage = |fault: &weir_schema::InjectedFault| fault.kind != FaultKind::Flip;
        let Some(fault) = self.context.faults(size.exponent).find(outage) else {
            return Ok(());
        };
        let at = fault.at.min(loops);
        self.stand_at(size, 0);
        self.transport.rewind(self.setup)?;
        self.transport.barrier(self.setup)?;
        let last = self.setup.partners.len() - 1;
        self.exchanges(if self.together { last } else { 0 }, at)?;
        if fault.kind == FaultKind::Die {
            return Err(Halt::Fault { what: "died", at });
        }
        while !self.setup.watchdog.stopped() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Err(Halt::Fault {
            what: "stalled",
            at,
        })
    }

    /// Does the planned damage, then counts.
    fn wrong_bytes(&mut self, size: MessageSize) -> u64 {
        let flips = self.context.faults(size.exponent);
        let mut flipped = vec![false; self.setup.partners.len()];
        for fault in flips.filter(|fault| fault.kind == FaultKind::Flip) {
            let at = usize::try_from(fault.at).unwrap_or(usize::MAX);
            // Bytes are counted over all replications, one after the other.
            let length = self.transport.incoming(0).len().max(1);
            let (replication, at) = (at / length, at % length);
            if replication < flipped.len() {
                let byte = &mut self.transport.incoming(replication)[at];
                *byte = !*byte;
                flipped[replication] = true;
            }
        }
        let mut wrong = self.sample.wrong;
        if self.is_sampled() {
            for (replication, _) in flipped.iter().enumerate().filter(|(_, flipped)| **flipped) {
                let message = self.transport.incoming(replication);
                wrong += self.sample.recheck(replication, message);
            }
        }
        for (replication, partner) in self.setup.partners.iter().enumerate() {
            let pattern = self.pattern(size, partner.from, replication);
            wrong += pattern.wrong(self.transport.incoming(replication));
            self.setup.watchdog.progress();
        }
        wrong
    }

    fn stand_at(&mut self, size: MessageSize, replication: usize) {
        let partners = self.setup.partners[replication];
        let spot = Spot {
            rank: self.setup.comm.rank(),
            bytes: size.bytes().0,
            replication: u32::try_from(replication).ok(),
            to: partners.to,
            from: partners.from,
        };
        self.context.position.set(spot);
        self.at = Some(spot);
    }
}

/// Exchanges of a next piece, where `piece` of them took `took` and there is `left`, both in ns.
fn next_piece(piece: u64, took: u64, left: u64) -> u64 {
    let fitting = u128::from(piece) * u128::from(left) / u128::from(took.max(1));
    let fitting = u64::try_from(fitting).unwrap_or(u64::MAX);
    fitting.clamp(1, piece.saturating_mul(2))
}

pub(crate) fn facts_of(rank: u32, cpu: Option<u32>) -> RankFacts {
    RankFacts {
        rank,
        hostname: Some(hostname()),
        cpu,
        numa_node: cpu.and_then(|cpu| Topology::of_this_machine().node_of(cpu)),
        ..RankFacts::default()
    }
}

/// Name of this rank's machine.
pub(crate) fn hostname() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::next_piece;

    #[test]
    fn pieces_double_until_the_time_left_is_shorter() {
        assert_eq!(next_piece(1, 10, 1000), 2);
        assert_eq!(next_piece(512, 10, 15), 768);
        assert_eq!(next_piece(512, 10, 0), 1);
        assert_eq!(next_piece(1, 0, 1000), 2);
        assert_eq!(next_piece(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}

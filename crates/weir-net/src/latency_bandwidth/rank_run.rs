//! One rank's run through both sizes: pairs one after another, then rings.

use weir_run::generate::rng::Rng;
use weir_schema::{Loop, MessageTest, MessageTestResult, PairResult, RingResult};
use weir_sys::clock::Tick;
use weir_units::Nanos;

use super::timed::{Bench, RingMethod};
use super::{LatencyBandwidthContext, LatencyBandwidthOutcome, plan};
use crate::error::{Halt, NetError, Spot};
use crate::exchange::facts_of;
use crate::placement::Pinned;
use crate::transport::messages::{Messages, RingDirection};

/// Content of messages between their first and last byte.
const FILLING: u8 = 0x5a;

/// Carries the plan out over one transport. What was done before an error stays in the outcome.
pub(crate) fn measure_rank<T: Messages>(
    context: &LatencyBandwidthContext<'_>,
    outcome: &mut LatencyBandwidthOutcome,
) -> Result<(), NetError> {
    let (comm, watchdog, work) = (context.comm, context.watchdog, context.workload);
    let rank = comm.rank();
    let early = |halt| context.ended(None, halt);
    let pinned = Pinned::new(&context.job.placement, comm, watchdog).map_err(early)?;
    outcome.facts = facts_of(rank, pinned.cpu);
    let largest = work.latency.bytes.max(work.bandwidth.bytes);
    let largest = length(largest.0).map_err(early)?;
    let transport = T::open(comm, watchdog, largest).map_err(early)?;
    outcome.mpi = transport.facts().mpi;
    let tick = plan::tick(Nanos(context.clock.scale().to_nanos(1)));
    outcome.tick_ns = tick;
    let mut run = LatencyBandwidthRun {
        context,
        bench: Bench {
            transport,
            clock: context.clock,
            watchdog,
            wrong: 0,
        },
        rank,
        begun: context.clock.now(),
        shortest: plan::shortest(tick, work.min_time_ns),
        bytes: 0,
        at: None,
        steps: 0,
        expected: 0,
    };
    run.expect(&[&work.latency, &work.bandwidth]);
    let mut rng = Rng::new(work.seed);
    let measured = run
        .test((&work.latency, 1), &mut rng, &mut outcome.latency)
        .and_then(|()| run.test((&work.bandwidth, 2), &mut rng, &mut outcome.bandwidth));
    outcome.wrong_bytes = run.bench.wrong;
    measured.map_err(|halt| context.ended(run.at, halt))
}

fn length(bytes: u64) -> Result<usize, Halt> {
    usize::try_from(bytes)
        .map_err(|_| Halt::Garbled("messages beyond the address space".to_owned()))
}

struct LatencyBandwidthRun<'a, T> {
    context: &'a LatencyBandwidthContext<'a>,
    bench: Bench<'a, T>,
    rank: u32,
    begun: Tick,
    /// A loop that counts is at least this long.
    shortest: Nanos,
    bytes: u64,
    /// Its place, for errors.
    at: Option<Spot>,
    /// Pairs and rings that are done, and those there are.
    steps: u64,
    expected: u64,
}

impl<T: Messages> LatencyBandwidthRun<'_, T> {
    /// Tells the watchdog how much there is to do, as long as all pairs may have to be measured.
    fn expect(&mut self, tests: &[&MessageTest]) {
        let pairs = self.pairs_of(1);
        let rings = tests.iter().map(|test| u64::from(test.random_rings));
        self.expected = rings.map(|random| 1 + pairs + 1 + random).sum();
        self.context.watchdog.expect(self.expected);
    }

    /// Pairs of every `stride`-th rank.
    fn pairs_of(&self, stride: u32) -> u64 {
        let ranks = u64::from(self.context.comm.size().div_ceil(stride));
        ranks * (ranks - 1)
    }

    fn step(&mut self) {
        self.steps += 1;
        self.context.watchdog.step_to(self.steps);
    }

    /// True if so many halves of the time allowed are over on the slowest rank.
    fn is_over(&self, halves: u64) -> Result<bool, Halt> {
        let Some(limit) = self.context.workload.max_time_ns else {
            return Ok(false);
        };
        let spent = self.nanos(self.context.clock.now().since(self.begun)).raw();
        let (comm, watchdog) = (self.context.comm, self.context.watchdog);
        let spent = comm.agree(spent, watchdog)?;
        Ok(spent >= (limit.raw() / 2).saturating_mul(halves))
    }

    /// Of the time allowed, so many halves are over when it ends.
    fn test(
        &mut self,
        (test, share): (&MessageTest, u64),
        rng: &mut Rng,
        done: &mut MessageTestResult,
    ) -> Result<(), Halt> {
        let ranks = self.context.comm.size();
        (self.bytes, done.bytes) = (test.bytes.0, test.bytes);
        self.bench.transport.prepare(length(test.bytes.0)?)?;
        for direction in RingDirection::BOTH {
            // Memory that was never written may be one page of zeros, over and over.
            self.bench.transport.outgoing(direction).fill(FILLING);
            self.bench.transport.incoming(direction).fill(!FILLING);
        }
        self.context.comm.barrier(self.context.watchdog)?;
        let stride = self.stride(test)?;
        done.stride = Some(stride);
        self.expected -= self.pairs_of(1) - self.pairs_of(stride);
        self.context.watchdog.expect(self.expected);
        self.pairs(
            &plan::pairs(ranks, stride),
            &test.ping_pong,
            &mut done.pairs,
        )?;
        // Whoever is in no pair comes here first.
        self.context
            .comm
            .agree_unhurried(0, self.context.watchdog)?;
        let natural = self.ring((0..ranks).collect(), &test.ring)?;
        self.step();
        done.natural = Some(natural);
        for number in 0..test.random_rings {
            if number > 0 && self.is_over(share)? {
                self.steps += u64::from(test.random_rings - number);
                break;
            }
            let ring = self.ring(plan::shuffled(ranks, rng), &test.ring)?;
            self.step();
            done.random.push(ring);
        }
        Ok(())
    }

    /// From the pair of the first and the last rank: of which ranks there is time for pairs, where not all
    /// are asked for.
    fn stride(&mut self, test: &MessageTest) -> Result<u32, Halt> {
        if self.context.workload.matrix {
            return Ok(1);
        }
        let ranks = self.context.comm.size();
        let mut trial = Vec::new();
        self.pairs(&[(0, ranks - 1)], &test.ping_pong, &mut trial)?;
        let mine = trial.first().map_or(Nanos(0), |pair| {
            let best = pair.times_ns.iter().min().copied().unwrap_or_default();
            plan::cost(best, pair.loop_length, test.ping_pong.measurements)
        });
        let cost = self
            .context
            .comm
            .agree_unhurried(mine.raw(), self.context.watchdog)?;
        let pings = plan::pings(test.ping_pong_limit_ns, Nanos(cost));
        Ok(plan::stride(ranks, pings))
    }

    /// One pair after another: the right to be client goes round, and everybody else waits.
    fn pairs(
        &mut self,
        pairs: &[(u32, u32)],
        how: &Loop,
        done: &mut Vec<PairResult>,
    ) -> Result<(), Halt> {
        let (comm, watchdog) = (self.context.comm, self.context.watchdog);
        let mut before = None;
        for (number, &(client, server)) in pairs.iter().enumerate() {
            if self.rank == client {
                if let Some(before) = before.filter(|before| *before != client) {
                    comm.wait_for(before, watchdog)?;
                }
                comm.send(server, &[], watchdog)?;
                done.push(self.as_client(server, how)?);
                let next = pairs.get(number + 1).map(|(client, _)| *client);
                if let Some(next) = next.filter(|next| *next != client) {
                    comm.send(next, &[], watchdog)?;
                }
            } else if self.rank == server {
                comm.wait_for(client, watchdog)?;
                self.as_server(client, how)?;
            }
            before = Some(client);
            // Others' pairs are passed over at once: this rank is ahead of them by a round at most.
            self.step();
        }
        Ok(())
    }

    /// Measures until all loops are long enough, and tells the server how long the next one is.
    fn as_client(&mut self, server: u32, how: &Loop) -> Result<PairResult, Halt> {
        self.stand_at(server, server);
        let (mut loop_length, mut times_ns) = (how.loop_length, Vec::new());
        while times_ns.len() < how.measurements as usize {
            let ticks = self.bench.ping(self.rank, server, loop_length)?;
            let took = self.nanos(ticks);
            if took < self.shortest {
                loop_length = self.longer(loop_length, took);
                times_ns.clear();
            } else {
                times_ns.push(took);
            }
            let over = times_ns.len() == how.measurements as usize;
            let next = if over { 0 } else { loop_length };
            let (comm, watchdog) = (self.context.comm, self.context.watchdog);
            comm.send(server, &next.to_le_bytes(), watchdog)?;
        }
        Ok(PairResult {
            client: self.rank,
            server,
            loop_length,
            times_ns,
        })
    }

    fn as_server(&mut self, client: u32, how: &Loop) -> Result<(), Halt> {
        self.stand_at(client, client);
        let mut loop_length = how.loop_length;
        while loop_length > 0 {
            self.bench.pong(client, loop_length)?;
            let said = self.context.comm.receive(client, self.context.watchdog)?;
            let said = <[u8; 8]>::try_from(said.as_slice())
                .map_err(|_| Halt::Garbled("a loop length of another length".to_owned()))?;
            loop_length = u64::from_le_bytes(said);
        }
        Ok(())
    }

    /// Both ways of going round, until all loops are long enough on the slowest rank.
    fn ring(&mut self, order: Vec<u32>, how: &Loop) -> Result<RingResult, Halt> {
        let mut loop_length = how.loop_length;
        loop {
            match self.rounds(&order, loop_length, how.measurements)? {
                Ok([sendrecv_ns, nonblocking_ns]) => {
                    return Ok(RingResult {
                        order,
                        loop_length,
                        sendrecv_ns,
                        nonblocking_ns,
                    });
                }
                Err(took) => loop_length = self.longer(loop_length, took),
            }
        }
    }

    fn longer(&self, loop_length: u64, took: Nanos) -> u64 {
        plan::longer(loop_length, took, self.context.workload.min_time_ns)
    }

    /// Of each measurement the slowest rank's time; that of the first loop that was too short.
    fn rounds(
        &mut self,
        order: &[u32],
        loop_length: u64,
        measurements: u32,
    ) -> Result<Result<[Vec<Nanos>; 2], Nanos>, Halt> {
        let ring = plan::beside(order, self.rank);
        self.stand_at(ring.right, ring.left);
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..measurements {
            for (round, times) in [RingMethod::Sendrecv, RingMethod::Nonblocking]
                .into_iter()
                .zip(&mut times)
            {
                let ticks = self.bench.time_ring(round, self.rank, ring, loop_length)?;
                let mine = self.nanos(ticks).raw();
                let slowest = Nanos(self.context.comm.agree(mine, self.context.watchdog)?);
                if slowest < self.shortest {
                    return Ok(Err(slowest));
                }
                times.push(slowest);
            }
        }
        Ok(Ok(times))
    }

    fn nanos(&self, ticks: u64) -> Nanos {
        Nanos(self.context.clock.scale().to_nanos(ticks))
    }

    fn stand_at(&mut self, to: u32, from: u32) {
        let spot = Spot {
            rank: self.rank,
            bytes: self.bytes,
            replication: None,
            to,
            from,
        };
        self.context.position.set(spot);
        self.at = Some(spot);
    }
}

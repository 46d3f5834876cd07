//! Tests on masters that are servers: this command orders them, has them begin once all are ready, looks at
//! how far they are, and takes what they measured.
//!
//! In: the masters, a task. Out: their figures, each with why where there are none. A thread for each
//! waits for what it says. Not here: carrying a test out (`master_host`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_run::Findings;
use weir_schema::{Failure, RpcMaster, RpcWorkload};

use crate::client::{ControlStream, DialSetup, ServerEndpoint, open_control};
use crate::links::LinkGreeting;
use crate::links::socket::IsOver;
use crate::master::engine::EndSigns;
use crate::master::host::monotonic_ns;
use crate::wire::{FrameHeader, FrameKind, PingTimes, ProgressNote};
use crate::{DerCode, RpcError};

/// Clock readings that are compared with those of each master.
const PINGS: u32 = 8;
/// Limit of the answer of one of them.
const PING: Duration = Duration::from_secs(2);
/// From saying when all begin to that time: every master has heard of it by then.
const LEAD: Duration = Duration::from_millis(50);
/// The same for each master that there is.
const LEAD_EACH: Duration = Duration::from_millis(2);
/// Time that one look for frames waits.
const LOOK: Duration = Duration::from_millis(20);
/// A master that says nothing for so long is lost: it reports four times a second.
const SILENCE: Duration = Duration::from_secs(10);
/// The same once its time is up: shorter than the run waits for who does not come back.
const SILENCE_AT_END: Duration = Duration::from_secs(3);
/// For so long results are waited for once the end was asked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A master, and what it is at.
#[derive(Debug)]
struct OrderedMaster {
    endpoint: ServerEndpoint,
    stage: MasterStage,
}

#[derive(Debug)]
enum MasterStage {
    /// Its connection is there: it can be ordered, or was and is ready.
    Connected(MasterConnection),
    /// It measured what it could, cannot be had, or `was_there` and is gone.
    Ended {
        result: Box<Result<RpcMaster, RpcError>>,
        was_there: bool,
    },
}

impl MasterStage {
    fn ended(result: Result<RpcMaster, RpcError>, was_there: bool) -> Self {
        let result = Box::new(result);
        Self::Ended { result, was_there }
    }
}

#[derive(Debug)]
struct MasterConnection {
    stream: ControlStream,
    /// Difference of its clock to ours, in nanoseconds.
    offset_ns: i64,
}

/// Masters on servers, with the connections to them.
#[derive(Debug)]
pub struct OrderedMasters {
    masters: Vec<OrderedMaster>,
    transport: String,
}

impl OrderedMasters {
    /// Connects to all of them at the same time; given up once `is_over`.
    pub fn connect(
        endpoints: &[ServerEndpoint],
        dial: &DialSetup,
        transport: &str,
        is_over: IsOver<'_>,
    ) -> Self {
        let connected = each(endpoints, |endpoint| {
            MasterConnection::new(endpoint, dial, is_over)
        });
        let masters = endpoints.iter().zip(connected);
        let master = |(endpoint, connection): (&ServerEndpoint, Result<_, _>)| OrderedMaster {
            endpoint: endpoint.clone(),
            stage: connection.map_or_else(
                |why| MasterStage::ended(Err(why), false),
                MasterStage::Connected,
            ),
        };
        Self {
            masters: masters.map(master).collect(),
            transport: transport.to_owned(),
        }
    }

    /// Checks that all of them have answered.
    ///
    /// # Errors
    /// Why the first one that did not.
    pub fn are_there(self) -> Result<(), RpcError> {
        let mut stages = self.masters.into_iter().map(|master| master.stage);
        stages.try_for_each(|stage| match stage {
            MasterStage::Ended { result, .. } => result.map(drop),
            MasterStage::Connected(_) => Ok(()),
        })
    }

    /// Orders all of them, and waits until each has its sessions open and has made its first calls, or can
    /// not. Given up once `is_over`.
    pub fn prepare(&mut self, task: &RpcWorkload, is_over: IsOver<'_>) {
        thread::scope(|scope| {
            for master in &mut self.masters {
                scope.spawn(|| master.prepare(task, is_over));
            }
        });
    }

    /// From now to the first call, so that every master knows of it by then.
    pub fn lead(&self) -> Duration {
        let count = u32::try_from(self.masters.len()).unwrap_or(u32::MAX);
        LEAD + LEAD_EACH.saturating_mul(count)
    }

    /// Has every master begin at the same instant of the monotonic clock, and waits for what comes of it.
    /// `look` sees now and then how many calls are done; once it is asked to end the tests are ended.
    pub fn run(mut self, begin_ns: u64, signs: EndSigns<'_>, look: impl Fn(u64)) -> Vec<RpcMaster> {
        let transport = std::mem::take(&mut self.transport);
        let counts: Vec<AtomicU64> = self.masters.iter().map(|_| AtomicU64::new(0)).collect();
        let mut results = thread::scope(|scope| {
            let threads = self.masters.into_iter().zip(&counts);
            let threads = threads.map(|(master, done)| {
                let transport = &transport;
                scope.spawn(move || master.run(begin_ns, signs, done, transport))
            });
            let threads: Vec<_> = threads.collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                look(counts.iter().map(|done| done.load(Ordering::Relaxed)).sum());
                thread::sleep(LOOK);
            }
            let results = threads.into_iter().filter_map(|thread| thread.join().ok());
            results.collect::<Vec<_>>()
        });
        let done = |master: &RpcMaster| master.succeeded + master.failed;
        look(results.iter().map(done).sum());
        results.sort_by_key(|master| master.endpoint);
        results
    }
}

impl OrderedMaster {
    fn prepare(&mut self, task: &RpcWorkload, is_over: IsOver<'_>) {
        if let MasterStage::Connected(connection) = &mut self.stage
            && let Some(result) = connection.prepare(task, is_over).transpose()
        {
            self.stage = MasterStage::ended(result, true);
        }
    }

    fn run(
        self,
        begin_ns: u64,
        signs: EndSigns<'_>,
        done: &AtomicU64,
        transport: &str,
    ) -> RpcMaster {
        let endpoint = self.endpoint.endpoint;
        let (result, was_there) = match self.stage {
            MasterStage::Connected(connection) => (connection.run(begin_ns, signs, done), true),
            MasterStage::Ended { result, was_there } => (*result, was_there),
        };
        match result {
            Ok(master) => RpcMaster { endpoint, ..master },
            Err(why) => {
                let cause = match why.code {
                    DerCode::Unreachable if was_there => "lost",
                    DerCode::Unreachable | DerCode::NotThere => "missing",
                    DerCode::NoPermission => "authentication",
                    _ => "engine",
                };
                let mut failed = RpcMaster::new(endpoint, transport);
                failed.failure = Some(Failure::new(cause, format!("{why} [{}]", why.code)));
                failed
            }
        }
    }
}

impl MasterConnection {
    fn new(
        endpoint: &ServerEndpoint,
        dial: &DialSetup,
        is_over: IsOver<'_>,
    ) -> Result<Self, RpcError> {
        let (stream, _) = open_control(dial, endpoint, LinkGreeting::default(), is_over)?;
        let mut this = Self {
            stream,
            offset_ns: 0,
        };
        this.compare_clocks(is_over)?;
        Ok(this)
    }

    /// Finds the difference of its clock to ours, by the answer that came fastest.
    fn compare_clocks(&mut self, is_over: IsOver<'_>) -> Result<(), RpcError> {
        let mut best = u64::MAX;
        for _ in 0..PINGS {
            let sent = monotonic_ns();
            self.stream
                .send(&FrameHeader::plain(FrameKind::Ping), &sent.to_le_bytes())?;
            let Some((header, body)) = self.stream.receive_unless(PING, is_over)? else {
                return Err(RpcError::new(DerCode::TimedOut, "it does not answer"));
            };
            let took = monotonic_ns().saturating_sub(sent);
            if header.kind == FrameKind::Pong && took < best {
                best = took;
                let middle = sent + took / 2;
                let times = PingTimes::decode(&body)?;
                self.offset_ns = times.clock_ns.cast_signed() - middle.cast_signed();
            }
        }
        Ok(())
    }

    /// Orders the test and waits until it is ready; what came of it where it ended before.
    fn prepare(
        &mut self,
        task: &RpcWorkload,
        is_over: IsOver<'_>,
    ) -> Result<Option<RpcMaster>, RpcError> {
        let body = task.to_json().map_err(|error| {
            let why = format!("the order cannot be written: {error}");
            RpcError::new(DerCode::Invalid, why)
        })?;
        self.stream
            .send(&FrameHeader::plain(FrameKind::Start), &body)?;
        let mut heard = Instant::now();
        while !is_over() {
            if heard.elapsed() > SILENCE {
                return Err(silent());
            }
            let Some((header, body)) = self.stream.receive_unless(LOOK, is_over)? else {
                continue;
            };
            heard = Instant::now();
            match said(&header, &body)? {
                MasterWord::Ready => return Ok(None),
                MasterWord::Ended(done) => return Ok(Some(*done)),
                MasterWord::Progress(_) | MasterWord::Nothing => {}
            }
        }
        Ok(None)
    }

    /// Has a test that is ready begin at this time of our monotonic clock; what came of it.
    fn run(
        mut self,
        begin_ns: u64,
        signs: EndSigns<'_>,
        done: &AtomicU64,
    ) -> Result<RpcMaster, RpcError> {
        let begin_ns = begin_ns.saturating_add_signed(self.offset_ns);
        self.stream
            .send(&FrameHeader::plain(FrameKind::Go), &begin_ns.to_le_bytes())?;
        let mut heard = Instant::now();
        let (mut stopped, mut due): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            let came = self.stream.receive(LOOK)?;
            if signs.findings.is_some_and(Findings::is_end_due) && due.is_none() {
                due = Some(Instant::now());
            }
            if signs.stop.load(Ordering::Relaxed) != 0 && stopped.is_none() {
                stopped = Some(Instant::now());
                self.stream
                    .send(&FrameHeader::plain(FrameKind::Stop), &[])?;
            }
            let is_late = stopped.is_some_and(|since| since.elapsed() > PATIENCE)
                || due.is_some_and(|since| since.max(heard).elapsed() > SILENCE_AT_END);
            if is_late || heard.elapsed() > SILENCE {
                return Err(silent());
            }
            let Some((header, body)) = came else { continue };
            heard = Instant::now();
            match said(&header, &body)? {
                MasterWord::Progress(calls) => done.store(calls, Ordering::Relaxed),
                MasterWord::Ended(master) => return Ok(*master),
                MasterWord::Ready | MasterWord::Nothing => {}
            }
        }
    }
}

/// Frame of a master about its test.
enum MasterWord {
    Ready,
    /// So many calls are done.
    Progress(u64),
    /// The test has ended with this.
    Ended(Box<RpcMaster>),
    /// Nothing new.
    Nothing,
}

/// Reads a frame of a master.
///
/// # Errors
/// The test failed, the server leaves, or what it says cannot be read.
fn said(header: &FrameHeader, body: &[u8]) -> Result<MasterWord, RpcError> {
    match header.kind {
        _ if header.word != 0 => Err(RpcError::said(header.word, body)),
        FrameKind::Ready => Ok(MasterWord::Ready),
        FrameKind::Progress => Ok(MasterWord::Progress(ProgressNote::decode(body)?.done)),
        FrameKind::Result => {
            let master = RpcMaster::from_json(body).map_err(|error| {
                RpcError::protocol(format!("its result cannot be read: {error}"))
            })?;
            Ok(MasterWord::Ended(Box::new(master)))
        }
        FrameKind::GoAway => Err(RpcError::new(DerCode::Unreachable, "the server leaves")),
        _ => Ok(MasterWord::Nothing),
    }
}

fn silent() -> RpcError {
    RpcError::new(DerCode::TimedOut, "it says nothing any more")
}

/// The same of each, all at the same time.
fn each<T: Sync, R: Send>(
    all: &[T],
    of: impl Fn(&T) -> Result<R, RpcError> + Sync,
) -> Vec<Result<R, RpcError>> {
    thread::scope(|scope| {
        let threads: Vec<_> = all.iter().map(|one| scope.spawn(|| of(one))).collect();
        let failed = |_| Err(RpcError::new(DerCode::Other, "a thread panicked"));
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(failed);
        threads.into_iter().map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::{Arc, Mutex};

    use weir_schema::{RpcEndpoint, RpcPoll};

    use super::*;
    use crate::group::address::RpcAddress;
    use crate::server::{
        MasterOrder, RankSetup, RpcServer, ServerLimits, ServerSetup, TestControl, TestMasters,
    };

    /// Time that a master takes to be ready whose tag is 1.
    const SLOW: Duration = Duration::from_millis(500);

    /// Tests without calls: tag 0 is ready at once, 1 after some time, 2 never.
    #[derive(Default)]
    struct Pretended {
        /// When tests were ready and when they began, by their tags.
        times: Arc<Mutex<Vec<(u32, u64, u64)>>>,
    }

    impl TestMasters for Pretended {
        fn start(&self, order: MasterOrder) -> Result<TestControl, RpcError> {
            let control = TestControl::default();
            let (signs, times) = (control.clone(), Arc::clone(&self.times));
            thread::spawn(move || {
                if order.master.tag == 1 {
                    thread::sleep(SLOW);
                }
                let mut result = RpcMaster::new(RpcEndpoint { rank: 0, tag: 0 }, "tcp");
                if order.master.tag == 2 {
                    result.failure = Some(Failure::new("missing", "nobody to call"));
                } else {
                    let ready_ns = monotonic_ns();
                    order.answers.send(FrameKind::Ready, 0, Vec::new());
                    let begin_ns = loop {
                        if let Some(time_ns) = signs.begin_ns() {
                            break time_ns;
                        }
                        if signs.end_sign().load(Ordering::Relaxed) != 0 {
                            return;
                        }
                        thread::yield_now();
                    };
                    times
                        .lock()
                        .unwrap()
                        .push((order.master.tag, ready_ns, begin_ns));
                    result.succeeded = 7;
                }
                let body = result.to_json().unwrap();
                order.answers.send(FrameKind::Result, 0, body);
            });
            Ok(control)
        }
    }

    fn server(masters: Arc<Pretended>) -> RpcServer {
        let setup = ServerSetup {
            group: "g".to_owned(),
            ranks: vec![RankSetup {
                rank: 0,
                tags: 3,
                addresses: vec!["tcp://127.0.0.1:0".parse::<RpcAddress>().unwrap()],
            }],
            pollers: 1,
            cpus: Vec::new(),
            poll: RpcPoll::Block,
            services: Box::new(|_, _| Vec::new()),
            domain: None,
            limits: ServerLimits::default(),
            token: None,
            masters,
            log: Box::new(|_| ()),
        };
        RpcServer::start(setup).unwrap()
    }

    #[test]
    fn all_masters_begin_together_once_each_is_ready_or_cannot_be() {
        let masters = Arc::new(Pretended::default());
        let server = server(Arc::clone(&masters));
        let dial = DialSetup {
            group: "g".to_owned(),
            token: None,
            from: Vec::new(),
            within: Duration::from_secs(10),
        };
        let endpoint = |tag| ServerEndpoint {
            endpoint: RpcEndpoint { rank: 0, tag },
            address: server.addresses()[0].1.clone(),
            nonce: None,
        };
        let endpoints: Vec<_> = (0..3).map(endpoint).collect();
        let mut ordered = OrderedMasters::connect(&endpoints, &dial, "tcp", &|| false);
        ordered.prepare(&RpcWorkload::default(), &|| false);
        let begin_ns = monotonic_ns() + 50_000_000;
        let stop = AtomicU32::new(0);
        let signs = EndSigns {
            stop: &stop,
            findings: None,
        };
        let results = ordered.run(begin_ns, signs, |_| ());
        let done: Vec<_> = results.iter().map(|one| one.succeeded).collect();
        assert_eq!(done, [7, 7, 0]);
        assert!(results[2].failure.is_some());
        let times = masters.times.lock().unwrap();
        assert_eq!(times.len(), 2);
        let last_ready = times.iter().map(|(_, ready_ns, _)| *ready_ns).max();
        for (tag, _, began_ns) in &*times {
            assert!(Some(*began_ns) > last_ready, "tag {tag}");
            // Both have the same clock here, up to what comparing clocks errs.
            assert!(began_ns.abs_diff(begin_ns) < 20_000_000, "tag {tag}");
        }
    }
}

//! Tests on masters that are servers: this command orders them, looks at how far they are, and takes
//! what they measured.
//!
//! In: the masters, a task. Out: their figures, each with why where there are none. A thread for each
//! waits for what it says. Not here: carrying a test out (`master_host`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_run::Findings;
use weir_schema::{Failure, RpcEndpoint, RpcMaster};

use super::client::{ControlStream, DialSetup, ServerEndpoint, open_control_unless};
use super::engine::EndSigns;
use super::link::LinkGreeting;
use super::master_host::{MasterReport, MasterTask, monotonic_ns};
use super::socket::IsOver;
use super::wire::{FrameHeader, FrameKind, PingTimes, ProgressNote};
use super::{DerCode, RpcError};

/// Clock readings that are compared with those of each master.
const PINGS: u32 = 8;
/// How long an answer to one of them is waited for.
const PING: Duration = Duration::from_secs(2);
/// From the order to the first call: sessions are opened meanwhile.
const LEAD: Duration = Duration::from_millis(200);
/// The same for each master that there is.
const LEAD_EACH: Duration = Duration::from_millis(10);
/// How long a look for frames waits.
const LOOK: Duration = Duration::from_millis(20);
/// A master that says nothing for so long is lost: it tells of itself four times a second.
const SILENCE: Duration = Duration::from_secs(10);
/// The same once its time is up: shorter than the run waits for who does not come back.
const SILENCE_AT_END: Duration = Duration::from_secs(3);
/// For so long results are waited for once the end was asked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A master that can be ordered, or why not.
#[derive(Debug)]
struct OrderedMaster {
    endpoint: ServerEndpoint,
    connection: Result<MasterConnection, RpcError>,
}

#[derive(Debug)]
struct MasterConnection {
    stream: ControlStream,
    /// What its clock shows more than ours, in nanoseconds.
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
        let master = |(endpoint, connection): (&ServerEndpoint, _)| OrderedMaster {
            endpoint: endpoint.clone(),
            connection,
        };
        Self {
            masters: masters.map(master).collect(),
            transport: transport.to_owned(),
        }
    }

    /// Whether all of them have answered.
    ///
    /// # Errors
    /// Why the first one that did not.
    pub fn are_there(self) -> Result<(), RpcError> {
        let mut connections = self.masters.into_iter().map(|master| master.connection);
        connections.try_for_each(|connection| connection.map(drop))
    }

    /// From now to the first call, so that every master is ready by then.
    pub fn lead(&self) -> Duration {
        let count = u32::try_from(self.masters.len()).unwrap_or(u32::MAX);
        LEAD + LEAD_EACH.saturating_mul(count)
    }

    /// Has every master carry the task out from the same instant on, and waits for what comes of it.
    /// `look` sees now and then how many calls are done; once it is asked to end the tests are ended.
    pub fn run(
        mut self,
        task: &MasterTask,
        signs: EndSigns<'_>,
        look: impl Fn(u64),
    ) -> Vec<RpcMaster> {
        let transport = std::mem::take(&mut self.transport);
        let counts: Vec<AtomicU64> = self.masters.iter().map(|_| AtomicU64::new(0)).collect();
        let mut results = thread::scope(|scope| {
            let threads = self.masters.into_iter().zip(&counts);
            let threads = threads.map(|(master, done)| {
                let transport = &transport;
                scope.spawn(move || master.run(task, signs, done, transport))
            });
            let threads: Vec<_> = threads.collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                look(counts.iter().map(|done| done.load(Ordering::Relaxed)).sum());
                thread::sleep(LOOK);
            }
            let results = threads.into_iter().filter_map(|thread| thread.join().ok());
            results.collect::<Vec<_>>()
        });
        look(
            results
                .iter()
                .map(|master| master.succeeded + master.failed)
                .sum(),
        );
        results.sort_by_key(|master| master.endpoint);
        results
    }
}

impl OrderedMaster {
    fn run(
        self,
        task: &MasterTask,
        signs: EndSigns<'_>,
        done: &AtomicU64,
        transport: &str,
    ) -> RpcMaster {
        let endpoint = RpcEndpoint {
            rank: self.endpoint.rank,
            tag: self.endpoint.tag,
        };
        let was_there = self.connection.is_ok();
        let result = self.connection.and_then(|mut connection| {
            connection.start(task)?;
            connection.wait(signs, done)
        });
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
        let (stream, _) = open_control_unless(dial, endpoint, LinkGreeting::default(), is_over)?;
        let mut this = Self {
            stream,
            offset_ns: 0,
        };
        this.compare_clocks(is_over)?;
        Ok(this)
    }

    /// What its clock shows more than ours, by the answer that came fastest.
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

    fn start(&mut self, task: &MasterTask) -> Result<(), RpcError> {
        let task = MasterTask {
            work: task.work.clone(),
            start_ns: task.start_ns.saturating_add_signed(self.offset_ns),
        };
        let body = serde_json::to_vec(&task).map_err(|error| {
            RpcError::new(
                DerCode::Invalid,
                format!("the order cannot be written: {error}"),
            )
        })?;
        self.stream
            .send(&FrameHeader::plain(FrameKind::Start), &body)
    }

    /// What came of the test.
    fn wait(&mut self, signs: EndSigns<'_>, done: &AtomicU64) -> Result<RpcMaster, RpcError> {
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
                return Err(RpcError::new(DerCode::TimedOut, "it says nothing any more"));
            }
            let Some((header, body)) = came else { continue };
            heard = Instant::now();
            match header.kind {
                _ if header.word != 0 => {
                    let words = String::from_utf8_lossy(&body).into_owned();
                    return Err(RpcError::new(DerCode::from_status(header.word), words));
                }
                FrameKind::Progress => {
                    let note = ProgressNote::decode(&body)?;
                    done.store(note.done, Ordering::Relaxed);
                }
                FrameKind::Result => {
                    let report = serde_json::from_slice::<MasterReport>(&body);
                    return report.map(MasterReport::into_master).map_err(|error| {
                        RpcError::protocol(format!("its result cannot be read: {error}"))
                    });
                }
                FrameKind::GoAway => {
                    return Err(RpcError::new(DerCode::Unreachable, "the server leaves"));
                }
                _ => {}
            }
        }
    }
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

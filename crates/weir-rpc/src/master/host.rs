//! Masters on a server: it is ordered to call others of its group, and reports how it went.
//!
//! In: orders. Out: that it is ready, notes of progress, and at the end the figures as [`RpcMaster`]. The same
//! loop over the same transports as in the command's own process. One test at a time by rank and tag; only ranks of
//! the server's own table are called. Not here: who orders (`ordered`), the frames (`server`).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir_run::{
    Engine, KINDS, LoneLoop, LoopPlan, LoopStop, Measured, Source, WorkerLive, measured,
};
use weir_schema::{
    Failure, Job, RPC_KINDS, RpcEndpoint, RpcMaster, RpcProgress, RpcServe, RpcWorkload, Span,
    expand_endpoints, expand_masters,
};
use weir_sys::clock::{Clock, Tick};
use weir_sys::pin;
use weir_units::Nanos;

use crate::account::Charge;
use crate::group::known_groups::KnownGroups;
use crate::group::node_name;
use crate::interface::local::process_cpus;
use crate::master::call_list::CallList;
use crate::master::calling::{CallLoop, Calling, SLOT};
use crate::master::engine::EndSigns;
use crate::master::measured::{MasterParts, requested};
use crate::master::route::{CallRoute, TransportUser};
use crate::server::{MasterAnswers, MasterOrder, TestControl, TestMasters};
use crate::transport::RpcTransport;
use crate::wire::{FrameKind, ProgressNote};
use crate::{DerCode, RpcError};

/// Time between two notes about a running test.
const NOTES: Duration = Duration::from_millis(250);
/// Time between two looks of a master that waits for its start.
const NAP: Duration = Duration::from_millis(10);

/// A test of the group of a server, whatever it was ordered to be of: whoever orders names ranks, and nothing else.
fn bound(work: RpcWorkload, server: &RpcServe) -> RpcWorkload {
    let text = |path: &PathBuf| path.display().to_string();
    let table = server.table.as_ref();
    RpcWorkload {
        group: server.group.clone(),
        targets: Vec::new(),
        loopback: None,
        table: table.map(|table| text(&table.directory)),
        token_file: server.token_file.as_ref().map(text),
        interface: server.interface.clone(),
        domain: server.domain.clone(),
        ..work
    }
}

const PAGE: u64 = 4 << 10;
/// Memory of a sample, as it is kept and as text, in bytes.
const SAMPLE: u64 = 96;

/// Runs tests on threads of its own.
#[derive(Debug)]
pub struct MasterHost {
    server: Arc<RpcServe>,
    /// Who was in the group in earlier tests.
    known: KnownGroups,
    clock: Clock,
    running: Arc<Mutex<BTreeSet<RpcEndpoint>>>,
}

impl MasterHost {
    /// For a server.
    pub fn new(server: RpcServe) -> Self {
        // Before any of its threads is pinned.
        let _ = process_cpus();
        Self {
            server: Arc::new(server),
            known: KnownGroups::default(),
            clock: Clock::detect().0,
            running: Arc::default(),
        }
    }
}

impl TestMasters for MasterHost {
    fn start(&self, order: MasterOrder) -> Result<TestControl, RpcError> {
        let master = order.master;
        let turn = MasterTurn::take(&self.running, master)?;
        let (server, known) = (Arc::clone(&self.server), self.known.clone());
        let (control, clock) = (TestControl::default(), self.clock);
        let asked = control.clone();
        let serve = move || {
            // Beside the poller that took the order, which may have a CPU of its own.
            let _ = pin::set_affinity(process_cpus());
            let answers = order.answers.clone();
            // Whoever has the last answer may order the next test: the turn ends before it.
            match OrderedTest::ordered(&order, &server, &known, clock) {
                Ok(test) => {
                    answers.send(FrameKind::StartAck, 0, Vec::new());
                    let done = test.serve(&asked, &answers);
                    drop(turn);
                    send(&answers, &done);
                }
                Err(why) => {
                    drop(turn);
                    let words = why.message.as_bytes().to_vec();
                    answers.send(FrameKind::StartAck, why.code.to_status(), words);
                }
            }
        };
        let named = thread::Builder::new().name(format!("weir-master-{master}"));
        let spawned = named.spawn(serve);
        spawned.map_err(RpcError::io("start a thread for the test"))?;
        Ok(control)
    }
}

/// A rank and tag that run a test, until it is dropped.
struct MasterTurn {
    running: Arc<Mutex<BTreeSet<RpcEndpoint>>>,
    master: RpcEndpoint,
}

impl MasterTurn {
    fn take(
        running: &Arc<Mutex<BTreeSet<RpcEndpoint>>>,
        master: RpcEndpoint,
    ) -> Result<Self, RpcError> {
        let mut all = running.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.insert(master) {
            let message = format!("{master} runs a test already");
            return Err(RpcError::new(DerCode::Busy, message));
        }
        drop(all);
        let running = Arc::clone(running);
        Ok(Self { running, master })
    }
}

impl Drop for MasterTurn {
    fn drop(&mut self) {
        let mut all = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.master);
    }
}

fn send(answers: &MasterAnswers, done: &RpcMaster) {
    match done.to_json() {
        Ok(body) => answers.send(FrameKind::Result, 0, body),
        Err(error) => {
            let words = error.to_string().into_bytes();
            answers.send(FrameKind::Result, DerCode::Other.to_status(), words);
        }
    }
}

/// A test that was ordered.
struct OrderedTest {
    master: RpcEndpoint,
    job: Job,
    work: RpcWorkload,
    list: CallList,
    route: CallRoute,
    clock: Clock,
    /// Memory of its buffers and samples.
    _charge: Charge,
}

/// Memory of a test that was ordered: its order, read twice over, its calls with their buffers in whole pages,
/// and its samples, which go out as text.
fn memory_of(work: &RpcWorkload, order: usize) -> u64 {
    let buffer = u64::from(work.request.bytes.max(work.reply.bytes));
    let calls = work
        .in_flight()
        .saturating_mul(buffer.next_multiple_of(PAGE) + SLOT);
    let all = work.load.bounds.operations.unwrap_or(work.repetitions);
    let samples = if work.samples {
        all.saturating_mul(SAMPLE)
    } else {
        0
    };
    let order = 2 * order as u64;
    order.saturating_add(calls).saturating_add(samples)
}

impl OrderedTest {
    fn ordered(
        order: &MasterOrder,
        server: &RpcServe,
        known: &KnownGroups,
        clock: Clock,
    ) -> Result<Self, RpcError> {
        let refuse = |why: &dyn ToString| RpcError::new(DerCode::NotThere, why.to_string());
        let work = RpcWorkload::from_json(&order.body).map_err(|error| {
            let why = format!(
                "the order cannot be read, command and servers have to be of the same version of weir: {error}"
            );
            RpcError::new(DerCode::Invalid, why)
        })?;
        let work = bound(work, server);
        let mut charge = Charge::new(&order.account);
        let memory = memory_of(&work, order.body.len());
        if !charge.is_now(memory) {
            let left = order.account.left();
            let why = format!(
                "the test takes {memory} bytes, and {left} are left of the server's memory limit: fewer RPCs at \
                 once, or shorter ones"
            );
            return Err(RpcError::new(DerCode::NoMemory, why));
        }
        let here = Path::new("");
        let group = known.with_left(&work, here);
        let group = group.map_err(|why| refuse(&why.message))?;
        let entries =
            expand_endpoints(&work.endpoints, &group.ranks()).map_err(|why| refuse(&why))?;
        let list = CallList::new(entries);
        let masters = expand_masters(&work.masters, &group.ranks()).map_err(|why| refuse(&why))?;
        // One after another in a matrix, otherwise all at the same time, with a thread each.
        let threads = match group.count_on(&node_name(), &masters) {
            _ if work.matrix => 1,
            count => u32::try_from(count.max(1)).unwrap_or(u32::MAX),
        };
        let route =
            CallRoute::of(&work, group, threads, here).map_err(|why| refuse(&why.message))?;
        let found = route.endpoints(&list.distinct);
        found.map_err(|why| refuse(&why.message))?;
        Ok(Self {
            master: order.master,
            list,
            job: Job::of_rpcs("master", work.clone()),
            work,
            route,
            clock,
            _charge: charge,
        })
    }

    /// Runs it on a thread of its own and reports its progress meanwhile.
    fn serve(&self, control: &TestControl, answers: &MasterAnswers) -> RpcMaster {
        let live = self.recorders();
        let (ended, wait) = channel();
        let live = &live;
        let all = self.work.load.bounds.operations.unwrap_or(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                let _ = ended.send(self.call((control, answers), live));
            });
            let (mut progress, mut noted) = (Vec::new(), Instant::now());
            let mut pause = NAP;
            loop {
                match wait.recv_timeout(pause.min(NOTES)) {
                    Ok(done) => return RpcMaster { progress, ..done },
                    Err(RecvTimeoutError::Timeout) => {
                        pause = keep(&mut progress, self.progress(live));
                        if noted.elapsed() < NOTES {
                            continue;
                        }
                        noted = Instant::now();
                        let done = live.kinds[0].completed.get() + live.kinds[0].failed.get();
                        let note = ProgressNote { done, total: all };
                        answers.send(FrameKind::Progress, 0, note.encode().to_vec());
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return self.failed(Failure::new("panic", "the test panicked"));
                    }
                }
            }
        })
    }

    /// When its calls were made, since the time at which all masters were to begin.
    fn span(&self, begin_ns: u64, live: &WorkerLive, took: Nanos) -> Span {
        let ago = self.scale_ns(self.clock.now().since(Tick(live.started.get())));
        let start_ns = monotonic_ns().saturating_sub(ago).saturating_sub(begin_ns);
        Span {
            start_ns: Nanos(start_ns),
            end_ns: Nanos(start_ns.saturating_add(took.0)),
        }
    }

    fn scale_ns(&self, ticks: u64) -> u64 {
        self.clock.scale().to_nanos(ticks)
    }

    /// Progress by now; nothing before its first call.
    fn progress(&self, live: &WorkerLive) -> Option<RpcProgress> {
        let began = Some(live.started.get()).filter(|began| *began > 0)?;
        Some(RpcProgress {
            after_ns: Nanos(self.scale_ns(self.clock.now().since(Tick(began)))),
            succeeded: live.kinds[0].completed.get(),
        })
    }

    fn recorders(&self) -> WorkerLive {
        let mut kinds = [None; KINDS];
        kinds[0] = Some(Measured {
            targets: u32::try_from(self.list.distinct.len()).unwrap_or(u32::MAX),
            ..measured(&self.job, false)
        });
        WorkerLive::new(RPC_KINDS, kinds)
    }

    fn failed(&self, why: Failure) -> RpcMaster {
        let mut master = RpcMaster::new(self.master, self.route.name());
        master.failure = Some(why);
        master
    }

    fn call(&self, orderer: (&TestControl, &MasterAnswers), live: &WorkerLive) -> RpcMaster {
        let stop = orderer.0.end_sign();
        let calls = OrderedCalls {
            calling: Calling {
                work: &self.work,
                list: &self.list,
                thread: 0,
                threads: 1,
                seed: self.work.seed
                    ^ u64::from(self.master.rank) << 32
                    ^ u64::from(self.master.tag),
                signs: EndSigns {
                    stop,
                    findings: None,
                },
            },
            test: self,
            orderer,
            live,
        };
        let route = &self.route;
        match route.connect(&self.work, &self.list, (0, 1), stop, calls) {
            Ok(Ok(master)) => master,
            Ok(Err(error)) => self.failed(Failure::new("engine", error.to_string())),
            Err(why) => self.failed(why),
        }
    }
}

/// Keeps how far a test is where a tenth of its time has passed since the last note, so that long tests
/// have few; how long to wait until the next.
fn keep(notes: &mut Vec<RpcProgress>, now: Option<RpcProgress>) -> Duration {
    let Some(now) = now else { return NAP };
    let last = notes.last().map_or(0, |note: &RpcProgress| note.after_ns.0);
    let least = u64::try_from(NAP.as_nanos()).unwrap_or(0);
    let due = last.saturating_add((last / 10).max(least));
    if now.after_ns.0 < due {
        return Duration::from_nanos(due - now.after_ns.0);
    }
    notes.push(now);
    Duration::from_nanos((now.after_ns.0 / 10).max(least))
}

/// The calls of an ordered test.
struct OrderedCalls<'a> {
    calling: Calling<'a>,
    test: &'a OrderedTest,
    /// Who ordered it: what it says, and how it is answered.
    orderer: (&'a TestControl, &'a MasterAnswers),
    live: &'a WorkerLive,
}

impl TransportUser for OrderedCalls<'_> {
    type Output = io::Result<RpcMaster>;

    fn with(self, transport: impl RpcTransport) -> Self::Output {
        let test = self.test;
        let alone = LoneLoop {
            job: &test.job,
            seed: self.calling.seed,
            clock: &test.clock,
            stop: self.calling.signs.stop,
            live: self.live,
        };
        let mut calls = TimedStart {
            orderer: self.orderer,
            began_ns: 0,
            alone,
        };
        let made = self.calling.run(transport, &mut calls)?;
        let parts = MasterParts {
            endpoint: test.master,
            route: &test.route,
            span: Some(test.span(calls.began_ns, self.live, alone.duration())),
            work: &test.work,
            list: &test.list,
            lives: &[self.live],
            duration_ns: alone.duration(),
            requested: requested(&test.work),
            made: &[made],
            cpu: alone.cpu(),
        };
        Ok(parts.master())
    }
}

/// A loop that says when it is ready, and begins at the time that it gets then.
struct TimedStart<'a> {
    orderer: (&'a TestControl, &'a MasterAnswers),
    /// That time, by the monotonic clock; 0 before.
    began_ns: u64,
    alone: LoneLoop<'a>,
}

impl CallLoop for TimedStart<'_> {
    fn run<E, S>(
        &mut self,
        engine: &mut E,
        source: &mut S,
        slots: u32,
        change: impl FnOnce(&mut LoopPlan),
    ) -> LoopStop
    where
        E: Engine,
        S: Source<Op = E::Op>,
    {
        let (control, answers) = self.orderer;
        answers.send(FrameKind::Ready, 0, Vec::new());
        while self.alone.stop.load(Ordering::Relaxed) == 0 {
            let begin_ns = control.begin_ns();
            let left = begin_ns.map(|at| at.saturating_sub(monotonic_ns()));
            if left == Some(0) {
                break;
            }
            thread::sleep(left.map_or(NAP, |left| NAP.min(Duration::from_nanos(left))));
        }
        self.began_ns = control.begin_ns().unwrap_or_else(monotonic_ns);
        self.alone.drive(engine, source, slots, change)
    }
}

/// The clock that machines share between their processes, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let whole = u64::try_from(now.tv_sec).unwrap_or(0);
    whole * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::MemoryAccount;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use weir_schema::{EndpointSet, Members, RpcTable, RpcWarmup};

    use super::*;
    use crate::group::table::GroupTable;

    /// A server that finds group `g` in a directory.
    fn server(table: Option<PathBuf>) -> RpcServe {
        let table = table.map(|directory| RpcTable {
            directory,
            ..RpcTable::default()
        });
        RpcServe {
            table,
            ..RpcServe::alone("g", 1, String::new())
        }
    }

    fn order(work: &RpcWorkload, answers: &MasterAnswers) -> MasterOrder {
        MasterOrder {
            master: RpcEndpoint { rank: 0, tag: 1 },
            body: work.to_json().unwrap(),
            answers: answers.clone(),
            account: MemoryAccount::unlimited(),
        }
    }

    /// The next answers, once there are some.
    fn next(answers: &MasterAnswers) -> Vec<(FrameKind, u16)> {
        loop {
            let taken = answers.taken();
            if !taken.is_empty() {
                return taken;
            }
            thread::yield_now();
        }
    }

    fn directory(name: &str) -> PathBuf {
        let name = format!("weir-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn an_order_is_taken_at_once_and_what_is_wrong_with_it_is_answered_later() {
        let directory = directory("masters");
        std::fs::write(GroupTable::path(&directory, "g"), "name g\nsize 0\nall\n").unwrap();
        // A secret that nobody can read before somebody writes it.
        let secret = directory.join("secret");
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &secret, FileType::Fifo, mode, 0).unwrap();
        let host = MasterHost::new(RpcServe {
            token_file: Some(secret.clone()),
            ..server(Some(directory.clone()))
        });
        let answers = MasterAnswers::collected();
        let waits = RpcWorkload {
            transport: Some("tcp".to_owned()),
            ..nowhere()
        };
        let order = || order(&waits, &answers);
        for _ in 0..2 {
            host.start(order()).unwrap();
            assert_eq!(answers.taken(), []);
            assert_eq!(host.start(order()).unwrap_err().code, DerCode::Busy);
            std::fs::write(&secret, "s\n").unwrap();
            let answer = next(&answers);
            assert!(
                matches!(answer[..], [(FrameKind::StartAck, status)] if status > 0),
                "{answer:?}"
            );
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Calls without a network, which need no group.
    fn nowhere() -> RpcWorkload {
        let mut work = RpcWorkload {
            transport: Some("null".to_owned()),
            endpoints: vec![EndpointSet::one(RpcEndpoint { rank: 0, tag: 0 })],
            warmup: RpcWarmup::Requests { count: 0 },
            ..RpcWorkload::default()
        };
        work.load.bounds.operations = Some(10);
        work
    }

    #[test]
    fn the_first_call_waits_for_its_time_unless_the_test_is_to_end() {
        let host = MasterHost::new(server(None));
        let answers = MasterAnswers::collected();
        let until = |last| {
            let mut all = Vec::new();
            while !all.contains(&(last, 0)) {
                all.extend(next(&answers));
            }
            all
        };
        let test = host.start(order(&nowhere(), &answers)).unwrap();
        let before = until(FrameKind::Ready);
        assert_eq!(before[0], (FrameKind::StartAck, 0));
        // Nobody has said when it begins.
        thread::sleep(Duration::from_millis(100));
        assert!(!answers.taken().contains(&(FrameKind::Result, 0)));
        let begin_ns = monotonic_ns() + 300_000_000;
        test.begin_at(begin_ns);
        until(FrameKind::Result);
        assert!(monotonic_ns() >= begin_ns);
        // In a year, and never said.
        for begin_ns in [Some(monotonic_ns() + 31_536_000_000_000_000), None] {
            let test = host.start(order(&nowhere(), &answers)).unwrap();
            until(FrameKind::Ready);
            if let Some(time_ns) = begin_ns {
                test.begin_at(time_ns);
            }
            test.end();
            until(FrameKind::Result);
        }
    }

    #[test]
    fn masters_that_share_a_machine_spin_only_where_there_is_a_cpu_for_each() {
        let directory = directory("neighbours");
        let text = "name g\nsize 2\nall\n0 tcp://127.0.0.1:1 tags=4096\n\
                    1 tcp://127.0.0.1:1 tags=4096 node=another-machine\n";
        std::fs::write(GroupTable::path(&directory, "g"), text).unwrap();
        let set = |rank, last| EndpointSet {
            ranks: Members::one(rank),
            tags: Members {
                ranges: vec![(0, last)],
                ..Members::default()
            },
        };
        let spins = |masters: Vec<EndpointSet>, matrix| {
            let work = RpcWorkload {
                transport: None,
                masters,
                matrix,
                ..nowhere()
            };
            let order = order(&work, &MasterAnswers::collected());
            let (server, known) = (server(Some(directory.clone())), KnownGroups::default());
            let test = OrderedTest::ordered(&order, &server, &known, Clock::detect().0);
            test.unwrap().route.never_sleeps()
        };
        // One master and one server.
        let has_room = thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2);
        assert_eq!(spins(vec![set(0, 0)], false), has_room);
        assert_eq!(spins(vec![set(0, 0), set(1, 4095)], false), has_room);
        assert!(!spins(vec![set(0, 4095)], false));
        // There one waits for the other.
        assert_eq!(spins(vec![set(0, 4095)], true), has_room);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

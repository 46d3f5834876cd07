//! The thread that draws: its looks at the run, its frames, its keys.
//!
//! In: the run as the watch shows it, keys, signals. Out: frames; the wish that the run ends; snapshots.
//! It waits for keys, signals and the next frame in one place, and has the terminal only while it can be
//! drawn on. Not here: the terminal (`screen`), what a frame looks like (`draw`).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags};
use weir_report::Style;
use weir_schema::{Plan, RunResult};
use weir_sys::Tree;
use weir_sys::socket::wait_ready;
use weir_sys::topology::Topology;
use weir_sys::usage::ThreadUsage;
use weir_units::Nanos;

use super::draw::{self, Frozen, Shown};
use super::keys::{Choice, KeyAction, Screen};
use super::machine::MachinePerSecond;
use super::pace::{CpuMark, Pace};
use super::per_second::PerSecond;
use super::placement;
use super::screen::{self, FrameBytes, SMALLEST, ScreenSignals};
use crate::output;
use crate::watch::Watch;

/// Interval while nothing is drawn, or where looking is costly.
const SECOND: Duration = Duration::from_secs(1);
/// Another job may use another disk.
const DISKS_EVERY: Duration = Duration::from_secs(10);
/// The latencies of more workers are dear to add up.
const FEW_WORKERS: usize = 64;

/// Inputs to a view.
#[derive(Clone)]
pub(super) struct ViewSetup {
    pub(super) frames_per_second: u32,
    pub(super) style: Style,
    pub(super) watch: Watch,
    pub(super) plan: Plan,
}

/// The thread, from outside.
pub(super) struct ViewThread {
    thread: Mutex<Option<JoinHandle<Option<f64>>>>,
    wakes: UnixStream,
    is_over: Arc<AtomicBool>,
}

impl ViewThread {
    pub(super) fn start(setup: &ViewSetup) -> io::Result<Self> {
        let (wakes, woken) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let signals = ScreenSignals::catch(&wakes)?;
        let (setup, seen_over) = (setup.clone(), Arc::clone(&is_over));
        let thread = thread::Builder::new().name("weir-live".to_owned());
        let thread = thread.spawn(move || View::new(setup, signals, woken, seen_over).run())?;
        Ok(Self {
            thread: Mutex::new(Some(thread)),
            wakes,
            is_over,
        })
    }

    /// Ends the thread, and returns the cost of drawing in percent of a CPU.
    pub(super) fn end(&self) -> Option<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        // One that has ended does not read any more.
        let _ = (&self.wakes).write(&[0]);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // One that panicked has given the terminal back, and said why.
        thread?.join().ok().flatten()
    }
}

/// State of the view's thread.
struct View {
    setup: ViewSetup,
    signals: ScreenSignals,
    woken: UnixStream,
    is_over: Arc<AtomicBool>,
    terminal: Option<(Size, Terminal<CrosstermBackend<FrameBytes>>)>,
    /// The message about a terminal that is too small was printed, since there was last room enough.
    said_too_small: bool,
    pace: Pace,
    next_frame: Instant,
    next_look: Instant,
    began: Instant,
    choice: Choice,
    per_second: PerSecond,
    machine: MachinePerSecond,
    /// Latest result, with the time at which it was fetched.
    result: Option<(Instant, Arc<RunResult>)>,
    frozen: Option<Frozen>,
    /// Answer to the last key, until the next one.
    answer: Option<String>,
}

impl View {
    fn new(
        setup: ViewSetup,
        signals: ScreenSignals,
        woken: UnixStream,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        let now = Instant::now();
        Self {
            pace: Pace::new(setup.frames_per_second),
            setup,
            signals,
            woken,
            is_over,
            terminal: None,
            said_too_small: false,
            next_frame: now,
            next_look: now,
            began: now,
            choice: Choice::default(),
            per_second: PerSecond::default(),
            machine: MachinePerSecond::default(),
            result: None,
            frozen: None,
            answer: None,
        }
    }

    /// Draws until the run is over or the user leaves, and returns the cost in percent of a CPU.
    fn run(mut self) -> Option<f64> {
        placement::keep_off_workers(&self.setup.plan, Topology::of_this_machine());
        let begin = self.mark();
        while !self.is_over.load(Ordering::Relaxed) {
            if self.signals.obey() {
                self.terminal = None;
            } else if self.terminal.is_some() && !screen::is_open() {
                // A thread panicked, and what it said stands there now.
                break;
            }
            let goes_on = self.fit_and_draw().and_then(|()| self.wait());
            match goes_on {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    screen::close();
                    output::error(&format!("weir: --live: {error}\n"));
                    break;
                }
            }
        }
        screen::close();
        Some(self.mark().share_since(&begin)? * 100.0)
    }

    fn mark(&self) -> CpuMark {
        let usage = ThreadUsage::current();
        CpuMark {
            at: Nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)),
            used: Nanos(usage.user.0.saturating_add(usage.system.0)),
        }
    }

    /// Takes the terminal if possible, and draws if a frame is due.
    fn fit_and_draw(&mut self) -> io::Result<()> {
        let size = screen::size();
        let has_room = size.width >= SMALLEST.width && size.height >= SMALLEST.height;
        if !has_room || !screen::is_in_foreground() {
            screen::close();
            self.terminal = None;
            if !has_room && !std::mem::replace(&mut self.said_too_small, true) {
                output::error(&format!(
                    "\r\x1b[2Kweir: --live needs {}x{} characters, here are {}x{}: a line shows the \
                     progress\n",
                    SMALLEST.width, SMALLEST.height, size.width, size.height
                ));
            }
            return Ok(());
        }
        self.said_too_small = false;
        if !screen::is_open() {
            screen::open()?;
        }
        if self.terminal.as_ref().is_none_or(|(fits, _)| *fits != size) {
            screen::clear();
            let options = TerminalOptions {
                viewport: Viewport::Fixed(Rect::from(size)),
            };
            let backend = CrosstermBackend::new(FrameBytes::default());
            self.terminal = Some((size, Terminal::with_options(backend, options)?));
            self.next_frame = Instant::now();
        }
        if Instant::now() >= self.next_frame {
            self.draw()?;
        }
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        let before = self.mark();
        self.look();
        let said = output::held_errors();
        let shown = Shown {
            said: &said,
            plan: &self.setup.plan,
            choice: &self.choice,
            per_second: &self.per_second,
            machine: &self.machine,
            result: self.result.as_ref().map(|(_, result)| result.as_ref()),
            answer: self.answer.as_deref(),
            note: self.pace.note(),
        };
        let shown = self
            .frozen
            .as_ref()
            .map_or(shown, |frozen| frozen.instead_of(shown));
        if let Some((_, terminal)) = &mut self.terminal {
            terminal.draw(|frame| draw::draw(frame, &shown, &self.setup.style))?;
        }
        let now = self.mark();
        self.pace
            .drew(Nanos(now.used.0.saturating_sub(before.used.0)), now);
        self.next_frame = Instant::now() + self.pace.interval();
        Ok(())
    }

    /// Fetches the state of the run, and other data of the chosen screen.
    fn look(&mut self) {
        let now = Instant::now();
        if now < self.next_look {
            return;
        }
        let Some(seen) = self.setup.watch.jobs() else {
            return;
        };
        let workers: usize = seen.jobs.iter().map(|job| job.workers).sum();
        if workers > FEW_WORKERS {
            self.next_look = now + SECOND;
        }
        self.per_second.look(seen);
        let screen = self.choice.screen;
        let result_every = match screen {
            Screen::Workers => Some(SECOND),
            // It names the disks.
            Screen::Machine => Some(DISKS_EVERY),
            _ => None,
        };
        let last = self.result.as_ref().map(|(at, _)| *at);
        if let Some(every) = result_every
            && last.is_none_or(|last| now >= last + every)
        {
            let seen = self.setup.watch.result();
            self.result = seen.map(|seen| (now, seen.result));
        }
        if screen == Screen::Machine {
            let disks = self.result.iter().flat_map(|(_, result)| &result.disks);
            let disks: Vec<&str> = disks.map(|disk| disk.device.as_str()).collect();
            self.machine
                .look(&Tree::real(), &disks, self.began.elapsed());
        }
    }

    /// Waits for a key, a signal or the next frame; false ends the view.
    fn wait(&mut self) -> io::Result<bool> {
        let is_open = screen::is_open();
        let left = if is_open {
            self.next_frame.saturating_duration_since(Instant::now())
        } else {
            SECOND
        };
        let stdin = io::stdin();
        let mut ready = [
            PollFd::new(&self.woken, PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        // Whoever has the terminal now gets its keys.
        let wanted = if is_open { 2 } else { 1 };
        wait_ready(&mut ready[..wanted], left)?;
        let keys = ready[1].revents();
        let mut signals = [0; 64];
        while (&self.woken).read(&mut signals).is_ok_and(|n| n > 0) {}
        if keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            // Nobody is there any more; whether the run goes on SIGHUP decides.
            return Ok(false);
        }
        if keys.contains(PollFlags::IN) {
            return self.read_keys();
        }
        Ok(true)
    }

    fn read_keys(&mut self) -> io::Result<bool> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else {
                continue;
            };
            self.next_frame = Instant::now();
            self.answer = None;
            let jobs = self.per_second.jobs().len();
            match self.choice.press(key.code, jobs) {
                KeyAction::Draw => {}
                KeyAction::Leave => return Ok(false),
                KeyAction::EndRun => self.end_run(),
                KeyAction::Snapshot => self.answer = Some(self.store_snapshot()),
            }
            self.freeze();
        }
        Ok(true)
    }

    /// Keeps the state that a frozen view shows.
    fn freeze(&mut self) {
        if !self.choice.is_frozen {
            self.frozen = None;
        } else if self.frozen.is_none() {
            self.frozen = Some(Frozen {
                per_second: self.per_second.clone(),
                machine: self.machine.clone(),
                result: self.result.as_ref().map(|(_, result)| Arc::clone(result)),
            });
        }
    }

    fn end_run(&mut self) {
        let ranks = self.setup.plan.ranks.map_or(1, |ranks| ranks.count);
        self.answer = Some(if ranks > 1 {
            format!("{ranks} ranks end together: only Ctrl-C ends them early")
        } else {
            self.setup.watch.end_early();
            "the run ends".to_owned()
        });
    }

    /// Stores the result so far in a new file, and returns a message about it.
    fn store_snapshot(&self) -> String {
        let Some(seen) = self.setup.watch.result() else {
            return "nothing is measured yet".to_owned();
        };
        let mut names = (1..).map(|number| format!("weir-snapshot-{number}.json"));
        let Some(name) = names.find(|name| !Path::new(name).exists()) else {
            return String::new();
        };
        let stored = seen.result.to_json().map_err(|e| e.to_string());
        match stored.and_then(|text| output::write_file(&name, &text)) {
            Ok(()) => format!("stored in {name}"),
            Err(why) => why.trim_end().to_owned(),
        }
    }
}

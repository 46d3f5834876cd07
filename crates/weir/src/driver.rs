//! The one driver of all doors that measure: from a door's record and its arguments to what is
//! printed and the exit code.
//!
//! In: a call of a door. Out: the exit code. Notes, checks of files, ranks, progress, live views,
//! store, history, repeats, dry runs and plans that are shown are the same for every door, whichever
//! voice speaks at the end. Not here: what arguments mean and what a peer's text says (`weir-doors`).

use std::path::Path;

use weir_doors::args::{self, Arguments, at_door};
use weir_doors::house::{self, Input, Mode, ProgressStyle, Run, RunOptions, calls_peer};
use weir_doors::request::{Action, FileChange, NamedFile, Request, Tool};
use weir_doors::search::RunSearch;
use weir_doors::{DoorCall, Given, Machine, Measures, Printed, Refusal, USAGE, Voice};
use weir_schema::{Plan, RunResult};
use weir_world::{Launcher, started_rank};

use crate::history::Keep;
use crate::host_record::HostRecord;
use crate::house_report::{add_report, print_report, write_outputs};
use crate::input::{other_files, plan_to_run};
use crate::live::LiveDisplay;
use crate::machine::ThisMachine;
use crate::measure::{self, MeasureRequest, RunObserver};
use crate::peer_observer::{PeerObserver, PeerText};
use crate::progress::{ProgressMode, ProgressObserver};
use crate::trigger::TriggerObserver;
use crate::turns::refuse_launcher;
use crate::watch::{Watch, WatchedObserver};
use crate::web::Window;
use crate::{
    Outcome, compare, held_input, output, printed, repeat, rows, search, session, signals, tools,
    written_files,
};

/// Carries out a call of a door that measures. Under a launcher one process prints for all.
pub(crate) fn run(call: &DoorCall) -> Outcome {
    let prints_for_all =
        Launcher::of_this_process().is_none_or(|launcher| launcher.prints_for_all());
    // Before any library of a transport is opened.
    signals::claim()?;
    let Some(measures) = &call.door.measures else {
        let why = format!("`weir {}` measures nothing", call.door.verb);
        return Err(Refusal::usage(why));
    };
    let log = (measures.variables)(&ThisMachine::new())?;
    let logged = log.as_ref().map_or(Ok(()), output::log_to);
    let outcome = logged.and_then(|()| carry_out(call, measures, prints_for_all));
    if !prints_for_all {
        return Ok(0);
    }
    outcome.map_err(|refusal| in_voice(call, measures, refusal))
}

/// A refusal in the words and with the exit code that the peer has for it, where the peer is called.
fn in_voice(call: &DoorCall, measures: &Measures, refusal: Refusal) -> Refusal {
    if !call.calls_peer() {
        return refusal;
    }
    let code = (measures.peer_code)(&refusal, call, &ThisMachine::new());
    refusal.of_peer(code)
}

fn carry_out(call: &DoorCall, measures: &Measures, prints_for_all: bool) -> Outcome {
    let given = match args::read(call)? {
        Arguments::Print(_) if !prints_for_all => return Ok(0),
        Arguments::Print(page) => return Ok(printed(&page)),
        Arguments::Given(given) => *given,
    };
    let machine = ThisMachine::new();
    // By a peer's name a refusal is all that is said.
    let refuse = |refusal| {
        if call.calls_peer() {
            refusal
        } else {
            args::with_usage(refusal, call)
        }
    };
    let mut request = (measures.read)(&given, &machine).map_err(refuse)?;
    let (mut dry_text, mut searched) = (None, None);
    let (input, mode) = match std::mem::replace(&mut request.action, Action::Tool(Tool::Calibrate))
    {
        Action::Measure(input) => (input, Mode::Run),
        Action::Search(input, search) => {
            searched = Some(search);
            (input, Mode::Run)
        }
        Action::ShowPlan(input) => (input, Mode::ShowPlan),
        Action::DryRun(input, text) => {
            dry_text = Some(text);
            (input, Mode::DryRun)
        }
        _ if !prints_for_all => return Ok(0),
        Action::Print(text) => return print_text(&text, &request.files),
        Action::Compare(asked) => {
            print_notes(&request);
            return compare::in_rounds(&asked);
        }
        Action::Show(result) => {
            return Caller::new(&given, &machine, measures, &request).show(&result);
        }
        Action::Tool(tool) => return tools::run(tool, &request),
    };
    let mut run = run_of(&given, input, &request).map_err(refuse)?;
    if mode != Mode::Run {
        run.mode = mode;
    }
    if machine.is_input_held() && run.mode == Mode::Run {
        run.history.get_or_insert_with(|| "off".to_owned());
        held_input::end_with_input();
    }
    let caller = Caller::new(&given, &machine, measures, &request);
    match searched.filter(|_| run.mode == Mode::Run) {
        Some(search) => caller.search(&run, search),
        None => caller.carry_out(&run, dry_text, prints_for_all),
    }
}

/// The run that the flags of the house and a door's request ask for.
fn run_of(given: &Given, input: Input, request: &Request) -> Result<Run, Refusal> {
    let mut run = Run::read(given, input).map_err(|refusal| refusal.at_door(given.door))?;
    run.targets = request.targets;
    run.rank_timeout = request.rank_timeout.or(run.rank_timeout);
    run.voice = request.voice.unwrap_or(run.voice);
    run.options.text_file.clone_from(&request.text_file);
    Ok(run)
}

/// Writes the files of a text that needs no measuring, then prints it; the exit code.
fn print_text(text: &Printed, files: &[NamedFile]) -> Outcome {
    written_files::check(files, [])?;
    for file in &text.files {
        output::write_file(&file.path, &file.text).map_err(|why| Refusal::new(USAGE, why))?;
    }
    Ok(emit(text))
}

/// Prints the output of a door and returns the exit code.
pub(crate) fn emit(text: &Printed) -> u8 {
    output::error(&text.err);
    let is_out = output::print(&text.out);
    if is_out { text.code } else { text.code.max(1) }
}

/// Prints the notes on the arguments.
pub(crate) fn print_notes(request: &Request) {
    output::print(&request.before);
    for note in &request.notes {
        output::error(&format!("note: {note}\n"));
    }
}

/// A door that was called, with the request of its arguments.
struct Caller<'a> {
    given: &'a Given,
    machine: &'a ThisMachine,
    measures: &'a Measures,
    request: &'a Request,
}

impl<'a> Caller<'a> {
    fn new(
        given: &'a Given,
        machine: &'a ThisMachine,
        measures: &'a Measures,
        request: &'a Request,
    ) -> Self {
        Self {
            given,
            machine,
            measures,
            request,
        }
    }

    /// Prints a result that needs no measuring.
    fn show(&self, result: &RunResult) -> Outcome {
        written_files::check(&self.request.files, [])?;
        print_notes(self.request);
        let voice = self.request.voice;
        let voice = voice.unwrap_or_else(|| house::voice(self.given));
        Ok(self.print(result, voice)?.max(self.request.least_code))
    }

    fn carry_out(&self, run: &Run, dry_text: Option<String>, prints_for_all: bool) -> Outcome {
        match run.mode {
            Mode::ShowPlan | Mode::DryRun if !prints_for_all => Ok(0),
            Mode::ShowPlan => {
                let text = self.plan(run)?.to_json().map_err(Refusal::usage)?;
                Ok(printed(&(text + "\n")))
            }
            Mode::DryRun => {
                let plan = self.plan(run)?;
                session::check(&plan, self.observer(run, &plan, None).as_ref())?;
                let peers = dry_text.filter(|text| run.voice == Voice::Peer && !text.is_empty());
                Ok(printed(&peers.unwrap_or_else(|| jobs_text(&plan))))
            }
            Mode::Run => match run.repeat {
                Some(repeat) => {
                    if self.request.monitor.is_some() {
                        let why = "--monitor: it is for one run; leave --repeat out";
                        return Err(Refusal::usage(why));
                    }
                    print_notes(self.request);
                    let check = |plans: &[&Plan]| self.check_files(run, plans);
                    repeat::run(run, repeat, &check, &|result| {
                        self.print_one_of_several(run, result);
                    })
                }
                None => self.measure(run, prints_for_all),
            },
        }
    }

    /// The plan of a run; everything that can be refused by arguments and files is refused here.
    fn plan(&self, run: &Run) -> Result<Plan, Refusal> {
        print_notes(self.request);
        let plan = self.adjusted(run, &run.input)?;
        self.check_files(run, &[&plan])?;
        Ok(plan)
    }

    /// The plan of an input, with the settings that the command line makes in every plan.
    fn adjusted(&self, run: &Run, input: &Input) -> Result<Plan, Refusal> {
        let mut plan =
            plan_to_run(run, input).map_err(|refusal| refusal.at_door(self.given.door))?;
        if self.measures.print.is_some() {
            plan.voice = Some(run.voice);
        }
        Ok(plan)
    }

    /// Runs one plan after the other until the search ends, and prints the result of all.
    fn search(&self, run: &Run, search: Box<dyn RunSearch>) -> Outcome {
        refuse_launcher(&format!("a search of `weir {}`", self.given.door.verb))?;
        let flags = ["repeat", "ranks", "live", "web", "metrics-file"];
        if let Some(flag) = flags.iter().find(|flag| self.given.house.has(flag)) {
            let why = "a search has runs of its own; leave it out";
            return Err(Refusal::usage(format!("--{flag}: {why}")));
        }
        self.plan(run)?;
        let record = self.request.monitor.as_deref().map(HostRecord::start);
        let record = record.transpose()?;
        let adjust = |plan| self.adjusted(run, &Input::Made(Box::new(plan)));
        let end = search::run(search, &adjust, &|plan| {
            let shown = self.observer(run, plan, None);
            match &record {
                Some(record) => record.observer(shown),
                None => shown,
            }
        })?;
        let code = measure::conclude(
            end.result,
            self.keep(run),
            run.store.as_deref(),
            &|result| {
                let code = self.print_in(result, run)?;
                Ok(code.max(u8::from(!end.has_found_all)))
            },
        )?;
        Ok(code.max(record.map_or(0, HostRecord::write)))
    }

    /// Files that are read and changed, by their parts.
    fn named_files(&self, run: &Run) -> Vec<NamedFile> {
        let text = self.request.text_file.iter();
        let text = text.map(|path| NamedFile::written(path, "where the text goes (--output)"));
        let own = self.request.files.iter().cloned().chain(text);
        let read = self.machine.files_read();
        let read = read
            .iter()
            .map(|path| NamedFile::read(path, "read for this run"));
        let house = other_files(run).into_iter().map(|file| NamedFile {
            role: at_door(self.given.door, &file.role),
            ..file
        });
        let history = self.keep(run).file();
        let history = history.iter().map(|path| NamedFile {
            change: FileChange::Kept,
            ..NamedFile::read(&path.to_string_lossy(), "the history")
        });
        own.chain(read).chain(house).chain(history).collect()
    }

    /// Refuses files that cannot be changed, that are read too, and targets.
    fn check_files(&self, run: &Run, plans: &[&Plan]) -> Result<(), Refusal> {
        written_files::check(&self.named_files(run), plans.iter().copied())?;
        self.keep(run).check()
    }

    fn measure(&self, run: &Run, prints_for_all: bool) -> Outcome {
        // One process prints for all, whatever started them.
        let is_first = started_rank().is_none() && prints_for_all;
        let watch = Watch::default();
        let (live, window) = if is_first {
            refuse_lost_port(run)?;
            let live = LiveDisplay::of(&run.options, &watch)?;
            (live, Window::open(&run.options.web, &watch)?)
        } else {
            (None, None)
        };
        let text = self.peer_text(run);
        let record = self.request.monitor.as_deref().map(HostRecord::start);
        let record = record.transpose()?;
        let code = measure::measure(&MeasureRequest {
            ranks: run.ranks,
            targets: run.targets,
            timeout: run.rank_timeout,
            store: run.store.as_deref(),
            keep: self.keep(run),
            warnings: &self.request.warnings,
            ..MeasureRequest::of(
                &|| self.plan(run),
                &|plan| {
                    let mut shown = self.observer(run, plan, text.as_ref());
                    if let Some(record) = &record {
                        shown = record.observer(shown);
                    }
                    if let Some(live) = &live {
                        shown = live.observer(plan, shown);
                    }
                    if live.is_some() || window.is_some() {
                        shown = Box::new(WatchedObserver::new(watch.clone(), plan, shown));
                    }
                    Box::new(TriggerObserver::new(&self.request.trigger, shown))
                },
                &|result| {
                    let code = match &text {
                        Some(text) => self.print_rest(result, text)?,
                        None => self.print_in(result, run)?,
                    };
                    if let Some(window) = &window {
                        window.finish(result);
                    }
                    Ok(code.max(self.request.least_code))
                },
            )
        })?;
        Ok(code.max(record.map_or(0, HostRecord::write)))
    }

    /// The peer's live text, where the peer's voice has one.
    fn peer_text(&self, run: &Run) -> Option<PeerText<'_>> {
        let observe = self.measures.observe.filter(|_| run.voice == Voice::Peer)?;
        let file = self.request.text_file.as_deref();
        let observer = observe(self.given, self.machine);
        Some(PeerText::new(observer, self.machine, file))
    }

    fn observer<'b>(
        &self,
        run: &Run,
        plan: &Plan,
        text: Option<&'b PeerText<'_>>,
    ) -> Box<dyn RunObserver + 'b> {
        let mode = if self.request.is_quiet {
            ProgressMode::None
        } else {
            ProgressMode::of_run(run)
        };
        let progress = ProgressObserver::new(mode, plan, self.measures.names_jobs);
        let progress = progress.with_stall(self.request.stall, plan);
        match text {
            Some(text) => {
                let asks = run.options.progress != ProgressStyle::Auto;
                Box::new(PeerObserver::new(progress, asks, plan, text))
            }
            None => Box::new(progress),
        }
    }

    /// Prints the part of the text that a live display has not printed, and returns the exit code.
    fn print_rest(&self, result: &RunResult, live: &PeerText<'_>) -> Outcome {
        signals::release();
        let text = self.peer(result)?;
        let code = self.write_files(result, &text);
        Ok(code.max(live.finish(result, text)))
    }

    /// Prints a result in the voice of a run; the exit code.
    fn print_in(&self, result: &RunResult, run: &Run) -> Outcome {
        match run.voice {
            Voice::Weir => {
                let has_files = self.request.files.iter().any(NamedFile::is_changed);
                let written = if has_files {
                    write_files(&self.peer(result)?)
                } else {
                    0
                };
                Ok(print_report(result, &run.options).max(written))
            }
            Voice::Peer => self.print(result, Voice::Peer),
        }
    }

    fn print(&self, result: &RunResult, voice: Voice) -> Outcome {
        signals::release();
        if voice == Voice::Weir || self.measures.print.is_none() {
            return Ok(print_report(result, &RunOptions::read(self.given)));
        }
        let text = self.peer(result)?;
        Ok(self.write_files(result, &text).max(emit(&text)))
    }

    fn peer(&self, result: &RunResult) -> Result<Printed, Refusal> {
        let Some(print) = self.measures.print else {
            return Ok(Printed::default());
        };
        let mut text = print(result, self.given, self.machine)?;
        add_report(&mut text, result, &RunOptions::read(self.given));
        Ok(text)
    }

    /// Writes the files of a peer's text and those of `--output`; 1 where one could not be written.
    fn write_files(&self, result: &RunResult, text: &Printed) -> u8 {
        let is_good = write_outputs(result, &RunOptions::read(self.given));
        write_files(text).max(u8::from(!is_good))
    }

    /// Decides where the history keeps a run. It keeps one of a peer only where the environment or a flag
    /// names a history.
    fn keep<'b>(&self, run: &'b Run) -> Keep<'b> {
        match &run.history {
            None if calls_peer(self.given) => Keep::WhereNamed,
            history => Keep::Always(history.as_deref()),
        }
    }

    /// Prints one of several runs as the peer does; weir's voice prints them together.
    fn print_one_of_several(&self, run: &Run, result: &RunResult) {
        if run.voice == Voice::Peer
            && let Ok(text) = self.peer(result)
        {
            emit(&text);
        }
    }
}

/// Writes the files of a door about a result; 1 where one could not be written.
fn write_files(text: &Printed) -> u8 {
    let mut code = 0;
    for file in &text.files {
        let written = if file.appends {
            rows::append_rows(&file.path, &file.text)
        } else {
            output::write_file(&file.path, &file.text)
        };
        if let Err(why) = written {
            output::error(&why);
            code = 1;
        }
    }
    code
}

/// The jobs that a run would have.
fn jobs_text(plan: &Plan) -> String {
    let jobs = plan.jobs().map(|(_, job)| {
        let name = weir_report::clean(&job.name, false);
        let mut line = format!("would run: {name} ({})", job.engine.name);
        for (work, path) in house::planned_work(job) {
            line = format!("{line}, {work} {}", weir_report::clean(path, false));
        }
        line + "\n"
    });
    jobs.collect()
}

/// Refuses a port that follows `--web` after a blank: it would be an operand, and no file has its name.
fn refuse_lost_port(run: &Run) -> Result<(), Refusal> {
    let mut pairs = run.command().windows(2);
    let lost = pairs.find_map(|pair| match pair {
        [flag, port] if flag == "--web" => Some(port).filter(|p| p.parse::<u16>().is_ok()),
        _ => None,
    });
    match lost.filter(|port| !Path::new(port).exists()) {
        None => Ok(()),
        Some(port) => Err(Refusal::usage(format!(
            "--web {port}: without `=` it is a job file, and none is called so\n  help: --web={port}"
        ))),
    }
}

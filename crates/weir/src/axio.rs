//! `weir axio`: messages in packets through stages.
//!
//! In: the words after `axio`. Out: the exit code. The table of an iteration is printed when it has ended,
//! the rest with the result. Not here: what the words mean (`weir-doors`), packets (`weir-datapath`).

mod held_input;
mod self_test;

pub(crate) use held_input::END;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use weir_doors::axio::{
    Action, AxioEnvironment, AxioOptions, AxioRun, MachineFacts, STANDARD_INPUT, TrafficSearch,
    backend_list, output as tables, read, read_options, read_search, work_of,
};
use weir_doors::house::{RunFormat, RunOptions, Strict, exit_code};
use weir_doors::request::NamedFile;
use weir_doors::{Printed, Refusal, USAGE};
use weir_run::execute::LiveView;
use weir_schema::{Announcement, EndedBy, PathSide, Plan, RunResult, TargetsPerRank};

use crate::history::Keep;
use crate::measure::{self, MeasureRequest, RunObserver};
use crate::monitor::HostWatch;
use crate::progress::{ProgressMode, ProgressObserver};
use crate::turns::{pause, refuse_launcher};
use crate::{Outcome, diagnose, house_report, output, session, signals, tune};

/// The longest configuration that is read.
const LONGEST_CONFIG: u64 = 16 << 20;

/// The words after `axio`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let is_held = Cell::new(false);
    let environment = AxioEnvironment {
        file: &|name| {
            if name != STANDARD_INPUT {
                return output::read_text(name, LONGEST_CONFIG);
            }
            let (text, holds) = held_input::read_config(LONGEST_CONFIG)?;
            is_held.set(holds);
            Ok(text)
        },
        variable: &|name| std::env::var(name).ok(),
        machine: &machine_facts,
    };
    match read(words, &environment)? {
        Action::Print { out, err, code } => {
            output::error(&err);
            Ok(if output::print(&out) {
                code
            } else {
                code.max(1)
            })
        }
        Action::Backends => {
            let states = weir_datapath::link_states();
            let states: Vec<_> = states
                .into_iter()
                .map(|one| (one.name, one.lacks))
                .collect();
            Ok(u8::from(!output::print(&backend_list(&states))))
        }
        Action::SelfTest => self_test::run(),
        Action::Elsewhere {
            out,
            err,
            verb,
            words,
        } => {
            output::error(&err);
            if !output::print(&out) {
                return Ok(1);
            }
            if verb == "tune" {
                tune::run(&words)
            } else {
                diagnose::run(&words)
            }
        }
        Action::Run(run) => carry_out(*run, is_held.get()),
    }
}

/// Carries a run or a search out, which ends with standard input where that is held open.
fn carry_out(mut run: AxioRun, is_held: bool) -> Outcome {
    if is_held {
        run.history.get_or_insert_with(|| "off".to_owned());
        held_input::end_with_input();
    }
    for note in &run.notes {
        output::error(&format!("note: {note}\n"));
    }
    match &run.search {
        Some(wanted) => search(&run, wanted),
        None => measure(&run, is_held),
    }
}

/// What the verifier looks at.
fn machine_facts() -> MachineFacts {
    let cpus = weir_sys::pin::affinity().map(|cpus| cpus.as_slice().to_vec());
    let cpus = cpus.unwrap_or_default();
    let topology = weir_sys::topology::Topology::of_this_machine();
    let mut nodes: Vec<(u32, usize)> = Vec::new();
    for cpu in cpus {
        let node = topology.node_of(cpu).unwrap_or(0);
        match nodes.iter_mut().find(|(known, _)| *known == node) {
            Some((_, count)) => *count += 1,
            None => nodes.push((node, 1)),
        }
    }
    nodes.sort_unstable();
    let memory = weir_sys::memory::MemoryFacts::read(&weir_sys::Tree::real());
    let free = |page: u64| {
        let pools = memory.huge_pages.iter();
        pools
            .filter(|pool| pool.page.0 == page)
            .map(|pool| pool.free)
            .sum()
    };
    MachineFacts {
        nodes,
        free_huge_pages: [free(2 << 20), free(1 << 30)],
    }
}

/// What is printed of a stored result.
pub(crate) fn printed_again(result: &RunResult, words: &[String]) -> Result<Printed, Refusal> {
    let options = read_options(words)?;
    if let Some(search) = read_search(words)?.filter(|_| !options.is_json) {
        return Ok(Printed {
            out: search.text(result),
            ..Printed::default()
        });
    }
    let head = if options.is_json {
        String::new()
    } else {
        tables::head(&result.plan)
    };
    Ok(Printed {
        out: head + &text_of(result, options, 0)?,
        ..Printed::default()
    })
}

/// What is printed, from an iteration on.
fn text_of(result: &RunResult, options: AxioOptions, shown: usize) -> Result<String, Refusal> {
    if options.is_json {
        let house = RunOptions::usual();
        return Ok(house_report::text_of(result, RunFormat::Json, &house, true));
    }
    let (Some(work), Some(done)) = (work_of(&result.plan), tables::measured(result)) else {
        return Ok(String::new());
    };
    let rest = done.iterations.iter().skip(shown);
    let rest = rest.map(|one| tables::table(one, work, options));
    Ok(rest.collect::<String>() + &tables::ending(done, work))
}

fn measure(run: &AxioRun, is_held: bool) -> Outcome {
    let shown = Shown {
        tables: AtomicUsize::new(0),
        is_held,
    };
    if let Some(file) = &run.monitor {
        let config = run.config.as_ref();
        if config.is_some_and(|config| output::are_same(config, file)) {
            return Err(Refusal::usage(format!(
                "--monitor {file}: this file is the configuration"
            )));
        }
        output::check_writable(file).map_err(|message| Refusal::new(USAGE, message))?;
    }
    let own = Some(std::process::id());
    let watch = run.monitor.as_ref().map(|_| HostWatch::start(own));
    let watch = watch.transpose()?.map(Mutex::new);
    let code = run_watched(run, &shown, watch.as_ref())?;
    let (Some(watch), Some(file)) = (watch, &run.monitor) else {
        return Ok(code);
    };
    let text = watch.into_inner().unwrap_or_else(PoisonError::into_inner);
    let written = output::write_file(file, text.text());
    let failed = written.map_err(|message| output::error(&message)).is_err();
    Ok(code.max(u8::from(failed)))
}

/// What is read and written besides the result.
fn other_files(run: &AxioRun) -> Vec<NamedFile> {
    let config = run.config.iter();
    let config = config.map(|file| NamedFile::written(file, "the configuration"));
    let monitor = run.monitor.iter();
    let monitor = monitor.map(|file| NamedFile::written(file, "where --monitor goes"));
    config.chain(monitor).collect()
}

fn run_watched(run: &AxioRun, shown: &Shown, watch: Option<&Mutex<HostWatch>>) -> Outcome {
    measure::measure(&MeasureRequest {
        plan: &|| Ok(run.plan.clone()),
        ranks: None,
        targets: TargetsPerRank::Own,
        timeout: None,
        store: run.store.as_deref(),
        keep: Keep::Always(run.history.as_deref()),
        other_files: &other_files(run),
        warnings: &[],
        observer: &|_| {
            if !run.options.is_json {
                // Failures of it are told with the result.
                let _ = output::print(&tables::head(&run.plan));
            }
            Box::new(TableObserver {
                progress: ProgressObserver::new(ProgressMode::of_terminal(), &run.plan),
                run,
                shown,
                watch,
            })
        },
        report: &|result| report(result, run.options, shown.tables.load(Ordering::Relaxed)),
    })
}

/// One trial after the other, until what is searched is known.
fn search(run: &AxioRun, search: &TrafficSearch) -> Outcome {
    refuse_launcher("a search of `weir axio`")?;
    let keep = Keep::Always(run.history.as_deref());
    measure::check_store(run.store.as_deref(), &other_files(run))?;
    keep.check()?;
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let mut refusal = None;
    let mut trials = 0_u32;
    let mut carry_out = |plan: Plan| {
        if trials > 0 {
            pause(search.rest, &caught);
        }
        trials += 1;
        if caught.interrupted() && trials > 1 {
            return None;
        }
        let found = Mutex::new(None);
        let outcome = measure::measure_alone(&MeasureRequest::of(
            &|| Ok(plan.clone()),
            &|plan| Box::new(ProgressObserver::new(ProgressMode::of_terminal(), plan)),
            &|result| {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.clone());
                Ok(0)
            },
        ));
        refusal = outcome.err();
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    let result = search.run(&run.plan, &mut carry_out);
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let Some(mut result) = result else {
        return Err(Refusal::usage("there is nothing to search"));
    };
    if caught.interrupted() && result.ended_by.is_none() {
        // Between two trials.
        let signal = caught.number.load(Ordering::Relaxed);
        result.ended_by = Some(EndedBy { signal });
        result.complete = false;
    }
    measure::conclude(result, keep, run.store.as_deref(), &|result| {
        signals::release();
        let text = if run.options.is_json {
            text_of(result, run.options, 0)?
        } else {
            search.text(result)
        };
        let is_good = output::print(&text) && search.has_found_all(result);
        session::tell_failures(result);
        Ok(exit_code(result, &Strict::No).max(u8::from(!is_good)))
    })
}

/// Prints what is not printed yet; the exit code.
fn report(result: &RunResult, options: AxioOptions, shown: usize) -> Outcome {
    signals::release();
    let is_good = output::print(&text_of(result, options, shown)?);
    session::tell_failures(result);
    Ok(exit_code(result, &Strict::No).max(u8::from(!is_good)))
}

/// Text that is printed while a run lasts.
struct Shown {
    /// Iterations that are printed.
    tables: AtomicUsize,
    /// Standard input is held by whoever started this side and waits for READY.
    is_held: bool,
}

/// Prints the table of each iteration when it has ended.
struct TableObserver<'a> {
    progress: ProgressObserver,
    run: &'a AxioRun,
    shown: &'a Shown,
    /// What the host does.
    watch: Option<&'a Mutex<HostWatch>>,
}

impl RunObserver for TableObserver<'_> {
    fn announce(&self, announcement: &Announcement) {
        match announcement {
            Announcement::Listening { address } if self.shown.is_held => {
                // Whoever waits for it and is gone ends standard input too.
                let _ = output::print(&format!("READY {address}\n"));
            }
            // A note before the run has it.
            Announcement::Listening { .. } => {}
            _ => self.progress.announce(announcement),
        }
    }

    fn observe(&self, view: &LiveView<'_>) {
        if let Some(watch) = self.watch {
            watch.lock().unwrap_or_else(PoisonError::into_inner).look();
        }
        self.progress.observe(view);
        if self.run.options.is_json {
            return;
        }
        let result = view.result();
        let Some((work, done)) = work_of(&self.run.plan).zip(tables::measured(&result)) else {
            return;
        };
        // The server's figures come when all is over.
        let waits = work.side == Some(PathSide::Client) && self.run.options.has_server;
        if waits {
            return;
        }
        let first = self.shown.tables.load(Ordering::Relaxed);
        let ended = done.iterations.iter().skip(first);
        let text = ended.map(|one| tables::table(one, work, self.run.options));
        let text: String = text.collect();
        if text.is_empty() {
            return;
        }
        self.progress.erase();
        if output::print(&text) {
            self.shown
                .tables
                .store(done.iterations.len(), Ordering::Relaxed);
        }
    }

    fn done(&self, result: &mut RunResult) {
        self.progress.done(result);
    }

    fn refusal(&self, job: &str, why: &str) -> String {
        self.progress.refusal(job, why)
    }
}

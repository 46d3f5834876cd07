//! `weir fio`, or a link named `fio`: the peer's command line, output and exit codes.

mod display;
mod idle;
mod report;
mod self_test;

use std::cell::RefCell;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::fio::output::{
    Idleness, banner, complaints, failures, reservations, signal_notice,
};
use weir_doors::fio::{self, Action, FioOptions, FioRun, USAGE, complaint, exit_code, read};
use weir_doors::request::NamedFile;
use weir_jobfile::{Compiled, Context, FioPlan, compile};
use weir_run::execute::LiveView;
use weir_schema::{Announcement, FileNames, Plan, RunResult, TargetsPerRank};

use crate::history::Keep;
use crate::measure::{self, MeasureRequest};
use crate::{Outcome, environment, output, printed, runners, signals, written_files};
use display::FioDisplay;
use report::FioReport;

/// The words after `fio`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words, &runners::catalogue())? {
        Action::Print(text) => return Ok(printed(&text)),
        // The kernel takes back at the end what thousands of jobs would give back one by one.
        Action::ParseOnly(run) => std::mem::forget(compiled(&run)?),
        Action::ShowCommand(run) => return Ok(printed(&(compiled(&run)?.show_command + "\n"))),
        Action::ShowPlan(run) => {
            let plan = compiled(&run)?.plan;
            let text = plan
                .to_json()
                .map_err(|e| Refusal::new(USAGE, e.to_string()))?;
            return Ok(printed(&(text + "\n")));
        }
        Action::Checksums(methods) => return Ok(self_test::checksums(&methods)),
        Action::ClockTest => return self_test::clock(),
        Action::InflateLog(path) => return inflate(&path),
        Action::IdleUnit => return Ok(printed(&idle::unit().text())),
        Action::Run(run) => return measure(&run),
    }
    Ok(0)
}

fn compiled(run: &FioRun) -> Result<Compiled, Refusal> {
    let environment = environment::read();
    let context = Context {
        environment: &environment,
        catalogue: &runners::catalogue(),
        files: &environment::RealFiles,
    };
    let mut compiled =
        compile(&run.request, &context).map_err(|all| Refusal::new(USAGE, complaint(&all)))?;
    let is_fatal = run.options.warnings_fatal && !compiled.notes.is_empty();
    compiled.notes.splice(0..0, run.notes.iter().cloned());
    let notes = compiled.notes.iter();
    let notes: String = notes
        .flat_map(|note| ["note: ", note.as_str(), "\n"])
        .collect();
    if is_fatal {
        return Err(Refusal::new(USAGE, notes));
    }
    note(&notes);
    if run.options.shows_parsing {
        output::print(&fio::parsing(&compiled.plan));
    }
    compiled.plan.total_log = run.options.total_log();
    if let Some(directory) = &run.options.aux_path {
        compiled.plan.set_verify_directory(directory);
    }
    Ok(compiled)
}

/// Prints what people should know. Programs that start fio take a line on standard error for a
/// failure: they find it in the JSON document.
fn note(text: &str) {
    if std::io::stderr().is_terminal() {
        output::error(text);
    }
}

/// Prints the text of a compressed log.
fn inflate(path: &str) -> Outcome {
    let refusal = |error: std::io::Error| Refusal::new(USAGE, format!("fio: {path}: {error}"));
    let file = std::fs::File::open(path).map_err(refusal)?;
    let print = |piece: &[u8]| {
        output::print(&String::from_utf8_lossy(piece));
    };
    weir_run::inflate_log(file, print).map_err(refusal)?;
    Ok(0)
}

fn measure(run: &FioRun) -> Outcome {
    let Compiled {
        mut plan, notes, ..
    } = compiled(run)?;
    FioPlan::keep_notes(&mut plan, notes);
    refuse_absent_directories(&plan)?;
    let options = &run.options;
    if let Some(path) = &options.output {
        output::check_writable(path).map_err(|message| Refusal::new(USAGE, message))?;
    }
    let written = options.output.iter().chain(&options.store);
    let written: Vec<_> = written.map(String::as_str).collect();
    written_files::refuse_targets(&plan, &written).map_err(|r| Refusal { code: USAGE, ..r })?;
    let texts = options.texts(utc_offset_s());
    let idle = options.idleness.map(idle::Before::read);
    let during = During {
        report: FioReport::new(options, texts),
        idleness: OnceLock::new(),
        forewarned: Mutex::default(),
    };
    let request = MeasureRequest {
        plan: &|| Ok(plan.clone()),
        ranks: None,
        targets: TargetsPerRank::Own,
        timeout: None,
        store: options.store.as_deref(),
        keep: Keep::WhereNamed,
        other_files: &other_files(run),
        warnings: &[],
        observer: &|_| {
            let banner = banner(&plan, texts, env!("CARGO_PKG_VERSION"));
            during.report.print(&banner);
            Box::new(FioRunObserver {
                display: RefCell::new(FioDisplay::new(&plan, options)),
                idle: idle.clone(),
                during: &during,
            })
        },
        report: &|result| finish(result, options, &during),
    };
    measure::measure_alone(&request).map_err(|refusal| Refusal {
        // 3 are three failed jobs.
        code: USAGE,
        ..refusal
    })
}

/// A directory for files that is not there ends everything, as in fio: it is no matter of one job.
fn refuse_absent_directories(plan: &Plan) -> Result<(), Refusal> {
    let files = plan.jobs().filter_map(|(_, job)| job.workload.blocks());
    let mut named = files.flat_map(|work| match &work.targets.files {
        FileNames::Listed { directories, .. } | FileNames::Generated { directories, .. } => {
            &directories[..]
        }
        _ => &[],
    });
    match named.find(|name| !Path::new(name).is_dir()) {
        None => Ok(()),
        Some(name) => Err(Refusal::new(
            USAGE,
            format!("fio: {name} is not a directory\nfio: failed parsing directory={name}"),
        )),
    }
}

/// What is read and written besides the result.
fn other_files(run: &FioRun) -> Vec<NamedFile> {
    let read = run.request.files();
    let read = read.map(|path| NamedFile::read(path, "a job file"));
    let written = run.options.output.iter();
    let written = written.map(|path| NamedFile::written(path, "where the report goes (--output)"));
    read.chain(written).collect()
}

/// What a run leaves for its report.
struct During<'a> {
    report: FioReport<'a>,
    idleness: OnceLock<Idleness>,
    /// Jobs that cannot run, and why.
    forewarned: Mutex<Vec<(String, String)>>,
}

impl During<'_> {
    /// Nobody panics while holding it.
    fn forewarned(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        let lock = self.forewarned.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the door says while its jobs run.
struct FioRunObserver<'a> {
    display: RefCell<FioDisplay<'a>>,
    idle: Option<idle::Before>,
    during: &'a During<'a>,
}

impl measure::RunObserver for FioRunObserver<'_> {
    fn announce(&self, announcement: &Announcement) {
        let text = fio::announcement(announcement);
        self.during.report.print(&format!("{text}\n"));
    }

    fn observe(&self, view: &LiveView<'_>) {
        if self.display.borrow_mut().observe(view) {
            self.during.report.interim(&view.result());
        }
    }

    fn runs_the_rest(&self) -> bool {
        true
    }

    fn forewarn(&self, job: &str, why: &str) {
        output::error(&format!("note: {job} cannot run: {why}\n"));
        let forewarned = (job.to_owned(), why.to_owned());
        self.during.forewarned().push(forewarned);
    }

    fn done(&self, _result: &mut RunResult) {
        if let Some(idle) = &self.idle {
            self.during.idleness.get_or_init(|| idle.idleness());
        }
        self.display.borrow().run_trigger();
    }
}

/// Prints what came of it; the exit code.
fn finish(result: &RunResult, options: &FioOptions, during: &During<'_>) -> Outcome {
    let report = &during.report;
    signals::release();
    if let Some(end) = result.ended_by {
        report.say(&signal_notice(end.signal));
    }
    output::error(&complaints(result, &during.forewarned()));
    note(&reservations(result));
    report.say(&failures(result));
    report.finish(result, during.idleness.get())?;
    // Threads of a hung job are left behind; what they printed has to be out first.
    let _ = std::io::stdout().flush();
    Ok(exit_code(result, options.exit))
}

/// Local time minus UTC, from `TZ` files of the system where they say so; UTC otherwise.
pub(crate) fn utc_offset_s() -> i32 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    weir_sys::local_time::utc_offset_s(now.as_secs())
}

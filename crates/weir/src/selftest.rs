//! `weir selftest`: RPCs to servers and their replies.
//!
//! In: the words after `selftest`. Out: the exit code. The text of a pair of sizes is printed when its
//! group has ended, the rest with the result. Not here: what the words mean (`weir-doors`), RPCs
//! (`weir-rpc`).

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::house::{RunFormat, RunOptions};
use weir_doors::request::NamedFile;
use weir_doors::selftest::{
    Action, DOOR, RateSearch, SelfTestEnvironment, SelfTestMode, SelfTestOptions, SelfTestRun,
    exit_code, has_cart_codes, in_style_of, log_settings, output as blocks, read, read_options,
    samples,
};
use weir_doors::{Printed, Refusal, USAGE};
use weir_rpc::group::RpcGroup;
use weir_run::execute::LiveView;
use weir_schema::{
    Announcement, Failure, Gravity, Plan, RankTags, RpcWorkload, RunResult, Warning,
};
use weir_sys::limits::most_open_files;

use crate::history::Keep;
use crate::measure::{self, MeasureRequest, RunObserver};
use crate::progress::{ProgressMode, ProgressObserver};
use crate::stall::StallWatch;
use crate::turns::refuse_launcher;
use crate::{Outcome, house_report, output, printed, repeat, session, signals};

/// The longest text of samples that is read.
const LONGEST_SAMPLES: u64 = 1 << 30;

/// The words after `selftest`.
pub(crate) fn run(words: &[String]) -> Outcome {
    let is_cart = has_cart_codes(&|name| std::env::var(name).ok())?;
    let is_logged = start_log();
    let outcome = is_logged.and_then(|()| run_words(words, is_cart));
    outcome.map_err(|refusal| Refusal {
        code: in_style_of(refusal.code, None, is_cart),
        ..refusal
    })
}

/// Begins the log that the environment asks for.
pub(crate) fn start_log() -> Result<(), Refusal> {
    match log_settings(&|name| std::env::var(name).ok())? {
        Some(log) => output::log_to(&log)
            .map_err(|why| Refusal::usage(format!("the variable D_LOG_FILE: {why}"))),
        None => Ok(()),
    }
}

fn run_words(words: &[String], is_cart: bool) -> Outcome {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = seed.map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs());
    let environment = SelfTestEnvironment {
        variable: &|name| std::env::var(name).ok(),
        is_directory: &|path| Path::new(path).is_dir(),
        has_file: &|path| Path::new(path).is_file(),
        is_taken: &|path| Path::new(path).symlink_metadata().is_ok(),
        members: &members,
        is_linked: is_linked(),
        seed,
        most_files: most_open_files(),
    };
    match read(words, &environment)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Replay { file, options } => replay(&file, &options, is_cart),
        Action::Repeat { run, repeat, notes } => {
            print_notes(&notes);
            repeat::run(&run, repeat, &[], &|_| ())
        }
        Action::Run(run) => {
            print_notes(&run.notes);
            match run.mode {
                SelfTestMode::Run if run.options.goal.is_some() => search(&run, is_cart),
                SelfTestMode::Run => measure(&run, is_cart),
                SelfTestMode::DryRun => dry_run(&run),
                SelfTestMode::ShowPlan => {
                    let text = run.plan.to_json().map_err(Refusal::usage)?;
                    Ok(printed(&format!("{}\n", text.trim_end())))
                }
            }
        }
    }
}

/// What would be done, unless a run would be refused. What ranks there are nobody can say without a table.
fn dry_run(run: &SelfTestRun) -> Outcome {
    check_samples(run)?;
    if run.finds_group {
        let shown = ShownText::new(run, 0);
        session::check(&run.plan, &BlockObserver::new(run, &run.plan, &shown))?;
    }
    Ok(printed(&blocks::head(&run.plan, &run.options)))
}

/// Whether this process was called by another name than weir's: by that of the older program.
fn is_linked() -> bool {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name();
    name.is_some_and(|name| DOOR.links.iter().any(|link| name == link.name))
}

fn print_notes(notes: &[String]) {
    for note in notes {
        let before = if note.starts_with("warning: ") {
            ""
        } else {
            "note: "
        };
        output::error(&format!("{before}{note}\n"));
    }
}

/// The members of the group that a workload names.
fn members(work: &RpcWorkload) -> Result<Vec<RankTags>, String> {
    let group = RpcGroup::of(work, Path::new("")).map_err(|failure| failure.message)?;
    Ok(group.ranks())
}

fn replay(file: &str, options: &SelfTestOptions, is_cart: bool) -> Outcome {
    let refuse = |why: String| Refusal::usage(format!("--replay {file}: {why}"));
    let text = samples_text(file).map_err(refuse)?;
    let sampled = samples::read(&text).map_err(refuse)?;
    let result = samples::result(&sampled.masters);
    let code = exit_code(&result, options).max(sampled.exit_code);
    let code = printed(&text_of(&result, options)).max(code);
    Ok(in_style_of(code, Some(&result), is_cart))
}

/// What is no text of samples is refused by its first line, so that nothing endless is read.
fn samples_text(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let kind = file.metadata().map_err(|e| e.to_string())?.file_type();
    if kind.is_dir() {
        return Err("it is a directory".to_owned());
    }
    if kind.is_char_device() || kind.is_block_device() {
        return Err("it is a device; samples are in a file, or come through a pipe".to_owned());
    }
    let mut reader = BufReader::new(file);
    let mut head = Vec::new();
    let longest = samples::HEAD.len() as u64 + 64;
    let is_read = (&mut reader).take(longest).read_until(b'\n', &mut head);
    is_read.map_err(|e| e.to_string())?;
    let head = String::from_utf8_lossy(&head).into_owned();
    if head.trim_end() != samples::HEAD {
        return Err(samples::no_head());
    }
    Ok(head + &output::read_text_of(reader, LONGEST_SAMPLES)?)
}

fn text_of(result: &RunResult, options: &SelfTestOptions) -> String {
    let of_house = || {
        let house = RunOptions::usual();
        house_report::text_of(result, RunFormat::Json, &house, true)
    };
    blocks::text(result, options).unwrap_or_else(of_house)
}

/// What is printed of a stored result.
pub(crate) fn printed_again(result: &RunResult, words: &[String]) -> Result<Printed, Refusal> {
    let options = read_options(words)?;
    Ok(Printed {
        out: blocks::head(&result.plan, &options) + &text_of(result, &options),
        ..Printed::default()
    })
}

fn measure(run: &SelfTestRun, is_cart: bool) -> Outcome {
    let shown = ShownText::new(run, 0);
    let other_files = other_files(run);
    check_samples(run)?;
    measure::measure(&MeasureRequest {
        store: run.store.as_deref(),
        keep: Keep::Always(run.history.as_deref()),
        other_files: &other_files,
        ..MeasureRequest::of(
            &|| Ok(run.plan.clone()),
            &|_| Box::new(BlockObserver::new(run, &run.plan, &shown)),
            &|result| {
                let _due = run.samples.as_deref().map(output::DueFile::of);
                let code = report(result, &run.options, &shown).max(store_samples(run, result));
                Ok(in_style_of(code, Some(result), is_cart))
            },
        )
    })
}

fn other_files(run: &SelfTestRun) -> Vec<NamedFile> {
    let samples = run.samples.iter();
    samples
        .map(|file| NamedFile::written(file, "that of --samples"))
        .collect()
}

/// Finds out before the run whether samples can be stored.
fn check_samples(run: &SelfTestRun) -> Result<(), Refusal> {
    let Some(file) = &run.samples else {
        return Ok(());
    };
    output::check_writable(file).map_err(|why| Refusal::new(USAGE, of_samples(&why)))
}

/// An error of the file with the option that it is of.
fn of_samples(why: &str) -> String {
    format!(
        "error: --samples: {}",
        why.strip_prefix("error: ").unwrap_or(why)
    )
}

/// 1 where they cannot be stored.
fn store_samples(run: &SelfTestRun, result: &RunResult) -> u8 {
    let Some(file) = &run.samples else {
        return 0;
    };
    let kept = samples::kept(result, exit_code(result, &run.options));
    let written = output::write_file(file, samples::print(&kept));
    written.map_or_else(
        |why| {
            output::error(&of_samples(&why));
            1
        },
        |()| 0,
    )
}

/// One step after another, until the rate is known.
fn search(run: &SelfTestRun, is_cart: bool) -> Outcome {
    refuse_launcher("--find-max")?;
    let keep = Keep::Always(run.history.as_deref());
    measure::check_store(run.store.as_deref(), &[])?;
    keep.check()?;
    let mut search = run
        .options
        .goal
        .map(|goal| RateSearch::new(run.plan.clone(), goal));
    // Blocks come with the table.
    let shown = ShownText::new(run, usize::MAX);
    while let Some(plan) = search.as_ref().and_then(RateSearch::next_plan) {
        let found = Mutex::new(None);
        measure::measure_alone(&MeasureRequest::of(
            &|| Ok(plan.clone()),
            &|plan| Box::new(BlockObserver::new(run, plan, &shown)),
            &|result| {
                *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.clone());
                Ok(0)
            },
        ))?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (Some(search), Some(result)) = (&mut search, found) else {
            break;
        };
        search.take(result);
    }
    let Some(result) = search.and_then(RateSearch::into_result) else {
        return Err(Refusal::usage("--find-max: there is nothing to measure"));
    };
    shown.blocks.store(0, Ordering::Relaxed);
    measure::conclude(result, keep, run.store.as_deref(), &|result| {
        let code = report(result, &run.options, &shown);
        Ok(in_style_of(code, Some(result), is_cart))
    })
}

/// Prints what is not printed yet; the exit code.
fn report(result: &RunResult, options: &SelfTestOptions, shown: &ShownText) -> u8 {
    signals::release();
    shown.begin();
    let first = shown.blocks.load(Ordering::Relaxed);
    let text = if first == 0 {
        text_of(result, options)
    } else {
        let rest = first..result.groups.len();
        let rest = rest.map(|group| blocks::block(result, group, options));
        rest.collect::<String>() + &blocks::ending(result, options)
    };
    let is_good = output::print(&text) && !shown.is_lost.load(Ordering::Relaxed);
    for warning in disturbing(result) {
        output::error(&format!("warning: {}\n", sentence(warning)));
    }
    tell_failures(result);
    if !blocks::has_blocks(options) {
        tell_failed_masters(result);
    }
    exit_code(result, options).max(u8::from(!is_good))
}

/// Why jobs failed; once where all pairs of sizes failed alike.
fn tell_failures(result: &RunResult) {
    let mut all = result.jobs().map(|job| job.failure.as_ref());
    let first = all.next().flatten();
    let is_alike = first.is_some_and(|first| {
        let has_same = |other: Option<&Failure>| other.is_some_and(|f| f.message == first.message);
        all.all(has_same)
    });
    match first.filter(|_| is_alike) {
        Some(first) => output::error(&format!("error: {}\n", first.message)),
        None => session::tell_failures(result),
    }
}

/// Masters on servers that failed: rows and metrics are of those that have measured.
fn tell_failed_masters(result: &RunResult) {
    for job in result.jobs().filter(|job| job.failure.is_none()) {
        let masters = job.rpc().into_iter().flat_map(|done| &done.masters);
        for (master, why) in masters.filter_map(|one| Some((one.endpoint, one.failure.as_ref()?))) {
            let text = format!("{}: master {master} failed: {}", job.name, why.message);
            output::error(&format!("error: {text}\n"));
        }
    }
}

/// Warnings of what took part in the figures beside what was measured, and of the way to the servers,
/// each kind once. The others are in the result.
fn disturbing(result: &RunResult) -> Vec<&Warning> {
    let mut all: Vec<&Warning> = Vec::new();
    for warning in &result.warnings {
        let of_way = is_of_way(warning);
        let is_known = all
            .iter()
            .any(|known| known.id == warning.id && (!of_way || known.cause == warning.cause));
        if (of_way || warning.gravity() < Gravity::Uncertain) && !is_known {
            all.push(warning);
        }
    }
    all.sort_by_key(|warning| warning.gravity());
    all
}

/// About the way to the servers, which all pairs of sizes have in common.
fn is_of_way(warning: &Warning) -> bool {
    warning.id.starts_with("rpc-")
}

fn sentence(warning: &Warning) -> String {
    match &warning.job {
        Some(job) if !is_of_way(warning) => format!("{job}: {}", warning.cause),
        _ => warning.cause.clone(),
    }
}

/// What is printed while a run goes on.
struct ShownText {
    /// What stands before the results, until it is printed.
    head: Mutex<Option<String>>,
    /// Groups whose blocks are printed.
    blocks: AtomicUsize,
    /// Something could not be printed.
    is_lost: AtomicBool,
}

impl ShownText {
    fn new(run: &SelfTestRun, blocks: usize) -> Self {
        Self {
            head: Mutex::new(Some(blocks::head(&run.plan, &run.options))),
            blocks: AtomicUsize::new(blocks),
            is_lost: AtomicBool::new(false),
        }
    }

    /// The run has begun, or is over: it was not refused.
    fn begin(&self) {
        let head = self
            .head
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if head.is_some_and(|head| !output::print(&head)) {
            self.is_lost.store(true, Ordering::Relaxed);
        }
    }
}

/// Prints the block of each group when it has ended, and shows how far the others are.
struct BlockObserver<'a> {
    progress: ProgressObserver,
    stall: StallWatch,
    plan: Plan,
    options: &'a SelfTestOptions,
    shown: &'a ShownText,
    /// Why jobs were refused: pairs of sizes are often refused alike.
    refused: RefCell<Vec<String>>,
}

impl<'a> BlockObserver<'a> {
    fn new(run: &'a SelfTestRun, plan: &Plan, shown: &'a ShownText) -> Self {
        let mode = match ProgressMode::of_terminal() {
            ProgressMode::None if run.options.has_progress => ProgressMode::Plain,
            mode => mode,
        };
        Self {
            progress: ProgressObserver::new(mode, plan).with_beginning("warm-up"),
            stall: StallWatch::new(run.stall),
            plan: plan.clone(),
            options: &run.options,
            shown,
            refused: RefCell::default(),
        }
    }

    /// Groups from the first that is not printed to the last that has ended.
    fn next_groups(&self, view: &LiveView<'_>) -> usize {
        let first = self.shown.blocks.load(Ordering::Relaxed);
        let ended = view.ended();
        let has_ended = |index| ended.iter().any(|job| job.index == index);
        let groups = first..self.plan.groups.len();
        let whole = groups.take_while(|group| blocks::is_whole(&self.plan, *group, has_ended));
        first + whole.count()
    }
}

impl RunObserver for BlockObserver<'_> {
    fn announce(&self, announcement: &Announcement) {
        self.shown.begin();
        self.progress.announce(announcement);
    }

    fn observe(&self, view: &LiveView<'_>) {
        self.shown.begin();
        self.progress.observe(view);
        if let Some(note) = self.stall.look(view, &self.plan) {
            self.progress.erase();
            output::error(&note);
        }
        let first = self.shown.blocks.load(Ordering::Relaxed);
        let next = self.next_groups(view);
        if next == first || !blocks::has_blocks(self.options) {
            return;
        }
        let result = view.result();
        let text = (first..next).map(|group| blocks::block(&result, group, self.options));
        let text: String = text.collect();
        self.progress.erase();
        if output::print(&text) {
            self.shown.blocks.store(next, Ordering::Relaxed);
        }
    }

    fn done(&self, result: &mut RunResult) {
        self.progress.done(result);
    }

    fn refusal(&self, _job: &str, why: &str) -> String {
        let mut refused = self.refused.borrow_mut();
        if refused.iter().any(|known| known == why) {
            return String::new();
        }
        refused.push(why.to_owned());
        format!("error: {why}\n")
    }
}

//! `weir fio`, or a link named `fio`: the peer's command line, output and exit codes.

mod idle;
mod report;
mod self_test;
mod watch;

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::Refusal;
use weir_doors::fio::output::{banner, complaints, failures, signal_notice};
use weir_doors::fio::{Action, LACKS, Run, USAGE, complaint, exit_code, read};
use weir_jobfile::{Compiled, Context, compile};
use weir_run::execute::LiveView;

use crate::session::{self, Choices};
use crate::{Outcome, output, printed, signals, surroundings};
use report::Report;
use watch::Watch;

/// The words after `fio`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words, &weir_block::catalogue())? {
        Action::Print(text) => return Ok(printed(&text)),
        Action::ParseOnly(run) => {
            compiled(&run)?;
        }
        Action::ShowCommand(run) => return Ok(printed(&(compiled(&run)?.show_command + "\n"))),
        Action::ShowPlan(run) => {
            let plan = compiled(&run)?.plan;
            let text = plan.to_json().map_err(|e| Refusal {
                message: format!("{e}\n"),
                code: USAGE,
            })?;
            return Ok(printed(&(text + "\n")));
        }
        Action::Checksums(methods) => return Ok(self_test::checksums(&methods)),
        Action::ClockTest => return self_test::clock(),
        Action::IdleUnit => return Ok(printed(&idle::unit().text())),
        Action::Run(run) => return measure(&run),
    }
    Ok(0)
}

fn compiled(run: &Run) -> Result<Compiled, Refusal> {
    let surroundings = surroundings::read();
    let context = Context {
        surroundings: &surroundings,
        catalogue: &weir_block::catalogue(),
        files: &surroundings::RealFiles,
    };
    let mut compiled = compile(&run.request, &context).map_err(|all| Refusal {
        message: complaint(&all),
        code: USAGE,
    })?;
    for note in run.notes.iter().chain(&compiled.notes) {
        output::error(&format!("note: {note}\n"));
    }
    compiled.plan.total_log = run.options.total_log();
    if run.options.warnings_fatal && !compiled.notes.is_empty() {
        return Err(Refusal {
            message: String::new(),
            code: USAGE,
        });
    }
    if let Some(directory) = &run.options.aux_path {
        compiled.plan.set_verify_directory(directory);
    }
    Ok(compiled)
}

fn measure(run: &Run) -> Outcome {
    let plan = compiled(run)?.plan;
    let options = &run.options;
    if let Some(path) = &options.output {
        output::check_writable(path).map_err(|message| Refusal {
            message,
            code: USAGE,
        })?;
    }
    let texts = options.texts(utc_offset_s());
    let idle = options.idleness.map(idle::Before::read);
    let report = Report::new(options, texts);
    report.tell(&banner(&plan, texts, env!("CARGO_PKG_VERSION")));
    let mut watch = Watch::new(&plan, options);
    let mut observer = |view: &LiveView<'_>| {
        if watch.look(view) {
            report.interim(&view.result());
        }
    };
    let mut told = Vec::new();
    let mut forewarn = |job: &str, why: &str| {
        output::error(&format!("note: {job} cannot run: {why}\n"));
        told.push((job.to_owned(), why.to_owned()));
    };
    let choices = Choices {
        announce: &|text| report.tell(&format!("{text}\n")),
        observer: Some(&mut observer),
        forewarn: Some(&mut forewarn),
        usage: USAGE,
        others: None,
        crew: None,
        monitor: None,
        agree: None,
    };
    let result = session::run(&plan, choices).map_err(|refusal| Refusal {
        code: if refusal.code == LACKS { LACKS } else { USAGE },
        ..refusal
    })?;
    let idleness = idle.map(idle::Before::idleness);
    watch.run_trigger();
    signals::release();
    if let Some(end) = result.ended_by {
        report.say(&signal_notice(end.signal));
    }
    output::error(&complaints(&result, &told));
    report.say(&failures(&result));
    report.finish(&result, idleness.as_ref())?;
    // Threads of a hung job are left behind; what they printed has to be out first.
    let _ = std::io::stdout().flush();
    Ok(exit_code(&result, options.exit))
}

/// Local time minus UTC, from `TZ` files of the system where they say so; UTC otherwise.
fn utc_offset_s() -> i32 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    weir_sys::local_time::utc_offset_s(now.as_secs())
}

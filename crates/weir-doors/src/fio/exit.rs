//! End of the fio door: exit codes, and messages about jobs that are wrong.

use weir_jobfile::Diagnostic;
use weir_schema::RunResult;

use super::ExitStyle;
use super::output::failed_workers;

/// A signal ended the run.
const SIGNALLED: u8 = 128;
/// Larger numbers of failed jobs are not told apart.
const MOST_FAILED: u8 = 125;

/// The exit code of a run: the number of failed jobs, clones counted one by one, or 128 after a
/// signal; with [`ExitStyle::Unix`] 1 and 128 + signal.
pub fn exit_code(result: &RunResult, style: ExitStyle) -> u8 {
    let failed = u8::try_from(failed_workers(result))
        .unwrap_or(u8::MAX)
        .min(MOST_FAILED);
    match (result.ended_by, style) {
        (Some(_), ExitStyle::Fio) => SIGNALLED,
        (Some(end), ExitStyle::Unix) => {
            SIGNALLED.saturating_add(u8::try_from(end.signal).unwrap_or(0))
        }
        (None, ExitStyle::Fio) => failed,
        (None, ExitStyle::Unix) => failed.min(1),
    }
}

/// Faults of the jobs, for standard error: each fault with its place, then the
/// sentences that fio says about it.
pub fn complaint(diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&diagnostic.render());
        for sentence in &diagnostic.peer {
            push!(out, "{sentence}\n");
        }
    }
    out
}

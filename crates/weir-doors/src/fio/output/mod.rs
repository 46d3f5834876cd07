//! fio's dialect of a result: the text of the normal report, the JSON document, terse lines.
//!
//! In: a plan (banners) or a result, and what the command line says about the output. Out:
//! text; each can be made again from the stored result. Not here: writing it anywhere, choosing
//! streams.

#[cfg(test)]
mod against_fio;
mod banner;
mod course;
mod disks;
mod entry;
mod eta;
mod idleness;
mod json;
mod kind_sums;
mod latency;
mod mismatch;
mod normal;
mod numbers;
mod percentile;
#[cfg(test)]
pub(crate) mod sample;
mod terse;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use banner::failed_workers;
pub use banner::{banner, complaints, failures, reservations, signal_notice};
pub use eta::EtaLine;
pub use idleness::Idleness;
pub use json::json;
pub use normal::normal;
pub use terse::{TerseVersion, terse};

use weir_schema::{Failure, RunResult};

/// Facts beside plan and result that the texts depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct FioTextOptions {
    /// Call the program `fio-3.33` where it says its version.
    pub compat_banner: bool,
    /// Local time minus UTC.
    pub utc_offset_s: i32,
    /// JSON: histograms as well (`json+`).
    pub bins: bool,
    /// JSON: the document is one line.
    pub one_line: bool,
    /// JSON: the run goes on.
    pub partial: bool,
    /// The layout of terse lines.
    pub terse: TerseVersion,
}

impl FioTextOptions {
    fn local_seconds(self, result: &RunResult) -> i64 {
        let seconds = end_ns(result) / 1_000_000_000;
        i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_add(i64::from(self.utc_offset_s))
    }
}

/// The end of the run, nanoseconds since 1970.
fn end_ns(result: &RunResult) -> u64 {
    result.started_unix_ns.saturating_add(result.duration_ns.0)
}

/// The version of fio that this dialect is checked against.
pub const FIO_VERSION: &str = "fio-3.33";

fn version_text(options: FioTextOptions, weir_version: &str, separator: &str) -> String {
    if options.compat_banner {
        FIO_VERSION.to_owned()
    } else {
        format!("weir{separator}{weir_version}")
    }
}

/// Where nothing says which error it was.
const EIO: i32 = 5;

/// The errno that fio would report for a failure.
fn errno_of(failure: &Failure) -> i32 {
    const ENOMEM: i32 = 12;
    const ETIMEDOUT: i32 = 110;
    failure.errno.unwrap_or(match failure.cause.as_str() {
        "memory" => ENOMEM,
        "max_latency" | "hung" => ETIMEDOUT,
        _ => EIO,
    })
}

/// Place, cause and text of a failure, in the shape of fio's error lines.
fn verror(failure: &Failure) -> String {
    let place = failure.target.as_deref().unwrap_or("-");
    let verified = if failure.cause == "mismatch" {
        " (data verification failed)"
    } else {
        ""
    };
    format!(
        "file:{place}, func={}, error={}{verified}",
        function_of(failure),
        strerror(errno_of(failure))
    )
}

/// Place of a failure in fio's own code, where it has one.
fn function_of(failure: &Failure) -> &str {
    match failure.cause.as_str() {
        "io" => "io_u error",
        "end" => "full resid",
        "minimum_rate" => "check_min_rate",
        "max_latency" => "max latency exceeded",
        cause => cause,
    }
}

/// The system's text for an errno.
fn strerror(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

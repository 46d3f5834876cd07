//! Results of other programs, read as results of weir, so that they are shown, compared and kept as
//! weir's own are.
//!
//! In: the text of a file. Out: a [`RunResult`] with the figures that the file holds, in weir's units,
//! and nothing that it does not hold; or the line that cannot be read. A format is recognised by what
//! stands in the text, never by its name. Not here: reading files, showing results.
#![forbid(unsafe_code)]

mod csv;
mod error;
mod fields;
mod fio;
mod fio_schema;
mod foreign;
mod hdr;
mod hlog;
mod hpcc_fpga;
mod hyperfine;
mod io500;
mod ior;
mod ior_json;
mod json;
mod kio;
mod lines;
mod mdtest;
mod self_test;
mod spdk;
mod vos_perf;

use weir_schema::RunResult;

pub use csv::{Column, import_csv};
pub use error::ImportError;
use foreign::{ForeignRun, checked};

/// A format of results.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its name on command lines.
    pub name: &'static str,
    /// Program and forms of the results.
    pub meaning: &'static str,
    is_in: fn(&str) -> bool,
    read: fn(&str) -> Result<ForeignRun, ImportError>,
}

/// Every format that is read.
pub const FORMATS: &[Format] = &[
    fio::FORMAT,
    hyperfine::FORMAT,
    hpcc_fpga::FORMAT,
    ior::FORMAT,
    mdtest::FORMAT,
    io500::FORMAT,
    spdk::FORMAT,
    vos_perf::FORMAT,
    self_test::FORMAT,
    kio::FORMAT,
    hlog::FORMAT,
];

impl Format {
    /// The format of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// The format of a text, by what stands in it.
    pub fn of(text: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| (format.is_in)(text))
    }

    /// The result that a text in this format holds. `file` is what its figures are named after.
    ///
    /// # Errors
    /// The line that cannot be read, or where the text ends too early.
    pub fn import(&self, text: &str, file: &str) -> Result<RunResult, ImportError> {
        checked(&(self.read)(text)?.into_result(self.name, file))
    }
}

#[cfg(test)]
mod tests;

//! Facts of the machine that reading a command line may ask for.
//!
//! In: nothing. Out: the trait [`Machine`], which the program implements once over the real machine
//! and tests over made-up ones. Every method has an answer for a machine that has nothing.

use weir_schema::catalogue::TransportCatalogue;

use crate::axio::MachineFacts;

/// Machine that a command line is read on.
pub trait Machine {
    /// Ranks that a launcher started; `None` without one.
    fn launcher(&self) -> Option<u32> {
        None
    }

    /// Transports of this build.
    fn transports(&self) -> TransportCatalogue {
        TransportCatalogue::default()
    }

    /// Value of an environment variable.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Text of a file of at most `most` bytes. The file counts as read by the command: nothing
    /// that the command writes may replace it.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn file(&self, _path: &str, _most: u64) -> Result<String, String> {
        Err("no such file".to_owned())
    }

    /// Text of standard input of at most `most` bytes, to its end or to a line `end`.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn standard_input(&self, _most: u64) -> Result<String, String> {
        Err("there is none".to_owned())
    }

    /// Whether standard input was read to a line `end`: the run then lasts as long as it does.
    fn is_input_held(&self) -> bool {
        false
    }

    /// CPUs and memory that a packet path can have.
    fn path_facts(&self) -> MachineFacts {
        MachineFacts::default()
    }

    /// Links of packets of this build, each with why this machine lacks it.
    fn packet_links(&self) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
    }
}

/// Machine of tests: the transports of samples, and so many ranks of a launcher.
#[cfg(test)]
pub(crate) struct SampleMachine(pub(crate) Option<u32>);

#[cfg(test)]
impl Machine for SampleMachine {
    fn launcher(&self) -> Option<u32> {
        self.0
    }

    fn transports(&self) -> TransportCatalogue {
        weir_schema::sample::transports()
    }
}

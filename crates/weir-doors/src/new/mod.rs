//! `weir new`: writes job files of a known kind, which are long to type.
//!
//! In: the arguments after `new`. Out: names and texts of files, or a [`Refusal`] with exit code 2.
//! Not here: writing them.

mod flags;
mod xdma;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};

pub use flags::FLAGS;
use xdma::{XdmaBlockSize, XdmaCard, XdmaMode};

use crate::door::Door;
use crate::flags::command;
use crate::given::GivenFlags;
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new("new", "KIND", "write job files for a card's DMA channels")
};

/// The end of the help text: examples, exit codes.
const HELP: &str = include_str!("help.md");

/// Action that the arguments of `weir new` ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Write files.
    Write(NewFiles),
}

/// Files to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFiles {
    /// Directory for the files.
    pub directory: String,
    /// Replaces existing files.
    pub force: bool,
    /// Name and text of each.
    pub files: Vec<(String, String)>,
}

/// Reads the arguments after `new`.
///
/// # Errors
/// Words that are not understood, numbers out of their range.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches)?;
    let (card, size, modes) = read_given(&given)
        .map_err(|what| Refusal::usage(format!("{what}\n  help: `weir new --help` says more")))?;
    Ok(Action::Write(NewFiles {
        directory: given.text("output").unwrap_or_default().to_owned(),
        force: given.has("force"),
        files: modes
            .into_iter()
            .map(|mode| xdma::file(&card, size, mode))
            .collect(),
    }))
}

/// Command that parses the arguments.
pub fn builder() -> Command {
    command("weir new", FLAGS)
        .about("Write job files: xdma, for the character devices of a card's DMA channels")
        .after_help(HELP)
        .override_usage("weir new xdma [OPTIONS]")
        .no_binary_name(true)
        .arg(
            Arg::new("kind")
                .value_name("KIND")
                .required(true)
                .help("The kind of files")
                .value_parser(PossibleValuesParser::new(["xdma"])),
        )
}

fn read_given(given: &GivenFlags) -> Result<(XdmaCard, XdmaBlockSize, Vec<XdmaMode>), String> {
    let text = |name| given.text(name).unwrap_or_default();
    let card = XdmaCard {
        driver: text("driver").to_owned(),
        channels: given.number("channels"),
        workers: given.number("workers"),
        memory: given.number("memory"),
    };
    let size = match (text("size"), given.number::<u64>("size")) {
        ("X", _) => XdmaBlockSize::Sweep,
        ("var", _) => XdmaBlockSize::Open,
        (_, bytes) if bytes.is_multiple_of(512) => XdmaBlockSize::Fixed(bytes),
        (text, _) => return Err(format!("--size {text}: it takes a multiple of 512")),
    };
    let (section, block) = (card.section(size), size.largest());
    if section == 0 {
        return Err(format!(
            "--memory {} has no room for {} sections of one block of {block} bytes",
            text("memory"),
            card.workers
        ));
    }
    let modes = match (text("mode"), size) {
        ("verify", XdmaBlockSize::Sweep) => {
            return Err("--mode verify: a sweep is for speed and has no verify file".to_owned());
        }
        ("verify", _) => vec![XdmaMode::Verify],
        ("write", _) => vec![XdmaMode::Write],
        ("read", _) => vec![XdmaMode::Read],
        (_, XdmaBlockSize::Sweep) => vec![XdmaMode::Write, XdmaMode::Read],
        _ => vec![XdmaMode::Verify, XdmaMode::Write, XdmaMode::Read],
    };
    Ok((card, size, modes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::USAGE;

    fn of(words: &str) -> Result<Action, Refusal> {
        read(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn names(words: &str) -> Vec<String> {
        match of(words) {
            Ok(Action::Write(files)) => files.files.into_iter().map(|f| f.0).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_follow_the_rule() {
        assert_eq!(
            names("xdma"),
            [
                "xdma_4-ch_4-1M_verify.fio",
                "xdma_4-ch_4-1M_write.fio",
                "xdma_4-ch_4-1M_read.fio"
            ]
        );
        assert_eq!(
            names("xdma --size X"),
            ["xdma_4-ch_4-X_write.fio", "xdma_4-ch_4-X_read.fio"]
        );
        assert_eq!(
            names("xdma --size var --mode write"),
            ["xdma_4-ch_4_var_write.fio"]
        );
        assert_eq!(
            names("xdma --driver edma --channels 2 --workers 8 --size 256k --mode read"),
            ["edma_2-ch_8-256K_read.fio"]
        );
        assert_eq!(
            names("xdma --size 512 --mode read"),
            ["xdma_4-ch_4-512_read.fio"]
        );
    }

    #[test]
    fn bad_numbers_are_refused_with_their_ranges() {
        for (words, says) in [
            ("xdma --channels 0", "from 1 to 64"),
            ("xdma --channels 65", "from 1 to 64"),
            ("xdma --workers none", "from 1 to 256"),
            ("xdma --size 513", "a multiple of 512"),
            (
                "xdma --size 2g",
                "it takes X, var, or a whole number from 512 to 1073741824",
            ),
            ("xdma --memory 1k", "it takes a whole number from 1048576"),
            ("xdma --memory 1m --size 1m", "no room for 4 sections"),
            ("xdma --size X --mode verify", "has no verify file"),
            ("xdma --driver ../x", "small letters"),
            ("nvme", "xdma"),
        ] {
            let refusal = of(words).unwrap_err();
            assert!(refusal.message.contains(says), "{words}: {refusal}");
            assert_eq!(refusal.code, USAGE);
        }
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        let examples = page.lines().filter_map(|l| l.strip_prefix("    weir new "));
        for example in examples {
            assert!(of(example).is_ok(), "{example}");
        }
    }
}

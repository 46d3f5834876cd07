//! The verbs of `weir history` and their flags.

use super::{Request, values};
use crate::flags::Flag;
use crate::given::GivenFlags;
use crate::takes::Takes;

const WHICH: &str = "Which runs";
const OUTPUT: &str = "Output";
const WHERE: &str = "Where";
const WHAT: &str = "What is done";

/// A verb of the history.
#[derive(Clone, Copy)]
pub(super) struct VerbRecord {
    pub(super) name: &'static str,
    /// The verb with its arguments.
    pub(super) usage: &'static str,
    pub(super) about: &'static str,
    pub(super) flags: &'static [Flag],
    /// Fewest and most operands.
    pub(super) operands: Option<(usize, usize)>,
    pub(super) examples: &'static [&'static str],
    /// Makes a request of flags and operands.
    pub(super) read: fn(&GivenFlags, &[String]) -> Result<Request, String>,
}

const HISTORY: Flag = Flag::with_value(
    "history",
    "FILE",
    WHERE,
    "Use this history, not WEIR_HISTORY or your own",
);
const PLAN: Flag = Flag::with_value(
    "plan",
    "NAME",
    WHICH,
    "Runs of this plan, or of the beginning of its fingerprint",
);
const MACHINE: Flag = Flag::with_value(
    "machine",
    "NAME",
    WHICH,
    "Runs on this machine, or on the beginning of its key",
);
const LABEL: Flag = Flag::with_value("label", "NAME", WHICH, "Runs with this label");
const SINCE: Flag = Flag::with_value(
    "since",
    "WHEN",
    WHICH,
    "Runs of the last 90d, 12h, 2w or 1y, or since a day as 2026-11-21",
)
.takes(Takes::Grammar(|text| values::since(text).map(drop)));
const TAG: Flag = Flag::with_value("tag", "KEY=VALUE", WHICH, "Runs with this tag")
    .takes(Takes::Grammar(|text| values::pair(text).map(drop)))
    .repeats();
/// Largest number of runs.
const MANY: i64 = u32::MAX as i64;
const JSON: Flag = Flag::switch("json", OUTPUT, "Print one JSON document");
const ASCII: Flag = Flag::switch("ascii", OUTPUT, "Only ASCII characters");
const CLEAR: Flag = Flag::switch("clear", WHAT, "Take the old one away");

/// All of them.
pub(super) const VERBS: &[VerbRecord] = &[
    VerbRecord {
        name: "list",
        usage: "list [OPTIONS]",
        about: "list runs, the newest first",
        flags: &[
            PLAN,
            LABEL,
            MACHINE,
            SINCE,
            TAG,
            Flag::with_value("limit", "N", WHICH, "The newest N runs, or all")
                .range(1, MANY)
                .choices(&["all"])
                .default("20"),
            JSON,
            ASCII,
            HISTORY,
        ],
        operands: None,
        examples: &[
            "weir history",
            "weir history list --since 7d --tag disk=nvme0 --json",
        ],
        read: |given, _| {
            Ok(Request::List {
                filter: values::filter(given),
                style: values::style(given),
            })
        },
    },
    VerbRecord {
        name: "trend",
        usage: "trend [METRIC] [OPTIONS]",
        about: "show a figure over the last 100 runs, and where it changed",
        flags: &[
            PLAN,
            MACHINE,
            Flag::with_value(
                "min-change",
                "PERCENT",
                WHICH,
                "Changes of less than this are none",
            )
            .takes(Takes::Percent(0.0, 100.0))
            .default("1"),
            JSON,
            ASCII,
            HISTORY,
        ],
        operands: Some((0, 10)),
        examples: &[
            "weir history trend",
            "weir history trend p99 --plan nightly.fio",
            "weir history trend a.read p99 --min-change 5",
        ],
        read: |given, words| Ok(values::trend(given, words)),
    },
    VerbRecord {
        name: "export",
        usage: "export [OPTIONS]",
        about: "write runs as lines of JSON, figures as CSV, or a database",
        flags: &[
            PLAN,
            LABEL,
            MACHINE,
            SINCE,
            TAG,
            Flag::with_value("format", "FORMAT", OUTPUT, "What is written")
                .choices(&["jsonl", "csv", "db"])
                .default("jsonl"),
            Flag::with_value(
                "output",
                "FILE",
                OUTPUT,
                "Where, instead of standard output",
            ),
            HISTORY,
        ],
        operands: None,
        examples: &[
            "weir history export --output runs.jsonl",
            "weir history export --format csv --since 1y",
            "weir history export --format db --output copy.db",
        ],
        read: |given, _| values::export(given),
    },
    VerbRecord {
        name: "import",
        usage: "import FILE...",
        about: "add runs: exports in JSON, or stored results",
        flags: &[HISTORY],
        operands: Some((1, 10_000)),
        examples: &["weir history import runs.jsonl r.json"],
        read: |_, words| {
            let files = words.to_vec();
            Ok(Request::Import { files })
        },
    },
    VerbRecord {
        name: "tag",
        usage: "tag RUN [KEY[=VALUE]...]",
        about: "give a run tags; `keep` keeps it from being pruned",
        flags: &[
            Flag::with_value("remove", "KEY", WHAT, "Take this tag away").repeats(),
            HISTORY,
        ],
        operands: Some((1, 1000)),
        examples: &[
            "weir history tag @-1 disk=nvme0 keep",
            "weir history tag @-1 --remove keep",
        ],
        read: values::tag,
    },
    VerbRecord {
        name: "label",
        usage: "label RUN NAME",
        about: "give a run a label, which several runs may have",
        flags: &[CLEAR, HISTORY],
        operands: Some((1, 1000)),
        examples: &[
            "weir history label @-1 before-upgrade",
            "weir history label @-1 --clear",
        ],
        read: |given, words| {
            let (run, label) = values::run_and_text(given, words)?;
            Ok(Request::Label { run, label })
        },
    },
    VerbRecord {
        name: "note",
        usage: "note RUN TEXT",
        about: "note something about a run",
        flags: &[CLEAR, HISTORY],
        operands: Some((1, 1000)),
        examples: &["weir history note @-1 'the fan was broken'"],
        read: |given, words| {
            let (run, note) = values::run_and_text(given, words)?;
            Ok(Request::Note { run, note })
        },
    },
    VerbRecord {
        name: "baseline",
        usage: "baseline set RUN|show|clear [RUN]",
        about: "make a run the one that others of its plan are held against",
        flags: &[HISTORY],
        operands: Some((0, 2)),
        examples: &[
            "weir history baseline set @-1",
            "weir history baseline show",
        ],
        read: |_, words| values::baseline(words),
    },
    VerbRecord {
        name: "rm",
        usage: "rm RUN...",
        about: "remove runs with all that is known of them",
        flags: &[HISTORY],
        operands: Some((1, 10_000)),
        examples: &["weir history rm @-1"],
        read: |_, words| Ok(Request::Remove(words.to_vec())),
    },
    VerbRecord {
        name: "prune",
        usage: "prune [OPTIONS]",
        about: "remove the results of old runs; their figures stay",
        flags: &[
            Flag::with_value(
                "keep",
                "N",
                WHICH,
                "Keep the newest N runs of each plan on each machine",
            )
            .range(1, MANY),
            Flag::with_value(
                "older",
                "AGE",
                WHICH,
                "Keep runs that are younger: 90d, 12h, 2w, 1y",
            )
            .takes(Takes::Grammar(|text| values::age(text).map(drop)))
            .long("With --keep and --older a run goes that neither keeps."),
            Flag::switch("metrics-too", WHAT, "Remove the runs with their figures"),
            Flag::switch("dry-run", WHAT, "Only say which"),
            HISTORY,
        ],
        operands: None,
        examples: &["weir history prune --keep 200 --older 1y --dry-run"],
        read: |given, _| values::prune(given),
    },
    VerbRecord {
        name: "check",
        usage: "check",
        about: "look for faults in the history",
        flags: &[HISTORY],
        operands: None,
        examples: &["weir history check"],
        read: |_, _| Ok(Request::Check),
    },
    VerbRecord {
        name: "path",
        usage: "path",
        about: "print where the history is",
        flags: &[HISTORY],
        operands: None,
        examples: &["weir history path"],
        read: |_, _| Ok(Request::Path),
    },
];

//! Differences between fio and weir that are not allowed, and their places.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::beside::{Case, Ran, Seen};
use crate::left::Left;
use crate::order::too_early;
use crate::sections::Job;

/// Topic of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// fio takes the case and weir refuses it.
    Refused,
    /// weir takes the case and fio refuses it.
    Accepted,
    /// The text of `--showcmd`.
    Shown,
    /// The exit status.
    Exit,
    /// The banner of each job.
    Banner,
    /// Files that are laid out.
    Layout,
    /// Name, group, number of jobs and error of each entry.
    Entries,
    /// Operations and bytes.
    Counts,
    /// Keys of the JSON document and the types of their values.
    Keys,
    /// Values of `job options` and `global options`.
    Options,
    /// Which lines the normal report has.
    Lines,
    /// Number of fields of each terse line.
    Terse,
    /// A file that only one of them leaves behind, or one that looks different.
    Left,
    /// Jobs that did not wait for others.
    Order,
}

impl Topic {
    /// Every one.
    pub(crate) const ALL: [Self; 14] = [
        Self::Refused,
        Self::Accepted,
        Self::Shown,
        Self::Exit,
        Self::Banner,
        Self::Layout,
        Self::Entries,
        Self::Counts,
        Self::Keys,
        Self::Options,
        Self::Lines,
        Self::Terse,
        Self::Left,
        Self::Order,
    ];
}

/// One difference.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) topic: Topic,
    pub(crate) theirs: String,
    pub(crate) ours: String,
    /// Everything that weir told.
    pub(crate) output: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            topic,
            theirs,
            ours,
            ..
        } = self;
        write!(f, "{topic:?}\n  fio:  {theirs}\n  weir: {ours}")
    }
}

/// Everything that differs.
pub(crate) fn differences(case: &Case, theirs: &Seen, ours: &Seen) -> Vec<Difference> {
    let mut found = Found {
        list: Vec::new(),
        output: format!("{}{}", ours.said.err, ours.said.out),
    };
    match (theirs.accepted, ours.accepted) {
        (true, false) => found.add(Topic::Refused, &theirs.said.err, &ours.said.err),
        (false, true) => found.add(Topic::Accepted, &theirs.said.err, &ours.said.err),
        (accepted, _) => {
            if theirs.said.code != ours.said.code {
                let text = |seen: &Seen| format!("{:?} {}", seen.said.code, seen.said.err);
                found.add(Topic::Exit, &text(theirs), &text(ours));
            }
            if accepted {
                found.same(Topic::Shown, &theirs.shown, &ours.shown);
            }
            if let (Some(theirs), Some(ours)) = (&theirs.ran, &ours.ran) {
                found.runs(case, theirs, ours);
            }
        }
    }
    found.list
}

struct Found {
    list: Vec<Difference>,
    output: String,
}

impl Found {
    fn add(&mut self, topic: Topic, theirs: &str, ours: &str) {
        let (theirs, ours, output) = (theirs.to_owned(), ours.to_owned(), self.output.clone());
        self.list.push(Difference {
            topic,
            theirs,
            ours,
            output,
        });
    }

    fn same<T: PartialEq + std::fmt::Debug>(&mut self, topic: Topic, theirs: &T, ours: &T) {
        if theirs != ours {
            self.add(topic, &format!("{theirs:?}"), &format!("{ours:?}"));
        }
    }

    /// Members of lists by their place, so that each difference stands alone.
    fn each<T: PartialEq + std::fmt::Debug>(&mut self, topic: Topic, theirs: &[T], ours: &[T]) {
        if theirs.len() != ours.len() {
            return self.same(topic, &theirs, &ours);
        }
        for (theirs, ours) in theirs.iter().zip(ours) {
            self.same(topic, theirs, ours);
        }
    }

    fn runs(&mut self, case: &Case, theirs: &Ran, ours: &Ran) {
        self.each(
            Topic::Banner,
            &banners(&theirs.lines),
            &banners(&ours.lines),
        );
        self.each(
            Topic::Layout,
            &layouts(&theirs.lines),
            &layouts(&ours.lines),
        );
        self.each(
            Topic::Entries,
            &entries(&theirs.lines),
            &entries(&ours.lines),
        );
        let (Some(theirs_json), Some(ours_json)) = (&theirs.json, &ours.json) else {
            return self.same(Topic::Keys, &theirs.json.is_some(), &ours.json.is_some());
        };
        self.documents(case, theirs_json, ours_json);
        // A mix may have none of one kind in one of the two runs.
        if self.list.is_empty() && !case.jobs().iter().any(Job::mixes) {
            self.same(Topic::Lines, &kinds(&theirs.lines), &kinds(&ours.lines));
        }
        if self.list.iter().all(|d| d.topic != Topic::Entries) {
            self.each(Topic::Terse, &theirs.terse, &ours.terse);
        }
        self.left(&theirs.left, &ours.left);
        let orders = [theirs, ours].map(|ran| too_early(case, &ran.written));
        self.same(Topic::Order, &orders[0], &orders[1]);
    }

    /// Each file that is not left alike; those of jobs that did something else, by their names.
    fn left(&mut self, theirs: &Left, ours: &Left) {
        let other = [Topic::Counts, Topic::Exit, Topic::Entries];
        let did_the_same = self.list.iter().all(|d| !other.contains(&d.topic));
        let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        for name in names {
            let (theirs, ours) = (theirs.get(name), ours.get(name));
            if theirs.is_some() != ours.is_some() || (theirs != ours && did_the_same) {
                let text = |of: Option<&String>| format!("{name} {of:?}");
                self.add(Topic::Left, &text(theirs), &text(ours));
            }
        }
    }

    fn documents(&mut self, case: &Case, theirs: &Value, ours: &Value) {
        let global = |report: &Value| options(&report["global options"]);
        self.given(case, &global(theirs), &global(ours));
        let everywhere = global(ours);
        let (their_jobs, our_jobs) = (jobs(theirs), jobs(ours));
        let names = |jobs: &[Value]| {
            let name = |j: &Value| format!("{} {} {}", j["jobname"], j["groupid"], j["error"]);
            jobs.iter().map(name).collect::<Vec<_>>()
        };
        let (their_names, our_names) = (names(&their_jobs), names(&our_jobs));
        self.each(Topic::Entries, &their_names, &our_names);
        if their_names != our_names {
            return;
        }
        for (theirs, ours) in their_jobs.iter().zip(&our_jobs) {
            self.given(
                case,
                &options(&theirs["job options"]),
                &options(&ours["job options"]),
            );
            if !bounded_by_time(&everywhere, ours) {
                self.counts(case, theirs, ours);
            }
            self.keys(theirs, ours);
        }
        let top = |report: &Value| {
            let keys = report.as_object().unwrap().keys();
            keys.filter(|k| *k != "weir").cloned().collect::<Vec<_>>()
        };
        self.same(Topic::Keys, &top(theirs), &top(ours));
    }

    /// Options as the document repeats them; fio leaves out those that stand without a value.
    fn given(
        &mut self,
        case: &Case,
        theirs: &BTreeMap<String, String>,
        ours: &BTreeMap<String, String>,
    ) {
        for (key, value) in theirs {
            let ours = ours.get(key);
            // Given with and without a value, the last one counts.
            let bare = ours.is_some_and(|v| v == "1") && case.has_bare(key);
            if ours != Some(value) && !bare {
                self.add(
                    Topic::Options,
                    &format!("{key}={value}"),
                    &format!("{ours:?}"),
                );
            }
        }
        for (key, value) in ours.iter().filter(|(k, _)| !theirs.contains_key(*k)) {
            if !(value == "1" && case.has_bare(key)) {
                self.add(Topic::Options, "", &format!("{key}={value}"));
            }
        }
    }

    fn counts(&mut self, case: &Case, theirs: &Value, ours: &Value) {
        let name = theirs["jobname"].to_string();
        let kinds = ["read", "write", "trim", "mixed"];
        let of = |job: &Value, key: &str| kinds.map(|k| job[k][key].as_u64().unwrap_or(0));
        let mixed = case.any(&name, Job::mixes);
        // Sizes drawn at random end a job at another place.
        let drawn = case.mentions("bsrange")
            || case.mentions("bssplit")
            || case.mentions("blocksize_range")
            || (mixed && (case.mentions("bs") || case.mentions("blocksize")));
        let slack = case.slack_of(&name);
        for key in ["io_bytes", "total_ios", "short_ios", "drop_ios"] {
            let (theirs, ours) = (of(theirs, key), of(ours, key));
            let sum = |all: [u64; 4]| all.iter().sum::<u64>();
            let same = if drawn {
                key == "total_ios" || sum(theirs).abs_diff(sum(ours)) <= slack
            } else if mixed {
                sum(theirs) == sum(ours)
            } else {
                theirs == ours
            };
            if !same {
                let text = |all| format!("{name} {key} {all:?}");
                self.add(Topic::Counts, &text(theirs), &text(ours));
            }
        }
        let syncs = |job: &Value| format!("{name} {:?}", job["sync"]["total_ios"]);
        if !mixed && !drawn {
            self.same(Topic::Counts, &syncs(theirs), &syncs(ours));
        }
    }

    fn keys(&mut self, theirs: &Value, ours: &Value) {
        let (mut their_paths, mut our_paths) = (BTreeSet::new(), BTreeSet::new());
        paths(theirs, "", &mut their_paths);
        paths(ours, "", &mut our_paths);
        let none = |job: &Value, path: &str| {
            // A mix may have none of one kind in one of the two runs.
            let kind = path.split('/').nth(1).unwrap_or_default();
            job[kind]["total_ios"] == 0
        };
        let differ = |path: &&String| {
            !path.starts_with("/job options")
                && !(path.contains("/percentile") && (none(theirs, path) || none(ours, path)))
        };
        let missing: Vec<_> = their_paths.difference(&our_paths).filter(differ).collect();
        let extra: Vec<_> = our_paths.difference(&their_paths).filter(differ).collect();
        if !(missing.is_empty() && extra.is_empty()) {
            self.add(Topic::Keys, &format!("{missing:?}"), &format!("{extra:?}"));
        }
    }
}

/// True if a job ends with its time, and not with its bytes.
fn bounded_by_time(global: &BTreeMap<String, String>, job: &Value) -> bool {
    global.contains_key("time_based") || options(&job["job options"]).contains_key("time_based")
}

fn jobs(report: &Value) -> Vec<Value> {
    report["jobs"].as_array().cloned().unwrap_or_default()
}

fn options(value: &Value) -> BTreeMap<String, String> {
    let members = value.as_object().into_iter().flatten();
    members
        .map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Each path of keys with the type of its value; members of lists are one.
pub(crate) fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(members) => {
            for (key, value) in members {
                paths(value, &format!("{at}/{key}"), found);
            }
            return;
        }
        Value::Array(members) => {
            for value in members {
                paths(value, &format!("{at}/[]"), found);
            }
            return;
        }
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    found.insert(format!("{at} {kind}"));
}

/// Banners in their order, and the dots that stand for clones.
fn banners(lines: &[String]) -> Vec<String> {
    let wanted = |l: &&String| l.contains(": (g=") || *l == "..." || l.starts_with("Starting ");
    lines
        .iter()
        .filter(wanted)
        .map(|l| {
            if l.starts_with("Starting") {
                started(l)
            } else {
                l.clone()
            }
        })
        .collect()
}

/// Number of workers that start: fio's may be processes, weir's are threads.
fn started(line: &str) -> String {
    let numbers = line.split(' ').filter_map(|w| w.parse::<u64>().ok());
    format!("Starting {}", numbers.sum::<u64>())
}

/// In any order: the layout of several jobs may be done at once.
fn layouts(lines: &[String]) -> Vec<String> {
    let mut found: Vec<_> = lines
        .iter()
        .filter(|l| l.contains(": Laying out IO file"))
        .cloned()
        .collect();
    found.sort();
    found
}

fn entries(lines: &[String]) -> Vec<String> {
    let entry = |l: &String| {
        l.contains(": (groupid=")
            .then(|| l.split(": pid=").next().unwrap_or_default().to_owned())
    };
    // The text of an error number names a place in the tool's source.
    let plain = |l: String| {
        l.split_once(" (file:")
            .map_or(l.clone(), |(head, _)| head.to_owned())
    };
    lines.iter().filter_map(entry).map(plain).collect()
}

/// The word each line of the report begins with, from the first entry on; without lines whose
/// number depends on speed.
fn kinds(lines: &[String]) -> Vec<String> {
    let varying = ["|", "lat (", "bw (", "iops "];
    let start = lines
        .iter()
        .position(|l| l.contains(": (groupid="))
        .unwrap_or(lines.len());
    lines[start..]
        .iter()
        .map(|l| l.trim_start())
        .filter(|l| !varying.iter().any(|v| l.starts_with(v)))
        .map(|l| {
            l.split(['=', ':', '('])
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
        .collect()
}

impl Case {
    /// Everything that its files say.
    pub(crate) fn text(&self) -> String {
        self.files.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// True if an option stands without a value, in a file or among the arguments.
    fn has_bare(&self, option: &str) -> bool {
        let text = self.text();
        let lines = text
            .lines()
            .filter_map(|line| line.split([';', '#']).next());
        let words = self.words.iter().map(|word| word.trim_start_matches('-'));
        let bare = |word: &str| weir_jobfile::find_option(word).is_some_and(|r| r.name == option);
        lines.map(str::trim).chain(words).any(bare)
    }

    /// Bytes by which the end of a job's passes may vary: a block of each kind.
    fn slack_of(&self, name: &str) -> u64 {
        const BLOCKS: u64 = 2 * (64 << 10);
        let passes = |job: &Job| job.passes() * job.number("numjobs").unwrap_or(1);
        BLOCKS * self.jobs_of(name).iter().map(passes).sum::<u64>()
    }

    /// True if an option stands in one of its files.
    pub(crate) fn mentions(&self, option: &str) -> bool {
        let begins = |line: &str| {
            line.trim()
                .strip_prefix(option)
                .is_some_and(|r| r.starts_with('='))
        };
        self.files.iter().any(|(_, text)| text.lines().any(begins))
    }
}

//! Options of each job of a case, from its files and arguments: the defaults above it, then its own
//! lines. By canonical names, so that a rule about a difference need not know aliases.

use std::collections::BTreeMap;

use weir_jobfile::find_option;

use crate::beside::Case;

/// The only file without jobs that cases have.
const INCLUDED: &str = "some.inc";

/// A job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// As reports show it.
    pub(crate) name: String,
    /// By `name`, not by its section.
    pub(crate) is_renamed: bool,
    options: BTreeMap<&'static str, String>,
    /// Number of times that each option was given, by the defaults too.
    given: BTreeMap<&'static str, usize>,
}

impl Job {
    /// Last value of an option.
    pub(crate) fn get(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// True if an option was given and is not 0.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.get(option).is_some_and(|value| value != "0")
    }

    /// A size or number in any notation; none where it was not given, or is no plain number.
    pub(crate) fn number(&self, option: &str) -> Option<u64> {
        number(self.get(option)?)
    }

    pub(crate) fn engine(&self) -> &str {
        self.get("ioengine").unwrap_or("psync")
    }

    /// Its offsets are drawn.
    pub(crate) fn is_random(&self) -> bool {
        self.get("rw").is_some_and(|rw| rw.starts_with("rand"))
    }

    /// It does several kinds of operations.
    pub(crate) fn mixes(&self) -> bool {
        let mixed = ["rw", "randrw", "readwrite", "trimwrite", "randtrimwrite"];
        self.get("rw").is_some_and(|rw| mixed.contains(&rw))
    }

    /// One of its targets is a character device.
    pub(crate) fn on_device(&self) -> bool {
        self.get("filename")
            .is_some_and(|name| name.contains("/dev/"))
    }

    /// It reads, among other things or alone.
    pub(crate) fn reads(&self) -> bool {
        !self.get("rw").is_some_and(|rw| {
            rw.trim_start_matches("rand").starts_with("write") || rw.contains("trim")
        })
    }

    /// The bytes that it asks for, those that are read back included, and a block of each kind for
    /// the end of each pass; none where its size does not say.
    pub(crate) fn most(&self) -> Option<u64> {
        const BLOCKS: u64 = 2 * (64 << 10);
        let size = self.number("size")?;
        let passes = self.passes();
        let turns = 1 + u64::from(self.verifies());
        let workers = self.number("numjobs").unwrap_or(1);
        Some((size + BLOCKS) * passes * turns * workers)
    }

    /// The file that it names is there before it begins, and larger than its size: another job has
    /// laid it out, or the stage.
    pub(crate) fn has_larger_file(&self, jobs: &[Job]) -> bool {
        fn plain(job: &Job) -> Option<&str> {
            let names = job.get("filename")?;
            Some(
                names
                    .trim_start_matches("./")
                    .split(':')
                    .next()
                    .unwrap_or_default(),
            )
        }
        let named = plain(self);
        let is_larger =
            |other: &Job| plain(other) == named && other.number("size") > self.number("size");
        named == Some("many/first") || named.is_some() && jobs.iter().any(is_larger)
    }

    /// Number of passes over its region.
    pub(crate) fn passes(&self) -> u64 {
        let size = self.number("size").unwrap_or(u64::MAX);
        let further = self.number("io_size").unwrap_or(0).div_ceil(size.max(1));
        let loops = self.number("loops").unwrap_or(1);
        // Reads and writes of a sequential mix walk apart: each loop goes over it as far as it is told.
        if self.mixes() && !self.is_random() {
            further.max(1).saturating_mul(loops)
        } else {
            further.max(loops)
        }
    }

    /// Number of times that an option was given, in the defaults and in its section.
    pub(crate) fn times_given(&self, option: &str) -> usize {
        self.given.get(option).copied().unwrap_or_default()
    }

    /// True if written data is read back, or read data checked.
    pub(crate) fn verifies(&self) -> bool {
        ["verify", "verify_pattern"]
            .iter()
            .any(|option| self.has(option))
    }

    /// It writes, trims or does both with reads between.
    pub(crate) fn changes(&self) -> bool {
        !self
            .get("rw")
            .is_none_or(|rw| rw == "read" || rw == "randread")
    }

    fn take(&mut self, line: &str) {
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        if let Some(record) = find_option(key.trim()) {
            self.options.insert(record.name, value.trim().to_owned());
            *self.given.entry(record.name).or_default() += 1;
        }
    }
}

/// A size as the language writes it, and as the cases do: `SOME` is the only variable.
fn number(text: &str) -> Option<u64> {
    let text = text
        .split(',')
        .next()?
        .to_lowercase()
        .replace("${some}", "96k");
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" | "ki" => 1 << 10,
        "kib" => 1000,
        "m" | "mb" | "mi" => 1 << 20,
        "mib" => 1_000_000,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

impl Case {
    /// Its jobs in their order.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut files = self.files.iter().filter(|(name, _)| name != INCLUDED);
        let mut words = Job::default();
        let mut words_of_a_job = false;
        for (word, next) in self.words.iter().zip(self.words.iter().skip(1)) {
            if word == "-bs" {
                words.take(&format!("bs={next}"));
            }
            words_of_a_job |= word.starts_with("--name=");
        }
        for word in self.words.iter().filter_map(|word| word.strip_prefix("--")) {
            words.take(word);
        }
        if words_of_a_job {
            words.name = words.options.remove("name").unwrap_or_default();
            jobs.push(std::mem::take(&mut words));
        }
        for (_, text) in files.by_ref() {
            self.sections(text, std::mem::take(&mut words), &mut jobs);
        }
        jobs
    }

    fn sections(&self, text: &str, mut defaults: Job, jobs: &mut Vec<Job>) {
        let mut is_default = true;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
                is_default = name.starts_with("global");
                if !is_default {
                    jobs.push(Job {
                        name: name.to_owned(),
                        ..defaults.clone()
                    });
                }
                continue;
            }
            let job = match jobs.last_mut() {
                Some(job) if !is_default => job,
                _ => &mut defaults,
            };
            if line.starts_with("include ") {
                let included = self.files.iter().find(|(name, _)| name == INCLUDED);
                let text = included.map_or("", |(_, text)| text.as_str());
                text.lines().for_each(|line| job.take(line));
            } else {
                job.take(line);
            }
            if let Some(name) = job.options.remove("name") {
                job.name = name;
                job.is_renamed = true;
            }
        }
    }

    /// The jobs that a difference names, or all where it names none: an entry of a group has the
    /// name of the first of its jobs alone.
    pub(crate) fn jobs_of(&self, text: &str) -> Vec<Job> {
        let jobs = self.jobs();
        let is_named = |job: &Job| {
            // In JSON, in JSON that is quoted, and in lines of the report.
            let forms = [
                format!("\"{}\"", job.name),
                format!("\"{}\\\"", job.name),
                format!("{}: ", job.name),
            ];
            forms.iter().any(|form| text.contains(form))
        };
        let merged = jobs.iter().any(|job| job.has("group_reporting"));
        if merged || !jobs.iter().any(is_named) {
            jobs
        } else {
            jobs.into_iter().filter(is_named).collect()
        }
    }

    /// True if this holds for any of them.
    pub(crate) fn any(&self, text: &str, holds: impl Fn(&Job) -> bool) -> bool {
        self.jobs_of(text).iter().any(holds)
    }
}

#[test]
fn a_job_has_the_defaults_above_it_and_its_own_lines() {
    let text =
        "[global]\nbs=8k\n[one]\nblocksize=4k ; said\n[global 2]\nsize=0x1000\n[two]\nname=x\n";
    let case = Case {
        seed: 0,
        number: 0,
        kind: crate::beside::Kind::Run,
        files: vec![("j.fio".to_owned(), text.to_owned())],
        words: ["--loops=2", "j.fio"].map(str::to_owned).to_vec(),
    };
    let jobs = case.jobs();
    let seen = |job: &Job| {
        (
            job.name.clone(),
            job.number("bs"),
            job.number("size"),
            job.number("loops"),
        )
    };
    let wanted = [
        ("one".to_owned(), Some(4096), None, Some(2)),
        ("x".to_owned(), Some(8192), Some(4096), Some(2)),
    ];
    assert_eq!(jobs.iter().map(seen).collect::<Vec<_>>(), wanted);
    assert!(case.any("\"x\" io_bytes", |job| job.has("size")));
    assert!(!case.any("\"one\" io_bytes", |job| job.has("size")));
}

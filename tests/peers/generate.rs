//! Job files and command lines at random, by the grammar of the language.

use crate::beside::{Case, Kind};
use crate::grammar::{About, line, odd_line, option};
use crate::random::Random;

/// Options that say how a job is placed among others, or that need each other.
const PLACED: &[&str] = &[
    "new_group",
    "stonewall",
    "wait_for",
    "name",
    "numjobs",
    "iodepth",
    "rw",
    "bs",
    "bsrange",
    "bssplit",
    "size",
    "ioengine",
    "io_size",
    "filesize",
    "offset",
    "offset_increment",
];

/// The case of this number.
pub(crate) fn case(seed: u64, number: u64, kind: Kind) -> Case {
    let mut random = Random::new(seed, number);
    let mut writer = Writer {
        random: &mut random,
        kind,
        lines: Vec::new(),
        included: None,
        sections: Vec::new(),
        verifies: false,
    };
    writer.verifies = writer.random.percent(40);
    writer.file();
    let Writer {
        lines,
        included,
        sections,
        ..
    } = writer;
    let ending = if random.percent(10) { "\r\n" } else { "\n" };
    let mut files = vec![("j.fio".to_owned(), lines.join(ending) + ending)];
    let mut words = vec!["j.fio".to_owned()];
    files.extend(included.map(|text| ("some.inc".to_owned(), text)));
    command_line(&mut random, &mut words, &mut files, &sections);
    Case {
        seed,
        number,
        kind,
        files,
        words,
    }
}

/// Words around the file's name.
fn command_line(
    random: &mut Random,
    words: &mut Vec<String>,
    files: &mut Vec<(String, String)>,
    sections: &[String],
) {
    match random.between(0, 19) {
        0 => words.insert(0, "--bs=8k".to_owned()),
        1 => words.insert(0, "--loops=2".to_owned()),
        2 => words
            .splice(
                0..0,
                ["--group_reporting", "--end_fsync=1"].map(str::to_owned),
            )
            .for_each(drop),
        3 => words.insert(0, format!("--section={}", random.pick(sections))),
        4 => {
            let words_of_a_job = [
                "--name=word",
                "--ioengine=null",
                "--size=64k",
                "--rw=randread",
            ];
            words
                .splice(0..0, words_of_a_job.map(str::to_owned))
                .for_each(drop);
        }
        5 => {
            let text =
                "[second]\nioengine=null\nsize=128k\n[third]\nioengine=null\nsize=32k\nrw=write\n";
            files.push(("k.fio".to_owned(), text.to_owned()));
            words.push("k.fio".to_owned());
        }
        6 => words.insert(0, "--readonly".to_owned()),
        7 => words
            .splice(0..0, ["-bs", "4k"].map(str::to_owned))
            .for_each(drop),
        8 => words.insert(0, "--section=nobody".to_owned()),
        _ => {}
    }
}

struct Writer<'a> {
    random: &'a mut Random,
    kind: Kind,
    lines: Vec<String>,
    included: Option<String>,
    sections: Vec<String>,
    /// True if its jobs may verify. fio 3.33 finds false damage in mixes and where jobs share
    /// files, so such jobs have names and files of their own.
    verifies: bool,
}

impl Writer<'_> {
    fn file(&mut self) {
        if self.random.percent(20) {
            self.lines.push("; a comment".to_owned());
        }
        self.global("global");
        let jobs = self.random.between(1, 4);
        for job in 0..jobs {
            if job > 0 && self.random.percent(15) {
                let name = *self.random.pick(&["global", "global2x", "global more"]);
                self.global(name);
            }
            self.job(job);
        }
    }

    fn push(&mut self, line: String) {
        let line = match self.random.between(0, 30) {
            0 => format!("{line} "),
            1 => format!("  {line}\t"),
            2 => format!("{line} ; said"),
            3 => format!("{line} # said"),
            _ => line,
        };
        self.lines.push(line);
        if self.random.percent(4) {
            self.lines.push(String::new());
        }
    }

    fn option(&mut self, name: &str) {
        let line = line(option(name), self.random);
        self.push(line);
    }

    fn maybe(&mut self, percent: u64, name: &str) {
        if self.random.percent(percent) {
            self.option(name);
        }
    }

    fn global(&mut self, name: &str) {
        self.push(format!("[{name}]"));
        self.maybe(60, "size");
        self.maybe(40, "ioengine");
        self.maybe(40, "rw");
        self.maybe(40, "bs");
        self.maybe(25, "group_reporting");
        self.others(About::General, 2);
        self.logs(10);
        if !self.verifies {
            self.files(10);
        }
        if self.included.is_none() && self.random.percent(8) {
            self.included = Some("; included\nnorandommap\n  randseed=7 \n".to_owned());
            self.push("include some.inc".to_owned());
        }
    }

    fn job(&mut self, number: u64) {
        let name = (*self.random.pick(&["two", "w 3", "four", "x-5"])).to_owned();
        let verifies = self.verifies && self.random.percent(60);
        let has_files = !verifies && self.random.percent(25);
        let name = match number {
            0 => "one".to_owned(),
            _ if verifies || has_files => format!("v{number}"),
            _ => name,
        };
        self.push(format!("[{name}]"));
        self.sections.push(name);
        for (percent, name) in [
            (70, "size"),
            (50, "ioengine"),
            (70, "rw"),
            (20, "io_size"),
            (10, "filesize"),
            (20, "offset"),
            (5, "offset_increment"),
            (20, "numjobs"),
            (20, "iodepth"),
            (20, "stonewall"),
            (15, "new_group"),
            (8, "wait_for"),
            (5, "name"),
        ] {
            self.maybe(percent, name);
        }
        match self.random.between(0, 5) {
            0 => self.option("bsrange"),
            1 => self.option("bssplit"),
            2 | 3 => self.option("bs"),
            _ => {}
        }
        if !verifies && !has_files && self.random.percent(30) {
            let file = *self
                .random
                .pick(&["data", "data:more", "/dev/zero", "./data"]);
            self.push(format!("filename={file}"));
        }
        self.others(About::General, 4);
        self.logs(25);
        if verifies {
            self.verification();
        } else if has_files {
            self.files(100);
        }
    }

    /// Options that read written data back.
    fn verification(&mut self) {
        self.option("verify");
        self.others(About::Verify, 4);
        if self.kind == Kind::Run || self.random.percent(50) {
            let order = *self.random.pick(&["write", "randwrite"]);
            self.push(format!("rw={order}"));
        }
        self.maybe(25, "nrfiles");
    }

    fn logs(&mut self, percent: u64) {
        if self.random.percent(percent) {
            let kinds = ["write_bw_log", "write_iops_log", "write_lat_log"];
            let kind = *self.random.pick(&kinds);
            self.option(kind);
            self.others(About::Logs, 3);
        }
    }

    fn files(&mut self, percent: u64) {
        if self.random.percent(percent) {
            self.maybe(60, "nrfiles");
            self.others(About::Files, 4);
        }
    }

    /// Up to so many options at random.
    fn others(&mut self, about: About, most: u64) {
        for _ in 0..self.random.between(0, most) {
            let option = self.random.pick(about.options());
            if self.kind == Kind::Parse {
                let line = odd_line(option, self.random);
                self.push(line);
            } else if !PLACED.contains(&option.names[0]) {
                let line = line(option, self.random);
                self.push(line);
            }
        }
        if self.kind == Kind::Parse && self.random.percent(3) {
            let unknown = *self
                .random
                .pick(&["bsz=1", "no_such_option", "rw", "size", "[", "=4k"]);
            self.push(unknown.to_owned());
        }
    }
}

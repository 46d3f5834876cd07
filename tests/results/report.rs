//! `weir report`: text, pages and pictures of stored results, from words to exit code.

mod slow;

use crate::stage::{Stage, said};

pub(crate) const JOBS: &str = "\
[global]
ioengine=null
size=64m
bs=4k
time_based
runtime=400ms
[one]
rw=randrw
numjobs=2
[two]
stonewall
rw=write
iodepth=4
";

/// Results of each workload.
pub(crate) fn stored() -> Stage {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    for words in [
        "run j.fio --store-result run.json",
        "run j.fio --set rw=read --store-result other.json",
        "beff --comm-type shm --ranks 2 -n 2 -u 8 -l 8 -m 6 --store-result beff.json",
        "net lat-bw --comm-type shm --min-time 0.0001 --store-result net.json",
        "run --repeat 2 j.fio --store-result runs.json",
    ] {
        stage.say(&words.split(' ').collect::<Vec<_>>()).code(0);
    }
    stage
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn text_is_what_the_run_printed() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    let live = stage.say(&words("run j.fio --store-result r.json")).code(0);
    let again = stage.say(&words("report r.json")).code(0).calm();
    assert_eq!(live.out, again.out);
    let raw = stage.say(&words("report r.json --raw --width 60")).code(0);
    assert_ne!(live.out, raw.out);
    let json = stage.say(&words("report r.json --format json")).code(0);
    assert_eq!(json.out.trim_end(), stage.read("r.json").trim_end());
}

#[test]
fn a_run_writes_its_page_itself() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    stage
        .say(&words("run j.fio --output r.html --store-result r.json"))
        .code(0);
    stage.say(&words("report r.json -o again.html")).code(0);
    assert_eq!(stage.read("r.html"), stage.read("again.html"));
    stage
        .say(&words("run --repeat 2 j.fio --output runs.html"))
        .code(0);
    assert!(stage.read("runs.html").contains("run 2"));
}

#[test]
fn what_cannot_be_reported_is_refused_and_nothing_is_written() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    stage.file("text.json", "hello");
    stage.say(&words("run j.fio --store-result r.json")).code(0);
    let before = stage.list();
    for (text, says) in [
        ("report", "no result given"),
        ("report none.json -o r.html", "none.json"),
        ("report text.json -o r.html", "text.json"),
        ("report r.json text.json -o r.html", "text.json"),
        ("report r.json -o r.json", "a result that is reported"),
        ("report r.json -o none/r.html", "none/r.html"),
        ("report r.json --output r.pdf", "known are .html"),
    ] {
        stage.say(&words(text)).code(2).silent().err(says);
        assert_eq!(stage.list(), before, "{text}");
    }
}

#[test]
fn a_hostile_name_is_text() {
    let stage = Stage::new();
    let name = "</script><img onerror=x>";
    stage.file("j.fio", format!("[{name}]\nioengine=null\nsize=1m\n"));
    stage.say(&words("run j.fio --output r.html")).code(0);
    let page = stage.read("r.html");
    assert!(!page.contains("<img") && page.contains("&lt;/script&gt;&lt;img onerror=x&gt;"));
}

/// Each kind of a job with what its intervals hold.
fn over_time(result: &serde_json::Value, job: &str) -> Vec<(String, u64, usize)> {
    let jobs = result["groups"].as_array().unwrap().iter();
    let mut jobs = jobs.flat_map(|group| group["jobs"].as_array().unwrap());
    let job = jobs.find(|found| found["name"] == job).unwrap();
    let kinds = job["outcome"]["latency_over_time"].as_array().unwrap();
    let of = |kind: &serde_json::Value| {
        let intervals = kind["intervals"].as_array().unwrap();
        let runs = intervals.iter().flat_map(|i| i["rows"].as_array().unwrap());
        let counts = runs.flat_map(|run| &run.as_array().unwrap()[1..]);
        let counted = counts.map(|n| n.as_u64().unwrap()).sum();
        (
            kind["kind"].as_str().unwrap().to_owned(),
            counted,
            intervals.len(),
        )
    };
    kinds.iter().map(of).collect()
}

fn operations(result: &serde_json::Value, kind: &str) -> u64 {
    let rates = result["groups"][0]["rates"].as_array().unwrap();
    let rate = rates.iter().find(|rate| rate["kind"] == kind).unwrap();
    rate["operations"].as_u64().unwrap()
}

#[test]
fn every_operation_of_every_worker_and_rank_is_in_an_interval() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    for ranks in ["", " --ranks 3"] {
        let said = format!("run j.fio --section one{ranks} --store-result r.json");
        stage.say(&words(&said)).code(0);
        let result = serde_json::from_str(&stage.read("r.json")).unwrap();
        let found = over_time(&result, "one");
        let names: Vec<&str> = found.iter().map(|(kind, ..)| kind.as_str()).collect();
        assert_eq!(names, ["read", "write"]);
        for (kind, counted, intervals) in &found {
            assert_eq!(*counted, operations(&result, kind), "{kind}{ranks}");
            assert!((5..=201).contains(intervals), "{kind}{ranks}: {intervals}");
        }
        stage
            .say(&words("report r.json -o l.svg --plot latency"))
            .code(0);
        stage
            .say(&words("report r.json -o h.svg --plot heat-map"))
            .code(0);
        assert!(stage.read("h.svg").contains("class=\"h5\""));
    }
}

#[test]
fn every_form_is_the_same_from_run_show_and_report() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    let said = "run j.fio --store-result r.json --output r.md --output r.series.csv --format md";
    let live = stage.say(&words(said)).code(0);
    let (markdown, series) = (stage.read("r.md"), stage.read("r.series.csv"));
    assert_eq!(live.out, markdown);
    for part in ["# j.fio\n", "\n## one\n", "| one · write |", "\n## two\n"] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    assert!(
        series.starts_with("run_id,time_utc,label,group,job,kind,t_ns,dt_ns,operations,in_flight,")
    );
    for (format, written) in [("md", &markdown), ("csv-series", &series)] {
        let shown = format!("show r.json --as run --format {format}");
        assert_eq!(stage.say(&words(&shown)).code(0).out, *written);
        // It is called as its file there.
        let again = format!("report r.json --format {format}");
        let again = stage.say(&words(&again)).code(0).out;
        let relabelled = again
            .replace(",r,", ",j.fio,")
            .replace("# r\n", "# j.fio\n");
        assert_eq!(relabelled, *written);
    }
    let result = serde_json::from_str(&stage.read("r.json")).unwrap();
    let intervals = |job| {
        over_time(&result, job)
            .iter()
            .map(|kind| kind.2)
            .sum::<usize>()
    };
    assert_eq!(
        series.lines().count(),
        1 + intervals("one") + intervals("two")
    );
}

#[test]
fn rows_are_added_to_those_of_a_file_and_to_no_others() {
    let stage = Stage::new();
    stage.file("j.fio", JOBS);
    let lines = |name: &str| stage.read(name).lines().count();
    let run = "run j.fio --section two --append --output r.csv --output r.series.csv";
    stage.say(&words(run)).code(0);
    let (first, series) = (stage.read("r.csv"), lines("r.series.csv"));
    assert_eq!(first.lines().count(), 2);
    stage.say(&words(run)).code(0);
    assert!(stage.read("r.csv").starts_with(&first));
    assert_eq!(lines("r.csv"), 3);
    assert!(lines("r.series.csv") > series + 5);
    assert_eq!(stage.read("r.csv").matches("run_id").count(), 1);
    // What a reader of results adds is checked as well, and several at once are added together.
    stage
        .say(&words("run j.fio --section two --store-result s.json"))
        .code(0);
    stage
        .say(&words("report s.json s.json -o r.csv --append"))
        .code(0);
    assert_eq!(lines("r.csv"), 5);
    stage.file("other.csv", "a,b\n1,2\n");
    stage.file("cut.csv", first.trim_end());
    let before = stage.list();
    for (name, says) in [
        ("other.csv", "its first line is not the head of these rows"),
        (
            "r.series.csv.csv",
            "its first line is not the head of these rows",
        ),
        ("cut.csv", "its last row has no end"),
    ] {
        if name == "r.series.csv.csv" {
            stage.file(name, stage.read("r.series.csv"));
        }
        let held = stage.read(name);
        for verb in ["run j.fio --store-result t.json", "report s.json"] {
            let said = format!("{verb} --append --output {name}");
            stage.say(&words(&said)).code(2).silent().err(says);
        }
        assert_eq!(stage.read(name), held);
    }
    // Nothing was run.
    assert!(before.iter().all(|name| name != "t.json"));
    assert!(!stage.list().contains(&"t.json".to_owned()));
    stage
        .say(&words("run j.fio --append --output r.txt"))
        .code(2)
        .err("--append acts only with `--output FILE.csv`");
}

#[test]
fn a_png_without_chromium_says_what_is_missing() {
    let stage = stored();
    let png = "report net.json -o p.png --plot figures-s";
    let mut command = stage.weir(&words(png));
    command.env_remove("WEIR_CHROMIUM").env("PATH", "/nowhere");
    said(command)
        .code(3)
        .silent()
        .err("apt-get install chromium, or set WEIR_CHROMIUM");
    let mut command = stage.weir(&words(png));
    command.env("WEIR_CHROMIUM", "/nowhere/chromium");
    said(command)
        .code(3)
        .silent()
        .err("/nowhere/chromium drew no PNG");
    assert!(!stage.list().contains(&"p.png".to_owned()));
    // What is asked for is looked at first.
    stage
        .say(&words("report net.json -o p.png"))
        .code(2)
        .err("name it with --plot");
}

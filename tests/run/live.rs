//! `--live`: a run on a whole terminal, which is given back whatever happens.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use weir_schema::RunResult;

use crate::stage::{Stage, WEIR, has, is_stopped, skip, until};

/// The other screen, and back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// weir on a terminal of its own, as somebody sees it who sits there.
struct TerminalSession {
    stage: Stage,
    terminal: Child,
    keys: ChildStdin,
}

impl TerminalSession {
    /// Starts `weir run` with these words and a job of this many seconds; none where there is no terminal
    /// to be had.
    fn new(test: &str, words: &str, seconds: u32) -> Option<Self> {
        Self::sized(test, (80, 24), words, seconds)
    }

    fn sized(test: &str, (columns, rows): (u16, u16), words: &str, seconds: u32) -> Option<Self> {
        if !has("script") || !has("stty") {
            skip(test, "no script, no stty");
            return None;
        }
        let stage = Stage::new();
        let job = "[a]\nioengine=null\nrw=randread\nsize=1m\nbs=4k\nthinktime=1ms\ntime_based\n";
        stage.file("j.fio", format!("{job}runtime={seconds}\n"));
        // Where the tests were started with `nohup`, SIGHUP is ignored in all that they start.
        stage.file(
            "session.sh",
            format!(
                "trap : INT\ntty > tty\nstty cols {columns} rows {rows}\nstty -g > before\n\
                 sh -c 'echo $$ > pid; exec env --default-signal {WEIR} run {words} j.fio > out'\n\
                 echo $? > code\nstty -g > after\n"
            ),
        );
        let mut command = stage.command("script");
        command.args(["-qfc", "sh session.sh", "screen"]);
        command.env("TERM", "xterm").stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut terminal = command.spawn().unwrap();
        let keys = terminal.stdin.take().unwrap();
        Some(Self {
            stage,
            terminal,
            keys,
        })
    }

    /// All that the terminal was sent so far.
    fn sent(&self) -> String {
        let bytes = fs::read(self.stage.path("screen")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the terminal was sent this so many times.
    #[track_caller]
    fn gets(&self, text: &str, times: usize) {
        until(&format!("{times} times {text:?}"), || {
            self.sent().matches(text).count() >= times
        });
    }

    /// Waits until the view shows this.
    #[track_caller]
    fn shows(&self, text: &str) {
        until(&format!("a view with {text:?}"), || {
            picture(&self.sent()).contains(text)
        });
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn weir(&self) -> Pid {
        let pid = self.stage.read("pid").trim().parse().unwrap();
        Pid::from_raw(pid).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.weir(), signal).unwrap();
    }

    /// Output of `stty` for these arguments and the terminal.
    fn stty(&self, words: &[&str]) -> String {
        let tty = self.stage.read("tty");
        let mut command = Command::new("stty");
        command.args(["-F", tty.trim()]).args(words);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Waits for the end; the exit code, standard output, and what the terminal was sent.
    #[track_caller]
    fn end(mut self) -> (i32, String, String) {
        until("it ends", || self.terminal.try_wait().unwrap().is_some());
        let code = self.stage.read("code").trim().parse().unwrap();
        let screen = self.sent();
        let (before, after) = (self.stage.read("before"), self.stage.read("after"));
        assert_eq!(before, after, "the terminal is as it was\n{screen:?}");
        let (enters, leaves) = (screen.matches(ENTER).count(), screen.matches(LEAVE).count());
        assert_eq!(enters, leaves, "{screen:?}");
        assert!(screen.rfind(LEAVE) >= screen.rfind(ENTER), "{screen:?}");
        (code, self.stage.read("out"), screen)
    }
}

/// Screen of a terminal after these bytes, as far as the view makes use of it.
fn picture(sent: &str) -> String {
    let mut cells = vec![vec![' '; 120]; 40];
    let (mut row, mut column) = (0, 0);
    let mut left = sent;
    while let Some(character) = left.chars().next() {
        let sequence = left.strip_prefix("\x1b[").and_then(|rest| {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            Some((&rest[..end], &rest[end..=end], &rest[end + 1..]))
        });
        let Some((numbers, kind, rest)) = sequence else {
            if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
                *cell = character;
            }
            column += 1;
            left = &left[character.len_utf8()..];
            continue;
        };
        left = rest;
        match (kind, numbers) {
            ("H", place) => {
                let (y, x) = place.split_once(';').unwrap();
                (row, column) = (
                    y.parse::<usize>().unwrap() - 1,
                    x.parse::<usize>().unwrap() - 1,
                );
            }
            ("J", _) | ("h" | "l", "?1049") => cells.iter_mut().for_each(|row| row.fill(' ')),
            _ => {}
        }
    }
    let lines = cells
        .iter()
        .map(|row| row.iter().collect::<String>() + "\n");
    lines.collect()
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        let _ = self.terminal.kill();
        let _ = self.terminal.wait();
    }
}

#[test]
fn the_report_follows_the_view_and_says_what_it_cost() {
    let Some(session) = TerminalSession::new("a run to its end", "--live --format=json", 2) else {
        return;
    };
    let (code, out, screen) = session.end();
    assert_eq!(code, 0, "{screen:?}");
    assert!(
        picture(screen.split(LEAVE).next().unwrap()).contains("60 s ago"),
        "{screen:?}"
    );
    // The terminal is that of the view, and nothing else is written there.
    let (before, _) = screen.split_once(ENTER).unwrap();
    assert!(!before.contains("weir"), "{screen:?}");
    let result = RunResult::from_json(&out).unwrap();
    assert!(result.complete && result.warnings.iter().all(|w| w.id != "ended-early"));
    let cost = result.instrument.live_cpu_percent;
    assert!(
        cost.is_some_and(|percent| percent > 0.0 && percent < 100.0),
        "{cost:?}"
    );
}

#[test]
fn who_leaves_the_view_sees_the_progress_of_a_run_that_goes_on() {
    let Some(mut session) = TerminalSession::new("q", "--live --format=json", 5) else {
        return;
    };
    session.gets(ENTER, 1);
    session.press("q");
    session.gets(LEAVE, 1);
    session.gets("in fl.", 1);
    let (code, out, screen) = session.end();
    assert_eq!((code, screen.matches(ENTER).count()), (0, 1), "{screen:?}");
    let result = RunResult::from_json(&out).unwrap();
    let done = result.jobs().next().unwrap();
    let span = done.workers()[0].span.unwrap();
    assert!(
        result.complete && span.length().as_secs_f64() > 4.9,
        "{span:?}"
    );
}

#[test]
fn every_screen_is_a_key_away() {
    let Some(mut session) = TerminalSession::new("screens", "--live --fps=20", 60) else {
        return;
    };
    session.shows(" in flight");
    for (key, shown) in [
        ("2", "since start"),
        ("3", "fuller is more"),
        ("4", "workers by number"),
        ("5", "disks behind the targets"),
        ("6", "plan, and what was said"),
        ("h", "exit code 130"),
    ] {
        session.press(key);
        session.shows(shown);
    }
    session.press("\x03");
    assert_eq!(session.end().0, 130);
}

#[test]
fn ctrl_c_interrupts_as_everywhere() {
    let Some(mut session) = TerminalSession::new("Ctrl-C", "--live", 60) else {
        return;
    };
    session.gets(ENTER, 1);
    session.press("\x03");
    let (code, out, screen) = session.end();
    assert_eq!(code, 130, "{screen:?}");
    assert!(out.contains("INCOMPLETE (signal 2 after"), "{out}");
}

#[test]
fn the_run_ends_early_where_that_is_meant() {
    let Some(mut session) = TerminalSession::new("an early end", "--live --format=json", 60) else {
        return;
    };
    session.shows("measure");
    session.press("en");
    session.press("e");
    session.shows("End the run early?");
    session.press("y");
    let (code, out, screen) = session.end();
    assert_eq!(code, 0, "{screen:?}");
    let result = RunResult::from_json(&out).unwrap();
    assert!(result.complete && result.ended_by.is_none());
    let job = result.jobs().next().unwrap();
    assert_eq!(job.state, weir_schema::State::Done);
    let warnings: Vec<_> = result.warnings.iter().map(|w| w.id.as_str()).collect();
    assert!(warnings.contains(&"ended-early"), "{warnings:?}");
}

#[test]
fn signals_give_the_terminal_back() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let Some(session) = TerminalSession::new("signals", "--live", 60) else {
            return;
        };
        session.gets(ENTER, 1);
        session.signal(signal);
        assert_eq!(session.end().0, code, "{signal:?}");
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_until_the_program_goes_on() {
    let Some(mut session) = TerminalSession::new("Ctrl-Z", "--live", 60) else {
        return;
    };
    session.shows(" in flight");
    assert_ne!(session.stty(&["-g"]), session.stage.read("before"));
    session.press("\x1a");
    until("it stops", || is_stopped(session.weir()));
    session.gets(LEAVE, 1);
    assert_eq!(session.stty(&["-g"]), session.stage.read("before"));
    session.signal(Signal::CONT);
    // All of it is drawn again, not only what has changed.
    session.gets(ENTER, 2);
    session.shows(" in flight");
    session.shows("h help");
    session.press("\x03");
    assert_eq!(session.end().0, 130);
}

#[test]
fn a_small_terminal_shows_a_line_until_it_is_large_enough() {
    let Some(mut session) = TerminalSession::new("a resize", "--live", 60) else {
        return;
    };
    session.gets(ENTER, 1);
    session.stty(&["cols", "40", "rows", "24"]);
    session.gets("--live needs 60x16 characters, here are 40x24", 1);
    assert_eq!(session.sent().matches(LEAVE).count(), 1);
    session.gets("in fl.", 1);
    session.stty(&["cols", "100", "rows", "30"]);
    session.gets(ENTER, 2);
    session.press("\x03");
    let (code, _, screen) = session.end();
    assert_eq!(code, 130);
    assert_eq!(screen.matches("--live needs").count(), 1, "{screen:?}");
}

#[test]
fn a_terminal_that_is_small_from_the_start_gets_the_line() {
    for size in [(59, 24), (80, 15)] {
        let Some(session) = TerminalSession::sized("a small terminal", size, "--live", 2) else {
            return;
        };
        let (code, out, screen) = session.end();
        assert_eq!(code, 0, "{screen:?}");
        assert!(!screen.contains(ENTER), "{screen:?}");
        assert_eq!(
            screen.matches("--live needs 60x16").count(),
            1,
            "{screen:?}"
        );
        assert!(
            screen.contains("in fl.") && out.contains("latency"),
            "{screen:?}"
        );
    }
}

#[test]
fn a_snapshot_is_a_result_of_what_was_done_so_far() {
    let Some(mut session) = TerminalSession::new("a snapshot", "--live", 60) else {
        return;
    };
    session
        .stage
        .file("weir-snapshot-1.json", "not to be replaced");
    session.shows("measure");
    session.press("w");
    session.shows("stored in weir-snapshot-2.json");
    let result = RunResult::from_json(&session.stage.read("weir-snapshot-2.json")).unwrap();
    assert!(!result.complete && result.jobs().count() == 1);
    assert_eq!(
        session.stage.read("weir-snapshot-1.json"),
        "not to be replaced"
    );
    let shown = session.stage.say(&["show", "weir-snapshot-2.json"]).code(0);
    assert!(
        shown.out.contains("randread") || shown.out.contains("read 4 KiB"),
        "{shown}"
    );
    session.press("\x03");
    assert_eq!(session.end().0, 130);
}

#[test]
fn what_is_no_screen_is_refused_before_anything_runs() {
    let stage = Stage::new();
    stage.file("j.fio", "[a]\nrw=write\nsize=64k\nfilename=made\n");
    stage
        .say(&["run", "--live", "j.fio"])
        .code(2)
        .silent()
        .err("--live: standard input is no terminal");
    stage
        .say(&["run", "--fps=5", "j.fio"])
        .code(2)
        .err("--fps acts only with `--live`");
    stage
        .say(&["run", "--live", "--fps=21", "j.fio"])
        .code(2)
        .err("--fps 21: it takes a whole number from 1 to 20");
    stage
        .say(&["run", "--live", "--repeat", "j.fio"])
        .code(2)
        .err("--live shows one run");
    assert_eq!(stage.list(), ["j.fio"]);
    if !has("script") {
        return skip("what is no screen", "no script");
    }
    for (term, what, why) in [
        ("dumb", "", "TERM is `dumb`"),
        ("", "", "TERM does not say"),
        ("xterm", "2> said", "standard error is no terminal"),
    ] {
        let mut command = stage.command("script");
        let words = format!("{WEIR} run --live j.fio {what}; echo code $?");
        command
            .args(["-qec", &words, "/dev/null"])
            .env("TERM", term);
        let said = command.output().unwrap();
        let mut said = String::from_utf8_lossy(&said.stdout).into_owned();
        said += &fs::read_to_string(stage.path("said")).unwrap_or_default();
        assert!(said.contains(why) && said.contains("code 2"), "{said}");
        assert!(!said.contains(ENTER), "{said:?}");
        let _ = fs::remove_file(stage.path("said"));
        assert_eq!(stage.list(), ["j.fio"]);
    }
}

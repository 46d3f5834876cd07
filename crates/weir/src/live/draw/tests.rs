//! Each screen as a terminal of each size shows it.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;
use weir_schema::{Kind, Stage, WorkerResult, sample};
use weir_stats::Histogram;
use weir_units::Nanos;

use super::super::machine::{CpuSecond, DiskSecond};
use super::super::per_second::tests::{job, seen};
use super::*;

/// Two jobs over 40 s, of which the second pauses for a while.
fn per_second() -> PerSecond {
    let mut per_second = PerSecond::default();
    let mut first = job(0, 0, 75_000);
    let mut second = job(1, 0, 400_000);
    for step in 0..=40_u64 {
        per_second.look(seen(step * 1000, vec![first.clone(), second.clone()]));
        let rate = 400_000 + step * 1_000;
        first.operations += rate;
        first.bytes.0 += rate * 4096;
        first
            .latency
            .record_n(75_000 + step * 100, rate - rate / 50);
        first.latency.record_n(140_000, rate / 50);
        if !(20..25).contains(&step) {
            second.operations += 50_000;
            second.bytes.0 += 50_000 * 4096;
            second.latency.record_n(400_000 + step * 5_000, 50_000);
        }
    }
    per_second
}

fn result() -> RunResult {
    let worker = |number: u32, operations: u64, latency: u64| {
        let mut all = Histogram::new();
        all.record_n(latency, operations);
        let second = Nanos::from_secs(1);
        let reads = sample::kind(Kind::Read, operations, second, &[(Stage::Lat, all)]);
        WorkerResult {
            clone: number,
            ..sample::worker(number, second, vec![reads])
        }
    };
    let workers = vec![
        worker(0, 212_000, 75_000),
        worker(1, 101_000, 180_000),
        worker(2, 187_000, 91_000),
    ];
    let group = vec![(
        sample::block_job("job0"),
        sample::job_result("job0", workers),
    )];
    sample::run(vec![group])
}

fn machine() -> MachinePerSecond {
    let mut machine = MachinePerSecond::default();
    machine.cpus = (0..4_u32)
        .map(|number| CpuSecond {
            number,
            user: 10.0 * f64::from(number),
            system: 20.0,
            interrupts: 1.0,
            steal: f64::from(number) / 2.0,
            hertz: Some(3_400_000_000 + u64::from(number) * 100_000_000),
        })
        .collect();
    machine.disks = vec![DiskSecond {
        name: "nvme0n1".to_owned(),
        reads: 412_000.0,
        writes: 0.0,
        read_bytes: 1.69e9,
        written_bytes: 0.0,
        in_flight: 32,
        busy: 99.0,
    }];
    machine
}

/// Text that a terminal of this size shows after these keys.
fn screen(size: (u16, u16), keys: &str, style: &weir_report::Style) -> String {
    let (per_second, machine, result) = (per_second(), machine(), result());
    let mut choice = Choice::default();
    for key in keys.chars() {
        let code = if key == '\t' {
            KeyCode::Tab
        } else {
            KeyCode::Char(key)
        };
        choice.press(code, 2);
    }
    let mut plan = sample::plan(vec![vec![
        sample::block_job("job0"),
        sample::block_job("job1"),
    ]]);
    plan.command = ["weir", "run", "--live", "jobs.fio"]
        .map(str::to_owned)
        .to_vec();
    let shown = Shown {
        plan: &plan,
        choice: &choice,
        per_second: &per_second,
        machine: &machine,
        result: Some(&result),
        said: "note: \x1b[31mnothing is laid out\n",
        answer: None,
        note: None,
    };
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, &shown, style)).unwrap();
    terminal.backend().to_string()
}

fn colored() -> weir_report::Style {
    weir_report::Style {
        color: true,
        ..weir_report::Style::default()
    }
}

fn named(size: &str, screen: &str) -> String {
    format!("{size}-{}", screen.replace(' ', "-"))
}

#[test]
fn each_screen_at_80_columns() {
    for (digit, (_, name)) in ('1'..='6').zip(Screen::ALL) {
        let picture = screen((80, 24), &digit.to_string(), &colored());
        insta::assert_snapshot!(named("80x24", name), picture);
    }
}

#[test]
fn each_screen_at_120_columns() {
    for (digit, (_, name)) in ('1'..='6').zip(Screen::ALL) {
        let picture = screen((120, 40), &digit.to_string(), &colored());
        insta::assert_snapshot!(named("120x40", name), picture);
    }
}

#[test]
fn the_smallest_terminal_shows_each_screen() {
    for (digit, (_, name)) in ('1'..='6').zip(Screen::ALL) {
        let picture = screen((60, 16), &digit.to_string(), &colored());
        insta::assert_snapshot!(named("60x16", name), picture);
    }
}

#[test]
fn help_lists_every_key() {
    insta::assert_snapshot!("help", screen((60, 16), "h", &colored()));
}

#[test]
fn ascii_is_only_ascii_on_every_screen() {
    let ascii = weir_report::Style {
        ascii: true,
        ..weir_report::Style::default()
    };
    for keys in ["1", "1l", "2", "2l", "3", "4", "5", "6", "h", "e"] {
        let picture = screen((80, 24), keys, &ascii);
        assert!(picture.is_ascii(), "{keys}\n{picture}");
        // A question mark stands for a character without a replacement.
        assert!(keys == "e" || !picture.contains('?'), "{keys}\n{picture}");
    }
}

#[test]
fn colours_are_only_where_they_are_wanted() {
    let colors = |style: &weir_report::Style| {
        let (per_second, machine) = (per_second(), machine());
        let (plan, choice) = (Plan::default(), Choice::default());
        let shown = Shown {
            plan: &plan,
            choice: &choice,
            per_second: &per_second,
            machine: &machine,
            result: None,
            said: "",
            answer: None,
            note: None,
        };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &shown, style)).unwrap();
        let cells = terminal.backend().buffer().content.iter();
        cells.filter(|cell| cell.fg != Color::Reset).count()
    };
    assert!(colors(&colored()) > 100);
    assert_eq!(colors(&weir_report::Style::default()), 0);
}

#[test]
fn the_window_scale_and_job_are_those_that_are_chosen() {
    let usual = screen((80, 24), "1", &colored());
    assert!(
        usual.contains("60 s ago") && usual.contains("2 jobs"),
        "{usual}"
    );
    let longer = screen((80, 24), "1+", &colored());
    assert!(longer.contains("120 s ago"), "{longer}");
    let logarithmic = screen((80, 24), "1l", &colored());
    assert!(logarithmic.contains("10.0 µs"), "{logarithmic}");
    let one = screen((80, 24), "1\t\t", &colored());
    assert!(
        one.contains(" job1  window") && one.contains("rate 50.0 k ops/s"),
        "{one}"
    );
}

#[test]
fn workers_are_sorted_the_worst_first() {
    let order = |keys| {
        let picture = screen((80, 24), keys, &colored());
        let names = picture.match_indices("job0.");
        names
            .map(|(at, _)| picture[at + 5..=at + 5].to_owned())
            .collect::<String>()
    };
    assert_eq!(order("4"), "012");
    assert_eq!(order("4r"), "210");
    assert_eq!(order("4s"), "120");
    assert_eq!(order("4ss"), "120");
    assert_eq!(order("4ssr"), "021");
}

#[test]
fn what_others_named_cannot_steer_the_terminal() {
    let picture = screen((80, 24), "6", &colored());
    assert!(!picture.contains('\x1b'), "{picture}");
    assert!(picture.contains("nothing is laid out"), "{picture}");
}

#[test]
fn the_question_before_the_end_and_answers_have_the_last_line() {
    let asked = screen((60, 16), "e", &colored());
    assert!(asked.contains("End the run early? y ends it"), "{asked}");
    let frozen = screen((80, 24), "f", &colored());
    assert!(frozen.contains("FROZEN"), "{frozen}");
}

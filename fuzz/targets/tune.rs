//! Texts that a search for better settings reads: a command with placeholders, values of settings,
//! a trail.
//!
//! The input is one text, which each reader gets whole; its first line is also a command, and the rest the
//! results of its trials.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_diagnose::tune::{
    Trail, TuneDimension, TuneGoal, TuneSpace, TuneStep, TuneTemplate, best_so_far, next_step,
};

/// Larger spaces take longer than a fuzzer has patience.
const MOST_POINTS: usize = 10_000;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match Trail::read(&text) {
        Ok(Some(trail)) => {
            let lines = trail
                .trials
                .iter()
                .map(|trial| trial.line().expect("a line"));
            let again = trail.head.line().expect("a line") + &lines.collect::<String>();
            assert_eq!(Trail::read(&again), Ok(Some(trail)));
        }
        Ok(None) => {}
        Err(error) => assert!((1..=text.lines().count().max(1)).contains(&error.line)),
    }
    if let Ok(mut dimension) = TuneDimension::read("n", &text) {
        assert!(dimension.start < dimension.values.len());
        dimension.begin_with("7");
        assert_eq!(dimension.values[dimension.start], "7");
    }
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let words: Vec<String> = first.split(' ').map(str::to_owned).collect();
    let Ok(template) = TuneTemplate::read(&words, &["config"]) else {
        return;
    };
    let space = TuneSpace {
        dimensions: template.dimensions.clone(),
    };
    if space.dimensions.is_empty() || space.points() > MOST_POINTS {
        return;
    }
    search(&space, rest.as_bytes());
});

/// A search asks for points of its space alone, and ends with one.
fn search(space: &TuneSpace, bytes: &[u8]) {
    let goal = TuneGoal {
        is_higher: bytes.len().is_multiple_of(2),
        seed: bytes.len() as u64,
    };
    let is_inside = |point: &[usize]| {
        let sizes = space.dimensions.iter().map(|d| d.values.len());
        point.len() == space.dimensions.len() && point.iter().zip(sizes).all(|(at, n)| *at < n)
    };
    let mut results = Vec::new();
    for byte in bytes.iter().take(60) {
        match next_step(space, goal, &results) {
            TuneStep::Trial(point) => assert!(is_inside(&point)),
            TuneStep::End(end) => {
                assert!(is_inside(&end.best));
                return;
            }
        }
        results.push((*byte > 40).then(|| f64::from(*byte) - 60.0));
        assert!(is_inside(&best_so_far(space, goal, &results).best));
    }
}

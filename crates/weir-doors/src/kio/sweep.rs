//! Sweeps: a setting takes one value after the other, several settings each with each.
//!
//! In: `queue_depth=1..128*2`. Out: the settings of each point, in order. Not here: what is done at a
//! point.

use super::settings::{Field, Given};
use weir_units::parse::scaled;

/// Points of all axes together.
const MOST_POINTS: usize = 4096;

/// Quantity that a sweep may vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// The number of threads.
    Threads,
    /// A setting of all threads.
    Setting(Field),
}

/// A point: the settings that it changes, and its threads where these are swept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// Settings of every thread.
    pub(super) given: Given,
    /// Number of threads, where it is swept.
    pub(super) threads: Option<u32>,
}

/// The points that the axes ask for, one without any.
///
/// # Errors
/// The error in an axis.
pub(super) fn points<'a>(axes: impl Iterator<Item = &'a str>) -> Result<Vec<Point>, String> {
    let mut points = vec![Point::default()];
    let mut seen = Vec::new();
    for text in axes {
        let (axis, values) = read(text).map_err(|why| format!("--sweep {text}: {why}"))?;
        if seen.contains(&axis) {
            return Err(format!("--sweep {text}: this axis stands there twice"));
        }
        seen.push(axis);
        let twice = |(at, value): &(usize, &i64)| values[..*at].contains(value);
        if let Some((_, value)) = values.iter().enumerate().find(twice) {
            return Err(format!("--sweep {text}: {value} stands there twice"));
        }
        if points.len().saturating_mul(values.len()) > MOST_POINTS {
            return Err(format!(
                "--sweep {text}: more than {MOST_POINTS} points in all"
            ));
        }
        let of_axis = |point: &Point| -> Vec<Point> {
            values.iter().map(|value| point.at(axis, *value)).collect()
        };
        points = points.iter().flat_map(of_axis).collect();
    }
    Ok(points)
}

impl Point {
    /// `num_threads=2 queue_depth=8`: the settings that are swept, in the order in which they are printed.
    pub(super) fn words(&self) -> String {
        let threads = self.threads.map(|count| format!("num_threads={count}"));
        let set = |field: Field| {
            let value = self.given.get(field)?;
            Some(format!("{}={value}", field.setting().name))
        };
        let settings = Field::ALL.into_iter().filter_map(set);
        threads
            .into_iter()
            .chain(settings)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn at(mut self, axis: Axis, value: i64) -> Self {
        match axis {
            Axis::Threads => self.threads = u32::try_from(value).ok(),
            Axis::Setting(field) => self.given.set(field, value),
        }
        self
    }
}

fn read(text: &str) -> Result<(Axis, Vec<i64>), String> {
    let (name, values) = text
        .split_once('=')
        .ok_or("expected SETTING=VALUES, as queue_depth=1..128*2")?;
    let name = name.replace('-', "_");
    let (axis, range) = if name == "num_threads" {
        (Axis::Threads, (1, 1024))
    } else {
        let field = Field::named(&name).ok_or_else(|| {
            let names = Field::ALL.map(|field| field.setting().name);
            let near = crate::flags::nearest(&name, names.into_iter());
            near.map_or_else(
                || format!("no setting `{name}` can be swept"),
                |near| format!("no setting `{name}`; did you mean `{near}`?"),
            )
        })?;
        (Axis::Setting(field), field.setting().range)
    };
    let mut all = Vec::new();
    for part in values.split(',') {
        all.extend(span(part, range)?);
        if all.len() > MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} values"));
        }
    }
    Ok((axis, all))
}

/// `5`, `1..128*2` or `0..100+25`.
fn span(text: &str, range: (i64, i64)) -> Result<Vec<i64>, String> {
    let Some((first, rest)) = text.split_once("..") else {
        return Ok(vec![scaled(text, range)?]);
    };
    let form = "expected FIRST..LAST*FACTOR or FIRST..LAST+STEP";
    let at = rest.find(['*', '+']).ok_or(form)?;
    let (last, step) = rest.split_at(at);
    let (first, last) = (scaled(first, range)?, scaled(last, range)?);
    let is_factor = step.starts_with('*');
    let step = step.get(1..).and_then(|step| step.parse::<i64>().ok());
    let least = if is_factor { 2 } else { 1 };
    let step = step.filter(|step| *step >= least).ok_or(form)?;
    if first > last || (is_factor && first < 1) {
        return Err(form.to_owned());
    }
    let next = |value: &i64| {
        let next = if is_factor {
            value.checked_mul(step)
        } else {
            value.checked_add(step)
        };
        next.filter(|next| *next <= last)
    };
    Ok(std::iter::successors(Some(first), next)
        .take(MOST_POINTS + 1)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<i64>, String> {
        read(text).map(|(_, values)| values)
    }

    #[test]
    fn an_axis_is_a_list_of_values_powers_or_steps() {
        assert_eq!(
            values("queue_depth=1..128*2"),
            Ok(vec![1, 2, 4, 8, 16, 32, 64, 128])
        );
        assert_eq!(
            values("queue-depth=1,3,10..20+5"),
            Ok(vec![1, 3, 10, 15, 20])
        );
        assert_eq!(values("block_size=4k..64k*4"), Ok(vec![4096, 16384, 65536]));
        assert_eq!(values("num_threads=1,2"), Ok(vec![1, 2]));
        assert_eq!(values("read_mix_percent=0..100+50"), Ok(vec![0, 50, 100]));
    }

    #[test]
    fn axes_are_taken_each_with_each() {
        let axes = ["num_threads=1,2", "queue_depth=1..4*2"];
        let points = points(axes.into_iter()).unwrap();
        let shown: Vec<_> = points
            .iter()
            .map(|p| (p.threads, p.given.get(Field::QueueDepth)))
            .collect();
        let depths = [1, 2, 4].map(Some);
        let expected = [1, 2].map(|threads| depths.map(|depth| (Some(threads), depth)));
        assert_eq!(shown, expected.concat());
        assert_eq!(points[4].words(), "num_threads=2 queue_depth=2");
        let one = super::points([].into_iter()).unwrap();
        assert_eq!(one.iter().map(Point::words).collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn what_is_no_axis_is_refused() {
        for (text, named) in [
            ("queue_depth", "SETTING=VALUES"),
            ("queue_dept=1", "did you mean `queue_depth`"),
            ("queue_depth=0", "from 1 to 1024"),
            ("queue_depth=1..8", "FACTOR"),
            ("queue_depth=1..8*1", "FACTOR"),
            ("queue_depth=8..1*2", "FACTOR"),
            ("read_burst=0..8*2", "FACTOR"),
            ("queue_depth=1..8*", "FACTOR"),
            ("queue_depth=", "whole number"),
        ] {
            let why = values(text).unwrap_err();
            assert!(why.contains(named), "{text}: {why}");
        }
        let twice = ["queue_depth=1", "queue_depth=2"];
        assert!(points(twice.into_iter()).unwrap_err().contains("twice"));
        let many = ["offset_low=0..1000+1", "offset_high=0..1000+1"];
        assert!(points(many.into_iter()).unwrap_err().contains("4096"));
    }
}

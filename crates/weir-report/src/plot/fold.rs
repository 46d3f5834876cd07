//! Fewer points for a picture that has no room for all.
//!
//! In: points in order of x. Out: at most so many. Of straight lines neighbours become one, with
//! their mean and the range of what they stand for, so that a peak is never lost; of steps and dots
//! some are left out, never the first or the last.

use super::{LineShape, PlotPoint, count};

/// At most `most` of these points, at least two.
pub(super) fn folded(points: &[PlotPoint], shape: LineShape, most: usize) -> Vec<PlotPoint> {
    let most = most.max(2);
    if points.len() <= most {
        return points.to_vec();
    }
    if shape != LineShape::Straight {
        let last = points.len() - 1;
        let kept = (0..most).map(|i| points[i * last / (most - 1)]);
        return kept.collect();
    }
    let each = points.len().div_ceil(most);
    points.chunks(each).map(one_of).collect()
}

/// Several points as one; a gap where none has a height.
fn one_of(points: &[PlotPoint]) -> PlotPoint {
    let x = points.iter().map(|p| p.x).sum::<f64>() / count(points.len());
    let heights: Vec<f64> = points.iter().filter_map(|p| p.y).collect();
    if heights.is_empty() {
        return PlotPoint {
            x,
            y: None,
            range: None,
        };
    }
    let lows = points
        .iter()
        .filter_map(|p| Some(p.range.map_or(p.y?, |r| r.0)));
    let highs = points
        .iter()
        .filter_map(|p| Some(p.range.map_or(p.y?, |r| r.1)));
    let range = (
        lows.fold(f64::INFINITY, f64::min),
        highs.fold(f64::NEG_INFINITY, f64::max),
    );
    PlotPoint {
        x,
        y: Some(heights.iter().sum::<f64>() / count(heights.len())),
        range: Some(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(heights: &[Option<f64>]) -> Vec<PlotPoint> {
        let points = heights.iter().zip(0_u32..).map(|(y, x)| PlotPoint {
            x: f64::from(x),
            y: *y,
            range: None,
        });
        points.collect()
    }

    #[test]
    fn a_peak_stays_in_the_range_and_a_gap_a_gap() {
        let heights = [1.0, 9.0, 2.0, 2.0].map(Some);
        let all = [&heights[..], &[None, None], &[Some(4.0), None]].concat();
        let few = folded(&points(&all), LineShape::Straight, 4);
        assert_eq!(few.len(), 4);
        assert_eq!((few[0].y, few[0].range), (Some(5.0), Some((1.0, 9.0))));
        assert_eq!(few[2].y, None);
        assert_eq!((few[3].y, few[3].x), (Some(4.0), 6.5));
        assert_eq!(folded(&points(&all), LineShape::Straight, 8), points(&all));
    }

    #[test]
    fn steps_keep_their_ends() {
        let all: Vec<Option<f64>> = (0_u32..1000).map(|i| Some(f64::from(i))).collect();
        let few = folded(&points(&all), LineShape::Steps, 10);
        assert_eq!((few.len(), few[0].x, few[9].x), (10, 0.0, 999.0));
    }
}

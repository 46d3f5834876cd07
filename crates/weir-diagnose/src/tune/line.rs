//! Probable place of the best value of one setting, from few values of it.
//!
//! In: values that were tried, with the logarithms of their figures. Out: the top of the parabola through
//! the best and its neighbours, as the number of a value. Not here: measuring.

/// A value that was tried: its number, and how good it is, larger being better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probe {
    pub(super) at: usize,
    pub(super) goodness: f64,
}

/// Numbers of two other values to try first, far apart from this one and from each other.
pub(super) fn far_apart(values: usize, at: usize) -> [usize; 2] {
    let last = values - 1;
    let third = last as f64 / 3.0;
    let place = at as f64;
    let mut found = if place <= third {
        [at + (last - at) / 2, last - (last - at) / 8]
    } else if place >= 2.0 * third {
        [at / 2, at / 8]
    } else {
        [at / 3, last - (last - at) / 3]
    };
    for new in &mut found {
        if *new == at {
            *new = if at == last { at - 1 } else { at + 1 };
        }
    }
    found
}

/// The number of the value at the top of the parabola through the best value and those beside it that
/// were tried; beyond the outermost one, where that is the best.
pub(super) fn top(probes: &[Probe], values: usize) -> Option<usize> {
    let mut line: Vec<Probe> = probes.to_vec();
    line.sort_by_key(|one| one.at);
    let best = (0..line.len()).max_by(|a, b| line[*a].goodness.total_cmp(&line[*b].goodness))?;
    let middle = best.clamp(1, line.len().checked_sub(2)?.max(1));
    let [a, b, c] = [middle - 1, middle, middle + 1].map(|at| line.get(at));
    let (a, b, c) = (a?, b?, c?);
    let x = |one: &Probe| one.at as f64;
    let (left, right) = (x(b) - x(a), x(c) - x(b));
    let (down, up) = (b.goodness - a.goodness, c.goodness - b.goodness);
    if !(down.is_finite() && up.is_finite()) {
        return None;
    }
    // Slopes on both sides, and how fast they change.
    let bend = (up / right - down / left) / (left + right);
    if bend >= 0.0 {
        return None;
    }
    let slope = (down / left * right + up / right * left) / (left + right);
    let top = (x(b) - slope / (2.0 * bend)).clamp(0.0, (values - 1) as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies among the numbers of values"
    )]
    Some(top.round() as usize)
}

/// A value half way from the best to the nearest one that failed; nothing where none failed, or none lies
/// between them.
pub(super) fn before_failure(probes: &[Probe]) -> Option<usize> {
    let works = |probe: &&Probe| probe.goodness.is_finite();
    let better = |a: &&Probe, b: &&Probe| a.goodness.total_cmp(&b.goodness);
    let best = probes.iter().filter(works).max_by(better)?.at;
    let failed = probes.iter().filter(|probe| !works(probe)).map(|p| p.at);
    let nearest = failed.min_by_key(|at| at.abs_diff(best))?;
    let middle = usize::midpoint(best, nearest);
    (middle != best && middle != nearest).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(places: &[usize], goodness: impl Fn(f64) -> f64) -> Option<usize> {
        let probes: Vec<Probe> = places
            .iter()
            .map(|at| Probe {
                at: *at,
                goodness: goodness(*at as f64),
            })
            .collect();
        top(&probes, 10)
    }

    #[test]
    fn the_top_of_a_parabola_is_found_from_three_values() {
        for best in 0..10 {
            let found = of(&[9, 0, 4], |x| -(x - f64::from(best)).powi(2));
            assert_eq!(found, usize::try_from(best).ok());
        }
        assert_eq!(of(&[0, 3, 6], |x| -(x - 14.0).powi(2)), Some(9));
        assert_eq!(of(&[0, 3, 6], |x| x * x), None);
        assert_eq!(of(&[0, 3], |x| x), None);
        assert_eq!(
            of(&[0, 3, 6], |x| if x > 5.0 { f64::NEG_INFINITY } else { x }),
            None
        );
    }

    #[test]
    fn values_that_fail_are_approached_from_those_that_work() {
        let next = |probes: &[(usize, f64)]| {
            let of = |(at, goodness): &(usize, f64)| Probe {
                at: *at,
                goodness: *goodness,
            };
            before_failure(&probes.iter().map(of).collect::<Vec<_>>())
        };
        let fails = f64::NEG_INFINITY;
        assert_eq!(next(&[(0, 1.0), (4, fails), (8, fails)]), Some(2));
        assert_eq!(next(&[(2, 1.0), (4, fails), (0, 0.5)]), Some(3));
        assert_eq!(next(&[(9, 1.0), (4, fails)]), Some(6));
        assert_eq!(next(&[(3, 1.0), (4, fails)]), None);
        assert_eq!(next(&[(3, 1.0), (4, 2.0)]), None);
        assert_eq!(next(&[(3, fails)]), None);
    }

    #[test]
    fn the_first_probes_are_other_values() {
        for values in 3..20 {
            for at in 0..values {
                let [one, two] = far_apart(values, at);
                assert!(
                    one != at && two != at && one < values && two < values,
                    "{values} {at}"
                );
            }
        }
    }
}

//! The nearest known word to a mistyped one: for job files and command lines the same.

/// The candidate with the smallest edit distance, if it is near enough to be meant: one edit away,
/// or by less than half of the longer word. Two letters that changed places are one edit.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let its = candidate.chars().count();
        let longer = its.max(length);
        let is_near = |distance: usize| distance * 2 < longer || (distance == 1 && longer > 1);
        let is_better = |distance| is_near(distance) && best.is_none_or(|(d, _)| distance < d);
        // The lengths alone tell of most words that they are further away than the best so far.
        if is_better(its.abs_diff(length)) {
            let distance = strsim::osa_distance(word, candidate);
            if is_better(distance) {
                best = Some((distance, candidate));
            }
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_far_ones_are_not() {
        let words = ["bs", "rwmixread", "iodepth"];
        assert_eq!(nearest("bsz", words.into_iter()), Some("bs"));
        assert_eq!(nearest("iodeph", words.into_iter()), Some("iodepth"));
        assert_eq!(nearest("zzzzzzzz", words.into_iter()), None);
        assert_eq!(
            nearest("bxz", ["bxy", "bxz", "bxw"].into_iter()),
            Some("bxz")
        );
        assert_eq!(nearest("ab", ["ax", "ay"].into_iter()), Some("ax"));
        assert_eq!(nearest("abdc", ["abxx", "abcd"].into_iter()), Some("abcd"));
        assert_eq!(nearest(&"b".repeat(4000), words.into_iter()), None);
    }

    #[test]
    fn a_word_of_which_half_would_change_is_not_meant() {
        for (word, known) in [("foo", "o"), ("foo", "ofi"), ("blok", "flow"), ("x", "n")] {
            assert_eq!(nearest(word, [known].into_iter()), None, "{word}");
        }
    }
}

//! The nearest known word to a mistyped one.

/// The candidate with the smallest edit distance, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    let mut best = None;
    let mut bound = length.div_ceil(2) + 1;
    for candidate in candidates {
        // The lengths alone tell of most words that they are further away than the best so far.
        if candidate.chars().count().abs_diff(length) < bound {
            let distance = distance(word, candidate);
            if distance < bound {
                (best, bound) = (Some(candidate), distance);
            }
        }
    }
    best
}

/// Insertions, removals and replacements that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
        assert_eq!(nearest(&"b".repeat(4000), words.into_iter()), None);
    }
}

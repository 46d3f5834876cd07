//! The nearest known word to a mistyped one.

/// The candidate with the smallest edit distance, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = word.chars().count().div_ceil(2);
    candidates
        .map(|c| (distance(word, c), c))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, _)| *d <= limit)
        .map(|(_, c)| c)
}

/// Insertions, removals and replacements that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
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
    }
}

//! Faults of a value that has a grammar, with their place.

/// Why a value is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// One clause.
    pub(super) why: String,
    /// At which byte, where it is not the whole.
    pub(super) at: Option<usize>,
}

impl Wrong {
    pub(super) fn whole(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            at: None,
        }
    }

    pub(super) fn at(at: usize, why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            at: Some(at),
        }
    }

    /// The same, of a part that begins so many bytes further on.
    pub(super) fn behind(self, bytes: usize) -> Self {
        Self {
            at: self.at.map(|at| at + bytes),
            ..self
        }
    }

    /// The reason, with the character that it is about.
    pub(super) fn sentence(&self, value: &str) -> String {
        let Some((before, rest)) = self.at.and_then(|at| value.split_at_checked(at)) else {
            return self.why.clone();
        };
        let place = before.chars().count() + 1;
        let near = rest.chars().take(12).collect::<String>();
        if near.is_empty() {
            return format!("{} (at the end)", self.why);
        }
        format!("{} (at character {place}: `{near}`)", self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_that_of_a_character() {
        let wrong = Wrong::at(1, "it is odd").behind(2);
        assert_eq!(wrong.sentence("µx!"), "it is odd (at character 3: `!`)");
        assert_eq!(
            Wrong::at(3, "it ends").sentence("abc"),
            "it ends (at the end)"
        );
        assert_eq!(Wrong::whole("no").sentence("abc"), "no");
    }
}

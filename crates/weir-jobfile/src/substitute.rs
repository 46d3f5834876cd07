//! Words that stand for other words: `${VAR}`, `$pagesize`, `$ncpus`, `$mb_memory`.
//!
//! In: an option's value and the environment. Out: the value with these replaced, and what was
//! replaced. Not here: `$jobname`, `$jobnum`, `$filenum`, which stay until the run.

use weir_schema::catalogue::Environment;

/// A value after substitution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Substituted {
    pub text: String,
    /// Environment variables that are not set.
    pub unset: Vec<String>,
    /// A number was put in place of a keyword, so the value may be arithmetic.
    pub keyword: bool,
}

/// Replaces variables and keywords.
pub(crate) fn substitute(text: &str, environment: &Environment) -> Substituted {
    let mut out = Substituted::default();
    let keywords = [
        ("$pagesize", environment.page_bytes),
        ("$mb_memory", environment.memory_mib),
        ("$ncpus", u64::from(environment.cpus)),
    ];
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.text.push_str(&rest[..at]);
        rest = &rest[at..];
        let variable = rest.strip_prefix("${").and_then(|r| r.split_once('}'));
        if let Some((name, after)) = variable {
            match environment.variables.get(name) {
                Some(value) => out.text.push_str(value),
                None => out.unset.push(name.to_owned()),
            }
            rest = after;
        } else if let Some((word, number)) = keywords.iter().find(|(w, _)| rest.starts_with(w)) {
            out.text.push_str(&number.to_string());
            out.keyword = true;
            rest = &rest[word.len()..];
        } else {
            out.text.push('$');
            rest = &rest[1..];
        }
    }
    out.text.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment {
            cpus: 8,
            page_bytes: 4096,
            memory_mib: 512,
            variables: [("DIR".to_owned(), "/tmp".to_owned())].into(),
        }
    }

    #[test]
    fn variables_and_keywords_are_replaced() {
        let s = substitute("${DIR}/$ncpus-${SZ}x$jobname", &environment());
        assert_eq!(s.text, "/tmp/8-x$jobname");
        assert_eq!(s.unset, ["SZ"]);
        assert!(s.keyword);
    }

    #[test]
    fn an_unclosed_brace_stays() {
        assert_eq!(substitute("a${DIR", &environment()).text, "a${DIR");
        assert_eq!(substitute("$", &environment()).text, "$");
    }
}

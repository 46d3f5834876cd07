//! The document around the sections: head, policy, style sheet, script.

use sha2::{Digest, Sha256};

use crate::number_format::{program, start};
use crate::plot::escaped;
use crate::plot::{DARK, LIGHT, PlottedRun, style_rules};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A document that grows.
pub(super) struct Page {
    text: String,
}

impl Page {
    /// Its head and title: the one that is given, else the names of the results.
    pub(super) fn of(runs: &[PlottedRun<'_>], title: Option<&str>) -> Self {
        let names: Vec<String> = runs
            .iter()
            .take(4)
            .map(|run| name(run, runs.len()))
            .collect();
        let mut named = names.join(", ");
        if runs.len() > 4 {
            push!(named, " and {} more", runs.len() - 4);
        }
        let title = escaped(title.unwrap_or(&named));
        let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
        let (light, dark) = (LIGHT.variables(), DARK.variables());
        let rules = style_rules();
        let about = about(runs);
        Self {
            text: format!(
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
                 <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                 img-src data: blob:; style-src 'unsafe-inline'; script-src 'sha256-{hash}'\">\
                 <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
                 <title>{title}</title><style>:root{{{light};color-scheme:light}}\
                 @media(prefers-color-scheme:dark){{:root{{{dark};color-scheme:dark}}}}\
                 :root[data-theme=light]{{{light};color-scheme:light}}\
                 :root[data-theme=dark]{{{dark};color-scheme:dark}}\
                 @media print{{:root:root{{{light};color-scheme:light}}}}\n{STYLE}{rules}</style></head>\
                 <body><header><h1>{title}</h1><p>{about}</p></header><main>\n"
            ),
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text += text;
    }

    /// About how long the document is with what stands around the sections.
    pub(super) fn len(&self) -> usize {
        self.text.len() + SCRIPT.len() + 1000
    }

    /// The whole document.
    pub(super) fn finish(mut self) -> String {
        push!(
            self.text,
            "</main><script>{SCRIPT}</script></body></html>\n"
        );
        self.text
    }
}

/// Name of a result: its label among several, its plan alone.
fn name(run: &PlottedRun<'_>, runs: usize) -> String {
    let plan = &run.result.plan.name;
    if runs > 1 || plan.is_empty() {
        run.label.to_owned()
    } else {
        plan.clone()
    }
}

/// Time and machine of the measurement.
fn about(runs: &[PlottedRun<'_>]) -> String {
    let Some(run) = runs.first() else {
        return String::new();
    };
    let result = run.result;
    let host = result.host.hostname.as_ref();
    let parts = [
        start(result),
        host.cloned(),
        Some(program(result)),
        (result.source.is_none()).then(|| format!("run {}", result.started_unix_ns)),
        (runs.len() > 1).then(|| format!("{} results", runs.len())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    escaped(&parts.join(" · "))
}

/// Groups of three bytes as four letters.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i > three.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_published_vectors() {
        assert_eq!(base64(b"foob"), "Zm9vYg==");
        assert_eq!(base64(b"fooba"), "Zm9vYmE=");
        assert_eq!(
            base64(&Sha256::digest(b"abc")),
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
        );
    }
}

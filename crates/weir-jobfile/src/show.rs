//! The command line that says the same as the job files.

use weir_schema::Word;

/// Builds the line as sections are compiled.
#[derive(Debug)]
pub(crate) struct ShowCommand {
    text: String,
    /// A job was printed: later defaults need a section of their own.
    jobs: bool,
}

impl ShowCommand {
    pub(crate) fn new() -> Self {
        Self {
            text: "fio ".to_owned(),
            jobs: false,
        }
    }

    /// The next file starts from fio's defaults again: a command of its own.
    pub(crate) fn next_file(&mut self) {
        self.text.push_str("\nfio ");
        self.jobs = false;
    }

    /// Options of a section that sets defaults.
    pub(crate) fn defaults(&mut self, words: &[Word]) {
        if self.jobs && !words.is_empty() {
            self.text.push_str("--name=global ");
        }
        self.words(words);
    }

    /// A job and its options.
    pub(crate) fn job(&mut self, name: &str, words: &[Word]) {
        self.jobs = true;
        self.word("name", Some(name));
        self.words(words);
    }

    /// The line, with a blank at its end as fio prints it.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// Units come first and names of files last, as fio sorts them; the rest stays in order.
    fn words(&mut self, words: &[Word]) {
        for place in 0..3 {
            let here = |w: &&Word| w.key != "name" && place_of(&w.key) == place;
            for word in words.iter().filter(here) {
                self.word(&word.key, word.value.as_deref());
            }
        }
    }

    fn word(&mut self, key: &str, value: Option<&str>) {
        self.text.push_str("--");
        self.text.push_str(key);
        if let Some(value) = value {
            self.text.push('=');
            let plain = !value.contains(['"', '\\', '$', '`']);
            if key == "description" && plain {
                self.text.extend(["\"", value, "\""]);
            } else {
                self.text.push_str(&quoted(value));
            }
        }
        self.text.push(' ');
    }
}

fn place_of(key: &str) -> u8 {
    match key {
        "kb_base" | "unit_base" => 0,
        "filename" | "filename_format" => 2,
        _ => 1,
    }
}

/// The value as a shell takes it.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:,=%+@^~".contains(c);
    if value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

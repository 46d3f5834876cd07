//! Slow tests: other programs read the pages and the completions.

use super::{Command, Stage, Stdio, has, skip, verbs};

#[test]
fn pages_are_formatted_without_a_warning() {
    let stage = Stage::new();
    if !has("groff") {
        return skip(
            "pages_are_formatted_without_a_warning",
            "groff is not installed (groff-base)",
        );
    }
    let written = stage
        .say(&["man", "--all", &stage.path("man1")])
        .code(0)
        .calm();
    assert_eq!(written.out.lines().count(), verbs(&stage).len() + 1);
    for file in written.out.lines() {
        let mut groff = stage.command("groff");
        let said = groff
            .args(["-man", "-Tutf8", "-ww", file])
            .output()
            .unwrap();
        let complaints = String::from_utf8(said.stderr).unwrap();
        assert!(
            said.status.success() && complaints.is_empty(),
            "{file}: {complaints}"
        );
        assert!(said.stdout.len() > 200, "{file}");
    }
}

#[test]
fn shells_load_their_completions() {
    let stage = Stage::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = stage.say(&["completions", shell]).code(0).calm().out;
        let file = stage.file(shell, script);
        if !has(shell) {
            skip(
                "shells_load_their_completions",
                &format!("{shell} is not installed"),
            );
            continue;
        }
        let mut command = Command::new(shell);
        let said = command
            .args(["-n", &file])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let complaints = String::from_utf8(said.stderr).unwrap();
        assert!(
            said.status.success() && complaints.is_empty(),
            "{shell}: {complaints}"
        );
    }
}

#[test]
fn bash_completes_verbs_flags_and_words() {
    let stage = Stage::new();
    if !has("bash") {
        return skip(
            "bash_completes_verbs_flags_and_words",
            "bash is not installed",
        );
    }
    let script = stage.say(&["completions", "bash"]).code(0).out;
    let file = stage.file("weir.bash", script);
    let complete = |words: &[&str]| {
        let list: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let last = words.len() - 1;
        let (word, before) = (words[last], words[last - 1]);
        let text = format!(
            ". {file}; COMP_WORDS=({}); COMP_CWORD={last}; _weir weir '{word}' '{before}'; \
             echo \"${{COMPREPLY[@]}}\"",
            list.join(" ")
        );
        let said = Command::new("bash").args(["-c", &text]).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["weir", "eng"]), "engines");
    assert_eq!(complete(&["weir", "run", "--store"]), "--store-result");
    assert_eq!(complete(&["weir", "fio", "--iodepth_lo"]), "--iodepth_low");
    assert_eq!(complete(&["weir", "run", "--format", "js"]), "json");
}

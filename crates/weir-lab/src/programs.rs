//! Libraries that a program needs in a guest.
//!
//! In: a path of this machine. Out: the paths that `ldd` lists. Not here: packing them (`parts`).

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The libraries of a program; none for scripts, static programs and whatever is no program.
pub(crate) fn libraries(file: &Path) -> Result<Vec<PathBuf>> {
    if !is_program(file)? {
        return Ok(Vec::new());
    }
    let output = Command::new("ldd").arg(file).output().context("ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        !text.contains("not found"),
        "{} lacks libraries here:\n{text}",
        file.display()
    );
    Ok(listed(&text))
}

/// The paths in the output of `ldd`.
fn listed(text: &str) -> Vec<PathBuf> {
    let words = text.lines().filter_map(|line| {
        let path = line.split_once("=>").map_or(line, |(_, path)| path);
        path.split_whitespace().next()
    });
    words
        .filter(|word| word.starts_with('/'))
        .map(PathBuf::from)
        .collect()
}

/// True for an ELF file that is executable: no other is handed to the loader.
fn is_program(file: &Path) -> Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut magic = Vec::new();
    let open = fs::File::open(file).with_context(|| file.display().to_string())?;
    open.take(4).read_to_end(&mut magic)?;
    let mode = file.metadata()?.permissions().mode();
    Ok(magic == b"\x7fELF" && mode & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_ldd_become_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffe)\n\
                    \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\
                    \tstatically linked\n";
        assert_eq!(
            listed(text),
            [
                "/lib/x86_64-linux-gnu/libm.so.6",
                "/lib64/ld-linux-x86-64.so.2"
            ]
            .map(PathBuf::from)
        );
    }

    #[test]
    fn a_program_brings_its_libraries_and_a_text_brings_none() {
        let this = std::env::current_exe().unwrap();
        let found = libraries(&this).unwrap();
        assert!(
            found
                .iter()
                .any(|path| path.to_string_lossy().contains("libc.so")),
            "{found:?}"
        );
        assert!(libraries(Path::new("/etc/passwd")).unwrap().is_empty());
    }
}

//! The Debian package.
//!
//! In: a release. Out: a `.deb`: the program in /usr/bin, links for the doors in a folder of their
//! own, so that none comes before a peer of that name, the examples, manual pages and completions,
//! which the program makes itself.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Release, emptied, write};
use crate::cmd::Cmd;

/// Where the links lie that stand for doors.
const DOORS: &str = "usr/lib/weir/doors";
/// The completion of a shell, and where it looks for that of a program.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/weir"),
    ("zsh", "usr/share/zsh/vendor-completions/_weir"),
    ("fish", "usr/share/fish/vendor_completions.d/weir.fish"),
];
/// Which packaging of a version this is.
const REVISION: u32 = 1;
/// Whoever sends packages to others names themselves (`DEBFULLNAME`, `DEBEMAIL`).
const NOBODY: &str = "weir@localhost";

/// The package, and the tree of its files.
pub(super) fn make(root: &Path, release: &Release) -> Result<(PathBuf, PathBuf)> {
    let tree = release.out.join("deb");
    emptied(&tree)?;
    fill(root, release, &tree)?;
    let machine = Cmd::new("dpkg --print-architecture").read()?;
    let machine = machine.trim();
    control(release, &tree, machine)?;
    for path in below(&tree)? {
        let is_open = path.is_dir() || path.starts_with(tree.join("usr/bin"));
        if !path.is_symlink() {
            let mode = if is_open { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
    }
    let file = release
        .out
        .join(format!("weir_{}-{REVISION}_{machine}.deb", release.version));
    // It takes the times of files from the same variable, and writes the members sorted.
    Cmd::new("dpkg-deb --root-owner-group -Zxz --build")
        .args([&tree, &file])
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string())
        .run()?;
    Ok((file, tree))
}

fn fill(root: &Path, release: &Release, tree: &Path) -> Result<()> {
    let program = &release.program;
    fs::create_dir_all(tree.join("usr/bin"))?;
    fs::copy(program, tree.join("usr/bin/weir"))?;
    let pages = tree.join("usr/share/man/man1");
    fs::create_dir_all(&pages)?;
    Cmd::program(program)
        .args(["man", "--all"])
        .arg(&pages)
        .run()?;
    for page in below(&pages)? {
        Cmd::new("gzip -n9").arg(page).run()?;
    }
    for (shell, place) in COMPLETIONS {
        let text = Cmd::program(program).args(["completions", shell]).read()?;
        write(&tree.join(place), text)?;
    }
    links(tree)?;
    let documents = tree.join("usr/share/doc/weir");
    examples(root, &documents.join("examples"))?;
    write(&documents.join("copyright"), copyright(root)?)?;
    let changes = documents.join("changelog");
    fs::copy(root.join("CHANGELOG.md"), &changes)?;
    let packaged = documents.join("changelog.Debian");
    write(&packaged, packaging(release)?)?;
    Cmd::new("gzip -n9").args([&changes, &packaged]).run()
}

/// The job files that help and book name.
fn examples(root: &Path, to: &Path) -> Result<()> {
    let from = root.join("examples");
    for path in below(&from)?.iter().filter(|path| path.is_file()) {
        write(&to.join(path.strip_prefix(&from)?), fs::read(path)?)?;
    }
    Ok(())
}

/// Changes of the packaging, in the form that Debian reads.
fn packaging(release: &Release) -> Result<String> {
    let when = format!("@{}", release.epoch);
    let date = Cmd::new("date --utc --rfc-email --date").arg(when).read()?;
    Ok(format!(
        "weir ({}-{REVISION}) unstable; urgency=medium\n\n  \
         * What changed in weir is in changelog.gz.\n\n \
         -- {}  {}\n",
        release.version,
        maintainer(),
        date.trim()
    ))
}

fn maintainer() -> String {
    let said = |name: &str, otherwise: &str| {
        let set = std::env::var(name).ok().filter(|value| !value.is_empty());
        set.unwrap_or_else(|| otherwise.to_owned())
    };
    let name = said("DEBFULLNAME", "the weir contributors");
    format!("{name} <{}>", said("DEBEMAIL", NOBODY))
}

/// A link for each name that stands for a door.
fn links(tree: &Path) -> Result<()> {
    let folder = tree.join(DOORS);
    fs::create_dir_all(&folder)?;
    let names =
        Cmd::new("cargo run --quiet --locked --package weir-doors --example list_links").read()?;
    for name in names.lines() {
        symlink("../../../bin/weir", folder.join(name)).with_context(|| name.to_owned())?;
    }
    Ok(())
}

fn control(release: &Release, tree: &Path, machine: &str) -> Result<()> {
    let kib: u64 = below(tree)?
        .iter()
        .filter(|path| path.is_file() && !path.is_symlink())
        .map(|path| path.metadata().map_or(0, |m| m.len().div_ceil(1024)))
        .sum();
    let text = format!(
        "Package: weir\n\
         Version: {version}-{REVISION}\n\
         Section: utils\n\
         Priority: optional\n\
         Architecture: {machine}\n\
         Depends: {depends}\n\
         Installed-Size: {kib}\n\
         Maintainer: {maintainer}\n\
         Description: measures how fast data moves through storage and networks\n \
          weir does the jobs of fio, b_eff and others in one program: it accepts their\n \
          command lines, prints their output, and keeps one clock, exact histograms and\n \
          one result format for all of them.\n",
        version = release.version,
        maintainer = maintainer(),
        depends = depends(&release.program)?,
    );
    write(&tree.join("DEBIAN/control"), text)?;
    let mut sums = String::new();
    for path in below(&tree.join("usr"))? {
        if path.is_file() && !path.is_symlink() {
            let said = Cmd::new("md5sum").arg(&path).read()?;
            let sum = said.split(' ').next().unwrap_or_default();
            let name = path.strip_prefix(tree)?;
            writeln!(sums, "{sum}  {}", name.display())?;
        }
    }
    write(&tree.join("DEBIAN/md5sums"), sums)
}

/// The C library alone, of the version whose symbols the program asks for.
fn depends(program: &Path) -> Result<String> {
    Ok(format!("libc6 (>= {})", newest_symbols(program)?))
}

/// The newest version of the C library whose symbols a program asks for.
pub(super) fn newest_symbols(program: &Path) -> Result<String> {
    let said = Cmd::new("readelf --version-info --wide")
        .arg(program)
        .read()?;
    let newest = versions(&said)
        .max()
        .context("no symbol of the C library")?;
    Ok(format!("{}.{}", newest.0, newest.1))
}

/// `GLIBC_2.34` and the like in what `readelf` says.
fn versions(said: &str) -> impl Iterator<Item = (u32, u32)> {
    said.split_whitespace().filter_map(|word| {
        let (major, minor) = word.strip_prefix("GLIBC_")?.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    })
}

/// The licences in the form that Debian reads.
fn copyright(root: &Path) -> Result<String> {
    let paragraph = |file: &str| -> Result<String> {
        let text = fs::read_to_string(root.join(file))?;
        let line = |line: &str| {
            if line.trim().is_empty() {
                " .\n".to_owned()
            } else {
                format!(" {}\n", line.trim_end())
            }
        };
        Ok(text.trim_end().lines().map(line).collect())
    };
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: weir\n\n\
         Files: *\n\
         Copyright: 2026 the weir contributors\n\
         License: Expat or Apache-2.0\n\n\
         License: Expat\n{}\n\
         License: Apache-2.0\n On Debian systems the text of this licence is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        paragraph("LICENSE-MIT")?,
    ))
}

/// Everything below a folder, sorted.
fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path.clone());
            }
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_by_number_and_not_by_letters() {
        let said =
            "0x0010: Name: GLIBC_2.9 Flags: none\n 0x20: Name: GLIBC_2.34  Name: GLIBC_2.3.4\n";
        assert_eq!(versions(said).max(), Some((2, 34)));
        assert_eq!(versions("Name: GCC_3.0").max(), None);
    }
}

//! Kernels of the lab: images unpacked under `lab/kernels`, never installed, with the headers of the
//! same release.
//!
//! In: the series that tests need. Out: what was brought, or a line that says what is missing; the
//! tests that need it then skip. Not here: other packages (`packages`), booting them (weir-lab).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::cmd::{self, Cmd};
use crate::packages;

/// A series of Debian's kernels for virtual machines.
struct Series {
    /// The package that depends on the newest image of the series.
    image: &'static str,
    begins: &'static str,
}

const SERIES: &[Series] = &[
    Series {
        image: "linux-image-cloud-amd64",
        begins: "6.1.",
    },
    Series {
        image: "linux-image-6.12-cloud-amd64",
        begins: "6.12.",
    },
];

const FOLDER: &str = "lab/kernels";
const HEADERS: &str = "/usr/src/linux-headers-";

/// Brings the series that are not there. Never fails: it says what is missing.
pub(crate) fn ensure_there() {
    let missing: Vec<&Series> = SERIES.iter().filter(|series| !series.is_there()).collect();
    if missing.is_empty() {
        return;
    }
    if let Err(error) = update() {
        println!("WITHOUT kernels of the lab: {error:#}; tests that boot them are skipped");
        return;
    }
    for series in missing {
        if let Err(error) = series.bring() {
            println!(
                "WITHOUT kernel {}* of the lab: {error:#}; tests that boot it are skipped",
                series.begins
            );
        }
    }
}

fn update() -> Result<()> {
    ensure!(cmd::find("apt-get").is_some(), "this system has no apt-get");
    packages::apt("update -q", &[])
}

impl Series {
    fn is_there(&self) -> bool {
        let folders = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        folders
            .filter_map(|folder| folder.file_name().into_string().ok())
            .any(|release| {
                release.starts_with(self.begins)
                    && image_is_there(&release)
                    && has_headers(&release)
            })
    }

    fn bring(&self) -> Result<()> {
        let depends = Cmd::new("apt-cache depends").arg(self.image).read()?;
        let release =
            release_of(&depends).with_context(|| format!("{} depends on no image", self.image))?;
        ensure!(
            release.starts_with(self.begins),
            "this system's {} is {release}",
            self.image
        );
        if !has_headers(release) {
            packages::apt(
                "install -y -q --no-install-recommends",
                &[&format!("linux-headers-{release}")],
            )?;
        }
        if !image_is_there(release) {
            unpack(release)?;
        }
        Ok(())
    }
}

fn has_headers(release: &str) -> bool {
    Path::new(&format!("{HEADERS}{release}/Makefile")).is_file()
}

fn image_is_there(release: &str) -> bool {
    let image = Path::new(FOLDER).join(release).join("boot");
    image.join(format!("vmlinuz-{release}")).is_file()
}

/// Needs no rights.
fn unpack(release: &str) -> Result<()> {
    let (into, download) = (Path::new(FOLDER).join(release), "target/lab-download");
    // What an earlier call left is of an older release.
    let _ = fs::remove_dir_all(download);
    fs::create_dir_all(download)?;
    let package = format!("linux-image-{release}");
    Cmd::new("env --chdir")
        .arg(download)
        .args(["apt-get", "download", "-q", &package])
        .run()?;
    let file = fs::read_dir(download)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .context("apt-get download brought no package")?;
    fs::create_dir_all(&into)?;
    Cmd::new("dpkg -x").arg(&file).arg(&into).run()?;
    fs::remove_dir_all(download)?;
    let depmod = cmd::find("depmod").context("no depmod (apt: kmod)")?;
    Cmd::program(&depmod)
        .arg("-b")
        .arg(&into)
        .arg(release)
        .run()
}

/// The release of the image on which a package depends.
fn release_of(depends: &str) -> Option<&str> {
    let names = depends
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: linux-image-"));
    names
        .into_iter()
        .find(|release| release.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_that_of_the_image_on_which_the_package_depends() {
        let said =
            "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n  Suggests: x\n";
        assert_eq!(release_of(said), Some("6.1.0-56-cloud-amd64"));
        assert_eq!(release_of("linux-image-cloud-amd64\n"), None);
    }

    #[test]
    fn no_series_is_taken_for_another() {
        assert!(SERIES.iter().all(|series| series.begins.ends_with('.')));
    }
}

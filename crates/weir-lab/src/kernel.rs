//! Kernels: an image that can be read, its release, and the folder of its modules.
//!
//! In: a file that is asked for, the environment, `lab/kernels`, `/boot`. Out: a [`Kernel`].
//! Not here: which modules there are (`modules`).

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::host::{Missing, Places};

/// Offset at which a bzImage has the distance of its version's text from 0x200.
const VERSION_POINTER: usize = 0x20e;

/// A kernel that can be booted.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The compressed image.
    pub image: PathBuf,
    /// Release, as `uname -r` prints it in the guest.
    pub release: String,
    /// `lib/modules/RELEASE`, where there is one; else everything needed is built in.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// The one that is asked for; else what `WEIR_LAB_KERNEL` names; else the oldest series under
    /// `lab/kernels`, which more machines run; else the newest of `/boot` that can be read.
    ///
    /// # Errors
    /// If a file that is named is no kernel, or [`Missing`] if there is none at all.
    pub fn find(wanted: Option<&Path>, places: &Places) -> Result<Self> {
        if let Some(file) = wanted {
            return Self::at(file);
        }
        if let Some(file) = std::env::var_os("WEIR_LAB_KERNEL") {
            return Self::at(Path::new(&file)).context("WEIR_LAB_KERNEL");
        }
        if let Some(first) = Self::unpacked(places).into_iter().next() {
            return Ok(first);
        }
        let installed = images(Path::new("/boot"))
            .into_iter()
            .rev()
            .filter_map(|image| Self::at(&image).ok())
            .find(|kernel| kernel.modules.is_some());
        installed.ok_or_else(|| {
            Missing::package(
                "no kernel under lab/kernels, none that can be read under /boot",
                "linux-image-cloud-amd64, unpacked by cargo xtask test --all",
            )
        })
    }

    /// One with every driver, under `lab/full-kernels`: others lack RDMA.
    ///
    /// # Errors
    /// [`Missing`] if there is none.
    pub fn full(places: &Places) -> Result<Self> {
        let found = Self::below(&places.root.join("lab/full-kernels"));
        found.into_iter().next().ok_or_else(|| {
            Missing::package(
                "no kernel under lab/full-kernels",
                "linux-image-amd64, unpacked by cargo xtask test --all",
            )
        })
    }

    /// Those under `lab/kernels`, the oldest release first.
    pub fn unpacked(places: &Places) -> Vec<Self> {
        Self::below(&places.root.join("lab/kernels"))
    }

    fn below(folder: &Path) -> Vec<Self> {
        let folders = fs::read_dir(folder);
        let mut found: Vec<Self> = folders
            .into_iter()
            .flatten()
            .flatten()
            .flat_map(|folder| images(&folder.path().join("boot")))
            .filter_map(|image| Self::at(&image).ok())
            .collect();
        found.sort_by(|a, b| by_version(&a.release, &b.release));
        found
    }

    /// An image, or a folder with `boot/vmlinuz-*` in it.
    ///
    /// # Errors
    /// If it cannot be read or is no kernel.
    pub fn at(path: &Path) -> Result<Self> {
        let image = if path.is_dir() {
            let inside = images(&path.join("boot"));
            inside
                .into_iter()
                .next_back()
                .with_context(|| format!("{}: no boot/vmlinuz-* in it", path.display()))?
        } else {
            path.to_owned()
        };
        let bytes = fs::read(&image).with_context(|| format!("kernel {}", image.display()))?;
        let Some(release) = release_of(&bytes) else {
            bail!("{} is no Linux kernel image (a bzImage)", image.display());
        };
        let modules = modules_of(&image, &release);
        Ok(Self {
            image: image.canonicalize().unwrap_or(image),
            release,
            modules,
        })
    }

    /// Headers that a module is built against.
    ///
    /// # Errors
    /// [`Missing`] if the headers of this release are not installed.
    pub fn headers(&self) -> Result<PathBuf> {
        let places = [
            PathBuf::from(format!("/usr/src/linux-headers-{}", self.release)),
            PathBuf::from(format!("/lib/modules/{}/build", self.release)),
        ];
        places
            .into_iter()
            .find(|folder| folder.join("Makefile").is_file())
            .ok_or_else(|| {
                Missing::package(
                    format!("no headers of kernel {}", self.release),
                    &format!("linux-headers-{}", self.release),
                )
            })
    }
}

/// The images of a folder, the oldest release first.
fn images(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| name_of(path).starts_with("vmlinuz-"))
        .collect();
    found.sort_by(|a, b| by_version(name_of(a), name_of(b)));
    found
}

fn name_of(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("")
}

/// The text that the image's header points at, up to its first space.
fn release_of(image: &[u8]) -> Option<String> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let pointer = image.get(VERSION_POINTER..VERSION_POINTER + 2)?;
    let at = 0x200 + usize::from(u16::from_le_bytes(pointer.try_into().ok()?));
    let text = image.get(at..)?;
    let end = text.iter().position(|byte| b" \0".contains(byte))?;
    let release = std::str::from_utf8(&text[..end]).ok()?;
    (!release.is_empty()).then(|| release.to_owned())
}

/// The modules beside the image, as a package lays them, or those that are installed.
fn modules_of(image: &Path, release: &str) -> Option<PathBuf> {
    let beside = image.parent().and_then(Path::parent);
    beside
        .into_iter()
        .chain([Path::new("/")])
        .flat_map(|root| [root.join("lib/modules"), root.join("usr/lib/modules")])
        .map(|folder| folder.join(release))
        .find(|folder| folder.join("modules.builtin").is_file())
}

/// Numbers compare as numbers: 6.12 comes after 6.1.
pub(crate) fn by_version(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(&pieces(b))
}

fn pieces(text: &str) -> Vec<(u64, &str)> {
    let mut rest = text;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest[..digits].parse().unwrap_or(u64::MAX);
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        found.push((if digits == 0 { 0 } else { number }, &rest[..letters]));
        rest = &rest[letters..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        let mut names = ["6.12.9", "6.1.0-50-cloud", "6.1.0-9-cloud", "5.19", "6.2"];
        names.sort_by(|a, b| by_version(a, b));
        assert_eq!(
            names,
            ["5.19", "6.1.0-9-cloud", "6.1.0-50-cloud", "6.2", "6.12.9"]
        );
    }

    #[test]
    fn the_release_is_read_from_the_images_header() {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[VERSION_POINTER..VERSION_POINTER + 2].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x314].copy_from_slice(b"6.1.0-9-cloud (x@y) ");
        assert_eq!(release_of(&image).as_deref(), Some("6.1.0-9-cloud"));
        image[VERSION_POINTER + 1] = 0xff;
        assert_eq!(release_of(&image), None, "a pointer beyond the file");
        image[0x202] = 0;
        assert_eq!(release_of(&image), None);
        assert_eq!(release_of(b"short"), None);
    }
}

//! Which device a rank uses (spec: effective bandwidth, 3).
//!
//! In: what was asked for, a rank's number. Out: an opened device, or why there is none: words
//! that are wrong here, or something that this machine lacks.

use weir_schema::EngineChoice;
use weir_sys::Availability;

use super::card::Card;
use super::error::OpenClError;
use super::listing::{Class, Device, OpenCl, Platform};

/// What `device_type` takes.
pub(crate) const DEVICE_TYPES: &[&str] = &["accelerator", "gpu", "cpu", "all"];
/// What `device_map` takes: which number of a rank goes round the devices.
pub(crate) const DEVICE_MAPS: &[&str] = &["local", "global"];

/// Why there is no device.
#[derive(Debug)]
pub(crate) enum NoDevice {
    /// What was asked for is not there.
    Wrong(String),
    /// This machine has none at all.
    Missing {
        /// As a noun phrase.
        what: String,
        /// As an instruction.
        remedy: String,
    },
    /// OpenCL failed.
    Failed(OpenClError),
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Exact name of the platform.
    platform_name: Option<String>,
    /// Index of the platform; the first with a device where neither is given.
    platform: Option<usize>,
    /// Index of the device, the same for all ranks; by rank where absent.
    device: Option<usize>,
    /// The kind of device; the first kind that there is where absent.
    class: Option<Kinds>,
    /// Ranks of all machines are counted, not those of each.
    pub(crate) counts_all: bool,
}

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    Only(Class),
    All,
}

impl Wish {
    /// From the settings of a transport.
    pub(crate) fn of(engine: &EngineChoice) -> Self {
        let index = |name| engine.number(name).and_then(|n| usize::try_from(n).ok());
        Self {
            platform_name: engine.text("platform_name").map(str::to_owned),
            platform: index("platform"),
            device: index("device"),
            class: match engine.text("device_type") {
                Some("accelerator") => Some(Kinds::Only(Class::Accelerator)),
                Some("gpu") => Some(Kinds::Only(Class::Gpu)),
                Some("cpu") => Some(Kinds::Only(Class::Cpu)),
                Some("all") => Some(Kinds::All),
                _ => None,
            },
            counts_all: engine.text("device_map") == Some("global"),
        }
    }

    /// Whether the device was left open, so that a single rank might have got another.
    fn is_open(&self) -> bool {
        self.device.is_none()
    }

    /// The index of a rank's device among so many.
    fn index(&self, devices: usize, rank: usize) -> Result<usize, NoDevice> {
        match self.device {
            Some(index) if index >= devices => {
                let last = devices.saturating_sub(1);
                let reason = format!("Invalid device index specified: {index}/{last}");
                Err(NoDevice::Wrong(reason))
            }
            Some(index) => Ok(index),
            None => Ok(rank % devices.max(1)),
        }
    }

    /// The platform of this wish among these, by name.
    fn platform(&self, names: &[&str]) -> Result<Option<usize>, NoDevice> {
        if let Some(wanted) = &self.platform_name {
            let found = names.iter().position(|name| name == wanted);
            return found.map(Some).ok_or_else(|| {
                let list = names.join("`, `");
                let reason = format!("Invalid platform string specified: {wanted}");
                NoDevice::Wrong(format!("{reason} (there is `{list}`)"))
            });
        }
        match self.platform {
            Some(index) if index >= names.len() => {
                let last = names.len().saturating_sub(1);
                let reason = format!("Invalid platform index specified: {index}/{last}");
                Err(NoDevice::Wrong(reason))
            }
            given => Ok(given),
        }
    }

    fn devices(&self, opencl: &OpenCl, platform: &Platform) -> Result<Vec<Device>, OpenClError> {
        let of = |class| opencl.devices(platform, class);
        match self.class {
            Some(Kinds::Only(class)) => of(class),
            Some(Kinds::All) => {
                let all = Class::ALL.into_iter().map(of);
                Ok(all.collect::<Result<Vec<_>, _>>()?.concat())
            }
            None => {
                for class in Class::ALL {
                    let found = of(class)?;
                    if !found.is_empty() {
                        return Ok(found);
                    }
                }
                Ok(Vec::new())
            }
        }
    }
}

/// A device that was chosen.
#[derive(Debug)]
pub(crate) struct Chosen {
    opencl: OpenCl,
    device: Device,
    /// Of its platform's devices of this kind.
    pub(crate) index: u32,
    /// What it calls itself.
    pub(crate) name: String,
    /// What its platform calls itself.
    pub(crate) platform: String,
    /// Index and name of those that could have been taken as well.
    pub(crate) others: Vec<String>,
}

impl Chosen {
    /// For the rank of this number.
    ///
    /// # Errors
    /// See [`NoDevice`].
    pub(crate) fn new(wish: &Wish, rank: u32) -> Result<Self, NoDevice> {
        let opencl = OpenCl::open().map_err(|error| no_library(&error))?;
        let (platform, devices) = found(wish, &opencl)?;
        let index = wish.index(devices.len(), rank as usize)?;
        let other = |(i, d): (usize, &Device)| format!("{i} {}", d.name);
        let others = devices.iter().enumerate().filter(|(i, _)| *i != index);
        let others = if wish.is_open() {
            others.map(other).collect()
        } else {
            Vec::new()
        };
        let device = devices.get(index).cloned().ok_or_else(no_device)?;
        Ok(Self {
            opencl,
            index: u32::try_from(index).unwrap_or(u32::MAX),
            name: device.name.clone(),
            platform: platform.name,
            others,
            device,
        })
    }

    /// A queue of one's own to it.
    ///
    /// # Errors
    /// The device cannot be opened.
    pub(crate) fn open(&self) -> Result<Card, OpenClError> {
        Card::open(&self.opencl, &self.device)
    }
}

/// The platform, and its devices, of which there is at least one.
fn found(wish: &Wish, opencl: &OpenCl) -> Result<(Platform, Vec<Device>), NoDevice> {
    let platforms = opencl.platforms().map_err(NoDevice::Failed)?;
    if platforms.is_empty() {
        return Err(no_platform());
    }
    let names: Vec<&str> = platforms.iter().map(|p| p.name.as_str()).collect();
    let candidates = match wish.platform(&names)? {
        Some(index) => &platforms[index..=index],
        None => &platforms[..],
    };
    for platform in candidates {
        let devices = wish.devices(opencl, platform).map_err(NoDevice::Failed)?;
        if !devices.is_empty() {
            return Ok((platform.clone(), devices));
        }
    }
    let pocl = candidates.iter().find(|platform| platform.name == POCL);
    match pocl.map(|pocl| has_none(opencl, pocl)).transpose() {
        Ok(Some(true)) => Err(no_cache()),
        Ok(_) => Err(no_device()),
        Err(error) => Err(NoDevice::Failed(error)),
    }
}

/// Whether a platform is without a device of any kind.
fn has_none(opencl: &OpenCl, platform: &Platform) -> Result<bool, OpenClError> {
    for class in Class::ALL {
        if !opencl.devices(platform, class)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What PoCL calls itself. Its devices are the processors, so that it always has one; unless it has
/// no place for what it compiles.
const POCL: &str = "Portable Computing Language";

const PACKAGES: &str = "install ocl-icd-libopencl1 and the driver of the device, or \
                        pocl-opencl-icd, which computes on the processors";

fn no_library(error: &OpenClError) -> NoDevice {
    NoDevice::Missing {
        what: format!("OpenCL ({error})"),
        remedy: PACKAGES.to_owned(),
    }
}

fn no_platform() -> NoDevice {
    NoDevice::Missing {
        what: "an OpenCL driver (libOpenCL.so.1 is there and knows none)".to_owned(),
        remedy: PACKAGES.to_owned(),
    }
}

fn no_cache() -> NoDevice {
    let named = ["POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"].into_iter();
    let mut named = named.filter_map(|name| Some((name, std::env::var(name).ok()?)));
    let place = named.next().map_or_else(
        || "none of POCL_CACHE_DIR, XDG_CACHE_HOME and HOME is set".to_owned(),
        |(name, value)| format!("{name} is {value}"),
    );
    NoDevice::Missing {
        what: format!("a device of the OpenCL driver `{POCL}`, which is there and has none"),
        remedy: format!(
            "it has none where it cannot write its cache, and {place}: set POCL_CACHE_DIR to a \
             directory that can be written"
        ),
    }
}

fn no_device() -> NoDevice {
    NoDevice::Missing {
        what: "an OpenCL device of this kind".to_owned(),
        remedy: "choose another platform or kind of device, or install pocl-opencl-icd, which \
                 computes on the processors"
            .to_owned(),
    }
}

/// Whether there is any device.
pub(crate) fn availability() -> Availability {
    let opencl = OpenCl::open().map_err(|error| no_library(&error));
    match opencl.and_then(|opencl| found(&Wish::default(), &opencl)) {
        Ok(_) => Availability::Ready,
        Err(NoDevice::Missing { what, remedy }) => Availability::Missing { what, remedy },
        Err(NoDevice::Wrong(what)) => Availability::missing(what, PACKAGES),
        Err(NoDevice::Failed(error)) => {
            Availability::missing(format!("an OpenCL driver that answers ({error})"), PACKAGES)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T>(answer: Result<T, NoDevice>) -> String {
        match answer {
            Err(NoDevice::Wrong(reason)) => reason,
            _ => String::new(),
        }
    }

    #[test]
    fn ranks_go_round_the_devices_unless_one_is_named() {
        let open = Wish::default();
        let of = |wish: &Wish, rank| wish.index(2, rank).unwrap();
        assert_eq!([of(&open, 0), of(&open, 1), of(&open, 2)], [0, 1, 0]);
        let second = Wish {
            device: Some(1),
            ..Wish::default()
        };
        assert_eq!([of(&second, 0), of(&second, 1)], [1, 1]);
        let far = Wish {
            device: Some(5),
            ..Wish::default()
        };
        assert_eq!(
            reason(far.index(2, 0)),
            "Invalid device index specified: 5/1"
        );
    }

    #[test]
    fn a_platforms_name_goes_before_its_index() {
        let names = ["one", "two"];
        let mut wish = Wish::default();
        assert_eq!(wish.platform(&names).unwrap(), None);
        wish.platform = Some(0);
        assert_eq!(wish.platform(&names).unwrap(), Some(0));
        wish.platform_name = Some("two".to_owned());
        assert_eq!(wish.platform(&names).unwrap(), Some(1));
        wish.platform_name = Some("Two".to_owned());
        let told = reason(wish.platform(&names));
        assert!(
            told.starts_with("Invalid platform string specified: Two"),
            "{told}"
        );
        wish = Wish {
            platform: Some(2),
            ..Wish::default()
        };
        let told = reason(wish.platform(&names));
        assert_eq!(told, "Invalid platform index specified: 2/1");
    }
}

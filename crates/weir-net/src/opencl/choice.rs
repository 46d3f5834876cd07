//! Device that a rank uses (spec: effective bandwidth, 3).
//!
//! In: what was asked for, a rank's number; the rule is [`DeviceRequest`]. Out: an opened device, or why there is none: words
//! that are wrong here, or something that this machine lacks.

use weir_schema::{DeviceRequest, EngineChoice, NoSuchDevice};
use weir_sys::Availability;

use super::card::OpenDevice;
use super::error::OpenClError;
use super::listing::{ClDevice, Class, OpenCl, Platform};

/// Values of `device_type`.
pub(crate) const DEVICE_TYPES: &[&str] = &["accelerator", "gpu", "cpu", "all"];
/// Values of `device_map`: the number of a rank that goes round the devices.
pub(crate) const DEVICE_MAPS: &[&str] = &["local", "global"];

/// Reason that there is no device.
#[derive(Debug)]
pub(crate) enum NoDevice {
    /// The requested device is not there.
    Wrong(NoSuchDevice),
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

/// Request for a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CardRequest {
    /// Platform and index.
    pub(crate) device: DeviceRequest,
    /// The kind of device; the first kind that there is where absent.
    class: Option<Kinds>,
}

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinds {
    Only(Class),
    All,
}

impl CardRequest {
    /// From the settings of a transport.
    pub(crate) fn of(engine: &EngineChoice) -> Self {
        Self {
            device: DeviceRequest::of(engine),
            class: match engine.text("device_type") {
                Some("accelerator") => Some(Kinds::Only(Class::Accelerator)),
                Some("gpu") => Some(Kinds::Only(Class::Gpu)),
                Some("cpu") => Some(Kinds::Only(Class::Cpu)),
                Some("all") => Some(Kinds::All),
                _ => None,
            },
        }
    }

    fn devices(&self, opencl: &OpenCl, platform: &Platform) -> Result<Vec<ClDevice>, OpenClError> {
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
pub(crate) struct ChosenDevice {
    opencl: OpenCl,
    device: ClDevice,
    /// Of its platform's devices of this kind.
    pub(crate) index: u32,
    /// Name that it reports.
    pub(crate) name: String,
    /// Name that its platform reports.
    pub(crate) platform: String,
    /// Index and name of those that could have been taken as well.
    pub(crate) others: Vec<String>,
}

impl ChosenDevice {
    /// For the rank of this number.
    ///
    /// # Errors
    /// See [`NoDevice`].
    pub(crate) fn new(request: &CardRequest, rank: u32) -> Result<Self, NoDevice> {
        let opencl = OpenCl::open().map_err(|error| no_library(&error))?;
        let (platform, devices) = found(request, &opencl)?;
        let index = request.device.device(devices.len(), rank);
        let index = index.map_err(NoDevice::Wrong)?;
        let other = |(i, d): (usize, &ClDevice)| format!("{i} {}", d.name);
        let others = devices.iter().enumerate().filter(|(i, _)| *i != index);
        let others = if request.device.is_open() {
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
    pub(crate) fn open(&self) -> Result<OpenDevice, OpenClError> {
        OpenDevice::open(&self.opencl, &self.device)
    }
}

/// The platform, and its devices, of which there is at least one.
fn found(request: &CardRequest, opencl: &OpenCl) -> Result<(Platform, Vec<ClDevice>), NoDevice> {
    let platforms = opencl.platforms().map_err(NoDevice::Failed)?;
    if platforms.is_empty() {
        return Err(no_platform());
    }
    let names: Vec<&str> = platforms.iter().map(|p| p.name.as_str()).collect();
    let candidates = match request.device.platform(&names).map_err(NoDevice::Wrong)? {
        Some(index) => &platforms[index..=index],
        None => &platforms[..],
    };
    for platform in candidates {
        let devices = request
            .devices(opencl, platform)
            .map_err(NoDevice::Failed)?;
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

/// True if a platform is without a device of any kind.
fn has_none(opencl: &OpenCl, platform: &Platform) -> Result<bool, OpenClError> {
    for class in Class::ALL {
        if !opencl.devices(platform, class)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Name that PoCL reports. Its devices are the processors, so that it always has one; unless it has
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

/// Availability of any device.
pub(crate) fn availability() -> Availability {
    let opencl = OpenCl::open().map_err(|error| no_library(&error));
    match opencl.and_then(|opencl| found(&CardRequest::default(), &opencl)) {
        Ok(_) => Availability::Ready,
        Err(NoDevice::Missing { what, remedy }) => Availability::Missing { what, remedy },
        Err(NoDevice::Wrong(what)) => Availability::missing(what.to_string(), PACKAGES),
        Err(NoDevice::Failed(error)) => {
            Availability::missing(format!("an OpenCL driver that answers ({error})"), PACKAGES)
        }
    }
}

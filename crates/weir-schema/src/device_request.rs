//! Device of a rank, where a transport has devices: the one rule, for devices that are there and
//! for made-up ones.
//!
//! In: the settings of a transport, the names of the platforms, how many devices there are, the
//! number of a rank. Out: an index, or what is asked for and not there. Not here: how devices are
//! found, and kinds of devices.

use thiserror::Error;

use crate::plan::EngineChoice;

/// Devices that a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceRequest {
    platform_name: Option<String>,
    platform: Option<usize>,
    device: Option<usize>,
    counts_all_ranks: bool,
}

/// A requested device or platform that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoSuchDevice {
    /// No device of this index.
    #[error("`device` {index}: the devices are 0 to {last}")]
    Device {
        /// Asked for.
        index: usize,
        /// The largest.
        last: usize,
    },
    /// No platform of this index.
    #[error("`platform` {index}: the platforms are 0 to {last}")]
    Platform {
        /// Asked for.
        index: usize,
        /// The largest.
        last: usize,
    },
    /// No platform of this name.
    #[error("`platform_name` {name}: the platforms are {}", .there.join(", "))]
    PlatformName {
        /// Asked for.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
}

impl DeviceRequest {
    /// From the settings of a transport.
    pub fn of(engine: &EngineChoice) -> Self {
        let index = |name| engine.number(name).and_then(|n| usize::try_from(n).ok());
        Self {
            platform_name: engine.text("platform_name").map(str::to_owned),
            platform: index("platform"),
            device: index("device"),
            counts_all_ranks: engine.text("device_map") == Some("global"),
        }
    }

    /// The device was left open, so that a single rank might have got another.
    pub const fn is_open(&self) -> bool {
        self.device.is_none()
    }

    /// A rank's number is that of all ranks, not that of its machine's.
    pub const fn counts_all_ranks(&self) -> bool {
        self.counts_all_ranks
    }

    /// The platform among these, by name; any that has a device where none is asked for. A name
    /// goes before an index.
    ///
    /// # Errors
    /// There is none of this name or index.
    pub fn platform(&self, names: &[&str]) -> Result<Option<usize>, NoSuchDevice> {
        if let Some(wanted) = &self.platform_name {
            let found = names.iter().position(|name| name == wanted);
            return found.map(Some).ok_or_else(|| NoSuchDevice::PlatformName {
                name: wanted.clone(),
                there: names.iter().map(|name| (*name).to_owned()).collect(),
            });
        }
        match self.platform {
            Some(index) if index >= names.len() => Err(NoSuchDevice::Platform {
                index,
                last: names.len().saturating_sub(1),
            }),
            given => Ok(given),
        }
    }

    /// The device of the rank of this number, among so many: the one asked for, else in turn.
    ///
    /// # Errors
    /// There is none of this index.
    pub fn device(&self, devices: usize, rank: u32) -> Result<usize, NoSuchDevice> {
        match self.device {
            Some(index) if index >= devices => Err(NoSuchDevice::Device {
                index,
                last: devices.saturating_sub(1),
            }),
            Some(index) => Ok(index),
            None => Ok(rank as usize % devices.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Setting;

    fn request(settings: &[(&str, Setting)]) -> DeviceRequest {
        DeviceRequest::of(&EngineChoice::with("a transport", settings))
    }

    #[test]
    fn ranks_go_round_the_devices_unless_one_is_named() {
        let of = |request: &DeviceRequest| [0, 1, 2].map(|rank| request.device(2, rank));
        assert_eq!(of(&request(&[])), [Ok(0), Ok(1), Ok(0)]);
        let second = request(&[("device", Setting::Number(1))]);
        assert_eq!(of(&second), [Ok(1), Ok(1), Ok(1)]);
        assert!(request(&[]).is_open() && !second.is_open());
        let far = request(&[("device", Setting::Number(5))]);
        let wrong = far.device(2, 0).unwrap_err();
        assert_eq!(wrong.to_string(), "`device` 5: the devices are 0 to 1");
    }

    #[test]
    fn a_platforms_name_goes_before_its_index() {
        let names = ["one", "two"];
        let name = |name: &str| ("platform_name", Setting::Text(name.to_owned()));
        let index = |index| ("platform", Setting::Number(index));
        assert_eq!(request(&[]).platform(&names), Ok(None));
        assert_eq!(request(&[index(0)]).platform(&names), Ok(Some(0)));
        let both = request(&[index(0), name("two")]);
        assert_eq!(both.platform(&names), Ok(Some(1)));
        let wrong = request(&[name("Two")]).platform(&names).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "`platform_name` Two: the platforms are one, two"
        );
        let wrong = request(&[index(2)]).platform(&names).unwrap_err();
        assert_eq!(wrong.to_string(), "`platform` 2: the platforms are 0 to 1");
    }
}

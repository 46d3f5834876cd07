//! Transfers of a device and its host without any partner: copies in both directions, launches of a
//! kernel.
//!
//! Each kind has a loop of its own, so that each has its own times. A step is waited for before
//! the next begins; in a batch all steps of a loop are begun, then waited for together. Every
//! copy is from or to a page-aligned buffer. What was copied is checked like a message: to the
//! device by a copy back after the timed runs, from the device where it came to lie.

use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;

use weir_schema::{ExchangeWorkload, MessageSize, Method, Transfer, Validation};
use weir_sys::buffer::AlignedBuf;

use super::{Own, spoil};
use crate::buffers;
use crate::error::{Halt, NetError};
use crate::exchange::{ExchangeContext, ExchangeOutcome, drive};
use crate::opencl::{ClKernel, KernelSource, OpenClError, StagedBuffer, When};
use crate::transport::{Facts, Setup, Transport, TransportInfo};
use weir_world::Watchdog;

/// The kinds that were asked for, one after the other.
pub(super) fn drive_each(
    context: &ExchangeContext<'_>,
    info: &TransportInfo,
    outcome: &mut ExchangeOutcome,
) -> Result<(), NetError> {
    for transfer in &context.workload.transfers {
        match transfer {
            Transfer::HostToDevice => drive::<Alone<ToDevice>>(context, info, outcome)?,
            Transfer::KernelLaunch => launches(context, info, outcome)?,
            Transfer::DeviceToHost => drive::<Alone<FromDevice>>(context, info, outcome)?,
        }
    }
    Ok(())
}

/// A launch has no size: the first size's loop stands for all.
fn launches(
    context: &ExchangeContext<'_>,
    info: &TransportInfo,
    outcome: &mut ExchangeOutcome,
) -> Result<(), NetError> {
    let first = context.workload.sizes.first().map(|size| MessageSize {
        exponent: 0,
        ..*size
    });
    let workload = ExchangeWorkload {
        sizes: first.into_iter().collect(),
        validation: Validation::None,
        ..context.workload.clone()
    };
    let context = ExchangeContext {
        workload: &workload,
        ..*context
    };
    drive::<Alone<Launch>>(&context, info, outcome)
}

/// Longer than what any vendor's compiler makes: the largest cards have some hundred MB.
const LONGEST: u64 = 1 << 30;

/// A kernel file, open: a regular file of a size that a kernel has.
///
/// # Errors
/// It is none, in the peer's words.
pub(super) fn open(path: &str) -> Result<File, String> {
    let refuse = |why: String| {
        Err(format!(
            "Not possible to open from given file: {path} ({why})"
        ))
    };
    // Looked at before it is opened: to open a pipe is to wait.
    match std::fs::metadata(path) {
        Err(error) => return refuse(error.to_string()),
        Ok(facts) if !facts.is_file() => return refuse("it is not a regular file".to_owned()),
        Ok(facts) if facts.len() > LONGEST => {
            return refuse(format!(
                "it has {} bytes, and a kernel at most {LONGEST}",
                facts.len()
            ));
        }
        Ok(_) => {}
    }
    File::open(path).or_else(|error| refuse(error.to_string()))
}

/// A kernel file's content.
fn content(path: &str) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = open(path)?.take(LONGEST).read_to_end(&mut content);
    read.map_err(|error| format!("Not possible to read from given file: {path} ({error})"))?;
    Ok(content)
}

/// A kind of step.
trait Step {
    const TRANSFER: Transfer;

    /// Needed once: a kernel.
    type Tool;

    fn tool(own: &Own, setup: &Setup<'_>) -> Result<Self::Tool, Halt>;

    fn take(
        own: &Own,
        tool: &Self::Tool,
        lane: &mut StagedBuffer,
        when: When,
    ) -> Result<(), OpenClError>;

    /// Waits for the steps that were only begun.
    fn wait(_: &Own, lane: &mut StagedBuffer) -> Result<(), OpenClError> {
        lane.wait()
    }
}

/// From the host to the device.
struct ToDevice;

impl Step for ToDevice {
    const TRANSFER: Transfer = Transfer::HostToDevice;
    type Tool = ();

    fn tool(_: &Own, _: &Setup<'_>) -> Result<(), Halt> {
        Ok(())
    }

    #[inline]
    fn take(_: &Own, (): &(), lane: &mut StagedBuffer, when: When) -> Result<(), OpenClError> {
        lane.push(when)
    }
}

/// From the device to the host.
struct FromDevice;

impl Step for FromDevice {
    const TRANSFER: Transfer = Transfer::DeviceToHost;
    type Tool = ();

    fn tool(_: &Own, _: &Setup<'_>) -> Result<(), Halt> {
        Ok(())
    }

    #[inline]
    fn take(_: &Own, (): &(), lane: &mut StagedBuffer, when: When) -> Result<(), OpenClError> {
        lane.pull(when)
    }
}

/// A kernel of one work item.
struct Launch;

impl Step for Launch {
    const TRANSFER: Transfer = Transfer::KernelLaunch;
    type Tool = ClKernel;

    fn tool(own: &Own, setup: &Setup<'_>) -> Result<ClKernel, Halt> {
        let source = match setup.engine.text("kernel_file") {
            Some(path) => KernelSource::of(content(path).map_err(Halt::Garbled)?),
            None => KernelSource::empty(),
        };
        Ok(ClKernel::new(&own.card, &source)?)
    }

    #[inline]
    fn take(
        own: &Own,
        kernel: &ClKernel,
        _: &mut StagedBuffer,
        when: When,
    ) -> Result<(), OpenClError> {
        own.card.launch(kernel)?;
        match when {
            When::Now => own.card.finish(),
            When::Later => Ok(()),
        }
    }

    fn wait(own: &Own, _: &mut StagedBuffer) -> Result<(), OpenClError> {
        own.card.finish()
    }
}

/// A replication: what is copied, and the memory that its other end is filled from or looked at
/// through.
struct Channel {
    lane: StagedBuffer,
    other: AlignedBuf,
}

/// A rank alone with its device.
struct Alone<S: Step> {
    // Before the device, whose queue they are used with.
    channels: Vec<Channel>,
    tool: S::Tool,
    own: Own,
    when: When,
    step: PhantomData<S>,
}

impl<S: Step> Transport for Alone<S> {
    fn transfer() -> Option<Transfer> {
        Some(S::TRANSFER)
    }

    fn open(setup: &Setup<'_>) -> Result<Self, Halt> {
        let own = Own::open(setup)?;
        let batch = setup.engine.flag("batch", false);
        Ok(Self {
            channels: Vec::new(),
            tool: S::tool(&own, setup)?,
            own,
            when: if batch { When::Later } else { When::Now },
            step: PhantomData,
        })
    }

    fn prepare(&mut self, size: MessageSize, _: Method, setup: &Setup<'_>) -> Result<(), Halt> {
        self.channels.clear();
        for other in buffers::some(setup.partners.len(), size.bytes())? {
            let lane = StagedBuffer::new(&self.own.card, size.bytes())?;
            self.channels.push(Channel { lane, other });
        }
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        let channel = &mut self.channels[replication];
        match S::TRANSFER {
            Transfer::DeviceToHost => channel.other.as_mut_slice(),
            _ => channel.lane.host(),
        }
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        let channel = &mut self.channels[replication];
        match S::TRANSFER {
            Transfer::DeviceToHost => channel.lane.host(),
            _ => channel.other.as_mut_slice(),
        }
    }

    /// The device begins with what it is to send, or with bytes that are all wrong.
    fn filled(&mut self) -> Result<(), Halt> {
        for Channel { lane, other } in &self.channels {
            self.own.card.write(other.as_slice(), lane.device())?;
        }
        Ok(())
    }

    #[inline]
    fn exchange(&mut self, replication: usize, _: &Watchdog) -> Result<(), Halt> {
        let lane = &mut self.channels[replication].lane;
        Ok(S::take(&self.own, &self.tool, lane, self.when)?)
    }

    fn complete(&mut self, replication: usize) -> Result<(), Halt> {
        if self.when == When::Later {
            S::wait(&self.own, &mut self.channels[replication].lane)?;
        }
        Ok(())
    }

    fn arrived(&mut self) -> Result<(), Halt> {
        if S::TRANSFER == Transfer::HostToDevice {
            for Channel { lane, other } in &mut self.channels {
                spoil(other.as_mut_slice());
                self.own.card.read(lane.device(), other.as_mut_slice())?;
            }
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            device: Some(self.own.facts.clone()),
            ..Facts::default()
        }
    }
}

//! Offers of the providers of this machine, and the choice of one.
//!
//! In: a provider's name, an interface's address, a domain. Out: a [`FabricOffer`], from which
//! fabrics and endpoints are opened, with the facts that decide how it is used; or the names of all
//! providers. Not here: opening anything (`fabric`).

#![expect(
    unsafe_code,
    reason = "structures that libfabric allocates are read and written by address"
)]

use std::ffi::{CString, c_char, c_int};
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

use weir_sys::KeptSignalActions;

use super::abi::{
    FI_AV_TABLE, FI_CONTEXT, FI_CONTEXT2, FI_DELIVERY_COMPLETE, FI_ENODATA, FI_EP_RDM,
    FI_MR_ALLOCATED, FI_MR_ENDPOINT, FI_MR_LOCAL, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, FI_MSG,
    FI_ORDER_SAS, FI_ORDER_SAW, FI_RM_ENABLED, FI_RMA, FI_SOURCE, FI_THREAD_DOMAIN, FiInfo,
};
use super::error::FabricError;
use super::library::{FabricLibrary, text_of};

/// Which provider, on which interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FabricChoice {
    /// As libfabric names it: `tcp`, `tcp;ofi_rxm`, `shm`, …; the first that fits where absent.
    pub provider: Option<String>,
    /// Address of the interface, for providers that use the network's addresses.
    pub node: Option<String>,
    /// As libfabric names it.
    pub domain: Option<String>,
}

impl FabricChoice {
    /// A provider on loopback, where it uses the network's addresses.
    pub fn on_loopback(provider: &str) -> Self {
        let is_network = !provider.starts_with("shm");
        Self {
            provider: Some(provider.to_owned()),
            node: is_network.then(|| "127.0.0.1".to_owned()),
            domain: None,
        }
    }

    fn words(&self) -> String {
        let mut words = self.provider.as_deref().unwrap_or("of any kind").to_owned();
        for (name, value) in [("address", &self.node), ("domain", &self.domain)] {
            if let Some(value) = value {
                words = format!("{words} with {name} {value}");
            }
        }
        words
    }
}

/// Facts that decide how a provider is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricFacts {
    /// The provider, with what it is layered on.
    pub provider: String,
    /// The fabric that its domain belongs to.
    pub fabric: String,
    /// The device or interface.
    pub domain: String,
    /// It moves data from and to a peer's memory.
    pub has_remote_memory: bool,
    /// Messages up to this many bytes are copied when they are sent.
    pub inject_bytes: usize,
    /// Sends and moves that may be in flight.
    pub sends: usize,
    /// Receives that may be posted.
    pub receives: usize,
    /// The longest message in bytes.
    pub message_bytes: usize,
    /// Kind of its addresses; only equal kinds understand each other.
    pub address_format: u32,
    pub(super) mr_mode: c_int,
    key_bytes: usize,
}

impl FabricFacts {
    /// The bits that a key of registered memory may have.
    pub(super) fn key_mask(&self) -> u64 {
        let bits = u32::try_from(self.key_bytes.saturating_mul(8)).unwrap_or(u64::BITS);
        u64::MAX
            .checked_shr(u64::BITS.saturating_sub(bits))
            .unwrap_or(0)
    }

    /// Objection to its provider.
    pub fn objection(&self) -> Option<&'static str> {
        let is = |name: &str| self.provider.split(';').any(|part| part == name);
        if is("sockets") {
            return Some("the fabric provider sockets is obsolete and slow: use tcp");
        }
        self.can_hang()
            .then_some("a peer of the fabric provider shm that is killed can stop this process")
    }

    /// True if the death of a peer can hold a thread in the provider for ever: shm keeps locks in
    /// memory that both sides share, and nobody releases those of a process that was killed.
    pub fn can_hang(&self) -> bool {
        self.provider.split(';').any(|part| part == "shm")
    }

    pub(super) fn has_mr_mode(&self, bit: c_int) -> bool {
        self.mr_mode & bit != 0
    }
}

/// A provider's offer, as libfabric describes it.
#[derive(Debug)]
pub struct FabricOffer {
    pub(super) library: Arc<FabricLibrary>,
    list: NonNull<FiInfo>,
    /// The entry of the list that is used.
    chosen: NonNull<FiInfo>,
    facts: FabricFacts,
}

// SAFETY: the list belongs to this value alone and to no particular thread.
unsafe impl Send for FabricOffer {}

/// Abilities that an offer has to have.
#[derive(Clone, Copy, Debug)]
struct Abilities {
    caps: u64,
    /// Which operations a peer sees in the order in which they were begun.
    order: u64,
    /// Flags of every operation.
    flags: u64,
}

impl Abilities {
    const MESSAGES: Self = Self {
        caps: FI_MSG,
        order: FI_ORDER_SAS,
        flags: 0,
    };
    /// A message is seen after what was written into the peer's memory before it.
    const ORDERED_MOVES: Self = Self {
        caps: FI_MSG | FI_RMA,
        order: FI_ORDER_SAS | FI_ORDER_SAW,
        flags: 0,
    };
    /// A write is done when it is in the peer's memory.
    const DELIVERED_MOVES: Self = Self {
        caps: FI_MSG | FI_RMA,
        order: FI_ORDER_SAS,
        flags: FI_DELIVERY_COMPLETE,
    };
    /// The same without asking: the peer handles writes that are done here, and messages, in order.
    const SHARED_MEMORY: Self = Self {
        flags: 0,
        ..Self::DELIVERED_MOVES
    };

    /// Abilities to ask of a provider, best first.
    fn of(provider: Option<&str>) -> [Self; 3] {
        let moves = if provider == Some("shm") {
            // Asked for delivery, it leaves its short way.
            Self::SHARED_MEMORY
        } else {
            Self::DELIVERED_MOVES
        };
        [Self::ORDERED_MOVES, moves, Self::MESSAGES]
    }
}

/// Request for offers. Freed by libfabric, which must not free the strings of the choice.
struct Hints<'library> {
    library: &'library FabricLibrary,
    info: NonNull<FiInfo>,
    provider: Option<CString>,
    domain: Option<CString>,
}

impl<'library> Hints<'library> {
    fn new(
        library: &'library FabricLibrary,
        choice: &FabricChoice,
        abilities: Abilities,
    ) -> Result<Self, FabricError> {
        let provider = choice.provider.as_deref().map(c_string).transpose()?;
        let domain = choice.domain.as_deref().map(c_string).transpose()?;
        // SAFETY: of nothing it makes an empty structure with all its parts.
        let info = unsafe { (library.calls.dupinfo)(null()) };
        let info = NonNull::new(info).ok_or_else(|| {
            FabricError::Invalid("libfabric has no memory to describe a request".to_owned())
        })?;
        let hints = Self {
            library,
            info,
            provider,
            domain,
        };
        hints.fill(abilities);
        Ok(hints)
    }

    fn fill(&self, abilities: Abilities) {
        // SAFETY: made by libfabric, which fills every part; nothing else refers to it.
        let info = unsafe { &mut *self.info.as_ptr() };
        info.caps = abilities.caps;
        info.mode = FI_CONTEXT | FI_CONTEXT2;
        // SAFETY: a part of the same structure, with nothing else that refers to it.
        let endpoint = unsafe { &mut *info.ep_attr };
        endpoint.r#type = FI_EP_RDM;
        for order in [
            // SAFETY: as above.
            unsafe { &raw mut (*info.tx_attr).msg_order },
            // SAFETY: as above.
            unsafe { &raw mut (*info.rx_attr).msg_order },
        ] {
            // SAFETY: a field of a part of the same structure.
            unsafe { order.write(abilities.order) };
        }
        // SAFETY: as above.
        let flags = unsafe { &raw mut (*info.tx_attr).op_flags };
        // SAFETY: as above.
        unsafe { flags.write(abilities.flags) };
        // SAFETY: as above.
        let domain = unsafe { &mut *info.domain_attr };
        domain.threading = FI_THREAD_DOMAIN;
        domain.resource_mgmt = FI_RM_ENABLED;
        domain.av_type = FI_AV_TABLE;
        domain.mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
        let provider = self.provider.as_ref().map(|name| name.as_ptr().cast_mut());
        self.set_names(
            provider.unwrap_or(null_mut()),
            self.domain
                .as_ref()
                .map_or(null_mut(), |name| name.as_ptr().cast_mut()),
        );
    }

    fn set_names(&self, provider: *mut c_char, domain: *mut c_char) {
        // SAFETY: as in `fill`.
        let info = unsafe { self.info.as_ref() };
        // SAFETY: as in `fill`.
        let name = unsafe { &raw mut (*info.fabric_attr).prov_name };
        // SAFETY: a field of a part of the same structure.
        unsafe { name.write(provider) };
        // SAFETY: as in `fill`.
        let name = unsafe { &raw mut (*info.domain_attr).name };
        // SAFETY: as above.
        unsafe { name.write(domain) };
    }
}

impl Drop for Hints<'_> {
    fn drop(&mut self) {
        self.set_names(null_mut(), null_mut());
        // SAFETY: made by libfabric; holds no string of this program any more.
        unsafe { (self.library.calls.freeinfo)(self.info.as_ptr()) };
    }
}

impl FabricOffer {
    /// The first offer that fits the choice: with remote memory where the provider has it.
    ///
    /// # Errors
    /// [`FabricError::NoProvider`] where none fits; [`FabricError::Call`] where libfabric fails.
    pub fn find(library: &Arc<FabricLibrary>, choice: &FabricChoice) -> Result<Self, FabricError> {
        for abilities in Abilities::of(choice.provider.as_deref()) {
            let found = list(library, choice, abilities)?.map(|list| Self {
                library: Arc::clone(library),
                facts: facts(list),
                chosen: list,
                list,
            });
            let domain = choice.domain.as_deref();
            if let Some(offer) = found.and_then(|offer| offer.of_domain(domain)) {
                return Ok(offer);
            }
        }
        let there = providers(library)?;
        Err(FabricError::NoProvider {
            wanted: choice.words(),
            there: if there.is_empty() {
                "none".to_owned()
            } else {
                there.join(", ")
            },
        })
    }

    /// The entry of this domain: providers that are given an address do not look at the name.
    fn of_domain(mut self, domain: Option<&str>) -> Option<Self> {
        while domain.is_some_and(|domain| domain != self.facts.domain) {
            // SAFETY: an entry of the list, which lives as long as this value.
            self.chosen = NonNull::new(unsafe { self.chosen.as_ref() }.next)?;
            self.facts = facts(self.chosen);
        }
        Some(self)
    }

    /// Facts that decide how it is used.
    pub fn facts(&self) -> &FabricFacts {
        &self.facts
    }

    /// For libfabric's calls, which read it.
    pub(super) fn info(&self) -> *mut FiInfo {
        self.chosen.as_ptr()
    }
}

impl Drop for FabricOffer {
    fn drop(&mut self) {
        // SAFETY: a list that libfabric made for this value alone.
        unsafe { (self.library.calls.freeinfo)(self.list.as_ptr()) };
    }
}

/// The providers of reliable datagrams that can be used here, each once.
///
/// # Errors
/// libfabric fails.
pub fn providers(library: &FabricLibrary) -> Result<Vec<String>, FabricError> {
    let mut names: Vec<String> = Vec::new();
    let Some(first) = list(library, &FabricChoice::default(), Abilities::MESSAGES)? else {
        return Ok(names);
    };
    let mut at = first.as_ptr();
    while let Some(info) = NonNull::new(at) {
        let name = facts(info).provider;
        if !names.contains(&name) {
            names.push(name);
        }
        // SAFETY: an entry of the list, which is freed below.
        at = unsafe { info.as_ref() }.next;
    }
    // SAFETY: made by libfabric just now; nothing refers to it any more.
    unsafe { (library.calls.freeinfo)(first.as_ptr()) };
    Ok(names)
}

/// Offers of libfabric; `None` where nothing fits.
fn list(
    library: &FabricLibrary,
    choice: &FabricChoice,
    abilities: Abilities,
) -> Result<Option<NonNull<FiInfo>>, FabricError> {
    let hints = Hints::new(library, choice, abilities)?;
    let node = choice.node.as_deref().map(c_string).transpose()?;
    // The address is this side's own.
    let flags = if node.is_some() { FI_SOURCE } else { 0 };
    let node = node.as_ref().map_or(null(), |node| node.as_ptr());
    let mut found = null_mut();
    // The first question loads the providers: see `FabricLibrary::open_named`.
    let _kept = KeptSignalActions::now();
    // SAFETY: strings and hints live across the call, which makes a list of its own.
    let code = unsafe {
        (library.calls.getinfo)(
            library.interface(),
            node,
            null(),
            flags,
            hints.info.as_ptr(),
            &raw mut found,
        )
    };
    if code == -FI_ENODATA {
        return Ok(None);
    }
    library.good("list its providers", code)?;
    Ok(NonNull::new(found))
}

fn facts(info: NonNull<FiInfo>) -> FabricFacts {
    // SAFETY: an entry of a list of libfabric's, which has every part.
    let info = unsafe { info.as_ref() };
    // SAFETY: a part of the same entry; so are the four below.
    let transmit = unsafe { &*info.tx_attr };
    // SAFETY: as above.
    let receive = unsafe { &*info.rx_attr };
    // SAFETY: as above.
    let endpoint = unsafe { &*info.ep_attr };
    // SAFETY: as above.
    let domain = unsafe { &*info.domain_attr };
    // SAFETY: as above.
    let fabric = unsafe { &*info.fabric_attr };
    let name = |text: *mut c_char| {
        // SAFETY: libfabric's own, absent or a string.
        unsafe { text_of(text) }.unwrap_or_default()
    };
    FabricFacts {
        provider: name(fabric.prov_name),
        fabric: name(fabric.name),
        domain: name(domain.name),
        has_remote_memory: info.caps & FI_RMA != 0,
        inject_bytes: transmit.inject_size,
        sends: transmit.size,
        receives: receive.size,
        message_bytes: endpoint.max_msg_size,
        address_format: info.addr_format,
        mr_mode: domain.mr_mode,
        key_bytes: domain.mr_key_size,
    }
}

fn c_string(text: &str) -> Result<CString, FabricError> {
    CString::new(text)
        .map_err(|_| FabricError::Invalid(format!("`{text}` holds a NUL byte, which no name does")))
}

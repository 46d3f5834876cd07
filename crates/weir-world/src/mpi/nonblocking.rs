//! Messages under way: posted together and waited for together, or owned until they are done.
//!
//! The library touches the memory of a posted message at any time until the message is done. So
//! either the buffers are borrowed for longer than the call that posts and waits
//! ([`Mpi::together`]), or they are owned here and are never freed before the end ([`Owned`]).

#![expect(
    unsafe_code,
    reason = "the library keeps addresses of memory after its calls return"
)]

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;

use super::abi::Abi;
use super::error::MpiError;
use super::rank::{Mpi, PeerRank, Tag, count};

/// Room for messages under way, kept between exchanges so that none allocates.
#[derive(Debug)]
pub struct Requests<A: Abi> {
    handles: Vec<A::Handle>,
}

impl<A: Abi> Requests<A> {
    /// Room for this many.
    pub fn with_capacity(messages: usize) -> Self {
        Self {
            handles: Vec::with_capacity(messages),
        }
    }
}

/// Messages being posted, with buffers that live for `'env`.
#[derive(Debug)]
pub struct Posting<'call, 'env, A: Abi> {
    mpi: &'call Mpi<A>,
    requests: &'call mut Requests<A>,
    /// Neither longer nor shorter: two postings cannot be taken for one another.
    buffers: PhantomData<&'env mut &'env ()>,
}

impl<A: Abi> Mpi<A> {
    /// Posts messages and waits for all of them. The buffers are given back when it returns.
    ///
    /// # Errors
    /// The error of `post` or the library; messages posted before are waited for anyway.
    #[inline]
    pub fn together<'env, R>(
        &self,
        requests: &mut Requests<A>,
        post: impl FnOnce(&mut Posting<'_, 'env, A>) -> Result<R, MpiError>,
    ) -> Result<R, MpiError> {
        requests.handles.clear();
        let mut posting = Posting {
            mpi: self,
            requests,
            buffers: PhantomData,
        };
        let answer = post(&mut posting)?;
        posting.wait()?;
        Ok(answer)
    }
}

impl<'env, A: Abi> Posting<'_, 'env, A> {
    /// Posts a message to be sent.
    ///
    /// # Errors
    /// The library's; more than 2 GiB.
    #[inline]
    pub fn isend(&mut self, to: PeerRank, bytes: &'env [u8], tag: Tag) -> Result<(), MpiError> {
        let (mpi, n) = (self.mpi, count(bytes.len())?);
        let (from, mut handle) = (bytes.as_ptr().cast(), mpi.null);
        let at = &raw mut handle;
        // SAFETY: the bytes stay as they are for `'env`, which outlasts the wait of `together`.
        let code = unsafe { (mpi.calls.isend)(from, n, mpi.byte, to.0, tag.0, mpi.comm, at) };
        mpi.check("MPI_Isend", code)?;
        self.requests.handles.push(handle);
        Ok(())
    }

    /// Posts room for a message that is at most as long as `into`.
    ///
    /// # Errors
    /// The library's; more than 2 GiB.
    #[inline]
    pub fn irecv(
        &mut self,
        from: PeerRank,
        into: &'env mut [u8],
        tag: Tag,
    ) -> Result<(), MpiError> {
        self.irecv_over(from, Cell::from_mut(into).as_slice_of_cells(), tag)
    }

    /// The same into memory that other messages may be received into as well, one over the
    /// other: for windows of messages whose content nobody reads.
    ///
    /// # Errors
    /// The library's; more than 2 GiB.
    #[inline]
    pub fn irecv_over(
        &mut self,
        from: PeerRank,
        into: &'env [Cell<u8>],
        tag: Tag,
    ) -> Result<(), MpiError> {
        let (mpi, n) = (self.mpi, count(into.len())?);
        let (to, mut handle) = (into.as_ptr().cast_mut().cast(), mpi.null);
        let at = &raw mut handle;
        // SAFETY: the cells are writable for `'env`, which outlasts the wait of `together`; they
        // are written by calls of this thread, on which they stay.
        let code = unsafe { (mpi.calls.irecv)(to, n, mpi.byte, from.0, tag.0, mpi.comm, at) };
        mpi.check("MPI_Irecv", code)?;
        self.requests.handles.push(handle);
        Ok(())
    }

    /// True if all posted messages are done. Asking keeps the messages moving.
    ///
    /// # Errors
    /// The library's.
    #[inline]
    pub fn is_done(&mut self) -> Result<bool, MpiError> {
        let (mpi, n) = (self.mpi, count(self.requests.handles.len())?);
        let mut done: c_int = 0;
        let (first, ignore) = (self.requests.handles.as_mut_ptr(), A::STATUS_IGNORE);
        // SAFETY: `n` requests of this library, which are its to change.
        let code = unsafe { (mpi.calls.testall)(n, first, &raw mut done, ignore) };
        mpi.check("MPI_Testall", code)?;
        if done != 0 {
            self.requests.handles.clear();
        }
        Ok(done != 0)
    }

    #[inline]
    fn wait(&mut self) -> Result<(), MpiError> {
        let (mpi, n) = (self.mpi, count(self.requests.handles.len())?);
        let (first, ignore) = (self.requests.handles.as_mut_ptr(), A::STATUS_IGNORE);
        // SAFETY: `n` requests of this library, which are its to change.
        let code = unsafe { (mpi.calls.waitall)(n, first, ignore) };
        let is_null = |handle: &A::Handle| *handle == mpi.null;
        if code == 0 || self.requests.handles.iter().all(is_null) {
            self.requests.handles.clear();
        }
        mpi.check("MPI_Waitall", code)
    }
}

impl<A: Abi> Drop for Posting<'_, '_, A> {
    /// Waits for what is still under way, after an error or a panic in between.
    fn drop(&mut self) {
        if !self.requests.handles.is_empty() && self.wait().is_err() {
            // The library may write into borrowed memory from here on: there is no way back.
            self.mpi.emergency().abort(1);
        }
    }
}

/// A message under way in a buffer of its own. Dropped before it is done, the buffer is left to
/// the library for ever.
#[derive(Debug)]
pub(super) struct Owned<'mpi, A: Abi> {
    mpi: &'mpi Mpi<A>,
    handle: A::Handle,
    buffer: Vec<u8>,
}

impl<'mpi, A: Abi> Owned<'mpi, A> {
    pub(super) fn isend(
        mpi: &'mpi Mpi<A>,
        to: PeerRank,
        buffer: Vec<u8>,
        tag: Tag,
    ) -> Result<Self, MpiError> {
        let (n, mut handle) = (count(buffer.len())?, mpi.null);
        let (from, at) = (buffer.as_ptr().cast(), &raw mut handle);
        // SAFETY: the buffer is owned below, untouched and not freed before the message is done.
        let code = unsafe { (mpi.calls.isend)(from, n, mpi.byte, to.0, tag.0, mpi.comm, at) };
        mpi.check("MPI_Isend", code)?;
        Ok(Self {
            mpi,
            handle,
            buffer,
        })
    }

    pub(super) fn irecv(
        mpi: &'mpi Mpi<A>,
        from: PeerRank,
        length: usize,
        tag: Tag,
    ) -> Result<Self, MpiError> {
        let (n, mut handle) = (count(length)?, mpi.null);
        let mut buffer = vec![0u8; length];
        let (to, at) = (buffer.as_mut_ptr().cast(), &raw mut handle);
        // SAFETY: the buffer is owned below, untouched and not freed before the message is done.
        let code = unsafe { (mpi.calls.irecv)(to, n, mpi.byte, from.0, tag.0, mpi.comm, at) };
        mpi.check("MPI_Irecv", code)?;
        Ok(Self {
            mpi,
            handle,
            buffer,
        })
    }

    /// True if the message is done. Asking keeps the messages moving.
    pub(super) fn is_done(&mut self) -> Result<bool, MpiError> {
        let mut done: c_int = 0;
        let (at, ignore) = (&raw mut self.handle, A::STATUS_IGNORE);
        // SAFETY: one request of this library, which is its to change.
        let code = unsafe { (self.mpi.calls.testall)(1, at, &raw mut done, ignore) };
        self.mpi.check("MPI_Testall", code)?;
        Ok(done != 0)
    }

    /// The bytes of a message that is done; empty before.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if self.handle == self.mpi.null {
            std::mem::take(&mut self.buffer)
        } else {
            Vec::new()
        }
    }
}

impl<A: Abi> Drop for Owned<'_, A> {
    fn drop(&mut self) {
        if self.handle != self.mpi.null {
            std::mem::forget(std::mem::take(&mut self.buffer));
        }
    }
}

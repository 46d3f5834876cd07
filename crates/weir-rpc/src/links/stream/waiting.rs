//! Waiting for streams: what epoll is asked and what it says.
//!
//! In: how long. Out: streams read and written that were ready. Not here: streams that are looked at
//! without asking (`StreamLink::poll`).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{StreamLink, WAKER, gone};
use crate::RpcError;
use crate::links::LinkHandler;

impl StreamLink {
    /// Epoll hears of the streams that talk no more.
    pub(super) fn unwatch_hot(&mut self) {
        self.unwatched = true;
        for &index in &self.hot {
            if let Some((_, stream)) = self.streams.at(index) {
                stream.unwatch(&self.epoll);
            }
        }
    }

    /// Epoll hears of all streams again.
    #[cold]
    pub(super) fn watch_all(&mut self) {
        self.unwatched = false;
        for &index in &self.hot {
            if let Some((_, stream)) = self.streams.at(index) {
                // Where there was no memory for it, it is tried again.
                self.unwatched |= !stream.watch(&self.epoll, index);
            }
        }
    }

    /// Sets the events that each connection with something to write waits for.
    pub(super) fn set_interests(&mut self) {
        for &index in &self.dirty {
            if let Some((_, stream)) = self.streams.at(index) {
                stream.set_interest(&self.epoll, index, stream.wanted());
            }
        }
    }

    /// Waits end too when this can be read. It is not read here, and it is watched until it is
    /// closed.
    ///
    /// # Errors
    /// It cannot be watched.
    pub(crate) fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<(), RpcError> {
        // Neither a place nor the waker.
        let data = epoll::EventData::new_u64(WAKER - 1);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)
            .map_err(|errno| RpcError::io("watch a fabric")(errno.into()))
    }

    pub(super) fn ask_epoll<H: LinkHandler<Self>>(
        &mut self,
        wait: Option<Duration>,
        handler: &mut H,
    ) -> io::Result<u32> {
        let timeout = timespec(wait.unwrap_or_default());
        if wait.is_some() {
            self.set_interests();
        }
        // Not of the link: events have pointers, and a link may go to another thread.
        let mut events = [MaybeUninit::uninit(); 64];
        let events = match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error.into()),
        };
        let mut seen = 0;
        for event in events {
            let data = event.data.u64();
            if data == WAKER {
                let _ = rustix::io::read(&*self.waker, &mut [0_u8; 8]);
                seen += 1;
                continue;
            }
            let Ok(index) = u32::try_from(data) else {
                continue;
            };
            let flags = event.flags;
            if flags.contains(epoll::EventFlags::OUT) {
                self.write(index);
            }
            let ends = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            if flags.intersects(ends | epoll::EventFlags::RDHUP) {
                self.notice_end(index);
            }
            seen += self.read(index, handler);
        }
        Ok(seen)
    }

    /// The end of a connection that is not read, since too much waits for it.
    #[cold]
    fn notice_end(&mut self, index: u32) {
        if let Some((peer, stream)) = self.streams.at(index)
            && stream.is_stopped
        {
            self.break_off(peer, gone(Errno::CONNRESET));
        }
    }

    pub(super) fn write(&mut self, index: u32) {
        let Some((peer, stream)) = self.streams.at(index) else {
            return;
        };
        match stream.write(&mut self.memory) {
            Ok(goes_on) => {
                self.gave_room |= goes_on;
                if stream.queue.is_empty() {
                    stream.set_interest(&self.epoll, index, epoll::EventFlags::IN);
                }
            }
            Err(errno) => self.break_off(peer, gone(errno)),
        }
    }
}

fn timespec(wait: Duration) -> Timespec {
    Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::links::stream::Collected;
    use crate::links::{Link, LinkGreeting, LinkSide, MemoryRange, NewPeer, Sent};
    use crate::wire::{FrameHeader, FrameKind};

    #[test]
    fn what_found_no_room_goes_on_at_once_where_all_went_out_before_the_wait() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut link = StreamLink::new().unwrap();
        let new = NewPeer {
            side: LinkSide::Server,
            stream: ours.into(),
            early: Vec::new(),
            max_frame: 1 << 20,
            features: 0,
            greeting: LinkGreeting::default(),
        };
        let peer = link.join(new).unwrap();
        let region = link.allocate(256 << 10, None).unwrap();
        let (mut seen, header) = (
            Collected::default(),
            FrameHeader::plain(FrameKind::BulkPush),
        );
        let whole = MemoryRange {
            region,
            offset: 0,
            length: 256 << 10,
        };
        let reader = std::thread::spawn(move || theirs.read_to_end(&mut Vec::new()));
        for _ in 0..3 {
            while link.send_memory(peer, &header, &[], whole) == Sent::Queued {}
            assert!(link.is_in_use(region));
            while link.is_in_use(region) {
                link.flush().unwrap();
            }
            // Nothing comes; the end of the wait would be without an event.
            let wait = Some(Duration::from_millis(20));
            assert!(link.poll(wait, &mut seen).unwrap() > 0);
            assert_eq!(link.poll(wait, &mut seen).unwrap(), 0);
            // Memory alone, without a frame that waits for room.
            assert_eq!(link.send_memory(peer, &header, &[], whole), Sent::Queued);
            while link.is_in_use(region) {
                link.flush().unwrap();
            }
            assert!(link.poll(wait, &mut seen).unwrap() > 0);
        }
        drop(link);
        reader.join().unwrap().unwrap();
    }
}

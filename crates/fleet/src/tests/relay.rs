//! A relay between two ends that changes, repeats or holds back what passes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use goodput_clock::pause;
use goodput_model::Nanos;

/// What a relay does from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Do {
    Pass,
    /// Flip a bit of the next frame that the member sends, once.
    Change,
    /// Send the next frame of the member twice.
    Repeat,
    /// Pass nothing on, in both directions.
    Hold,
}

#[derive(Debug)]
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    what: Arc<AtomicU8>,
    /// Frames that the member has sent.
    pub(super) frames: Arc<AtomicU64>,
}

impl Relay {
    pub(super) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (what, frames) = (Arc::new(AtomicU8::new(Do::Pass as u8)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&what), Arc::clone(&frames));
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let to = TcpStream::connect(target).unwrap();
                let (back, forth) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (what, frames) = shared.clone();
                std::thread::spawn(move || pass(from, to, &what, Some(&frames)));
                let what = Arc::clone(&shared.0);
                std::thread::spawn(move || pass(forth, back, &what, None));
            }
        });
        Self { address, what, frames }
    }

    pub(super) fn set(&self, what: Do) {
        self.what.store(what as u8, Ordering::SeqCst);
    }
}

/// Passes frames on until an end is gone; those of the member are counted and may be changed.
fn pass(mut from: TcpStream, mut to: TcpStream, what: &AtomicU8, frames: Option<&AtomicU64>) {
    let mut step = || -> std::io::Result<()> {
        let mut frame = vec![0; 4];
        from.read_exact(&mut frame)?;
        let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        frame.resize(4 + length, 0);
        from.read_exact(&mut frame[4..])?;
        while what.load(Ordering::SeqCst) == Do::Hold as u8 {
            pause(Nanos::from_millis(5));
        }
        let now = |it: Do| {
            frames.is_some()
                && what
                    .compare_exchange(it as u8, Do::Pass as u8, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
        };
        if now(Do::Change) {
            let middle = 4 + length / 2;
            frame[middle] ^= 1;
        }
        if now(Do::Repeat) {
            to.write_all(&frame)?;
        }
        to.write_all(&frame)?;
        if let Some(frames) = frames {
            frames.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    };
    while step().is_ok() {}
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

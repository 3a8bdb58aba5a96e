//! A relay between two ends that changes, repeats or holds back what passes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use goodput_clock::pause;
use goodput_model::Nanos;

/// What a relay does from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Do {
    Pass,
    /// Flip a bit of the next record that the rank sends, once.
    Change,
    /// Send the next record of the rank twice.
    Repeat,
    /// Send the next record of the rank not at all.
    Omit,
    /// Pass nothing on, in both directions.
    Hold,
}

#[derive(Debug)]
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    what: Arc<AtomicU8>,
    /// Records of TLS that the rank has sent.
    pub(super) records: Arc<AtomicU64>,
    /// All that has passed, in both directions.
    pub(super) seen: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    pub(super) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (what, records) =
            (Arc::new(AtomicU8::new(Do::Pass as u8)), Arc::new(AtomicU64::new(0)));
        let shared = (Arc::clone(&what), Arc::clone(&records));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let to = TcpStream::connect(target).unwrap();
                let (back, forth) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let ((what, records), seen) = (shared.clone(), Arc::clone(&all));
                std::thread::spawn(move || pass(from, to, (&what, &seen), Some(&records)));
                let (what, seen) = (Arc::clone(&shared.0), Arc::clone(&all));
                std::thread::spawn(move || pass(forth, back, (&what, &seen), None));
            }
        });
        Self { address, what, records, seen }
    }

    pub(super) fn set(&self, what: Do) {
        self.what.store(what as u8, Ordering::SeqCst);
    }
}

/// Passes records of TLS on until an end is gone; those of the rank are counted and may be changed.
fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    (what, seen): (&AtomicU8, &Mutex<Vec<u8>>),
    records: Option<&AtomicU64>,
) {
    let mut step = || -> std::io::Result<()> {
        // A kind, a version, and the length of what follows.
        let mut record = vec![0; 5];
        from.read_exact(&mut record)?;
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(5 + length, 0);
        from.read_exact(&mut record[5..])?;
        seen.lock().unwrap().extend_from_slice(&record);
        while what.load(Ordering::SeqCst) == Do::Hold as u8 {
            pause(Nanos::from_millis(5));
        }
        let now = |it: Do| {
            records.is_some()
                && what
                    .compare_exchange(it as u8, Do::Pass as u8, Ordering::SeqCst, Ordering::SeqCst)
                    .is_ok()
        };
        if now(Do::Change) {
            let middle = 5 + length / 2;
            record[middle] ^= 1;
        }
        if now(Do::Repeat) {
            to.write_all(&record)?;
        }
        if !now(Do::Omit) {
            to.write_all(&record)?;
        }
        if let Some(records) = records {
            records.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    };
    while step().is_ok() {}
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

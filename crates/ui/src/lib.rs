//! *The shelf*: what lies in a folder of runs, found again quickly.
//!
//! Everything here is made from the folders and can be made again from them at any time: the index
//! is a copy for searching, never the place where something is kept. Tags and notes are kept in the
//! folder of the run they are about ([`Notes`]).
//!
//! Folders may come from anybody. Nothing is followed out of the shelf, only plain files are opened,
//! and what cannot be read is listed with less to say.

mod entry;
mod files;
mod index;
mod live;
mod notes;
mod read;
#[cfg(test)]
mod tests;
mod walk;

pub use entry::{Bounded, Curve, CurvePoint, Entry, Figures, Kind, Shown, Spread};
pub use files::fingerprint;
pub use index::{FILE, Found, Index, IndexError, Query};
pub use live::live_folder;
pub use notes::{MOST_NOTES, Notes, NotesError};

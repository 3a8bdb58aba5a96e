//! *Results in a browser*: what lies in a folder of runs, found quickly, and served as pages.
//!
//! - The index (`walk` → `read` → `index`) is made from the folders and can be made again from them
//!   at any time: it is a copy for searching, never the place where something is kept. Tags and notes
//!   are kept in the folder of the run they are about (`notes`).
//! - A request goes through `guard` (who may ask) → `site` (which page) → `pages` (its markup); a run
//!   that goes on is seen through its logs (`watch`). Nothing in a request is a path: results are named
//!   by ids that only the index can turn into folders.
//!
//! A terminal gets the same entries as a list ([`list_results`]).
//!
//! Folders may come from strangers. Nothing is followed out of the folder of runs, only plain files are
//! opened, and a result that cannot be read is listed with less to say.
//!
//! This crate never prints and never exits: [`serve_results`] tells its caller what happens ([`ServeEvent`]).

mod entry;
mod files;
mod guard;
mod index;
mod listing;
mod live;
mod notes;
mod page_cache;
mod pages;
mod read;
mod serve;
mod site;
mod walk;
mod watch;

pub use guard::random_secret;
pub use listing::{Listed, list_results, list_text};
pub use serve::{Options, ServeEvent, UiError, serve_results};
pub use site::Render;

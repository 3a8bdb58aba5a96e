//! Hostile peers of everything that listens: `record`, `shadow`, `ui`, `mock`, `--metrics-listen`.

mod client;
mod floods;
mod listener;
mod peer;
mod shadow;
mod stand;
mod upstream;
mod upstream2;

use crate::case::Case;

/// Every case of this area.
pub(crate) fn cases() -> Vec<Case> {
    [
        upstream::cases(),
        upstream2::cases(),
        client::cases(),
        floods::cases(),
        shadow::cases(),
        listener::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

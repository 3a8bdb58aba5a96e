//! Live traffic while it passes: pages of metrics, progress lines, and the pairs of a shadow.

mod proxy;
mod recording;
mod shadow;
mod shadow_page;

pub use recording::{recording_line, recording_page};
pub use shadow::{ShadowProgress, standing_text};

//! A second server that is tried on live traffic.

mod mirror;

pub use mirror::{
    By, Caps, Dropped, Echo, HeadRules, Mirror, MirrorSettings, MirrorTally, Mirrored, Rules,
    Standing, StopAt,
};

//! *Live traffic*: what passes between clients and a server, passed on, recorded or tried elsewhere.
//!
//! | module | what it holds |
//! |---|---|
//! | [`proxy`] | passes every byte on as it comes, and tells a [`Witness`] what passed |
//! | [`rows`] | bodies and answers as rows of a trace, without a word of their text |
//! | [`shadow`] | the mirror, which sends some requests to a candidate too |

pub mod proxy;
pub mod rows;
pub mod shadow;

pub use proxy::{
    Answered, Asked, Backend, Drained, Ending, HEALTH, Limits, Proxy, ProxyError, Question,
    Settings, Tally, TlsFiles, Upstream, Witness, api_of,
};
pub use shadow::{
    By, Caps, Dropped, Echo, HeadRules, Mirror, MirrorSettings, MirrorTally, Mirrored, Rules,
    Standing, StopAt,
};

//! *Live traffic*: what passes between clients and a server, passed on, recorded or tried elsewhere.
//! Nothing is printed here: what happens is told to a [`LiveObserver`], and a session is told what to
//! do by [`ObserverCommand`]s.
//!
//! | module | what it holds |
//! |---|---|
//! | [`proxy`] | passes every byte on as it comes, and tells a [`Witness`] what passed |
//! | [`rows`] | bodies and answers as rows of a trace, without a word of their text |
//! | [`recording`] | live traffic as a trace: [`Recording`] |
//! | [`shadow`] | a second server that is tried on live traffic: [`Shadow`], its mirror and its pairs |
//! | `session` | passing on until it is over, and draining |

mod error;
mod first_look;
mod observer;
pub mod proxy;
pub mod recording;
pub mod rows;
mod session;
pub mod shadow;

pub use error::LiveError;
pub use first_look::{check_upstream, is_loop};
pub use observer::{LiveObserver, ObserverCommand, SilentObserver};
pub use proxy::{
    Answered, Backend, ConnectionLimit, Drained, Ending, HEALTH, Limits, ObservedRequest,
    OwnRequest, Proxy, ProxyError, Settings, Tally, TlsFiles, Upstream, Witness, api_of_request,
};
pub use recording::{RecordOptions, Recorded, Recording};
pub use session::{EndReason, SessionEnd};
pub use shadow::{
    By, CandidateAnswer, Caps, Dropped, Half, HalfSender, HeadRules, Mirror, MirrorSettings,
    MirrorStanding, MirrorTally, Rules, Shadow, ShadowOptions, ShadowResult, StopAt,
};

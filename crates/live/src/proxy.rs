//! A reverse proxy that passes every byte on as it comes, and tells what passed.
//!
//! A request goes to the upstream while it is still coming in, and its answer to the client likewise.
//! What is looked at is looked at after it was passed on. A [`Witness`] hears of each request twice:
//! when its body has come whole, and when its answer is over.
//!
//! A worker is one thread with a runtime of its own; nothing of a request ever leaves its thread.
//! `server` has the threads, `worker` the sockets, `shared` what requests of a worker share, `forward`
//! the life of one request, `backend` the connections to the upstream, `inquiry` the body of a request
//! on its way there, `reply` that of the answer on its way back, `keeping` how much is held of them,
//! `seats` how many clients there may be, `call` what is noted of both, and `after` what is told.
//! `heads` (what is passed on of a head) is pure.

mod after;
mod backend;
mod call;
mod connection_limit;
mod deadline;
mod flow;
mod forward;
mod heads;
mod inquiry;
mod keeping;
mod line;
mod reply;
mod said;
mod seats;
mod server;
mod settings;
mod shared;
mod strict;
mod tally;
mod upstream;
mod witness;
mod worker;

pub use backend::{Backend, OwnRequest};
pub use connection_limit::ConnectionLimit;
pub use heads::api_of_request;
pub(crate) use keeping::Allowance;
pub use said::HEALTH;
pub use server::{Drained, Proxy, ProxyError};
pub use settings::{Limits, Settings, TlsFiles, Upstream};
pub use tally::{Tally, TallyCounter};
pub(crate) use upstream::UpstreamRoute;
pub use witness::{Answered, Ending, ObservedRequest, Witness};

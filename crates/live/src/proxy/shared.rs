//! [`Shared`]: what all requests of a worker share.

use std::cell::Cell;
use std::sync::Arc;

use http::HeaderValue;

use crate::proxy::after::After;
use crate::proxy::keeping::Allowance;
use crate::proxy::settings::Limits;
use crate::proxy::tally::Tally;

/// What all requests of a worker share.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) keep_text: bool,
    pub(crate) via: HeaderValue,
    pub(crate) tally: Arc<Tally>,
    pub(crate) allowance: Allowance,
    pub(crate) after: After,
    pub(crate) is_draining: Cell<bool>,
    pub(crate) is_stopping: Cell<bool>,
}

//! Telling a server to profile itself, as vLLM and SGLang can be told.

use std::sync::Arc;

use goodput_model::Failure;

use crate::endpoint::Endpoint;
use crate::engine_api::tell;

/// Begins; false if the server cannot be told.
pub async fn start_profile(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    tell(endpoint, &["start_profile"]).await
}

/// Ends it. The server answers once it has written what it found, which may take minutes.
pub async fn stop_profile(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    tell(endpoint, &["stop_profile"]).await
}

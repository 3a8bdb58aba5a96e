//! Telling a server to profile itself, as vLLM and SGLang can be told.

use std::sync::Arc;

use goodput_model::Failure;

use crate::endpoint::Endpoint;
use crate::engine_api::post_to_first;

/// Begins; false if the server cannot be told.
pub async fn start_profile(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    post_to_first(endpoint, &["start_profile"]).await
}

/// Ends it. The server answers once it has written what it found, which may take minutes.
pub async fn stop_profile(endpoint: &Arc<Endpoint>) -> Result<bool, Failure> {
    post_to_first(endpoint, &["stop_profile"]).await
}

//! [`ConnectionLimit`]: the limit on clients' connections, and what is said of it.

use std::sync::Arc;

use super::tally::Tally;

/// A proxy's `--max-connections`, and when it was reached.
#[derive(Debug)]
pub struct ConnectionLimit {
    most: u32,
    tally: Arc<Tally>,
    is_told: bool,
}

impl ConnectionLimit {
    /// At most this many, of the clients of the proxy with this tally.
    pub fn new(most: u32, tally: &Arc<Tally>) -> Self {
        Self { most, tally: Arc::clone(tally), is_told: false }
    }

    /// What to say when the limit is first reached.
    pub fn first_warning(&mut self) -> Option<String> {
        let is_new = self.tally.at_limit.get() > 0 && !std::mem::replace(&mut self.is_told, true);
        is_new.then(|| {
            format!(
                "warning: {} connections are open (--max-connections): new ones replace the longest idle ones, or wait if none is idle",
                self.most
            )
        })
    }

    /// What became of those beyond the limit, in the end.
    pub fn closed_text(&self) -> Option<String> {
        let Tally { at_limit, made_way, turned_away, .. } = &*self.tally;
        (at_limit.get() > 0).then(|| {
            format!(
                "warning: {} connections exceeded the {} of --max-connections: {} idle ones were closed, {} requests were refused with 503",
                at_limit.get(),
                self.most,
                made_way.get(),
                turned_away.get()
            )
        })
    }

    /// The same for programs.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "beyond_limit": self.tally.at_limit.get(),
            "made_way": self.tally.made_way.get(),
            "turned_away": self.tally.turned_away.get(),
        })
    }
}

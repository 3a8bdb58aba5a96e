//! How a recorded trace was served.

use std::collections::BTreeMap;

use goodput_model::Api;
use goodput_stats::{Histogram, ServedView};

use crate::inputs::WorkloadInputs;

/// Counts over all rows of a recorded trace; none of anything else.
pub(crate) fn recorded_service(inputs: &WorkloadInputs) -> Option<ServedView> {
    let mut counts: [BTreeMap<String, u64>; 4] = Default::default();
    let mut ttft = Vec::new();
    let (mut rows, mut cached, mut input) = (0u64, 0u64, 0u64);
    for turn in inputs.recorded_turns() {
        let Some(served) = &turn.served else { continue };
        rows += 1;
        let failure = served.failure.map(|class| class.to_string());
        let names = [
            served.endpoint.map(Api::name).map(str::to_owned),
            served.model.clone(),
            served.status.map(|status| status.to_string()),
            failure.or_else(|| served.finish.clone()),
        ];
        for (counts, name) in counts.iter_mut().zip(names) {
            if let Some(name) = name {
                *counts.entry(name).or_default() += 1;
            }
        }
        ttft.extend(served.ttft.map(|ttft| ttft.as_secs() * 1e3));
        if let (Some(tokens), Some(all)) = (served.cached_tokens, turn.input_tokens) {
            cached += u64::from(tokens);
            input += u64::from(all);
        }
    }
    let [endpoints, models, statuses, ends] = counts.map(|counts| counts.into_iter().collect());
    (rows > 0).then(|| ServedView {
        endpoints,
        models,
        statuses,
        ends,
        ttft_ms: Histogram::from_values(ttft),
        cache_hit_rate: (input > 0).then(|| cached as f64 / input as f64),
    })
}

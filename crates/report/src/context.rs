//! The system behind the figures of a sweep, in facts for the head of its page.

use goodput_campaign::sweep::SweepFacts;
use goodput_document::Fact;

/// What a reader needs to place a figure.
const NEEDED: [&str; 4] = ["Hardware", "Precision", "Engine", "Parallelism"];

/// What is stated of the system, and which of the most important facts is not. A simulated engine
/// runs on no hardware.
pub(crate) fn system_facts(sweep: &SweepFacts) -> Vec<Fact> {
    let system = &sweep.system;
    let has_weights = !(system.model_size.is_empty() && system.model_revision.is_empty());
    let is_known = |(name, text): &(&str, String)| {
        // The model's name alone is at the head of the page.
        !text.is_empty() && (*name != "Model" || has_weights)
    };
    let known: Vec<_> = system.facts().into_iter().filter(is_known).collect();
    let lacks = |name: &&&str| !known.iter().any(|(stated, _)| stated == *name);
    let lacking: Vec<String> =
        NEEDED.iter().filter(lacks).map(|name| name.to_lowercase()).collect();
    let is_simulated = sweep.target.starts_with("mock");
    let told = (!lacking.is_empty() && !is_simulated)
        .then(|| Fact::new("Not stated", format!("{} (--meta KEY=VALUE)", lacking.join(", "))));
    let known = known.into_iter().map(|(name, text)| {
        let name = if name == "Model" { "Weights" } else { name };
        Fact::new(name, text)
    });
    known.chain(told).collect()
}

//! Which parts this build has.

use goodput_model::Feature;

/// The parts that were built in, by name.
pub fn features() -> impl Iterator<Item = Feature> {
    Feature::ALL.into_iter().filter(|feature| match feature {
        Feature::JsonSchema => cfg!(feature = "json-schema"),
        Feature::Nvml => cfg!(feature = "nvml"),
        Feature::Parquet => cfg!(feature = "parquet"),
        Feature::Tokenizers => cfg!(feature = "tokenizers"),
        Feature::Vocabularies => cfg!(feature = "vocabularies"),
    })
}

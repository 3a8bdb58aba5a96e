//! A build without NVIDIA's driver: opening it fails and says so.

use goodput_model::{Feature, GpuFacts, GpuSample, LeftOut, Nanos};

/// The driver of a build that has none: it has no value.
#[derive(Debug)]
pub enum Nvml {}

impl Nvml {
    /// Fails.
    pub fn open(_only: &[u32]) -> Result<Self, String> {
        Err(format!("{}; {}", LeftOut(Feature::Nvml), LeftOut::HINT))
    }

    /// Never called.
    pub fn driver(&self) -> String {
        match *self {}
    }

    /// Never called.
    pub fn facts(&self) -> Vec<GpuFacts> {
        match *self {}
    }

    /// Never called.
    pub fn sample(&self, _at: Nanos) -> Vec<GpuSample> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_what_is_left_out() {
        let why = Nvml::open(&[]).unwrap_err();
        let expected =
            "built without `nvml`: this build cannot query the NVIDIA driver of this machine";
        assert!(why.starts_with(expected), "{why}");
    }
}

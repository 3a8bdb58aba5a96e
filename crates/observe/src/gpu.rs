//! GPUs: by the driver of this machine, or by an exporter's page.

mod exporter;
#[cfg(all(test, feature = "nvml"))]
#[allow(dead_code, unreachable_pub, reason = "a test looks at its error alone")]
mod no_nvml;
#[cfg(feature = "nvml")]
mod nvml;
#[cfg(not(feature = "nvml"))]
#[path = "gpu/no_nvml.rs"]
mod nvml;

pub use exporter::GpuExporter;
pub use nvml::Nvml;

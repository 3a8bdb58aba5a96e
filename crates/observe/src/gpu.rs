//! GPUs: by the driver of this machine, or by an exporter's page.

mod exporter;
mod nvml;

pub use exporter::GpuExporter;
pub use nvml::Nvml;

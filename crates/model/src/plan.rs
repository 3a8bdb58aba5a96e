//! [`Plan`]: everything that was asked of a run, resolved, in a form that can be written to
//! `plan.toml` and run again. Values with a text form (`20/s`, `gamma:2`, `90s`) keep it on disk.

mod load;
mod measure;
mod observe;
mod target;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ClassPlan, OutputLength, WorkloadPlan};

pub use load::{ArrivalProcess, Keep, Load, LoadExtent, Mode, Rate};
pub use measure::{Measure, SloQuestion, StopEarly};
pub use observe::{GpuPlan, ObservePlan};
pub use target::{Api, ConnectionPolicy, Header, Http, Target};

/// What stands in a written plan where a header's value or a query value stood.
pub const REDACTED: &str = "[redacted]";

/// Everything that was asked. `goodput run --plan plan.toml` repeats it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format name and version: `goodput.plan/1`.
    pub schema: String,
    /// Whom to send to.
    pub target: Target,
    /// How much, when, and for how long.
    pub load: Load,
    /// What to send.
    pub workload: WorkloadPlan,
    /// What to compute.
    pub measure: Measure,
    /// What to look at on the server's side.
    #[serde(default)]
    pub observe: ObservePlan,
    /// What no endpoint tells about the server: GPU type and count, quantization, engine flags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub system: BTreeMap<String, String>,
}

impl Plan {
    /// The format this version writes.
    pub const SCHEMA: &'static str = "goodput.plan/1";

    /// How long one run takes at most, where it is bounded by time.
    pub fn longest_duration(&self) -> Option<Duration> {
        let load = &self.load;
        let shaped = match &load.mode {
            Mode::Shaped { shape, .. } => shape.length(),
            _ => None,
        };
        let measured = load.duration.or(shaped)?;
        let warmup = match load.warmup {
            LoadExtent::Time(time) => time,
            LoadExtent::Requests(0) | LoadExtent::Auto => Duration::ZERO,
            LoadExtent::Requests(_) => return None,
        };
        Some(measured + warmup + load.cooldown + load.drain + self.target.wait_ready)
    }

    /// Requests of one class at a steady average rate: what `goodput run URL --rate R --duration D`
    /// asks for, with one worker.
    pub fn open_loop(url: &str, class: ClassPlan, per_second: f64, duration: Duration) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            target: Target::new(url),
            load: Load {
                seed: 42,
                duration: Some(duration),
                num_requests: None,
                warmup: LoadExtent::Auto,
                cooldown: Duration::ZERO,
                drain: Duration::from_mins(1),
                workers: 1,
                pin: false,
                mode: Mode::Open {
                    rate: Rate::PerSecond(per_second),
                    arrivals: ArrivalProcess::Poisson,
                    max_concurrency: None,
                },
            },
            workload: WorkloadPlan { output: OutputLength::Exact, ..WorkloadPlan::new(class) },
            measure: Measure::new(Measure::PERCENTILES.to_vec()),
            observe: ObservePlan::default(),
            system: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_and_limits() {
        assert_eq!("20".parse(), Ok(Rate::PerSecond(20.0)));
        assert_eq!("90/m".parse(), Ok(Rate::PerSecond(1.5)));
        assert_eq!("inf".parse(), Ok(Rate::Infinite));
        for bad in ["0", "-1", "nan", "NaN", "20/d", "", "1e300", "infinity"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn warmup_is_a_time_or_a_count() {
        assert_eq!("10s".parse(), Ok(LoadExtent::Time(Duration::from_secs(10))));
        assert_eq!("50".parse(), Ok(LoadExtent::Requests(50)));
        assert!("10x".parse::<LoadExtent>().is_err());
    }

    #[test]
    fn a_plan_survives_its_file() {
        let plan = Plan {
            schema: Plan::SCHEMA.to_owned(),
            target: Target {
                url: "http://localhost:8000".to_owned(),
                api: Api::Chat,
                stream: true,
                usage: true,
                model: None,
                http: Http::Http1,
                connections: ConnectionPolicy::PerRequest,
                timeout: Duration::from_millis(1500),
                probe: true,
                wait_ready: Duration::ZERO,
                api_key_env: "OPENAI_API_KEY".to_owned(),
                headers: vec![Header { name: "x-team".to_owned(), value: REDACTED.to_owned() }],
                extra_body: Some(r#"{"top_k":1}"#.to_owned()),
                cacert: None,
                insecure: false,
            },
            load: Load {
                seed: u64::MAX >> 1,
                duration: Some(Duration::from_secs(20)),
                num_requests: None,
                warmup: LoadExtent::Requests(7),
                cooldown: Duration::ZERO,
                drain: Duration::from_mins(1),
                workers: 2,
                pin: false,
                mode: Mode::Open {
                    rate: Rate::PerSecond(0.1),
                    arrivals: ArrivalProcess::Gamma(1.5),
                    max_concurrency: Some(4),
                },
            },
            workload: crate::workload::tests::everything(),
            measure: Measure {
                slo: Some("interactive, p99 e2e < 2s + 3ms/token".parse().unwrap()),
                attainment: Some(0.99),
                hash_bodies: true,
                until: Some("p95 ttft ±10%, mean e2e ±5%".parse().unwrap()),
                min_duration: Some(Duration::from_secs(30)),
                ..Measure::new(vec![50.0, 99.9])
            },
            observe: ObservePlan {
                metrics_urls: vec!["http://a:9/metrics".to_owned()],
                gpu: GpuPlan::Exporters(vec!["http://b:9400/metrics".to_owned()]),
                trace_share: Some(0.01),
                ..ObservePlan::default()
            },
            system: BTreeMap::from([("tensor parallel".to_owned(), "4".to_owned())]),
        };
        let text = toml::to_string(&plan).unwrap();
        assert!(text.contains("arrivals = \"gamma:1.5\""), "{text}");
        assert!(text.contains("slo = \"ttft < 500ms, tpot < 50ms, errors < 1%, p99 e2e"), "{text}");
        assert_eq!(toml::from_str::<Plan>(&text).unwrap(), plan);
        let misspelt = text.replace("drain", "drian");
        assert!(toml::from_str::<Plan>(&misspelt).is_err());
    }
}

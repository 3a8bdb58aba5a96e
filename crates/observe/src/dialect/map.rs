//! [`MetricsMap`]: names of an engine that we do not know, given by the user.

use std::collections::BTreeMap;

use goodput_model::{Signal, SignalKind};
use serde::{Deserialize, Deserializer};

use super::{FigureSource, Parts};

/// A map of an engine that we do not know, as its TOML file has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsMap {
    /// The engine's name, for the report.
    pub name: String,
    /// By our name (`running`, `ttft`): where it stands.
    pub signals: BTreeMap<String, MappedSignal>,
}

/// Where one figure stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappedSignal {
    /// The series, or several that are added up; of a histogram the name without `_bucket`.
    #[serde(deserialize_with = "one_or_several")]
    pub series: Vec<String>,
    /// Labels that pick it where others share the name.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What its values are multiplied with: 0.001 for milliseconds, 0.01 for percent.
    #[serde(default = "default_scale")]
    pub scale: f64,
}

fn default_scale() -> f64 {
    1.0
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "`series` is the name of a series, or a list of names")]
    enum NameMap {
        One(String),
        Several(Vec<String>),
    }
    Ok(match NameMap::deserialize(deserializer)? {
        NameMap::One(name) => vec![name],
        NameMap::Several(names) => names,
    })
}

impl MetricsMap {
    /// Whether it can be followed; otherwise what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if self.name.trim().is_empty() {
            return Err("`name` is empty: reports need a name for the engine".to_owned());
        }
        if self.signals.is_empty() {
            return Err(format!("`signals` is empty; known are {}", known_signals()));
        }
        for (name, mapped) in &self.signals {
            let Some(signal) = signal_by_name(name) else {
                return Err(format!("unknown signal `{name}`; known are {}", known_signals()));
            };
            mapped.check(signal).map_err(|wrong| format!("signal `{name}`: {wrong}"))?;
        }
        Ok(())
    }

    /// Its places; those of unknown signals are left out.
    pub(crate) fn sources(&self) -> impl Iterator<Item = FigureSource<'_>> {
        self.signals.iter().filter_map(|(name, mapped)| {
            let parts = Parts::Mapped(mapped);
            Some(FigureSource {
                signal: signal_by_name(name)?,
                parts,
                count: None,
                scale: mapped.scale,
            })
        })
    }
}

impl MappedSignal {
    fn check(&self, signal: Signal) -> Result<(), String> {
        if self.series.is_empty() || self.series.iter().any(|name| name.trim().is_empty()) {
            return Err("`series` names no series".to_owned());
        }
        if let Some(twice) = self.series.iter().enumerate().find_map(|(place, name)| {
            self.series.iter().take(place).any(|other| other == name).then_some(name)
        }) {
            return Err(format!("`{twice}` is listed twice and would count twice"));
        }
        if !self.scale.is_finite() || self.scale <= 0.0 {
            return Err(format!("`scale` is {}, not a number above zero", self.scale));
        }
        if signal.kind() != SignalKind::Histogram {
            return Ok(());
        }
        for name in &self.series {
            for end in ["_bucket", "_sum", "_count"] {
                if let Some(base) = name.strip_suffix(end) {
                    return Err(format!("it is a histogram: give `{base}`, without `{end}`"));
                }
            }
        }
        if self.labels.contains_key("le") {
            return Err("it is a histogram: the label `le` cannot pick its series".to_owned());
        }
        Ok(())
    }
}

fn signal_by_name(name: &str) -> Option<Signal> {
    Signal::ALL.iter().copied().find(|signal| signal.name() == name)
}

fn known_signals() -> String {
    Signal::ALL.iter().map(|signal| signal.name()).collect::<Vec<_>>().join(", ")
}

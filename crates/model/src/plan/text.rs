//! Values of a plan by their text forms, for serde.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{ArrivalProcess, LoadExtent, Rate};
use crate::{LoadShape, Until};

/// Serde by the text form.
macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

serde_as_text!(Rate, ArrivalProcess, LoadExtent, LoadShape, Until);

pub(super) mod duration_text {
    use super::{Deserialize, Duration};

    pub(in crate::plan) fn serialize<S: serde::Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*duration))
    }

    pub(in crate::plan) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        crate::parse_duration(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

pub(super) mod option_duration_text {
    use super::{Duration, duration_text};

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(in crate::plan) fn serialize<S: serde::Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => duration_text::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::plan) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        duration_text::deserialize(deserializer).map(Some)
    }
}

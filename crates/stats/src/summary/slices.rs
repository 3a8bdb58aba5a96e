//! Slices in their natural order: a JSON object whose keys are not sorted as text.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::workload::Slice;

/// The slices of a dimension by value, in natural order: `2` before `10`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slices(Vec<(String, Slice)>);

impl Slices {
    /// The slice of a value.
    pub fn get(&self, value: &str) -> Option<&Slice> {
        self.0.iter().find(|(of, _)| of == value).map(|(_, slice)| slice)
    }

    /// The same, to be filled.
    pub fn get_mut(&mut self, value: &str) -> Option<&mut Slice> {
        self.0.iter_mut().find(|(of, _)| of == value).map(|(_, slice)| slice)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Slice)> {
        self.0.iter().map(|(value, slice)| (value, slice))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Slice)> for Slices {
    fn from_iter<I: IntoIterator<Item = (String, Slice)>>(slices: I) -> Self {
        Self(slices.into_iter().collect())
    }
}

#[cfg(test)]
impl std::ops::Index<&str> for Slices {
    type Output = Slice;
    fn index(&self, value: &str) -> &Slice {
        self.get(value).unwrap()
    }
}

impl Serialize for Slices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Slices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SliceObject;
        impl<'de> Visitor<'de> for SliceObject {
            type Value = Slices;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of slices by value")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Slices, M::Error> {
                let mut slices = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    slices.push(entry);
                }
                Ok(Slices(slices))
            }
        }
        deserializer.deserialize_map(SliceObject)
    }
}

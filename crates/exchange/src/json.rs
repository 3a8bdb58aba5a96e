//! Objects of JSON written field by field, in the order in which other tools write them.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use crate::error::ExchangeError;

/// An object that is being written.
pub(crate) struct Object<'w> {
    out: &'w mut dyn Write,
    is_empty: bool,
}

/// The small fields of an object: a later value of a name replaces an earlier one in its place.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(String, Value)>);

impl Fields {
    pub(crate) fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }
}

impl<'w> Object<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Result<Self, ExchangeError> {
        out.write_all(b"{")?;
        Ok(Self { out, is_empty: true })
    }

    pub(crate) fn fields(&mut self, fields: &Fields) -> Result<(), ExchangeError> {
        fields.0.iter().try_for_each(|(name, value)| self.field(name, value))
    }

    pub(crate) fn field(
        &mut self,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), ExchangeError> {
        self.name(name)?;
        Ok(serde_json::to_writer(&mut self.out, value)?)
    }

    /// A value in a form that is not JSON's, as Python writes what is not finite.
    pub(crate) fn raw_field(&mut self, name: &str, text: &str) -> Result<(), ExchangeError> {
        self.name(name)?;
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// A list that is never held in memory.
    pub(crate) fn list<T: Serialize>(
        &mut self,
        name: &str,
        items: impl Iterator<Item = T>,
    ) -> Result<(), ExchangeError> {
        self.name(name)?;
        self.out.write_all(b"[")?;
        for (place, item) in items.enumerate() {
            if place > 0 {
                self.out.write_all(b", ")?;
            }
            serde_json::to_writer(&mut self.out, &item)?;
        }
        Ok(self.out.write_all(b"]")?)
    }

    pub(crate) fn close_object(self) -> Result<(), ExchangeError> {
        self.out.write_all(b"}\n")?;
        Ok(self.out.flush()?)
    }

    fn name(&mut self, name: &str) -> Result<(), ExchangeError> {
        if !self.is_empty {
            self.out.write_all(b", ")?;
        }
        self.is_empty = false;
        serde_json::to_writer(&mut self.out, name)?;
        Ok(self.out.write_all(b": ")?)
    }
}

//! Where a class's material comes from: the only place that reads datasets and traces.

use std::path::Path;

use goodput_dataset::{DatasetError, DatasetOptions, TraceSelection, UnknownFormat, frozen};
use goodput_model::{ClassPlan, SourcePlan, WorkloadPlan};
use goodput_tokens::Tokenizer;

use crate::author::guess_tokens;
use crate::{Material, Setting, WorkloadError};

/// What each class needs from its files, in the order of the classes.
pub(crate) fn load_materials(
    plan: &WorkloadPlan,
    setting: &Setting,
    tokenizer: Option<&Tokenizer>,
) -> Result<Vec<Material>, WorkloadError> {
    let estimate = Tokenizer::builtin("approximate");
    let tokenizer = tokenizer.or(estimate.as_ref());
    plan.classes
        .iter()
        .map(|class| {
            load_class(class, plan, setting, tokenizer).map_err(|error| {
                WorkloadError::new(format!("class `{}`: {error}", class.name), error.hint)
            })
        })
        .collect()
}

fn load_class(
    class: &ClassPlan,
    plan: &WorkloadPlan,
    setting: &Setting,
    tokenizer: Option<&Tokenizer>,
) -> Result<Material, WorkloadError> {
    match &class.source {
        SourcePlan::Synthetic { .. } => Ok(Material::Synthetic),
        SourcePlan::Pairs { file } => Ok(Material::Pairs(
            goodput_dataset::load_pairs(Path::new(file)).map_err(|e| file_error(&e))?,
        )),
        SourcePlan::Frozen { file, .. } => Ok(Material::Frozen(
            frozen::read_frozen(Path::new(file)).map_err(|e| file_error(&e))?.1,
        )),
        SourcePlan::Trace(trace) => {
            let options = TraceSelection::from_plan(trace, plan.skip_invalid)
                .map_err(|e| format_error(&e))?;
            Ok(Material::Entries(
                goodput_dataset::load_trace(Path::new(&trace.file), &options)
                    .map_err(|e| file_error(&e))?,
            ))
        }
        SourcePlan::Dataset(data) => {
            let count = |text: &str| {
                let counted = tokenizer.and_then(|tokenizer| tokenizer.count(text).ok());
                // A text that the tokenizer cannot read is not left out for that.
                counted.unwrap_or_else(|| guess_tokens(text))
            };
            let needed = setting.requests.max(1);
            let options = DatasetOptions::from_plan(data, setting.seed, needed, plan.skip_invalid)
                .map_err(|e| format_error(&e))?;
            let loaded = goodput_dataset::load_dataset(Path::new(&data.file), &options, &count)
                .map_err(|e| file_error(&e))?;
            let mut material = Material::Entries(loaded);
            material.count_lengths(class, &count);
            Ok(material)
        }
    }
}

fn file_error(error: &DatasetError) -> WorkloadError {
    WorkloadError::new(error.to_string(), error.hint().unwrap_or_default())
}

fn format_error(error: &UnknownFormat) -> WorkloadError {
    WorkloadError::new(error.to_string(), "remove `format` to detect it")
}

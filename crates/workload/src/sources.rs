//! Where a class's material comes from: the only place that reads datasets and traces.

use std::path::Path;

use goodput_dataset::{DatasetError, DatasetOptions, TraceSelection, UnknownFormat, frozen};
use goodput_model::{ClassPlan, SourcePlan, WorkloadPlan};
use goodput_tokens::Tokenizer;

use crate::author::guess;
use crate::{Material, Setting, WorkloadError};

/// What each class needs from its files, in the order of the classes.
pub(crate) fn load(
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
            goodput_dataset::load_pairs(Path::new(file)).map_err(|e| bad_file(&e))?,
        )),
        SourcePlan::Frozen { file, .. } => {
            Ok(Material::Frozen(frozen::read(Path::new(file)).map_err(|e| bad_file(&e))?.1))
        }
        SourcePlan::Trace(trace) => {
            let options =
                TraceSelection::from_plan(trace, plan.skip_invalid).map_err(|e| bad_form(&e))?;
            Ok(Material::Entries(
                goodput_dataset::load_trace(Path::new(&trace.file), &options)
                    .map_err(|e| bad_file(&e))?,
            ))
        }
        SourcePlan::Dataset(data) => {
            let count = |text: &str| {
                let counted = tokenizer.and_then(|tokenizer| tokenizer.count(text).ok());
                // A text that the tokenizer cannot read is not left out for that.
                counted.unwrap_or_else(|| guess(text))
            };
            let needed = setting.requests.max(1);
            let options = DatasetOptions::from_plan(data, setting.seed, needed, plan.skip_invalid)
                .map_err(|e| bad_form(&e))?;
            let loaded = goodput_dataset::load(Path::new(&data.file), &options, &count)
                .map_err(|e| bad_file(&e))?;
            let mut material = Material::Entries(loaded);
            material.measure(class, &count);
            Ok(material)
        }
    }
}

fn bad_file(error: &DatasetError) -> WorkloadError {
    WorkloadError::new(error.to_string(), error.hint().unwrap_or_default())
}

fn bad_form(error: &UnknownFormat) -> WorkloadError {
    WorkloadError::new(error.to_string(), "remove `format` to detect it")
}

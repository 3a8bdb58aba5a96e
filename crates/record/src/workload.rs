//! A workload on disk: TOML with one table per class.

use std::path::Path;

use goodput_files::{MOST_TOML, read_text};
use goodput_model::{ClassPlan, OutputLength, SourcePlan, WorkloadPlan};
use toml::{Table, Value};

use crate::error::FolderError;
use crate::nesting::from_toml;

/// Reads a workload. A class may name a `preset`, and then only says what is different.
pub fn read_workload(
    path: &Path,
    preset: impl Fn(&str) -> Option<ClassPlan>,
) -> Result<WorkloadPlan, FolderError> {
    let damaged = |error: String| FolderError::Damaged { path: path.to_owned(), error };
    let text = read_text(path, MOST_TOML).map_err(|error| FolderError::Io {
        action: "read",
        path: path.to_owned(),
        error,
    })?;
    let mut table: Table = from_toml(&text).map_err(|error| damaged(error.to_string()))?;
    let Some(Value::Array(classes)) = table.get_mut("class") else {
        return Err(damaged("it has no [[class]]".to_owned()));
    };
    for class in classes {
        let Value::Table(class) = class else { continue };
        let Some(name) = class.remove("preset") else { continue };
        let known = name.as_str().and_then(&preset);
        let known = known.ok_or_else(|| damaged(format!("no preset is named {name}")))?;
        let base = Table::try_from(&known).map_err(|error| damaged(error.to_string()))?;
        merge_tables(class, base);
    }
    if !table.contains_key("name") {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("workload");
        table.insert("name".to_owned(), Value::String(stem.to_owned()));
    }
    let says_output = table.contains_key("output");
    let mut plan: WorkloadPlan =
        table.try_into().map_err(|error: toml::de::Error| damaged(error.to_string()))?;
    if plan.classes.is_empty() {
        return Err(damaged("it has no [[class]]".to_owned()));
    }
    let is_generated = |class: &ClassPlan| {
        matches!(class.source, SourcePlan::Synthetic { .. } | SourcePlan::Pairs { .. })
    };
    if !says_output && plan.classes.iter().all(is_generated) {
        plan.output = OutputLength::Exact;
    }
    Ok(plan)
}

/// Adds what `table` does not say itself, table by table.
fn merge_tables(table: &mut Table, base: Table) {
    for (key, value) in base {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(own)), Value::Table(base)) => merge_tables(own, base),
            (Some(_), _) => {}
            (None, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::LengthDistribution;

    use super::*;

    fn chat(name: &str) -> Option<ClassPlan> {
        (name == "chat").then(|| {
            ClassPlan::synthetic(
                "chat",
                LengthDistribution::Fixed(500),
                LengthDistribution::Fixed(200),
            )
        })
    }

    fn read(text: &str) -> Result<WorkloadPlan, FolderError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("traffic.toml");
        std::fs::write(&path, text).unwrap();
        read_workload(&path, chat)
    }

    #[test]
    fn a_class_says_what_differs_from_its_preset() {
        let plan = read(
            "[[class]]\npreset = \"chat\"\nname = \"short\"\nshare = 0.7\nsource.output = \"20\"\n\
             [[class]]\npreset = \"chat\"\nmodel = \"lora-1\"\n",
        )
        .unwrap();
        assert_eq!((plan.name.as_str(), plan.output), ("traffic", OutputLength::Exact));
        let limited = read("output = \"limit\"\n[[class]]\npreset = \"chat\"\n").unwrap();
        assert_eq!(limited.output, OutputLength::Limit);
        let source = |input, output| SourcePlan::Synthetic {
            input: LengthDistribution::Fixed(input),
            output: LengthDistribution::Fixed(output),
        };
        assert_eq!(plan.classes[0].source, source(500, 20));
        assert_eq!((plan.classes[0].name.as_str(), plan.classes[0].share), ("short", 0.7));
        assert_eq!(plan.classes[1].source, source(500, 200));
        assert_eq!(plan.classes[1].model.as_deref(), Some("lora-1"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("", "no [[class]]"),
            ("class = []", "no [[class]]"),
            ("[[class]]\npreset = \"nope\"", "nope"),
            ("[[class]]\npreset = \"chat\"\nshaer = 1", "shaer"),
            ("[[class]]\npreset = \"chat\"\nsource.output = \"lots\"", "lots"),
            ("[[class", "TOML parse error"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
            assert!(error.contains("traffic.toml"), "{error}");
        }
    }
}

//! JSON Schemas of the files that we write, made from the types that write them.
//!
//! They are made from the source and not by a derive: two hundred types would carry an attribute, and
//! every build a crate, for ten files of documentation.

mod serde;
mod shape;
#[cfg(test)]
mod tests;
mod types;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use shape::Shapes;
use types::Types;

/// The crates whose types are in files.
const CRATES: [&str; 4] = ["model", "stats", "campaign", "record"];

/// A file of ours.
struct SchemaFile {
    /// The schema's own name, and its version.
    name: (&'static str, u32),
    /// The crate and the type.
    of: (&'static str, &'static str),
    title: &'static str,
    is_list: bool,
}

const fn kind(
    name: &'static str,
    of: (&'static str, &'static str),
    title: &'static str,
) -> SchemaFile {
    SchemaFile { name: (name, 1), of, title, is_list: false }
}

/// All of them.
const KINDS: [SchemaFile; 11] = [
    kind("summary", ("stats", "Summary"), "summary.json of a run"),
    kind("repeats", ("stats", "Repeats"), "summary.json of several runs of one plan"),
    kind("sweep", ("campaign", "SweepSummary"), "summary.json of a sweep"),
    kind("sweeps", ("campaign", "Sweeps"), "summary.json of sweeps over several configurations"),
    kind("comparison", ("campaign", "Comparison"), "summary.json of a comparison"),
    kind("floor", ("campaign", "Floor"), "The noise floor of a machine"),
    kind("capacity", ("campaign", "Capacity"), "What `goodput capacity --json` prints"),
    kind("calibration", ("campaign", "Calibration"), "What `goodput calibrate --json` prints"),
    kind("manifest", ("record", "Manifest"), "manifest.json of a run"),
    kind("column", ("stats", "NumberColumn"), "What `goodput stats --json` prints"),
    SchemaFile {
        name: ("audit", 1),
        of: ("stats", "Audit"),
        title: "What `goodput audit --json` prints",
        is_list: true,
    },
];

/// Writes all schemas.
#[expect(clippy::print_stderr, reason = "says what was written")]
pub(crate) fn write() -> Result<(), String> {
    let folder = folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, schema) in all()? {
        let path = folder.join(&name);
        fs::write(&path, text(&schema)).map_err(|error| format!("{}: {error}", path.display()))?;
        eprintln!("  docs/schema/{name}");
    }
    Ok(())
}

/// Fails where a schema does not say what the types do.
pub(crate) fn check() -> Result<(), String> {
    let folder = folder();
    for (name, schema) in all()? {
        let written = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        let written: Value = serde_json::from_str(&written).unwrap_or(Value::Null);
        if written != schema {
            return Err(format!("docs/schema/{name} is out of date; run `cargo xtask schemas`"));
        }
    }
    Ok(())
}

fn text(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap_or_default() + "\n"
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema")
}

/// Files and what is to be in them.
fn all() -> Result<Vec<(String, Value)>, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let types = Types::read(&crates, &CRATES)?;
    KINDS.iter().map(|kind| schema(&types, kind)).collect()
}

fn schema(types: &Types, kind: &SchemaFile) -> Result<(String, Value), String> {
    let (name, version) = kind.name;
    let failed = |error: String| format!("{name}: {error}");
    let (of, of_type) = kind.of;
    let found = types.in_crate(&format!("goodput_{of}"), of_type).map_err(failed)?;
    let mut schema = Shapes::new(types).file(found, kind.is_list).map_err(failed)?;
    schema["$id"] = format!("urn:goodput:{name}:{version}").into();
    schema["title"] = kind.title.into();
    Ok((format!("{name}.schema.json"), schema))
}

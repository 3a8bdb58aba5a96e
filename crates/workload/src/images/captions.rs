//! What a folder says about its images: as COCO does, in a list of lines, or in a text file next to
//! each.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::files::is_image_name;
use super::image_error;
use crate::WorkloadError;

/// COCO's own lists have some 90 MB; more than this is not a list of captions.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;

const HINT: &str = "captions are {\"images\": [{\"id\", \"file_name\"}], \"annotations\": \
    [{\"image_id\", \"caption\"}]} in captions.json or annotations/*.json, lines {\"file\", \
    \"caption\"} in captions.jsonl, lines FILE,CAPTION in captions.csv, or NAME.txt next to NAME.jpg";

/// Captions by the file's name, as the lists spell it.
#[derive(Debug, Default)]
pub(super) struct Captions(HashMap<String, Arc<str>>);

impl Captions {
    /// All lists of a folder. An image that is listed twice keeps its first caption.
    pub(super) fn read(folder: &Path) -> Result<Self, WorkloadError> {
        let mut captions = Self::default();
        for path in caption_files(folder) {
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                Some("json") => captions.read_coco(&path)?,
                Some("jsonl") => captions.read_lines(&path, parse_json_line)?,
                _ => captions.read_lines(&path, parse_csv_line)?,
            }
        }
        Ok(captions)
    }

    /// The caption of an image: by its path in the folder, by its name, or in a text file next to
    /// it.
    pub(super) fn find(
        &self,
        folder: &Path,
        image: &Path,
    ) -> Result<Option<Arc<str>>, WorkloadError> {
        let relative = image.strip_prefix(folder).unwrap_or(image).to_str();
        let name = image.file_name().and_then(|name| name.to_str());
        let listed = [relative, name].into_iter().flatten().find_map(|key| self.0.get(key));
        if listed.is_some() {
            return Ok(listed.cloned());
        }
        let caption_file = image.with_extension("txt");
        if !caption_file.is_file() {
            return Ok(None);
        }
        let text = read_text(&caption_file)?;
        Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(Arc::from))
    }

    fn add_caption(&mut self, file: String, caption: &str) {
        self.0.entry(file).or_insert_with(|| caption.trim().into());
    }

    fn read_coco(&mut self, path: &Path) -> Result<(), WorkloadError> {
        let list: Value = serde_json::from_str(&read_text(path)?)
            .map_err(|error| image_error(format!("{}: {error}", path.display()), HINT))?;
        let entries = |field: &str| {
            let missing = || image_error(format!("{}: no array `{field}`", path.display()), HINT);
            list.get(field).and_then(Value::as_array).ok_or_else(missing)
        };
        let mut names = HashMap::new();
        for image in entries("images")? {
            if let (Some(id), Some(name)) = (image.get("id"), image["file_name"].as_str()) {
                names.insert(id.to_string(), name);
            }
        }
        for annotation in entries("annotations")? {
            let id = annotation["image_id"].to_string();
            if let (Some(name), Some(caption)) = (names.get(&id), annotation["caption"].as_str()) {
                self.add_caption((*name).to_owned(), caption);
            }
        }
        Ok(())
    }

    fn read_lines(&mut self, path: &Path, parse: Parse) -> Result<(), WorkloadError> {
        for (index, line) in read_text(path)?.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match parse(line) {
                Some((file, caption)) => self.add_caption(file, &caption),
                // A first line may name the columns.
                None if index == 0 && path.extension().is_some_and(|ending| ending == "csv") => {}
                None => {
                    let place = format!("{}: line {}", path.display(), index + 1);
                    return Err(image_error(format!("{place}: no file with its caption"), HINT));
                }
            }
        }
        Ok(())
    }
}

type Parse = fn(&str) -> Option<(String, String)>;

fn parse_json_line(line: &str) -> Option<(String, String)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let field = |names: &[&str]| names.iter().find_map(|name| line[*name].as_str());
    let file = field(&["file", "file_name", "image"])?;
    Some((file.to_owned(), field(&["caption", "text"])?.to_owned()))
}

/// `FILE,CAPTION`, of which the caption may be quoted.
pub(super) fn parse_csv_line(line: &str) -> Option<(String, String)> {
    let (file, caption) = line.split_once(',')?;
    let file = file.trim().trim_matches('"');
    let caption = caption.trim();
    let inner = caption.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let caption = inner.map_or_else(|| caption.to_owned(), |inner| inner.replace("\"\"", "\""));
    is_image_name(Path::new(file)).then(|| (file.to_owned(), caption))
}

/// Files with captions, in the order in which they count.
fn caption_files(folder: &Path) -> Vec<PathBuf> {
    let own = ["captions.json", "captions.jsonl", "captions.csv"].map(|name| folder.join(name));
    let mut found: Vec<PathBuf> = own.into_iter().filter(|path| path.is_file()).collect();
    let annotations = fs::read_dir(folder.join("annotations")).into_iter().flatten().flatten();
    let mut annotations: Vec<PathBuf> = annotations
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    annotations.sort();
    // COCO keeps outlines of objects in the same folder, in far larger files.
    let is_captions = |path: &PathBuf| path.to_string_lossy().contains("caption");
    if annotations.iter().any(is_captions) {
        annotations.retain(is_captions);
    }
    found.extend(annotations);
    found
}

fn read_text(path: &Path) -> Result<String, WorkloadError> {
    let failed = |why: String| image_error(format!("{}: {why}", path.display()), HINT);
    let bytes = goodput_files::read(path, MAX_BYTES).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(valid).filter(|&&byte| byte == b'\n').count();
        failed(format!("line {line}: not UTF-8"))
    })
}

//! What lies in a folder of results, for a terminal: the same entries as the pages show, read
//! again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use goodput_document::render::text;
use goodput_document::{Block, Detail, Document, Section, Table};
use serde::Serialize;

use crate::entry::Entry;
use crate::read;
use crate::walk::find_results;

/// A result in a folder of results. All of its texts may be foreign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Where it is.
    pub path: PathBuf,
    /// `run`, `sweep`, …
    pub kind: &'static str,
    /// When it began (RFC 3339); empty if unknown.
    pub started: String,
    /// `running`, `complete`, `interrupted`, …; empty where unknown.
    pub state: String,
    /// `valid`, `suspect`, `void`; empty without a result yet.
    pub verdict: String,
    /// Who was asked, without secrets.
    pub target: String,
    /// For which model.
    pub model: String,
    /// How much was sent.
    pub load: String,
}

/// Every result in a folder of results, the newest first. Nothing is written there, and links are not
/// followed.
pub fn list_results(folder: &Path) -> Vec<Listed> {
    let places = find_results(folder, Duration::ZERO);
    let listed = |place| {
        let Entry { kind, started, state, verdict, target, model, load, path, .. } =
            read::read_entry(folder, &place);
        let path = folder.join(path);
        Listed { path, kind: kind.name(), started, state, verdict, target, model, load }
    };
    let mut all: Vec<Listed> = places.into_iter().map(listed).collect();
    all.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| a.path.cmp(&b.path)));
    all
}

/// The list as a terminal shows it.
pub fn list_text(folder: &Path, all: &[Listed]) -> String {
    let title = format!("{} results in {}, newest first", all.len(), folder.display());
    let table = Table::from_subjects(title.clone(), title, all)
        .left("load", 0, |one| one.load.as_str())
        .left("kind", 0, |one| one.kind)
        .left("verdict", 0, |one| one.verdict_or_state())
        // Last, so that it stands whole and can be copied.
        .left("folder", 0, |one| one.path.display().to_string())
        .table;
    let table = Table { above: table.title.clone(), is_natural: true, ..table };
    let sections = vec![Section::untitled().with(Block::Table(table))];
    let page = Document { sections, keeps_long_lines: true, ..Document::default() };
    text::render_page(&page, Detail::Full)
}

impl Listed {
    fn verdict_or_state(&self) -> &str {
        if self.verdict.is_empty() { &self.state } else { &self.verdict }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with the summary of a run that began at this minute.
    fn save(folder: &Path, minute: u32, verdict: &str) {
        fs::create_dir_all(folder).unwrap();
        for name in ["plan.toml", "requests.log"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let manifest = format!(r#"{{"started": "2026-11-15T10:{minute:02}:00Z"}}"#);
        fs::write(folder.join("manifest.json"), manifest).unwrap();
        fs::write(folder.join("summary.json"), format!(r#"{{"verdict": "{verdict}"}}"#)).unwrap();
    }

    #[test]
    fn the_newest_stands_first_wherever_it_lies() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        save(&at("z"), 1, "valid");
        save(&at("nightly/a"), 3, "void\\u001b[2J");
        save(&at("b"), 2, "suspect");
        fs::create_dir(at("empty")).unwrap();
        let all = list_results(root.path());
        let paths: Vec<&Path> = all.iter().map(|one| one.path.as_path()).collect();
        assert_eq!(paths, [at("nightly/a"), at("b"), at("z")]);
        let page = list_text(root.path(), &all);
        assert!(page.starts_with("3 results in ") && page.lines().count() == 5, "{page}");
        assert!(!page.contains('\u{1b}'), "{page:?}");
        assert_eq!(list_results(&at("empty")), []);
    }
}

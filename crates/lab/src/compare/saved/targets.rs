//! Who is compared: folders of saved runs, and targets that answer.

use std::path::PathBuf;

use crate::compare::names::{
    LONGEST, bad_name_error, put_reference_first, side_letter, split_name,
};
use crate::error::Failed;

/// One of those compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedServer {
    /// What it is called.
    pub name: String,
    /// Where its runs come from.
    pub place: RunSource,
}

/// Where its runs come from.
#[derive(Debug, Clone, PartialEq)]
pub enum RunSource {
    /// From these folders.
    Saved(Vec<PathBuf>),
    /// From a server that answers now.
    Live(String),
}

impl ComparedServer {
    /// Whether its runs are measured now.
    pub fn is_live(&self) -> bool {
        matches!(self.place, RunSource::Live(_))
    }
}

/// Whether any of them is not a server.
pub fn has_saved(targets: &[String]) -> bool {
    targets.iter().any(|text| !is_live_target(split_name(text).1) && bad_name_error(text).is_none())
}

/// A URL, or the engine inside the process.
fn is_live_target(text: &str) -> bool {
    text.contains("://") || text == "mock" || text.starts_with("mock:")
}

/// Everybody in order, the reference first. Folders of one name are runs of one side.
pub fn parse_targets(
    targets: &[String],
    reference: Option<&str>,
) -> Result<Vec<ComparedServer>, Failed> {
    let typed = targets;
    let mut targets: Vec<ComparedServer> = Vec::new();
    for text in typed {
        if let Some(failed) = bad_name_error(text) {
            return Err(failed);
        }
        let (name, text) = split_name(text);
        if is_live_target(text) {
            let name =
                name.map_or_else(|| short_name(url_authority(text), targets.len()), str::to_owned);
            let name = free_name(&name, &targets);
            targets.push(ComparedServer { name, place: RunSource::Live(text.to_owned()) });
            continue;
        }
        let path = PathBuf::from(text);
        if !path.is_dir() {
            let message = format!("`{text}` is neither a folder nor a URL");
            let hint = format!("for a server write http://{text}; for a saved run, its folder");
            return Err(Failed::usage(message).hint(hint));
        }
        let known = |target: &&mut ComparedServer| Some(target.name.as_str()) == name;
        if let Some(ComparedServer { place: RunSource::Saved(folders), .. }) =
            targets.iter_mut().find(known)
        {
            folders.push(path);
            continue;
        }
        let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let own = || short_name(&last.unwrap_or_else(|| text.to_owned()), targets.len());
        let name = free_name(&name.map_or_else(own, str::to_owned), &targets);
        targets.push(ComparedServer { name, place: RunSource::Saved(vec![path]) });
    }
    check_no_duplicates(&targets)?;
    reference_first(reference, targets)
}

/// The name, or a letter where it is long.
fn short_name(name: &str, place: usize) -> String {
    if name.chars().count() > LONGEST { side_letter(place) } else { name.to_owned() }
}

/// Host and port.
fn url_authority(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    if url.starts_with("mock") {
        return "mock";
    }
    let authority = after.split(['/', '?']).next().unwrap_or(after);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The name, with a number if it is already taken.
fn free_name(name: &str, targets: &[ComparedServer]) -> String {
    let is_free = |name: &String| targets.iter().all(|target| target.name != *name);
    let numbered = (2..=u32::MAX).map(|n| format!("{name}-{n}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// A run that stands on both sides says nothing about either.
fn check_no_duplicates(targets: &[ComparedServer]) -> Result<(), Failed> {
    let mut seen: Vec<PathBuf> = Vec::new();
    for target in targets {
        let RunSource::Saved(folders) = &target.place else { continue };
        for folder in folders {
            let path = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            if seen.contains(&path) {
                let message = format!("`{}` is named twice", folder.display());
                return Err(
                    Failed::usage(message).hint("comparing a run with itself shows nothing")
                );
            }
            seen.push(path);
        }
    }
    Ok(())
}

/// The one that the others are compared with goes first.
fn reference_first(
    reference: Option<&str>,
    mut targets: Vec<ComparedServer>,
) -> Result<Vec<ComparedServer>, Failed> {
    if targets.len() < 2 {
        return Err(Failed::usage("a comparison needs at least two targets")
            .hint("goodput compare runs/before runs/after"));
    }
    put_reference_first(&mut targets, reference, |target| &target.name)?;
    let is_saved = |target: &ComparedServer| !target.is_live();
    if targets.first().is_some_and(ComparedServer::is_live) && targets.iter().any(is_saved) {
        return Err(Failed::usage("the reference is a server, and the other side is a saved run")
            .hint("put the saved baseline first; goodput repeats its runs on the server"));
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_not_given() {
        assert_eq!(url_authority("http://user@host:8000/v1?x=y"), "host:8000");
        assert_eq!(short_name("baseline", 0), "baseline");
        assert_eq!(short_name("2026-11-15T10-22-07Z-chat-run", 1), "B");
        assert_eq!(url_authority("mock:step=1.05"), "mock");
        assert!(has_saved(&["new=runs/a".to_owned(), "http://x".to_owned()]));
        assert!(!has_saved(&["new=http://x".to_owned(), "mock".to_owned()]));
    }

    #[test]
    fn the_reference_goes_first_and_must_be_the_saved_one() {
        let saved = |name: &str| ComparedServer {
            name: name.to_owned(),
            place: RunSource::Saved(vec![PathBuf::from(name)]),
        };
        let live =
            ComparedServer { name: "x".to_owned(), place: RunSource::Live("mock".to_owned()) };
        let names = |targets: Vec<ComparedServer>| {
            targets.into_iter().map(|it| it.name).collect::<Vec<_>>()
        };
        let all = vec![saved("a"), saved("b"), saved("c")];
        assert_eq!(names(reference_first(Some("c"), all.clone()).unwrap()), ["c", "a", "b"]);
        assert!(reference_first(None, vec![saved("a"), live.clone()]).is_ok());
        assert!(reference_first(None, vec![live.clone(), saved("a")]).is_err());
        assert!(reference_first(Some("a"), vec![live, saved("a")]).is_ok());
        assert!(reference_first(None, vec![saved("a")]).is_err());
        assert!(check_no_duplicates(&[saved("a"), saved("a")]).is_err());
        assert_eq!(free_name("a", &all), "a-2");
    }
}

//! Commands that stand in a folder of results. A folder may come from a stranger, so nothing in it runs
//! unless the user says so: by typing the same command once more, or by `--allow-commands`.

use std::path::{Path, PathBuf};

use crate::error::Failed;
use crate::events::Observer;
use crate::shell;

/// A flag and what follows it: something that decides what is run.
pub type FolderCommand = (&'static str, String);

/// The commands of a folder that is gone on with.
#[derive(Debug)]
pub struct FolderCommands {
    folder: PathBuf,
    found: Vec<FolderCommand>,
    /// Those that were not typed again.
    unnamed: Vec<FolderCommand>,
    is_allowed: bool,
}

impl FolderCommands {
    /// The commands of this folder, and those that were typed: a folder goes on as it was asked, so none
    /// can be typed that is not in it.
    pub fn new(
        folder: &Path,
        found: Vec<FolderCommand>,
        typed: &[FolderCommand],
        is_allowed: bool,
    ) -> Result<Self, Failed> {
        let shown = folder.display();
        if let Some(other) = typed.iter().find(|flag| !found.contains(flag)) {
            let has = if found.is_empty() { "no commands".to_owned() } else { flags_text(&found) };
            return Err(Failed::usage(format!(
                "`{shown}` resumes with its own plan: it has {has}, not {}",
                flags_text(std::slice::from_ref(other))
            ))
            .hint("start a new one without --resume"));
        }
        let unnamed = found.iter().filter(|flag| !typed.contains(flag)).cloned().collect();
        Ok(Self { folder: folder.to_owned(), found, unnamed, is_allowed })
    }

    /// Refuses to run what only the folder names.
    pub fn check_permitted(&self, observer: &dyn Observer) -> Result<(), Failed> {
        let shown = self.folder.display();
        if self.unnamed.is_empty() {
            return Ok(());
        }
        if self.is_allowed {
            observer.notice(format!("commands from {shown}: {}", flags_text(&self.found)));
            return Ok(());
        }
        Err(Failed::usage(format!(
            "`{shown}` would run commands on this machine: {}; nothing was run",
            flags_text(&self.found)
        ))
        .hint(format!(
            "if you trust them, give them again ({}) or add --allow-commands",
            flags_text(&self.unnamed)
        )))
    }
}

/// As they are typed.
fn flags_text(flags: &[FolderCommand]) -> String {
    let typed = |(flag, text): &FolderCommand| format!("{flag} {}", shell::quote(text));
    flags.iter().map(typed).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Silent;

    fn commands(
        found: &[FolderCommand],
        typed: &[FolderCommand],
        is_allowed: bool,
    ) -> Result<(), String> {
        FolderCommands::new(Path::new("out"), found.to_vec(), typed, is_allowed)
            .and_then(|commands| commands.check_permitted(&Silent))
            .map_err(|failed| format!("{failed:?}"))
    }

    #[test]
    fn what_a_folder_names_is_run_only_when_it_is_named_again() {
        let serve = ("--serve", "vllm serve {x}".to_owned());
        let vary = ("--vary", "x=a,b".to_owned());
        let found = [serve.clone(), vary.clone()];
        let refused = commands(&found, &[], false).unwrap_err();
        let typed = "--serve 'vllm serve {x}' --vary 'x=a,b'";
        assert_eq!(refused.matches(typed).count(), 2, "what it is, and how to allow it: {refused}");
        assert!(refused.contains("--allow-commands"), "{refused}");
        // All of them: a value may be a command as well.
        let half = commands(&found, std::slice::from_ref(&serve), false).unwrap_err();
        assert!(half.contains("give them again (--vary 'x="), "{half}");
        commands(&found, &[vary.clone(), serve.clone()], false).unwrap();
        commands(&found, &[], true).unwrap();
        commands(&[], &[], false).unwrap();
        // The same text, not one like it.
        let other = ("--serve", "vllm serve  {x}".to_owned());
        for allowed in [false, true] {
            let said = commands(&found, std::slice::from_ref(&other), allowed).unwrap_err();
            assert!(said.contains("resumes with its own plan"), "{said}");
            assert!(commands(&[], std::slice::from_ref(&other), allowed).is_err());
        }
    }
}

//! The entry of a caveat, as docs/troubleshooting.md has it.

use goodput_model::{CaveatCode, Explanation};

/// Columns of a line.
const WIDTH: usize = 100;

pub(super) fn caveat_text(code: CaveatCode) -> String {
    let Explanation { title, meaning, remedy } = code.explanation();
    format!(
        "{}: {title}\n\n{}\n\n{}\n\ndocs/troubleshooting.md lists all caveats.\n",
        code.name(),
        wrap_text(meaning),
        wrap_text(&format!("What to do: {remedy}"))
    )
}

fn wrap_text(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

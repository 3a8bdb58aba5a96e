//! What a recording says in the end.

use super::{Lost, RecordCounts, Recorded};
use crate::proxy::ConnectionLimit;

/// Files that are named in the summary, at most.
const MOST_NAMED: usize = 5;

impl Recorded {
    /// What was recorded of the server at `shown`, line by line; foreign text is in it.
    pub fn summary_lines(&self, counts: &RecordCounts, shown: &str) -> Vec<String> {
        let Self { written, took, .. } = self;
        let (asked, rows) = (counts.asked.get(), counts.rows.get());
        let mut lines =
            vec![format!("recorded {rows} of {asked} requests in {:.1} s", took.as_secs())];
        for (why, _, meaning) in Lost::ALL {
            match counts.lost_by(why) {
                0 => {}
                lost => lines.push(format!("  lost: {lost} ({meaning})")),
            }
        }
        let left_out = counts.left_out.get();
        if left_out > 0 {
            lines.push(format!("  left out: {left_out} (by --share, or beyond the limit)"));
        }
        let other = counts.other.get();
        if other > 0 {
            lines.push(format!("  not recorded: {other} to paths outside the API"));
        }
        if !written.models.is_empty() {
            let models: Vec<String> = written
                .models
                .iter()
                .map(|(model, requests)| format!("{model} ({requests})"))
                .collect();
            lines.push(format!("  models: {}", models.join(", ")));
        }
        if written.sessions > 0 {
            lines.push(format!("  sessions: {}", written.sessions));
        }
        let (files, bytes) = (&written.files, counts.bytes.get());
        for file in files.iter().take(MOST_NAMED) {
            lines.push(format!("  file: {}", file.display()));
        }
        if files.len() > MOST_NAMED {
            let last = files.last().map(|file| file.display().to_string()).unwrap_or_default();
            lines.push(format!("  and {} more, up to {last}", files.len() - MOST_NAMED));
        }
        lines.push(format!("  size: {bytes} bytes"));
        if let Some(file) = files.first().filter(|_| rows > 0) {
            let file = file.display();
            lines.push(format!("inspect it: goodput workload show --trace {file}"));
            lines.push(format!("replay it:  goodput run {shown} --trace {file}"));
        }
        lines
    }

    /// The same for programs.
    pub fn to_json(&self, counts: &RecordCounts, connections: &ConnectionLimit) -> String {
        let Self { written, took, .. } = self;
        let lost: serde_json::Map<_, _> = Lost::ALL
            .into_iter()
            .map(|(why, name, _)| (name.to_owned(), counts.lost_by(why).into()))
            .collect();
        let files: Vec<_> = written.files.iter().map(|file| file.display().to_string()).collect();
        let summary = serde_json::json!({
            "duration_s": took.as_secs(),
            "requests": counts.asked.get(),
            "rows": counts.rows.get(),
            "lost": lost,
            "left_out": counts.left_out.get(),
            "other_paths": counts.other.get(),
            "models": written.models,
            "sessions": written.sessions,
            "connections": connections.to_json(),
            "files": files,
            "bytes": counts.bytes.get(),
        });
        format!("{summary:#}\n")
    }
}

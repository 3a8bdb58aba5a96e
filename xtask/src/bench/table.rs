//! Tables of the report, and whether a row keeps its budgets.

/// One section of the report.
pub(super) struct ReportTable {
    title: &'static str,
    note: String,
    rows: Vec<Vec<String>>,
}

impl ReportTable {
    /// A table with the names of its columns; budget and verdict follow them.
    pub(super) fn new(title: &'static str, note: impl Into<String>, columns: &[&str]) -> Self {
        let names = columns.iter().chain(&["budget", "verdict"]);
        Self {
            title,
            note: note.into(),
            rows: vec![names.map(|name| (*name).to_owned()).collect()],
        }
    }

    pub(super) fn push(&mut self, mut cells: Vec<String>, budgets: &Budgets) {
        cells.extend([budgets.text(), budgets.verdict()]);
        self.rows.push(cells);
    }

    /// A line in place of a row.
    pub(super) fn say(&mut self, line: String) {
        self.note = if self.note.is_empty() { line } else { format!("{}\n{line}", self.note) };
    }

    /// As Markdown that is also readable in a terminal.
    pub(super) fn render(&self) -> String {
        let columns = self.rows[0].len();
        let length = |cell: &String| cell.chars().count();
        let widest = |column: usize| self.rows.iter().map(|row| length(&row[column])).max();
        let widths: Vec<usize> = (0..columns).filter_map(widest).collect();
        let line = |row: &[String]| {
            let cell = |(text, width): (&String, &usize)| format!(" {text:width$} |");
            let cells: String = row.iter().zip(&widths).map(cell).collect();
            format!("|{cells}\n")
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut text = format!("## {}\n\n", self.title);
        if !self.note.is_empty() {
            text += &self.note;
            text += "\n\n";
        }
        text.push_str(&line(&self.rows[0]));
        text.push_str(&line(&rule));
        text.extend(self.rows[1..].iter().map(|row| line(row)));
        text
    }
}

/// The budgets of one row, each with whether it is kept.
#[derive(Default)]
pub(super) struct Budgets {
    each: Vec<(String, bool)>,
    /// How long the server itself stood still, when that was too long to judge a client by it.
    stall_ms: Option<f64>,
}

impl Budgets {
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Adds a budget; what was not measured is not kept.
    #[must_use]
    pub(super) fn at_most(mut self, what: &str, value: f64, limit: f64, unit: &str) -> Self {
        self.each.push((format!("{what} ≤ {limit}{unit}"), value <= limit));
        self
    }

    #[must_use]
    pub(super) fn at_least(mut self, what: &str, value: f64, limit: f64, unit: &str) -> Self {
        self.each.push((format!("{what} ≥ {limit}{unit}"), value >= limit));
        self
    }

    /// Judges nothing if the yardstick itself failed: some token was written this late.
    #[must_use]
    pub(super) fn unless_stalled(mut self, lateness_ms: f64) -> Self {
        /// A thousand tokens due at once take tens of milliseconds; more than this is not load.
        const STALL_MS: f64 = 200.0;
        self.stall_ms = (lateness_ms > STALL_MS).then_some(lateness_ms);
        self
    }

    fn text(&self) -> String {
        let texts: Vec<&str> = self.each.iter().map(|(text, _)| text.as_str()).collect();
        if texts.is_empty() { "–".to_owned() } else { texts.join("; ") }
    }

    fn verdict(&self) -> String {
        if let Some(stall) = self.stall_ms {
            return format!("not checked: the server stalled for {stall:.0} ms");
        }
        let missed: Vec<&str> = self
            .each
            .iter()
            .filter(|(_, is_kept)| !is_kept)
            .map(|(text, _)| text.as_str())
            .collect();
        match (self.each.is_empty(), missed.is_empty()) {
            (true, _) => "–".to_owned(),
            (_, true) => "met".to_owned(),
            _ if self.each.len() == 1 => "missed".to_owned(),
            _ => format!("missed: {}", missed.join("; ")),
        }
    }
}

/// A number with this many decimals, or a dash for none.
pub(super) fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "–".to_owned() }
}

/// What the client said and what was.
pub(super) fn pair(said: f64, truth: f64) -> String {
    format!("{} / {}", number(said, 2), number(truth, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_which_budget_it_missed() {
        let budgets = Budgets::none().at_most("a", 1.0, 2.0, " ms").at_least("b", 1.0, 2.0, " %");
        assert_eq!(budgets.text(), "a ≤ 2 ms; b ≥ 2 %");
        assert_eq!(budgets.verdict(), "missed: b ≥ 2 %");
        assert_eq!(Budgets::none().at_most("a", 1.0, 2.0, "").verdict(), "met");
        assert_eq!(Budgets::none().at_most("a", f64::NAN, 2.0, "").verdict(), "missed");
        assert_eq!(Budgets::none().verdict(), "–");
        let late = |ms| Budgets::none().at_most("a", 1.0, 2.0, "").unless_stalled(ms).verdict();
        assert_eq!(late(70.0), "met");
        assert_eq!(late(2645.4), "not checked: the server stalled for 2645 ms");
    }

    #[test]
    fn a_table_is_aligned() {
        let mut table = ReportTable::new("T", "", &["n"]);
        table.push(vec![number(f64::NAN, 1)], &Budgets::none());
        assert_eq!(
            table.render(),
            "## T\n\n| n | budget | verdict |\n| - | ------ | ------- |\n| – | –      | –       |\n"
        );
    }
}

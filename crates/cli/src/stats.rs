//! `goodput stats`: the statistics of a column of numbers.

use std::process::ExitCode;

use goodput_lab::dataset_failed;
use goodput_stats::NumberColumn;

use crate::args::StatsArgs;
use crate::error::{Failed, exit};
use crate::{output, plan, report};

/// Runs the verb.
pub(crate) fn stats(args: &StatsArgs) -> Result<ExitCode, Failed> {
    let wanted: Vec<&str> = args.column.as_deref().into_iter().collect();
    let columns = goodput_dataset::load_numbers(&args.file, &wanted)
        .map_err(|error| dataset_failed(&error).or_hint("goodput stats --help has examples"))?;
    let values = columns.into_iter().next().unwrap_or_default();
    let percentiles = plan::percentiles_or_default(args.percentiles.as_deref());
    let column = NumberColumn::from_values(&values, &percentiles, args.early_stopping);
    if args.json {
        output::print_data(report::to_json(&column).as_bytes())?;
    } else {
        output::print_page(&goodput_report::column_text(&column))?;
    }
    Ok(ExitCode::from(exit::OK))
}

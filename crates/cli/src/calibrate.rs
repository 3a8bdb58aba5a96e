//! `goodput calibrate`: the client against a server of known timing, at rising load.

use std::path::PathBuf;
use std::process::ExitCode;

use goodput_campaign::{Calibration, CalibrationLevel};
use goodput_lab::calibrate::{self, ClimbTimes, state_file};
use goodput_report::escape_control;

use crate::args::CalibrateArgs;
use crate::error::{Failed, exit};
use crate::printer::Printer;
use crate::{output, plan, report};

/// Runs the verb.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<ExitCode, Failed> {
    let fd_limit = goodput_engine::raise_fd_limit();
    check_destination(args)?;
    let workers = args.workers.unwrap_or_else(plan::default_workers);
    let step = |level: &CalibrationLevel| {
        print_unless_quiet(args, &goodput_report::calibration_level_line(level));
    };
    let printer = Printer::new(args.quiet);
    let times = ClimbTimes { level: args.level_duration, most: args.max_time };
    let calibration = calibrate::calibrate(workers, times, fd_limit, step, &printer)?;
    let is_usable = calibration.levels.iter().any(CalibrationLevel::is_carried);
    let path = is_usable.then(|| save_calibration(args, &calibration)).transpose()?;
    if args.json {
        output::print_data(report::to_json(&calibration).as_bytes())?;
    } else if !args.quiet {
        output::print_page(&goodput_report::calibration_text(&calibration))?;
    }
    let Some(path) = path else {
        output::print_note("\nnot saved: no level was within the limits; the table shows why");
        return Ok(ExitCode::from(exit::VOID));
    };
    let path = escape_control(&path.display().to_string());
    if args.quiet && !args.json {
        output::print_data(format!("{path}\n").as_bytes())?;
    }
    print_unless_quiet(args, &format!("\nsaved: {path}"));
    Ok(ExitCode::from(exit::OK))
}

/// Prints a line, unless `--quiet` is set.
fn print_unless_quiet(args: &CalibrateArgs, line: &str) {
    if !args.quiet {
        output::print_note(line);
    }
}

fn save_calibration(args: &CalibrateArgs, calibration: &Calibration) -> Result<PathBuf, Failed> {
    let path = match (&args.out, state_file(calibration.workers)) {
        (Some(out), _) => out.clone(),
        (None, Some(path)) => path,
        (None, None) => {
            return Err(Failed::usage("neither XDG_STATE_HOME nor HOME is set")
                .hint("name a file with --output FILE"));
        }
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&path, report::to_json(calibration)))
        .map_err(|error| Failed::usage(format!("cannot write `{}`: {error}", path.display())))?;
    Ok(path)
}

/// Checks the path first, so that two minutes of work are not lost to a typo.
fn check_destination(args: &CalibrateArgs) -> Result<(), Failed> {
    let Some(path) = &args.out else { return Ok(()) };
    let opened = std::fs::File::options().append(true).create(true).open(path);
    opened
        .map(drop)
        .map_err(|error| Failed::usage(format!("cannot write `{}`: {error}", path.display())))
}

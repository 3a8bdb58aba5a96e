//! A recording: what passes, and what is recorded of it.

use std::sync::atomic::Ordering;

use goodput_clock::now;
use goodput_live::recording::{Lost, RecordFigures};
use goodput_model::{MetricsFormat, metrics_label};

use super::proxy;
use crate::metrics::new_sheet;

/// Its page of metrics as it is now.
pub fn recording_page(figures: &RecordFigures, format: MetricsFormat) -> String {
    let mut sheet = new_sheet(format, 4096);
    proxy::write_proxy_metrics(&mut sheet, &figures.proxy);
    let counts = &figures.counts;
    let counters = [
        ("goodput_record_requests_total", "Complete requests to an API", &counts.asked),
        ("goodput_record_rows_total", "Rows on disk", &counts.rows),
        ("goodput_record_bytes_total", "Bytes on disk", &counts.bytes),
        ("goodput_record_files_total", "Files started", &counts.files),
        (
            "goodput_record_left_out_total",
            "Requests that --share leaves out, or that arrived after the limit",
            &counts.left_out,
        ),
    ];
    for (name, help, counter) in counters {
        sheet.single(name, help, counter.get());
    }
    let lost = "goodput_record_lost_total";
    sheet.family(lost, "counter", "Requests without a row that should have one, by reason");
    for (why, name, _) in Lost::ALL {
        sheet.line(lost, &metrics_label("reason", name), counts.lost_by(why));
    }
    let flags = [
        ("goodput_record_disk_refuses", "Whether the disk rejects rows", &counts.is_refused),
        ("goodput_record_over", "Whether a limit has ended the recording", &counts.is_over),
    ];
    for (name, help, flag) in flags {
        sheet.single(name, help, u8::from(flag.load(Ordering::Relaxed)));
    }
    sheet.finish()
}

/// Its progress line as it is now.
pub fn recording_line(figures: &RecordFigures) -> String {
    let RecordFigures { begin, proxy, counts } = figures;
    let is_refused = counts.is_refused.load(Ordering::Relaxed);
    format!(
        "{:.0} s · {} requests · {} in flight · {} rows · {} lost{}",
        (now() - *begin).as_secs(),
        proxy.requests.get(),
        proxy.in_flight.get(),
        counts.rows.get(),
        counts.lost_count(),
        if is_refused { " · the disk rejects writes" } else { "" }
    )
}

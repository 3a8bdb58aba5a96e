//! The thread that reads pages: of metrics, and of GPU exporters.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use goodput_clock::{lower_priority, now, run_until};
use goodput_model::{GpuFacts, MetricsSource, Nanos, Scrape, ServerReading};
use goodput_observe::{EndpointFollower, GpuExporter, MetricsMap};
use goodput_wire::{FetchedPage, PageError, PagePlace, PageReader};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use super::Looks;

/// After a failure, at most three questions a second.
const AFTER_FAILURE: Nanos = Nanos::from_millis(334);

/// This many failures in a row, and the endpoint is asked seldom.
const FAILURES: u32 = 10;

/// How seldom.
const SELDOM: Nanos = Nanos::from_millis(10_000);

/// What is to be read.
pub(super) struct PageSettings {
    pub(super) pages: Vec<ServerPage>,
    pub(super) interval: Nanos,
    /// For one answer.
    pub(super) limit: Duration,
}

/// One page.
pub(super) struct ServerPage {
    place: PagePlace,
    /// The target's own: it may well have none.
    is_own: bool,
    /// Whether it tells of GPUs.
    is_of_gpus: bool,
    map: Option<Arc<MetricsMap>>,
}

impl ServerPage {
    pub(super) fn metrics_page(place: PagePlace, map: Option<Arc<MetricsMap>>) -> Self {
        Self { place, is_own: false, is_of_gpus: false, map }
    }

    pub(super) fn own_page(place: PagePlace, map: Option<Arc<MetricsMap>>) -> Self {
        Self { is_own: true, ..Self::metrics_page(place, map) }
    }

    pub(super) fn gpu_page(place: PagePlace) -> Self {
        Self { place, is_own: false, is_of_gpus: true, map: None }
    }
}

/// What is known of the pages.
#[derive(Debug, Default)]
pub(super) struct PageFacts {
    pub(super) metrics: Vec<MetricsSource>,
    /// URLs without secrets.
    pub(super) exporters: Vec<String>,
    pub(super) gpus: Vec<GpuFacts>,
    /// What is missing of them.
    pub(super) gpu_trouble: Option<String>,
    /// For the user.
    pub(super) lines: Vec<String>,
}

/// The thread.
pub(super) struct Pages {
    stop: watch::Sender<bool>,
    thread: JoinHandle<PageFacts>,
}

impl Pages {
    /// Looks at all pages once, and goes on.
    pub(super) fn start(asked: PageSettings, looks: Looks) -> io::Result<(Self, PageFacts)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let (tell, told) = channel();
        let thread = std::thread::Builder::new().name("observer".to_owned()).spawn(move || {
            lower_priority();
            LocalSet::new().block_on(&runtime, watch_pages(asked, looks, stopped, tell))
        })?;
        let told = told.recv().map_err(|_| io::Error::other("its thread has ended"))?;
        Ok((Self { stop, thread }, told))
    }

    /// Looks once more, for as long as one answer may take, and ends; in a hurry it ends at once.
    pub(super) fn finish(self, is_hurried: bool) -> PageFacts {
        let Self { stop, thread } = self;
        if !is_hurried {
            // A thread that is gone shows when it is joined.
            let _ = stop.send(true);
        }
        drop(stop);
        thread.join().unwrap_or_default()
    }
}

async fn watch_pages(
    asked: PageSettings,
    looks: Looks,
    stop: watch::Receiver<bool>,
    tell: Sender<PageFacts>,
) -> PageFacts {
    let begin = now();
    let exporter = Rc::new(RefCell::new(GpuExporter::default()));
    let mut endpoints = Vec::new();
    let (mut metrics, mut exporters) = (0, 0);
    for page in asked.pages {
        let count = if page.is_of_gpus { &mut exporters } else { &mut metrics };
        let number = *count;
        *count += 1;
        let kind = if page.is_of_gpus {
            PageOwner::Gpus(Rc::clone(&exporter))
        } else {
            PageOwner::Metrics(EndpointFollower::new(page.map))
        };
        endpoints.push(PolledPage {
            reader: page.place.to_reader(),
            is_own: page.is_own,
            number,
            kind,
            limit: asked.limit,
            interval: asked.interval,
            looks: looks.clone(),
            tally: PageTally::default(),
        });
    }
    let mut endpoints = poll_all(endpoints, async |mut endpoint: PolledPage| {
        endpoint.poll().await;
        endpoint
    })
    .await;
    let lines = endpoints.iter().filter_map(PolledPage::first_warning).collect();
    endpoints.retain(|endpoint| !endpoint.is_absent());
    let _ = tell.send(PageFacts { lines, ..describe_pages(&endpoints, &exporter.borrow()) });
    let endpoints = poll_all(endpoints, async move |endpoint: PolledPage| {
        endpoint.follow(stop.clone(), begin).await
    })
    .await;
    describe_pages(&endpoints, &exporter.borrow())
}

/// Does the same with all at once; they come back in order.
async fn poll_all(
    endpoints: Vec<PolledPage>,
    what: impl AsyncFn(PolledPage) -> PolledPage + 'static,
) -> Vec<PolledPage> {
    let what = Rc::new(what);
    let mut tasks = JoinSet::new();
    for (place, endpoint) in endpoints.into_iter().enumerate() {
        let what = Rc::clone(&what);
        tasks.spawn_local(async move { (place, what(endpoint).await) });
    }
    let mut done = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        done.extend(ended);
    }
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, endpoint)| endpoint).collect()
}

fn describe_pages(endpoints: &[PolledPage], exporter: &GpuExporter) -> PageFacts {
    let mut told = PageFacts { gpus: exporter.facts().to_vec(), ..PageFacts::default() };
    let mut troubles = Vec::new();
    for endpoint in endpoints {
        let url = endpoint.reader.display_url();
        match &endpoint.kind {
            PageOwner::Metrics(follower) => {
                let engine = follower.engine().to_owned();
                told.metrics.push(MetricsSource { url, engine });
            }
            PageOwner::Gpus(_) => {
                troubles.extend(endpoint.tally.trouble_text(&url));
                told.exporters.push(url);
            }
        }
    }
    if troubles.is_empty() && !told.exporters.is_empty() && told.gpus.is_empty() {
        troubles.push("the exporter's page has no known GPU metrics".to_owned());
    }
    told.gpu_trouble = (!troubles.is_empty()).then(|| troubles.join("; "));
    told
}

/// Whose page it is.
enum PageOwner {
    Metrics(EndpointFollower),
    Gpus(Rc<RefCell<GpuExporter>>),
}

/// One page, look after look.
struct PolledPage {
    reader: PageReader,
    is_own: bool,
    /// Among those of its kind.
    number: u32,
    kind: PageOwner,
    limit: Duration,
    interval: Nanos,
    looks: Looks,
    tally: PageTally,
}

/// How it went so far.
#[derive(Debug, Default)]
struct PageTally {
    looks: u64,
    failures: u64,
    /// Since the last answer.
    in_a_row: u32,
    last: Option<(String, bool)>,
}

impl PageTally {
    /// Counts a look; its trouble, with what follows from it.
    fn count_look(&mut self, trouble: Option<(String, bool)>) -> Option<String> {
        self.looks += 1;
        let Some((mut message, is_absence)) = trouble else {
            self.in_a_row = 0;
            return None;
        };
        self.failures += 1;
        self.in_a_row += 1;
        self.last = Some((message.clone(), is_absence));
        if self.in_a_row == FAILURES {
            let seconds = SELDOM.as_secs();
            message = format!("{message}; now scraped only every {seconds} s");
        }
        Some(message)
    }

    /// How long until the next look.
    fn next_spacing(&self, interval: Nanos) -> Nanos {
        match self.in_a_row {
            0 => interval,
            few if few < FAILURES => interval.max(AFTER_FAILURE),
            _ => interval.max(SELDOM),
        }
    }

    fn trouble_text(&self, url: &str) -> Option<String> {
        let (message, _) = self.last.as_ref()?;
        let Self { looks, failures, .. } = self;
        Some(format!("{failures} of {looks} scrapes of {url} failed: {message}"))
    }
}

impl PolledPage {
    /// Asks, reads and passes on.
    async fn poll(&mut self) {
        let asked = now();
        let outcome = self.reader.read(self.limit).await;
        let answered = outcome.as_ref().map_or_else(|_| now(), |page| page.answered);
        let took = answered - outcome.as_ref().map_or(asked, |page| page.asked);
        let at = answered - Nanos(took.0 / 2);
        match &mut self.kind {
            PageOwner::Metrics(follower) => {
                let outcome = outcome
                    .map_err(|error| (error.to_string(), error.is_absence()))
                    .and_then(|page| parse_page(follower, &page).map_err(|why| (why, false)));
                let trouble = self.tally.count_look(outcome.as_ref().err().cloned());
                let outcome = outcome.map_err(|(message, _)| trouble.unwrap_or(message));
                let scrape = Scrape { at, took, endpoint: self.number, outcome };
                // What is not there has no number either.
                if !self.is_absent() {
                    self.looks.push(scrape);
                }
            }
            PageOwner::Gpus(exporter) => {
                let trouble = outcome.as_ref().err().map(PageError::to_string);
                self.tally.count_look(trouble.map(|message| (message, false)));
                if let Ok(page) = outcome {
                    let samples = exporter.borrow_mut().read(self.number, &page.text, at);
                    self.looks.push_gpus(samples);
                }
            }
        }
    }

    /// The target said at the first look that it has no such page.
    fn is_absent(&self) -> bool {
        let is_first = self.tally.looks == 1;
        is_first && self.is_own && self.tally.last.as_ref().is_some_and(|(_, absent)| *absent)
    }

    /// What the user should know after the first look.
    fn first_warning(&self) -> Option<String> {
        let (message, _) = self.tally.last.as_ref()?;
        let url = self.reader.display_url();
        Some(if self.is_absent() {
            format!("{url}: {message}: no server metrics in this run")
        } else {
            format!("warning: {url}: {message}; trying again during the run")
        })
    }

    /// Looks until it is told to stop, and then once more.
    async fn follow(mut self, mut stop: watch::Receiver<bool>, begin: Nanos) -> Self {
        let mut due = begin;
        loop {
            due = next_instant(due, self.tally.next_spacing(self.interval), now());
            tokio::select! {
                _ = stop.changed() => break,
                () = tokio::time::sleep((due - now()).into()) => {}
            }
            // An answer from before the end is not waited for.
            if run_until(stop.changed(), self.poll()).await.is_err() {
                break;
            }
        }
        let is_asked_for = *stop.borrow();
        if is_asked_for {
            self.poll().await;
        }
        self
    }
}

/// What a page says; the reason, where it is not a page of metrics.
fn parse_page(
    follower: &mut EndpointFollower,
    page: &FetchedPage,
) -> Result<ServerReading, String> {
    let reading = follower.read(&page.text);
    if reading.values.is_empty() && reading.malformed > 0 {
        let lines = reading.malformed;
        return Err(format!(
            "no metrics: {lines} lines cannot be parsed, and the rest have no values"
        ));
    }
    Ok(reading)
}

/// The next instant in steps of `every` from `due`; those that have passed are left out.
fn next_instant(due: Nanos, every: Nanos, present: Nanos) -> Nanos {
    let passed = (present - due).0.checked_div(every.0).unwrap_or(0);
    due + Nanos(every.0.saturating_mul(passed.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_were_missed_are_left_out() {
        let cases =
            [(100, 10, 95, 110), (100, 10, 100, 110), (100, 10, 109, 110), (100, 10, 137, 140)];
        for (due, every, present, expected) in cases {
            assert_eq!(next_instant(Nanos(due), Nanos(every), Nanos(present)), Nanos(expected));
        }
    }

    #[test]
    fn who_fails_again_and_again_is_asked_seldom() {
        let mut tally = PageTally::default();
        let (quick, slow) = (Nanos::from_millis(100), Nanos::from_millis(20_000));
        let trouble = || Some(("late".to_owned(), false));
        assert_eq!(tally.next_spacing(quick), quick);
        for _ in 1..FAILURES {
            assert_eq!(tally.count_look(trouble()).as_deref(), Some("late"));
            assert_eq!(tally.next_spacing(quick), AFTER_FAILURE);
        }
        let tenth = tally.count_look(trouble()).unwrap();
        assert_eq!(tenth, "late; now scraped only every 10 s");
        assert_eq!((tally.next_spacing(quick), tally.next_spacing(slow)), (SELDOM, slow));
        assert_eq!(tally.count_look(trouble()).as_deref(), Some("late"));
        assert_eq!(tally.count_look(None), None);
        assert_eq!(tally.next_spacing(quick), quick);
        let said = tally.trouble_text("http://x").unwrap();
        assert_eq!(said, "11 of 12 scrapes of http://x failed: late");
    }
}

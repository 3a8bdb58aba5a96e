//! [`Service`]: the server without its sockets and its endpoints.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use goodput_clock::{Timer, now, now_and_unix};
use goodput_model::{Nanos, RequestRecord};

use crate::api::{EventHead, RequestRules};
use crate::driver::EngineDriver;
use crate::faults::{Connections, FaultWindow, Faults, Label, Pause};
use crate::metrics::{Gauges, MockMetrics};
use crate::reading::Bodies;
use crate::settings::MockSettings;
use crate::tally::MockTally;
use crate::trouble::PageTrouble;

/// The server without its sockets.
pub(crate) struct Service {
    pub(crate) settings: MockSettings,
    pub(crate) driver: Rc<EngineDriver>,
    pub(crate) metrics: Rc<RefCell<MockMetrics>>,
    /// The engine's totals when those of the page began again.
    totals_before: OnceCell<Gauges>,
    pub(crate) faults: Faults,
    pub(crate) connections: Connections,
    pub(crate) bodies: Bodies,
    pub(crate) started: Nanos,
    /// Seconds since 1970 at the start.
    created: u64,
    /// Requests for an answer so far.
    pub(crate) requests: Cell<u64>,
    pub(crate) tally: Arc<MockTally>,
    pub(crate) truth: Option<SyncSender<RequestRecord>>,
}

impl Service {
    pub(crate) fn new(
        settings: MockSettings,
        tally: Arc<MockTally>,
        truth: Option<SyncSender<RequestRecord>>,
    ) -> io::Result<Rc<Self>> {
        let faults = Faults::new(settings.faults.clone(), settings.seed);
        let block_tokens = settings.profile.block_tokens();
        let metrics = MockMetrics::new(u64::from(block_tokens), faults.labels());
        let metrics = Rc::new(RefCell::new(metrics));
        let driver = EngineDriver::new(&settings.profile, settings.seed, Rc::clone(&metrics))?;
        let (started, Nanos(unix)) = now_and_unix();
        Ok(Rc::new(Self {
            driver,
            metrics,
            totals_before: OnceCell::new(),
            connections: faults.connection_faults(),
            faults,
            bodies: Bodies::default(),
            started,
            created: unix / 1_000_000_000,
            requests: Cell::new(0),
            settings,
            tally,
            truth,
        }))
    }

    pub(crate) fn timer(&self) -> &Timer {
        &self.driver.timer
    }

    /// Drives the engine, and stops the server now and then if it is to be stopped.
    pub(crate) async fn run(self: &Rc<Self>) {
        for pause in self.connections.pause.clone() {
            let service = Rc::clone(self);
            tokio::task::spawn_local(async move { service.pause(pause).await });
        }
        self.driver.run().await;
    }

    async fn pause(&self, pause: Pause) {
        let mut next = self.started + pause.window.from + pause.every;
        while pause.window.contains(next - self.started) {
            self.timer().sleep_until(next).await;
            self.count_fault(Label::Named("pause"));
            self.driver.pause(pause.length);
            next = (next + pause.every).max(now());
        }
    }

    /// A fault happened.
    pub(crate) fn count_fault(&self, label: Label) {
        self.metrics.borrow_mut().count_fault(label);
        self.tally.count_fault(&label.to_string());
    }

    /// When new connections are to be refused, in order.
    pub(crate) fn refusal_windows(&self) -> Vec<FaultWindow> {
        let mut windows = self.connections.refuse.clone();
        windows.sort_by_key(|window| window.from);
        for window in &mut windows {
            window.from += self.started;
        }
        windows
    }

    /// Until `length` after `from`, or forever.
    pub(crate) async fn sleep_from(&self, from: Nanos, length: Option<Nanos>) {
        match length {
            Some(length) => self.timer().sleep_until(from + length).await,
            None => std::future::pending().await,
        }
    }

    /// How long a connection accepted now waits.
    pub(crate) fn slow_accept(&self) -> Option<Nanos> {
        let delay = self.connections.accept_delay(now() - self.started)?;
        self.count_fault(Label::Named("slow-accept"));
        Some(delay)
    }

    pub(crate) fn note_connected(&self, is_connected: bool) {
        let mut metrics = self.metrics.borrow_mut();
        if is_connected { metrics.count_connect() } else { metrics.count_disconnect() }
    }

    /// A token event left; so long after its instant, where that is ours to answer for.
    pub(crate) fn note_event_left(&self, lateness: Option<Nanos>) {
        self.tally.note_event_left(lateness);
        self.metrics.borrow_mut().count_event(lateness);
    }

    pub(crate) fn event_head(&self, number: u64) -> EventHead<'_> {
        let created = self.created + (now() - self.started).0 / 1_000_000_000;
        EventHead { id: number, created, model: &self.settings.profile.model }
    }

    pub(crate) fn request_rules(&self) -> RequestRules<'_> {
        let profile = &self.settings.profile;
        RequestRules {
            model: &profile.model,
            loras: &self.settings.loras,
            max_model_len: profile.longest_request(),
            default_tokens: profile.default_tokens,
            image_tokens: profile.image_tokens,
        }
    }

    pub(crate) fn metrics_page(&self) -> String {
        let mut metrics = self.metrics.borrow_mut();
        let (since_start, mut gauges) = (now() - self.started, self.driver.gauges());
        if let PageTrouble::Reset(after) = self.settings.page
            && since_start >= after
        {
            // Once: the totals of the engine as they were count as nothing from then on.
            let before = self.totals_before.get_or_init(|| {
                metrics.reset_counts(self.faults.labels());
                gauges
            });
            gauges = gauges.since(before);
        }
        metrics.note_scrape(since_start);
        metrics.render(self.settings.metrics, &gauges, &self.settings.profile.model)
    }
}

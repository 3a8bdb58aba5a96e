//! Observation of the server during the load: its metrics pages and its GPUs.
//!
//! Everything happens on threads of its own, with connections of its own. The load never waits for
//! them; what they see lies in a bounded buffer until the collector takes it.

mod gpus;
mod looks;
mod pages;

#[cfg(test)]
mod tests;

pub(crate) use looks::Looks;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::{GpuPlan, Nanos, Plan, Scrape, SystemFacts};
use goodput_wire::{BaseUrl, PagePlace};

use crate::checks;
use crate::error::Failed;
use crate::events::Observer;
use crate::interrupt::Interrupt;
use crate::readiness::{self, Ready};
use gpus::Driver;
use pages::{PageFacts, PageSettings, Pages, ServerPage};

/// The least and the most time that an answer may take, however often it is asked for.
const LIMITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// How often a wait looks whether the user wants to stop.
const STEP: Nanos = Nanos::from_millis(100);

/// Longer waits are announced.
const ANNOUNCED: Duration = Duration::from_secs(2);

/// Looks at the server's side until it is told that the load is over.
pub struct ServerWatch {
    looks: Looks,
    pages: Option<Pages>,
    driver: Option<Driver>,
    /// What is known so far.
    facts: SystemFacts,
}

impl ServerWatch {
    /// Looks for the first time, and goes on looking. Returns once the first look is over.
    pub fn start(
        plan: &Plan,
        ready: &Ready,
        observer: &dyn Observer,
        interrupt: &Interrupt,
    ) -> Result<Self, Failed> {
        let looks = Looks::default();
        let mut this =
            Self { looks: looks.clone(), pages: None, driver: None, facts: SystemFacts::default() };
        let pages = pages_of_plan(plan, ready)?;
        if !pages.is_empty() {
            let interval = plan.observe.interval.into();
            let limit = plan.observe.interval.clamp(LIMITS.0, LIMITS.1);
            let started = Pages::start(PageSettings { pages, interval, limit }, looks.clone());
            match started {
                Ok((pages, told)) => {
                    this.pages = Some(pages);
                    this.add_facts(&told, plan);
                    this.note_first_look(&told, observer);
                }
                Err(error) => observer.warn(format!("cannot scrape the server: {error}")),
            }
        }
        this.find_gpus(plan, ready, observer);
        if !plan.observe.gpu_idle.is_zero() {
            this.watch_idle(plan.observe.gpu_idle, observer, interrupt);
        }
        Ok(this)
    }

    /// What the collector takes from, right before the load.
    pub(crate) fn open_looks(&self) -> Looks {
        self.looks.keep_from_now();
        self.looks.clone()
    }

    /// Pages that were read and are not taken yet, on the clock of `epoch`.
    pub fn scrapes(&self, epoch: Nanos) -> Vec<Scrape> {
        self.open_looks().take_samples(epoch).0
    }

    /// Writes down what is known of the server's side.
    pub fn describe(&self, system: &mut SystemFacts) {
        let facts = self.facts.clone();
        system.metrics = facts.metrics;
        system.gpu_source = facts.gpu_source;
        system.gpu_absent = facts.gpu_absent;
        system.gpu_driver = facts.gpu_driver;
        system.gpus = facts.gpus;
        system.gpu_idle_w = facts.gpu_idle_w;
    }

    /// The load is over: looks once more, unless the user is in a hurry, and ends. What was seen is left
    /// to be taken.
    #[must_use]
    pub fn finish(mut self, plan: &Plan, is_hurried: bool, observer: &dyn Observer) -> Self {
        drop(self.driver.take());
        if let Some(pages) = self.pages.take() {
            let told = pages.finish(is_hurried);
            self.add_facts(&told, plan);
        }
        if let Some(lost) = self.looks.lost_count() {
            observer.warn(format!("{lost} scrapes of the server were lost"));
        }
        self
    }

    /// What the server's counters say of its prefix cache over the run: tokens looked up, and found.
    pub fn cache_counters(&self) -> Option<(u64, u64)> {
        self.looks.cache_counters()
    }

    fn add_facts(&mut self, told: &PageFacts, plan: &Plan) {
        self.facts.metrics.clone_from(&told.metrics);
        if let GpuPlan::Exporters(_) = plan.observe.gpu {
            self.facts.gpu_source = told.exporters.join(", ");
            self.facts.gpus.clone_from(&told.gpus);
            let trouble = told.gpu_trouble.clone().filter(|_| told.gpus.is_empty());
            self.facts.gpu_absent = trouble.unwrap_or_default();
        }
    }

    /// What went wrong with the first look; each only once in the life of the process.
    fn note_first_look(&self, told: &PageFacts, observer: &dyn Observer) {
        for line in &told.lines {
            observer.note_once(line);
        }
        if !self.facts.gpu_absent.is_empty() {
            observer.note_once(&format!("no GPU data: {}", self.facts.gpu_absent));
        }
    }

    /// Asks the driver of this machine, if it may know something about the server.
    fn find_gpus(&mut self, plan: &Plan, ready: &Ready, observer: &dyn Observer) {
        let is_here = || ready.endpoint.addresses().first().is_some_and(is_this_machine);
        let only = match &plan.observe.gpu {
            GpuPlan::Off | GpuPlan::Exporters(_) => return,
            // The engine inside the process has none.
            GpuPlan::Auto if ready.mock.is_some() => return,
            GpuPlan::Auto if !is_here() => {
                "the server is on another machine; name an exporter there with --gpu"
                    .clone_into(&mut self.facts.gpu_absent);
                return;
            }
            GpuPlan::Auto | GpuPlan::Local => Vec::new(),
            GpuPlan::Devices(only) => only.clone(),
        };
        let period = gpus::sampling_period(plan.observe.gpu != GpuPlan::Auto);
        match Driver::start(self.looks.clone(), only, period) {
            Ok((driver, version, gpus)) => {
                self.driver = Some(driver);
                "nvml".clone_into(&mut self.facts.gpu_source);
                self.facts.gpu_driver = version;
                self.facts.gpus = gpus;
            }
            Err(why) => {
                if plan.observe.gpu != GpuPlan::Auto {
                    observer.note_once(&format!("warning: no GPU data: {why}"));
                }
                self.facts.gpu_absent = why;
            }
        }
    }

    /// Watches the GPUs of an idle server.
    fn watch_idle(&mut self, length: Duration, observer: &dyn Observer, interrupt: &Interrupt) {
        if self.facts.gpu_source.is_empty() {
            observer.note_once("warning: --gpu-idle is ignored: no GPU data");
            return;
        }
        if length > ANNOUNCED {
            let seconds = length.as_secs_f64();
            observer.note(format!("measuring the idle power of the GPUs for {seconds} s"));
        }
        let end = now() + length.into();
        while now() < end && !interrupt.is_interrupted() {
            pause(STEP.min(end - now()));
        }
        let idle = self.looks.idle_power();
        self.facts.gpu_idle_w = idle.map(|idle| idle.watts);
        match idle {
            None => observer.note_once("warning: no GPU reported its power while the server was idle"),
            // The driver is asked again each time; pages are made every this many seconds.
            Some(idle) if !idle.has_changed && self.driver.is_none() => observer.note_once(
                "warning: the exporter reported the same power during all of --gpu-idle: its page may be stale; use a time longer than its refresh interval",
            ),
            Some(_) => {}
        }
    }
}

/// The pages of a plan.
fn pages_of_plan(plan: &Plan, ready: &Ready) -> Result<Vec<ServerPage>, Failed> {
    let observe = &plan.observe;
    let map = checks::read_metrics_map(plan)?.map(Arc::new);
    let mut pages = Vec::new();
    if observe.metrics && !observe.metrics_urls.is_empty() {
        for url in &observe.metrics_urls {
            pages.push(ServerPage::metrics_page(page_place(url, plan, ready)?, map.clone()));
        }
    } else if observe.metrics && plan.target.probe {
        let place = PagePlace::next_to(&ready.endpoint, "metrics");
        pages.push(ServerPage::own_page(place, map));
    }
    if let GpuPlan::Exporters(urls) = &observe.gpu {
        for url in urls {
            pages.push(ServerPage::gpu_page(page_place(url, plan, ready)?));
        }
    }
    Ok(pages)
}

fn page_place(text: &str, plan: &Plan, ready: &Ready) -> Result<PagePlace, Failed> {
    let url: BaseUrl = checks::parse_page_url(text)?;
    let shown = url.shown();
    let settings = readiness::endpoint_settings(plan, url)?;
    PagePlace::from_url(text, settings, ready.endpoint.url())
        .map_err(|error| Failed::target(format!("{shown}: {error}")).hint("check the URL"))
}

/// Whether this address is one of this machine.
fn is_this_machine(address: &SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    if ip.is_loopback() {
        return true;
    }
    let any = if ip.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    // Nothing is sent: the system is asked from which of its addresses it would be.
    let from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((ip, address.port()))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == ip)
}

//! Which page is asked for, and what is on it.

#[cfg(test)]
mod tests;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use goodput_clock::now;
use goodput_document::render::page::{SCRIPT, STYLE, content_security_policy};
use goodput_http::{ClientLimit, HttpLimits, HttpReply, HttpRequest, Method, Response, Site};
use goodput_model::Nanos;
use goodput_record::ArtifactKind;

use crate::entry::{Entry, ResultCurve};
use crate::files::folder_fingerprint;
use crate::guard::{Guard, Ruling, constant_time_eq};
use crate::index::{Index, Query};
use crate::live::is_written_lately;
use crate::notes::{MOST_NOTES, Notes, NotesError};
use crate::page_cache::PageCache;
use crate::pages::{
    MOST_CURVES, Overlay, OverlayCurve, ResultList, ResultRow, RunPage, VIEW_SCRIPT, VIEW_STYLE,
    list_page, message_page, overlay_page, run_page, token_page,
};
use crate::watch::stream_live;

/// Rows of a page.
const PAGE: usize = 100;

/// How old the index may be.
const FRESH: Nanos = Nanos::from_millis(1_000);

/// Letters of a name in a legend.
const LEGEND: usize = 44;

/// Results that one overlay looks at.
const MOST_CHOSEN: usize = 26;

/// Clients at once that watch something.
const WATCHERS: usize = 24;

/// What clients may ask of the view.
pub(crate) const LIMITS: HttpLimits = HttpLimits {
    name: "ui",
    clients: 64,
    head_bytes: 16 * 1024,
    // Each byte of the notes may be written with three.
    body_bytes: 3 * MOST_NOTES + 16 * 1024,
    head_wait: Nanos::from_millis(3_000),
    wait: Nanos::from_millis(10_000),
};

/// Headers of every response. Our own pages may use our own files, and send forms to us.
const HEADERS: [(&str, &str); 5] = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
];

/// Makes the page of the result in a folder, or says why there is none.
pub type Render = Box<dyn Fn(&Path) -> Result<String, String> + Send + Sync>;

/// What is served.
pub(crate) struct ResultsSite {
    index: Mutex<FreshIndex>,
    guard: Guard,
    /// In every form, so that no other page can send one.
    key: String,
    render: Render,
    /// Held while a page is made of a log: one at a time, as that may take much memory.
    pub(crate) making: Mutex<()>,
    /// What was made.
    pages: PageCache,
    /// Clients that watch something.
    watchers: ClientLimit,
}

struct FreshIndex {
    index: Index,
    looked: Nanos,
}

impl ResultsSite {
    pub(crate) fn new(index: Index, guard: Guard, key: String, render: Render) -> Self {
        let index = Mutex::new(FreshIndex { index, looked: now() });
        Self {
            index,
            guard,
            key,
            render,
            making: Mutex::default(),
            pages: PageCache::default(),
            watchers: ClientLimit::default(),
        }
    }

    /// The index, not older than a second.
    fn fresh_index(&self) -> MutexGuard<'_, FreshIndex> {
        let mut runs = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if now() - runs.looked > FRESH {
            runs.index.refresh();
            runs.looked = now();
        }
        runs
    }

    fn list_response(&self, request: &HttpRequest) -> Response {
        let asked = |name: &str| request.query_value(name).unwrap_or_default().to_owned();
        let (words, kind, verdict) = (asked("q"), asked("kind"), asked("verdict"));
        let query = Query {
            words: words.clone(),
            kind: ArtifactKind::from_name(&kind),
            verdict: (!verdict.is_empty()).then(|| verdict.clone()),
            skip: asked("skip").parse().unwrap_or_default(),
            most: PAGE,
        };
        let runs = self.fresh_index();
        let found = runs.index.find(&query);
        let listed = |entry: Entry| {
            let folder = runs.index.folder(&entry);
            result_row(entry, folder.as_deref())
        };
        let list = ResultList {
            folder: runs.index.root().display().to_string(),
            rows: found.entries.into_iter().map(listed).collect(),
            total: found.total,
            skip: query.skip,
            most: PAGE,
            words,
            kind,
            verdict,
        };
        Response::html("200 OK", list_page(&list))
    }

    fn overlay_response(&self, request: &HttpRequest) -> Response {
        let among = |name: &str, words: [&'static str; 3]| {
            let asked = request.query_value(name).unwrap_or_default();
            words.into_iter().find(|word| *word == asked)
        };
        let metric = among("metric", ["ttft", "tpot", "e2e"]).unwrap_or("ttft");
        let percentile = among("at", ["p50", "p90", "p99"]).unwrap_or("p50");
        let chosen = request.query.iter().filter(|(name, _)| name == "id").map(|(_, id)| id);
        let (mut curves, mut ids) = (Vec::new(), Vec::<String>::new());
        let runs = self.fresh_index();
        for id in chosen.take(MOST_CHOSEN) {
            let Some(entry) = runs.index.get(id).filter(|entry| !ids.contains(&entry.id)) else {
                continue;
            };
            let letter = char::from(b'A' + u8::try_from(ids.len()).unwrap_or_default());
            ids.push(entry.id.clone());
            curves.extend(overlay_curves(entry, letter));
        }
        let left_out = curves.len().saturating_sub(MOST_CURVES);
        curves.truncate(MOST_CURVES);
        let overlay = Overlay { curves, ids, metric, percentile, left_out };
        Response::html("200 OK", overlay_page(&overlay))
    }

    /// What is asked of one result, which only the index can name.
    fn with_entry(
        &self,
        id: &str,
        make: impl FnOnce(Entry, Option<PathBuf>) -> HttpReply,
    ) -> HttpReply {
        let found = {
            let runs = self.fresh_index();
            runs.index.get(id).map(|entry| {
                let folder = runs.index.folder(&entry);
                (entry, folder)
            })
        };
        found.map_or_else(|| not_found_response().into(), |(entry, folder)| make(entry, folder))
    }

    fn run_response(&self, entry: Entry, folder: Option<&Path>) -> Response {
        Response::html("200 OK", run_page(&self.run_page_of(entry, folder)))
    }

    fn run_page_of(&self, entry: Entry, folder: Option<&Path>) -> RunPage {
        let (mark, key) = (entry.notes.version_mark(), self.key.clone());
        RunPage { row: result_row(entry, folder), mark, key, problem: None, theirs: None }
    }

    /// What goes on in a folder, as it happens.
    fn live_reply(&self, entry: Entry, folder: Option<PathBuf>) -> HttpReply {
        let is_on = folder.filter(|folder| result_row(entry, Some(folder)).is_live);
        let Some(folder) = is_on else { return Response::text("204 No Content").into() };
        let Some(seat) = self.watchers.acquire(WATCHERS) else {
            return Response::text("503 Service Unavailable").into();
        };
        let write = move |stream: &mut TcpStream| {
            let _seat = seat;
            stream_live(stream, &folder)
        };
        let start = Response::new("200 OK", "text/event-stream", "retry: 2000\n\n");
        HttpReply::Stream { start, write: Box::new(write) }
    }

    /// The result's own page, made from its data. The one that was saved with it is not looked at.
    fn report_response(&self, folder: Option<PathBuf>) -> Response {
        let sound =
            folder.and_then(|folder| folder_fingerprint(&folder).map(|mark| (folder, mark)));
        let Some((folder, mark)) = sound else {
            let words = "Its folder contains links or other files that are not plain files.";
            return Response::html("403 Forbidden", message_page("No report", words));
        };
        let page = match self.pages.get(&folder, mark) {
            Some(page) => Ok(page),
            None => match self.making.try_lock() {
                // A request that waited here would take a connection from the others.
                Err(TryLockError::WouldBlock) => return busy_response(),
                _one => (self.render)(&folder).inspect(|page| {
                    self.pages.keep(&folder, mark, page);
                }),
            },
        };
        match page {
            // Should words of a stranger ever get through: they cannot act for the reader.
            Ok(page) => Response::html("200 OK", page).with_header(
                "Content-Security-Policy",
                &format!(
                    "{}; frame-ancestors 'none'; sandbox allow-scripts",
                    content_security_policy()
                ),
            ),
            Err(failed) => Response::html("404 Not Found", message_page("No report", &failed)),
        }
    }

    /// Keeps tags and notes.
    fn save_notes(&self, request: &HttpRequest, entry: Entry, folder: Option<PathBuf>) -> Response {
        let Some(form) = request.parse_form() else {
            return Response::text("415 Unsupported Media Type");
        };
        let typed = |name: &str| {
            let found = form.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        if !constant_time_eq(typed("key").as_bytes(), self.key.as_bytes()) {
            let words = "This form belongs to a view that has ended. Go back, reload the page, and \
                         save your text from there.";
            return Response::html("403 Forbidden", message_page("Not saved", words));
        }
        let Some(folder) = folder else { return not_found_response() };
        let kept = Notes::parse(typed("tags"), typed("notes")).and_then(|notes| {
            // One at a time, also among those who send at once.
            let mut runs = self.index.lock().unwrap_or_else(PoisonError::into_inner);
            notes.write(&folder, typed("mark"))?;
            // The page that follows shows it.
            runs.looked = Nanos::ZERO;
            Ok(())
        });
        match kept {
            Ok(()) => Response::see_other(&format!("/run/{}", entry.id)),
            Err(problem) => {
                let tags = typed("tags").split(',').map(|tag| tag.trim().to_owned()).collect();
                let mut about = self.run_page_of(entry, Some(&folder));
                typed("mark").clone_into(&mut about.mark);
                if matches!(problem, NotesError::Changed) {
                    // A user who submits again has seen these on this page.
                    let theirs = Notes::read(&folder);
                    about.mark = theirs.version_mark();
                    about.theirs = Some(theirs);
                }
                let text = typed("notes").replace("\r\n", "\n");
                about.row.entry.notes = Notes { tags, text };
                about.problem = Some(problem.to_string());
                Response::html("409 Conflict", run_page(&about))
            }
        }
    }
}

impl Site for ResultsSite {
    fn check(&self, request: &HttpRequest) -> Result<(), Response> {
        match self.guard.admit(request) {
            Ruling::Welcome => {}
            Ruling::Admitted { cookie } => {
                let answer = Response::see_other(if is_known_path(&request.path) {
                    &request.path
                } else {
                    "/"
                });
                return Err(answer.with_header("Set-Cookie", &cookie));
            }
            Ruling::Stranger => return Err(Response::html("401 Unauthorized", token_page())),
            Ruling::Refused(why) => {
                return Err(Response::html("403 Forbidden", message_page("Refused", why)));
            }
        }
        let is_form = request.path.starts_with("/run/") && request.path.ends_with("/notes");
        match (request.method, is_form) {
            (Method::Get | Method::Head, false) | (Method::Post, true) => Ok(()),
            (_, true) => Err(Response::text("405 Method Not Allowed").with_header("Allow", "POST")),
            _ => Err(Response::text("405 Method Not Allowed").with_header("Allow", "GET, HEAD")),
        }
    }

    fn reply(&self, request: &HttpRequest) -> HttpReply {
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        let style = |text| Response::new("200 OK", "text/css; charset=utf-8", text).into();
        let script = |text| Response::new("200 OK", "text/javascript; charset=utf-8", text).into();
        match parts.as_slice() {
            [""] => self.list_response(request).into(),
            ["overlay"] => self.overlay_response(request).into(),
            ["run", id] => self
                .with_entry(id, |entry, folder| self.run_response(entry, folder.as_deref()).into()),
            ["run", id, "report"] => {
                self.with_entry(id, |_, folder| self.report_response(folder).into())
            }
            ["run", id, "notes"] => {
                self.with_entry(id, |entry, folder| self.save_notes(request, entry, folder).into())
            }
            ["run", id, "live"] => {
                self.with_entry(id, |entry, folder| self.live_reply(entry, folder))
            }
            ["page.css"] => style(STYLE),
            ["ui.css"] => style(VIEW_STYLE),
            ["page.js"] => script(SCRIPT),
            ["ui.js"] => script(VIEW_SCRIPT),
            _ => not_found_response().into(),
        }
    }

    fn finish(&self, response: Response) -> Response {
        HEADERS
            .iter()
            .fold(response, |response, (name, value)| response.with_default_header(name, value))
    }
}

/// A result, and whether something goes on in its folder.
fn result_row(entry: Entry, folder: Option<&Path>) -> ResultRow {
    let is_live = entry.state == "running" && folder.is_some_and(is_written_lately);
    ResultRow { entry, is_live }
}

/// The curves of a result. The letter tells results apart.
fn overlay_curves(entry: Entry, letter: char) -> Vec<OverlayCurve> {
    let Entry { id, kind, started, target, load, curves, .. } = entry;
    let about = format!("{} · {started} · {target} · {load}", kind.name());
    let only = target.split(" (").next().unwrap_or_default();
    let of = |curve: ResultCurve| {
        let words = if curve.name.is_empty() { only } else { &curve.name };
        let short: String = words.chars().take(LEGEND).collect();
        let name = format!("{letter} · {short}");
        OverlayCurve { id: id.clone(), name, about: about.clone(), points: curve.points }
    };
    curves.into_iter().map(of).collect()
}

/// Whether a path is one of ours, so that it can be named in a header.
fn is_known_path(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.".contains(&byte))
        && !path.starts_with("//")
}

fn busy_response() -> Response {
    let words = "Reports are made one at a time. Reload this page in a few seconds.";
    let page = message_page("Another report is being made", words);
    Response::html("503 Service Unavailable", page).with_header("Retry-After", "5")
}

fn not_found_response() -> Response {
    Response::html("404 Not Found", message_page("Not found", "No such page or result."))
}

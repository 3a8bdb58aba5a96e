//! A browser by its DevTools protocol over pipes: messages of JSON, each ended by a zero byte.
//!
//! It reads from descriptor 3 and writes to 4. A shell moves its own standard ones there, which needs
//! no unsafe code of ours.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use serde_json::{Value, json};

/// Longer than a busy machine takes for one answer.
const PATIENCE: Duration = Duration::from_mins(1);
/// For a browser that was told to end.
const TO_END: Nanos = Nanos::from_millis(5_000);

const REMAP: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#;

const FLAGS: [&str; 13] = [
    "--headless",
    "--remote-debugging-pipe",
    // Tests run as root in containers, and the pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-extensions",
    "--disable-breakpad",
    // What a browser asks the net by itself is not the page's doing, and not welcome in a test.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
];

/// A running browser, which ends with this.
pub(super) struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    sent: u64,
    /// What came unasked, and the tab that it is about.
    events: Vec<Value>,
}

/// A tab of it.
pub(super) struct Tab(String);

impl Browser {
    /// Starts this program with a profile of its own in a folder.
    pub(super) fn start(program: &Path, profile: &Path) -> Result<Self, String> {
        let mut command = Command::new("sh");
        command.args(["-c", REMAP]).arg(program).args(FLAGS);
        command.arg(format!("--user-data-dir={}", profile.display()));
        // Files outside of its profile: nothing may stay in the user's home.
        command.env("HOME", profile).env("XDG_CONFIG_HOME", profile).env("XDG_CACHE_HOME", profile);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = piped.spawn().map_err(|error| format!("cannot run sh: {error}"))?;
        let (to, out) = (process.stdin.take(), process.stdout.take());
        let (sender, from) = channel();
        if let Some(out) = out {
            thread::spawn(move || receive(out, &sender));
        }
        Ok(Self { process, to, from, sent: 0, events: Vec::new() })
    }

    /// Its name and version.
    pub(super) fn version(&mut self) -> Result<String, String> {
        let found = self.ask(None, "Browser.getVersion", &json!({}))?;
        Ok(found["product"].as_str().unwrap_or_default().to_owned())
    }

    /// Opens an empty tab that tells what happens in it.
    pub(super) fn open(&mut self) -> Result<Tab, String> {
        let target = self.ask(None, "Target.createTarget", &json!({"url": "about:blank"}))?;
        let to = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.ask(None, "Target.attachToTarget", &to)?;
        let tab = Tab(session["sessionId"].as_str().unwrap_or_default().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.tell(&tab, &format!("{domain}.enable"), &json!({}))?;
        }
        Ok(tab)
    }

    /// A command to a tab, and its answer.
    pub(super) fn tell(
        &mut self,
        tab: &Tab,
        method: &str,
        parameters: &Value,
    ) -> Result<Value, String> {
        self.ask(Some(tab), method, parameters)
    }

    fn ask(
        &mut self,
        tab: Option<&Tab>,
        method: &str,
        parameters: &Value,
    ) -> Result<Value, String> {
        let sent = self.send(tab, method, parameters)?;
        loop {
            let answer = self.next(method)?;
            if answer["id"] != sent {
                self.events.push(answer);
            } else if let Some(error) = answer.get("error") {
                return Err(format!("{method}: {error}"));
            } else {
                return Ok(answer["result"].clone());
            }
        }
    }

    fn send(&mut self, tab: Option<&Tab>, method: &str, parameters: &Value) -> Result<u64, String> {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(Tab(session)) = tab {
            message["sessionId"] = session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let to = self.to.as_mut().ok_or("the browser does not accept commands")?;
        let sent = to.write_all(&bytes).and_then(|()| to.flush());
        sent.map_err(|error| format!("the browser does not accept commands: {error}"))?;
        Ok(self.sent)
    }

    fn next(&mut self, why: &str) -> Result<Value, String> {
        let next = self.from.recv_timeout(PATIENCE);
        let next = next
            .map_err(|_| format!("the browser ended, or did not answer for a minute, at {why}"))?;
        // A dialog blocks the page until it is answered; its appearance is recorded.
        if next["method"] == "Page.javascriptDialogOpening" {
            let tab = Tab(next["sessionId"].as_str().unwrap_or_default().to_owned());
            self.send(Some(&tab), "Page.handleJavaScriptDialog", &json!({"accept": true}))?;
        }
        Ok(next)
    }

    /// Loads a page and waits until it has loaded.
    pub(super) fn load(&mut self, tab: &Tab, url: &str) -> Result<(), String> {
        let answer = self.tell(tab, "Page.navigate", &json!({"url": url}))?;
        if let Some(error) = answer.get("errorText") {
            return Err(format!("{url}: {error}"));
        }
        let is_loaded = |event: &Value| {
            event["method"] == "Page.loadEventFired" && event["sessionId"] == tab.0.as_str()
        };
        // A fragment of the page that is there already loads nothing.
        let is_same = answer.get("loaderId").is_none();
        while !is_same && !self.events.iter().any(is_loaded) {
            let event = self.next("loading")?;
            self.events.push(event);
        }
        self.events.retain(|event| !is_loaded(event));
        Ok(())
    }

    /// What a script of ours finds in the page.
    pub(super) fn look(&mut self, tab: &Tab, script: &str) -> Result<Value, String> {
        let parameters = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.tell(tab, "Runtime.evaluate", &parameters)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => {
                Err(format!("the page cannot be inspected: {}", thrown["exception"]["description"]))
            }
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// What happened in a tab since the last time, in order.
    pub(super) fn happened(&mut self, tab: &Tab) -> Vec<Value> {
        self.events.extend(self.from.try_iter());
        let (of_tab, others) = std::mem::take(&mut self.events)
            .into_iter()
            .partition(|event| event["sessionId"] == tab.0.as_str());
        self.events = others;
        of_tab
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own processes end with it if it is asked; a kill would leave them to notice.
        let _ = self.send(None, "Browser.close", &json!({}));
        self.to = None;
        let until = now() + TO_END;
        while matches!(self.process.try_wait(), Ok(None)) && now() < until {
            pause(Nanos::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Messages until the end of the pipe.
fn receive(from: ChildStdout, to: &Sender<Value>) {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    while from.read_until(0, &mut bytes).is_ok_and(|n| n > 0) {
        bytes.pop();
        let message = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if to.send(message).is_err() {
            return;
        }
        bytes.clear();
    }
}

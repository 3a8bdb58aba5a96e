//! A Kubernetes Indexed Job: its manifests, their start by kubectl, and the end of rank 0.
//!
//! No token and no key is in a manifest: the pods take both from Secrets. Where no Secret is named,
//! one is made with a new token, handed to kubectl on its stdin.

use std::process::Child;
use std::time::Duration;

use goodput_model::plain;
use serde_json::{Value, json};

use super::follow::Follower;
use super::manifests::Manifests;
use super::tool::Tool;
use super::{JobObserver, LOST, RankCommand, StopRequest, yaml};
use crate::LaunchError;

const KUBECTL: Tool =
    Tool::new("kubectl", "kubectl must be in PATH; --dry-run prints the manifests without it");

/// Questions in a row that the cluster may leave unanswered, and after which it is said again what is
/// waited for: a minute.
const PATIENCE: u32 = 30;

/// By the server: the client's own way would leave a copy of the Secret in a note on it.
const APPLY: [&str; 5] = ["apply", "--server-side", "--force-conflicts", "-f", "-"];

/// An Indexed Job of Kubernetes with one pod for each rank. Names are fit for objects.
#[derive(Debug, Clone)]
pub struct KubernetesJob {
    /// The job's name.
    pub name: String,
    /// How many ranks.
    pub ranks: u32,
    /// The image.
    pub image: String,
    /// Namespace, where it is not that of kubectl's context.
    pub namespace: Option<String>,
    /// Whether the namespace is made, too.
    pub create_namespace: bool,
    /// A Secret that holds the fleet's token; by default one is made.
    pub token_secret: Option<String>,
    /// `SECRET/KEY` of the API key.
    pub api_key_secret: Option<String>,
    /// A claim for the results.
    pub claim: Option<String>,
    /// Processors of each rank.
    pub cpus: u32,
    /// MiB of each rank.
    pub memory: u32,
    /// Whether pods wait rather than share a node unevenly.
    pub strict_spread: bool,
    /// How long the job is kept after its end.
    pub keep: Duration,
    /// Port of rank 0.
    pub port: u16,
    /// The text of the plan that the pods get.
    pub plan: Option<String>,
}

impl KubernetesJob {
    /// The manifests, without the token.
    pub fn manifests(&self, command: &RankCommand) -> Result<String, LaunchError> {
        let Manifests { namespace, objects, job } = Manifests::new(self, command)?;
        let trees: Vec<Value> = namespace.into_iter().chain(objects).chain([job]).collect();
        Ok(self.head() + &yaml::documents(&trees))
    }

    /// Makes the job and waits for the end of rank 0; its exit code, unless the user stopped it.
    pub fn launch(
        &self,
        command: &RankCommand,
        observer: &dyn JobObserver,
    ) -> Result<Option<u8>, LaunchError> {
        let follower = Follower::new(observer);
        let mut cluster = Cluster { job: self, uid: String::new(), follower };
        cluster.begin(Manifests::new(self, command)?)?;
        let name = &self.name;
        observer.note(&format!("job {name} is begun; Ctrl-C deletes it, and its pods stop"));
        let code = cluster.follow()?;
        observer.note(&format!(
            "what is left: kubectl delete job,service,configmap,networkpolicy,secret -l app.kubernetes.io/instance={name}"
        ));
        Ok(cluster.follower.unless_stopped(code))
    }

    /// The Secret with the token.
    pub(super) fn token_secret(&self) -> String {
        self.token_secret.clone().unwrap_or_else(|| format!("{}-fleet", self.name))
    }

    /// What a reader of printed manifests must know.
    fn head(&self) -> String {
        let name = self.token_secret();
        let space = self.namespace.as_deref().map(|name| format!(" -n {name}")).unwrap_or_default();
        let first = if self.token_secret.is_none() {
            format!(
                "# First: head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' |\n\
                 #   kubectl{space} create secret generic {name} --from-file=token=/dev/stdin\n"
            )
        } else {
            String::new()
        };
        let results = if self.claim.is_none() {
            "# Results go with the pods (no --claim): only what rank 0 prints is kept.\n"
        } else {
            ""
        };
        format!("# Made by goodput {}.\n{first}{results}", env!("CARGO_PKG_VERSION"))
    }
}

/// The cluster, by kubectl.
struct Cluster<'a> {
    job: &'a KubernetesJob,
    /// The job's own: pods of one that had its name before may still be there.
    uid: String,
    follower: Follower<'a>,
}

/// What a look finds.
enum Look {
    Pod(Pod),
    /// No pod of rank 0 yet; why, as far as it is known.
    None(String),
    /// There is none, and there will be none: why.
    Over(String),
}

impl Cluster<'_> {
    /// These words, in the namespace.
    fn words<'b>(&'b self, words: &[&'b str]) -> Vec<&'b str> {
        let space = self.job.namespace.as_deref();
        words.iter().copied().chain(space.into_iter().flat_map(|name| ["-n", name])).collect()
    }

    fn ask(&self, words: &[&str]) -> Result<String, LaunchError> {
        KUBECTL.ask(&self.words(words))
    }

    fn feed(&self, words: &[&str], text: &str) -> Result<String, LaunchError> {
        KUBECTL.feed(&self.words(words), text)
    }

    /// Makes the job, which rests until what it needs is there. One of that name that is there already
    /// is left alone, with all that belongs to it.
    fn begin(&mut self, manifests: Manifests) -> Result<(), LaunchError> {
        let Manifests { namespace, mut objects, mut job } = manifests;
        let name = self.job.name.as_str();
        if let Some(namespace) = namespace {
            self.feed(&APPLY, &yaml::documents(&[namespace]))?;
        }
        job["spec"]["suspend"] = json!(true);
        if self.job.token_secret.is_none() {
            objects.push(Manifests::token(self.job)?);
        }
        let create = ["create", "-f", "-", "-o", "jsonpath={.metadata.uid}"];
        let uid = self.feed(&create, &yaml::documents(&[job])).map_err(|failed| {
            failed.hint(format!("an old job of this name? kubectl delete job {name}, or --name"))
        })?;
        uid.trim().clone_into(&mut self.uid);
        let wake = ["patch", "job", name, "--type=merge", "-p", r#"{"spec":{"suspend":false}}"#];
        let begun = self.feed(&APPLY, &yaml::documents(&objects)).and_then(|_| self.ask(&wake));
        if begun.is_err() {
            self.delete();
        }
        begun.map(drop)
    }

    /// Waits for rank 0, prints what it prints, and says how all ended.
    fn follow(&mut self) -> Result<u8, LaunchError> {
        let Some(pod) = self.wait(|pod| pod.has_begun)? else { return Ok(LOST) };
        let mut logs = KUBECTL
            .command(&self.words(&["logs", "-f", &pod.name]))
            .spawn()
            .map_err(|error| KUBECTL.lost(&error))?;
        while !is_over(&mut logs) {
            self.rest();
        }
        if self.follower.is_stopped() {
            return Ok(LOST);
        }
        let pod = self.wait(|pod| pod.code.is_some())?;
        self.say_failed();
        Ok(pod.and_then(|pod| pod.code).unwrap_or(LOST))
    }

    /// Waits until the pod of rank 0 is so; none where the user has stopped it before.
    fn wait(&mut self, is_so: impl Fn(&Pod) -> bool) -> Result<Option<Pod>, LaunchError> {
        let (mut silent, mut looks, mut known) = (0, 0, String::new());
        loop {
            let look = self.look();
            silent = if look.is_err() { silent + 1 } else { 0 };
            let why = match look {
                Ok(Look::Pod(pod)) if is_so(&pod) => return Ok(Some(pod)),
                _ if self.follower.is_stopped() => return Ok(None),
                Ok(Look::Pod(pod)) => pod.waits_for,
                Ok(Look::None(why)) => why,
                Ok(Look::Over(why)) => {
                    return Err(LaunchError::engine(format!("there is no pod of rank 0: {why}")));
                }
                Err(failed) if silent > PATIENCE => return Err(failed),
                Err(failed) => failed.to_string(),
            };
            looks += 1;
            if why != known || looks % PATIENCE == 0 {
                let said = if why.is_empty() { "no reason is given" } else { &why };
                self.follower.note(&format!("rank 0 waits: {}", plain(said)));
                known = why;
            }
            self.rest();
        }
    }

    /// The pod of rank 0, or why there is none.
    fn look(&self) -> Result<Look, LaunchError> {
        let label = format!("batch.kubernetes.io/controller-uid={}", self.uid);
        let pods = self.read(&["get", "pods", "-l", &label, "-o", "json"])?;
        if let Some(pod) = items(&pods["items"]).iter().find(|pod| is_first(pod)) {
            return Ok(Look::Pod(Pod::read(pod)));
        }
        let words = ["get", "job", &self.job.name, "--ignore-not-found", "-o", "json"];
        if let Some(why) = over(&self.read(&words)?, &self.uid) {
            return Ok(Look::Over(why));
        }
        // A quota or a policy that refuses pods is told in events alone.
        let selector = format!("involvedObject.uid={},type=Warning", self.uid);
        let words = ["get", "events", "--field-selector", &selector, "-o", "json"];
        let events = self.read(&words).unwrap_or_default();
        let last = items(&events["items"])
            .iter()
            .max_by_key(|event| event["lastTimestamp"].as_str().unwrap_or_default());
        Ok(Look::None(last.map(|event| text(&event["message"])).unwrap_or_default()))
    }

    /// An answer in JSON; nothing where there is none.
    fn read(&self, words: &[&str]) -> Result<Value, LaunchError> {
        let answer = self.ask(words)?;
        if answer.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&answer)
            .map_err(|error| LaunchError::engine(format!("kubectl's answer is no JSON: {error}")))
    }

    /// Until the next question; deletes the job where the user wants to stop.
    fn rest(&mut self) {
        if self.follower.rest() != Some(StopRequest::Stop) {
            return;
        }
        let name = &self.job.name;
        self.follower
            .note(&format!("kubectl delete job {name}: the pods have two minutes to write"));
        self.delete();
    }

    fn delete(&self) {
        let name = &self.job.name;
        if let Err(failed) = self.ask(&["delete", "job", name, "--wait=false"]) {
            self.follower.note(&format!("error: {failed}"));
        }
    }

    /// Names the ranks that failed, as far as the job knows them.
    fn say_failed(&self) {
        let name = &self.job.name;
        let words = ["get", "job", name, "-o", "jsonpath={.status.failedIndexes}"];
        match self.ask(&words) {
            Ok(failed) if !failed.trim().is_empty() => {
                let failed = plain(failed.trim());
                self.follower.note(&format!(
                    "ranks that failed: {failed} (kubectl logs -l batch.kubernetes.io/job-name={name},batch.kubernetes.io/job-completion-index=K)"
                ));
            }
            _ => {}
        }
    }
}

fn is_over(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Why a job makes no more pods.
fn over(job: &Value, uid: &str) -> Option<String> {
    if job["metadata"]["uid"] != uid {
        return Some("the job is gone".to_owned());
    }
    let is_end = |kind: &str| ["Failed", "Complete"].contains(&kind);
    items(&job["status"]["conditions"])
        .iter()
        .find(|one| one["status"] == "True" && one["type"].as_str().is_some_and(is_end))
        .map(|end| format!("the job is over: {} {}", text(&end["type"]), text(&end["message"])))
}

/// The annotation is older than the label, and both are there.
fn is_first(pod: &Value) -> bool {
    let name = "batch.kubernetes.io/job-completion-index";
    let meta = &pod["metadata"];
    let index = meta["annotations"][name].as_str().or_else(|| meta["labels"][name].as_str());
    index == Some("0")
}

/// What kubectl says of a pod.
#[derive(Debug, PartialEq, Eq)]
struct Pod {
    name: String,
    has_begun: bool,
    /// Why it has not begun.
    waits_for: String,
    /// Its exit code, once it has ended.
    code: Option<u8>,
}

impl Pod {
    fn read(pod: &Value) -> Self {
        let status = &pod["status"];
        let phase = text(&status["phase"]);
        let state = &status["containerStatuses"][0]["state"];
        let ended = state["terminated"]["exitCode"].as_u64();
        // One that was thrown out before it ran has ended, too.
        let is_lost = phase == "Failed" && ended.is_none();
        let code = ended.map(|code| u8::try_from(code).unwrap_or(u8::MAX));
        let unplaced = items(&status["conditions"])
            .iter()
            .find(|one| one["type"] == "PodScheduled" && one["status"] == "False")
            .map(|one| format!("{}: {}", text(&one["reason"]), text(&one["message"])));
        let waiting = text(&state["waiting"]["reason"]);
        Self {
            name: text(&pod["metadata"]["name"]),
            has_begun: ["Running", "Succeeded", "Failed"].contains(&phase.as_str()),
            waits_for: if waiting.is_empty() { unplaced.unwrap_or_default() } else { waiting },
            code: if is_lost { Some(LOST) } else { code },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_understood() {
        let pod = |index: &str, status: Value| {
            json!({
                "metadata": {
                    "name": "load-0-abcde",
                    "annotations": {"batch.kubernetes.io/job-completion-index": index},
                },
                "status": status,
            })
        };
        assert!(is_first(&pod("0", json!({}))) && !is_first(&pod("1", json!({}))));
        let read = |status: Value| {
            let pod = Pod::read(&pod("0", status));
            assert_eq!(pod.name, "load-0-abcde");
            (pod.has_begun, pod.waits_for, pod.code)
        };
        let waiting = json!([{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
        let ended = json!([{"state": {"terminated": {"exitCode": 4}}}]);
        let unplaced = json!([
            {"type": "PodReady", "status": "False", "reason": "x", "message": "x"},
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"},
        ]);
        let table = [
            (json!({"phase": "Pending"}), (false, "", None)),
            (
                json!({"phase": "Pending", "conditions": unplaced}),
                (false, "Unschedulable: 0/3", None),
            ),
            (
                json!({"phase": "Pending", "containerStatuses": waiting}),
                (false, "ImagePullBackOff", None),
            ),
            (json!({"phase": "Running"}), (true, "", None)),
            (json!({"phase": "Failed", "containerStatuses": ended}), (true, "", Some(4))),
            (json!({"phase": "Failed", "reason": "Evicted"}), (true, "", Some(1))),
        ];
        for (status, (has_begun, waits_for, code)) in table {
            assert_eq!(read(status), (has_begun, waits_for.to_owned(), code));
        }
    }

    #[test]
    fn a_job_is_over_once_it_has_ended_or_is_gone() {
        let job = |status: Value| json!({"metadata": {"uid": "u"}, "status": status});
        let is = |kind: &str, status: &str| {
            job(json!({"conditions": [{"type": kind, "status": status, "message": "why"}]}))
        };
        let over = |job: Value| over(&job, "u");
        assert_eq!(over(job(json!({}))), None);
        assert_eq!(over(is("Suspended", "True")), None);
        assert_eq!(over(is("Failed", "False")), None);
        assert_eq!(over(is("Failed", "True")).unwrap(), "the job is over: Failed why");
        assert_eq!(over(Value::Null).unwrap(), "the job is gone");
        assert_eq!(over(json!({"metadata": {"uid": "another"}})).unwrap(), "the job is gone");
    }
}

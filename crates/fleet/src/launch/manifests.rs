//! The manifests of an Indexed Job, as trees.
//!
//! The service has no address of its own: it gives each pod a name, from the first moment on. Only
//! ranks may speak to ranks; what they may reach is not limited, as the target may be anywhere. A pod
//! that fails is not replaced and ends no other: its load is missing, and named. Requests and limits
//! are the same: such pods are throttled last and keep their processors.

use serde_json::{Map, Value, json};

use super::template::fill_tree;
use super::{KubernetesJob, RankCommand, random_secret};
use crate::LaunchError;

const TEMPLATE: &str = include_str!("templates/kubernetes.json");

/// Where the plan lies in a pod.
const PLAN: &str = "/etc/goodput/plan.toml";

/// All but the token.
pub(super) struct Manifests {
    /// Where it is to be made.
    pub(super) namespace: Option<Value>,
    /// Plan, service and policy.
    pub(super) objects: Vec<Value>,
    pub(super) job: Value,
}

impl Manifests {
    pub(super) fn new(job: &KubernetesJob, command: &RankCommand) -> Result<Self, LaunchError> {
        let mut values = template_values(job);
        let words = command.command_words(job.plan.as_ref().map(|_| PLAN));
        // `$(NAME)` would be filled in by Kubernetes.
        let words: Vec<String> = words.iter().map(|word| word.replace('$', "$$")).collect();
        let keep = job.keep.as_secs().min(i32::MAX.unsigned_abs().into());
        let key = job.api_key_secret.as_deref().and_then(|secret| secret.split_once('/'));
        values.extend([
            ("ranks".to_owned(), json!(job.ranks)),
            ("count".to_owned(), json!(job.ranks.to_string())),
            ("keep".to_owned(), json!(keep)),
            (
                "spread".to_owned(),
                json!(if job.strict_spread { "DoNotSchedule" } else { "ScheduleAnyway" }),
            ),
            ("image".to_owned(), json!(job.image)),
            ("arguments".to_owned(), json!(words)),
            ("key_env".to_owned(), json!(command.key_env)),
            ("key_secret".to_owned(), json!(key.map(|(secret, _)| secret))),
            ("key_name".to_owned(), json!(key.map(|(_, name)| name))),
            ("claim".to_owned(), json!(job.claim)),
            ("cpus".to_owned(), json!(job.cpus.to_string())),
            ("memory".to_owned(), json!(job.memory)),
        ]);
        let template = parse_template()?;
        let tree = |name: &str| fill_tree(&template[name], &values);
        let plan = job.plan.is_some().then(|| tree("plan"));
        Ok(Self {
            namespace: job.create_namespace.then(|| tree("namespace")),
            objects: plan.into_iter().chain([tree("service"), tree("policy")]).collect(),
            job: tree("job"),
        })
    }

    /// A Secret with a new token.
    pub(super) fn token_secret(job: &KubernetesJob) -> Result<Value, LaunchError> {
        let token = random_secret()
            .map_err(|error| LaunchError::engine(format!("cannot make a token: {error}")))?;
        let mut values = template_values(job);
        values.insert("token".to_owned(), json!(token));
        Ok(fill_tree(&parse_template()?["token"], &values))
    }
}

fn parse_template() -> Result<Value, LaunchError> {
    serde_json::from_str(TEMPLATE).map_err(|error| {
        LaunchError::engine(format!("the generated manifests are not valid JSON: {error}"))
    })
}

/// What several objects hold.
fn template_values(job: &KubernetesJob) -> Map<String, Value> {
    let labels = json!({
        "app.kubernetes.io/name": "goodput",
        "app.kubernetes.io/instance": job.name,
    });
    let pairs = [
        ("name", json!(job.name)),
        ("namespace", json!(job.namespace)),
        ("labels", labels),
        ("plan", json!(job.plan)),
        ("port", json!(job.port)),
        ("token_secret", json!(job.token_secret())),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{example, yaml};
    use super::*;

    fn job() -> KubernetesJob {
        KubernetesJob {
            name: "goodput".to_owned(),
            ranks: 8,
            image: "i:1".to_owned(),
            namespace: None,
            create_namespace: false,
            token_secret: None,
            api_key_secret: None,
            claim: None,
            cpus: 2,
            memory: 2048,
            strict_spread: false,
            keep: Duration::from_hours(1),
            port: 7077,
            plan: None,
        }
    }

    fn made(job: &KubernetesJob, words: &[&str]) -> Vec<Value> {
        let Manifests { namespace, objects, job } = Manifests::new(job, &example(words)).unwrap();
        namespace.into_iter().chain(objects).chain([job]).collect()
    }

    #[test]
    fn the_job_has_an_index_a_name_and_a_meeting_place_for_each_rank() {
        let job = KubernetesJob {
            name: "load".to_owned(),
            api_key_secret: Some("llm/key".to_owned()),
            claim: Some("disk".to_owned()),
            ..job()
        };
        let trees = made(&job, &["run", "http://h", "--rate", "5"]);
        let kinds: Vec<&Value> = trees.iter().map(|tree| &tree["kind"]).collect();
        assert_eq!(kinds, ["Service", "NetworkPolicy", "Job"]);
        let spec = &trees[2]["spec"];
        assert_eq!([&spec["completions"], &spec["parallelism"]], [8, 8]);
        assert_eq!(spec["backoffLimitPerIndex"], 0);
        let pod = &spec["template"]["spec"];
        assert_eq!(pod["subdomain"], trees[0]["metadata"]["name"]);
        let env = &pod["containers"][0]["env"];
        assert_eq!(env[0]["value"], "8");
        assert_eq!(env[1]["value"], "load-0.load:7077");
        assert_eq!(
            env[2]["valueFrom"]["secretKeyRef"],
            json!({"name": "load-fleet", "key": "token"})
        );
        assert_eq!(env[4]["name"], "OPENAI_API_KEY");
        assert_eq!(env[4]["valueFrom"]["secretKeyRef"], json!({"name": "llm", "key": "key"}));
        assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "disk");
        let words = json!(["run", "http://h", "--rate", "5", "--shard", "auto"]);
        assert_eq!(pod["containers"][0]["args"], words);
    }

    #[test]
    fn nothing_that_was_typed_is_filled_in_or_read_as_yaml() {
        let hostile = "a\": [\n  - $(HOME) $$ \u{e9}";
        let trees = made(&job(), &["run", "http://h", "--rate", "5", "--model", hostile]);
        let words = &trees[2]["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(words[5], "a\": [\n  - $$(HOME) $$$$ \u{e9}");
        let text = yaml::write_documents(&trees);
        assert!(text.is_ascii());
        assert!(text.contains(r#"a\": [\n\"#) && text.contains(r"\x20 - $$(HOME) $$$$ \xe9"));
    }

    #[test]
    fn a_namespace_is_made_when_asked_and_named_everywhere() {
        let namespace = Some("bench".to_owned());
        let job = KubernetesJob { namespace, create_namespace: true, ..job() };
        let trees = made(&job, &["sweep", "http://h"]);
        assert_eq!(trees[0]["kind"], "Namespace");
        assert!(trees[1..].iter().all(|tree| tree["metadata"]["namespace"] == "bench"));
    }
}

//! The manifests of an Indexed Job, as trees.

use serde_json::{Value, json};

use super::words::Asked;
use crate::args::KubernetesArgs;
use crate::error::Failed;

/// Where the plan lies in a pod.
const PLAN: &str = "/etc/goodput/plan.toml";

/// Where a pod's results lie.
const RESULTS: &str = "/results";

/// Namespace, plan, service, policy and, last, the job, as far as they are wanted.
pub(super) fn all(args: &KubernetesArgs, asked: &Asked) -> Result<Vec<Value>, Failed> {
    let mut trees = Vec::new();
    if let (true, Some(name)) = (args.create_namespace, &args.namespace) {
        trees.push(namespace(name));
    }
    if let Some(text) = asked.plan_text()? {
        trees.push(config(args, &text));
    }
    trees.extend([service(args), policy(args), job(args, asked)]);
    Ok(trees)
}

/// The Secret with the token.
pub(super) fn token_secret(args: &KubernetesArgs) -> String {
    args.token_secret.clone().unwrap_or_else(|| format!("{}-fleet", args.launch.name))
}

/// Name, namespace and labels of an object.
pub(super) fn metadata(args: &KubernetesArgs, name: &str) -> Value {
    let mut meta = json!({"name": name, "labels": labels(args)});
    if let Some(space) = &args.namespace {
        meta["namespace"] = json!(space);
    }
    meta
}

fn labels(args: &KubernetesArgs) -> Value {
    json!({
        "app.kubernetes.io/name": "goodput",
        "app.kubernetes.io/instance": args.launch.name,
    })
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            // The pods ask for nothing that the strictest level forbids.
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    })
}

fn config(args: &KubernetesArgs, plan: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(args, &format!("{}-plan", args.launch.name)),
        "data": {"plan.toml": plan},
    })
}

/// A service without an address of its own: it gives each pod a name, from the first moment on.
fn service(args: &KubernetesArgs) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(args, &args.launch.name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(args),
            "ports": [{"name": "rendezvous", "port": args.port, "protocol": "TCP"}],
        },
    })
}

/// Only ranks may speak to ranks. What they may reach is not limited: the target may be anywhere.
fn policy(args: &KubernetesArgs) -> Value {
    let ranks = json!({"matchLabels": labels(args)});
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(args, &args.launch.name),
        "spec": {
            "podSelector": ranks,
            "policyTypes": ["Ingress"],
            "ingress": [{
                "from": [{"podSelector": ranks}],
                "ports": [{"port": args.port, "protocol": "TCP"}],
            }],
        },
    })
}

/// A pod that fails is not replaced, and ends no other: its load is missing, and named.
fn job(args: &KubernetesArgs, asked: &Asked) -> Value {
    let ranks = args.launch.ranks;
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(args, &args.launch.name),
        "spec": {
            "completionMode": "Indexed",
            "completions": ranks,
            "parallelism": ranks,
            "backoffLimitPerIndex": 0,
            "ttlSecondsAfterFinished": args.keep.as_secs().min(i32::MAX.unsigned_abs().into()),
            "template": {"metadata": {"labels": labels(args)}, "spec": pod(args, asked)},
        },
    })
}

fn pod(args: &KubernetesArgs, asked: &Asked) -> Value {
    let spread = if args.strict_spread { "DoNotSchedule" } else { "ScheduleAnyway" };
    let results = match &args.claim {
        Some(claim) => json!({"name": "results", "persistentVolumeClaim": {"claimName": claim}}),
        None => json!({"name": "results", "emptyDir": {}}),
    };
    let mut volumes = vec![results, json!({"name": "tmp", "emptyDir": {}})];
    if asked.plan.is_some() {
        let name = format!("{}-plan", args.launch.name);
        volumes.push(json!({"name": "plan", "configMap": {"name": name}}));
    }
    json!({
        "restartPolicy": "Never",
        "subdomain": args.launch.name,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 120,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": spread,
            "labelSelector": {"matchLabels": labels(args)},
        }],
        "containers": [container(args, asked)],
        "volumes": volumes,
    })
}

fn container(args: &KubernetesArgs, asked: &Asked) -> Value {
    let words = asked.words(asked.plan.as_ref().map(|_| PLAN));
    // `$(NAME)` would be filled in by Kubernetes.
    let words: Vec<String> = words.iter().map(|word| word.replace('$', "$$")).collect();
    // Asked for and limit are the same: such pods are throttled last and keep their processors.
    let share = json!({"cpu": args.cpus.to_string(), "memory": format!("{}Mi", args.memory)});
    let mut mounts = vec![
        json!({"name": "results", "mountPath": RESULTS}),
        json!({"name": "tmp", "mountPath": "/tmp"}),
    ];
    if asked.plan.is_some() {
        mounts.push(json!({"name": "plan", "mountPath": "/etc/goodput", "readOnly": true}));
    }
    json!({
        "name": "goodput",
        "image": args.image,
        "args": words,
        "workingDir": RESULTS,
        "env": environment(args, asked),
        "ports": [{"name": "rendezvous", "containerPort": args.port, "protocol": "TCP"}],
        "resources": {"requests": share, "limits": share},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    })
}

/// `JOB_COMPLETION_INDEX` is there by itself; how many there are is not.
fn environment(args: &KubernetesArgs, asked: &Asked) -> Value {
    let name = &args.launch.name;
    let of_secret = |variable: &str, secret: &str, key: &str| json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}});
    let mut variables = vec![
        json!({"name": "GOODPUT_COMPLETIONS", "value": args.launch.ranks.to_string()}),
        json!({"name": "GOODPUT_RENDEZVOUS", "value": format!("{name}-0.{name}:{}", args.port)}),
        of_secret("GOODPUT_FLEET_TOKEN", &token_secret(args), "token"),
        json!({"name": "HOME", "value": "/tmp"}),
    ];
    if let Some((secret, key)) = args.api_key_secret.as_deref().and_then(|s| s.split_once('/')) {
        variables.push(of_secret(&asked.key_env, secret, key));
    }
    json!(variables)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::yaml;
    use super::*;
    use crate::args::{Arguments, FleetVerb, Verb};

    fn made(line: &[&str]) -> Vec<Value> {
        let start = ["goodput", "fleet", "kubernetes", "--ranks", "8", "--image", "i:1"];
        let line = start.iter().chain(line);
        let Verb::Fleet(args) = Arguments::try_parse_from(line).unwrap().verb else { panic!() };
        let FleetVerb::Kubernetes(args) = args.engine else { panic!() };
        all(&args, &Asked::read(&args.launch).unwrap()).unwrap()
    }

    #[test]
    fn the_job_has_an_index_a_name_and_a_meeting_place_for_each_rank() {
        let line = ["--name", "load", "--api-key-secret", "llm/key", "--claim", "disk"];
        let trees = made(&[&line[..], &["--", "run", "http://h", "--rate", "5"]].concat());
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
        let trees = made(&["--", "run", "http://h", "--rate", "5", "--model", hostile]);
        let words = &trees[2]["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(words[5], "a\": [\n  - $$(HOME) $$$$ \u{e9}");
        let text = yaml::documents(&trees);
        assert!(text.is_ascii());
        assert!(text.contains(r#"a\": [\n\"#) && text.contains(r"\x20 - $$(HOME) $$$$ \xe9"));
    }

    #[test]
    fn a_namespace_is_made_when_asked_and_named_everywhere() {
        let line = ["--namespace", "bench", "--create-namespace", "--", "sweep", "http://h"];
        let trees = made(&line);
        assert_eq!(trees[0]["kind"], "Namespace");
        assert!(trees[1..].iter().all(|tree| tree["metadata"]["namespace"] == "bench"));
    }
}

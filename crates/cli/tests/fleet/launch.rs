//! `goodput fleet` with stand-ins for the engines' programs: what they are given, and what is made of
//! their answers. Real engines are tried by the scripts in integrations/.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Outcome, Session, outcome_of};

/// A session whose PATH begins with these scripts.
fn with_tools(tools: &[(&str, &str)]) -> Session {
    let session = Session::new();
    let bin = session.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, script) in tools {
        let text = session.folder.path().join("text");
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // By another process: a file that this one has open for a moment, a child of another test may
        // have too, and such a file cannot be run.
        let mut install = Command::new("install");
        install.args(["-m", "755"]).arg(&text).arg(bin.join(name));
        assert!(install.status().unwrap().success());
    }
    session
}

fn run(session: &Session, line: &[&str]) -> Outcome {
    let mut command = session.command(line);
    let bin = session.folder.path().join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    outcome_of(command.env("PATH", path))
}

fn read(session: &Session, name: &str) -> String {
    fs::read_to_string(session.folder.path().join(name)).unwrap()
}

const RUN: [&str; 6] = ["--", "run", "http://h", "--rate", "5", "--duration=1s"];

#[test]
fn a_slurm_job_is_submitted_and_followed_to_its_exit_code() {
    // The third look finds the end; meanwhile rank 0 has printed something.
    let session = with_tools(&[
        ("sbatch", "cat > script; echo '12;cluster'"),
        (
            "scontrol",
            "echo \"$*\" >> looks; echo first >> load-12-0.out\n\
             case $(wc -l < looks) in\n\
             1) echo 'JobId=12 JobState=PENDING ExitCode=0:0';;\n\
             2) exit 1;;\n\
             *) echo last >> load-12-0.out; echo 'JobState=FAILED ExitCode=4:0';;\n\
             esac",
        ),
        ("sacct", "exit 1"),
    ]);
    let line = [&["fleet", "slurm", "--ranks", "4", "--name", "load"], &RUN[..]].concat();
    let outcome = run(&session, &line);
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "first\nfirst\nfirst\nlast\n");
    assert!(outcome.stderr.contains("job 12 is submitted"), "{}", outcome.stderr);
    let mut dry = line.clone();
    dry.insert(2, "--dry-run");
    assert_eq!(read(&session, "script"), run(&session, &dry).stdout);
    assert_eq!(read(&session, "looks"), "show job -o 12\n".repeat(3));
}

/// Ctrl-C at the second look at a job in this state; what scancel is told.
fn cancelled_in(state: &str) -> String {
    let scontrol = format!(
        "echo look >> looks; [ $(wc -l < looks) != 2 ] || kill -INT $PPID\n\
         state={state}; [ ! -e cancelled ] || state=CANCELLED\n\
         echo \"JobId=12 JobState=$state ExitCode=0:0\""
    );
    let session = with_tools(&[
        ("sbatch", "cat > script; echo 12"),
        ("scontrol", &scontrol),
        ("scancel", "echo \"$*\" >> cancelled"),
    ]);
    let outcome = run(&session, &[&["fleet", "slurm", "--ranks", "4"], &RUN[..]].concat());
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    read(&session, "cancelled")
}

#[test]
fn a_slurm_job_that_waits_is_cancelled_and_one_that_runs_may_write() {
    assert_eq!(cancelled_in("PENDING"), "12\n");
    assert_eq!(cancelled_in("RUNNING"), "--signal=INT 12\n");
}

#[test]
fn a_script_that_is_kept_is_only_for_its_owner() {
    let session = with_tools(&[]);
    let line = [&["fleet", "slurm", "--ranks", "4", "--dry-run", "--out", "job.sh"], &RUN[..]];
    let outcome = run(&session, &line.concat());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    let mode = fs::metadata(session.folder.path().join("job.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut syntax = Command::new("bash");
    syntax.args(["-n", "job.sh"]).current_dir(session.folder.path());
    assert!(syntax.status().unwrap().success());
}

#[test]
fn what_sbatch_says_is_passed_on() {
    let session = with_tools(&[("sbatch", "echo 'invalid partition' >&2; exit 1")]);
    let line = [&["fleet", "slurm", "--ranks", "4"], &RUN[..]].concat();
    let outcome = run(&session, &line);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("invalid partition"), "{}", outcome.stderr);
}

/// Rank 0 is pending, then runs, then has ended with 5; the others are only there.
const KUBECTL: &str = r#"
echo "$*" >> calls
case "$1 $2" in
"create "*) cat > created; printf u-1;;
"apply "*) cat > applied;;
"logs "*) echo "rank 0 speaks" ;;
"get pods")
    echo look >> looks
    case $(wc -l < looks) in
    1) status='{"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}';;
    2) status='{"phase": "Running"}';;
    *) status='{"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 5}}}]}';;
    esac
    pod() { echo "{\"metadata\": {\"name\": \"load-$1-x\", \"annotations\": {\"batch.kubernetes.io/job-completion-index\": \"$1\"}}, \"status\": $2}"; }
    echo "{\"items\": [$(pod 1 '{"phase": "Running"}'), $(pod 0 "$status")]}";;
"get job") printf 0,2;;
esac"#;

#[test]
fn a_kubernetes_job_is_applied_and_rank_0_followed_to_its_exit_code() {
    let session = with_tools(&[("kubectl", KUBECTL)]);
    let line = ["fleet", "kubernetes", "--ranks", "3", "--image", "i", "--namespace", "bench"];
    let line = [&line[..], &["--name", "load"], &RUN[..]].concat();
    let outcome = run(&session, &line);
    assert_eq!(outcome.code, Some(5), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "rank 0 speaks\n");
    assert!(outcome.stderr.contains("rank 0 waits: ErrImagePull"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("ranks that failed: 0,2"), "{}", outcome.stderr);
    let calls = read(&session, "calls");
    assert!(calls.contains("logs -f load-0-x -n bench\n"), "{calls}");
    assert!(calls.contains("get pods -l batch.kubernetes.io/controller-uid=u-1 "), "{calls}");
    // The job rests until all is there.
    let verbs: Vec<&str> = calls.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(verbs[..4], ["create", "apply", "patch", "get"]);
    let created = read(&session, "created");
    assert!(created.contains("kind: \"Job\"") && created.contains("suspend: true"), "{created}");
    // The token goes on stdin, and nowhere else.
    let applied = read(&session, "applied");
    let (_, rest) = applied.split_once("token: \"").unwrap();
    let token = rest.split_once('"').unwrap().0;
    assert_eq!(token.len(), 64);
    assert!(token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    for text in [&calls, &outcome.stdout, &outcome.stderr] {
        assert!(!text.contains(token));
    }
    let mut dry = line.clone();
    dry.insert(2, "--dry-run");
    let printed = run(&session, &dry).stdout;
    assert!(!printed.contains("kind: \"Secret\"") && printed.contains("name: \"load-fleet\""));
}

const JOB: [&str; 7] = ["fleet", "kubernetes", "--ranks", "3", "--image", "i", "--name=load"];

#[test]
fn a_kubernetes_job_that_is_there_already_is_left_alone() {
    let kubectl = "echo \"$1\" >> calls; echo 'jobs \"load\" already exists' >&2; exit 1";
    let session = with_tools(&[("kubectl", kubectl)]);
    let outcome = run(&session, &[&JOB[..], &RUN].concat());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("already exists"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("kubectl delete job load, or choose another with --name"),
        "{}",
        outcome.stderr
    );
    assert_eq!(read(&session, "calls"), "create\n");
}

#[test]
fn a_kubernetes_job_without_what_it_needs_is_deleted() {
    let kubectl = "echo \"$1\" >> calls; [ $1 != apply ] || exit 1";
    let session = with_tools(&[("kubectl", kubectl)]);
    assert_eq!(run(&session, &[&JOB[..], &RUN].concat()).code, Some(1));
    assert_eq!(read(&session, "calls"), "create\napply\ndelete\n");
}

/// No pod of rank 0, ever; how it stands with the job is said by `job`.
fn without_pods(job: &str, at_look: &str) -> (Outcome, String) {
    let kubectl = format!(
        r#"
echo "$1 $2" >> calls
case "$1 $2" in
"create "*) printf u-1;;
"get pods") {at_look}; echo '{{"items": []}}';;
"get job") echo '{job}';;
"get events") echo '{{"items": [{{"lastTimestamp": "1", "message": "exceeded quota"}}]}}';;
esac"#
    );
    let session = with_tools(&[("kubectl", &kubectl)]);
    let outcome = run(&session, &[&JOB[..], &RUN].concat());
    let calls = read(&session, "calls");
    (outcome, calls)
}

#[test]
fn without_a_pod_it_is_said_why_and_the_user_can_stop() {
    let job = r#"{"metadata": {"uid": "u-1"}}"#;
    let (outcome, calls) = without_pods(job, "[ -e once ] && kill -INT $PPID; touch once");
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("rank 0 waits: exceeded quota"), "{}", outcome.stderr);
    assert_eq!(calls.matches("delete job").count(), 1, "{calls}");
    assert!(!calls.contains("logs"), "{calls}");
}

#[test]
fn a_job_that_fails_without_a_pod_is_not_waited_for() {
    let failed = r#"{"metadata": {"uid": "u-1"}, "status": {"conditions": [{"type": "Failed", "status": "True", "message": "too long"}]}}"#;
    let gone = "";
    for (job, expected) in
        [(failed, "the job has ended: Failed too long"), (gone, "the job was deleted")]
    {
        let (outcome, _) = without_pods(job, ":");
        assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
}

#[test]
fn no_secret_of_a_plan_is_carried_along() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/kubernetes");
    let plan = fs::read_to_string(folder.join("plan.toml")).unwrap();
    let session = with_tools(&[]);
    let header = "insecure = false\n[[target.headers]]\nname = \"Cookie\"\nvalue = \"SECRET\"";
    let table = [
        (plan.replace(":8000", ":8000?api_key=SECRET"), "the value of `?api_key`"),
        (plan.replace("insecure = false", header), "the value of header `Cookie`"),
    ];
    for (text, expected) in table {
        fs::write(session.folder.path().join("plan.toml"), text).unwrap();
        for engine in [&["kubernetes", "--image", "i"][..], &["ray"]] {
            let line = ["--ranks", "2", "--dry-run", "--plan", "plan.toml"];
            let outcome = run(&session, &[&["fleet"], engine, &line].concat());
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{engine:?}");
            assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
            assert!(!outcome.stderr.contains("SECRET"), "{}", outcome.stderr);
        }
    }
}

#[test]
fn the_rendered_example_is_what_is_rendered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/kubernetes");
    let plan = folder.join("plan.toml");
    let line = ["fleet", "kubernetes", "--ranks", "8", "--image", "registry.example/goodput:0.1"];
    let more = ["--dry-run", "--name", "load", "--namespace", "bench", "--create-namespace"];
    let rest = ["--claim", "results", "--api-key-secret", "llm/key", "--plan"];
    let session = with_tools(&[]);
    let plan = plan.to_str().unwrap();
    let outcome = run(&session, &[&line[..], &more, &rest, &[plan]].concat());
    let example = fs::read_to_string(folder.join("example.yaml")).unwrap();
    assert_eq!(outcome.stdout, example, "render it anew: integrations/kubernetes/validate.sh");
}

#[test]
fn the_driver_of_ray_is_fed_to_python_and_its_exit_code_passed_on() {
    let session = with_tools(&[("python9", "cat > driver.py; echo rank 0; exit 4")]);
    let line = ["fleet", "ray", "--ranks", "2", "--python", "python9"];
    let outcome = run(&session, &[&line[..], &RUN].concat());
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "rank 0\n");
    assert!(read(&session, "driver.py").contains("placement_group"));
    let line = ["fleet", "ray", "--ranks", "2", "--python", "no-such-python"];
    let outcome = run(&session, &[&line[..], &RUN].concat());
    assert_eq!(outcome.code, Some(1));
    let hint = "hint: choose a Python that has Ray with --python";
    assert!(outcome.stderr.contains(hint), "{}", outcome.stderr);
}

#[test]
fn the_driver_of_ray_holds_the_plan_itself() {
    let plan =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/kubernetes/plan.toml");
    let session = with_tools(&[]);
    let line = ["fleet", "ray", "--ranks", "2", "--dry-run", "--plan", plan.to_str().unwrap()];
    let driver = run(&session, &line).stdout;
    let (_, rest) = driver.split_once("r\"\"\"").unwrap();
    let asked = rest.split_once("\"\"\"").unwrap().0;
    let asked: serde_json::Value = serde_json::from_str(asked).unwrap();
    assert_eq!(asked["plan"], fs::read_to_string(&plan).unwrap());
    assert_eq!(asked["words"], serde_json::json!(["run", "--shard", "auto"]));
}

#[test]
fn a_job_of_ray_is_stopped_by_its_name_and_keeps_its_results() {
    // Ctrl-C comes before the cluster knows the job; it is followed until it is stopped.
    let ray = "echo \"$*\" >> calls\n\
        case $2 in\n\
        submit) kill -INT $PPID; while [ ! -e stopped ]; do sleep 0.1; done; exit 1;;\n\
        stop) [ -e tried ] && touch stopped; touch tried; [ -e stopped ];;\n\
        esac";
    let session = with_tools(&[("ray", ray)]);
    let line = ["fleet", "ray", "--ranks", "2", "--name", "load", "--job", "http://head:8265"];
    let line = [&line[..], &RUN].concat();
    let outcome = run(&session, &[&line[..], &["--out", "here"]].concat());
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--out /results/load"), "{}", outcome.stderr);
    let outcome = run(&session, &[&line[..], &["--out", "/there"]].concat());
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    let calls = read(&session, "calls");
    let (_, rest) = calls.split_once("--submission-id ").unwrap();
    let id = rest.split(' ').next().unwrap();
    assert!(id.starts_with("load-") && id.len() == 17, "{id}");
    let stop = format!("job stop --no-wait --address http://head:8265 {id}\n");
    assert_eq!(calls.matches(&stop).count(), 2, "{calls}");
}

#[test]
fn without_an_engine_nothing_is_guessed() {
    let session = Session::new();
    let mut command = session.command(&["fleet", "detect"]);
    let output = command.env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let mut command = session.command(&["fleet", "detect"]);
    command.env_clear().env("PMI_RANK", "1").env("PMI_SIZE", "3");
    let output = command.env("GOODPUT_RENDEZVOUS", "head:7").output().unwrap();
    assert_eq!(output.stdout, b"1/3 by PMI, rendezvous head, port 7\n");
}

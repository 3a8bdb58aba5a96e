//! Environments as engines make them, and what they say.

use proptest::prelude::*;

use super::*;

fn by(env: &[(&str, &str)]) -> Result<DetectedRank, LaunchError> {
    detect_rank(|name| {
        env.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
    })
}

fn lines(text: &str) -> Vec<(&str, &str)> {
    text.split(' ').map(|pair| pair.split_once('=').unwrap()).collect()
}

/// Shard, host, port and who says so, in one line.
fn shown(found: &DetectedRank) -> String {
    let host = found.rendezvous_host.as_deref().unwrap_or("-");
    let port = found.rendezvous_port.map_or("-".to_owned(), |port| port.to_string());
    format!("{} {host} {port} {}", found.shard, found.by)
}

#[test]
fn each_engine_is_understood() {
    let table = [
        (
            "SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=node[03-05,9],x1",
            "2/4 node03 - Slurm",
        ),
        // A step on fewer nodes than its job, with fewer tasks.
        (
            "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=3 SLURM_JOB_NODELIST=n[1-8] SLURM_STEP_NODELIST=n[7-8]",
            "1/2 n7 - Slurm",
        ),
        ("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0", "0/4 - - Slurm"),
        // The node that called srun is not the one of task 0.
        (
            "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_LAUNCH_NODE_IPADDR=10.0.0.9 SLURM_NODELIST=a,b",
            "0/2 a - Slurm",
        ),
        (
            "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=a,b GOODPUT_RENDEZVOUS=:7077",
            "1/2 a 7077 Slurm",
        ),
        (
            "JOB_COMPLETION_INDEX=3 GOODPUT_COMPLETIONS=8 GOODPUT_RENDEZVOUS=load-0.load:7077",
            "3/8 load-0.load 7077 Kubernetes",
        ),
        (
            "JOB_COMPLETION_INDEX=3 GOODPUT_COMPLETIONS=8 HOSTNAME=load-3",
            "3/8 load-0.load - Kubernetes",
        ),
        ("JOB_COMPLETION_INDEX=3 GOODPUT_COMPLETIONS=8 HOSTNAME=other", "3/8 - - Kubernetes"),
        (
            "GOODPUT_RAY_RANK=1 GOODPUT_RAY_SIZE=3 GOODPUT_RENDEZVOUS=10.0.0.1:5000",
            "1/3 10.0.0.1 5000 Ray",
        ),
        (
            "GOODPUT_RAY_RANK=1 GOODPUT_RAY_SIZE=3 GOODPUT_RENDEZVOUS=[fd00::1]:5000",
            "1/3 fd00::1 5000 Ray",
        ),
        ("GOODPUT_RAY_RANK=1 GOODPUT_RAY_SIZE=3 GOODPUT_RENDEZVOUS=fd00::1", "1/3 fd00::1 - Ray"),
        ("OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6", "5/6 - - Open MPI"),
        ("PMI_RANK=0 PMI_SIZE=2", "0/2 - - PMI"),
        ("RANK=7 WORLD_SIZE=8 MASTER_ADDR=head MASTER_PORT=29500", "7/8 head - RANK"),
    ];
    for (env, expected) in table {
        assert_eq!(shown(&by(&lines(env)).unwrap()), expected, "{env}");
    }
}

#[test]
fn several_engines_must_agree() {
    let table = [
        // srun --mpi=pmi2 sets both.
        (
            "SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_STEP_ID=0 PMI_RANK=1 PMI_SIZE=4",
            Ok("1/4 - - Slurm"),
        ),
        // mpirun in a job of four nodes: its daemons on the other three are a step of srun.
        (
            "SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[2-4] OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=16",
            Ok("5/16 - - Open MPI"),
        ),
        // The same where srun gives PMI's variables to every step.
        (
            "SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_STEP_ID=0 PMI_RANK=0 PMI_SIZE=3 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=16",
            Ok("5/16 - - Open MPI"),
        ),
        // MPICH's mpirun has its proxies on all nodes, likewise.
        (
            "SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0 PMI_RANK=13 PMI_SIZE=16",
            Ok("13/16 - - PMI"),
        ),
        (
            "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=0 RANK=2 WORLD_SIZE=4",
            Err("Slurm says that this is rank 0/4 (SLURM_PROCID), RANK that it is 2/4"),
        ),
        (
            "PMI_RANK=0 PMI_SIZE=4 RANK=0 WORLD_SIZE=8",
            Err("PMI says that this is rank 0/4 (PMI_RANK), RANK that it is 0/8 (RANK)"),
        ),
        // A job of one task, in which mpirun starts four.
        (
            "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_NODELIST=a OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4",
            Ok("2/4 - - Open MPI"),
        ),
        // The script of a job for four tasks, in which mpirun starts them.
        (
            "SLURM_PROCID=0 SLURM_NTASKS=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4",
            Ok("2/4 - - Open MPI"),
        ),
        // A Ray whose nodes Slurm has started.
        (
            "SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_STEP_ID=0 GOODPUT_RAY_RANK=0 GOODPUT_RAY_SIZE=8 GOODPUT_RENDEZVOUS=a:1",
            Ok("0/8 a 1 Ray"),
        ),
        (
            "JOB_COMPLETION_INDEX=1 GOODPUT_COMPLETIONS=2 GOODPUT_RAY_RANK=0 GOODPUT_RAY_SIZE=8",
            Err("Kubernetes says that this is rank 1/2 (JOB_COMPLETION_INDEX), Ray that it is 0/8"),
        ),
    ];
    for (env, expected) in table {
        match (by(&lines(env)), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(shown(&found), expected, "{env}"),
            (Err(failed), Err(expected)) => {
                let said = failed.to_string();
                assert!(said.contains(expected), "{env}: {said}");
            }
            (found, _) => panic!("{env}: {found:?}"),
        }
    }
}

#[test]
fn a_group_of_one_is_a_whole_run() {
    for env in ["SLURM_PROCID=0 SLURM_NTASKS=1", "RANK=0 WORLD_SIZE=1", "PMI_RANK=0 PMI_SIZE=1"] {
        assert_eq!(by(&lines(env)).unwrap().shard, Shard::WHOLE, "{env}");
    }
}

#[test]
fn what_says_too_little_or_nonsense_is_refused_by_name() {
    let table = [
        ("HOME=/root", "no scheduler variable in the environment"),
        ("RANK=", "no scheduler variable in the environment"),
        ("JOB_COMPLETION_INDEX=0", "GOODPUT_COMPLETIONS, the number of ranks"),
        ("RANK=0", "WORLD_SIZE, the number of ranks"),
        ("SLURM_PROCID=0 SLURM_NTASKS=4", "not one of its tasks"),
        ("PMI_RANK=4 PMI_SIZE=4", "PMI_RANK=4 and PMI_SIZE=4 do not give a rank"),
        ("RANK=0 WORLD_SIZE=65537", "do not give a rank"),
        ("RANK=-1 WORLD_SIZE=2", "RANK=`-1` is not a number"),
        ("RANK=0 WORLD_SIZE=two", "WORLD_SIZE=`two` is not a number"),
        ("PMI_RANK=0 PMI_SIZE=2 GOODPUT_RENDEZVOUS=host:0", "is not an address"),
        ("PMI_RANK=0 PMI_SIZE=2 GOODPUT_RENDEZVOUS=host:70000", "is not an address"),
        ("PMI_RANK=0 PMI_SIZE=2 GOODPUT_RENDEZVOUS=:", "is not an address"),
        ("PMI_RANK=0 PMI_SIZE=2 GOODPUT_RENDEZVOUS=[::1", "is not an address"),
        ("PMI_RANK=0 PMI_SIZE=2 GOODPUT_RENDEZVOUS=a;b", "is not an address"),
        (
            "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_JOB_NODELIST=n[",
            "does not name a node",
        ),
    ];
    for (env, expected) in table {
        let said = by(&lines(env)).unwrap_err().to_string();
        assert!(said.contains(expected), "{env}: {said}");
    }
}

#[test]
fn the_first_node_of_every_form() {
    let table = [
        ("vm", Some("vm")),
        ("a,b", Some("a")),
        ("node[03-05,9],x1", Some("node03")),
        ("node[9,03-05]", Some("node9")),
        ("n[1-2]-ib", Some("n1-ib")),
        ("r[1-2]n[00-31],x", Some("r1n00")),
        ("rack-1.dc_2", Some("rack-1.dc_2")),
        ("x1,node[03-05]", Some("x1")),
        ("[01-04]", Some("01")),
        ("", None),
        (",a", None),
        ("n[", None),
        ("n[]", None),
        ("n]", None),
        ("n[-3]", None),
        ("n[[1]]", None),
        ("a b", None),
    ];
    for (list, expected) in table {
        assert_eq!(first_node(list).as_deref(), expected, "{list}");
    }
}

proptest! {
    #[test]
    fn no_environment_panics(values in prop::collection::vec(".{0,12}", 8), ranks in 0..9u32) {
        let names = ["SLURM_STEP_NODELIST", "GOODPUT_RENDEZVOUS", "HOSTNAME", "MASTER_ADDR"];
        let env = |name: &str| match name {
            "SLURM_PROCID" | "JOB_COMPLETION_INDEX" => Some(ranks.to_string()),
            "SLURM_NTASKS" | "SLURM_STEP_ID" => Some("8".to_owned()),
            "GOODPUT_COMPLETIONS" => Some(values[0].clone()),
            name => names.iter().position(|known| *known == name).map(|at| values[at + 1].clone()),
        };
        let _ = detect_rank(env);
        let _ = first_node(&values[7]);
        let _ = host_and_port(&values[6]);
    }
}

//! `--shard auto`: the rank of this process and the number of ranks, as its launcher says.
//!
//! Asked in this order: Kubernetes, Ray (both set by our own launchers), Slurm, Open MPI, PMI,
//! `RANK`. What our launchers have set counts before what lies around (Ray is often started by
//! Slurm, whose variables its workers then have). Of the others, all that name more than one task
//! must say the same; where they do not, nothing is guessed, but that `mpirun` counts before Slurm.
//! A group of one says nothing against a larger one, and alone it is a whole run.

use goodput_model::Shard;

use crate::LaunchError;

/// Which rank this is, and where all meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedRank {
    /// Which of how many.
    pub shard: Shard,
    /// Where rank 0 listens, as far as the environment says.
    pub rendezvous_host: Option<String>,
    /// The port there, likewise.
    pub rendezvous_port: Option<u16>,
    /// Who says so.
    pub by: &'static str,
}

/// Who starts processes, and how it tells them who they are.
struct Launcher {
    name: &'static str,
    /// Variables with the rank, and with how many there are: the first that is set.
    rank: &'static str,
    size: &'static [&'static str],
    /// Whether the variables are there only because our launcher has set them.
    is_ours: bool,
}

const ENGINES: [Launcher; 6] = [
    Launcher {
        name: "Kubernetes",
        rank: "JOB_COMPLETION_INDEX",
        size: &["GOODPUT_COMPLETIONS"],
        is_ours: true,
    },
    Launcher { name: "Ray", rank: "GOODPUT_RAY_RANK", size: &["GOODPUT_RAY_SIZE"], is_ours: true },
    Launcher {
        name: "Slurm",
        rank: "SLURM_PROCID",
        size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        is_ours: false,
    },
    Launcher {
        name: "Open MPI",
        rank: "OMPI_COMM_WORLD_RANK",
        size: &["OMPI_COMM_WORLD_SIZE"],
        is_ours: false,
    },
    Launcher { name: "PMI", rank: "PMI_RANK", size: &["PMI_SIZE"], is_ours: false },
    Launcher { name: "RANK", rank: "RANK", size: &["WORLD_SIZE"], is_ours: false },
];

/// Who we are by an environment.
pub fn detect_rank(env: impl Fn(&str) -> Option<String>) -> Result<DetectedRank, LaunchError> {
    let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let mut said = Vec::new();
    let mut why_not = None;
    for engine in &ENGINES {
        match engine.detect_in(&env)? {
            Detection::Rank(shard) => said.push((engine, shard)),
            Detection::TooLittle(failed) => why_not = why_not.or(Some(failed)),
            Detection::Nothing => {}
        }
    }
    if said.iter().any(|(engine, _)| engine.is_ours) {
        said.retain(|(engine, _)| engine.is_ours);
    }
    if said.iter().any(|(_, shard)| shard.is_part()) {
        said.retain(|(_, shard)| shard.is_part());
    }
    drop_carrier_launcher(&mut said);
    let Some(&(engine, shard)) = said.first() else {
        return Err(why_not.unwrap_or_else(not_found_error));
    };
    if let Some((other, different)) = said.iter().find(|(_, said)| *said != shard) {
        return Err(LaunchError::usage(format!(
            "{} says that this is rank {shard} ({}), {} that it is {different} ({})",
            engine.name, engine.rank, other.name, other.rank
        ))
        .hint("unset the variables of the scheduler that does not apply, or write --shard K/N"));
    }
    let (rendezvous_host, rendezvous_port) = detect_rendezvous(engine.name, shard, &env)?;
    Ok(DetectedRank { shard, rendezvous_host, rendezvous_port, by: engine.name })
}

/// On other nodes `mpirun` has its daemons started by srun, and what they start has the variables of
/// the daemons' step, too. So where MPI says otherwise than Slurm, what Slurm says (srun may have said
/// it as PMI as well) is of the daemons.
fn drop_carrier_launcher(said: &mut Vec<(&Launcher, Shard)>) {
    let slurm = said.iter().find(|(engine, _)| engine.name == "Slurm").map(|(_, shard)| *shard);
    let Some(step) = slurm else { return };
    let is_mpi = |engine: &Launcher| ["Open MPI", "PMI"].contains(&engine.name);
    if said.iter().any(|(engine, shard)| is_mpi(engine) && *shard != step) {
        said.retain(|(_, shard)| *shard != step);
    }
}

/// What an engine's variables say.
enum Detection {
    /// Which of how many.
    Rank(Shard),
    /// They are set, but do not give a rank; the reason, in case no other launcher does.
    TooLittle(LaunchError),
    Nothing,
}

impl Launcher {
    fn detect_in(&self, env: &impl Fn(&str) -> Option<String>) -> Result<Detection, LaunchError> {
        let Some(rank) = env(self.rank) else { return Ok(Detection::Nothing) };
        let size = self.size.iter().find_map(|name| Some((*name, env(name)?)));
        let Some((name, size)) = size else {
            return Ok(Detection::TooLittle(self.incomplete_error()));
        };
        let number = |name: &str, text: &str| {
            text.trim().parse::<u32>().map_err(|_| {
                LaunchError::usage(format!("{name}=`{text}` is not a number"))
                    .hint("write --shard K/N")
            })
        };
        let (index, of) = (number(self.rank, &rank)?, number(name, &size)?);
        let shard = Shard::new(index, of).ok_or_else(|| {
            let most = Shard::MOST;
            LaunchError::usage(format!("{}={index} and {name}={of} do not give a rank", self.rank))
                .hint(format!("ranks are 0 to N-1, with N at most {most}; or write --shard K/N"))
        })?;
        // The script of a job has the variables of task 0, and is none.
        if self.name == "Slurm" && shard.is_part() && env("SLURM_STEP_ID").is_none() {
            return Ok(Detection::TooLittle(script_error(shard)));
        }
        Ok(Detection::Rank(shard))
    }

    fn incomplete_error(&self) -> LaunchError {
        let missing = self.size[0];
        LaunchError::usage(format!(
            "{} is set, but {missing}, the number of ranks, is not",
            self.rank
        ))
        .hint(format!("set {missing}, or write --shard K/N"))
    }
}

fn script_error(shard: Shard) -> LaunchError {
    let tasks = shard.count();
    LaunchError::usage(format!(
        "this is the batch script of a Slurm job with {tasks} tasks, not one of its tasks"
    ))
    .hint("start it with srun: `srun goodput … --shard auto`")
}

fn not_found_error() -> LaunchError {
    LaunchError::usage(
        "no scheduler variable in the environment gives a rank and the number of ranks",
    )
    .hint("start it with srun, mpirun or `goodput fleet …`, or write --shard K/N")
}

/// Where ranks meet. `GOODPUT_RENDEZVOUS` (`HOST`, `HOST:PORT`, or `:PORT` where the engine knows the
/// host) says it for every engine.
fn detect_rendezvous(
    engine: &str,
    shard: Shard,
    env: &impl Fn(&str) -> Option<String>,
) -> Result<(Option<String>, Option<u16>), LaunchError> {
    let (mut host, mut port) = (None, None);
    if let Some(text) = env("GOODPUT_RENDEZVOUS") {
        (host, port) = host_and_port(text.trim()).ok_or_else(|| {
            LaunchError::usage(format!("GOODPUT_RENDEZVOUS=`{text}` is not an address"))
                .hint("write HOST:PORT, as in `node03:7077`")
        })?;
    }
    if host.is_none() {
        host = match engine {
            "Slurm" => slurm_host(env)?,
            "Kubernetes" => kubernetes_host(shard, env),
            "RANK" => env("MASTER_ADDR").map(|host| host.trim().to_owned()),
            _ => None,
        };
    }
    Ok((host, port))
}

/// `HOST`, `HOST:PORT`, `[V6]:PORT` or `:PORT` in its parts.
fn host_and_port(text: &str) -> Option<(Option<String>, Option<u16>)> {
    let is_name = |host: &str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:%".contains(&byte);
        !host.is_empty() && host.bytes().all(is_fit)
    };
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
        (host, port)
    } else {
        match text.split_once(':') {
            // More than one colon without brackets: an address of IPv6.
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = port.map(|port| port.parse::<u16>().ok().filter(|port| *port > 0));
    match (host, port) {
        (_, Some(None)) => None,
        ("", Some(port)) => Some((None, port)),
        (host, port) => is_name(host).then(|| (Some(host.to_owned()), port.flatten())),
    }
}

/// The first node of the step, where task 0 runs.
fn slurm_host(env: &impl Fn(&str) -> Option<String>) -> Result<Option<String>, LaunchError> {
    for name in ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"] {
        let Some(list) = env(name) else { continue };
        let node = first_node(list.trim());
        return node.map(Some).ok_or_else(|| {
            LaunchError::usage(format!("{name}=`{list}` does not name a node"))
                .hint("write --rendezvous HOST:PORT")
        });
    }
    Ok(None)
}

/// The first name of a list as Slurm writes it: `node[03-05,9],x1` is node03, node04, node05, node9
/// and x1, and `r[1-2]n[0-3]` has two sets in one name.
fn first_node(list: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = list;
    loop {
        let end = rest.find([',', '[', ']']).unwrap_or(rest.len());
        name.push_str(&rest[..end]);
        match rest[end..].chars().next() {
            None | Some(',') => break,
            Some('[') => {
                let (set, after) = rest[end + 1..].split_once(']')?;
                let first = set.split([',', '-']).next()?;
                if first.is_empty() || !first.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                    return None;
                }
                name.push_str(first);
                rest = after;
            }
            Some(_) => return None,
        }
    }
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_fit)).then_some(name)
}

/// The pod of rank 0, where job and headless service have one name, as in our manifests: a pod is
/// called after its job and its index.
fn kubernetes_host(shard: Shard, env: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let pod = env("HOSTNAME")?;
    let job = pod.trim().strip_suffix(&format!("-{}", shard.index()))?;
    (!job.is_empty()).then(|| format!("{job}-0.{job}"))
}

#[cfg(test)]
mod tests;

//! The CPU limit of the container this process lives in, in either version of control groups.

use std::fs;
use std::path::{Path, PathBuf};

use goodput_model::{Nanos, Throttled};

/// Processors' worth of time that this process's control groups allow; `None` means no limit.
pub fn cpu_quota() -> Option<f64> {
    Some(CgroupLimit::find(Path::new("/proc"), Path::new("/sys/fs/cgroup"))?.quota)
}

/// The control group with the tightest limit: this process's own or one around it.
#[derive(Debug)]
pub(crate) struct CgroupLimit {
    folder: PathBuf,
    quota: f64,
}

impl CgroupLimit {
    pub(crate) fn find(proc: &Path, root: &Path) -> Option<Self> {
        let list = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        let mut found = Vec::new();
        for line in list.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let base = match controllers {
                "" => root.to_owned(),
                names if names.split(',').any(|name| name == "cpu") => {
                    let together = root.join(names);
                    if together.is_dir() { together } else { root.join("cpu") }
                }
                _ => continue,
            };
            // Inside a container the path may name a group that is not shown here: the root is it.
            let inner = base.join(path.trim_start_matches('/'));
            let groups = inner.ancestors().take_while(|folder| folder.starts_with(&base));
            let limit = |folder: &Path| {
                Some(Self { folder: folder.to_owned(), quota: read_quota(folder)? })
            };
            found.extend(groups.filter_map(limit));
        }
        found.into_iter().min_by(|a, b| a.quota.total_cmp(&b.quota))
    }

    /// What the limit has cost.
    pub(crate) fn throttled_time(&self) -> Option<Throttled> {
        let text = fs::read_to_string(self.folder.join("cpu.stat")).ok()?;
        let field = |name: &str| {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let micros = field("throttled_usec").map(Nanos::from_micros);
        let time = micros.or_else(|| field("throttled_time").map(Nanos))?;
        Some(Throttled { periods: field("nr_throttled")?, time })
    }
}

fn read_quota(folder: &Path) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(line) => {
            let mut words = line.split_whitespace();
            (number(words.next()?)?, number(words.next()?)?)
        }
        None => (number(&read("cpu.cfs_quota_us")?)?, number(&read("cpu.cfs_period_us")?)?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files below a scratch folder: (path, text).
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn look(tree: &tempfile::TempDir) -> (Option<f64>, Option<Throttled>) {
        let limit = CgroupLimit::find(&tree.path().join("proc"), &tree.path().join("cg"));
        (limit.as_ref().map(|limit| limit.quota), limit.and_then(|limit| limit.throttled_time()))
    }

    #[test]
    fn both_versions_and_the_groups_around() {
        let v2 = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("cg/a/cpu.max", "150000 100000\n"),
            ("cg/a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 3\nthrottled_usec 7000\n"),
            ("cg/a/b/cpu.max", "max 100000\n"),
        ]);
        let cost = Throttled { periods: 3, time: Nanos::from_millis(7) };
        assert_eq!(look(&v2), (Some(1.5), Some(cost)));
        let v1 = tree(&[
            ("proc/self/cgroup", "4:memory:/x\n1:cpu,cpuacct:/pod\n0::/\n"),
            ("cg/cpu,cpuacct/pod/cpu.cfs_quota_us", "50000\n"),
            ("cg/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n"),
            (
                "cg/cpu,cpuacct/pod/cpu.stat",
                "nr_periods 9\nnr_throttled 3\nthrottled_time 7000000\n",
            ),
            ("cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(look(&v1), (Some(0.5), Some(cost)));
    }

    #[test]
    fn no_limit_and_nonsense_are_no_limit() {
        let free = tree(&[("proc/self/cgroup", "0::/\n"), ("cg/cpu.stat", "usage_usec 5\n")]);
        assert_eq!(look(&free), (None, None));
        let odd = tree(&[
            ("proc/self/cgroup", "\nx\n0::/gone\n1:cpu:/\n"),
            ("cg/cpu.max", "lots\n"),
            ("cg/cpu/cpu.cfs_quota_us", "\u{0}\n"),
        ]);
        assert_eq!(look(&odd), (None, None));
        assert_eq!(look(&tree(&[])), (None, None));
    }
}

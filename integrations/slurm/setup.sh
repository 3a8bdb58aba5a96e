#!/usr/bin/env bash
# A Slurm of one host, for tests: controller, one node, Debian's packages, no systemd.
# Nothing in /etc is touched: all of it lies in one folder, and only who has SLURM_CONF sees it.
#
#   sudo integrations/slurm/setup.sh [DIR]    set up and start; again: whatever is missing
#   export SLURM_CONF=DIR/slurm.conf
#   srun -n 4 goodput fleet detect
#   sudo integrations/slurm/stop.sh [DIR]     stop it and remove the folder
#
# The node claims more processors than it has (TASKS, 16 unless set), so that many tasks run side by
# side: right for a test of who starts what, wrong for a measurement.
set -euo pipefail

dir=${1:-/var/lib/goodput-slurm}
tasks=${TASKS:-16}
[ "$(id -u)" = 0 ] || { echo "error: it starts daemons, and must be root" >&2; exit 1; }

if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null
fi

host=$(hostname -s)
# The name that Slurm gives as the first node is where the ranks meet: it must mean this host.
if ! getent hosts "$host" >/dev/null; then
    echo "error: \`$host\` does not resolve; add \`127.0.1.1 $host\` to /etc/hosts" >&2
    exit 1
fi

mkdir -p "$dir"/{state,spool,log}
chmod 755 "$dir"
if [ ! -s "$dir/munge.key" ]; then
    (umask 077 && head -c 1024 /dev/urandom >"$dir/munge.key")
fi

cat >"$dir/slurm.conf" <<CONF
ClusterName=goodput
SlurmctldHost=$host
SlurmUser=root
SlurmctldPort=${CTL_PORT:-16817}
SlurmdPort=${NODE_PORT:-16818}
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=60
KillWait=10
MinJobAge=300
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
NodeName=$host CPUs=$tasks State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=YES:4
CONF
export SLURM_CONF="$dir/slurm.conf"

# Whether the process of this pid file is alive.
runs() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }

if ! runs "$dir/munged.pid"; then
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/log/munged.log" --seed-file="$dir/munge.seed"
fi
runs "$dir/slurmctld.pid" || slurmctld
runs "$dir/slurmd.pid" || slurmd

for _ in $(seq 60); do
    if sinfo -h -o %T 2>/dev/null | grep -Eq '^(idle|mixed|allocated)'; then
        echo "Slurm runs. export SLURM_CONF=$SLURM_CONF"
        exit 0
    fi
    sleep 0.5
done
echo "error: the node did not come up; see $dir/log" >&2
sinfo >&2 || true
tail -n 5 "$dir"/log/*.log >&2 || true
exit 1

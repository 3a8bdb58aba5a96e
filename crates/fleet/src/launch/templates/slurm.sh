#!/bin/bash
#SBATCH --job-name=@name@
#SBATCH --ntasks=@ranks@
#SBATCH --cpus-per-task=@cpus@
#SBATCH --time=@minutes@
#SBATCH --output=@name@-%j.out
#SBATCH --no-kill
#SBATCH --no-requeue
@options@# Written by goodput @version@. Every task finds out who it is (--shard auto).
set -eu

# By this the ranks know each other: made here and now, handed on by srun in the environment alone.
if [ -z "${GOODPUT_FLEET_TOKEN:-}" ]; then
    GOODPUT_FLEET_TOKEN=$(head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
fi
export GOODPUT_FLEET_TOKEN
# Rank 0 runs on the first node; this is its port there.
export GOODPUT_RENDEZVOUS=":@port@"
program=${GOODPUT_BIN:-@program@}

# A rank or a node that is lost must not end the others: they go on, and what is missing is named.
exec srun --ntasks=@ranks@ --cpus-per-task=@cpus@ --export=ALL \
    --kill-on-bad-exit=0 --wait=0 --no-kill --output=@name@-%j-%t.out \
    "$program" @arguments@

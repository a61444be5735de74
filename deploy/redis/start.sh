#!/bin/sh
# Starts the relay's Redis with the users of users.acl. Their passwords come in as REDIS_PASSWORD_<USER> and end here: Redis is
# given their SHA-256 in the ACL file, and no process has them among its arguments. REDIS_MAXMEMORY is optional; arguments
# go on to redis-server. With REDIS_CLUSTER_HOSTNAME, under which the others and the services reach it, it is a node of a Redis
# Cluster, by cluster.conf, with the users of cluster-users.acl, too, and starts after REDIS_CLUSTER_START_WAIT seconds. Exit code
# 78: a password is missing.
set -eu
umask 077

files=$(cd "$(dirname "$0")" && pwd)
hostname=${REDIS_CLUSTER_HOSTNAME:-}
# What sed makes of the users' rules.
rules() {
  if [ -n "$hostname" ]; then sed "$1" "$files/users.acl" "$files/cluster-users.acl"; else sed "$1" "$files/users.acl"; fi
}
variables=$(rules '/^#/!s/.*#\(REDIS_PASSWORD_[A-Z_]*\).*/\1/p; d')

missing=
for variable in $variables; do
  eval "password=\${$variable:-}"
  [ -n "$password" ] || missing="$missing
  $variable is required"
  if [ "$variable" = REDIS_PASSWORD_REPLICA ]; then replica=$password; fi
  export "$variable=$(printf %s "$password" | sha256sum | cut -c 1-64)"
done
if [ -n "$missing" ]; then
  echo "Invalid settings:$missing" >&2
  exit 78
fi

# A folder of its own, so that Redis finds no dump of another there; made anew, since a tmpfs can outlive the container.
folder=${TMPDIR:-/tmp}/agent-relay-redis
# Each of several on one machine has a port of its own.
case " $* " in *" --port "*) folder=$folder-$(printf '%s ' "$@" | sed 's/.*--port \([0-9]*\).*/\1/') ;; esac
rm -rf "$folder"
mkdir "$folder"
rules '' | awk '
  /^#/ || !NF { next }
  { for (i = 1; i <= NF; i++) if ($i ~ /^#REDIS_PASSWORD_/) $i = "#" ENVIRON[substr($i, 2)] }
  { $1 = $1; printf "%s%s", ($1 == "user" ? "\n" : " "), $0 }
  END { print "" }
' >"$folder/users.acl"
if [ -n "$hostname" ]; then
  # The one password that Redis itself says to another: in a file of its own.
  printf 'masterauth "%s"\n' "$(printf %s "$replica" | sed 's/[\\"]/\\&/g')" >"$folder/replica.conf"
  set -- --include "$files/cluster.conf" --include "$folder/replica.conf" \
    --cluster-announce-hostname "$hostname" "$@"
fi
unset password replica $variables

if [ -n "$hostname" ]; then
  # A primary that died and comes back before its replica took over comes back empty, and the replica follows it: what both had
  # would be gone. So the place stays free for longer than a failover takes. Whoever ends it meanwhile need not wait.
  trap 'exit 143' TERM INT
  sleep "${REDIS_CLUSTER_START_WAIT:-15}" &
  wait $!
  trap - TERM INT
fi

exec redis-server "$files/redis.conf" --dir "$folder" --aclfile "$folder/users.acl" \
  --maxmemory "${REDIS_MAXMEMORY:-256mb}" "$@"

#!/bin/sh
# Starts the edge: writes the files in /tmp that nginx.conf includes, says which services nginx will not find, and runs nginx.
set -eu

# nginx asks all name servers in turn, but only the first of resolv.conf has to know the names of containers.
# It cannot use an address with a zone.
server=$(awk '
  { sub(/\r$/, "") }
  $1 == "nameserver" && $2 ~ /^[0-9A-Fa-f.:]+$/ { print $2 ~ /:/ ? "[" $2 "]" : $2; exit }
' /etc/resolv.conf 2> /dev/null) || :
if [ -z "$server" ]; then
  # As the C library does.
  server=127.0.0.1
  echo "edge: /etc/resolv.conf names no name server that nginx can use: the edge asks $server. Set dns of the edge." >&2
fi
echo "resolver $server valid=1s;" > /tmp/edge-resolver.conf

# Each port once more for IPv6, unless nginx cannot open it: some kernels have no IPv6.
cat /etc/nginx/nginx.conf /etc/nginx/edge/*.conf 2> /dev/null |
  sed -n 's/^ *listen \([0-9][0-9]*[ ;]\)/listen [::]:\1/p' > /tmp/edge-listen.conf
nginx -tq 2> /dev/null || : > /tmp/edge-listen.conf

# With a dot at its end a name is looked up as nginx does: without /etc/hosts and without search domains.
for name in gateway ws-connector ops-reporting; do
  getent hosts "$name." > /dev/null ||
    echo "edge: The name $name does not resolve: its requests get 503. Check that $name runs in a network of the edge." >&2
done &

exec nginx -g "daemon off;"

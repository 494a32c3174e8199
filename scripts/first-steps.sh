#!/usr/bin/env bash
# Prints the first three requests that a newcomer sends, to the ports that the flags of serve name; it starts nothing.
set -eo pipefail
http=8080 https=8443 admin=9080
while [ $# -gt 0 ]; do
  word=$1
  case $word in --*=*) set -- "${word%%=*}" "${word#*=}" "${@:2}" ;; esac
  case $1 in
    --http) http=${2##*:} ;;
    --https) https=${2##*:} ;;
    --admin) admin=${2##*:} ;;
  esac
  shift
done
cat <<EOF

Proxied sites are on http://127.0.0.1:$http and https://127.0.0.1:$https. In a browser, http://127.0.0.1:$admin has the web UI,
and http://127.0.0.1:$admin/docs the reference of the management API. Or in another terminal, with an application on
port 3000 (none at hand? \`python3 -m http.server 3000 --bind 127.0.0.1\`):

  curl http://127.0.0.1:$admin/api/v1/services -H 'content-type: application/json' \\
    -d '{"name":"hello","targets":[{"host":"127.0.0.1","port":3000}]}'

  curl http://127.0.0.1:$admin/api/v1/routes -H 'content-type: application/json' \\
    -d '{"name":"hello","service_id":"hello","hosts":["hello.localhost"]}'

  curl -i http://127.0.0.1:$http/ -H 'Host: hello.localhost'

Ctrl+C stops the gateway; what was configured stays in the data directory.

EOF

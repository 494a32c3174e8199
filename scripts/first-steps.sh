#!/usr/bin/env bash
# Prints the first three requests that a newcomer sends; it starts nothing.
cat <<'EOF'

Proxied sites are on http://127.0.0.1:8080 and https://127.0.0.1:8443. In a browser, http://127.0.0.1:9080 has the web UI,
and http://127.0.0.1:9080/docs the reference of the management API. Or in another terminal, with an application on
port 3000 (none at hand? `python3 -m http.server 3000`):

  curl http://127.0.0.1:9080/api/v1/services -H 'content-type: application/json' \
    -d '{"name":"hello","targets":[{"host":"127.0.0.1","port":3000}]}'

  curl http://127.0.0.1:9080/api/v1/routes -H 'content-type: application/json' \
    -d '{"name":"hello","service_id":"hello","hosts":["hello.localhost"]}'

  curl -i http://127.0.0.1:8080/ -H 'Host: hello.localhost'

Ctrl+C stops the gateway; what was configured stays in the data directory.

EOF

#!/usr/bin/env bash
# Prints the first three requests that a newcomer sends; it starts nothing.
cat <<'EOF'
The management API and the web UI are on http://127.0.0.1:9080, proxied sites on http://127.0.0.1:8080.
In another terminal, with your application on port 3000:

  curl http://127.0.0.1:9080/api/v1/services -H 'content-type: application/json' \
    -d '{"name":"hello","protocol":"http","targets":[{"host":"127.0.0.1","port":3000}]}'

  curl http://127.0.0.1:9080/api/v1/routes -H 'content-type: application/json' \
    -d '{"name":"hello","service_id":"hello","hosts":["hello.localhost"]}'

  curl http://127.0.0.1:8080/ -H 'Host: hello.localhost'

EOF

# How Sluice is set up, run, checked, tested, built and measured. Every target works right after `git clone`.

SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.bun/bin:$(PATH)

BUN := .bun/bin/bun
DATA_DIR ?= ./data
# More words for the program that `make run`, `make test` or `make bench` starts: make bench ARGS="--quick"
ARGS ?=
# What `make test` runs, and how many files at the same time: they wait more than they compute.
TESTS ?= ./tests
PROCESSES ?= 2
# Of a test. Bun gives 5 s to the processes that it starts for --parallel, whatever tests/support/preload.ts sets.
TEST_TIMEOUT_MS = 900000
BUN_TEST = $(BUN) test --parallel=$(PROCESSES) --timeout=$(TEST_TIMEOUT_MS)

SOURCES = $(shell find src drizzle -type f 2>/dev/null)
# The schemas of the model stand in the bundle.
UI_SOURCES = $(shell find src/ui src/model -type f 2>/dev/null)

#? help: Show this list
.PHONY: help
help: Makefile
	@sed -n 's/^#?//p' $< | sed -e 's/^\( [a-z0-9-]*\): /\1|/' | awk -F'|' '{ printf " make%-12s %s\n", $$1, $$2 }'

#? setup: Install the pinned Bun into .bun/ and the packages of bun.lock; a no-op when done
.PHONY: setup
setup: node_modules/.setup-done $(BUN)
	@:

node_modules/.setup-done: package.json bun.lock scripts/setup.sh
	@scripts/setup.sh

# Reached only when somebody removed .bun/ but left node_modules/ in place.
$(BUN): | node_modules/.setup-done
	@scripts/setup.sh

#? run: Serve from source, with ./data as the data directory
.PHONY: run
run: setup dist/ui/embedded.js
	@SLUICE_FIRST_STEPS=1 exec $(BUN) src/main.ts serve --data-dir $(DATA_DIR) $(ARGS)

#? check: Format, lint, dead code, types, architecture and unit tests, in under a minute (-k shows all that is wrong)
.PHONY: check check-format check-lint check-dead check-types check-api-types check-unit
CHECKS = check-format check-unit check-lint check-dead check-types
# Beside each other, each with its output in one piece: tests wait, and Biome and knip load on one core what they use on two.
check: setup
	@$(MAKE) --no-print-directory --jobs=$(PROCESSES) $(if $(filter output-sync,$(.FEATURES)),--output-sync) $(CHECKS)

check-format: setup
	$(BUN) fmt --check

check-lint: check-api-types
	$(BUN) run --silent biome lint --error-on-warnings

# Files, exports and packages that nothing uses, see knip.jsonc.
check-dead: check-api-types
	$(BUN) node_modules/knip/bin/knip.js --treat-config-hints-as-errors

check-types: check-api-types
	$(BUN) check

# Writes src/ui/api/schema.d.ts, which is not kept.
check-api-types: setup
	$(BUN) scripts/api-types.ts --check

# Most of the time of a file is that of loading its modules, of which the files of a process share one copy here. Our modules
# have no state (see the code style); `make test` gives each file its own.
check-unit: setup
	$(BUN_TEST) --no-isolate $(ARGS) ./tests/architecture.test.ts ./tests/unit

#? fmt: Rewrite what `make check` would call badly formatted
.PHONY: fmt
fmt: setup
	$(BUN) fmt

#? migration: Write the next step of the database after a change of the model (NAME=what_changes)
.PHONY: migration
migration: setup
	@$(BUN) scripts/migration.ts $(NAME)

#? test: All tests that need neither root nor another program (TESTS=./tests/thorough for some of them)
.PHONY: test
test: export SLUICE_TEST_BINARY = $(CURDIR)/dist/sluice
test: build
	@echo "gateways start from $$SLUICE_TEST_BINARY: $$($$SLUICE_TEST_BINARY version)"
	$(BUN_TEST) --path-ignore-patterns 'tests/e2e/**' $(ARGS) $(TESTS)

#? reading-set: Print which files a reader of one file has to know, with types (FILE=src/control/change.ts ARGS=files)
.PHONY: reading-set
reading-set: setup
	@$(BUN) scripts/reading-set.ts "$(FILE)" $(ARGS)

#? fuzz: Try parsers, router and imports with a million random inputs (ARGS="--cases N --seed N --only NAME")
.PHONY: fuzz
fuzz: setup
	@$(BUN) tests/fuzz/main.ts $(ARGS)

#? soak: Traffic of every kind for 20 minutes; fails when a request does or memory grows (ARGS="--minutes N")
.PHONY: soak
soak: build
	@$(BUN) tests/soak/main.ts $(ARGS)

#? chaos: A fleet under random faults for 2 minutes; fails with the seed and the broken promise (ARGS="--seed N --runs N")
.PHONY: chaos
chaos: build
	@scripts/debian-packages.sh postgresql faketime
	@$(BUN) tests/chaos/main.ts $(ARGS)

#? test-e2e: Build the executable and test it with nginx, curl, Redis and Chromium (installs them when root)
.PHONY: test-e2e
test-e2e: export SLUICE_TEST_BINARY = $(CURDIR)/dist/sluice
test-e2e: build
	@scripts/debian-packages.sh pebble bind9 nginx haproxy caddy chromium chromium-headless-shell openssl libnss3-tools ca-certificates curl nghttp2-client ngtcp2-client postgresql pgbouncer podman redis-server redis-tools slapd prometheus ansible-core zsh fish mandoc crowdsec fail2ban slowhttptest faketime nodejs python3 golang-go golang-google-grpc-dev apache2 cockpit-ws git mosquitto rclone syncthing transmission-daemon ruby skopeo dpkg systemd golang-github-masterminds-sprig-dev golang-gopkg-yaml.v3-dev apache2-utils apt aria2 docker-registry ffmpeg netcat-openbsd wget subversion libapache2-mod-svn
	@scripts/test-e2e.sh $(ARGS)

#? test-fleet: Test fleets of gateways under faults, with 100 kills and more; CI runs fewer (installs PostgreSQL when root)
.PHONY: test-fleet
test-fleet: export SLUICE_TEST_BINARY = $(CURDIR)/dist/sluice
test-fleet: build
	@scripts/debian-packages.sh postgresql pgbouncer faketime
	SLUICE_FLEET_KILLS=$${SLUICE_FLEET_KILLS:-100} $(BUN) test $(ARGS) ./tests/e2e/fleet

#? build: Compile dist/sluice, one executable with everything inside
.PHONY: build
build: dist/sluice

# All entry points must be named, or `new Worker` finds no module at run time. --bytecode needs --format=esm for
# top-level await. With --splitting a start does not read what is imported at first use only. Identifiers stay as
# written, because Elysia reads the source text of its handlers. The executable must not take settings from a .env or
# bunfig.toml that happens to lie in the directory it is started from. Bytecode for functions inside of functions adds
# 9 MB and makes no start faster.
BUILD_FLAGS = --compile --bytecode --bytecode-depth=1 --format=esm --splitting --minify-whitespace --minify-syntax \
	--no-compile-autoload-dotenv --no-compile-autoload-bunfig

dist/sluice: $(SOURCES) dist/ui/embedded.js dist/packed/recheck.js package.json bun.lock tsconfig.json | setup
	@$(BUN) scripts/api-types.ts
	$(BUN) build $(BUILD_FLAGS) src/main.ts src/worker.ts src/importer.ts src/plugin-reader.ts src/regex-checker.ts --outfile dist/sluice

# What is large and seldom needed is compressed in the executable.
dist/packed/recheck.js: package.json bun.lock scripts/packed-files.ts | setup
	@$(BUN) scripts/packed-files.ts

#? release: Executables for all systems, sums, licences and installer into dist/release (ARGS="--only linux-x64")
.PHONY: release
release: dist/ui/embedded.js dist/packed/recheck.js | setup
	@$(BUN) scripts/api-types.ts
	BUILD_FLAGS="$(BUILD_FLAGS)" $(BUN) scripts/release.ts $(ARGS)

#? image: The container image for x64 and arm64 from dist/release into dist/image, without a daemon (ARGS="--only x64")
.PHONY: image
image: setup
	@$(BUN) scripts/image.ts $(ARGS)

#? packages: Debian packages and a Homebrew formula from dist/release into dist/packages (ARGS="--only deb --url URL")
.PHONY: packages
packages: setup
	@$(BUN) scripts/packages.ts $(ARGS)

#? publish: Push and sign what was built, create the release (ARGS="--tag v1.2.3 --image ghcr.io/you/sluice --dry-run")
.PHONY: publish
publish:
	@scripts/publish.sh $(ARGS)

#? ui: Bundle the web UI into dist/ui/, which `make run` and `make build` do by themselves
.PHONY: ui
ui: dist/ui/embedded.js

dist/ui/embedded.js: $(UI_SOURCES) package.json bun.lock scripts/build-ui.ts | setup
	@$(BUN) scripts/build-ui.ts

#? ui-dev: Serve the web UI with hot reload on port 9081, against a gateway that runs (ARGS="--gateway URL")
.PHONY: ui-dev
ui-dev: setup
	@$(BUN) scripts/ui-dev.ts $(ARGS)

#? screenshots: Screenshots of every page in light and dark into dist/screenshots (ARGS=--guide: those of docs/web-ui.md)
.PHONY: screenshots
screenshots: build
	@scripts/debian-packages.sh chromium chromium-headless-shell
	@$(BUN) tests/screenshots/main.ts $(ARGS)

#? api-types: Write the types that the web UI calls the API with anew
.PHONY: api-types
api-types: setup
	$(BUN) scripts/api-types.ts

#? client: Write the npm package @sluice/client, the API with types, into dist/client
.PHONY: client
client: setup
	$(BUN) scripts/client.ts

#? bench: Measure against nginx, HAProxy and Caddy, write docs/benchmarks.md (ARGS=--quick for fewer rounds)
.PHONY: bench
bench: build
	@scripts/debian-packages.sh nginx haproxy caddy wrk nghttp2-client openssl
	BUILD_FLAGS="$(BUILD_FLAGS)" $(BUN) tests/bench/main.ts $(ARGS)

#? bench-scale: Measure 10,000 routes, start-up times and memory
.PHONY: bench-scale
bench-scale: build
	@scripts/debian-packages.sh wrk nginx
	$(BUN) tests/bench/scale.ts $(ARGS)

#? bench-fleet: Measure fleets of three and ten nodes over PostgreSQL, and what faults of the database cost
.PHONY: bench-fleet
bench-fleet: build
	@scripts/debian-packages.sh postgresql
	$(BUN) tests/bench/fleet.ts $(ARGS)

#? bench-fleet-simulation: Simulate fleets of up to 1,000 nodes, flat and behind relays, with constants measured before
.PHONY: bench-fleet-simulation
bench-fleet-simulation: build
	@scripts/debian-packages.sh postgresql
	$(BUN) tests/bench/fleet-simulation.ts $(ARGS)

#? bench-counters: Measure what limits over several nodes cost with a Redis server
.PHONY: bench-counters
bench-counters: setup
	@scripts/debian-packages.sh redis-server redis-tools
	$(BUN) tests/bench/counters.ts $(ARGS)

#? bench-cache: Measure lookups, pauses and hit ratios of the response cache in shared memory
.PHONY: bench-cache
bench-cache: setup
	$(BUN) tests/bench/cache.ts $(ARGS)

#? docs: Write docs/configuration.md, docs/plugins/ and badges anew from schemas and package.json
.PHONY: docs
docs: setup
	$(BUN) scripts/configuration-reference.ts >docs/configuration.md
	$(BUN) scripts/plugin-reference.ts
	$(BUN) scripts/request-life.ts
	$(BUN) scripts/migrating.ts
	$(BUN) scripts/badges.ts
	$(BUN) fmt docs/configuration.md docs/plugins docs/request-life.md docs/migrating.md

#? monitoring: Write the Grafana dashboard and the alert rules into examples/monitoring
.PHONY: monitoring
monitoring: setup
	$(BUN) scripts/monitoring.ts

#? plugin-types: Write the npm package @sluice/plugin, types for editors, into dist/plugin-types
.PHONY: plugin-types
plugin-types: setup
	@$(BUN) scripts/plugin-types.ts

#? docs-site: Build the documentation as static pages with search into dist/docs-site (fetches VitePress from the npm registry)
.PHONY: docs-site
docs-site: setup
	@cd scripts/docs-site && ../../$(BUN) install --frozen-lockfile --silent && node node_modules/vitepress/bin/vitepress.js build . >/dev/null

#? first-minute: Record the first commands of the README with the executable, into docs/images/first-minute.svg
.PHONY: first-minute
first-minute: build
	@$(BUN) scripts/first-minute.ts

#? clean: Remove what was built; packages, Bun and ./data stay
.PHONY: clean
clean:
	rm -rf dist

// Requirements of tests beside Bun and the sources; a test without one of its requirements is skipped with the reason in its name.
import { afterAll, afterEach, beforeAll, beforeEach, describe, type Test, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { ownAddress } from "./own-address.ts";
import { executable } from "./executable.ts";

/** Programs, with the Debian package that brings each. */
const PACKAGES = {
  ab: "apache2-utils",
  "ansible-playbook": "ansible-core",
  apache2: "apache2",
  "apt-get": "apt",
  aria2c: "aria2",
  caddy: "caddy",
  certutil: "libnss3-tools",
  chromium: "chromium",
  crowdsec: "crowdsec",
  "cockpit-ws": "cockpit-ws",
  curl: "curl",
  "docker-registry": "docker-registry",
  "dpkg-deb": "dpkg",
  "fail2ban-regex": "fail2ban",
  faketime: "faketime",
  ffmpeg: "ffmpeg",
  fish: "fish",
  git: "git",
  go: "golang-go",
  haproxy: "haproxy",
  gtlsclient: "ngtcp2-client",
  mandoc: "mandoc",
  mosquitto: "mosquitto",
  named: "bind9",
  nc: "netcat-openbsd",
  nginx: "nginx",
  // `make setup` needs it as well; the package npm of Debian conflicts with the nodejs of others, which has it.
  npm: "nodejs",
  openssl: "openssl",
  pebble: "pebble",
  pgbouncer: "pgbouncer",
  podman: "podman",
  postgres: "postgresql",
  prlimit: "util-linux",
  prometheus: "prometheus",
  promtool: "prometheus",
  rclone: "rclone",
  node: "nodejs",
  python3: "python3",
  "redis-server": "redis-server",
  ruby: "ruby",
  script: "bsdutils",
  skopeo: "skopeo",
  slapd: "slapd",
  slowhttptest: "slowhttptest",
  strace: "strace",
  svn: "subversion",
  "systemd-analyze": "systemd",
  "update-ca-certificates": "ca-certificates",
  syncthing: "syncthing",
  "transmission-daemon": "transmission-daemon",
  wget: "wget",
  zsh: "zsh",
} as const;

export type Program = keyof typeof PACKAGES;

/** Debian packages that have all of them. */
export const packages: readonly string[] = [...new Set(Object.values(PACKAGES))];

const POSTGRES = "/usr/lib/postgresql";

/** Where Debian keeps the programs of PostgreSQL. */
function newestPostgres(): string {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES).map(Number) : [];
  return `${POSTGRES}/${Math.max(0, ...versions)}/bin`;
}

/** Debian keeps servers where the PATH of a user often does not look. */
const PATH = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin:/usr/lib/cockpit:${newestPostgres()}`;

/** Null when it is not installed. */
export const pathOf = (program: string): string | null => Bun.which(program, { PATH });

/** What the machine must allow, and why it does not; checked once, when the first test needs it. */
const conditions = {
  linux: () => (process.platform === "linux" ? null : "Linux"),
  /** In the shared namespace, which needs root, and not every container allows it. */
  mount: () =>
    process.getuid?.() === 0 && runs("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")
      ? null
      : "the right to mount a file system",
  "private mounts": () =>
    runs("unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")
      ? null
      : "the right to make a mount namespace",
  "private network": () =>
    runs("unshare", "--map-root-user", "--net", "ip", "link", "set", "lo", "up")
      ? null
      : "the right to make a network namespace",
  /** That reach each other and the tests. */
  "network namespaces": () =>
    process.getuid?.() === 0 &&
    runs("unshare", "--net", "ip", "link", "add", "one", "type", "bridge") &&
    runs("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt")
      ? null
      : "the right to make network namespaces and bridges",
  "another address": () =>
    ownAddress("IPv4") === null ? "an IPv4 address besides loopback" : null,
  mod_dav_svn: () =>
    existsSync("/usr/lib/apache2/modules/mod_dav_svn.so") ? null : "libapache2-mod-svn",
  "grpc-go": () =>
    existsSync("/usr/share/gocode/src/google.golang.org/grpc") ? null : "golang-google-grpc-dev",
  sprig: () =>
    existsSync("/usr/share/gocode/src/github.com/Masterminds/sprig") &&
    existsSync("/usr/share/gocode/src/gopkg.in/yaml.v3")
      ? null
      : "golang-github-masterminds-sprig-dev and golang-gopkg-yaml.v3-dev",
  ipv6: () => (listensOn("::1") ? null : "IPv6 on the loopback interface"),
} as const satisfies Record<string, () => string | null>;

export type Condition = keyof typeof conditions;

/** The compiled executable, a program, something that the machine allows, or `lacks`: what is missing, null if nothing is. */
export type Need = "executable" | Program | Condition | { readonly lacks: string | null };

export interface TestKit {
  readonly test: Test<[]>;
  readonly describe: typeof describe;
  readonly beforeAll: typeof beforeAll;
  readonly beforeEach: typeof beforeEach;
  readonly afterAll: typeof afterAll;
  readonly afterEach: typeof afterEach;
}

/**
 * What `bun:test` has, for tests with needs: `const { test, beforeAll } = needs("executable", "nginx")`. Where one of them is
 * missing, tests are skipped with the reason behind their names, and hooks do not run. With `SLUICE_SKIP_NOTHING=1`, as in CI,
 * a missing program or executable fails the file instead.
 */
export function needs(...needed: readonly Need[]): TestKit {
  const missing = lackOf(...needed);
  if (missing === null) return { test, describe, beforeAll, beforeEach, afterAll, afterEach };
  const nothing = () => undefined;
  return {
    beforeAll: nothing,
    beforeEach: nothing,
    afterAll: nothing,
    afterEach: nothing,
    test: skipping(test.skip, `(skipped: needs ${missing})`),
    describe,
  };
}

/** The first of them that is missing, in words; null when all are there. */
export const lackOf = (...needed: readonly Need[]): string | null =>
  needed.map(missingOf).find((reason) => reason !== null) ?? null;

function missingOf(need: Need): string | null {
  if (typeof need === "object") return need.lacks;
  if (need in conditions) return answerOf(need as Condition);
  const missing = need === "executable" ? lackOfExecutable() : lackOfProgram(need as Program);
  if (missing !== null && process.env["SLUICE_SKIP_NOTHING"] === "1")
    throw new Error(`SLUICE_SKIP_NOTHING=1, but the tests need ${missing}`);
  return missing;
}

const lackOfExecutable = () =>
  existsSync(executable) ? null : "dist/sluice, which `make build` makes";

const lackOfProgram = (program: Program) =>
  pathOf(program) === null
    ? `${program}, which is not installed (Debian package ${PACKAGES[program]})`
    : null;

const answers = new Map<Condition, string | null>();

function answerOf(condition: Condition): string | null {
  const known = answers.get(condition);
  if (known !== undefined) return known;
  const answer = conditions[condition]();
  answers.set(condition, answer);
  return answer;
}

function runs(...command: string[]): boolean {
  try {
    return Bun.spawnSync(command, { stdio: ["ignore", "ignore", "ignore"] }).exitCode === 0;
  } catch {
    return false;
  }
}

function listensOn(hostname: string): boolean {
  try {
    Bun.listen({ hostname, port: 0, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}

/** Skips everything declared with it: `test("…")`, `test.each(…)("…")`, `test.concurrent("…")`, `test.if(…)("…")`. */
function skipping(skipped: Test<[]>, why: string): Test<[]> {
  return new Proxy(skipped, {
    apply: (_target, _self, [name]: [string]) => skipped(`${name} ${why}`, () => undefined),
    get(_target, property) {
      if (property === "each")
        return (table: unknown[]) => skipping(skipped.each(table) as never, why);
      if (/[iI]f$/.test(String(property))) return () => skipping(skipped, why);
      return skipping(skipped, why);
    },
  });
}

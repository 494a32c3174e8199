// How a container of the image runs: user, environment, ports, health check and labels; knows nothing of its files.
import type { Release } from "./bill-of-materials.ts";

/** User and group "nonroot", as in images without a distribution. */
export const USER = 65_532;

const SECOND = 1_000_000_000;
const EXECUTABLE = "/usr/local/bin/sluice";
const DATA = "/var/lib/sluice";

/** The management API listens for the container network at once, because an admin exists before it does. */
const environment = {
  PATH: "/usr/local/bin",
  SLUICE_DATA_DIR: DATA,
  SLUICE_HTTP: "0.0.0.0:80",
  SLUICE_HTTPS: "0.0.0.0:443",
  SLUICE_ADMIN: "0.0.0.0:9080",
  SLUICE_ADMIN_ALLOW: "private",
  SLUICE_ADMIN_EMAIL: "admin@localhost",
};

export function imageConfig({ version, commit, committedAt }: Release) {
  const labels = {
    "org.opencontainers.image.title": "Sluice",
    "org.opencontainers.image.description":
      "A self-hosted HTTP and TCP gateway in one executable, configured at run time",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.revision": commit ?? "unknown",
    "org.opencontainers.image.created": committedAt,
    // GitHub shows the package with the repository that it names.
    ...(process.env["SLUICE_SOURCE_URL"]
      ? { "org.opencontainers.image.source": process.env["SLUICE_SOURCE_URL"] }
      : {}),
  };
  const config = {
    User: `${USER}:${USER}`,
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    Entrypoint: [EXECUTABLE],
    Cmd: ["serve"],
    WorkingDir: "/",
    Volumes: { [DATA]: {} },
    ExposedPorts: { "80/tcp": {}, "443/tcp": {}, "443/udp": {}, "9080/tcp": {} },
    StopSignal: "SIGTERM",
    // Docker's own addition to the format, in nanoseconds.
    Healthcheck: {
      Test: ["CMD", EXECUTABLE, "healthcheck"],
      Interval: 10 * SECOND,
      Timeout: 5 * SECOND,
      StartPeriod: 15 * SECOND,
      Retries: 3,
    },
  };
  return { config, labels };
}

// The command `healthcheck`: the readiness of the gateway on this machine as an exit code; knows no other endpoint.
import type { Command } from "./command.ts";
import { isLoopbackHost } from "../net/loopback.ts";
import { type Flag, formatAddress, parseAddress, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  {
    name: "admin",
    value: "ADDRESS:PORT",
    description: "Address of the management API, as given to serve",
    fallback: "127.0.0.1:9080",
  },
  {
    name: "admin-tls-cert",
    value: "FILE",
    description: "Use TLS, because serve has this flag; the file itself is not read",
  },
  {
    name: "wait",
    value: "SECONDS",
    description: "How long to wait until the gateway is ready",
    fallback: "0",
  },
];

const ATTEMPT_MS = 3000;
const PAUSE_MS = 100;
const MAX_WAIT_SECONDS = 3600;

export const healthcheckCommand: Command = {
  name: "healthcheck",
  summary: "Check whether the gateway on this machine is ready",
  details:
    "For containers and scripts without an HTTP client. It reads the environment variables of serve, so it needs no flags\n" +
    "beside a gateway that uses them. Exit code 0: every worker serves, also on a node that drains; 1: not ready, with the reason on standard error.",
  flags,
  async run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const urls = readyUrls(given.get("admin"), given.get("admin-tls-cert") !== undefined);
    const deadline = Date.now() + decodeWait(given.get("wait")) * 1000;
    for (;;) {
      const problems: string[] = [];
      for (const url of urls) {
        const problem = await findProblem(url);
        if (problem === null) {
          print("ready\n");
          return 0;
        }
        problems.push(`sluice: ${url} ${problem}\n`);
      }
      if (Date.now() >= deadline) {
        process.stderr.write(problems.join(""));
        return 1;
      }
      await Bun.sleep(PAUSE_MS);
    }
  },
};

/**
 * Wildcard addresses are checked on loopback. So is any other address that does not respond: a gateway that may not listen
 * there listens on loopback.
 */
export function readyUrls(admin: string | undefined, speaksTls: boolean): readonly string[] {
  const { hostname, port } = parseAddress("admin", admin ?? "127.0.0.1:9080");
  const loopback = hostname.includes(":") ? "::1" : "127.0.0.1";
  const isWildcard = hostname === "0.0.0.0" || hostname === "::";
  const isLocal = isWildcard || isLoopbackHost(hostname);
  const hosts = isLocal ? [isWildcard ? loopback : hostname] : [hostname, loopback];
  const scheme = speaksTls ? "https" : "http";
  return hosts.map((host) => `${scheme}://${formatAddress({ hostname: host, port })}/readyz`);
}

function decodeWait(text = "0"): number {
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds <= MAX_WAIT_SECONDS) return seconds;
  throw new UsageError(
    `--wait: must be a whole number of seconds up to ${MAX_WAIT_SECONDS}, not "${text}"`,
  );
}

/** Null when the gateway serves. */
async function findProblem(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, {
      redirect: "manual",
      // The certificate names a host and not this address. The request holds nothing confidential.
      tls: { rejectUnauthorized: false },
      signal: AbortSignal.timeout(ATTEMPT_MS),
    });
    const text = await response.text();
    // A node of a fleet that drains is healthy: a restart would change nothing.
    const isDraining = response.status === 503 && text.includes('"error":"draining:');
    return response.status === 200 || isDraining ? null : `returned ${response.status}`;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return `does not respond: ${code === "ECONNREFUSED" ? "nothing listens there" : message}`;
  }
}

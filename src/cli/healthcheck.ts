// The command `healthcheck`: whether the gateway on this machine is ready, as an exit code; knows no endpoint but that one.
import type { Command } from "./command.ts";
import { type Flag, formatAddress, parseAddress, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  {
    name: "admin",
    value: "ADDRESS:PORT",
    description: "Where the management API listens, as serve was told",
    fallback: "127.0.0.1:9080",
  },
  {
    name: "admin-tls-cert",
    value: "FILE",
    description: "Given to serve, so the management API speaks TLS; the file itself is not read",
  },
  {
    name: "wait",
    value: "SECONDS",
    description: "How long to wait for a gateway that is not ready yet",
    fallback: "0",
  },
];

const ATTEMPT_MS = 3000;
const PAUSE_MS = 100;
const MAX_WAIT_SECONDS = 3600;

export const healthcheckCommand: Command = {
  name: "healthcheck",
  summary: "Ask the gateway on this machine whether it is ready",
  details:
    "For containers and scripts that have no other client. It takes the environment variables of serve, so it needs no flag\n" +
    "beside a gateway that is set up by them. Exit code 0: every worker serves; 1: not, and why is on standard error.",
  flags,
  async run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const url = readyUrl(given.get("admin"), given.get("admin-tls-cert") !== undefined);
    const deadline = Date.now() + decodeWait(given.get("wait")) * 1000;
    for (;;) {
      const problem = await findProblem(url);
      if (problem === null) {
        print("ready\n");
        return 0;
      }
      if (Date.now() >= deadline) {
        process.stderr.write(`sluice: ${url} ${problem}\n`);
        return 1;
      }
      await Bun.sleep(PAUSE_MS);
    }
  },
};

/** An address that stands for all of the machine is asked on the loopback one. */
export function readyUrl(admin: string | undefined, speaksTls: boolean): string {
  const { hostname, port } = parseAddress("admin", admin ?? "127.0.0.1:9080");
  const local = hostname === "0.0.0.0" ? "127.0.0.1" : hostname === "::" ? "::1" : hostname;
  const scheme = speaksTls ? "https" : "http";
  return `${scheme}://${formatAddress({ hostname: local, port })}/readyz`;
}

function decodeWait(text = "0"): number {
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds <= MAX_WAIT_SECONDS) return seconds;
  throw new UsageError(
    `--wait: must be a whole number of seconds up to ${MAX_WAIT_SECONDS}, not "${text}"`,
  );
}

/** Null when the gateway is ready. */
async function findProblem(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, {
      redirect: "manual",
      // The certificate names a host and not this address. Nothing is sent that a stranger could use.
      tls: { rejectUnauthorized: false },
      signal: AbortSignal.timeout(ATTEMPT_MS),
    });
    await response.body?.cancel();
    return response.status === 200 ? null : `answered ${response.status}`;
  } catch (error) {
    return `does not answer: ${error instanceof Error ? error.message : String(error)}`;
  }
}

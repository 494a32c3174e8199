// The command `replay`: repeats the GET requests of an access log at two gateways and compares their responses; knows no configuration.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { type LoggedRequest, requestIn } from "./access-log-lines.ts";
import type { Command } from "./command.ts";
import { fileProblem } from "../model/file-problem.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { CommandError, reportingErrors } from "./management-client.ts";
import { takeOperand } from "./operands.ts";
import { outputFlag, resultPrinter } from "./output.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  {
    name: "old",
    value: "ADDRESS:PORT,ADDRESS:PORT",
    description: "Where the present gateway listens for HTTP and for HTTPS",
  },
  {
    name: "new",
    value: "ADDRESS:PORT,ADDRESS:PORT",
    description: "Where this gateway listens for HTTP and for HTTPS",
    fallback: "127.0.0.1:80,127.0.0.1:443",
  },
  {
    name: "host",
    value: "NAME",
    description: "Host of requests whose lines name none, as in the common format",
  },
  {
    name: "max",
    value: "COUNT",
    description: "Most requests to send to each gateway; equal ones are sent once",
    fallback: "1000",
  },
  outputFlag,
];

const MAX_REQUESTS = 100_000;
const TIMEOUT_MS = 10_000;
const PARALLEL = 4;
/** Headers whose values say what the gateway does; of others, clients see what the target sent. */
const COMPARED = [
  ...["location", "www-authenticate", "strict-transport-security", "content-type"],
  ...["x-frame-options", "content-security-policy", "access-control-allow-origin"],
];

interface Difference {
  readonly host: string;
  readonly target: string;
  /** `status`, or the name of a header. */
  readonly of: string;
  readonly old: string | null;
  readonly new: string | null;
}

export const replayCommand: Command = {
  name: "replay",
  summary: "Send the GETs of an access log to the old gateway and this one, and compare",
  usage: "ACCESS-LOG",
  details:
    "Before you switch: import the set-up, let this gateway listen on other ports, and compare. It reads logs of nginx, Nginx Proxy\n" +
    "Manager, Caddy (JSON), Traefik and the common format, without bodies, cookies and credentials. Exit code 1: responses differ.",
  flags,
  run(argv, { env, print }) {
    const { operand: path, rest } = takeOperand(flags, argv, "ACCESS-LOG");
    const given = parseFlags(flags, rest, env);
    const old = addressesOf("old", given.get("old"));
    const own = addressesOf("new", given.get("new") ?? "127.0.0.1:80,127.0.0.1:443");
    const max = countOf(given.get("max") ?? "1000");
    const show = resultPrinter(given, print);
    return reportingErrors(async () => {
      const requests = await readRequests(path, { host: given.get("host") ?? null, max });
      if (requests.length === 0)
        throw new CommandError(
          `${path}: holds no GET request of a known format, or none names a host: set --host`,
        );
      const differences = await compareAll(requests, { old, own });
      show({ requests: requests.length, differences }, describe(requests, differences));
      return differences.length === 0 ? 0 : 1;
    });
  },
};

interface Addresses {
  readonly http: string;
  readonly https: string;
}

function addressesOf(flag: string, text: string | undefined): Addresses {
  const [http = "", https = http, ...more] = (text ?? "").split(",");
  const isValid = [http, https].every((one) => /^(?:\[[\da-f:.]+\]|[\w.-]+):\d{1,5}$/i.test(one));
  if (isValid && more.length === 0) return { http, https };
  throw new UsageError(
    `--${flag}: must be ADDRESS:PORT for HTTP, and another one for HTTPS behind a comma`,
  );
}

function countOf(text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_REQUESTS) return count;
  throw new UsageError(`--max: must be 1 to ${MAX_REQUESTS}, not "${text}"`);
}

async function readRequests(
  path: string,
  { host, max }: { readonly host: string | null; readonly max: number },
): Promise<readonly LoggedRequest[]> {
  const found = new Map<string, LoggedRequest>();
  try {
    const input = createReadStream(path === "-" ? "/dev/stdin" : path);
    for await (const line of createInterface({ input })) {
      const request = requestIn(line, host);
      if (request !== null) found.set(JSON.stringify(request), request);
      if (found.size >= max) break;
    }
  } catch (error) {
    throw new CommandError(`${path}: ${fileProblem(error)}`, { cause: error });
  }
  return [...found.values()];
}

async function compareAll(
  requests: readonly LoggedRequest[],
  { old, own }: { readonly old: Addresses; readonly own: Addresses },
): Promise<readonly Difference[]> {
  const found: Difference[][] = [];
  let next = 0;
  const run = async (): Promise<void> => {
    for (let at = next++; at < requests.length; at = next++) {
      const request = requests[at];
      if (request === undefined) return;
      const [before, now] = await Promise.all([send(request, old), send(request, own)]);
      found[at] = differencesOf(request, before, now);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, run));
  return found.flat();
}

type Facts = ReadonlyMap<string, string>;

/** Redirects are not followed, and bodies are not read. */
async function send({ scheme, host, target }: LoggedRequest, to: Addresses): Promise<Facts> {
  try {
    const response = await fetch(`${scheme}://${to[scheme]}${target}`, {
      headers: { host, "user-agent": "sluice-replay" },
      redirect: "manual",
      // Each gateway has certificates of its own.
      tls: { rejectUnauthorized: false, serverName: host },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    void response.body?.cancel();
    const headers = COMPARED.flatMap((name): [string, string][] => {
      const value = response.headers.get(name);
      return value === null ? [] : [[name, comparable(value, to)]];
    });
    return new Map([["status", String(response.status)], ...headers]);
  } catch (error) {
    return new Map([["status", error instanceof Error ? error.name : "no response"]]);
  }
}

/** Ports of a test are not those of use. */
const comparable = (value: string, { http, https }: Addresses): string =>
  [http, https].reduce((text, one) => text.replaceAll(`:${one.replace(/^.*:/, "")}/`, "/"), value);

function differencesOf({ host, target }: LoggedRequest, before: Facts, now: Facts): Difference[] {
  const names = [...new Set([...before.keys(), ...now.keys()])];
  const all = names.flatMap((of): Difference[] => {
    const [old = null, own = null] = [before.get(of), now.get(of)];
    return old === own ? [] : [{ host, target, of, old, new: own }];
  });
  // Headers of another status say nothing more.
  const status = all.filter(({ of }) => of === "status");
  return status.length > 0 ? status : all;
}

const FEW = 3;

/** A line for each host, and the first differences below it. */
function describe(requests: readonly LoggedRequest[], differences: readonly Difference[]): string {
  const byHost = Map.groupBy(differences, ({ host }) => host);
  const lines = [...Map.groupBy(requests, ({ host }) => host)].flatMap(([host, sent]) => {
    const own = byHost.get(host) ?? [];
    const unlike = new Set(own.map(({ target }) => target)).size;
    const rest = own.length - FEW;
    return [
      `${host}: ${sent.length - unlike} of ${sent.length} alike`,
      ...own
        .slice(0, FEW)
        .map((one) => `  ${one.target}: ${one.of} ${one.old ?? "none"} -> ${one.new ?? "none"}`),
      ...(rest > 0 ? [`  and ${rest} more`] : []),
    ];
  });
  return `${lines.join("\n").replaceAll(/[^\P{C}\n]/gu, " ")}\n`;
}

// Command-line options of a benchmark run; knows nothing of how anything is measured.
import { parseArgs } from "node:util";

export const SIZES = {
  "64B": 64,
  "10KB": 10_240,
  "20KB": 20_480,
  "100KB": 102_400,
  "1MB": 1_048_576,
};
export type SizeName = keyof typeof SIZES;

export const PROTOCOLS = {
  http: "plain HTTP/1.1",
  /** Each request has a path, a cookie and an id of its own, and each response a Date and an ETag. */
  varied: "plain HTTP/1.1 with varied heads",
  tls: "HTTP/1.1 over TLS",
  h2: "HTTP/2 over TLS",
};
export type Protocol = keyof typeof PROTOCOLS;

export const PROXIES = [
  "nginx",
  "nginx-64k",
  "haproxy",
  "caddy",
  "bare",
  "before",
  "sluice",
  // Listeners of Sluice with `engine: "bun"`.
  "bun-engine",
  "trial",
] as const;
/** Those of a full run: `before` and `trial` need a program. */
const COMPARED = PROXIES.filter((name) => name !== "before" && name !== "trial");
export type ProxyName = (typeof PROXIES)[number];

const PARTS = [
  "comparison",
  "targets",
  "observation",
  "limits",
  "guarded",
  "streams",
  "content",
  "access-log",
  "grpc",
  "own-plugins",
] as const;

export interface BenchOptions {
  readonly seconds: number;
  readonly rounds: number;
  readonly sizes: readonly SizeName[];
  readonly protocols: readonly Protocol[];
  readonly proxies: readonly ProxyName[];
  /** The one part to run; undefined runs all. */
  readonly only: (typeof PARTS)[number] | undefined;
  /** How Sluice is started: the executable, or the words before "serve". */
  readonly sluice: readonly string[];
  /** An executable of an earlier commit, which takes part as `before`; undefined: none. */
  readonly before: string | undefined;
  /** A script that takes part as `trial`, with the arguments of bare-proxy.ts; undefined: none. */
  readonly trial: string | undefined;
  /** Where the page is written; undefined prints only. */
  readonly out: string | undefined;
}

export const USAGE = `make bench ARGS="..."
  --quick                one round of one second, two sizes, two protocols, four proxies; writes no page
  --seconds N            about as many seconds for each round (2)
  --rounds N             rounds, in alternating turn (5)
  --sizes 64B,100KB      of ${Object.keys(SIZES).join(",")}
  --protocols http,h2    of ${Object.keys(PROTOCOLS).join(",")}
  --proxies nginx,sluice of ${PROXIES.join(",")};
                         bare is the least that a proxy on Bun can do (tests/bench/bare-proxy.ts)
  --only comparison      or targets (eight with checks against one), observation (metrics and recent requests against
                         none), limits (a rate limit against none), guarded (a key, a group and more against none),
                         content (cache, compression), access-log, streams (TCP), or grpc;
                         a run measures all otherwise, but for own-plugins (from a directory against built-in), which
                         needs many short rounds: --only own-plugins --seconds 1 --rounds 40
  --before FILE          an executable of an earlier commit that takes part as "before"
  --trial FILE           a script with the arguments of bare-proxy.ts that takes part as "trial", such as a codec on Bun's
                         sockets with nothing of Sluice: what the ground costs
  --source               run Sluice from source instead of dist/sluice
  --out FILE             where to write the page (docs/benchmarks.md after a full run)`;

/** Reads the command line; throws with a sentence when a word is not known. */
export function parseOptions(argv: readonly string[]): BenchOptions | "help" {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: "boolean", default: false },
      seconds: { type: "string" },
      rounds: { type: "string" },
      sizes: { type: "string" },
      protocols: { type: "string" },
      proxies: { type: "string" },
      only: { type: "string" },
      before: { type: "string" },
      trial: { type: "string" },
      source: { type: "boolean", default: false },
      out: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const { quick } = values;
  const isPartial =
    quick || Boolean(values.sizes ?? values.protocols ?? values.proxies ?? values.only);
  const proxies = toList(
    values.proxies,
    PROXIES,
    quick ? ["nginx", "haproxy", "caddy", "sluice"] : COMPARED,
  );
  return {
    seconds: toPositive(values.seconds, quick ? 1 : 2),
    rounds: toPositive(values.rounds, quick ? 1 : 5),
    sizes: toList(
      values.sizes,
      Object.keys(SIZES) as SizeName[],
      quick ? ["64B", "100KB"] : undefined,
    ),
    protocols: toList(
      values.protocols,
      Object.keys(PROTOCOLS) as Protocol[],
      quick ? ["http", "h2"] : undefined,
    ),
    proxies: [
      ...proxies,
      ...(["before", "trial"] as const).filter((name) => values[name] !== undefined),
    ],
    before: values.before,
    trial: values.trial,
    only: values.only === undefined ? undefined : toList(values.only, PARTS, undefined)[0],
    sluice: values.source ? [process.execPath, "src/main.ts"] : ["dist/sluice"],
    out: values.out ?? (isPartial ? undefined : "docs/benchmarks.md"),
  };
}

function toPositive(text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`not a positive number: ${text}`);
  return value;
}

function toList<T extends string>(
  text: string | undefined,
  known: readonly T[],
  fallback: readonly T[] | undefined,
): readonly T[] {
  if (text === undefined) return fallback ?? known;
  return text.split(",").map((word) => {
    const found = known.find((name) => name === word);
    if (found === undefined) throw new Error(`"${word}" is not one of ${known.join(", ")}`);
    return found;
  });
}

// Measures gRPC calls and downloads over HTTP/2 beside other proxies.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { type Contestant, MESSAGE, startGrpcTarget, startPeers } from "./grpc-peers.ts";
import { type LoadResult, parseH2load, percentile } from "./load.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import {
  LOAD_CORE,
  PROXY_CORE,
  processorTimeUs,
  type RunningProgram,
  runProgram,
  waitFor,
} from "./processes.ts";
import { alignColumns, type Table, toTable } from "./report.ts";
import { type RunningSluice, startSluice } from "./sluice.ts";

export interface GrpcInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly originPort: number;
  /** Measured seconds of each turn. */
  readonly seconds: number;
  readonly rounds: number;
}

type LoadName = "grpc-16" | "grpc-1" | "h2-download";

interface Load {
  readonly path: string;
  readonly connections: number;
  /** Streams on each, fields and a body, as h2load takes them. */
  readonly words: readonly string[];
  readonly warmUpRequests: number;
  /** In mebibytes, for loads that are judged by volume. */
  readonly size: number | null;
}

const DOWNLOAD_MEBIBYTES = 100;
const GRPC_FIELDS = ["-H", "content-type: application/grpc", "-H", "te: trailers"];

interface GrpcRow {
  readonly load: LoadName;
  readonly proxy: string;
  /** Processor time of a call or a mebibyte. */
  readonly cpuUs: number;
  readonly perSecond: number;
  /** Processor time as a multiple of the first contestant's: the middle one of all rounds. */
  readonly ratios: ReadonlyMap<string, number>;
  readonly errors: number;
}

export async function measureGrpc(input: GrpcInput): Promise<GrpcRow[]> {
  const scratch = join(input.scratch, "grpc");
  mkdirSync(scratch, { recursive: true });
  const part = { ...input, scratch };
  return [...(await measureCalls(part)), ...(await measureDownloads(part))];
}

async function measureCalls(input: GrpcInput): Promise<GrpcRow[]> {
  const bodyFile = join(input.scratch, "message");
  writeFileSync(bodyFile, MESSAGE);
  const target = startGrpcTarget(input.scratch);
  const proxies: Contestant[] = [];
  try {
    proxies.push(...startPeers(input.scratch, { port: target.port, protocol: "h2c" }));
    proxies.push(await startOwn(input, { name: "sluice", protocol: "grpc", port: target.port }));
    const path = "/test.Echo/Unary";
    const rows: GrpcRow[] = [];
    for (const streams of [16, 1] as const) {
      const words = [`-m${streams}`, "-d", bodyFile, ...GRPC_FIELDS];
      const load = { path, connections: 16, words, warmUpRequests: 30_000, size: null };
      rows.push(...(await compareAll(`grpc-${streams}`, { proxies, load }, input)));
    }
    return rows;
  } finally {
    await stopAll([...proxies, target]);
  }
}

async function measureDownloads(input: GrpcInput): Promise<GrpcRow[]> {
  const { originPort: port } = input;
  const proxies: Contestant[] = [];
  try {
    proxies.push(...startPeers(input.scratch, { port, protocol: "http" }));
    proxies.push(await startOwn(input, { name: "sluice", protocol: "http", port }));
    const words = ["-m1"];
    const path = `/${DOWNLOAD_MEBIBYTES}MiB`;
    const load = { path, connections: 2, words, warmUpRequests: 6, size: DOWNLOAD_MEBIBYTES };
    return await compareAll("h2-download", { proxies, load }, input);
  } finally {
    await stopAll(proxies);
  }
}

const contestant = (name: string, { ports, program }: RunningSluice): Contestant => ({
  name,
  httpsPort: ports.https,
  program,
});

/** A gateway whose https listener has our own engine. */
async function startOwn(
  input: GrpcInput,
  {
    name,
    protocol,
    port,
  }: { readonly name: string; readonly protocol: string; readonly port: number },
): Promise<Contestant> {
  const dataDir = join(input.scratch, `${name}-${protocol}`);
  const sluice = await startSluice({
    command: input.command,
    dataDir,
    workers: 1,
    core: PROXY_CORE,
  });
  const targets = [{ host: "127.0.0.1", port }];
  await sluice.api.send("POST", "/api/v1/services", { name: "target", protocol, targets });
  const route = { name: "all", service_id: "target", listener_ids: ["https"] };
  await sluice.api.send("POST", "/api/v1/routes", route);
  return contestant(name, sluice);
}

async function stopAll(programs: readonly { readonly program: RunningProgram }[]): Promise<void> {
  await Promise.all(programs.map(({ program }) => program.stop()));
}

async function run(
  { httpsPort }: Contestant,
  load: Load,
  { requests, scratch }: { readonly requests: number; readonly scratch: string },
): Promise<LoadResult> {
  const log = join(scratch, "h2load.log");
  rmSync(log, { force: true });
  const url = `https://localhost:${httpsPort}${load.path}`;
  const amount = [`-c${load.connections}`, `-n${requests}`];
  const words = ["--npn-list=h2", ...amount, ...load.words, `--log-file=${log}`, url];
  const printed = await runProgram(LOAD_CORE, ["h2load", ...words]);
  return parseH2load(printed, readFileSync(log, "utf8"), "h2");
}

interface Sample {
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly errors: number;
}

/** All in turn, in alternating order; each ratio compares two turns of one round. */
async function compareAll(
  name: LoadName,
  { proxies, load }: { readonly proxies: readonly Contestant[]; readonly load: Load },
  { scratch, seconds, rounds }: GrpcInput,
): Promise<GrpcRow[]> {
  const counts = new Map<Contestant, number>();
  for (const proxy of proxies) {
    const first = () => run(proxy, load, { requests: load.connections, scratch });
    await waitFor(`the first response of ${proxy.name}`, 10_000, async () =>
      (await first()).errors === 0 ? true : undefined,
    );
    const warm = { requests: load.warmUpRequests, scratch };
    const { requestsPerSecond } = await run(proxy, load, warm);
    counts.set(proxy, Math.max(load.connections, Math.ceil(requestsPerSecond * seconds)));
  }
  const samples = new Map<Contestant, Sample[]>(proxies.map((proxy) => [proxy, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed()) {
      const before = processorTimeUs(proxy.program.pid);
      const requests = counts.get(proxy) ?? 1;
      const result = await run(proxy, load, { requests, scratch });
      const units = result.requests * (load.size ?? 1);
      samples.get(proxy)?.push({
        cpuUs: (processorTimeUs(proxy.program.pid) - before) / units,
        perSecond: result.requestsPerSecond * (load.size ?? 1),
        errors: result.errors,
      });
    }
  return proxies.map((proxy) => rowOf({ name, proxy, samples }));
}

function rowOf(turns: {
  readonly name: LoadName;
  readonly proxy: Contestant;
  readonly samples: ReadonlyMap<Contestant, readonly Sample[]>;
}): GrpcRow {
  const own = turns.samples.get(turns.proxy) ?? [];
  const others = [...turns.samples].filter(([other]) => other !== turns.proxy);
  const ratios = others.map(([{ name }, theirs]) => {
    const list = own.map(({ cpuUs }, round) => cpuUs / (theirs[round]?.cpuUs ?? Number.NaN));
    return [name, middle(list)] as const;
  });
  return {
    load: turns.name,
    proxy: turns.proxy.name,
    cpuUs: middle(own.map(({ cpuUs }) => cpuUs)),
    perSecond: middle(own.map(({ perSecond }) => perSecond)),
    ratios: new Map(ratios),
    errors: own.reduce((sum, { errors }) => sum + errors, 0),
  };
}

const middle = (values: readonly number[]): number =>
  percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );

/** What the last contestant must reach beside another one, in processor time of a call or a mebibyte. */
const TARGETS: readonly {
  readonly load: LoadName;
  readonly peer: string;
  readonly atMost: number;
}[] = [
  { load: "grpc-16", peer: "nginx", atMost: 0.4 },
  { load: "grpc-1", peer: "nginx", atMost: 0.9 },
  // 0.9 of its throughput per second of processor time.
  { load: "h2-download", peer: "nginx", atMost: 1.11 },
];

const unitOf = (load: LoadName) => (load === "h2-download" ? "MiB" : "request");

function tableOf(rows: readonly GrpcRow[]): Table {
  const lines = rows.map(({ load, proxy, cpuUs, perSecond, errors }) => {
    const unit = unitOf(load);
    const figures = [`${perSecond.toFixed(0)} ${unit}/s`, `${cpuUs.toFixed(1)} µs/${unit}`];
    return [load, proxy, ...figures, errors === 0 ? "" : `${errors} failed`];
  });
  return [["load", "proxy", "rate", "CPU", "errors"], ...lines];
}

function verdictsOf(rows: readonly GrpcRow[]): Table {
  const lines = TARGETS.map(({ load, peer, atMost }) => {
    const own = rows.findLast((row) => row.load === load);
    const ratio = own?.ratios.get(peer);
    const target = `CPU per ${unitOf(load)} against ${peer}, ${load}`;
    // nginx fails some calls whose response is there before their body was read.
    const isMeasured = ratio !== undefined && own?.errors === 0;
    if (!isMeasured) return [target, `${atMost}x`, "–", "not measured"];
    return [target, `${atMost}x`, `${ratio.toFixed(2)}x`, ratio <= atMost ? "reached" : "missed"];
  });
  return [["target", "at most", "measured", "verdict"], ...lines];
}

export const grpcToText = (rows: readonly GrpcRow[]): string =>
  `\ngRPC and downloads over HTTP/2\n${alignColumns(tableOf(rows))}\n\n${alignColumns(verdictsOf(rows))}`;

/** The part of docs/benchmarks.md. */
export const grpcToMarkdown = (
  rows: readonly GrpcRow[],
  { seconds, rounds }: Pick<GrpcInput, "seconds" | "rounds">,
): string => `## gRPC and downloads over HTTP/2

${[
  ...describeMachine(),
  `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
]
  .map((line) => `- ${line}`)
  .join("\n")}

${toTable(verdictsOf(rows))}

${toTable(tableOf(rows))}

\`grpc-16\`, \`grpc-1\`: unary calls of 100 bytes over TLS to a target with plain HTTP/2, 16 connections with 16 streams or one each.
\`h2-download\`: ${DOWNLOAD_MEBIBYTES} MiB over TLS from a target with HTTP/1.1, two at a time. One thread each on core 0; load and targets are on core 1. The
turns are taken ${rounds} times, ${seconds} s each, in alternating order; a ratio compares two turns of one round, and the middle one counts.
`;

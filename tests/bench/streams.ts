// Measures what TCP streams cost against HAProxy in TCP mode: bulk by the megabyte, and connections that are opened for one request.
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { startHaproxyWith } from "./haproxy.ts";
import { type LoadResult, loadWithWrk } from "./load.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { freePort, PROXY_CORE, processorTimeUs, waitFor } from "./processes.ts";
import { alignColumns, type Table, toTable } from "./report.ts";
import { startSluice } from "./sluice.ts";

export interface StreamsInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly originPort: number;
  /** Measured seconds of each turn. */
  readonly seconds: number;
  readonly rounds: number;
}

type PumpName = "haproxy" | "sluice";

interface Pump {
  readonly name: PumpName;
  readonly port: number;
  readonly program: { readonly pid: number; stop(): Promise<void> };
}

const LOADS = {
  bulk: { file: "1MB", close: false, unit: "MB", megabytes: 1.048576, atMost: 1.2 },
  short: { file: "64B", close: true, unit: "connection", megabytes: 0, atMost: 2.5 },
} as const;
type LoadName = keyof typeof LOADS;

export interface StreamsResult {
  readonly load: LoadName;
  readonly pump: PumpName;
  /** Processor time for a megabyte or a connection. */
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly errors: number;
}

/** Both take turns, one core each, as in the comparison of HTTP. */
export async function measureStreams(input: StreamsInput): Promise<StreamsResult[]> {
  const pumps = [await startHaproxyTcp(input), await startSluiceTcp(input)];
  try {
    const results: StreamsResult[] = [];
    for (const load of Object.keys(LOADS) as LoadName[]) {
      const samples = new Map<PumpName, StreamsResult[]>(pumps.map(({ name }) => [name, []]));
      for (const pump of pumps) await loadPump(pump, load, 1);
      for (let round = 0; round < input.rounds; round += 1)
        for (const pump of pumps) samples.get(pump.name)?.push(await sample(pump, load, input));
      for (const list of samples.values()) results.push(middle(list));
    }
    return results;
  } finally {
    await Promise.all(pumps.map(({ program }) => program.stop()));
  }
}

function loadPump({ port }: Pump, load: LoadName, seconds: number): Promise<LoadResult> {
  const { file, close } = LOADS[load];
  return loadWithWrk(`http://127.0.0.1:${port}/${file}`, seconds, { close });
}

async function sample(pump: Pump, load: LoadName, input: StreamsInput): Promise<StreamsResult> {
  const before = processorTimeUs(pump.program.pid);
  const { requests, requestsPerSecond, errors } = await loadPump(pump, load, input.seconds);
  const units = LOADS[load].megabytes || 1;
  const cpuUs = (processorTimeUs(pump.program.pid) - before) / (requests * units);
  return { load, pump: pump.name, cpuUs, perSecond: requestsPerSecond * units, errors };
}

/** The round whose cost is the middle one, with the errors of all. */
function middle(samples: readonly StreamsResult[]): StreamsResult {
  const sorted = samples.toSorted((a, b) => a.cpuUs - b.cpuUs);
  const [first] = samples;
  const chosen = sorted[Math.floor(sorted.length / 2)] ?? first;
  if (chosen === undefined) throw new Error("nothing was measured");
  return { ...chosen, errors: samples.reduce((sum, { errors }) => sum + errors, 0) };
}

async function startHaproxyTcp({ scratch, originPort }: StreamsInput): Promise<Pump> {
  const folder = join(scratch, "haproxy-tcp");
  mkdirSync(folder, { recursive: true });
  const port = freePort();
  const program = startHaproxyWith(
    folder,
    "tcp",
    `frontend all
  bind 127.0.0.1:${port}
  default_backend origin
backend origin
  server one 127.0.0.1:${originPort}
`,
  );
  await answers(port);
  return { name: "haproxy", port, program };
}

async function startSluiceTcp({ scratch, command, originPort }: StreamsInput): Promise<Pump> {
  const dataDir = join(scratch, "sluice-tcp");
  const sluice = await startSluice({ command, dataDir, workers: 1, core: PROXY_CORE });
  const port = freePort();
  const targets = [{ host: "127.0.0.1", port: originPort }];
  await sluice.api.send("POST", "/api/v1/services", { name: "origin", protocol: "tcp", targets });
  await sluice.api.send("POST", "/api/v1/stream-routes", {
    name: "pump",
    service_id: "origin",
    listen_address: "127.0.0.1",
    listen_port: port,
  });
  await answers(port);
  return { name: "sluice", port, program: sluice.program };
}

const answers = (port: number) =>
  waitFor("the first answer through a stream", 5_000, async () =>
    (await fetch(`http://127.0.0.1:${port}/64B`)).ok ? true : undefined,
  );

function tableOf(results: readonly StreamsResult[]): Table {
  const rows = results.map(({ load, pump, cpuUs, perSecond, errors }) => {
    const { unit, atMost } = LOADS[load];
    const peer = results.find((one) => one.load === load && one.pump === "haproxy");
    const ratio = cpuUs / (peer?.cpuUs ?? Number.NaN);
    // A row with failed requests is no result.
    if (errors > 0) return [load, pump, `${errors} errors`, "–", "–", "", ""];
    const verdict = pump === "haproxy" ? "" : ratio <= atMost ? "reached" : "missed";
    return [
      load,
      pump,
      `${perSecond.toFixed(0)} ${unit}/s`,
      `${cpuUs.toFixed(1)} µs/${unit}`,
      ratio.toFixed(2),
      pump === "haproxy" ? "" : `${atMost}x`,
      verdict,
    ];
  });
  return [["load", "proxy", "rate", "CPU", "x haproxy", "at most", "verdict"], ...rows];
}

export const streamsToText = (results: readonly StreamsResult[]): string =>
  `\nTCP streams\n${alignColumns(tableOf(results))}`;

/** The part of docs/benchmarks.md about streams. */
export function streamsToMarkdown(
  results: readonly StreamsResult[],
  { seconds, rounds }: { readonly seconds: number; readonly rounds: number },
): string {
  return `## TCP streams

${describeMachine()
  .map((line) => `- ${line}`)
  .join("\n")}
- Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}

${toTable(tableOf(results))}

A stream route to the origin of the comparison, against HAProxy in \`mode tcp\`, each with one thread on core 0; the origin and
\`wrk\` with 48 connections are on core 1. \`bulk\` asks for 1 MB again and again on connections that stay open, and its
processor time is divided by the megabytes; \`short\` asks for 64 bytes with \`Connection: close\`, so that each request needs
a connection on both sides. The turns are taken ${rounds} times, ${seconds} s each, and the middle one counts.
`;
}

// `make bench`: compares Sluice with nginx, HAProxy and Caddy on this machine, prints the tables and writes the page.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { accessLogTable, accessLogToMarkdown, measureAccessLog } from "./access-log.ts";
import { type Measurement, measureInTurn, urlOf, verifyAnswers, warmUp } from "./measure.ts";
import {
  type BenchOptions,
  parseOptions,
  PROTOCOLS,
  type ProxyName,
  SIZES,
  USAGE,
} from "./options.ts";
import { measureContent } from "./content.ts";
import { contentToMarkdown, contentToText } from "./content-report.ts";
import { grpcToMarkdown, grpcToText, measureGrpc } from "./grpc.ts";
import { measureGuarded } from "./guarded.ts";
import { measureLimits } from "./limits.ts";
import { measureManyTargets } from "./many-targets.ts";
import { measureObservation } from "./observation.ts";
import { makeCertificate, startOrigin } from "./origin.ts";
import { measureOwnPlugins, ownPluginsToMarkdown, ownPluginsToText } from "./own-plugins.ts";
import {
  type PeerInput,
  type RunningProxy,
  startBare,
  startCaddy,
  startHaproxy,
  startNginx,
} from "./peers.ts";
import { writeSection } from "./page.ts";
import { residentBytes, waitFor } from "./processes.ts";
import { type Run, toMarkdown, toText } from "./report.ts";
import { measureStreams, streamsToMarkdown, streamsToText } from "./streams.ts";
import { startSluiceProxy } from "./sluice.ts";

const PROGRAM_OF: Readonly<Record<ProxyName, string | undefined>> = {
  nginx: "nginx",
  "nginx-64k": "nginx",
  haproxy: "haproxy",
  caddy: "caddy",
  bare: undefined,
  before: undefined,
  sluice: undefined,
  "bun-engine": undefined,
  trial: undefined,
};

async function startProxy(
  name: ProxyName,
  input: PeerInput,
  options: BenchOptions,
): Promise<RunningProxy> {
  switch (name) {
    case "nginx":
    case "nginx-64k":
      return startNginx(input, name);
    case "haproxy":
      return startHaproxy(input);
    case "caddy":
      return startCaddy(input);
    case "bare":
      return startBare(input);
    case "trial":
      return startBare(input, { name, script: resolve(options.trial ?? "") });
    case "before":
      return await startSluiceProxy(input, [options.before ?? ""], "before");
    case "sluice":
    case "bun-engine":
      return await startSluiceProxy(input, options.sluice, name);
  }
}

/** Starts all contestants; skips a proxy that is missing or responds incorrectly, and names it. */
async function startAll(input: PeerInput, options: BenchOptions, proxies: RunningProxy[]) {
  const skipped: string[] = [];
  for (const name of options.proxies) {
    const needed = PROGRAM_OF[name];
    if (needed !== undefined && Bun.which(needed) === null) {
      skipped.push(`${name} was skipped: it is not installed.`);
      continue;
    }
    let proxy: RunningProxy | undefined;
    try {
      proxy = await startProxy(name, input, options);
      const url = urlOf(proxy, options.protocols[0] ?? "http", options.sizes[0] ?? "64B");
      await waitFor(`the first answer of ${name}`, 5_000, async () => {
        const answer = await fetch(url, { tls: { rejectUnauthorized: false } });
        return answer.ok ? true : undefined;
      });
      await verifyAnswers(proxy, options);
      proxies.push(proxy);
    } catch (error) {
      await proxy?.program.stop();
      skipped.push(`${name} was skipped: ${error instanceof Error ? error.message : error}`);
    }
  }
  return skipped;
}

async function measureAll(
  proxies: readonly RunningProxy[],
  options: BenchOptions,
  scratch: string,
) {
  const measurements: Measurement[] = [];
  console.log("warming up");
  for (const proxy of proxies) await warmUp(proxy, { ...options, scratch });
  for (const protocol of options.protocols) {
    for (const size of options.sizes) {
      console.log(`measuring ${size}, ${PROTOCOLS[protocol]}`);
      measurements.push(
        ...(await measureInTurn(proxies, { protocol, size }, { ...options, scratch })),
      );
    }
  }
  return measurements;
}

const nothing = {
  versions: [],
  idleBytes: new Map(),
  measurements: [],
  manyTargets: null,
  observation: null,
  limits: null,
  guarded: null,
  skipped: [],
};

async function runBench(
  options: BenchOptions,
  scratch: string,
  proxies: RunningProxy[],
): Promise<Run> {
  const origin = await startOrigin(scratch, SIZES);
  try {
    const { rounds, seconds, sluice: command, only } = options;
    const part = { scratch, command, originPort: origin.port, seconds, rounds };
    if (only === "streams") return { ...nothing, options, streams: await measureStreams(part) };
    if (only === "observation")
      return { ...nothing, options, streams: null, observation: await measureObservation(part) };
    if (only === "limits")
      return { ...nothing, options, streams: null, limits: await measureLimits(part) };
    if (only === "guarded")
      return { ...nothing, options, streams: null, guarded: await measureGuarded(part) };
    const input = { scratch, originPort: origin.port, certificate: makeCertificate(scratch) };
    const skipped = only === "targets" ? [] : await startAll(input, options, proxies);
    for (const line of skipped) console.log(line);
    const idleBytes = new Map(proxies.map((one) => [one.name, residentBytes(one.program.pid)]));
    const measurements = proxies.length === 0 ? [] : await measureAll(proxies, options, scratch);
    const versions = [...new Set(proxies.map((proxy) => proxy.version))];
    const comparison = { options, versions, idleBytes, measurements, skipped };
    if (only === "comparison") return { ...nothing, ...comparison, streams: null };
    console.log("measuring eight targets against one");
    const manyTargets = await measureManyTargets(part);
    if (only === "targets") return { ...nothing, ...comparison, manyTargets, streams: null };
    // Nothing else may take processor time on the core meanwhile.
    await Promise.all(proxies.splice(0).map((one) => one.program.stop()));
    console.log("measuring metrics and recent requests against none");
    const observation = await measureObservation(part);
    console.log("measuring a rate limit against none");
    const limits = await measureLimits(part);
    console.log("measuring plugins that guard a route against none");
    const guarded = await measureGuarded(part);
    console.log("measuring TCP streams");
    const streams = await measureStreams(part);
    return { ...comparison, manyTargets, observation, limits, guarded, streams };
  } finally {
    await Promise.all([...proxies, origin].map((one) => one.program.stop()));
  }
}

/** Cache hits and compression. Nothing else runs meanwhile. */
async function runContent(options: BenchOptions, scratch: string): Promise<void> {
  const { only, seconds, sluice: command } = options;
  if (only !== undefined && only !== "content") return;
  console.log("measuring cache hits and compression");
  const rounds = Math.ceil(options.rounds / 2);
  const rows = await measureContent({ scratch, command, seconds, rounds });
  console.log(contentToText(rows));
  const text = contentToMarkdown(rows, { seconds, rounds });
  if (options.out !== undefined) writeSection(options.out, { name: "content", text });
}

/** An access log against none. Nothing else runs meanwhile. */
async function runAccessLog(options: BenchOptions, scratch: string): Promise<void> {
  const { only, seconds, sluice: command } = options;
  if (only !== undefined && only !== "access-log") return;
  console.log("measuring access logs");
  const origin = await startOrigin(scratch, SIZES);
  try {
    const { rounds } = options;
    const part = { scratch, command, originPort: origin.port, seconds, rounds };
    const rows = await measureAccessLog(part);
    console.log(accessLogTable(rows));
    if (options.out !== undefined)
      writeSection(options.out, { name: "access-log", text: accessLogToMarkdown(rows) });
  } finally {
    await origin.program.stop();
  }
}

/** gRPC and downloads over HTTP/2. Nothing else runs meanwhile. */
async function runGrpc(options: BenchOptions, scratch: string): Promise<void> {
  const { only, seconds, rounds, sluice: command } = options;
  if (only !== undefined && only !== "grpc") return;
  console.log("measuring gRPC and downloads over HTTP/2");
  const origin = await startOrigin(scratch, { "64B": SIZES["64B"], "100MiB": 104_857_600 });
  try {
    const rows = await measureGrpc({ scratch, command, originPort: origin.port, seconds, rounds });
    console.log(grpcToText(rows));
    const text = grpcToMarkdown(rows, { seconds, rounds });
    if (options.out !== undefined) writeSection(options.out, { name: "grpc", text });
  } finally {
    await origin.program.stop();
  }
}

/** Plugins from a directory against built-in ones: only on request, because it needs many turns. Nothing else runs meanwhile. */
async function runOwnPlugins(options: BenchOptions, scratch: string): Promise<void> {
  const { only, seconds, rounds, sluice: command } = options;
  if (only !== "own-plugins") return;
  const rows = await measureOwnPlugins({ scratch, command, seconds, rounds });
  console.log(ownPluginsToText(rows));
  const text = ownPluginsToMarkdown(rows, { seconds, rounds });
  if (options.out !== undefined) writeSection(options.out, { name: "own-plugins", text });
}

/** Parts that run alone, after the others. */
const ALONE: readonly BenchOptions["only"][] = ["content", "access-log", "grpc", "own-plugins"];

async function runOthers(options: BenchOptions, scratch: string): Promise<void> {
  if (options.only !== undefined && ALONE.includes(options.only)) return;
  const run = await runBench(options, scratch, []);
  if (options.only !== "streams") console.log(toText(run));
  if (run.streams !== null) console.log(streamsToText(run.streams));
  if (options.out === undefined) return;
  if (options.only !== "streams")
    writeSection(options.out, { name: "comparison", text: toMarkdown(run) });
  if (run.streams !== null) {
    const how = { seconds: options.seconds, rounds: options.rounds };
    writeSection(options.out, { name: "streams", text: streamsToMarkdown(run.streams, how) });
  }
}

const options = parseOptions(process.argv.slice(2));
if (options === "help") {
  console.log(USAGE);
} else {
  const missing = ["taskset", "nginx", "wrk", "h2load", "openssl"].filter(
    (name) => !Bun.which(name),
  );
  if (missing.length > 0) throw new Error(`not installed: ${missing.join(", ")}`);
  if (availableParallelism() < 2)
    throw new Error("two cores are needed: one for the proxy, one for the load");
  const scratch = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  try {
    chmodSync(scratch, 0o755);
    await runOthers(options, scratch);
    await runContent(options, scratch);
    await runAccessLog(options, scratch);
    await runGrpc(options, scratch);
    await runOwnPlugins(options, scratch);
    if (options.out !== undefined) console.log(`\nwritten to ${options.out}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

// Measures what 100,000 consumers with keys cost: a start, memory, a request, a change; knows nothing of other credentials.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { createLog } from "../../src/log.ts";
import type { Consumer } from "../../src/model/consumer.ts";
import type { Credential } from "../../src/model/credential.ts";
import { mapCollections, type ResourceChange } from "../../src/model/gateway-config.ts";
import { Store } from "../../src/store/store.ts";
import { loadWithWrk, percentile } from "./load.ts";
import { PROXY_CORE, processorTimeUs, residentBytes, waitFor } from "./processes.ts";
import { type RunningSluice, type SluicePorts, startSluice } from "./sluice.ts";

export interface ConsumersInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly originPort: number;
  readonly consumers: number;
  readonly seconds: number;
}

export interface ConsumersResult {
  readonly startMs: number;
  /** Resident memory more than the same gateway without consumers, with two workers. */
  readonly twoWorkersBytes: number;
  /** What a further worker costs more because of the consumers. */
  readonly furtherWorkerBytes: number;
  /** Processor time per request, as a multiple of that with one consumer: one key, and keys of all consumers in turn. */
  readonly costOfOneKey: number;
  readonly costOfAllKeys: number;
  readonly mutationP50Ms: number;
  readonly mutationP99Ms: number;
}

const STARTS = 3;
const SETTLE_MS = 3_000;
const ROUNDS = 4;
const MUTATIONS = 300;
const AT = "2026-01-01T00:00:00.000Z";

const keyOf = (index: number): string => `bench-key-${index}`;

/** Fills a directory, then measures starts, memory, requests and changes with it and with one that has a single consumer. */
export async function measureConsumers(input: ConsumersInput): Promise<ConsumersResult> {
  const many = await prepareDirectory(input, "many-consumers", input.consumers);
  const one = await prepareDirectory(input, "one-consumer", 1);
  const starts: number[] = [];
  const bytes: number[] = [];
  for (const workers of [2, 4])
    for (const directory of [one, many]) {
      const resident: number[] = [];
      for (let start = 0; start < STARTS; start += 1) {
        const sluice = await startSluice({ ...directory, workers, core: undefined });
        await Bun.sleep(SETTLE_MS);
        resident.push(residentBytes(sluice.program.pid));
        if (workers === 2 && directory === many) starts.push(sluice.readyMs);
        await sluice.program.stop();
      }
      bytes.push(median(resident));
    }
  const [twoEmpty = 0, twoFull = 0, fourEmpty = 0, fourFull = 0] = bytes;
  const mutations = await timeMutations(many);
  const costs = await compareRequests(input, one, many);
  return {
    startMs: median(starts),
    twoWorkersBytes: twoFull - twoEmpty,
    furtherWorkerBytes: (fourFull - fourEmpty - (twoFull - twoEmpty)) / 2,
    costOfOneKey: costs.oneKey,
    costOfAllKeys: costs.allKeys,
    mutationP50Ms: percentile(mutations, 0.5),
    mutationP99Ms: percentile(mutations, 0.99),
  };
}

const median = (values: readonly number[]): number =>
  percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );

interface Directory {
  readonly command: readonly string[];
  readonly dataDir: string;
  readonly ports: SluicePorts;
}

/** A route with key-auth, and consumers with one key each. */
async function prepareDirectory(
  { scratch, command, originPort }: ConsumersInput,
  name: string,
  consumers: number,
): Promise<Directory> {
  const dataDir = join(scratch, name);
  const sluice = await startSluice({ command, dataDir, workers: 1, core: undefined });
  try {
    await sluice.api.createService("origin", originPort);
    await sluice.api.send("POST", "/api/v1/routes", {
      name: "all",
      service_id: "origin",
      paths: ["/"],
    });
    await sluice.api.send("POST", "/api/v1/plugins", { name: "key-auth" });
  } finally {
    await sluice.program.stop();
  }
  fill(dataDir, consumers);
  return { command, dataDir, ports: sluice.ports };
}

// One by one through the API it would take an hour.
function fill(dataDir: string, count: number): void {
  const log = createLog({ level: "error", format: "json", sink: console.error });
  const store = Store.open({ dataDir, log });
  try {
    const consumers: Consumer[] = [];
    const credentials: Credential[] = [];
    for (let index = 0; index < count; index += 1) {
      const consumer = consumerOf(index);
      consumers.push(consumer);
      credentials.push(credentialOf(index, consumer.id));
    }
    const unchanged: ResourceChange<never> = { upserts: [], removals: [] };
    const change = {
      ...mapCollections(() => unchanged),
      settings: null,
      sso: null,
      consumers: { upserts: consumers, removals: [] },
      credentials: { upserts: credentials, removals: [] },
    };
    const entry = { at: AT, actor: "bench", summary: `create ${count} consumers` };
    store.commit({ revision: store.load().revision + 1, change, entry });
  } finally {
    store.close();
  }
}

const stored = () => ({ id: Bun.randomUUIDv7(), created_at: AT, updated_at: AT });

const consumerOf = (index: number): Consumer => ({
  ...stored(),
  username: `consumer-${index}`,
  custom_id: null,
  groups: ["bench"],
  enabled: true,
  tags: [],
  description: "",
});

const credentialOf = (index: number, consumerId: string): Credential => ({
  ...stored(),
  consumer_id: consumerId,
  type: "key",
  name: null,
  identifier: null,
  algorithm: null,
  public_key: null,
  expires_at: null,
  enabled: true,
  tags: [],
  description: "",
  prefix: keyOf(index).slice(0, 8),
  secret_hash: Bun.SHA256.hash(keyOf(index), "hex"),
  sealed_secret: null,
  previous: null,
});

// Each call ends when all workers serve the change.
async function timeMutations(directory: Directory): Promise<number[]> {
  const sluice = await startSluice({ ...directory, workers: 2, core: undefined });
  const times: number[] = [];
  const timed = async (method: string, path: string, body?: unknown) => {
    const began = performance.now();
    await sluice.api.send(method, path, body);
    times.push(performance.now() - began);
  };
  try {
    for (let index = 0; times.length < MUTATIONS; index += 1) {
      const username = `extra-${index}`;
      await timed("POST", "/api/v1/consumers", { username });
      await timed("POST", `/api/v1/consumers/${username}/credentials`, { type: "key" });
      await timed("PATCH", `/api/v1/consumers/consumer-${index}`, { groups: ["changed"] });
      await timed("DELETE", `/api/v1/consumers/${username}?cascade=true`);
    }
  } finally {
    await sluice.program.stop();
  }
  return times.sort((a, b) => a - b);
}

async function compareRequests(input: ConsumersInput, one: Directory, many: Directory) {
  const start = { workers: 1, core: PROXY_CORE };
  const small = await startSluice({ ...one, ...start });
  const large = await startSluice({ ...many, ...start }).catch(async (error: unknown) => {
    await small.program.stop();
    throw error;
  });
  const oneKey = writeScript(input.scratch, "one-key", 1);
  const allKeys = writeScript(input.scratch, "all-keys", input.consumers);
  try {
    const [alone, amongMany, all] = await measureInTurn(input.seconds, [
      { sluice: small, script: oneKey, keys: 1 },
      { sluice: large, script: oneKey, keys: 1 },
      { sluice: large, script: allKeys, keys: input.consumers },
    ]);
    const times = (value: number | undefined) => (value ?? Number.NaN) / (alone ?? Number.NaN);
    return { oneKey: times(amongMany), allKeys: times(all) };
  } finally {
    await small.program.stop();
    await large.program.stop();
  }
}

function writeScript(scratch: string, name: string, keys: number): string {
  const file = join(scratch, `${name}.lua`);
  const key = `"${keyOf(0).replace(/0$/, "")}" .. math.random(0, ${keys - 1})`;
  writeFileSync(
    file,
    `request = function()\n  wrk.headers["X-API-Key"] = ${key}\n  return wrk.format("GET", "/64B")\nend\n`,
  );
  return file;
}

interface Case {
  readonly sluice: RunningSluice;
  readonly script: string;
  /** That the script shows. */
  readonly keys: number;
}

/** Requests for each key before anything is measured: the first use of a key is written down, and later ones are not for a while. */
const WARM_UP = 3;

// Turn by turn, so that a busy moment of the machine falls on all.
async function measureInTurn(seconds: number, cases: readonly Case[]): Promise<number[]> {
  const totals = cases.map(() => ({ cpuUs: 0, requests: 0 }));
  const urlOf = ({ ports }: RunningSluice) => `http://127.0.0.1:${ports.http}/64B`;
  for (const { sluice, script, keys } of cases) {
    await waitFor("an answer for a key", 5_000, async () => {
      const response = await fetch(urlOf(sluice), { headers: { "x-api-key": keyOf(0) } });
      return (await response.bytes()).length === 64 ? true : undefined;
    });
    for (let seen = 0; seen === 0 || seen < keys * WARM_UP;)
      seen += (await loadWithWrk(urlOf(sluice), 2, { script })).requests;
  }
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [index, { sluice, script }] of cases.entries()) {
      const before = processorTimeUs(sluice.program.pid);
      const result = await loadWithWrk(urlOf(sluice), seconds, { script });
      if (result.errors > 0) throw new Error(`${result.errors} requests failed`);
      const total = totals[index];
      if (total === undefined) continue;
      total.cpuUs += processorTimeUs(sluice.program.pid) - before;
      total.requests += result.requests;
    }
  return totals.map((total) => total.cpuUs / total.requests);
}

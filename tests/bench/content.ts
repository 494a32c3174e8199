// Measures what a cache hit and the compressing of an answer cost, against the proxied request and against nginx; knows no table.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { BROWSER_HEADERS, type LoadResult, loadWithWrk, percentile } from "./load.ts";
import { body, writeNginx } from "./origin.ts";
import {
  freePort,
  LOAD_CORE,
  processorTimeUs,
  PROXY_CORE,
  type RunningProgram,
  startProgram,
  waitFor,
} from "./processes.ts";
import { startSluice } from "./sluice.ts";

export interface ContentInput {
  readonly scratch: string;
  readonly command: readonly string[];
  /** Measured seconds of each turn. */
  readonly seconds: number;
  /** Turns of each, for each set of processes. */
  readonly rounds: number;
}

/** Sets of new processes: two processes of one program differ by 3 to 5 %, which no number of turns evens out. */
export const SETS = 3;

/** The engine compiles code for some seconds, which takes processor time as well. */
const WARM_UP_SECONDS = 5;

/** Processor time of an answered request in microseconds: the middle one of all turns, and of all sets. */
export interface ContentRow {
  readonly what: "cache hit" | "compressed";
  readonly body: string;
  readonly proxiedUs: number;
  readonly ownUs: number;
  readonly nginxUs: number;
  /** Middle ones of the ratios of each turn, and of all sets. */
  readonly toProxied: number;
  readonly toNginx: number;
  readonly errors: number;
}

const CACHED = { "64B": 64, "10KB": 10_240, "100KB": 102_400 } as const;
const COMPRESSED = { "10KB.json": 10_240, "100KB.json": 102_400 } as const;
export const GZIP_LEVEL = 5;

/** What a browser sends for a page that it is not signed in to: credentials are nothing for a cache. */
const HEADERS: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(BROWSER_HEADERS).filter(
    ([name]) => name !== "authorization" && name !== "accept-encoding",
  ),
);
const GZIP_HEADERS = { ...HEADERS, "accept-encoding": "gzip" };

interface Contestant {
  readonly program: RunningProgram;
  readonly port: number;
}

export async function measureContent(input: ContentInput): Promise<ContentRow[]> {
  const sets: ContentRow[][] = [];
  for (let set = 0; set < SETS; set += 1) {
    const scratch = join(input.scratch, `content-${set}`);
    sets.push(await measureSet({ ...input, scratch }));
  }
  return (sets[0] ?? []).map(({ what, body }, at) => {
    const same = sets.flatMap((rows) => rows[at] ?? []);
    const middleOf = (pick: (row: ContentRow) => number) => middle(same.map(pick));
    return {
      what,
      body,
      proxiedUs: middleOf((row) => row.proxiedUs),
      ownUs: middleOf((row) => row.ownUs),
      nginxUs: middleOf((row) => row.nginxUs),
      toProxied: middleOf((row) => row.toProxied),
      toNginx: middleOf((row) => row.toNginx),
      errors: same.reduce((sum, { errors }) => sum + errors, 0),
    };
  });
}

const middle = (values: readonly number[]): number =>
  percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );

async function measureSet(input: ContentInput): Promise<ContentRow[]> {
  const started: Contestant[] = [];
  const keep = (one: Contestant) => {
    started.push(one);
    return one;
  };
  try {
    const origin = keep(await startContentOrigin(input.scratch));
    const proxied = keep(await startSluiceWith(input, origin.port, "proxied"));
    const caching = keep(await startSluiceWith(input, origin.port, "response-cache"));
    const compressing = keep(await startSluiceWith(input, origin.port, "compress"));
    const nginx = keep(await startContentNginx(input.scratch, origin.port));
    const rows: ContentRow[] = [];
    for (const file of Object.keys(CACHED)) {
      const load = loadOf(`/${file}`, HEADERS);
      rows.push({
        what: "cache hit",
        body: file,
        ...(await inTurn({ proxied, own: caching, nginx }, load, input)),
      });
    }
    for (const file of Object.keys(COMPRESSED)) {
      const load = loadOf(`/gzip/${file}`, GZIP_HEADERS);
      rows.push({
        what: "compressed",
        body: file,
        ...(await inTurn({ proxied, own: compressing, nginx }, load, input)),
      });
    }
    return rows;
  } finally {
    await Promise.all(started.map(({ program }) => program.stop()));
  }
}

type Load = (one: Contestant, seconds: number) => Promise<LoadResult>;

const loadOf =
  (path: string, headers: Readonly<Record<string, string>>): Load =>
  ({ port }, seconds) =>
    loadWithWrk(`http://127.0.0.1:${port}${path}`, seconds, { headers });

async function inTurn(
  who: { readonly proxied: Contestant; readonly own: Contestant; readonly nginx: Contestant },
  load: Load,
  { seconds, rounds }: ContentInput,
) {
  for (const one of Object.values(who)) await load(one, WARM_UP_SECONDS);
  const costs: { proxied: number; own: number; nginx: number }[] = [];
  const names = ["proxied", "own", "nginx"] as const;
  let errors = 0;
  for (let round = 0; round < rounds; round += 1) {
    const cost = { proxied: 0, own: 0, nginx: 0 };
    // The order alternates: the speed of the machine changes.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const { pid } = who[name].program;
      const before = processorTimeUs(pid);
      const result = await load(who[name], seconds);
      cost[name] = (processorTimeUs(pid) - before) / result.requests;
      errors += result.errors;
    }
    costs.push(cost);
  }
  return {
    proxiedUs: middle(costs.map((cost) => cost.proxied)),
    ownUs: middle(costs.map((cost) => cost.own)),
    nginxUs: middle(costs.map((cost) => cost.nginx)),
    toProxied: middle(costs.map((cost) => cost.own / cost.proxied)),
    toNginx: middle(costs.map((cost) => cost.own / cost.nginx)),
    errors,
  };
}

/** Files that may be cached, and text that compresses about as well as an API's answers. */
async function startContentOrigin(scratch: string): Promise<Contestant> {
  const folder = join(scratch, "content-origin");
  const files = join(folder, "files");
  mkdirSync(join(files, "gzip"), { recursive: true });
  for (const [name, size] of Object.entries(CACHED)) writeFileSync(join(files, name), body(size));
  for (const [name, size] of Object.entries(COMPRESSED))
    writeFileSync(join(files, "gzip", name), records(size));
  const port = freePort();
  const config = writeNginx(
    folder,
    `default_type application/octet-stream;
  types { application/json json; }
  sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 300s;
  server {
    listen 127.0.0.1:${port} backlog=4096; root ${files};
    location / { add_header Cache-Control "public, max-age=3600"; }
    location /gzip/ { }
  }
`,
  );
  const program = startNginxWith(folder, config, LOAD_CORE);
  return await answering({ program, port }, "/64B");
}

/** Lines of JSON with names, numbers and ids. */
function records(size: number): string {
  let text = "[";
  for (let at = 1; text.length < size; at += 1) {
    const id = Bun.hash(String(at)).toString(16);
    text += `{"id":"${id}","name":"Customer ${at}","active":${at % 3 === 0},"balance":${(at * 7919) % 100_000}},\n`;
  }
  return text.slice(0, size);
}

async function startContentNginx(scratch: string, originPort: number): Promise<Contestant> {
  const folder = join(scratch, "content-nginx");
  mkdirSync(folder, { recursive: true });
  const port = freePort();
  const config = writeNginx(
    folder,
    `
  keepalive_requests 1000000000;
  proxy_cache_path ${folder}/cache keys_zone=all:10m max_size=256m inactive=1h use_temp_path=off;
  upstream origin { server 127.0.0.1:${originPort}; keepalive 512; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    location / {
      proxy_pass http://origin; proxy_cache all; sendfile on;
      add_header X-Cache-Status $upstream_cache_status;
    }
    location /gzip/ {
      proxy_pass http://origin;
      gzip on; gzip_comp_level ${GZIP_LEVEL}; gzip_proxied any; gzip_types application/json; gzip_vary on;
    }
  }
`,
  );
  const program = startNginxWith(folder, config, PROXY_CORE);
  return await answering({ program, port }, "/64B");
}

function startNginxWith(folder: string, config: string, core: number): RunningProgram {
  const command = ["nginx", "-p", folder, "-c", config];
  return startProgram({ command, core, logFile: join(folder, "out.log") });
}

async function startSluiceWith(
  { scratch, command }: ContentInput,
  originPort: number,
  what: "proxied" | "response-cache" | "compress",
): Promise<Contestant> {
  const dataDir = join(scratch, `content-${what}`);
  const { api, ports, program } = await startSluice({
    command,
    dataDir,
    workers: 1,
    core: PROXY_CORE,
  });
  await api.createService("origin", originPort);
  await api.send("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
  const own = { encodings: ["gzip"], gzip_level: GZIP_LEVEL };
  if (what !== "proxied")
    await api.send("POST", "/api/v1/plugins", {
      name: what,
      config: what === "compress" ? own : {},
    });
  return await answering({ program, port: ports.http }, "/64B");
}

async function answering(one: Contestant, path: string): Promise<Contestant> {
  try {
    await waitFor("the first answer", 5_000, async () =>
      (await fetch(`http://127.0.0.1:${one.port}${path}`)).ok ? true : undefined,
    );
    return one;
  } catch (error) {
    await one.program.stop();
    throw error;
  }
}

// Sends load with wrk and h2load and reads what they print; knows nothing of the server.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Protocol } from "./options.ts";
import { LOAD_CORE, runProgram } from "./processes.ts";

export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Requests without a 2xx answer, and connections that broke. */
  readonly errors: number;
}

/** What a browser sends with the request for a page; Host is the eleventh. */
export const BROWSER_HEADERS: Readonly<Record<string, string>> = {
  "user-agent":
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "accept-language": "en-US,en;q=0.9,de;q=0.8",
  "accept-encoding": "gzip, deflate, br, zstd",
  cookie:
    "session=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.abcdef; theme=dark; _ga=GA1.2.123456789.1700000000",
  referer: "https://app.example.com/dashboard/overview?tab=1",
  "sec-fetch-mode": "navigate",
  "sec-fetch-site": "same-origin",
  "cache-control": "no-cache",
  authorization: "Bearer abcdefghijklmnopqrstuvwxyz0123456789",
};

const wordsOf = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);

const headerWords = wordsOf(BROWSER_HEADERS);

export interface WrkOptions {
  /** Replaces the URL's. */
  readonly host?: string;
  /** A connection for each request. */
  readonly close?: boolean;
  /** In the place of a browser's. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Beside them. */
  readonly moreHeaders?: Readonly<Record<string, string>>;
  /** A Lua file that makes the requests. */
  readonly script?: string;
}

/** HTTP/1.1, with or without TLS: 48 connections, one request at a time on each. */
export async function loadWithWrk(
  url: string,
  seconds: number,
  { host, close = false, headers, moreHeaders = {}, script }: WrkOptions = {},
): Promise<LoadResult> {
  const more = host === undefined ? [] : ["-H", `Host: ${host}`];
  if (close) more.push("-H", "Connection: close");
  if (script !== undefined) more.push("-s", script);
  const own = headers === undefined ? headerWords : wordsOf(headers);
  more.push(...wordsOf(moreHeaders));
  const words = ["wrk", "-t1", "-c48", `-d${seconds}s`, "--latency", ...own, ...more, url];
  return parseWrk(await runProgram(LOAD_CORE, words));
}

/** Requests as those of a browser, each with a path, a cookie and an id of its own. */
const VARIED = `local n, head = 0, ""
init = function()
  local lines = {}
  for name, value in pairs(wrk.headers) do lines[#lines + 1] = name .. ": " .. value end
  head = " HTTP/1.1\\r\\n" .. table.concat(lines, "\\r\\n")
end
request = function()
  n = n + 1
  return "GET " .. wrk.path .. n .. head ..
    "\\r\\nCookie: session=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." .. n .. "; theme=dark; _ga=GA1.2." .. n ..
    "\\r\\nX-Request-Id: 01a22745-0000-7000-8000-" .. n .. "\\r\\n\\r\\n"
end
`;

/** As many connections as the others of HTTP/1.1 have; the URL ends before the part that varies. */
export async function loadVaried(
  url: string,
  seconds: number,
  scratch: string,
): Promise<LoadResult> {
  const script = join(scratch, "varied.lua");
  writeFileSync(script, VARIED);
  const { cookie: _, ...headers } = BROWSER_HEADERS;
  return await loadWithWrk(url, seconds, { headers, script });
}

/** What h2load speaks: all heads of a connection are equal. */
export type EqualHeads = Exclude<Protocol, "varied">;

/** Connections and streams of each connection, by protocol. */
const H2LOAD_SHAPE: Readonly<Record<EqualHeads, readonly string[]>> = {
  http: ["--h1", "-c48", "-m1"],
  tls: ["--h1", "-c48", "-m1"],
  h2: ["--npn-list=h2", "-c16", "-m8"],
};

/**
 * Sends an exact number of requests: a load that ends by the clock breaks off what is under way, and the proxies count
 * that in different ways.
 */
export async function loadWithH2load(
  url: string,
  requests: number,
  { protocol, scratch }: { readonly protocol: EqualHeads; readonly scratch: string },
): Promise<LoadResult> {
  const log = join(scratch, "h2load.log");
  rmSync(log, { force: true });
  const words = [...H2LOAD_SHAPE[protocol], `-n${requests}`, `--log-file=${log}`];
  const printed = await runProgram(LOAD_CORE, ["h2load", ...words, ...headerWords, url]);
  return parseH2load(printed, readFileSync(log, "utf8"), protocol);
}

/** Reads the report of `wrk --latency`. */
export function parseWrk(printed: string): LoadResult {
  const counted = /(\d+) requests in/.exec(printed);
  const rate = /Requests\/sec:\s+([\d.]+)/.exec(printed);
  if (!counted || !rate) throw new Error(`wrk printed no result: ${printed}`);
  const socketErrors = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(
    printed,
  );
  const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(printed)?.[1] ?? 0);
  return {
    requests: Number(counted[1]),
    requestsPerSecond: Number(rate[1]),
    p50Ms: toMilliseconds(/50%\s+([\d.]+)(us|ms|s|m)/.exec(printed)),
    p99Ms: toMilliseconds(/99%\s+([\d.]+)(us|ms|s|m)/.exec(printed)),
    errors: refused + (socketErrors?.slice(1).reduce((sum, text) => sum + Number(text), 0) ?? 0),
  };
}

function toMilliseconds(found: RegExpExecArray | null): number {
  const factor = { us: 0.001, ms: 1, s: 1_000, m: 60_000 }[found?.[2] ?? ""];
  return factor === undefined ? Number.NaN : Number(found?.[1]) * factor;
}

/** Reads the summary of h2load, and the percentiles from its log: time, status and microseconds on each line. */
export function parseH2load(printed: string, log: string, protocol: Protocol): LoadResult {
  if (protocol === "h2" && !/Application protocol: h2\b/.test(printed))
    throw new Error("HTTP/2 was not negotiated");
  const finished = /finished in ([\d.]+)(us|ms|s|m)/.exec(printed);
  const counts = /(\d+) succeeded, (\d+) failed/.exec(printed);
  if (finished === null || counts === null) throw new Error(`h2load printed no result: ${printed}`);
  const succeeded = Number(counts[1]);
  const redirects = Number(/status codes: \d+ 2xx, (\d+) 3xx/.exec(printed)?.[1] ?? 0);
  const durations: number[] = [];
  for (const line of log.split("\n")) {
    const [, status, microseconds] = line.split("\t");
    if (status?.startsWith("2")) durations.push(Number(microseconds));
  }
  durations.sort((a, b) => a - b);
  return {
    requests: succeeded,
    requestsPerSecond: succeeded / (toMilliseconds(finished) / 1000),
    p50Ms: percentile(durations, 0.5) / 1_000,
    p99Ms: percentile(durations, 0.99) / 1_000,
    errors: Number(counts[2]) + redirects,
  };
}

/** The value below which the given share of a sorted list lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

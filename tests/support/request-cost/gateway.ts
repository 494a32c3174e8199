// A data plane alone in its process, measured from inside: objects that requests allocate, files whose code they run.
//
// Started with the origin's port, a mode (`objects`, `kept` or `files`) and what the path has. Prints its port; on a line `start` and
// a line `end` of standard input it counts, and then prints the difference as JSON.
import { heapStats } from "bun:jsc";
import inspector from "node:inspector";
import type { DataPlaneSketch } from "../data-plane.ts";

const [originPort = "", mode = "objects", path = "plain"] = process.argv.slice(2);
const root = new URL("../../../src/", import.meta.url).href;

const session = new inspector.Session();
session.connect();
const ask = (method: string, parameters: object = {}) =>
  new Promise<{ result: readonly ScriptCoverage[] }>((resolve, reject) =>
    (session.post as unknown as Post)(method, parameters, (error, value) =>
      error === null ? resolve(value) : reject(error),
    ),
  );

type Post = (
  method: string,
  parameters: object,
  done: (error: Error | null, value: { result: readonly ScriptCoverage[] }) => void,
) => void;

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

if (mode === "files") {
  await ask("Profiler.enable");
  await ask("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
}

/** After the start of coverage: only code that is loaded from then on is counted. */
const { startDataPlane } = await import("../data-plane.ts");

const plugins: Readonly<Record<string, DataPlaneSketch["plugins"]>> = {
  plugins: [
    { name: "ip-restriction", config: { allow: ["127.0.0.0/8"] } },
    { name: "security-headers", config: {} },
  ],
  "cached hit": [
    { name: "response-cache", config: { ignore_client_no_cache: true, cache_authorized: true } },
  ],
  redirect: [{ name: "redirect", config: { to: "https://www.example.com", status: 308 } }],
};
const sketch: DataPlaneSketch = {
  services: [
    {
      name: "app",
      targets: [{ port: Number(originPort) }],
      ...(path === "sticky cookie" ? { sticky: { enabled: true } } : {}),
    },
  ],
  routes: [
    {
      name: "all",
      service_id: "app",
      paths: [{ type: "prefix", value: path === "error page" ? "/other" : "/" }],
    },
  ],
  ...(plugins[path] === undefined ? {} : { plugins: plugins[path] }),
};
const gateway = await startDataPlane(sketch);

/** Cells by type; in mode `objects` nothing is ever collected in this process. */
const takeObjects = (): Record<string, number> => heapStats().objectTypeCounts;

/** Those that are left. A collection finds what the one before has finalized. */
async function takeKept(): Promise<Record<string, number>> {
  // The test's own log of failed requests.
  (gateway.log as unknown[]).length = 0;
  for (let turn = 0; turn < 4; turn++) {
    Bun.gc(true);
    await Bun.sleep(1);
  }
  return takeObjects();
}

/** How often each function was called since the last time, by file below src/. */
async function takeCalls(): Promise<Record<string, number>> {
  const calls: Record<string, number> = {};
  for (const { url, functions } of (await ask("Profiler.takePreciseCoverage")).result) {
    if (!url.startsWith(root)) continue;
    for (const { functionName, ranges } of functions)
      calls[`${url.slice(root.length)} ${functionName} ${ranges[0]?.startOffset}`] =
        ranges[0]?.count ?? 0;
  }
  return calls;
}

async function take(): Promise<Record<string, number>> {
  if (mode === "kept") return takeKept();
  return mode === "files" ? takeCalls() : takeObjects();
}
console.log(gateway.port);
let before: Record<string, number> = {};
for await (const line of console) {
  if (line === "start") {
    before = await take();
    console.log("started");
  }
  if (line === "end") {
    const after = await take();
    const made = Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)]);
    console.log(JSON.stringify(mode === "files" ? after : Object.fromEntries(made)));
    process.exit(0);
  }
}

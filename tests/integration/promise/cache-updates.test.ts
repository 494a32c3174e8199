// A cache for four workers under load while its pages change: after the reply to an update or a purge no client gets an older page.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { Random, seedOfRun } from "../../support/random.ts";

const PAGES = 64;
const READERS = 16;
const WRITERS = 4;
/** Changes in all, which every page sees many times. */
const CHANGES = Number(process.env["SLUICE_CACHE_CHANGES"] ?? 10_000);
const random = new Random(seedOfRun());

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;
/** What the origin serves. */
const versions = new Int32Array(PAGES);
/** The oldest version that a request may get that begins now. */
const required = new Int32Array(PAGES);

/** Pages of a writer: `/w1/5`; its tag: `w1`. */
const pathOf = (page: number) => `/w${page % WRITERS}/${Math.floor(page / WRITERS)}`;
const pageOf = (path: string) => {
  const [, writer = "0", at = "0"] = /^\/w(\d+)\/(\d+)/.exec(path) ?? [];
  return Number(at) * WRITERS + Number(writer);
};

beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch({ url, method }) {
      const { pathname } = new URL(url);
      const page = pageOf(pathname);
      if (method === "PUT") {
        versions[page] = (versions[page] ?? 0) + 1;
        return new Response(null, { status: 204 });
      }
      const version = String(versions[page]);
      // Sometimes the page is on its way while it changes.
      if (random.chance(0.2)) await new Promise((resolve) => setTimeout(resolve, 1));
      const headers = { "Cache-Control": "max-age=600", "Surrogate-Key": `w${page % WRITERS} all` };
      return new Response(version, { headers });
    },
  });
  gateway = await startGateway({ workers: 4 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
  await gateway.ok("POST", "/api/v1/plugins", { name: "response-cache", config: {} });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop(true);
});

/** Reads random pages until `isOver`, and compares them with what had been required before. */
async function read(seen: { hits: number; stale: string[] }, isOver: () => boolean) {
  for (let n = 0; !isOver(); n++) {
    const page = random.between(0, PAGES);
    const atLeast = required[page] ?? 0;
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${pathOf(page)}`, {
      // New connections go to other workers.
      keepalive: n % 8 !== 0,
    });
    const version = Number(await response.text());
    const word = response.headers.get("x-cache-status");
    if (word === "HIT") seen.hits++;
    if (!(version >= atLeast)) seen.stale.push(`${pathOf(page)}: ${version} < ${atLeast}, ${word}`);
  }
}

const purgesOf = (path: string, writer: string) => [
  { key: path },
  { prefix: `/${writer}/` },
  { tag: writer },
];

/** Changes pages of one writer: mostly by requests of clients, which invalidate, otherwise at the origin with a purge. */
async function write(writer: number, count: number) {
  for (let n = 0; n < count; n++) {
    const page = random.between(0, PAGES / WRITERS) * WRITERS + writer;
    const path = pathOf(page);
    if (random.chance(0.75)) {
      const url = `http://127.0.0.1:${gateway.httpPort}${path}`;
      const { status } = await fetch(url, { method: "PUT", keepalive: n % 4 !== 0 });
      if (status !== 204) throw new Error(`an update got ${status}`);
    } else {
      versions[page] = (versions[page] ?? 0) + 1;
      const which = purgesOf(path, `w${writer}`)[n % 3];
      await gateway.ok("POST", "/api/v1/cache/purge", which);
    }
    required[page] = versions[page] ?? 0;
  }
}

test(`no stale page after ${CHANGES} changes under load`, async () => {
  const seen = { hits: 0, stale: [] as string[] };
  let isOver = false;
  const readers = Array.from({ length: READERS }, () => read(seen, () => isOver));
  await Promise.all(Array.from({ length: WRITERS }, (_, at) => write(at, CHANGES / WRITERS)));
  isOver = true;
  await Promise.all(readers);
  expect(seen.stale).toEqual([]);
  expect(seen.hits).toBeGreaterThan(1000);
});

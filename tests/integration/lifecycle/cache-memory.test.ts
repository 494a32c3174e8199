// The memory of response caches is returned when nothing uses the cache any more.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { useGateway } from "../api/client.ts";
import { eventually } from "../../support/poll.ts";

const MIB = 1_048_576;
/** Twice what has to become free: the threads fill memory of their own meanwhile. */
const PAGES = 300;
const gateway = useGateway();
let origin: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  // Random, so that neither a file system nor the kernel can make it smaller.
  const body = new Uint8Array(MIB);
  for (let at = 0; at < MIB; at += 65_536) crypto.getRandomValues(body.subarray(at, at + 65_536));
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(body, { headers: { "Cache-Control": "max-age=600" } }),
  });
  const target = { host: "127.0.0.1", port: origin.port };
  await gateway.create("/services", { name: "origin", targets: [target] });
  await gateway.create("/routes", { name: "all", service_id: "origin" });
});
afterAll(() => origin.stop(true));

const rssMib = () => {
  const status = readFileSync(`/proc/${gateway.gateway.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
};

/** Requests so many pages of 1 MiB, each on a connection of its own. */
async function request(pages: number): Promise<string[]> {
  const words: string[] = [];
  for (let page = 0; page < pages; page++) {
    const response = await fetch(`http://127.0.0.1:${gateway.gateway.httpPort}/${page}`, {
      headers: { Connection: "close" },
    });
    words.push(response.headers.get("x-cache-status") ?? "");
    await response.arrayBuffer();
  }
  return words;
}

const create = (maxTotal: number) =>
  gateway.create("/plugins", { name: "response-cache", config: { max_total: maxTotal } });

test("the memory of a removed or changed instance is free at once", async () => {
  const { id } = await create(512 * MIB);
  await request(PAGES);
  expect(await request(PAGES)).toEqual(Array(PAGES).fill("HIT"));
  const full = rssMib();
  await gateway.call(`PATCH /plugins/${id}`, {
    body: { config: { max_total: 512 * MIB, ttl_default: 1 } },
  });
  await eventually(() => full - rssMib() > 150);
  await request(PAGES);
  const again = rssMib();
  await gateway.call(`DELETE /plugins/${id}`);
  await eventually(() => again - rssMib() > 150);
});

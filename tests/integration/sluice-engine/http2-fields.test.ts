// Random fields over HTTP/2 of Bun and of Node (nghttp2), in both directions: what arrives is what was sent.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { needs } from "../../support/needs.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { Random, seedOfRun } from "../../support/random.ts";

let origin: Origin;
let gateway: RunningDataPlane;
const random = new Random(seedOfRun());
const CLIENT = `${import.meta.dir}/../../fixtures/h2-random-client.mjs`;
const COUNT = 300;

beforeAll(async () => {
  // Responds with the fields of the request, as fields and as its body.
  origin = startOrigin({
    answer({ fields }) {
      const own = fields.filter(([name]) => /^x-\d/.test(name));
      const body = JSON.stringify(own);
      const lines = own.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      return `HTTP/1.1 200 OK\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`;
    },
  });
  gateway = await startDataPlane({
    listener: { engine: "sluice", max_header_bytes: 131_072 },
    services: [{ name: "origin", targets: [{ port: origin.port }] }],
    routes: [{ name: "all", service_id: "origin" }],
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

interface Result {
  readonly sent: Record<string, string>;
  readonly headers: Record<string, string>;
  readonly body: string;
}

async function exchange(program: string, tableSize: number): Promise<Result[]> {
  const seed = random.between(0, 2 ** 31);
  const client = Bun.spawn(
    [program, CLIENT, ...[gateway.port, seed, COUNT, tableSize].map(String)],
    { stdout: "pipe", stderr: "inherit" },
  );
  const lines = (await new Response(client.stdout).text()).trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Result);
}

async function check(program: string, tableSize: number): Promise<void> {
  const results = await exchange(program, tableSize);
  expect(results.length).toBe(COUNT);
  for (const { sent, headers, body } of results) {
    const seen = Object.fromEntries(JSON.parse(body) as [string, string][]);
    expect(seen).toEqual(sent);
    const received = Object.entries(headers).filter(([name]) => /^x-\d/.test(name));
    expect(Object.fromEntries(received)).toEqual(sent);
  }
}

const tables = [0, 100, 4096];

describe("with a header table of", () => {
  test.each(tables)("%d bytes: Bun", async (size) => {
    await check(process.execPath, size);
  });

  // Bun takes what it allows its server for what its server allows: with more it refers to entries that no table has.
  needs("node").test.each([...tables, 65_536])("%d bytes: Node", async (size) => {
    await check("node", size);
  });
});

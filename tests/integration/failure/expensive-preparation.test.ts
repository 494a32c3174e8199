// What a configuration makes expensive while it is prepared is refused by name and field, before a worker stands still for it.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startMeasured, type MeasuredGateway } from "../../support/held-thread.ts";

const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: () =>
    new Response(new ReadableStream({ start: (stream) => stream.enqueue("data: begin\n\n") }), {
      headers: { "content-type": "text/event-stream" },
    }),
});
let measured: MeasuredGateway;

beforeAll(async () => {
  measured = await startMeasured({ workers: 1 });
  const { gateway } = measured;
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web", paths: ["/"] });
});

afterAll(async () => {
  await measured.stop();
  await origin.stop(true);
});

const many = <T>(count: number, each: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => each(at));

/** In both the transpiler tries to read types from each `<` to the end. */
const signs = (count: number, rest = "") => `${"a<".repeat(count)}${rest}a`;
const script = (source: string) => ({
  path: "/api/v1/plugins",
  body: { name: "script", config: { source } },
});
const handler = (body: string) => script(`export function onRequest() { return ${body}; }`);
const validation = (body_schema: object) => ({
  path: "/api/v1/plugins",
  body: { name: "request-validation", config: { body_schema } },
});
const route = (hosts: number, paths: string[]) => ({
  path: "/api/v1/routes",
  body: { name: "large", service_id: "web", hosts: many(hosts, (at) => `*.h${at}.test`), paths },
});

/** `heldMs`: what the management thread needed before, in processor time, or a worker. */
const attacks = [
  {
    ...{ why: "held the management thread for 75 s", ...handler(signs(32_000)) },
    error: "config.source: has 32000 signs <",
  },
  {
    why: "would hold each worker for more than a second",
    ...handler(signs(900, `[${"a,".repeat(31_000)}0],`)),
    error: "plugin script: create takes ",
  },
  {
    ...{
      why: "held each worker for a quarter of a second",
      ...script("for (;;); export const onLog = () => {};"),
    },
    error: "plugin script: the script took too long",
  },
  {
    why: "held the management thread, and a worker at the first request, for 0.6 s",
    ...validation({ allOf: many(1600, () => ({ contains: { type: "string" } })) }),
    error: "config.body_schema: holds more than 2,000 values",
  },
  {
    ...{
      why: "held each worker for 3 s",
      ...route(
        1000,
        many(1000, (at) => `/p${at}`),
      ),
    },
    error: "paths: have 1000 segments, for each of 1000 hosts; the product may be at most 50,000",
  },
  {
    why: "held each worker for 1 s without hosts",
    ...route(
      0,
      many(900, (at) => `/${at}${"/a".repeat(500)}`),
    ),
    error: "paths: have 450900 segments, for each of 1 hosts; the product may be at most 50,000",
  },
];

test("each is refused with the reason, holds no thread, and costs no connection", async () => {
  const { gateway } = measured;
  const events = () => gateway.log.filter(({ message }) => message.startsWith("worker")).length;
  const before = events();
  const stream = (await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).body!.getReader();
  await stream.read();
  let ended = 0;
  const end = () => void ended++;
  stream.read().then(end, end);
  for (const { why, path, body, error } of attacks) {
    let refusal: unknown;
    const { heldMs } = await measured.during(async () => {
      const response = await gateway.api("POST", path, body);
      refusal = { status: response.status, ...(await response.json()) };
    });
    expect({ why, refusal }).toMatchObject({
      refusal: { status: 400, error: expect.stringContaining(error) },
    });
    expect({ why, isHeld: heldMs > 250 }).toEqual({ why, isHeld: false });
  }
  expect(ended).toBe(0);
  expect(events()).toBe(before);
  await stream.cancel();
}, 120_000);

test("what is large and cheap is served", async () => {
  const { gateway } = measured;
  const accepted = [
    {
      ...{ path: "/api/v1/plugins" },
      body: {
        name: "ip-restriction",
        config: { deny: many(50_000, (at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`) },
      },
    },
    handler(`1; ${"if (1 < 2) { } ".repeat(900)}`),
    validation({
      properties: Object.fromEntries(
        many(900, (at) => [`p${at}`, { type: "string", description: "a text" }]),
      ),
    }),
    route(
      50,
      many(1000, (at) => `/p${at}`),
    ),
  ];
  for (const { path, body } of accepted) {
    const { id } = await gateway.ok("POST", path, body);
    expect((await fetch(`http://127.0.0.1:${gateway.httpPort}/`, { method: "HEAD" })).status).toBe(
      200,
    );
    await gateway.ok("DELETE", `${path}/${id}`);
  }
}, 120_000);

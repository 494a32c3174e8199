// Floods of every kind beside an honest client, on a gateway in a process of its own: none of the honest requests fails.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { encode, H2Client } from "../../support/h2-client.ts";
import { frame, GET, POST, uint32 } from "../../support/h2-wire.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { RawClient } from "../http2/raw-client.ts";

const NOTHING = Buffer.alloc(0);
const BLOCK = encode(GET);

/** Begins a flood; `part` is sent again and again, with the ids of streams from 3 on. */
interface Flood {
  readonly what: string;
  readonly begin?: readonly Buffer[];
  readonly part: (stream: number) => Buffer;
}

const reset = (id: number) => frame(3, 0, id, uint32(8));
const get = (id: number) => frame(1, 5, id, BLOCK);
const floods: readonly Flood[] = [
  { what: "rapid reset", part: (id) => Buffer.concat([get(id), reset(id)]) },
  { what: "MadeYouReset", part: (id) => Buffer.concat([get(id), frame(8, 0, id, uint32(0))]) },
  { what: "PING", part: () => frame(6, 0, 0, Buffer.alloc(8)) },
  { what: "SETTINGS", part: () => frame(4, 0, 0, NOTHING) },
  { what: "PRIORITY", part: () => frame(2, 0, 9, Buffer.alloc(5)) },
  { what: "PRIORITY_UPDATE", part: () => frame(16, 0, 0, Buffer.from("\0\0\0\x09u=1")) },
  { what: "WINDOW_UPDATE", part: () => frame(8, 0, 0, uint32(1)) },
  { what: "unknown frames", part: () => frame(77, 0, 0, NOTHING) },
  {
    what: "empty DATA",
    begin: [frame(1, 4, 1, encode(POST))],
    part: () => frame(0, 0, 1, NOTHING),
  },
  { what: "CONTINUATION", begin: [frame(1, 1, 1, BLOCK)], part: () => frame(9, 0, 1, NOTHING) },
  { what: "streams over the limit", part: get },
  { what: "malformed requests", part: (id) => frame(1, 5, id, BLOCK.subarray(0, 12)) },
  {
    what: "HPACK bombs",
    begin: [
      frame(
        1,
        5,
        1,
        Buffer.concat([
          BLOCK,
          Buffer.from([0x40, 1, 0x78, 0x7f, 0xbd, 0x1d]),
          Buffer.alloc(3900, "a"),
        ]),
      ),
    ],
    part: (id) => frame(1, 5, id, Buffer.concat([BLOCK, Buffer.alloc(16_000, 0xbe)])),
  },
];

let origin: Origin;
let gateway: Gateway;
const port = quietPort();

beforeAll(async () => {
  origin = startOrigin({ answer: reply("hello") });
  gateway = await startGateway({ workers: 1 });
  await gateway.ok("POST", "/api/v1/listeners", {
    name: "own",
    address: "127.0.0.1",
    port,
    engine: "sluice",
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "origin",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "all",
    service_id: "origin",
    paths: [{ type: "prefix", value: "/" }],
  });
  // Clients of one address, of which one is honest.
  await gateway.ok("PATCH", "/api/v1/settings", { limits: { max_aborted_per_address: 0 } });
});
afterAll(async () => {
  await gateway?.stop();
  origin?.stop();
});

/** Until the connection ends, or enough was sent. */
async function flood({ begin = [], part }: Flood): Promise<void> {
  const client = await RawClient.connect(port);
  client.preface();
  for (const one of begin) client.write(one);
  let stream = 3;
  for (let round = 0; round < 200 && !client.isClosed; round++) {
    for (let count = 0; count < 50; count++, stream += 2) client.write(part(stream));
    await client.breathe();
  }
  await client.untilClosed();
  client.close();
}

test("all at once: each ends its connection, and an honest client beside them is served", async () => {
  const honest = await H2Client.connect({ port });
  let isOver = false;
  let served = 0;
  const serve = async () => {
    while (!isOver) {
      const { outcome, body } = await honest.result(honest.headers(GET));
      expect([outcome, body]).toEqual(["200", "hello"]);
      served++;
    }
  };
  const serving = serve();
  await Promise.all(floods.map(flood));
  isOver = true;
  await serving;
  honest.close();
  expect(served).toBeGreaterThan(0);
  const text = await (await gateway.api("GET", "/metrics")).text();
  const metrics = readMetrics(text, "prometheus");
  const reasons = ["frames", "resets", "errors", "refusals", "heads", "protocol"] as const;
  const counts = reasons.map((reason) => [
    reason,
    metrics.sum("sluice_http2_ended_connections_total", { reason }),
  ]);
  expect(Object.fromEntries(counts)).toEqual({
    frames: 7,
    resets: 1,
    errors: 1,
    refusals: 1,
    heads: 2,
    protocol: 1,
  });
});

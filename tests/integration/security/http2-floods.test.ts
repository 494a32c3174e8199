// Floods over HTTP/2 (CVE-2023-44487, CVE-2025-8671, CVE-2024-27316): memory stays bounded, other clients are served.
import { engines } from "../../support/engines.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { H2Client } from "../../support/h2-client.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const fields = (path: string) =>
  [
    [":method", "GET"],
    [":scheme", "https"],
    [":authority", "flood.test"],
    [":path", path],
  ] as const;

let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;

async function start(engine: string): Promise<void> {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("fine"),
  });
  gateway = await startGateway({ workers: 1 });
  await gateway.ok("POST", "/api/v1/services", {
    name: "origin",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
  // Floods come from 127.0.0.1 with addresses in X-Forwarded-For, so that each test has an address of its own.
  await gateway.ok("PATCH", "/api/v1/settings", { trusted_proxies: ["127.0.0.1"] });
  await gateway.ok("PATCH", "/api/v1/listeners/https", { engine, max_header_bytes: null });
}

const connect = () => H2Client.connect({ port: gateway.httpsPort, tls: true });

const from = (address: string, path: string) =>
  [...fields(path), ["x-forwarded-for", address]] as const;

async function residentMegabytes(): Promise<number> {
  const text = await Bun.file(`/proc/${gateway.pid}/status`).text();
  return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) / 1024;
}

/** What another client gets meanwhile. */
async function isServed(): Promise<boolean> {
  const client = await connect();
  const { body } = await client.result(client.headers(fields("/")));
  client.close();
  return body === "fine";
}

/** Runs a flood over many connections, while another client asks again and again. */
async function flood(each: (client: H2Client) => Promise<void>): Promise<void> {
  const before = await residentMegabytes();
  let isOver = false;
  let highest = before;
  const other = (async () => {
    while (!isOver) {
      expect(await isServed()).toBe(true);
      highest = Math.max(highest, await residentMegabytes());
    }
  })();
  for (let connection = 0; connection < 20; connection++) {
    const client = await connect();
    await each(client);
    client.close();
  }
  isOver = true;
  await other;
  expect(await isServed()).toBe(true);
  expect(highest - before).toBeLessThan(150);
}

const [DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION] = [
  0, 1, 2, 3, 4, 6, 8, 9,
] as const;

/** Frames that make the server reset the stream itself (MadeYouReset), and others that cost it more than the client. */
const variants: readonly (readonly [
  why: string,
  send: (client: H2Client, stream: number) => void,
])[] = [
  [
    "WINDOW_UPDATE of 0 on each stream",
    (client) => {
      const stream = client.headers(from("203.0.113.4", "/"));
      client.frame(WINDOW_UPDATE, 0, stream, Buffer.alloc(4));
    },
  ],
  [
    "a window over the limit on each stream",
    (client) => {
      const stream = client.headers(from("203.0.113.4", "/"));
      client.frame(WINDOW_UPDATE, 0, stream, Buffer.from([0x7f, 0xff, 0xff, 0xff]));
    },
  ],
  [
    "DATA on a stream that has ended",
    (client) => {
      const stream = client.headers(from("203.0.113.4", "/"));
      client.frame(DATA, 1, stream, Buffer.from("x"));
    },
  ],
  [
    "PRIORITY of a stream on itself",
    (client) => {
      const stream = client.headers(from("203.0.113.4", "/"));
      const own = Buffer.alloc(5);
      own.writeUInt32BE(stream);
      client.frame(PRIORITY, 0, stream, own);
    },
  ],
  ["PING", (client) => client.frame(PING, 0, 0, Buffer.alloc(8))],
  ["empty SETTINGS", (client) => client.frame(SETTINGS, 0, 0, Buffer.alloc(0))],
  ["empty DATA", (client, stream) => client.frame(DATA, 0, stream, Buffer.alloc(0))],
  [
    "CONTINUATION without end",
    (client, stream) => client.frame(CONTINUATION, 0, stream, Buffer.alloc(1024, 0)),
  ],
  [
    "empty CONTINUATION without end",
    (client, stream) => client.frame(CONTINUATION, 0, stream, Buffer.alloc(0)),
  ],
  [
    "RST_STREAM of streams never opened",
    (client, stream) => client.frame(RST_STREAM, 0, stream + 2, Buffer.alloc(4)),
  ],
];

describe.each(engines)("on the %s engine", (engine) => {
  beforeAll(() => start(engine));
  afterAll(async () => {
    await gateway?.stop();
    await origin?.stop(true);
  });

  test("requests that are reset at once: memory is bounded and others are served", async () => {
    await flood(async (client) => {
      for (let request = 0; request < 3000 && client.goAway === null; request++) {
        client.resetStream(client.headers(from("203.0.113.1", "/")));
        // Accepts responses, as a client does that continues without end.
        if (request % 100 === 0) await Bun.sleep(0);
      }
    });
  });

  test.each(variants)("%s: memory is bounded and others are served", async (why, send) => {
    await flood(async (client) => {
      // A head that has not ended yet, which only CONTINUATION may follow, or a request whose body is still to come.
      const isHead = why.includes("CONTINUATION");
      let stream = 1;
      if (isHead) client.frame(HEADERS, 0, 1, Buffer.alloc(0));
      else if (why === "empty DATA")
        stream = client.headers([[":method", "POST"], ...from("203.0.113.4", "/").slice(1)], {
          isLast: false,
        });
      for (let frame = 0; frame < 2000 && client.goAway === null && !client.isClosed; frame++) {
        send(client, stream);
        if (frame % 100 === 0) await Bun.sleep(0);
      }
    });
  });
});

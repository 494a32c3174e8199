// Clients that abort requests while a target works for them: floods are refused, by connection and by address, and honest clients never are.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { startGateway } from "../../support/gateway.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { eventually } from "../../support/poll.ts";

/** Answers `/slow…` only to clients that go away, and everything else at once. */
class PatientOrigin {
  asked = 0;
  aborted = 0;
  readonly #server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: (request, server) => {
      this.asked++;
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith("/slow"))
        return new Response("fine", { headers: { "Cache-Control": "no-store" } });
      server.timeout(request, 0);
      const { promise, resolve } = Promise.withResolvers<Response>();
      request.signal.addEventListener("abort", () => {
        this.aborted++;
        resolve(new Response("late"));
      });
      return promise;
    },
  });

  get port(): number {
    return this.#server.port ?? 0;
  }

  stop(): void {
    void this.#server.stop(true);
  }
}

type Options = Omit<Parameters<typeof startDataPlane>[0], "services" | "routes">;

let origin: PatientOrigin;
let gateway: RunningDataPlane | null = null;
const clients: H2Client[] = [];

beforeEach(() => {
  origin = new PatientOrigin();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await gateway?.stop();
  gateway = null;
  origin.stop();
});

/** Speaks HTTP/2 in cleartext. */
const engine = "sluice";

async function start(
  limits: object = {},
  rest: Options = { listener: { engine } },
): Promise<RunningDataPlane> {
  gateway = await startDataPlane({
    ...rest,
    services: [{ name: "origin", targets: [{ port: origin.port }] }],
    routes: [{ name: "all", service_id: "origin" }],
    settings: { ...rest.settings, limits },
  });
  return gateway;
}

async function open(port: number): Promise<H2Client> {
  const client = await H2Client.connect({ port });
  clients.push(client);
  return client;
}

const fieldsOf = (path: string, more: readonly Field[] = []): readonly Field[] => [
  [":method", "GET"],
  [":scheme", "http"],
  [":authority", "tiles.test"],
  [":path", path],
  ...more,
];

/** Opens requests, waits until the target has them, resets them, and waits until the target is free again. */
async function abort(client: H2Client, count: number, more: readonly Field[] = []): Promise<void> {
  const asked = origin.asked + count;
  const aborted = origin.aborted + count;
  const streams = Array.from({ length: count }, () => client.headers(fieldsOf("/slow", more)));
  await eventually(() => origin.asked >= asked);
  for (const stream of streams) client.resetStream(stream);
  await eventually(() => origin.aborted >= aborted);
}

async function statusOf(client: H2Client, more: readonly Field[] = []): Promise<number | null> {
  const { status } = await client.result(client.headers(fieldsOf("/", more)));
  return status;
}

const plainStatus = async (port: number, headers: Record<string, string> = {}) =>
  (await fetch(`http://127.0.0.1:${port}/`, { headers, keepalive: false })).status;

describe("honest clients are never refused", () => {
  test("a map over HTTP/2 that cancels 16 tiles repeatedly and completes others", async () => {
    const { port } = await start();
    const client = await open(port);
    for (let round = 0; round < 40; round++) {
      await abort(client, 16);
      const tiles = Array.from({ length: 16 }, () => client.headers(fieldsOf("/tile")));
      for (const tile of tiles) expect((await client.result(tile)).status).toBe(200);
    }
    expect(origin.aborted).toBe(640);
    expect(client.goAway).toBeNull();
  });

  test.each([
    { what: "that close their connections, one after the other", count: 200, atOnce: 20 },
    {
      what: "of a load tester that ends all of its connections at once",
      count: 1000,
      atOnce: 1000,
    },
  ])("HTTP/1.1 clients $what", async ({ count, atOnce }) => {
    const { port } = await start({}, {});
    for (let done = 0; done < count; done += atOnce) {
      const sockets: Socket[] = Array.from({ length: atOnce }, () => {
        const socket = connect({ port, host: "127.0.0.1" });
        socket.on("error", () => undefined);
        socket.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        return socket;
      });
      await eventually(() => origin.asked === done + atOnce);
      for (const socket of sockets) socket.destroy();
      await eventually(() => origin.aborted === done + atOnce);
      origin.asked = done + atOnce;
      expect(await plainStatus(port)).toBe(200);
      origin.asked = done + atOnce;
    }
  });

  test("a load tester's end over HTTP/2: ten connections with a hundred streams each", async () => {
    const { port } = await start();
    const testers = await Promise.all(Array.from({ length: 10 }, () => open(port)));
    for (const tester of testers)
      for (let stream = 0; stream < 100; stream++) tester.headers(fieldsOf("/slow"));
    await eventually(() => origin.asked === 1000);
    for (const tester of testers) tester.close();
    await eventually(() => origin.aborted === 1000);
    expect(await statusOf(await open(port))).toBe(200);
    expect(await plainStatus(port)).toBe(200);
  });

  test("a client whose target has already responded has aborted nothing of it", async () => {
    const { port } = await start({ max_aborted_per_connection: 1, max_aborted_per_address: 1 });
    const client = await open(port);
    for (let round = 0; round < 20; round++) {
      const stream = client.headers(fieldsOf("/"));
      await client.result(stream);
      client.resetStream(stream);
    }
    expect(await statusOf(client)).toBe(200);
  });
});

describe("floods stay bounded", () => {
  test("a connection that aborts more than its limit gets 429 before a target is contacted; others of its address do not", async () => {
    const { port } = await start();
    const [client, other] = [await open(port), await open(port)];
    for (let round = 0; round < 4; round++) await abort(client, 100);
    const asked = origin.asked;
    const refused = Array.from({ length: 50 }, () => client.headers(fieldsOf("/slow")));
    for (const stream of refused) expect((await client.result(stream)).status).toBe(429);
    expect(origin.asked).toBe(asked);
    expect(await statusOf(other)).toBe(200);
    expect(await plainStatus(port)).toBe(200);
  });

  test("refused requests return no token", async () => {
    const { port } = await start({ max_aborted_per_connection: 10, max_aborted_per_address: 0 });
    const client = await open(port);
    // Ten more than there are tokens: it takes ten seconds until one is there again.
    await abort(client, 20);
    const asked = origin.asked;
    for (let request = 0; request < 50; request++) expect(await statusOf(client)).toBe(429);
    expect(origin.asked).toBe(asked);
  });

  test("completed requests return a token", async () => {
    const { port } = await start({ max_aborted_per_connection: 10, max_aborted_per_address: 0 });
    const client = await open(port);
    for (let round = 0; round < 10; round++) {
      await abort(client, 5);
      for (let tile = 0; tile < 5; tile++) expect(await statusOf(client)).toBe(200);
    }
  });

  test("many connections of one address: it is refused on all of them and on every protocol", async () => {
    const { port, log } = await start({ max_aborted_per_address: 100 });
    for (let connection = 0; connection < 6; connection++) await abort(await open(port), 17);
    const asked = origin.asked;
    expect(await statusOf(await open(port))).toBe(429);
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    expect([answer.status, answer.headers.get("retry-after"), await answer.text()]).toEqual([
      429,
      "10",
      expect.stringContaining("too many requests from this address were aborted"),
    ]);
    expect(origin.asked).toBe(asked);
    const lines = log.filter(({ message }) => message.includes("aborts too many requests"));
    expect(lines.map(({ fields }) => [fields["client"], fields["stage"]])).toEqual([
      ["127.0.0.1", "address"],
    ]);
  });

  test("aborted WebSocket handshakes count for the address", async () => {
    const { port } = await start({ max_aborted_per_address: 10 }, {});
    // At once: a client that has sent FIN is noticed within a second and a half, in which a token comes back.
    const sockets = Array.from({ length: 12 }, () => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      socket.write(
        "GET /slow HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
      );
      return socket;
    });
    await eventually(() => origin.asked === sockets.length);
    for (const socket of sockets) socket.destroy();
    await eventually(() => origin.aborted === sockets.length);
    expect(await plainStatus(port)).toBe(429);
  });

  test("0 refuses no client", async () => {
    const { port } = await start({ max_aborted_per_connection: 0, max_aborted_per_address: 0 });
    const client = await open(port);
    for (let round = 0; round < 5; round++) await abort(client, 100);
    expect(await statusOf(client)).toBe(200);
    expect(await plainStatus(port)).toBe(200);
  });
});

describe("attribution of connections", () => {
  test("behind the front, the client's own port distinguishes connections", async () => {
    const limits = { max_aborted_per_connection: 20 };
    const { port } = await start(limits, { listener: { engine, max_connections: 100 } });
    const [client, other] = [await open(port), await open(port)];
    await abort(client, 40);
    expect(await statusOf(client)).toBe(429);
    expect(await statusOf(other)).toBe(200);
  });

  test("addresses distinguish clients that share the connection of a trusted proxy", async () => {
    const limits = { max_aborted_per_connection: 20, max_aborted_per_address: 100 };
    const { port } = await start(limits, {
      listener: { engine },
      settings: { trusted_proxies: ["127.0.0.1"] },
    });
    const proxy = await open(port);
    const [attacker, other] = ["203.0.113.1", "203.0.113.2"].map(
      (address) => [["x-forwarded-for", address]] as const,
    );
    await abort(proxy, 40, attacker);
    expect(await statusOf(proxy, attacker)).toBe(429);
    expect(await statusOf(proxy, other)).toBe(200);
    for (let round = 0; round < 4; round++) await abort(await open(port), 20, attacker);
    expect(await plainStatus(port, { "x-forwarded-for": "203.0.113.1" })).toBe(429);
    expect(await plainStatus(port, { "x-forwarded-for": "203.0.113.2" })).toBe(200);
  });

  test("without trust, a client gains nothing by sending other addresses", async () => {
    const { port } = await start({ max_aborted_per_connection: 20 });
    const client = await open(port);
    for (let round = 0; round < 4; round++)
      await abort(client, 6, [["x-forwarded-for", `203.0.113.${round}`]]);
    expect(await statusOf(client, [["x-forwarded-for", "203.0.113.99"]])).toBe(429);
  });
});

test("aborted and refused requests are in the list of requests, in the metrics, in the log", async () => {
  const running = await startGateway({ workers: 1 });
  try {
    await running.ok("POST", "/api/v1/services", {
      name: "origin",
      targets: [{ host: "127.0.0.1", port: origin.port }],
    });
    await running.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
    await running.ok("PATCH", "/api/v1/settings", {
      limits: { max_aborted_per_connection: 5, max_aborted_per_address: 8 },
    });
    await running.ok("PATCH", "/api/v1/listeners/http", { engine, max_header_bytes: null });
    const client = await open(running.httpPort);
    await abort(client, 6);
    expect(await statusOf(client)).toBe(429);
    await abort(await open(running.httpPort), 3);
    expect(await plainStatus(running.httpPort)).toBe(429);
    const reasons = await eventually(async () => {
      const requests = await running.ok("GET", "/api/v1/requests?status=429");
      return requests.length === 2 && requests.map((each: { reasons: string[] }) => each.reasons);
    });
    expect(reasons).toEqual([["aborts.address"], ["aborts.connection"]]);
    const metrics = readMetrics(await (await running.api("GET", "/metrics")).text(), "prometheus");
    const shed = (reason: string) => metrics.sum("sluice_shed_requests_total", { reason });
    expect([shed("aborts_connection"), shed("aborts_address")]).toEqual([1, 1]);
    expect(metrics.sum("sluice_aborted_requests_total")).toBe(9);
    expect(
      running.log
        .filter(({ message }) => message.includes("aborts too many requests"))
        .map(({ client: address, stage }) => [address, stage]),
    ).toEqual([
      ["127.0.0.1", "connection"],
      ["127.0.0.1", "address"],
    ]);
  } finally {
    await running.stop();
  }
});

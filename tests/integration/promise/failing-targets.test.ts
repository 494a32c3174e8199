// Targets that die and come back under load: no client notices, as long as one of them works.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { OriginProcess } from "../../support/origin-process.ts";
import { eventually } from "../../support/poll.ts";
import { QuickConnection } from "../../support/quick-http.ts";

const CONNECTIONS = 48;
/** Responses that arrive between two events: enough for every connection to meet the one before. */
const STRETCH = 2000;
const METHODS = ["GET", "GET", "GET", "PUT", "DELETE"];

const cleanups = cleanupsOf(afterEach);

/** Clients that ask again as soon as they have an answer, on connections that stay open. */
class Load {
  /** Responses by the name of the target. */
  readonly counts = new Map<string, number>();
  readonly failures: string[] = [];
  answers = 0;
  readonly #port: number;
  #isRunning = true;
  #running: Promise<unknown> = Promise.resolve();

  constructor(port: number) {
    this.#port = port;
    this.#running = Promise.all(
      Array.from({ length: CONNECTIONS }, (_, index) => this.#ask(index)),
    );
  }

  async #ask(index: number): Promise<void> {
    const connection = await QuickConnection.open(this.#port);
    const method = METHODS[index % METHODS.length];
    const body = method === "PUT" ? "Content-Length: 4\r\n\r\nbody" : "\r\n";
    while (this.#isRunning && this.failures.length < 20) {
      try {
        const request = `${method} / HTTP/1.1\r\nHost: any.test\r\n${body}`;
        const { status, body: name, head } = await connection.send(request);
        this.answers++;
        this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
        if (status !== 200) this.failures.push(`${method}: ${head}`);
      } catch (error) {
        this.failures.push(`${method}: ${error}`);
        return;
      }
    }
    connection.close();
  }

  /** Resolves when as many more answers have come, or something failed. */
  async more(answers = STRETCH): Promise<void> {
    const goal = this.answers + answers;
    const isThere = () => this.answers >= goal || this.failures.length > 0;
    await eventually(isThere);
    expect(this.failures).toEqual([]);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#running;
  }
}

async function setUp(passive: Record<string, number> = {}) {
  const origins = await Promise.all(["a", "b", "c"].map((name) => OriginProcess.start(name)));
  cleanups.push(() => Promise.all(origins.map((origin) => origin.kill())));
  const gateway: Gateway = await startGateway({ workers: 2 });
  cleanups.push(() => gateway.stop());
  await gateway.ok("POST", "/api/v1/services", {
    name: "app",
    targets: origins.map(({ port }) => ({ host: "127.0.0.1", port })),
    health: { passive },
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
  const load = new Load(gateway.httpPort);
  cleanups.push(() => load.stop());
  await load.more();
  expect([...load.counts.keys()].sort()).toEqual(["a", "b", "c"]);
  return { origins, load };
}

test("a target that is killed under load costs no client a response", async () => {
  const { origins, load } = await setUp();
  await origins[1]!.kill();
  await load.more();
  load.counts.clear();
  await load.more();
  expect([...load.counts.keys()].sort()).toEqual(["a", "c"]);
  await load.stop();
  expect(load.failures).toEqual([]);
});

test("restarting all targets one after another under load affects no client", async () => {
  const { origins, load } = await setUp();
  for (let round = 0; round < 2; round++)
    for (const origin of origins) {
      await origin.kill();
      await load.more();
      await origin.start();
      await load.more();
    }
  await load.stop();
  expect(load.failures).toEqual([]);
});

test("a recovered target gets traffic again when its ejection ends", async () => {
  const { origins, load } = await setUp({ ejection_seconds: 1 });
  await origins[0]!.kill();
  await load.more();
  await origins[0]!.start();
  load.counts.clear();
  await eventually(() => (load.counts.get("a") ?? 0) > 100);
  await load.stop();
  expect(load.failures).toEqual([]);
});

test("in an outage all workers together make at most a fifth more requests, and the reserve", async () => {
  const counts = [0, 0, 0];
  const origins = counts.map((_, index) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch() {
        counts[index]!++;
        return new Response("busy", { status: 503 });
      },
    }),
  );
  cleanups.push(() => Promise.all(origins.map((origin) => origin.stop(true))));
  const gateway = await startGateway({ workers: 2 });
  cleanups.push(() => gateway.stop());
  await gateway.ok("POST", "/api/v1/services", {
    name: "app",
    targets: origins.map(({ port }) => ({ host: "127.0.0.1", port })),
    retries: { backoff_ms: 0 },
    health: { passive: { enabled: false } },
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
  const requests = 2000;
  const startedAt = performance.now();
  const ask = async () => {
    const connection = await QuickConnection.open(gateway.httpPort);
    for (let count = 0; count < requests / CONNECTIONS; count++)
      expect((await connection.get("/")).body).toBe("busy");
    connection.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, ask));
  const seconds = (performance.now() - startedAt) / 1000;
  const asked = Math.ceil(requests / CONNECTIONS) * CONNECTIONS;
  const attempts = counts.reduce((sum, count) => sum + count);
  // A hundred at once and ten a second, whatever the traffic.
  expect(attempts).toBeGreaterThan(asked + 100);
  expect(attempts).toBeLessThanOrEqual(asked * 1.2 + 100 + 10 * (seconds + 1));
});

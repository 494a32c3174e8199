// Overload of the gateway: requests in flight, memory, files and sockets, slow clients.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { readMetrics } from "../support/metrics-text.ts";
import { quietPort } from "../support/quiet-port.ts";
import { sendRaw } from "../support/raw-http.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "linux");

/** Responds to `/hold` on demand, `/large` and `/medium` with 200 and 8 MB, `/read` after the body, and others at once. */
class HoldingOrigin {
  readonly #held: (() => void)[] = [];
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    websocket: { message() {} },
    fetch: (request, server) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/ws") return server.upgrade(request) ? undefined : new Response(null);
      if (pathname === "/large") return new Response(bodyOf(200));
      if (pathname === "/medium") return new Response(bodyOf(8));
      if (pathname === "/read") return request.text().then((text) => new Response(text));
      if (pathname !== "/hold") return new Response("quick");
      return new Promise((resolve) => this.#held.push(() => resolve(new Response("held"))));
    },
  });

  get port(): number {
    return this.#server.port ?? 0;
  }

  get held(): number {
    return this.#held.length;
  }

  release(): void {
    for (const answer of this.#held.splice(0)) answer();
  }

  stop(): void {
    void this.#server.stop(true);
  }
}

function bodyOf(megabytes: number): ReadableStream<Uint8Array> {
  const piece = new Uint8Array(1_048_576);
  let left = megabytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
}

async function leadTo(gateway: Gateway, port: number): Promise<void> {
  await gateway.ok("POST", "/api/v1/services", {
    name: "held",
    targets: [{ host: "127.0.0.1", port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "held", service_id: "held", websocket: true });
}

const shedFor = async (gateway: Gateway, reason: string) =>
  readMetrics(await (await gateway.api("GET", "/metrics")).text(), "prometheus").sum(
    "sluice_shed_requests_total",
    { reason },
  );

const get = (gateway: Gateway, path: string) =>
  fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, { keepalive: false });

async function isShed(gateway: Gateway): Promise<boolean> {
  const response = await get(gateway, "/");
  await response.text();
  if (response.status === 503) expect(response.headers.get("retry-after")).toBe("5");
  return response.status === 503;
}

const limits = (gateway: Gateway, changed: object) =>
  gateway.ok("PATCH", "/api/v1/settings", { limits: changed });

const residentBytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

const counted = (gateway: Gateway, message: string) =>
  gateway.log.filter((event) => event.message.startsWith(message)).length;

let origin: HoldingOrigin;

beforeAll(() => {
  origin = new HoldingOrigin();
});

afterAll(() => origin.stop());

describe("requests in flight", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway({ binary: executable, workers: 2 });
    await leadTo(gateway, origin.port);
  });

  afterAll(() => gateway.stop());

  /** Starts as many, over both workers, and returns the outcome of each. */
  async function fill(admitted: number, sent: number): Promise<number[]> {
    const answers = Array.from({ length: sent }, () => get(gateway, "/hold"));
    await eventually(() => origin.held === admitted);
    const settled = Promise.all(answers.map(async (answer) => (await answer).status));
    // The gateway rejects the surplus at once, while the others still wait.
    const refused = answers.map((answer) => answer.then(({ status }) => status === 503));
    await eventually(async () => {
      const done = await Promise.all(
        refused.map((answer) => Promise.race([answer, Promise.resolve(false)])),
      );
      return done.filter(Boolean).length === sent - admitted;
    });
    expect(origin.held).toBe(admitted);
    origin.release();
    return (await settled).toSorted();
  }

  test.each([
    {
      what: "of a listener",
      begin: () => gateway.ok("PATCH", "/api/v1/listeners/http", { max_in_flight_requests: 5 }),
      end: () => gateway.ok("PATCH", "/api/v1/listeners/http", { max_in_flight_requests: 0 }),
    },
    {
      what: "of all workers together",
      begin: () => limits(gateway, { max_in_flight_total: 5 }),
      end: () => limits(gateway, { max_in_flight_total: 0 }),
    },
  ])(
    "more than the limit $what are rejected, and the capacity is free again afterwards",
    async (limit) => {
      await limit.begin();
      const before = await shedFor(gateway, "in_flight");
      const statuses = [200, 200, 200, 200, 200, 503, 503, 503];
      expect(await fill(5, 8)).toEqual(statuses);
      expect(await fill(5, 8)).toEqual(statuses);
      expect(await shedFor(gateway, "in_flight")).toBe(before + 6);
      await limit.end();
      expect(await fill(8, 8)).toEqual(Array(8).fill(200));
    },
  );

  test("a WebSocket counts until it ends, a rejected one does not count", async () => {
    await limits(gateway, { max_in_flight_total: 1 });
    const url = `ws://127.0.0.1:${gateway.httpPort}/ws`;
    const first = await opened(url);
    expect(first).not.toBeNull();
    expect(await opened(url)).toBeNull();
    expect(await isShed(gateway)).toBeTrue();
    first?.close();
    await eventually(async () => !(await isShed(gateway)));
    await limits(gateway, { max_in_flight_total: 0 });
  });
});

/** Null when it was rejected. */
function opened(url: string): Promise<WebSocket | null> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url);
    socket.onopen = () => resolve(socket);
    socket.onerror = () => resolve(null);
  });
}

describe("memory", () => {
  test("above the limit new requests get 503, others and the management API continue, and it recovers", async () => {
    const gateway = await startGateway({ binary: executable, workers: 2 });
    try {
      await leadTo(gateway, origin.port);
      await gateway.ok("POST", "/api/v1/services", {
        name: "raw",
        protocol: "tcp",
        targets: [{ host: "127.0.0.1", port: origin.port }],
      });
      const held = get(gateway, "/hold");
      await eventually(() => origin.held === 1);
      const url = `ws://127.0.0.1:${gateway.httpPort}/ws`;
      const tcp = quietPort();
      await gateway.ok("POST", "/api/v1/stream-routes", {
        name: "raw",
        service_id: "raw",
        listen_address: "127.0.0.1",
        listen_port: tcp,
      });
      const question = "GET / HTTP/1.0\r\nHost: a\r\n\r\n";
      expect(await sendRaw(question, { port: tcp })).toEndWith("quick");
      await limits(gateway, { max_memory_bytes: 10_000_000 });
      await eventually(() => isShed(gateway));
      expect(await opened(url)).toBeNull();
      expect(await sendRaw(question, { port: tcp })).toBe("");
      const { warnings } = await gateway.ok("GET", "/api/v1/admin/status");
      expect(warnings.join()).toContain("memory is short (the limit is 9 MiB)");
      expect(await shedFor(gateway, "memory")).toBeGreaterThanOrEqual(2);
      const metrics = readMetrics(
        await (await gateway.api("GET", "/metrics")).text(),
        "prometheus",
      );
      expect(metrics.sum("sluice_overload", { what: "memory" })).toBe(1);
      const recent = JSON.stringify(await gateway.ok("GET", "/api/v1/requests?status=503"));
      expect(recent).toContain("overload.memory");
      origin.release();
      expect(await (await held).text()).toBe("held");
      await limits(gateway, { max_memory_bytes: 0 });
      await eventually(async () => !(await isShed(gateway)));
      expect((await gateway.ok("GET", "/api/v1/admin/status")).warnings.join()).not.toContain(
        "memory",
      );
      expect(counted(gateway, "memory is short")).toBe(1);
      expect(counted(gateway, "request failed")).toBe(0);
    } finally {
      await gateway.stop();
    }
  });

  test("stays near the limit under many uploads, and is released afterwards", async () => {
    const gateway = await startGateway({ binary: executable, workers: 2 });
    const sockets: Socket[] = [];
    try {
      await leadTo(gateway, origin.port);
      const mark = residentBytes(gateway.pid) + 30 * 1_048_576;
      await limits(gateway, { max_memory_bytes: mark });
      const upload = "POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n";
      let most = 0;
      for (let i = 0; i < 6000; i++) {
        const socket = connect({ port: gateway.httpPort, host: "127.0.0.1" });
        socket.on("error", () => undefined);
        socket.resume();
        socket.write(upload + "x".repeat(20_000));
        sockets.push(socket);
        if (i % 100 > 0) continue;
        // Otherwise the test itself is too busy to send anything.
        await gateway.ok("GET", "/api/v1/admin/status");
        most = Math.max(most, residentBytes(gateway.pid));
      }
      expect(most).toBeLessThan(mark + 100 * 1_048_576);
      expect(await shedFor(gateway, "memory")).toBeGreaterThan(0);
      for (const socket of sockets) socket.destroy();
      const url = `http://127.0.0.1:${gateway.httpPort}/`;
      await eventually(async () => (await fromElsewhere(url)) === "200");
      expect(counted(gateway, "worker stopped")).toBe(0);
    } finally {
      for (const socket of sockets) socket.destroy();
      await gateway.stop();
    }
  });

  test("overload is an event when it begins and when it ends", async () => {
    const gateway = await startGateway({ binary: executable, workers: 1 });
    try {
      const response = await gateway.api("GET", "/api/v1/events?kinds=overload");
      const told = collect(response);
      await limits(gateway, { max_memory_bytes: 10_000_000 });
      await eventually(() => told.text.includes('"what":"memory","state":"begun"'));
      await limits(gateway, { max_memory_bytes: 0 });
      await eventually(() => told.text.includes('"what":"memory","state":"over"'));
    } finally {
      await gateway.stop();
    }
  });
});

function collect(response: Response): { text: string } {
  const told = { text: "" };
  const decoder = new TextDecoder();
  void (async () => {
    for await (const chunk of response.body ?? [])
      told.text += decoder.decode(chunk, { stream: true });
  })().catch(() => undefined);
  return told;
}

/** Connections that send nothing. */
class Crowd {
  readonly #sockets: Socket[] = [];
  closed = 0;

  constructor(port: number, size: number) {
    for (let i = 0; i < size; i++) {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => undefined);
      socket.on("close", () => this.closed++);
      this.#sockets.push(socket);
    }
  }

  leave(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

describe("files and sockets", () => {
  const { test } = needs("executable", "prlimit");

  test.each([
    { what: "Bun.serve", listener: { engine: "bun", max_header_bytes: null } },
    { what: "sockets of ours", listener: { engine: "sluice", max_connections: 100_000 } },
  ])(
    "when clients use all of them through $what, the management API still responds, and traffic recovers",
    async ({ listener }) => {
      const gateway = await startGateway({
        binary: executable,
        workers: 2,
        wrap: ["prlimit", "--nofile=160:160"],
      });
      try {
        await leadTo(gateway, origin.port);
        await gateway.ok("PATCH", "/api/v1/listeners/http", listener);
        expect(counted(gateway, "few files and sockets may be open")).toBe(1);
        const crowd = new Crowd(gateway.httpPort, 400);
        await eventually(() => counted(gateway, "too many files and sockets are open") === 1);
        // Despite the load, other clients are served, and changes are stored.
        for (let round = 0; round < 20; round++)
          await eventually(
            async () =>
              (await gateway.api("GET", "/healthz", undefined, { connection: "close" })).ok,
          );
        await eventually(() => limits(gateway, { max_header_fields: 99 }));
        crowd.leave();
        await eventually(async () => (await get(gateway, "/")).status === 200);
        expect((await gateway.ok("GET", "/api/v1/admin/status")).workers_ready).toBe(2);
        expect(counted(gateway, "too many files and sockets are open")).toBe(1);
        expect(counted(gateway, "worker stopped")).toBe(0);
      } finally {
        await gateway.stop();
      }
    },
  );
});

/** Sends a beginning and then one piece at a time; resolves with the response when the gateway closes the connection. */
function slowClient(
  port: number,
  { first, piece = null }: { first: string; piece?: string | null },
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let received = "";
    let timer: Timer | null = null;
    socket.on("connect", () => {
      socket.write(first);
      if (piece !== null) timer = setInterval(() => socket.write(piece), 500);
    });
    socket.on("data", (chunk) => (received += chunk.toString("latin1")));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      if (timer !== null) clearInterval(timer);
      resolve(received);
    });
  });
}

describe("slow clients", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway({ binary: executable, workers: 2 });
    await leadTo(gateway, origin.port);
    await gateway.ok("PATCH", "/api/v1/listeners/http", { idle_timeout: 5 });
    await limits(gateway, { body_read_timeout: 2000, response_write_timeout: 2000 });
  });

  afterAll(() => gateway.stop());

  // At the same time: Bun checks its connections only every four seconds.
  test("a head or a body that does not arrive times out", async () => {
    const [trickling, stuck, halfBody] = await Promise.all([
      slowClient(gateway.httpPort, { first: "GET / HTTP/1.1\r\nHost: a\r\n", piece: "X-A: 1\r\n" }),
      slowClient(gateway.httpPort, { first: "GET / HT" }),
      slowClient(gateway.httpPort, {
        first: "POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf",
      }),
    ]);
    expect(trickling).not.toContain(" 200 ");
    expect(stuck).not.toContain(" 200 ");
    expect(halfBody).toContain(" 408 ");
    expect((await get(gateway, "/")).status).toBe(200);
    await eventually(async () => (await inFlight(gateway)) === 0);
  });

  test("the first head of a connection times out after 12 seconds, also with a long idle timeout", async () => {
    const patient = { address: "127.0.0.1", protocol: "http", idle_timeout: 255 };
    const ports = [quietPort(), quietPort()] as const;
    const bun = { ...patient, name: "bun", port: ports[0], engine: "bun" };
    await gateway.ok("POST", "/api/v1/listeners", bun);
    const own = { ...patient, name: "own", port: ports[1], engine: "sluice" };
    await gateway.ok("POST", "/api/v1/listeners", own);
    const received = await Promise.all(
      ports.flatMap((port) => [
        slowClient(port, { first: "GET / HTTP/1.1\r\nHost: a\r\n", piece: "X-A: 1\r\n" }),
        slowClient(port, { first: "" }),
      ]),
    );
    // Where the gateway itself reads the connection, the limit is 15 seconds and it responds with a status.
    const timeout = expect.stringContaining(" 408 ");
    expect(received).toEqual(["", "", timeout, ""]);
  });

  test("a response that the client does not read times out, and leaves nothing in flight", async () => {
    const socket = connect({ port: gateway.httpPort, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    socket.pause();
    socket.write("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    await eventually(async () => (await inFlight(gateway)) === 1);
    await eventually(async () => (await inFlight(gateway)) === 0);
    socket.destroy();
  });

  const attacks = [
    { name: "head", words: ["-H"] },
    { name: "body", words: ["-B", "-t", "POST"] },
    { name: "read", words: ["-X", "-w", "512", "-y", "1024", "-n", "1", "-z", "32"] },
  ];

  needs("executable", "slowhttptest", "curl").test(
    "slowhttptest does not block other clients",
    async () => {
      const url = `http://127.0.0.1:${gateway.httpPort}`;
      const running = attacks.map(({ name, words }) =>
        Bun.spawn(
          [
            ...["slowhttptest", ...words, "-u", name === "read" ? `${url}/medium` : `${url}/`],
            ...["-c", "100", "-r", "100", "-i", "5", "-l", "12", "-p", "3"],
          ],
          { stdout: "pipe", stderr: "pipe", stdin: "ignore" },
        ),
      );
      const ended = Promise.all(running.map(({ exited }) => exited));
      let isOver = false;
      void ended.then(() => (isOver = true));
      let served = 0;
      while (!isOver) {
        expect(await fromElsewhere(`${url}/`)).toBe("200");
        served++;
        await Promise.race([ended, Bun.sleep(100)]);
      }
      expect(served).toBeGreaterThan(10);
      for (const { stdout } of running)
        expect(await new Response(stdout).text()).not.toMatch(/service available:\W*\S*NO/);
      await eventually(async () => (await inFlight(gateway)) === 0);
      expect(counted(gateway, "worker stopped")).toBe(0);
    },
    60_000,
  );
});

/** The status for a client at another address: the attacker's is rejected for aborting too many requests. */
async function fromElsewhere(url: string): Promise<string> {
  const words = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--interface", "127.0.0.9"];
  const { stdout } = Bun.spawn(["curl", ...words, url], { stdout: "pipe" });
  return new Response(stdout).text();
}

const inFlight = async (gateway: Gateway) =>
  readMetrics(await (await gateway.api("GET", "/metrics")).text(), "prometheus").sum(
    "sluice_requests_in_flight",
  );

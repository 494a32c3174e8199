// The connections to targets: reused, at max_requests, stale, aborted; counted at the origin.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { OriginRequest } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw, type RawConnection } from "../../support/raw-http.ts";
import { GET, type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

const scenes: ScriptedScene[] = [];
async function start(...args: Parameters<typeof startScriptedScene>): Promise<ScriptedScene> {
  const scene = await startScriptedScene(...args);
  scenes.push(scene);
  return scene;
}
let scene: ScriptedScene;
beforeAll(async () => {
  scene = await start();
});
afterAll(() => Promise.all(scenes.map((each) => each.stop())));

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const request = (method: string, fields = "") => `${method} / HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;

describe("an idle connection that the target closes on the next request", () => {
  /** Answers the first request of each connection and closes at the second, or resets. */
  const once =
    (way: "end" | "reset", seen: OriginRequest[]) =>
    (each: OriginRequest, connection: { end(): void; reset(): void }) => {
      seen.push(each);
      if (each.index === 0) return each.method === "HEAD" ? OK.slice(0, -2) : OK;
      connection[way]();
      return null;
    };

  test.each(["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])(
    "%s is sent once more, on a fresh connection",
    async (method) => {
      for (const way of ["end", "reset"] as const) {
        const seen: OriginRequest[] = [];
        await scene.ask(OK);
        const { outcome } = await scene.ask(once(way, seen), request(method));
        expect(outcome).toBe("200");
        expect(seen.length).toBe(2);
        expect(seen[0]?.connection).not.toBe(seen[1]!.connection);
        expect(seen[1]?.index).toBe(0);
      }
    },
  );

  test.each([
    ["POST", request("POST", "Content-Length: 0\r\n")],
    ["PATCH", request("PATCH", "Content-Length: 0\r\n")],
    ["POST with a body", `${request("POST", "Content-Length: 2\r\n")}ab`],
    [
      "PUT with a body of unknown length, which is gone",
      `${request("PUT", "Transfer-Encoding: chunked\r\n")}2\r\nab\r\n0\r\n\r\n`,
    ],
  ])("%s is not: it may have been processed", async (_, bytes) => {
    for (const way of ["end", "reset"] as const) {
      const seen: OriginRequest[] = [];
      await scene.ask(OK);
      const { outcome, answers } = await scene.ask(once(way, seen), bytes);
      expect(outcome).toBe("502");
      expect(answers[0]?.header("proxy-status")).toContain("connection_terminated");
      expect(seen.length).toBe(1);
    }
  });

  test("a PUT with a short body is resent once with that body", async () => {
    for (const way of ["end", "reset"] as const) {
      const seen: OriginRequest[] = [];
      await scene.ask(OK);
      const bytes = `${request("PUT", "Content-Length: 2\r\n")}ab`;
      const { outcome } = await scene.ask(once(way, seen), bytes);
      expect(outcome).toBe("200");
      expect(seen.map(({ body }) => String(body))).toEqual(["ab", "ab"]);
    }
  });

  test("only once: a fresh connection that closes too is 502", async () => {
    await scene.ask(OK);
    const before = scene.origin.requests.length;
    const { outcome } = await scene.ask("close");
    expect(outcome).toBe("502");
    expect(scene.origin.requests.length - before).toBe(2);
  });

  test("not after a byte of the response", async () => {
    await scene.ask(OK);
    const before = scene.origin.requests.length;
    const { outcome } = await scene.ask((_request, connection) => {
      connection.write("H");
      connection.end();
      return null;
    });
    expect(outcome).toBe("502");
    expect(scene.origin.requests.length - before).toBe(1);
  });

  test("a close while it is idle is noticed, and no request is lost", async () => {
    for (const method of ["GET", "POST"]) {
      await scene.ask(OK);
      for (const connection of scene.origin.connections) connection.end();
      await eventually(() => scene.openConnections() === 0);
      expect((await scene.ask(OK, request(method))).outcome).toBe("200");
    }
  });
});

describe("keepalive", () => {
  test("a connection serves many sequential requests", async () => {
    const before = scene.origin.connections.length;
    for (let i = 0; i < 20; i++) expect((await scene.ask(OK)).outcome).toBe("200");
    expect(scene.origin.connections.length - before).toBeLessThanOrEqual(1);
  });

  test("max_requests 3: the fourth uses another connection", async () => {
    const worn = await start({ service: { keepalive: { max_requests: 3 } } });
    for (let i = 0; i < 7; i++) await worn.ask(OK);
    expect(worn.origin.requests.map(({ connection, index }) => [connection, index])).toEqual([
      [0, 0],
      [0, 1],
      [0, 2],
      [1, 0],
      [1, 1],
      [1, 2],
      [2, 0],
    ]);
    await eventually(() => worn.openConnections() === 1);
  });

  test("max_requests 1: every request has its own", async () => {
    const worn = await start({ service: { keepalive: { max_requests: 1 } } });
    for (let i = 0; i < 3; i++) await worn.ask(OK);
    expect(worn.origin.requests.map(({ connection }) => connection)).toEqual([0, 1, 2]);
    await eventually(() => worn.openConnections() === 0);
  });

  test("size 0: every request says Connection: close and has its own", async () => {
    const none = await start({ service: { keepalive: { size: 0 } } });
    for (let i = 0; i < 3; i++) expect((await none.ask(OK)).outcome).toBe("200");
    expect(none.origin.requests.map(({ connection }) => connection)).toEqual([0, 1, 2]);
    for (const each of none.origin.requests) expect(each.header("connection")).toBe("close");
    await eventually(() => none.openConnections() === 0);
  });

  test("size 2: of five at once two are kept", async () => {
    const two = await start({ service: { keepalive: { size: 2 } } });
    const waiting: (() => void)[] = [];
    const script = (_request: OriginRequest, connection: { write(bytes: string): void }) => {
      waiting.push(() => connection.write(OK));
      return null;
    };
    const all = Array.from({ length: 5 }, () => two.ask(script));
    await eventually(() => waiting.length === 5);
    expect(two.openConnections()).toBe(5);
    for (const answer of waiting) answer();
    expect((await Promise.all(all)).map(({ outcome }) => outcome)).toEqual(Array(5).fill("200"));
    await eventually(() => two.openConnections() === 2);
  });

  test("idle_timeout 1: an idle connection closes", async () => {
    const short = await start({ service: { keepalive: { idle_timeout: 1 } } });
    await short.ask(OK);
    await eventually(() => short.openConnections() === 0);
    expect((await short.ask(OK)).outcome).toBe("200");
  });

  test("a target that responds before reading the whole request gets no second one on that connection", async () => {
    const early = await start({ early: true });
    const client = await connectRaw({ port: early.port });
    early.origin.answer = OK;
    client.write(`${request("POST", "Content-Length: 10\r\n")}abc`);
    await client.until("\r\n\r\nok");
    await eventually(() => early.openConnections() === 0);
    client.close();
    expect((await early.ask(OK)).outcome).toBe("200");
    expect(early.origin.connections.length).toBe(2);
    expect(early.origin.connections[0]?.received).not.toContain("GET");
  });
});

describe("a client disconnect closes its upstream connection", () => {
  /**
   * Its targets have little time: a client that has only ended its side may wait, until they have none left. One that has closed
   * looks the same until something is written to it, and within a body of known length nothing can be but the body.
   */
  let brief: ScriptedScene;
  beforeAll(async () => {
    brief = await start({ service: { response_timeout: 1000, read_timeout: 1000 } });
  });

  /** A request whose response the origin has not begun, or not finished. */
  async function pending(
    { origin, port }: ScriptedScene,
    [begin, bytes]: readonly string[],
  ): Promise<{ client: RawConnection; isClosed(): boolean }> {
    const before = origin.requests.length;
    origin.answer = (_request, connection) => {
      if (begin !== undefined && begin !== "") connection.write(begin);
      return null;
    };
    const client = await connectRaw({ port });
    client.write(bytes ?? "");
    await origin.untilRequests(before + 1);
    const connection = origin.connections[origin.requests.at(-1)!.connection]!;
    return { client, isClosed: () => connection.isClosed };
  }

  test.each([
    ["before the answer", "", GET],
    ["in the head", "HTTP/1.1 200", GET],
    ["in a body of known length", `HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nxxx`, GET],
    ["in a chunked body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n", GET],
    ["in a body without end", "HTTP/1.1 200 OK\r\n\r\nxxx", GET],
    ["in events", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: xxx\n\n", GET],
    ["after a POST", "", `${request("POST", "Content-Length: 2\r\n")}ab`],
  ])("%s", async (_, begin, bytes) => {
    for (const way of ["close", "reset", "end"] as const) {
      const isUnseen = way === "end" || (way === "close" && begin.includes("Content-Length"));
      const at = isUnseen ? brief : scene;
      const { client, isClosed } = await pending(at, [begin, bytes]);
      if (begin.includes("xxx")) await client.until("xxx");
      client[way]();
      await eventually(isClosed);
      expect((await at.ask(OK)).outcome).toBe("200");
      client.close();
    }
  });
});

describe("a target that disconnects within a body", () => {
  test.each(["end", "reset"] as const)(
    "by %s: the client's connection ends without the rest",
    async (way) => {
      scene.origin.answer = (_request, connection) => {
        connection.write(`HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n${"x".repeat(1000)}`);
        return null;
      };
      const client = await connectRaw({ port: scene.port });
      client.write(GET);
      await client.until("xxx");
      scene.origin.connections[scene.origin.requests.at(-1)!.connection]?.[way]();
      const { answers } = read(await client.untilClosed(), true);
      expect(answers[0]).toMatchObject({ status: 200, isComplete: false });
    },
  );
});

describe("other targets", () => {
  test("a closed port: 502, and the next target is tried when there is one", async () => {
    const gone = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { port } = gone;
    gone.stop(true);
    const alone = await start({ service: { retries: { backoff_ms: 0 } } });
    await alone.gateway.apply({ services: [{ name: "origin", targets: [{ port }] }] });
    const { outcome, answers } = await alone.ask(OK);
    expect(outcome).toBe("502");
    expect(answers[0]?.header("proxy-status")).toContain("connection_refused");
    expect(answers[0]?.raw).not.toContain(String(port));
    expect(answers[0]?.raw).not.toContain("127.0.0.1");

    await alone.gateway.apply({
      services: [{ name: "origin", targets: [{ port }, { port: alone.origin.port }] }],
    });
    for (let i = 0; i < 4; i++) expect((await alone.ask(OK)).outcome).toBe("200");
    // Nothing of it was sent, so even a POST may be retried elsewhere.
    for (let i = 0; i < 4; i++)
      expect((await alone.ask(OK, `${request("POST", "Content-Length: 2\r\n")}ab`)).outcome).toBe(
        "200",
      );
  });

  test("a body that no target accepted leaves the client's connection usable", async () => {
    const alone = await start();
    await alone.gateway.apply({ services: [{ name: "origin", targets: [] }] });
    for (const size of [2, 100_000, 2_000_000]) {
      const client = await connectRaw({ port: alone.port });
      client.write(`${request("POST", `Content-Length: ${size}\r\n`)}${"b".repeat(size)}`);
      await client.until((received) => read(received, false).outcome === "503");
      client.write(GET);
      await client.until((received) => read(received, false).outcome === "503 503");
      client.close();
    }
  });

  test("no target: 503", async () => {
    const none = await start();
    await none.gateway.apply({ services: [{ name: "origin", targets: [] }] });
    const { outcome, answers } = await none.ask(OK);
    expect(outcome).toBe("503");
    expect(answers[0]?.header("retry-after")).toBe("5");
    await none.gateway.apply({
      services: [{ name: "origin", targets: [{ port: none.origin.port, weight: 0 }] }],
    });
    expect((await none.ask(OK)).outcome).toBe("503");
  });

  test("a name that does not exist: 502 dns_error", async () => {
    const none = await start();
    await none.gateway.apply({
      services: [{ name: "origin", targets: [{ host: "does-not-exist.invalid", port: 80 }] }],
    });
    const { outcome, answers } = await none.ask(OK);
    expect(outcome).toBe("502");
    expect(answers[0]?.header("proxy-status")).toContain("dns_error");
    expect(answers[0]?.raw).not.toContain("invalid");
  });
});

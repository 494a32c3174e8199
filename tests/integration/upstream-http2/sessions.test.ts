// The sessions of a target: one for many requests, replaced without loss when the target or its limits say so.
import { afterAll, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type ServiceSketch, startDataPlane } from "../../support/data-plane.ts";
import { H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { frames, type Script, startScriptedTarget } from "./scripted-target.ts";
import { http2Target, RecordedExchange } from "./recorded-exchange.ts";
import { startHttp2Target, type StreamHandler } from "./target.ts";

const stops = cleanupsOf(afterAll);

async function gatewayOf(port: number, service: Partial<ServiceSketch> = {}) {
  const sketch = { name: "app", protocol: "h2c" as const, ...service, targets: [{ port }] };
  const gateway = await startDataPlane({
    services: [sketch],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.drain(0));
  const failures = () =>
    gateway.log
      .filter(({ message }) => message === "request failed")
      .map(({ fields }) => fields["reason"]);
  return { gateway, sketch, url: `http://127.0.0.1:${gateway.port}`, failures };
}

async function scripted(script: Script, service: Partial<ServiceSketch> = {}) {
  const target = startScriptedTarget(script);
  stops.push(() => target.stop());
  return { target, ...(await gatewayOf(target.port, service)) };
}

async function real(handle: StreamHandler, service: Partial<ServiceSketch> = {}, options = {}) {
  const target = await startHttp2Target(handle, options);
  stops.push(() => target.stop());
  return { target, ...(await gatewayOf(target.port, service)) };
}

const text = async (url: string, init: RequestInit = {}) => {
  const response = await fetch(url, init);
  return `${response.status} ${await response.text()}`;
};

test("requests at the same time share a session up to the target's limit of streams", async () => {
  const held: (() => void)[] = [];
  const { target, url } = await real(
    (stream) => {
      held.push(() => {
        stream.respond({ ":status": 200 });
        stream.end("x");
      });
    },
    {},
    { settings: { maxConcurrentStreams: 10 } },
  );
  const first = text(url);
  await eventually(() => held.length === 1);
  const all = Array.from({ length: 24 }, () => text(url));
  await eventually(() => held.length === 25);
  expect(target.sessions).toHaveLength(3);
  for (const respond of held) respond();
  expect(new Set(await Promise.all([first, ...all]))).toEqual(new Set(["200 x"]));
});

test.each([
  { method: "GET", body: null },
  { method: "POST", body: "content" },
])("a $method above the last stream of GOAWAY goes to a new session", async (init) => {
  const { target, url, failures } = await scripted({
    onRequest(connection, stream, index) {
      if (index === 1) {
        connection.goaway(1);
        connection.respond(1, "first");
      } else if (index > 1) connection.respond(stream, "second");
    },
  });
  const first = text(url);
  await eventually(() => target.connections[0]?.frames.some(({ stream }) => stream === 1) === true);
  expect(await text(url, init)).toBe("200 second");
  expect(await first).toBe("200 first");
  expect(await text(url)).toBe("200 second");
  expect(target.connections).toHaveLength(2);
  expect(failures()).toEqual([]);
});

test("GOAWAY with an error fails what it names, and the rest goes to a new session", async () => {
  const { gateway, target, url } = await scripted(
    {
      onRequest(connection, stream, index) {
        if (index === 2) connection.goaway(3, 11);
        else if (index > 2) connection.respond(stream, "second");
      },
    },
    { retries: { count: 0 } },
  );
  const isThere = (stream: number) =>
    target.connections[0]?.frames.some((frame) => frame.stream === stream) === true;
  const first = text(url);
  await eventually(() => isThere(1));
  const other = text(url);
  await eventually(() => isThere(3));
  expect(await text(url, { method: "POST", body: "content" })).toBe("200 second");
  expect(await first).toStartWith("502 ");
  expect(await other).toStartWith("502 ");
  expect(gateway.targets.get(gateway.targets.rowOf("app-0"), "outcome")).toBeGreaterThan(0);
});

test("a client that aborts often harms nobody on a session of a target with little patience", async () => {
  const patience = 60;
  const counts = new Map<object, number>();
  let aborted = 0;
  const held: (() => void)[] = [];
  const { target, gateway, url } = await real((stream, { ":path": path }) => {
    const { session } = stream;
    if (path === "/honest")
      held.push(() => {
        stream.respond({ ":status": 200 });
        stream.end("x");
      });
    stream.on("close", () => {
      if (stream.rstCode === 0 || session === undefined) return;
      aborted++;
      const count = (counts.get(session) ?? 0) + 1;
      counts.set(session, count);
      // As CVE-2023-44487 taught servers.
      if (count >= patience) session.destroy(undefined, 11);
    });
  });
  const honest = text(`${url}/honest`);
  await eventually(() => held.length === 1);
  const client = await H2Client.connect({ port: gateway.port });
  stops.push(() => client.close());
  for (let round = 1; round <= 25; round++) {
    const before = target.requests.length;
    const fields = [
      [":method", "GET"],
      [":scheme", "http"],
      [":authority", "app"],
      [":path", "/slow"],
    ] as const;
    const streams = Array.from({ length: 10 }, () => client.headers(fields));
    await eventually(() => target.requests.length === before + 10);
    for (const stream of streams) client.resetStream(stream);
    await eventually(() => aborted >= round * 10);
    if (round % 5 > 0) continue;
    const other = text(`${url}/honest`);
    await eventually(() => held.length === 1 + round / 5);
    held.at(-1)?.();
    expect(await other).toBe("200 x");
  }
  held[0]?.();
  expect(await honest).toBe("200 x");
  const [first = {}] = target.sessions;
  expect(counts.get(first)).toBeLessThan(40);
  expect(target.sessions.length).toBeGreaterThan(1);
});

test("a session that dies counts one failure, however many streams it had", async () => {
  const { gateway, target, url } = await scripted(
    {
      onRequest(connection, _stream, index) {
        if (index === 7) connection.close();
      },
    },
    { retries: { count: 0 } },
  );
  const all = Array.from({ length: 8 }, () => text(url, { method: "POST", body: "content" }));
  expect((await Promise.all(all)).every((one) => one.startsWith("502 "))).toBe(true);
  expect(target.connections).toHaveLength(1);
  expect(gateway.targets.get(gateway.targets.rowOf("app-0"), "failures")).toBe(1);
});

test("a silent target with open streams gets a PING, and loses its streams without a response", async () => {
  let time = 1000;
  const target = startScriptedTarget({});
  stops.push(() => target.stop());
  const { pool, transport } = http2Target(target.port, () => time);
  const held = new RecordedExchange({ transport });
  const pings = () =>
    target.connections[0]?.frames.filter(({ type }) => type === frames.ping) ?? [];
  await eventually(() => target.connections[0]?.frames.some(({ stream }) => stream === 1) === true);
  const sweep = (seconds: number) => {
    time += seconds * 1000;
    pool.sweep(time);
  };
  sweep(29);
  sweep(1);
  await eventually(() => pings().length === 1);
  sweep(19);
  expect(held.error).toBeNull();
  sweep(1);
  await held.ended();
  expect(held.error?.token).toBe("connection_terminated");
});

test("a target that answers PING keeps its streams, and gets few of them", async () => {
  let time = 1000;
  const target = startScriptedTarget({
    onRequest(connection, stream) {
      if (stream > 1) connection.respond(stream, "x");
    },
    onFrame(connection, type) {
      const { payload } = connection.frames.at(-1)!;
      if (type === frames.ping) connection.frame(frames.ping, 1, 0, payload);
    },
  });
  stops.push(() => target.stop());
  const { pool, transport } = http2Target(target.port, () => time);
  const held = new RecordedExchange({ transport });
  const count = (type: number) =>
    target.connections[0]?.frames.filter((frame) => frame.type === type).length ?? 0;
  await eventually(() => count(frames.headers) === 1);
  const sweep = (seconds: number) => {
    time += seconds * 1000;
    pool.sweep(time);
  };
  sweep(30);
  await eventually(() => count(frames.ping) === 1);
  // Its response follows that to PING.
  await new RecordedExchange({ transport }).ended();
  sweep(30);
  sweep(200);
  expect([held.error, count(frames.ping)]).toEqual([null, 1]);
  sweep(80);
  await eventually(() => count(frames.ping) === 2);
  held.exchange.abort();
});

test("a target that refuses every stream by GOAWAY gets few attempts", async () => {
  const { target, url, failures } = await scripted(
    { onRequest: (connection) => connection.goaway(0) },
    { retries: { count: 0 } },
  );
  expect(await text(url)).toStartWith("503 ");
  expect(target.connections.length).toBe(4);
  expect(failures()).toHaveLength(1);
});

test("REFUSED_STREAM is retried whatever the method", async () => {
  const { url } = await scripted({
    onRequest(connection, stream, index) {
      if (index === 0) connection.reset(stream, 7);
      else connection.respond(stream, "again");
    },
  });
  expect(await text(url, { method: "POST", body: "content" })).toBe("200 again");
});

test.each([
  { code: 1, why: "PROTOCOL_ERROR" },
  { code: 2, why: "INTERNAL_ERROR" },
  { code: 8, why: "CANCEL" },
  { code: 11, why: "ENHANCE_YOUR_CALM" },
])("a POST that is reset with $why is not retried", async ({ code }) => {
  let requests = 0;
  const { url, failures } = await scripted({
    onRequest(connection, stream) {
      requests++;
      connection.reset(stream, code);
    },
  });
  expect(await text(url, { method: "POST", body: "content" })).toStartWith("502 ");
  expect(requests).toBe(1);
  expect(failures()).toHaveLength(1);
});

test("a target that sends no SETTINGS runs into the connect timeout", async () => {
  const { url } = await scripted({ opening: "" }, { connect_timeout: 200, retries: { count: 0 } });
  expect(await text(url)).toStartWith("504 ");
});

test.each([
  { opening: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", why: "HTTP/1.1" },
  { opening: "220 mail ESMTP\r\n", why: "mail" },
  { opening: Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]), why: "PING first" },
])("a target that speaks $why is told apart from HTTP/2", async ({ opening }) => {
  const { gateway, url } = await scripted({ opening }, { retries: { count: 0 } });
  const response = await fetch(url);
  expect(response.status).toBe(502);
  const { fields } = gateway.log.findLast(({ message }) => message === "request failed")!;
  expect(JSON.stringify(fields)).toContain("the target does not speak HTTP/2");
});

test("a failed connection counts once, however many requests waited for it", async () => {
  const { gateway, target, url } = await scripted({ opening: "" }, { retries: { count: 0 } });
  const row = gateway.targets.rowOf("app-0");
  const all = Array.from({ length: 4 }, () => text(url));
  await eventually(() => gateway.targets.active(row) === 4 && target.connections.length === 1);
  target.connections[0]!.close();
  expect((await Promise.all(all)).every((one) => one.startsWith("502 "))).toBe(true);
  expect(gateway.targets.get(row, "failures")).toBe(1);
});

test("the resets of one client retire the session, and its neighbours finish", async () => {
  const held: (() => void)[] = [];
  const { target, url } = await real((stream, fields) => {
    if (fields[":path"] === "/held")
      held.push(() => {
        stream.respond({ ":status": 200 });
        stream.end("x");
      });
  });
  const neighbour = text(`${url}/held`);
  await eventually(() => held.length === 1);
  for (let index = 0; index < 110; index++) {
    const abort = new AbortController();
    const before = target.requests.length;
    const request = fetch(`${url}/aborted`, { signal: abort.signal }).catch(() => "aborted");
    await eventually(() => target.requests.length > before);
    abort.abort();
    await request;
  }
  await eventually(() => target.resets.length === 110);
  expect(new Set(target.resets)).toEqual(new Set([8]));
  await eventually(() => target.sessions.length === 2);
  held[0]!();
  expect(await neighbour).toBe("200 x");
  await eventually(() => target.sessions[0]!.destroyed);
});

test("an idle session is closed, and one in use is not", async () => {
  const { target, url } = await real(
    (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("x");
    },
    { keepalive: { idle_timeout: 1 } },
  );
  expect(await text(url)).toBe("200 x");
  await eventually(() => target.sessions[0]!.destroyed);
  expect(await text(url)).toBe("200 x");
  expect(target.sessions).toHaveLength(2);
});

test("max_requests ends a session after its streams", async () => {
  const { target, url } = await real(
    (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("x");
    },
    { keepalive: { max_requests: 3 } },
  );
  for (let index = 0; index < 7; index++) expect(await text(url)).toBe("200 x");
  expect(target.sessions).toHaveLength(3);
});

test("a change of the service breaks no stream, and its removal lets them end", async () => {
  const held: (() => void)[] = [];
  const { target, gateway, sketch, url } = await real((stream) => {
    stream.respond({ ":status": 200 });
    stream.write("a");
    held.push(() => stream.end("b"));
  });
  const response = await fetch(url);
  for (let index = 0; index < 20; index++)
    await gateway.apply({ services: [{ ...sketch, read_timeout: 10_000 + index }] });
  const second = await fetch(url);
  expect(target.sessions).toHaveLength(1);
  await gateway.apply({ removedRoutes: ["all"], removedServices: ["app"] });
  for (const end of held) end();
  expect([await response.text(), await second.text()]).toEqual(["ab", "ab"]);
  await eventually(() => target.sessions[0]!.destroyed);
});

test("a held download stalls no other stream and holds little memory", async () => {
  const piece = Buffer.alloc(65_536, 97);
  let sent = 0;
  const { target, url } = await real((stream, fields) => {
    stream.respond({ ":status": 200 });
    const isHeld = fields[":path"] === "/held";
    let left = 200;
    const more = () => {
      while (!stream.destroyed && left-- > 0) {
        if (isHeld) sent += piece.length;
        if (!stream.write(piece)) return stream.once("drain", more);
      }
      return stream.end();
    };
    more();
  });
  const held = await Promise.all(Array.from({ length: 8 }, () => fetch(`${url}/held`)));
  for (let index = 0; index < 3; index++) {
    const body = await (await fetch(`${url}/other`)).arrayBuffer();
    expect(body.byteLength).toBe(200 * piece.length);
  }
  expect(target.sessions).toHaveLength(1);
  expect(sent).toBeLessThan(8 * 200 * piece.length);
  const [first, ...others] = held;
  for (const response of others) await response.body!.cancel();
  expect((await first!.arrayBuffer()).byteLength).toBe(200 * piece.length);
});

test("frames of a session are never sent on a stream with a pseudo field of HTTP/1.1", async () => {
  const { target, url } = await scripted({
    onRequest: (connection, stream) => connection.respond(stream, "x"),
  });
  expect(await text(url, { headers: { connection: "x-mine", "x-mine": "1" } })).toBe("200 x");
  const head = target.connections[0]!.frames.find(({ type }) => type === frames.headers)!;
  expect(head.payload.toString("latin1")).not.toContain("connection");
});

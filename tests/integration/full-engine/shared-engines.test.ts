// Listeners with both engines, in real workers: the name in the TLS handshake decides, at once and without a new socket.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import { answer, GrpcClient, type GrpcServer, startGrpcServer } from "../../support/grpc-calls.ts";
import { curl } from "../../support/curl.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { usePeople } from "../listeners/people.ts";
import { ask, useListeners } from "../listeners/world.ts";

const { api, listener } = useListeners();
const people = usePeople(api);
const shared = { protocol: "https", shared_engines: true };
const LONG = 3_000_000;

let server: GrpcServer;
const long = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response("x".repeat(LONG)),
});

beforeAll(async () => {
  server = await startGrpcServer(
    (call) => void call.received.then((messages) => answer(call, messages)),
  );
  await listener("with both", shared);
  const host = "127.0.0.1";
  await api.create("/services", {
    name: "calls",
    protocol: "grpc",
    targets: [{ host, port: server.port }],
  });
  await api.create("/services", { name: "long", targets: [{ host, port: long.port }] });
});
afterAll(async () => {
  long.stop(true);
  await server.stop();
});

const callsRoute = (name: string, fields: object) =>
  api.create("/routes", { name, service_id: "calls", paths: ["/test.S"], ...fields });

/** The status of a call on a connection of its own: of gRPC, or of HTTP where there is none. */
async function call(port: number, name: string): Promise<string> {
  const client = GrpcClient.connect(port, name);
  try {
    const { status, headers } = await client.unary("/test.S/M", "hello");
    return status === null ? `http ${String(headers[":status"])}` : `grpc ${status}`;
  } finally {
    client.close();
  }
}

describe("a call is served", () => {
  const rows = [
    ["exact.test", { hosts: ["exact.test"] }, "exact.test", true],
    ["an upper-case host", { hosts: ["Upper.Test"] }, "upper.test", true],
    ["one label below", { hosts: ["*.below.test"] }, "a.below.test", true],
    ["two labels below", { hosts: ["*.deep.test"] }, "a.b.deep.test", true],
    ["above a wildcard", { hosts: ["*.above.test"] }, "above.test", false],
    ["a disabled route", { hosts: ["off.test"], enabled: false }, "off.test", false],
    ["a route for http", { hosts: ["plain.test"], protocols: ["http"] }, "plain.test", false],
  ] as const;
  test.each(rows)("%s", async (name, fields, host, isServed) => {
    const port = await listener(name, shared);
    // A listener for http serves the route for http.
    if ("protocols" in fields) await listener(`${name} full`, { engine: "full" });
    await callsRoute(name, fields);
    expect(await call(port, host)).toBe(isServed ? "grpc 0" : "http 421");
    const explained = await api.call("POST /routes/explain", {
      body: {
        url: `https://${host}:${port}/test.S/M`,
        headers: { "content-type": "application/grpc" },
      },
    });
    expect(explained.body.engine.name).toBe(isServed ? "full" : "standard");
  });

  test("at the listeners of its route only", async () => {
    const [one, other] = [await listener("one", shared), await listener("other", shared)];
    await callsRoute("at one", { hosts: ["one.test"], listener_ids: ["one"] });
    expect(await call(one, "one.test")).toBe("grpc 0");
    expect(await call(other, "one.test")).toBe("http 421");
  });

  test("by the listener of its host, where two share a port", async () => {
    const port = await listener("left", { ...shared, hosts: ["*.left.test"] });
    const place = { address: "127.0.0.1", port };
    await api.create("/listeners", { name: "right", ...place, ...shared, hosts: ["*.right.test"] });
    await callsRoute("on the right", {
      hosts: ["*.left.test", "*.right.test"],
      listener_ids: ["right"],
    });
    expect(await call(port, "a.right.test")).toBe("grpc 0");
    expect(await call(port, "a.left.test")).toBe("http 421");
  });
});

test("connections of other names stay open when a name begins to need the full engine, and when it ends", async () => {
  const port = await listener("steady", shared);
  const session = http2.connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    servername: "steady.test",
  });
  let [goAways, isClosed] = [0, false];
  session.on("goaway", () => goAways++);
  session.on("close", () => {
    isClosed = true;
  });
  const get = async () => {
    const stream = session.request({ ":path": "/", ":authority": "steady.test" });
    stream.resume();
    return await new Promise((resolve, reject) => {
      stream.on("response", (headers) => resolve(headers[":status"]));
      stream.on("error", reject);
    });
  };
  expect(await get()).toBe(200);
  for (let round = 0; round < 5; round++) {
    const { id } = await callsRoute("beside", { hosts: ["beside.test"] });
    expect(await call(port, "beside.test")).toBe("grpc 0");
    expect(await get()).toBe(200);
    await api.call(`DELETE /routes/${id}`);
    expect(await call(port, "beside.test")).toBe("http 421");
    expect(await get()).toBe(200);
  }
  expect([goAways, isClosed]).toEqual([0, false]);
  session.close();
});

test("a service that begins to speak gRPC moves the names of its routes", async () => {
  const port = await listener("moving", shared);
  const targets = [{ host: "127.0.0.1", port: server.port }];
  await api.create("/services", { name: "moving", protocol: "h2c", targets });
  await api.create("/routes", { name: "moving", service_id: "moving", hosts: ["moving.test"] });
  expect(await call(port, "moving.test")).toBe("http 421");
  await api.call("PATCH /services/moving", { body: { protocol: "grpc" } });
  expect(await call(port, "moving.test")).toBe("grpc 0");
  await api.call("PATCH /services/moving", { body: { protocol: "h2c" } });
  expect(await call(port, "moving.test")).toBe("http 421");
});

test("a gRPC client that connected before its route existed is disconnected, so that it finds the engine", async () => {
  const port = await listener("early", shared);
  const early = GrpcClient.connect(port, "early.test");
  const other = GrpcClient.connect(port, "other.early");
  expect((await early.unary("/test.S/M")).headers[":status"]).toBe(421 as never);
  await callsRoute("early", { hosts: ["early.test"] });
  expect((await early.unary("/test.S/M")).headers[":status"]).toBe(421 as never);
  await eventually(() => early.isClosed);
  expect(await call(port, "early.test")).toBe("grpc 0");
  // Its own name does not need the engine: 421 is all it gets.
  expect((await other.unary("/test.S/M")).headers[":status"]).toBe(421 as never);
  expect(other.isClosed).toBe(false);
  early.close();
  other.close();
});

describe("exact responses", () => {
  needs("curl").test.each(["--http1.1", "--http2"])(
    "have a Content-Length with curl %s, and those of other routes have none",
    async (version) => {
      const port = await listener(`exact${version}`, shared);
      for (const exact_responses of ["on", "off"]) {
        const host = `${exact_responses}-${version.replaceAll(/\W/g, "")}.test`;
        const name = `exact ${exact_responses}${version}`;
        await api.create("/routes", { name, service_id: "long", hosts: [host], exact_responses });
        const to = ["--connect-to", `${host}:${port}:127.0.0.1:${port}`];
        const { size, header } = await curl(`https://${host}:${port}/`, [version, ...to]);
        const length = exact_responses === "on" ? String(LONG) : null;
        expect([size, header("content-length")]).toEqual([LONG, length]);
      }
    },
  );
});

describe("a name of the full engine", () => {
  beforeAll(() => callsRoute("a.test", { hosts: ["a.test", "b.test", "none.test"] }));

  test("gets its own certificate, and an unknown one is refused when the listener is strict", async () => {
    const port = await listener("strict both", { ...shared, strict_sni: true });
    for (const name of ["a.test", "b.test"]) {
      expect((await ask(port, { servername: name })).certificate).toBe(name);
    }
    const { error } = await ask(port, { servername: "none.test" });
    expect(error).toMatch(/UNRECOGNIZED_NAME/);
  });

  test("asks for client certificates as the other names do", async () => {
    const port = await listener("certified", people.required({ ...shared, http2: false }));
    for (const servername of ["a.test", "none.test", "else.test"]) {
      const good = await ask(port, { ...people.shown(people.good), servername });
      expect(good.text).toMatch(/^HTTP\/1\.1 (?:200|404|421)/);
      for (const leaf of [undefined, people.foreign, people.expired])
        expect((await ask(port, { ...people.shown(leaf), servername })).text).toBe("");
    }
  });
});

test("without a server name the routes without hosts decide", async () => {
  const port = await listener("nameless", shared);
  const { id } = await callsRoute("any host", { listener_ids: ["nameless"] });
  const session = http2.connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    servername: "",
  });
  const stream = session.request({
    ":method": "POST",
    ":path": "/test.S/M",
    ":authority": "127.0.0.1",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(Buffer.alloc(5));
  const trailers = await new Promise<http2.IncomingHttpHeaders>((resolve) => {
    stream.on("trailers", resolve);
    stream.on("close", () => resolve({}));
  });
  expect(trailers["grpc-status"]).toBe("0");
  session.close();
  await api.call(`DELETE /routes/${id}`);
});

// TCP streams through the product: bytes both ways, half-closes, balancing, limits, and changing ports.
import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, connect as tlsConnect } from "node:tls";
import { selfSigned } from "../../support/certificate.ts";
import { freePort } from "../../support/data-plane.ts";
import { startFullQueue } from "../../support/full-queue.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** A TCP server of the test; returns its port. */
async function serve(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    onSocket(socket);
  });
  servers.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return (server.address() as { port: number }).port;
}

const echo = (socket: Socket) => void socket.pipe(socket);

let count = 0;
/** A service on these ports and a stream route to it; returns the route. */
async function route(ports: number[], fields: object = {}, service: object = {}) {
  const name = `stream ${++count}`;
  const targets = ports.map((port) => ({ host: "127.0.0.1", port }));
  await api.create("/services", { name, protocol: "tcp", targets, ...service });
  return await api.create("/stream-routes", {
    name,
    listen_address: "127.0.0.1",
    listen_port: freePort(),
    service_id: name,
    ...fields,
  });
}

/** Sends, half-closes and collects until the other side closes too. */
function exchange(port: number, bytes: Buffer | string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const parts: Buffer[] = [];
    socket.on("data", (part) => parts.push(part));
    socket.on("end", () => resolve(Buffer.concat(parts)));
    socket.on("error", reject);
    socket.end(bytes);
  });
}

/** Resolves with what came until the connection was gone. */
function until(port: number, bytes = "", options: object = {}): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", ...options });
    let text = "";
    socket.on("data", (part) => (text += String(part)));
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
    if (bytes !== "") socket.write(bytes);
  });
}

test("bytes pass both ways and a half-close is forwarded", async () => {
  const target = await serve((socket) => {
    const parts: Buffer[] = [];
    socket.on("data", (part) => parts.push(part));
    // Responds only after the client's half-close.
    socket.on("end", () => socket.end(`got ${Buffer.concat(parts).length}`));
  });
  const { listen_port: port } = await route([target]);
  expect(String(await exchange(port, "x".repeat(100_000)))).toBe("got 100000");
});

test("a server may send first", async () => {
  const { listen_port: port } = await route([
    await serve((socket) => void socket.end("220 hello")),
  ]);
  expect(await until(port)).toBe("220 hello");
});

test("200 MB come back the same through a slow reader, within a bound of memory", async () => {
  const { listen_port: port } = await route([await serve(echo)]);
  const chunk = Buffer.alloc(1_048_576, "0123456789abcdef");
  const total = 200;
  const wanted = createHash("sha256");
  const found = createHash("sha256");
  let received = 0;
  const rss = async () => {
    const text = await Bun.file(`/proc/${api.gateway.pid}/status`).text();
    return Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]) / 1024;
  };
  const before = await rss();
  let highest = before;
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", reject);
    socket.on("data", async (part) => {
      found.update(part);
      received += part.length;
      if (received === total * chunk.length) {
        socket.destroy();
        resolve();
      }
      // Pauses now and then, so that the whole path has to wait.
      if (received % 7 === 0) {
        socket.pause();
        highest = Math.max(highest, await rss());
        socket.resume();
      }
    });
    let sent = 0;
    const send = () => {
      while (sent < total) {
        sent++;
        wanted.update(chunk);
        if (!socket.write(chunk)) {
          socket.once("drain", send);
          return;
        }
      }
    };
    send();
  });
  expect(found.digest("hex")).toBe(wanted.digest("hex"));
  expect(highest - before).toBeLessThan(100);
});

test("connections are balanced, and a target that refuses is skipped", async () => {
  const names = ["a", "b"];
  const ports = await Promise.all(names.map((name) => serve((socket) => void socket.end(name))));
  const { listen_port: port } = await route([...ports, freePort()]);
  const answers: string[] = [];
  for (let ask = 0; ask < 30; ask++) answers.push(await until(port));
  expect(new Set(answers)).toEqual(new Set(names));
});

test("consistent_hash sends a client to the same target by its address", async () => {
  const names = ["a", "b", "c"];
  const ports = await Promise.all(names.map((name) => serve((socket) => void socket.end(name))));
  const { listen_port: port } = await route(ports, {}, { algorithm: "consistent_hash" });
  const answers = new Set<string>();
  for (let ask = 0; ask < 12; ask++) answers.add(await until(port));
  expect(answers.size).toBe(1);
});

test("a target at its connection limit gets no more", async () => {
  const { listen_port: port, service_id } = await route(
    [await serve(echo)],
    {},
    { max_connections_per_target: 2 },
  );
  const open = Array.from({ length: 2 }, () => connect({ port, host: "127.0.0.1" }));
  for (const socket of open) {
    socket.write("x");
    await new Promise((answered) => socket.once("data", answered));
  }
  for (let ask = 0; ask < 5; ask++) expect(await until(port, "x")).toBe("");
  const { body } = await api.call(`GET /services/${service_id}/health`);
  expect(body.targets[0].active_requests).toBe(2);
  for (const socket of open) socket.destroy();
});

describe("a client that may not connect is closed at once:", () => {
  test("denied, or not among those allowed", async () => {
    const target = await serve((socket) => void socket.end("in"));
    const denied = await route([target], { deny: ["127.0.0.0/8"] });
    expect(await until(denied.listen_port)).toBe("");
    const others = await route([target], { allow: ["10.0.0.0/8"] });
    expect(await until(others.listen_port)).toBe("");
    const allowed = await route([target], { allow: ["127.0.0.1"] });
    expect(await until(allowed.listen_port)).toBe("in");
  });

  test("one more than max_connections, over all workers", async () => {
    const { listen_port: port } = await route([await serve(echo)], { max_connections: 3 });
    const open = Array.from({ length: 3 }, () => connect({ port, host: "127.0.0.1" }));
    for (const socket of open) {
      socket.write("x");
      await new Promise((answered) => socket.once("data", answered));
    }
    for (let ask = 0; ask < 6; ask++) expect(await until(port, "x")).toBe("");
    open[0]?.destroy();
    const again = await eventually(async () => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => {});
      socket.write("y");
      const answer = await new Promise((done) => {
        socket.once("data", (data) => done(String(data)));
        socket.once("close", () => done(null));
      });
      socket.destroy();
      return answer;
    });
    expect(again).toBe("y");
    for (const socket of open) socket.destroy();
  });

  test("when no target can be reached", async () => {
    const { listen_port: port } = await route([freePort()]);
    expect(await until(port, "x")).toBe("");
  });
});

test("a silent connection is closed after idle_timeout, one with traffic is not", async () => {
  const { listen_port: port } = await route([await serve(echo)], { idle_timeout: 2 });
  const busy = connect({ port, host: "127.0.0.1" });
  let isClosed = false;
  busy.on("close", () => (isClosed = true));
  busy.on("data", () => {});
  const talk = setInterval(() => busy.write("x"), 200);
  expect(await until(port, "x")).toBe("x");
  expect(isClosed).toBe(false);
  clearInterval(talk);
  busy.destroy();
});

describe("the PROXY protocol", () => {
  const headOf = (socket: Socket) =>
    void socket.once("data", (data: Buffer) => {
      const [line = ""] = data.toString("latin1").split("\r\n");
      socket.end(line);
    });

  test("sends the client's address to a target", async () => {
    const { listen_port: port } = await route([await serve(headOf)], { proxy_protocol_out: "v1" });
    const line = await new Promise<string>((resolve) => {
      const socket = connect({ port, host: "127.0.0.1" }, () => socket.write("hello"));
      socket.on("data", (data: Buffer) => resolve(`${socket.localPort} ${String(data)}`));
    });
    const [clientPort, ...rest] = line.split(" ");
    expect(rest.join(" ")).toBe(`PROXY TCP4 127.0.0.1 127.0.0.1 ${clientPort} ${port}`);
  });

  test("is accepted from trusted networks, and then sets the client address for rules too", async () => {
    const target = await serve(headOf);
    const trusting = { proxy_protocol_in: true, proxy_protocol_out: "v1" };
    const header = "PROXY TCP4 203.0.113.5 203.0.113.9 4000 443\r\n";
    const open = await route([target], { ...trusting, proxy_protocol_trusted: ["127.0.0.1"] });
    expect(await until(open.listen_port, `${header}x`)).toBe(header.trim());
    const denying = await route([target], {
      ...trusting,
      proxy_protocol_trusted: ["127.0.0.1"],
      deny: ["203.0.113.0/24"],
    });
    expect(await until(denying.listen_port, `${header}x`)).toBe("");
    const strict = await route([target], { ...trusting, proxy_protocol_trusted: ["10.0.0.0/8"] });
    expect(await until(strict.listen_port, `${header}x`)).toBe("");
    expect(await until(open.listen_port, "no header at all\r\n")).toBe("");
  });
});

describe("TLS", () => {
  const shows = (port: number, servername: string) =>
    new Promise<string>((resolve) => {
      const socket = tlsConnect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
      socket.on("error", () => resolve("closed"));
      socket.on("close", () => resolve("closed"));
      socket.once("data", (data: Buffer) => {
        resolve(`${String(socket.getPeerCertificate().subject.CN)} ${String(data)}`);
        socket.destroy();
      });
    });

  async function serveTls(name: string): Promise<number> {
    const server = createTlsServer(await selfSigned(name), (socket) => {
      socket.on("error", () => {});
      socket.end("hello");
    });
    servers.push(server);
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return (server.address() as { port: number }).port;
  }

  test("is passed through by name: several routes share a port", async () => {
    const [one, two] = [await serveTls("one"), await serveTls("two")];
    const first = await route([one], { tls_mode: "passthrough", sni: ["a.test"] });
    const port = first.listen_port;
    await route([two], { tls_mode: "passthrough", sni: ["*.a.test"], listen_port: port });
    expect(await shows(port, "a.test")).toBe("one hello");
    expect(await shows(port, "A.Test")).toBe("one hello");
    expect(await shows(port, "x.a.test")).toBe("two hello");
    expect(await shows(port, "x.y.a.test")).toBe("closed");
    expect(await shows(port, "b.test")).toBe("closed");
    expect(await until(port, "GET / HTTP/1.1\r\n\r\n")).toBe("");
    const answer = await api.call("POST /stream-routes", {
      body: {
        name: "same name",
        listen_address: "127.0.0.1",
        listen_port: port,
        service_id: first.service_id,
        tls_mode: "passthrough",
        sni: ["a.test"],
      },
    });
    expect([answer.status, answer.body.error]).toEqual([
      409,
      expect.stringContaining("belongs to stream route"),
    ]);
  });

  test("is terminated with the route's certificate, which can be replaced", async () => {
    const target = await serve((socket) => void socket.end("plain"));
    const made = { source: "self_signed", domains: ["db.test"] };
    await api.create("/certificates", { name: "db", ...made });
    const { listen_port: port } = await route([target], {
      tls_mode: "terminate",
      certificate_id: "db",
    });
    expect(await shows(port, "db.test")).toBe("db.test plain");
    await api.call("PATCH /certificates/db", { body: { domains: ["other.test"] } });
    expect(await shows(port, "db.test")).toBe("other.test plain");
    const refused = await api.call("DELETE /certificates/db");
    expect(refused.status).toBe(409);
  });

  test("is used to targets of a tls service", async () => {
    const { listen_port: port } = await route(
      [await serveTls("inside")],
      {},
      {
        protocol: "tls",
        tls: { verify: false },
      },
    );
    expect(await until(port)).toBe("hello");
    const verified = await route([await serveTls("inside")], {}, { protocol: "tls" });
    expect(await until(verified.listen_port)).toBe("");
  });
});

describe("ports", () => {
  test("of a range share a service and close with the route", async () => {
    const first = quietPort(3);
    const target = await serve((socket) => void socket.end("in"));
    const made = await route([target], { listen_port: null, port_range: `${first}-${first + 2}` });
    for (const port of [first, first + 1, first + 2]) expect(await until(port)).toBe("in");
    await api.call(`DELETE /stream-routes/${made.id}`);
    for (const port of [first, first + 2]) expect(await until(port)).toBe("");
  });

  test.each([
    [{ listen_port: null }, "listen_port: is required, or port_range"],
    [{ port_range: "10-20" }, "port_range: cannot be given beside listen_port"],
    [{ listen_port: null, port_range: "20-10" }, "port_range: must begin with the lower port"],
    [{ listen_port: null, port_range: "1-65535" }, "port_range: must hold at most 1000 ports"],
    [{ sni: ["a.test"] }, "sni: needs tls_mode"],
    [{ proxy_protocol_in: true }, "proxy_protocol_trusted: is required"],
    [{ deny: ["nonsense"] }, "deny[0]: "],
    [{ service_id: "nobody" }, 'service_id: service "nobody" does not exist'],
  ])("%j is rejected", async (fields, message) => {
    const { service_id } = await route([1]);
    const answer = await api.call("POST /stream-routes", {
      body: { name: "wrong", listen_address: "127.0.0.1", listen_port: 9, service_id, ...fields },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toStartWith(message);
  });

  test("an http service is rejected, and one in use cannot become http", async () => {
    const { service_id } = await route([1]);
    const answer = await api.call(`PATCH /services/${service_id}`, { body: { protocol: "http" } });
    expect([answer.status, answer.body.error]).toEqual([
      400,
      expect.stringContaining("has the protocol http"),
    ]);
    expect((await api.call(`DELETE /services/${service_id}`)).status).toBe(409);
  });
});

test("a change of another route or a description leaves streams alone", async () => {
  const { id, listen_port: port } = await route([await serve(echo)]);
  const socket = connect({ port, host: "127.0.0.1" });
  let isClosed = false;
  socket.on("close", () => (isClosed = true));
  const say = (text: string) =>
    new Promise<string>((resolve) => {
      socket.once("data", (data) => resolve(String(data)));
      socket.write(text);
    });
  expect(await say("one")).toBe("one");
  await api.call(`PATCH /stream-routes/${id}`, { body: { description: "changed" } });
  const other = await route([await serve(echo)]);
  await api.call(`DELETE /stream-routes/${other.id}`);
  expect(await say("two")).toBe("two");
  expect(isClosed).toBe(false);
  socket.destroy();
});

test("connections are listed with their bytes, and can be closed one by one", async () => {
  const { id, listen_port: port } = await route([await serve(echo)]);
  const sockets = Array.from({ length: 5 }, () => connect({ port, host: "127.0.0.1" }));
  const closed = new Set<Socket>();
  for (const socket of sockets) {
    socket.on("close", () => closed.add(socket));
    socket.on("error", () => {});
    socket.write("12345");
    await new Promise((answered) => socket.once("data", answered));
  }
  const { body } = await api.call(`GET /stream-routes/${id}/connections`);
  expect(body.length).toBe(5);
  for (const connection of body) {
    expect(connection).toMatchObject({ stream_route_id: id, bytes_in: 5, bytes_out: 5 });
    expect(connection.target_id).toBeString();
  }
  const ports = body.map(({ client }: { client: string }) => Number(client.split(":")[1]));
  expect(new Set(ports)).toEqual(new Set(sockets.map((socket) => socket.localPort)));
  expect((await api.call(`DELETE /connections/${body[2].id}`)).body).toEqual({ deleted: true });
  await eventually(() => closed.size === 1);
  const cut = sockets.find((socket) => socket.localPort === undefined || closed.has(socket));
  expect(closed.has(cut as Socket)).toBe(true);
  expect((await api.call(`DELETE /connections/${body[2].id}`)).status).toBe(404);
  expect((await api.call(`GET /stream-routes/${id}/connections`)).body.length).toBe(4);
  for (const socket of sockets) socket.destroy();
  await eventually(
    async () => (await api.call(`GET /stream-routes/${id}/connections`)).body.length === 0,
  );
});

describe("a route that", () => {
  const named = (name: string) =>
    serve((socket) => {
      socket.on("data", () => socket.write(name));
      // An open half keeps the connection, and thus the gateway, from ending.
      socket.on("end", () => socket.end());
    });

  /** A connection with its target and the time it closed. */
  async function talker(port: number) {
    const socket = connect({ port, host: "127.0.0.1" });
    const state = { isClosed: false };
    socket.on("error", () => {});
    socket.on("close", () => (state.isClosed = true));
    const ask = () =>
      new Promise<string>((resolve) => {
        socket.once("data", (data: Buffer) => resolve(String(data)));
        socket.write("?");
      });
    expect(await ask()).toBeString();
    return { state, ask, socket };
  }

  test.each([
    ["leads elsewhere", 1000],
    ["is deleted", 1000],
    ["is deleted", 0],
  ])(
    "%s drains its connections for a stream_drain_timeout of %i ms, and touches no other",
    async (what, stream_drain_timeout) => {
      await api.call("PATCH /settings", { body: { limits: { stream_drain_timeout } } });
      const first = await route([await named("first")]);
      const other = await route([await named("other")]);
      const [own, neighbour] = [await talker(first.listen_port), await talker(other.listen_port)];
      const began = performance.now();
      if (what === "is deleted") await api.call(`DELETE /stream-routes/${first.id}`);
      else {
        const { service_id } = await route([await named("second")]);
        await api.call(`PATCH /stream-routes/${first.id}`, { body: { service_id } });
        const moved = await talker(first.listen_port);
        expect(moved.state.isClosed).toBe(false);
        moved.socket.destroy();
      }
      if (stream_drain_timeout > 0) expect(await own.ask()).toBe("first");
      await eventually(() => own.state.isClosed);
      expect(performance.now() - began).toBeGreaterThanOrEqual(stream_drain_timeout);
      expect(await neighbour.ask()).toBe("other");
      neighbour.socket.destroy();
    },
  );

  test("drains its connections for 10 s by default", async () => {
    await api.call("PUT /settings", { body: {} });
    const { limits } = (await api.call("GET /settings")).body;
    expect(limits.stream_drain_timeout).toBe(10_000);
  });

  test.each([
    ["a name to choose by", { tls_mode: "passthrough", sni: ["silent.test"] }],
    ["a PROXY header", { proxy_protocol_in: true, proxy_protocol_trusted: ["127.0.0.1"] }],
    ["a name to end TLS by", { tls_mode: "terminate", sni: ["silent.test"] }],
  ])("needs %s closes silent connections after preread_timeout", async (_, fields) => {
    await api.call("PATCH /settings", { body: { limits: { preread_timeout: 100 } } });
    const { listen_port: port } = await route([await serve(echo)], fields);
    expect(await until(port)).toBe("");
    await api.call("PATCH /settings", { body: { limits: { preread_timeout: 10_000 } } });
  });

  test("has an unresponsive target tries the next one after connect_timeout", async () => {
    const full = await startFullQueue();
    try {
      const next = await serve((socket) => void socket.end("next"));
      const { listen_port: port } = await route([full.port, next], { connect_timeout: 300 });
      for (let ask = 0; ask < 2; ask++) expect(await until(port)).toBe("next");
    } finally {
      full.stop();
    }
  });
});

// What listeners do with connections before clients speak HTTP/2: PROXY headers, connection limits, stream routes at the same port.
import { describe, expect, test } from "bun:test";
import http2 from "node:http2";
import { connect, type Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { writeProxyHeader } from "../../../src/net/proxy-protocol.ts";
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";
import { ask, useListeners } from "../listeners/world.ts";

const { api, listener } = useListeners();
const full = { engine: "sluice" };

/** The fields that the target got of a request; null when the connection was refused. */
async function get(
  port: number,
  { scheme = "http", before = null as Buffer | null, from = "127.0.0.1" } = {},
): Promise<Record<string, string> | null> {
  const socket: Socket = connect({ port, host: "127.0.0.1", localAddress: from });
  if (before !== null) socket.write(before);
  const session = http2.connect(`${scheme}://127.0.0.1:${port}`, {
    createConnection: () => socket,
  });
  session.on("error", () => {});
  const stream = session.request({ ":path": "/", ":authority": "a.test" });
  let text = "";
  try {
    for await (const piece of stream) text += String(piece);
  } catch {
    return null;
  } finally {
    session.close();
    socket.destroy();
  }
  return text === "" ? null : (JSON.parse(text) as Record<string, string>);
}

/** A connection with an HTTP/2 session that stays open; null when it was refused. */
function hold(port: number, from = "127.0.0.1"): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from });
    socket.on("error", () => {});
    socket.once("close", () => resolve(null));
    // The server's SETTINGS.
    socket.once("data", () => resolve(socket));
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
  });
}

describe("PROXY headers", () => {
  const ends = {
    source: { address: "203.0.113.5", port: 4000 },
    destination: { address: "203.0.113.9", port: 443 },
  };
  const proxied = { ...full, proxy_protocol: true, trusted_proxies: ["127.0.0.1"] };

  test.each(["v1", "v2"] as const)("of %s name the client", async (version) => {
    const port = await listener(`proxied ${version}`, proxied);
    const fields = await get(port, { before: writeProxyHeader(version, ends) });
    expect(fields?.["x-real-ip"]).toBe("203.0.113.5");
  });

  test("are required", async () => {
    const port = await listener("without", proxied);
    expect(await get(port)).toBe(null);
  });
});

describe("connection limits", () => {
  test("max_connections holds at its border, over all workers", async () => {
    const port = await listener("three", { ...full, max_connections: 3 });
    const held = [await hold(port), await hold(port), await hold(port)];
    expect(held.every((socket) => socket !== null)).toBe(true);
    expect(await hold(port)).toBe(null);
    held[0]?.destroy();
    const next = await eventually(() => hold(port));
    for (const socket of [...held, next]) socket?.destroy();
    // Nothing stays counted.
    const again = await eventually(async () => {
      const sockets = [await hold(port), await hold(port), await hold(port)];
      if (sockets.every((socket) => socket !== null)) return sockets;
      for (const socket of sockets) socket?.destroy();
      return null;
    });
    for (const socket of again) socket?.destroy();
  });

  test("max_connections_per_address holds for each address", async () => {
    const port = await listener("two each", { ...full, max_connections_per_address: 2 });
    const held = [await hold(port), await hold(port)];
    expect(held.every((socket) => socket !== null)).toBe(true);
    expect(await hold(port)).toBe(null);
    const other = await hold(port, "127.0.0.2");
    expect(other).not.toBe(null);
    for (const socket of [...held, other]) socket?.destroy();
  });

  test("change for new connections, and open ones stay", async () => {
    const port = await listener("changing", full);
    const held = [await hold(port), await hold(port)];
    await api.call("PATCH /listeners/changing", { body: { max_connections: 2 } });
    await eventually(async () => {
      const socket = await hold(port);
      socket?.destroy();
      return socket === null;
    });
    expect(held.every((socket) => socket?.destroyed === false)).toBe(true);
    for (const socket of held) socket?.destroy();
  });
});

test("a stream route at the port gets the connections of its TLS names", async () => {
  const port = await listener("shared", { ...full, protocol: "https" });
  const server = createServer(await selfSigned("stream.test"), (socket: TLSSocket) => {
    socket.on("error", () => {});
    socket.end("from the stream");
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const targets = [{ host: "127.0.0.1", port: (server.address() as { port: number }).port }];
  await api.create("/services", { name: "stream", protocol: "tcp", targets });
  await api.create("/stream-routes", {
    name: "stream",
    listen_address: "127.0.0.1",
    listen_port: port,
    protocol: "tcp",
    tls_mode: "passthrough",
    sni: ["stream.test"],
    service_id: "stream",
  });
  await eventually(async () => {
    const { text } = await ask(port, { servername: "stream.test" }, null);
    return text === "from the stream";
  });
  const own = await ask(port, { servername: "a.test", ALPNProtocols: ["h2"] }, "x");
  expect(own).toMatchObject({ certificate: "localhost", protocol: "h2" });
  server.close();
});

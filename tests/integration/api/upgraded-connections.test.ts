// The list of WebSockets and other upgraded connections of a route, and the end of one of them, on every engine.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { freePort } from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { eventually } from "../../support/poll.ts";
import {
  closePayload,
  frameBytes,
  handshake,
  ManualTarget,
  opcodes,
  Peer,
  switching,
} from "../websocket/peer.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
let target: ManualTarget;
const ports: Record<string, number> = {};
let [serviceId, targetId] = ["", ""];
beforeAll(async () => {
  target = await ManualTarget.start(true);
  const service = await api.create("/services", {
    name: "app",
    targets: [{ host: "127.0.0.1", port: target.port }],
  });
  [serviceId, targetId] = [service.id, service.targets[0].id];
  for (const engine of engines) {
    const port = freePort();
    ports[engine] = port;
    const listener = { address: "127.0.0.1", trusted_proxies: ["127.0.0.0/8"] };
    await api.create("/listeners", { ...listener, name: engine, port, engine });
  }
});
afterAll(() => target.stop());

const createRoute = (name: string) =>
  api.create("/routes", { name, hosts: [`${name}.test`], service_id: serviceId });
const listed = async (route: string) => (await api.call(`GET /routes/${route}/connections`)).body;

/** Both ends after the 101. */
async function open(
  engine: string,
  { request, response }: { request: string; response: (head: string) => string },
) {
  const client = await Peer.client(ports[engine] ?? 0, true);
  client.write(request);
  const origin = await target.connection();
  origin.write(response(await origin.head()));
  await client.head();
  return { client, origin };
}

const webSocket = (engine: string, route: string, lines = "") => {
  const request = handshake(lines).replace(/Host: [^\r]+/i, `Host: ${route}.test`);
  return open(engine, { request, response: switching });
};

describe.each([...engines])("%s engine:", (engine) => {
  test("WebSockets are listed, oldest first, and one is ended with 1001 at both ends", async () => {
    const name = `listed-${engine}`;
    const route = await createRoute(name);
    const before = new Date().toISOString();
    const both = [await webSocket(engine, name), await webSocket(engine, name)] as const;
    const [first, second] = both;
    first.client.send(opcodes.text, "hello");
    expect((await first.origin.frame()).payload.toString()).toBe("hello");
    first.origin.send(opcodes.text, "hi");
    await first.client.frame();

    const list = await listed(name);
    expect(list.map(({ client }: { client: string }) => client)).toEqual(
      both.map(({ client }) => `127.0.0.1:${client.socket.localPort}`),
    );
    expect(list[0]).toEqual({
      id: expect.any(String),
      route_id: route.id,
      protocol: "websocket",
      client: expect.any(String),
      target_id: targetId,
      bytes_in: frameBytes(opcodes.text, "hello", { mask: true }).length,
      bytes_out: frameBytes(opcodes.text, "hi").length,
      started_at: expect.any(String),
    });
    expect(list[0].started_at >= before && list[0].started_at <= list[1].started_at).toBe(true);
    expect(await listed(route.id)).toEqual(list);

    const end = await api.call(`DELETE /connections/${list[0].id}`);
    expect([end.status, end.body]).toEqual([200, { deleted: true }]);
    for (const peer of [first.client, first.origin]) {
      const close = await peer.frame();
      expect([close.opcode, close.payload]).toEqual([opcodes.close, closePayload(1001)]);
      peer.send(opcodes.close, closePayload(1001));
    }
    await eventually(() => first.client.hasEnded && first.origin.hasEnded);
    for (const peer of [first.client, first.origin]) peer.destroy();
    await eventually(async () => (await listed(name)).length === 1);
    expect((await api.call(`DELETE /connections/${list[0].id}`)).status).toBe(404);
    // The other one is not concerned.
    second.client.send(opcodes.text, "still");
    expect((await second.origin.frame()).payload.toString()).toBe("still");
    const { body: audit } = await api.call("GET /audit?kind=connection");
    const entry = audit.find(({ object_id }: { object_id: string }) => object_id === list[0].id);
    expect(entry).toMatchObject({ action: "delete", result: "ok" });
    for (const peer of [second.client, second.origin]) peer.destroy();
    await eventually(async () => (await listed(name)).length === 0);
  });

  test("a client behind a trusted proxy is listed by its address", async () => {
    const name = `proxied-${engine}`;
    await createRoute(name);
    const both = await webSocket(engine, name, "X-Forwarded-For: 192.0.2.7\r\n");
    expect((await listed(name))[0].client).toBe("192.0.2.7");
    for (const peer of Object.values(both)) peer.destroy();
    await eventually(async () => (await listed(name)).length === 0);
  });
});

test("another protocol is listed by its name, and ended by FIN to both ends", async () => {
  await createRoute("docker");
  const { client, origin } = await open("sluice", {
    request:
      "POST /attach HTTP/1.1\r\nHost: docker.test\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
    response: () => "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
  });
  client.write("up");
  origin.write("down");
  await eventually(() => client.receivedBytes > 0 && origin.pending.toString() === "up");
  const [found] = await eventually(async () => {
    const list = await listed("docker");
    return list[0]?.bytes_out === 4 ? list : null;
  });
  expect(found).toMatchObject({ protocol: "tcp", bytes_in: 2, bytes_out: 4, target_id: targetId });
  expect((await api.call(`DELETE /connections/${found.id}`)).body).toEqual({ deleted: true });
  await eventually(() => client.hasEnded && origin.hasEnded);
  expect(client.pending.toString()).toBe("down");
  for (const peer of [client, origin]) peer.destroy();
  await eventually(async () => (await listed("docker")).length === 0);
});

test("a route that does not exist is 404", async () => {
  const missing = await api.call("GET /routes/nowhere/connections");
  expect([missing.status, missing.body.error]).toEqual([404, 'route "nowhere" does not exist']);
});

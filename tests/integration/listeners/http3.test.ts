// HTTP/3: enabled per listener, advertised to HTTP/1.1 and HTTP/2 clients, and robust against datagrams.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { engineOf, testedEngine } from "../../support/engines.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { quicInitial } from "../../support/quic-initial.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { freeUdpPort, UdpClient } from "../../support/udp.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();
let origin: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/alternative")
        return new Response("x", { headers: { "alt-svc": "clear" } });
      if (pathname === "/large") return new Response("x".repeat(3_000_000));
      return Response.json({
        method: request.method,
        path: pathname,
        body: await request.text(),
        proto: request.headers.get("x-forwarded-proto"),
        client: request.headers.get("x-forwarded-for"),
      });
    },
  });
  await api.create("/services", {
    name: "origin",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await api.create("/routes", { name: "all", service_id: "origin" });
});
afterAll(async () => {
  await origin?.stop(true);
});

let count = 0;
/** A listener with HTTP/3, or without. */
async function listener(fields: object = {}) {
  return await api.create("/listeners", {
    name: `h3 ${++count}`,
    address: "127.0.0.1",
    port: quietPort(),
    protocol: "https",
    http3: true,
    ...engineOf({}),
    ...fields,
  });
}

/** Bun's fetch over QUIC, and nothing else. */
const overHttp3 = (port: number, path = "/", init: RequestInit = {}) =>
  fetch(`https://127.0.0.1:${port}${path}`, {
    protocol: "http3",
    tls: { rejectUnauthorized: false },
    ...init,
  } as RequestInit);

/** The Alt-Svc of an answer. */
async function overHttp1(port: number, path = "/"): Promise<string | null> {
  const url = `https://127.0.0.1:${port}${path}`;
  const response = await fetch(url, { tls: { rejectUnauthorized: false } });
  return response.headers.get("alt-svc");
}

function overHttp2(port: number, path = "/"): Promise<string | null> {
  const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  return new Promise<string | null>((resolve, reject) => {
    session.on("error", reject);
    const request = session.request({ ":path": path });
    request.on("response", (head: IncomingHttpHeaders) => resolve(head["alt-svc"] ?? null));
    request.on("error", reject);
    request.resume().end();
  }).finally(() => session.destroy());
}

test("requests over HTTP/3 reach targets, with bodies both ways", async () => {
  const { port } = await listener();
  const response = await overHttp3(port, "/a", { method: "POST", body: "hello" });
  expect(response.status).toBe(200);
  // Only clients of other versions need the advertisement.
  expect(response.headers.get("alt-svc")).toBeNull();
  expect(await response.json()).toEqual({
    method: "POST",
    path: "/a",
    body: "hello",
    proto: "https",
    client: "127.0.0.1",
  });
  expect((await (await overHttp3(port, "/large")).text()).length).toBe(3_000_000);
  const many = Array.from({ length: 50 }, async () => (await overHttp3(port)).status);
  expect(new Set(await Promise.all(many))).toEqual(new Set([200]));
});

test("responses over HTTP/1.1 and HTTP/2 advertise it, those of other listeners do not", async () => {
  const { port } = await listener();
  const without = await listener({ http3: false });
  const advertised = `h3=":${port}"; ma=86400`;
  for (const version of [overHttp1, overHttp2]) {
    expect(await version(port)).toBe(advertised);
    expect(await version(port, "/large")).toBe(advertised);
    expect(await version(without.port)).toBeNull();
  }
});

test("it needs https", async () => {
  const body = { name: "wrong", address: "127.0.0.1", port: quietPort(), http3: true };
  const answer = await api.call("POST /listeners", { body });
  expect([answer.status, answer.body.error]).toEqual([400, 'http3: needs protocol "https"']);
});

/** Whether a QUIC server is there: it answers even a handshake that is none. */
async function speaksQuic(port: number, deadlineMs = 2000): Promise<boolean> {
  const client = await UdpClient.open();
  const answer = await client.ask(port, quicInitial(), deadlineMs);
  client.close();
  return answer !== null;
}

test("it can be switched on and off, and survives a new certificate", async () => {
  const { id, port } = await listener({ http3: false });
  expect(await speaksQuic(port, 200)).toBe(false);
  await api.call(`PATCH /listeners/${id}`, { body: { http3: true } });
  expect(await speaksQuic(port)).toBe(true);
  const made = { name: "h3", source: "self_signed", domains: ["h3.test"] };
  expect((await api.call("POST /certificates", { body: made })).status).toBe(200);
  expect((await overHttp3(port)).status).toBe(200);
  await api.call(`PATCH /listeners/${id}`, { body: { http3: false } });
  await eventually(async () => !(await speaksQuic(port, 100)));
});

test("a limit of Bun: the Alt-Svc of a target is passed on beside the listener's own", async () => {
  const { port } = await listener();
  const without = await listener({ http3: false });
  const own = `h3=":${port}"; ma=86400`;
  const isReplaced = testedEngine !== "bun";
  expect(await overHttp1(port, "/alternative")).toBe(isReplaced ? own : `clear, ${own}`);
  expect(await overHttp1(without.port, "/alternative")).toBe("clear");
});

test("its UDP port is its own", async () => {
  const { port, name } = await listener();
  const { id: service_id } = await api.create("/services", { name: "games", protocol: "udp" });
  const route = { name: "games", protocol: "udp", listen_address: "127.0.0.1", service_id };
  const refused = await api.call("POST /stream-routes", { body: { ...route, listen_port: port } });
  expect([refused.status, refused.body.error]).toEqual([
    409,
    expect.stringContaining(`belongs to listener "${name}"`),
  ]);
  const udp = await freeUdpPort();
  await api.create("/stream-routes", { ...route, listen_port: udp });
  const beside = await listener({ port: udp, http3: false });
  const turned = await api.call(`PATCH /listeners/${beside.id}`, { body: { http3: true } });
  expect([turned.status, turned.body.error]).toEqual([
    409,
    expect.stringContaining('belongs to stream route "games"'),
  ]);
  // Not a port that the system hands out, whose TCP port may belong to a connection of another process.
  const stranger = await Bun.udpSocket({ hostname: "127.0.0.1", port: await freeUdpPort() });
  const taken = await api.call("POST /listeners", {
    body: {
      name: "taken",
      address: "127.0.0.1",
      port: stranger.port,
      protocol: "https",
      http3: true,
    },
  });
  stranger.close();
  expect([taken.status, taken.body.error]).toEqual([
    409,
    expect.stringContaining(`UDP port ${stranger.port}`),
  ]);
});

/** Ways to spoil a datagram, each with a number of its own choice. */
const spoilers: readonly ((random: Random) => Buffer)[] = [
  () => quicInitial(),
  (random) => quicInitial({ version: random.between(0, 0x7fff_ffff) }),
  (random) => quicInitial({ destination: randomBytes(random.between(0, 20)) }),
  (random) => quicInitial({ destination: randomBytes(random.between(21, 255)) }),
  (random) => quicInitial({ source: randomBytes(random.between(0, 255)) }),
  (random) => quicInitial({ token: randomBytes(random.between(1, 900)) }),
  (random) => quicInitial({ size: random.between(0, 1300) }),
  // Right outside, anything inside: every frame type there is and is not.
  (random) => quicInitial({ frames: randomBytes(random.between(1, 1100)) }),
  (random) =>
    quicInitial({
      frames: Buffer.concat([Buffer.from([random.between(0, 255)]), randomBytes(64)]),
    }),
  // A CRYPTO frame far away, or longer than the packet.
  () =>
    quicInitial({ frames: Buffer.from([6, 0xff, 255, 255, 255, 255, 255, 255, 255, 64, 4, 1]) }),
  () => quicInitial({ frames: Buffer.from([6, 0, 0x7f, 0xff, 1, 0]) }),
  (random) => {
    const packet = quicInitial();
    for (let flips = random.between(1, 20); flips > 0; flips--)
      packet[random.between(0, packet.length - 1)] = random.between(0, 255);
    return packet;
  },
  (random) => quicInitial().subarray(0, random.between(0, 1199)),
  (random) => Buffer.concat([quicInitial({ size: 400 }), randomBytes(random.between(1, 800))]),
  (random) => randomBytes(random.between(0, 1500)),
];

test("20,000 malformed datagrams leave the process alive and HTTP/3 working", async () => {
  const { port } = await listener();
  const random = new Random(seedOfRun());
  const { pid } = api.gateway;
  const socket = await Bun.udpSocket({ hostname: "127.0.0.1", socket: { error: () => undefined } });
  for (let sent = 0; sent < 20_000; sent++) {
    const spoil = spoilers[sent % spoilers.length] as (typeof spoilers)[number];
    socket.send(spoil(random), port, "127.0.0.1");
    // Faster, most would be lost before the server reads them.
    if (sent % 50 === 0) await Bun.sleep(1);
  }
  socket.close();
  expect((await overHttp3(port)).status).toBe(200);
  const plain = await fetch(`https://127.0.0.1:${port}/`, { tls: { rejectUnauthorized: false } });
  expect(plain.status).toBe(200);
  expect(api.gateway.pid).toBe(pid);
  expect(api.gateway.log.filter(({ message }) => message.includes("worker"))).toEqual([]);
});

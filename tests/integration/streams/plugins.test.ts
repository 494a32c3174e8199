// Plugins on stream routes with real TCP and UDP: which instances run, what they see, refusals, failures and the end.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { connect, createServer, type Server } from "node:net";
import { connect as connectTls } from "node:tls";
import { decode } from "../../../src/model/decode.ts";
import { streamRouteInput } from "../../../src/model/stream-route.ts";
import type { StreamContext, StreamResult } from "../../../src/pdk/context.ts";
import { type AnyPlugin, definePlugin } from "../../../src/pdk/definition.ts";
import { config, flag } from "../../../src/pdk/fields.ts";
import {
  freePort,
  type PluginSketch,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { leaveUnaccepted } from "../../support/gone-clients.ts";
import { eventually } from "../../support/poll.ts";
import { freeUdpPort, UdpClient, type UdpTarget, udpTarget } from "../../support/udp.ts";

interface Asked {
  readonly facts: object;
  result: StreamResult | null;
}
let asked: Asked[] = [];

/** Records what it sees, and does what its configuration says. */
const probe: AnyPlugin = definePlugin({
  name: "probe",
  summary: "Keeps what it sees",
  description: "",
  group: "observability",
  order: 9999,
  phases: ["connect"],
  scopes: ["global", "service", "stream_route"],
  config: config({
    fails: flag(false, "Throws"),
    refuses: flag(false, "Refuses"),
    failsAtEnd: flag(false, "Throws at the end"),
  }),
  example: {},
  onError: "closed",
  create: (own, kit) => {
    const key = {};
    return {
      connect(context: StreamContext) {
        const { protocol, clientPort, serverName, streamRoute, service, country, asn } = context;
        const entry: Asked = {
          facts: {
            instance: kit.instance.id,
            protocol,
            address: context.clientAddress(),
            hasPort: clientPort > 0,
            serverName,
            streamRoute,
            service,
            nowhere: [country.call(context), asn.call(context)],
          },
          result: null,
        };
        asked.push(entry);
        context.memory.set(key, entry);
        if (own.fails) throw new Error("as configured");
        return own.refuses ? { reason: "probe.refused" } : undefined;
      },
      disconnect(context: StreamContext, result: StreamResult) {
        (context.memory.get(key) as Asked).result = result;
        if (own.failsAtEnd) throw new Error("at the end");
      },
    };
  },
});

let plane: RunningDataPlane;
let tcpServer: Server;
let udp: UdpTarget;
let ports: {
  readonly tcp: number;
  readonly udp: number;
  readonly proxy: number;
  readonly sni: number;
};
let reached = 0;
const open: { close(): void }[] = [];

const streamRoute = (name: string, port: number, more: object) => ({
  id: name,
  ports: [port],
  tls: null,
  route: {
    ...decode(streamRouteInput, {
      name,
      listen_address: "127.0.0.1",
      listen_port: port,
      service_id: "tcp",
      ...more,
    }),
    id: name,
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
  },
});

beforeAll(async () => {
  tcpServer = createServer((socket) => {
    reached++;
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  await new Promise<void>((ready) => tcpServer.listen(0, "127.0.0.1", ready));
  udp = await udpTarget();
  ports = { tcp: freePort(), proxy: freePort(), sni: freePort(), udp: await freeUdpPort() };
  const { port } = tcpServer.address() as { port: number };
  plane = await startDataPlane({
    ownPlugins: [probe],
    services: [
      { name: "tcp", protocol: "tcp", targets: [{ port }] },
      { name: "udp", protocol: "udp", targets: [{ port: udp.port }] },
    ],
  });
  await plane.apply({
    streamRoutes: [
      streamRoute("t", ports.tcp, {}),
      streamRoute("u", ports.udp, { protocol: "udp", service_id: "udp" }),
      streamRoute("p", ports.proxy, {
        proxy_protocol_in: true,
        proxy_protocol_trusted: ["127.0.0.1"],
      }),
      streamRoute("s", ports.sni, { sni: ["db.example"], tls_mode: "passthrough" }),
    ],
  });
});
afterAll(async () => {
  for (const one of open) one.close();
  await plane.stop();
  tcpServer.close();
  udp.close();
});

let present: string[] = [];
/** Only these instances are there. */
async function use(...plugins: PluginSketch[]): Promise<void> {
  const ids = plugins.map(({ label, name }) => label ?? name);
  await plane.apply({ plugins, removedPlugins: present.filter((id) => !ids.includes(id)) });
  present = ids;
}
beforeEach(() => {
  asked = [];
});

/** What comes back of "hello": itself, or nothing when the connection is refused. */
const hello = (port: number, from = "127.0.0.1", text = "hello") =>
  new Promise<string>((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from }, () =>
      socket.write(text),
    );
    socket.once("data", (data) => {
      resolve(String(data));
      socket.end();
    });
    socket.on("error", () => resolve("refused"));
    socket.on("close", () => resolve("refused"));
  });

/** How a connection ends on which the client says nothing. */
const endOf = (port: number) =>
  new Promise<string>((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.resume();
    socket.on("end", () => resolve("end"));
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
  });

async function udpClient(): Promise<UdpClient> {
  const client = await UdpClient.open();
  open.push(client);
  return client;
}

const refusals = (reason: string) =>
  plane.log.filter(
    ({ message, fields }) => message === "stream refused" && fields["reason"] === reason,
  );

describe("ip-restriction", () => {
  test("closes TCP connections before the target sees them", async () => {
    await use({ name: "ip-restriction", config: { deny: ["127.0.0.1"] } });
    const before = reached;
    expect(await hello(ports.tcp)).toBe("refused");
    expect(reached).toBe(before);
    expect(refusals("ip.denied").length).toBeGreaterThan(0);
    expect(await hello(ports.tcp, "127.0.0.2")).toBe("hello");
    await use({ name: "ip-restriction", config: { allow: ["127.0.0.2/32"] } });
    expect(await hello(ports.tcp)).toBe("refused");
    expect(await hello(ports.tcp, "127.0.0.2")).toBe("hello");
  });

  test.each([
    { stream_reset: false, end: "end" },
    { stream_reset: true, end: "ECONNRESET" },
  ])("with stream_reset $stream_reset the client sees $end", async ({ stream_reset, end }) => {
    await use({ name: "ip-restriction", config: { deny: ["127.0.0.1"], stream_reset } });
    expect(await endOf(ports.tcp)).toBe(end);
  });

  test("drops datagrams, and counts them", async () => {
    await use({ name: "ip-restriction", streamRouteId: "u", config: { deny: ["127.0.0.1"] } });
    const client = await udpClient();
    const before = udp.received;
    for (let count = 0; count < 3; count++) client.send(ports.udp, "hello");
    await eventually(() =>
      refusals("ip.denied").some(({ fields }) => Number(fields["datagrams"]) >= 1),
    );
    expect(udp.received).toBe(before);
    await use();
    expect(String(await client.ask(ports.udp, "hello"))).toBe("hello");
  });

  test("uses the address in a trusted PROXY header", async () => {
    await use({ name: "ip-restriction", config: { deny: ["10.0.0.0/8"] } });
    const header = (address: string) => `PROXY TCP4 ${address} 127.0.0.1 1 2\r\nhello`;
    expect(await hello(ports.proxy, "127.0.0.1", header("10.0.0.1"))).toBe("refused");
    expect(await hello(ports.proxy, "127.0.0.1", header("11.0.0.1"))).toBe("hello");
  });

  test.each([
    ["global", {}, "refused"],
    ["its service", { serviceId: "tcp" }, "refused"],
    ["another service", { serviceId: "udp" }, "hello"],
    ["its stream route", { streamRouteId: "t" }, "refused"],
    ["another stream route", { streamRouteId: "u" }, "hello"],
  ])("applies to its scope: %s", async (_, place, outcome) => {
    await use({ name: "ip-restriction", ...place, config: { deny: ["0.0.0.0/0"] } });
    expect(await hello(ports.tcp)).toBe(outcome);
  });
});

describe("of several instances", () => {
  const at = (label: string, place: object) => ({ name: "probe", label, ...place });
  const everywhere = at("everywhere", {});
  const ofService = at("of service", { serviceId: "tcp" });
  const ofUdp = at("of udp", { serviceId: "udp" });
  const ofRoute = at("of route", { streamRouteId: "t" });
  const ofUdpRoute = at("of udp route", { streamRouteId: "u" });
  const instance = () => (asked[0]?.facts as { instance: string } | undefined)?.instance;

  test.each([
    [[everywhere], "everywhere", "everywhere"],
    [[everywhere, ofService], "of service", "everywhere"],
    [[ofUdp, everywhere], "everywhere", "of udp"],
    [[everywhere, ofRoute, ofService], "of route", "everywhere"],
    [[ofUdpRoute, ofUdp, everywhere], "everywhere", "of udp route"],
  ])("the one of the most specific scope runs, and no other", async (plugins, tcp, datagrams) => {
    await use(...plugins);
    expect(await hello(ports.tcp)).toBe("hello");
    expect(instance()).toBe(tcp);
    expect(asked).toHaveLength(1);
    asked = [];
    await (await udpClient()).ask(ports.udp, "x");
    expect(instance()).toBe(datagrams);
    expect(asked).toHaveLength(1);
  });
});

describe("a plugin", () => {
  test("sees a connection, and how it ended", async () => {
    await use({ name: "probe" });
    expect(await hello(ports.tcp)).toBe("hello");
    await eventually(() => asked[0]?.result !== null);
    expect(asked[0]?.facts).toEqual({
      instance: "probe",
      protocol: "tcp",
      address: "127.0.0.1",
      hasPort: true,
      serverName: null,
      streamRoute: { id: "t", name: "t" },
      service: { id: "tcp", name: "tcp" },
      nowhere: [null, null],
    });
    expect(asked[0]?.result).toMatchObject({
      bytesIn: 5,
      bytesOut: 5,
      targetId: "tcp-0",
      refusal: null,
    });
  });

  test("sees a UDP client once, whatever it sends", async () => {
    await use({ name: "probe" });
    const client = await udpClient();
    for (let count = 0; count < 3; count++) await client.ask(ports.udp, "x");
    expect(asked).toHaveLength(1);
    expect(asked[0]?.facts).toMatchObject({ protocol: "udp", streamRoute: { id: "u", name: "u" } });
  });

  test("sees the server name of a TLS connection that is passed through", async () => {
    await use({ name: "probe" });
    const socket = connectTls({ port: ports.sni, host: "127.0.0.1", servername: "db.example" });
    socket.on("error", () => {});
    await eventually(() => asked.length === 1);
    socket.destroy();
    expect(asked[0]?.facts).toMatchObject({ serverName: "db.example" });
  });

  test("that refuses sees the end, and those behind it do not run", async () => {
    await use(
      { name: "probe", config: { refuses: true } },
      { name: "ip-restriction", config: { deny: ["0.0.0.0/0"] } },
    );
    const before = refusals("ip.denied").length;
    expect(await hello(ports.tcp)).toBe("refused");
    expect(asked[0]?.result).toMatchObject({ refusal: "probe.refused", targetId: null });
    expect(refusals("ip.denied")).toHaveLength(before);
  });

  test("sees the end when one behind it refuses", async () => {
    await use({ name: "probe" }, { name: "ip-restriction", config: { deny: ["0.0.0.0/0"] } });
    expect(await hello(ports.tcp)).toBe("refused");
    expect(asked[0]?.result?.refusal).toBe("ip.denied");
    asked = [];
    (await udpClient()).send(ports.udp, "x");
    await eventually(() => asked.length === 1);
    expect(asked[0]?.result?.refusal).toBe("ip.denied");
  });

  test.each([
    [null, "refused"],
    ["closed", "refused"],
    ["open", "hello"],
  ] as const)("that fails denies clients unless on_error is open: %s", async (onError, outcome) => {
    await use({ name: "probe", onError, config: { fails: true } });
    expect(await hello(ports.tcp)).toBe(outcome);
    expect(plane.log.some(({ fields }) => fields["error"] === "as configured")).toBe(true);
  });

  test("that fails at the end affects no other instance", async () => {
    await use({ name: "probe", config: { failsAtEnd: true } });
    expect(await hello(ports.tcp)).toBe("hello");
    await eventually(() => plane.log.some(({ fields }) => fields["error"] === "at the end"));
    expect(await hello(ports.tcp)).toBe("hello");
  });

  test.each([
    [{}, 1],
    [{ cidr: ["127.0.0.0/8"] }, 1],
    [{ cidr: ["10.0.0.0/8"] }, 0],
    [{ not: { cidr: ["127.0.0.0/8"] } }, 0],
    [{ not: { cidr: ["10.0.0.0/8"] } }, 1],
    [{ country: ["DE"] }, 0],
    [{ time: {} }, 1],
    [{ path: ["/"] }, 0],
    [{ cidr: ["127.0.0.0/8"], method: ["GET"] }, 0],
    [{ not: { path: ["/"] } }, 1],
    [{ group: ["staff"] }, 0],
  ])("with the condition %j runs %d times", async (when, times) => {
    await use({ name: "probe", when });
    expect(await hello(ports.tcp)).toBe("hello");
    expect(asked).toHaveLength(times);
  });
});

test("connections continue when the lists change", async () => {
  await use();
  const socket = connect({ port: ports.tcp, host: "127.0.0.1" });
  const answers: string[] = [];
  socket.on("data", (data) => answers.push(String(data)));
  socket.write("one");
  await eventually(() => answers.join("") === "one");
  await use({ name: "ip-restriction", config: { deny: ["0.0.0.0/0"] } });
  socket.write("two");
  await eventually(() => answers.join("") === "onetwo");
  socket.destroy();
});

test("a client that resets before it is accepted asks no plugin and no target", async () => {
  await use({ name: "probe" });
  reached = 0;
  leaveUnaccepted(ports.tcp, 5, "hello");
  expect(await hello(ports.tcp)).toBe("hello");
  expect([asked.length, reached]).toEqual([1, 1]);
});

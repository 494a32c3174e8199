// A version that is prepared and discarded leaves behavior, connections and shared memory as they were.
import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decode } from "../../../src/model/decode.ts";
import { streamRouteInput } from "../../../src/model/stream-route.ts";
import type { StreamRoutePlan } from "../../../src/snapshot/snapshot.ts";
import { cleanupsOf, stopsIn } from "../../support/cleanups.ts";
import {
  type DataPlaneChange,
  freePort,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { udpTarget } from "../../support/udp.ts";
import { probePlugin, Trail } from "../../support/probe-plugin.ts";
import { seedOfRun } from "../../support/random.ts";

const started = stopsIn(cleanupsOf(afterEach));

const trail = new Trail();

async function startScene(change: Partial<DataPlaneChange> = {}) {
  const origin = started(startOrigin());
  const gateway = started(
    await startDataPlane({
      services: [{ name: "app", targets: [{ port: origin.port }] }, { name: "other" }],
      routes: [{ name: "all", service_id: "app" }],
      plugins: [{ name: "probe", config: { tag: "live" } }],
      ownPlugins: [probePlugin(trail, "probe", { phases: ["access"] })],
      ...change,
    } as Parameters<typeof startDataPlane>[0]),
  );
  return { origin, gateway };
}

const get = async (gateway: RunningDataPlane) => {
  const response = await fetch(`${gateway.url}/page`);
  return `${response.status} ${await response.text()}`;
};

/** All that threads share, byte by byte. */
const sharedBytes = ({ targets, counters }: RunningDataPlane) =>
  [targets.buffer, counters.buffer].map((buffer) => Bun.hash(new Uint8Array(buffer)));

async function connectUdp(port: number) {
  const socket = await Bun.udpSocket({ connect: { hostname: "127.0.0.1", port } });
  return { send: (text: string) => socket.send(text), stop: () => socket.close() };
}

const streamPlan = (id: string, fields: object): StreamRoutePlan => {
  const at = "2026-01-01T00:00:00.000Z";
  const route = decode(streamRouteInput, { name: id, service_id: "app", ...fields });
  const { listen_port: port } = route;
  return {
    id,
    route: { ...route, id, created_at: at, updated_at: at },
    ports: [Number(port)],
    tls: null,
  };
};

describe("a version that was prepared and discarded", () => {
  test("changes nothing about open connections to a target", async () => {
    const { origin, gateway } = await startScene();
    await get(gateway);
    const service = { name: "app", keepalive: { size: 0 }, targets: [{ port: origin.port }] };
    expect(await gateway.discard({ services: [service] })).toEqual([]);
    for (let request = 0; request < 3; request++) await get(gateway);
    expect(origin.connections).toHaveLength(1);
    // The same, served: the connection ends with its request.
    await gateway.apply({ services: [service] });
    for (let request = 0; request < 3; request++) await get(gateway);
    expect(origin.connections).toHaveLength(3);
  });

  test("closes no connection of a target that it would have moved to another service", async () => {
    const { origin, gateway } = await startScene();
    await get(gateway);
    const moved = { host: "127.0.0.1", port: origin.port, id: "app-0" };
    const services = [{ name: "app" }, { name: "other", targets: [moved] }];
    expect(await gateway.discard({ services })).toEqual([]);
    for (let request = 0; request < 3; request++) await get(gateway);
    expect(origin.connections).toHaveLength(1);
  });

  test("leaves no row and no mark in shared memory", async () => {
    const { gateway } = await startScene();
    await get(gateway);
    await eventually(() => gateway.targets.active(gateway.targets.rowOf("app-0")) === 0);
    const before = sharedBytes(gateway);
    const targets = [{ port: freePort() }, { port: freePort() }];
    const issues = await gateway.discard({
      services: [{ name: "new", targets }],
      streamRoutes: [streamPlan("tcp", { listen_port: freePort(), protocol: "tcp" })],
      listener: { max_in_flight_requests: 10 },
      settings: { limits: { max_in_flight_total: 10 } },
      plugins: [
        { name: "rate-limit", config: { limits: [{ requests: 1, window: 1 }], persist: true } },
      ],
    });
    expect(issues).toEqual([]);
    expect(sharedBytes(gateway)).toEqual(before);
  });

  test("keeps no port open for a stream route that would have returned", async () => {
    const { gateway } = await startScene();
    const port = freePort();
    const target = await udpTarget();
    started({ stop: () => target.close() });
    const fields = { listen_port: port, protocol: "udp", udp_session_timeout: 1 };
    const streamRoutes = [streamPlan("udp", { ...fields, service_id: "other" })];
    const services = [
      { name: "other", protocol: "udp" as const, targets: [{ port: target.port }] },
    ];
    await gateway.apply({ services, streamRoutes });
    const client = started(await connectUdp(port));
    client.send("hello");
    await eventually(() => gateway.targets.active(gateway.targets.rowOf("stream udp")) === 1);
    await gateway.apply({ removedStreamRoutes: ["udp"] });
    expect(await gateway.discard({ streamRoutes })).toEqual([]);
    const isFree = async () => {
      try {
        const socket = await Bun.udpSocket({ hostname: "127.0.0.1", port });
        socket.close();
        return true;
      } catch {
        return false;
      }
    };
    expect(await isFree()).toBe(false);
    await eventually(isFree);
  });

  test("releases the ports that it opened", async () => {
    const { gateway } = await startScene();
    const [tcp, udp] = [freePort(), freePort()];
    const streamRoutes = [
      streamPlan("tcp", { listen_port: tcp, protocol: "tcp" }),
      streamPlan("udp", { listen_port: udp, protocol: "udp" }),
    ];
    for (let round = 0; round < 3; round++) {
      expect(await gateway.discard({ streamRoutes })).toEqual([]);
      const taken = Bun.listen({ hostname: "127.0.0.1", port: tcp, socket: { data() {} } });
      taken.stop(true);
      const socket = await Bun.udpSocket({ hostname: "127.0.0.1", port: udp });
      socket.close();
    }
  });

  test("disconnects no client of a port that was bound again for it", async () => {
    const { origin, gateway } = await startScene();
    const held = Promise.withResolvers<void>();
    origin.answer = () => held.promise.then(() => reply());
    let answers: Promise<string>[] = [];
    const change = { listener: { idle_timeout: 30, max_body_bytes: 1 } };
    const come = async () => {
      // The system shares connections out among both sockets of the port.
      answers = Array.from({ length: 40 }, () => get(gateway));
      await origin.untilRequests(40);
    };
    expect(await gateway.discard(change, come)).toEqual([]);
    held.resolve();
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["200 ok"]));
  });

  test("that cannot be served leaves no pool and no instance behind", async () => {
    const { gateway } = await startScene();
    const taken = started(
      Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }) as unknown as {
        port: number;
        stop(): void;
      },
    );
    const before = sharedBytes(gateway);
    const issues = await gateway.discard({
      services: [{ name: "new", targets: [{ port: 1 }] }],
      streamRoutes: [streamPlan("tcp", { listen_port: taken.port, protocol: "tcp" })],
    });
    expect(issues).toHaveLength(1);
    expect(sharedBytes(gateway)).toEqual(before);
    // What the refused version made for itself is not taken up by the next one.
    await gateway.apply({ services: [{ name: "new", targets: [{ port: 1 }] }] });
    expect(await get(gateway)).toBe("200 ok");
  });
});

describe("a target that moves to another service", () => {
  test("keeps its connections", async () => {
    const { origin, gateway } = await startScene();
    await get(gateway);
    const moved = { host: "127.0.0.1", port: origin.port, id: "app-0" };
    await gateway.apply({
      services: [{ name: "app" }, { name: "other", targets: [moved] }],
      routes: [{ name: "all", service_id: "other" }],
    });
    for (let request = 0; request < 3; request++) expect(await get(gateway)).toBe("200 ok");
    expect(origin.connections).toHaveLength(1);
  });
});

/** Any change of anything, possible and impossible ones. */
const changes = (origin: Origin, ports: readonly number[]): fc.Arbitrary<DataPlaneChange> => {
  const port = fc.constantFrom(origin.port, ...ports);
  const target = fc.record({ port, weight: fc.integer({ min: 0, max: 200 }) });
  const service = fc.record({
    name: fc.constantFrom("app", "other", "new"),
    keepalive: fc.record({ size: fc.integer({ min: 0, max: 3 }) }),
    algorithm: fc.constantFrom("round_robin", "ewma", "first"),
    sticky: fc.record({ enabled: fc.boolean() }),
    targets: fc.array(target, { maxLength: 3 }),
  });
  const route = fc.record({
    name: fc.constantFrom("all", "more"),
    service_id: fc.constantFrom("app", "other"),
    paths: fc.subarray(["/page", "/other"]),
    priority: fc.integer({ min: 0, max: 5 }),
  });
  const plugin = fc.record({
    name: fc.constant("probe"),
    label: fc.constantFrom("probe", "second"),
    config: fc.record({ tag: fc.constantFrom("live", "next") }),
  });
  const stream = fc.record({
    id: fc.constantFrom("s1", "s2"),
    protocol: fc.constantFrom("tcp", "udp"),
    listen_port: port,
  });
  return fc
    .record(
      {
        services: fc.uniqueArray(service, { selector: ({ name }) => name, maxLength: 3 }),
        removedServices: fc.subarray(["app", "other"]),
        routes: fc.uniqueArray(route, { selector: ({ name }) => name }),
        removedRoutes: fc.subarray(["all"]),
        plugins: fc.uniqueArray(plugin, { selector: ({ label }) => label }),
        removedPlugins: fc.subarray(["probe"]),
        streams: fc.uniqueArray(stream, { selector: ({ id }) => id }),
        listener: fc.record({
          max_in_flight_requests: fc.integer({ min: 0, max: 2 }),
          max_body_bytes: fc.integer({ min: 0, max: 10 }),
          idle_timeout: fc.integer({ min: 5, max: 60 }),
        }),
        settings: fc.record({
          debug_headers: fc.boolean(),
          geoip: fc.record({ country_db: fc.constantFrom(null, "/nowhere/geo.mmdb") }),
        }),
      },
      { requiredKeys: [] },
    )
    .map(({ streams = [], ...change }) => ({
      ...change,
      streamRoutes: streams.map(({ id, ...fields }) => streamPlan(id, fields)),
    }));
};

test("random versions that are discarded leave behavior, connections and shared memory as they were", async () => {
  const { origin, gateway } = await startScene();
  const ports = [freePort(), freePort()];
  await get(gateway);
  await fc.assert(
    fc.asyncProperty(
      fc.array(changes(origin, ports), { minLength: 1, maxLength: 3 }),
      async (all) => {
        await eventually(() => gateway.targets.active(gateway.targets.rowOf("app-0")) === 0);
        const before = sharedBytes(gateway);
        for (const change of all) await gateway.discard(change);
        expect(sharedBytes(gateway)).toEqual(before);
        trail.take();
        expect(await get(gateway)).toBe("200 ok");
        expect(trail.take()).toEqual(["probe(live).access"]);
        expect(origin.connections).toHaveLength(1);
      },
    ),
    { seed: seedOfRun(), numRuns: 60 },
  );
});

// UDP streams through the product: datagrams in both directions, a session for each client, limits, ports added and removed.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { freeUdpPort, UdpClient, type UdpTarget, udpTarget } from "../../support/udp.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();
const open: { close(): void }[] = [];
afterAll(() => {
  for (const one of open) one.close();
});

async function target(...how: Parameters<typeof udpTarget>): Promise<UdpTarget> {
  const made = await udpTarget(...how);
  open.push(made);
  return made;
}

async function client(): Promise<UdpClient> {
  const made = await UdpClient.open();
  open.push(made);
  return made;
}

let count = 0;
/** A service on these ports and a stream route to it; returns the route. */
async function route(ports: number[], fields: object = {}, service: object = {}) {
  const name = `udp ${++count}`;
  const targets = ports.map((port) => ({ host: "127.0.0.1", port }));
  await api.create("/services", { name, protocol: "udp", targets, ...service });
  return await api.create("/stream-routes", {
    name,
    protocol: "udp",
    listen_address: "127.0.0.1",
    listen_port: await freeUdpPort(),
    service_id: name,
    ...fields,
  });
}

const sessionsOf = async (id: string) =>
  (await api.call(`GET /stream-routes/${id}/connections`)).body;

/** The fields of the log lines about datagrams that were dropped on a route. */
const dropsOf = (name: string) =>
  api.gateway.log.filter((line) => line["route"] === name && line["datagrams"] !== undefined);

test("datagrams pass both ways, empty ones and the largest too", async () => {
  const { listen_port: port } = await route([(await target()).port]);
  const asker = await client();
  for (const datagram of ["hello", "", "x".repeat(65_507), "again"])
    expect(String(await asker.ask(port, datagram))).toBe(datagram);
});

test("each client has its own session, on one worker, however many exist", async () => {
  const to = await target((datagram) => `${datagram}!`);
  const { id, listen_port: port } = await route([to.port]);
  const clients = await Promise.all(Array.from({ length: 100 }, client));
  for (let round = 0; round < 5; round++)
    await Promise.all(
      clients.map(async (one, index) => {
        const text = `${index} ${round}`;
        expect(String(await one.ask(port, text))).toBe(`${text}!`);
      }),
    );
  // A client that reached both workers would have two sockets towards the target.
  expect(to.peers.size).toBe(100);
  const sessions = await sessionsOf(id);
  expect(sessions.length).toBe(100);
  const workers = new Set(sessions.map((one: { id: string }) => one.id.split("-")[0]));
  expect([...workers].sort()).toEqual(["1", "2"]);
});

test("a target may send any number of datagrams, before the next one too", async () => {
  const sender = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: {
      data(socket, _, port, address) {
        for (let index = 0; index < 50; index++) socket.send(`${index}`, port, address);
      },
    },
  });
  open.push(sender);
  const { listen_port: port } = await route([sender.port]);
  const asker = await client();
  asker.send(port, "go");
  await eventually(() => asker.answers.length === 50);
  expect(asker.answers.map(String)).toEqual(Array.from({ length: 50 }, (_, index) => `${index}`));
});

test("sessions are balanced, and a closed port is a failure of its target", async () => {
  const [one, two] = [await target(() => "one"), await target(() => "two")];
  const dead = await freeUdpPort();
  const made = await route(
    [one.port, two.port, dead],
    {},
    { health: { passive: { consecutive_failures: 2 } } },
  );
  const answers = new Set<string>();
  for (let ask = 0; ask < 20; ask++) {
    const asker = await client();
    answers.add(String(await asker.ask(made.listen_port, "x", 200)));
  }
  expect(answers.has("one") && answers.has("two")).toBe(true);
  const health = await eventually(async () => {
    const { body } = await api.call(`GET /services/${made.service_id}/health`);
    return body.targets.find(
      (each: { port: number; state: string }) => each.port === dead && each.state === "unhealthy",
    );
  });
  expect(health.last_error).toBe("the target refused the connection");
  for (let ask = 0; ask < 10; ask++)
    expect(await (await client()).ask(made.listen_port, "x")).not.toBeNull();
});

test("a client returns to its target by its address with consistent_hash", async () => {
  const targets = [await target(() => "a"), await target(() => "b"), await target(() => "c")];
  const ports = targets.map(({ port }) => port);
  const made = await route(ports, {}, { algorithm: "consistent_hash" });
  const answers = new Set<string>();
  for (let ask = 0; ask < 12; ask++)
    answers.add(String(await (await client()).ask(made.listen_port, "x")));
  expect(answers.size).toBe(1);
});

test("a session ends after udp_session_timeout, and the next datagram starts another", async () => {
  const to = await target();
  const { id, listen_port: port } = await route([to.port], { udp_session_timeout: 1 });
  const asker = await client();
  await asker.ask(port, "one");
  expect((await sessionsOf(id)).length).toBe(1);
  await eventually(async () => (await sessionsOf(id)).length === 0);
  expect(String(await asker.ask(port, "two"))).toBe("two");
  expect(to.peers.size).toBe(2);
});

describe("datagrams are dropped and logged:", () => {
  test("of more clients than udp_max_sessions, in each worker", async () => {
    const made = await route([(await target()).port], { udp_max_sessions: 2 });
    const clients = await Promise.all(Array.from({ length: 20 }, client));
    const asked = clients.map((one) => one.ask(made.listen_port, "x", 300));
    const answered = (await Promise.all(asked)).filter((answer) => answer !== null);
    expect(answered.length).toBeLessThanOrEqual(4);
    expect(answered.length).toBeGreaterThanOrEqual(2);
    expect((await sessionsOf(made.id)).length).toBe(answered.length);
    const lines = await eventually(() => {
      const found = dropsOf(made.name);
      const dropped = found.reduce((sum, line) => sum + Number(line["datagrams"]), 0);
      return dropped === 20 - answered.length ? found : null;
    });
    // Not a line for each: one of each worker.
    expect(lines.length).toBeLessThanOrEqual(2);
  });

  test("of more clients than max_connections, over all workers", async () => {
    const made = await route([(await target()).port], { max_connections: 3 });
    const clients = await Promise.all(Array.from({ length: 20 }, client));
    const asked = clients.map((one) => one.ask(made.listen_port, "x", 300));
    const answered = (await Promise.all(asked)).filter((answer) => answer !== null);
    expect(answered.length).toBe(3);
  });

  test("of clients that are not allowed", async () => {
    const to = await target();
    const denied = await route([to.port], { deny: ["127.0.0.0/8"] });
    expect(await (await client()).ask(denied.listen_port, "x", 200)).toBeNull();
    const others = await route([to.port], { allow: ["10.0.0.0/8"] });
    expect(await (await client()).ask(others.listen_port, "x", 200)).toBeNull();
    const allowed = await route([to.port], { allow: ["127.0.0.1"] });
    expect(String(await (await client()).ask(allowed.listen_port, "x"))).toBe("x");
    expect(to.received).toBe(1);
    await eventually(() => dropsOf(denied.name)[0]?.["reason"] === "the address may not connect");
  });

  test("without a target", async () => {
    const made = await route([]);
    expect(await (await client()).ask(made.listen_port, "x", 100)).toBeNull();
    expect((await sessionsOf(made.id)).length).toBe(0);
    await eventually(() => dropsOf(made.name)[0]?.["reason"] === "no target is available");
  });
});

test("sessions are listed with their bytes, counted at the target, and can be closed", async () => {
  const to = await target();
  const { id, service_id, listen_port: port } = await route([to.port]);
  const [one, two] = [await client(), await client()];
  await one.ask(port, "12345");
  await two.ask(port, "123");
  const sessions = await sessionsOf(id);
  expect(sessions.length).toBe(2);
  const own = sessions.find((each: { client: string }) => each.client === `127.0.0.1:${one.port}`);
  expect(own).toMatchObject({ stream_route_id: id, bytes_in: 5, bytes_out: 5 });
  const inFlight = async () =>
    (await api.call(`GET /services/${service_id}/health`)).body.targets[0].active_requests;
  expect(await inFlight()).toBe(2);
  expect((await api.call(`DELETE /connections/${own.id}`)).body).toEqual({ deleted: true });
  expect((await sessionsOf(id)).length).toBe(1);
  expect(await inFlight()).toBe(1);
  expect((await api.call(`DELETE /connections/${own.id}`)).status).toBe(404);
  // A client that continues sending is a new one.
  expect(String(await one.ask(port, "again"))).toBe("again");
  expect(to.peers.size).toBe(3);
});

describe("ports", () => {
  test("of a range lead to the same service", async () => {
    const to = await target();
    const first = await freeUdpPort(3);
    const range = { listen_port: null, port_range: `${first}-${first + 2}` };
    await route([to.port], range);
    for (const port of [first, first + 1, first + 2])
      expect(String(await (await client()).ask(port, "x"))).toBe("x");
  });

  test("in use by another program are refused with its name", async () => {
    const holder = await target();
    const { service_id } = await route([1]);
    const answer = await api.call("POST /stream-routes", {
      body: {
        name: "taken",
        protocol: "udp",
        listen_address: "127.0.0.1",
        listen_port: holder.port,
        service_id,
      },
    });
    expect(answer.status).toBe(409);
    expect(answer.body.error).toContain(`UDP port ${holder.port} on 127.0.0.1: address already`);
    expect(answer.body.error).toContain(`(pid ${process.pid})`);
  });

  test("may have the number of a TCP port, but not of another UDP route", async () => {
    const { service_id, listen_port } = await route([(await target()).port]);
    const body = { name: "second", listen_address: "127.0.0.1", listen_port, service_id };
    const again = await api.call("POST /stream-routes", { body: { ...body, protocol: "udp" } });
    expect([again.status, again.body.error]).toEqual([
      409,
      expect.stringContaining("belongs to stream route"),
    ]);
    await api.create("/services", { name: "beside", protocol: "tcp" });
    const tcp = await api.call("POST /stream-routes", { body: { ...body, service_id: "beside" } });
    expect(tcp.status).toBe(200);
  });

  test("close with their route, and are free for the next one at once", async () => {
    const [one, two] = [await target(() => "one"), await target(() => "two")];
    const made = await route([one.port]);
    const port = made.listen_port;
    const known = await client();
    expect(String(await known.ask(port, "x"))).toBe("one");
    await api.call(`DELETE /stream-routes/${made.id}`);
    expect(await (await client()).ask(port, "x", 200)).toBeNull();
    // Existing sessions may continue.
    expect(String(await known.ask(port, "x"))).toBe("one");
    await route([two.port], { listen_port: port });
    expect(String(await (await client()).ask(port, "x"))).toBe("two");
  });
});

describe("a change", () => {
  test("of another route, of a description or a limit does not touch a session", async () => {
    const to = await target();
    const { id, listen_port: port } = await route([to.port]);
    const asker = await client();
    await asker.ask(port, "one");
    await api.call(`PATCH /stream-routes/${id}`, {
      body: { description: "changed", udp_session_timeout: 1000, udp_max_sessions: 5 },
    });
    const other = await route([to.port]);
    await api.call(`DELETE /stream-routes/${other.id}`);
    const [before] = await sessionsOf(id);
    expect(String(await asker.ask(port, "two"))).toBe("two");
    expect(to.peers.size).toBe(1);
    expect((await sessionsOf(id))[0].id).toBe(before.id);
  });

  test("of the target applies to new clients at once, to others after stream_drain_timeout", async () => {
    const limits = { stream_drain_timeout: 1000 };
    await api.call("PATCH /settings", { body: { limits } });
    const [one, two] = [await target(() => "one"), await target(() => "two")];
    const made = await route([one.port]);
    const next = await route([two.port]);
    const known = await client();
    expect(String(await known.ask(made.listen_port, "x"))).toBe("one");
    const began = performance.now();
    await api.call(`PATCH /stream-routes/${made.id}`, { body: { service_id: next.service_id } });
    expect(String(await (await client()).ask(made.listen_port, "x"))).toBe("two");
    expect(String(await known.ask(made.listen_port, "x"))).toBe("one");
    const moved = async () => String(await known.ask(made.listen_port, "x", 300)) === "two";
    await eventually(moved, { intervalMs: 200 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(limits.stream_drain_timeout);
  });
});

test("a target with a name is resolved", async () => {
  const to = await target();
  const name = `udp ${++count}`;
  await api.create("/services", {
    name,
    protocol: "udp",
    targets: [{ host: "localhost", port: to.port }],
  });
  const port = await freeUdpPort();
  const fields = { name, protocol: "udp", listen_address: "127.0.0.1", listen_port: port };
  await api.create("/stream-routes", { ...fields, service_id: name });
  expect(String(await (await client()).ask(port, "x"))).toBe("x");
});

test("a stop waits for an active session, and not for an idle one", async () => {
  const slow = await Bun.udpSocket({
    hostname: "127.0.0.1",
    socket: {
      data(socket, _, port, address) {
        setTimeout(() => socket.send("late", port, address), 400);
      },
    },
  });
  open.push(slow);
  const gateway = await startGateway();
  open.push({ close: () => void gateway.stop() });
  await gateway.ok("POST", "/api/v1/services", {
    name: "slow",
    protocol: "udp",
    targets: [{ host: "127.0.0.1", port: slow.port }],
  });
  const port = await freeUdpPort();
  await gateway.ok("POST", "/api/v1/stream-routes", {
    name: "slow",
    service_id: "slow",
    protocol: "udp",
    listen_address: "127.0.0.1",
    listen_port: port,
    udp_session_timeout: 3600,
  });
  const asker = await client();
  expect(String(await asker.ask(port, "x"))).toBe("late");
  asker.send(port, "y");
  const stopped = gateway.stop();
  await eventually(() => asker.answers.length === 2);
  // The default time for a stop is 30 seconds, which a session of an hour would use up.
  const ended = await Promise.race([stopped, Bun.sleep(10_000).then(() => "still runs")]);
  expect(ended).toBe(0);
});

test("clients continue after a restart of the gateway", async () => {
  const to = await target();
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-udp-"));
  const gateway = await startGateway({ dataDir });
  open.push({ close: () => rmSync(dataDir, { recursive: true, force: true }) });
  open.push({ close: () => void gateway.stop() });
  await gateway.ok("POST", "/api/v1/services", {
    name: "udp",
    protocol: "udp",
    targets: [{ host: "127.0.0.1", port: to.port }],
  });
  const port = await freeUdpPort();
  await gateway.ok("POST", "/api/v1/stream-routes", {
    name: "udp",
    service_id: "udp",
    protocol: "udp",
    listen_address: "127.0.0.1",
    listen_port: port,
  });
  const asker = await client();
  expect(String(await asker.ask(port, "one"))).toBe("one");
  await gateway.kill9();
  expect(await asker.ask(port, "lost", 100)).toBeNull();
  await gateway.start();
  expect(String(await asker.ask(port, "two"))).toBe("two");
});

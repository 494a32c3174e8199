// WebSocket handshakes and several targets: which failures are retried, and sticky sessions.
import { afterEach, expect, test } from "bun:test";
import { readHealth } from "../../../src/shared-memory/target-health.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import {
  freePort,
  type RunningDataPlane,
  type ServiceSketch,
  startDataPlane,
} from "../../support/data-plane.ts";
import { startFullQueue } from "../../support/full-queue.ts";
import { eventually } from "../../support/poll.ts";
import { handshake, ManualTarget, Peer, switching } from "./peer.ts";

const cleanups = cleanupsOf(afterEach);

interface Setting {
  readonly first: ManualTarget;
  readonly second: ManualTarget;
  readonly gateway: RunningDataPlane;
}

/** Two targets, the first of which is asked first; `port` stands in the first one's place. */
async function setUp(service: Partial<ServiceSketch> = {}, port?: number): Promise<Setting> {
  const [first, second] = [await ManualTarget.start(), await ManualTarget.start()];
  const targets = [{ port: port ?? first.port }, { port: second.port }];
  const gateway = await startDataPlane({
    services: [{ name: "app", algorithm: "first", ...service, targets }],
    routes: [{ name: "all", service_id: "app" }],
  });
  cleanups.push(
    () => first.stop(),
    () => second.stop(),
    () => gateway.stop(),
  );
  return { first, second, gateway };
}

async function knock(gateway: RunningDataPlane, lines = ""): Promise<Peer> {
  const client = await Peer.client(gateway.port);
  cleanups.push(() => client.destroy());
  client.write(handshake(lines));
  return client;
}

const field = (head: string, name: string) =>
  new RegExp(`^${name}: (.*)\r$`, "im").exec(head)?.[1] ?? null;
const health = ({ gateway }: Setting, index: number) =>
  readHealth(gateway.targets, gateway.targets.rowOf(`app-${index}`), Date.now());
const active = ({ gateway }: Setting) =>
  [0, 1].map((index) => gateway.targets.active(gateway.targets.rowOf(`app-${index}`)));

test("a handshake that no target has received goes to the next one", async () => {
  const setting = await setUp({}, freePort());
  const client = await knock(setting.gateway);
  const origin = await setting.second.connection();
  origin.write(switching(await origin.head()));
  expect(await client.head()).toStartWith("HTTP/1.1 101 ");
  expect(health(setting, 0).lastError).toBe("the target refused the connection");
  expect(health(setting, 1).state).toBe("healthy");
});

test("per_try_timeout retries one that is still connecting", async () => {
  const queue = await startFullQueue();
  cleanups.push(() => queue.stop());
  const setting = await setUp({ retries: { per_try_timeout: 150 } }, queue.port);
  const client = await knock(setting.gateway);
  const origin = await setting.second.connection();
  origin.write(switching(await origin.head()));
  expect(await client.head()).toStartWith("HTTP/1.1 101 ");
  expect(health(setting, 0).lastError).toBe("the target did not accept the connection in time");
});

test.each([
  [
    "closes",
    (origin: Peer): void => void origin.socket.end(),
    502,
    "the target closed the connection without a response",
  ],
  [
    "resets",
    (origin: Peer): void => void origin.socket.resetAndDestroy(),
    502,
    "the target closed the connection without a response",
  ],
  ["does not answer", () => {}, 504, "the target did not respond in time"],
  [
    "upgrades wrongly",
    (origin: Peer) => origin.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    502,
    "the response was not valid HTTP",
  ],
  [
    "refuses",
    (origin: Peer) => origin.write("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
    503,
    "the target responded with status 503",
  ],
] as const)(
  "a target that has it and %s: the client gets the error, and there is no retry",
  async (_, does, status, held) => {
    const retries: ServiceSketch["retries"] = {
      per_try_timeout: 200,
      methods: "all",
      on: ["connect", "reset", "timeout", "503"],
    };
    const setting = await setUp({ retries });
    const client = await knock(setting.gateway);
    const origin = await setting.first.connection();
    await origin.head();
    does(origin);
    expect(await client.head()).toStartWith(`HTTP/1.1 ${status} `);
    expect(setting.second.connections).toBe(0);
    expect(health(setting, 0).lastError).toBe(held);
    expect(active(setting)).toEqual([0, 0]);
  },
);

test("request_timeout counts against the slow target", async () => {
  const setting = await setUp({ request_timeout: 200 });
  const client = await knock(setting.gateway);
  await setting.first.connection();
  expect(await client.head()).toStartWith("HTTP/1.1 504 ");
  expect(health(setting, 0).lastError).toBe("the target did not respond in time");
});

test("a client that disconnects in the pause before a retry is dropped", async () => {
  const ports = Array.from({ length: 6 }, () => freePort());
  const gateway = await startDataPlane({
    services: [
      {
        name: "app",
        algorithm: "first",
        retries: { count: 10, backoff_ms: 86_400_000 },
        targets: ports.map((port) => ({ port })),
      },
    ],
    routes: [{ name: "all", service_id: "app" }],
  });
  cleanups.push(() => gateway.stop());
  const client = await knock(gateway);
  const row = (index: number) => gateway.targets.rowOf(`app-${index}`);
  await eventually(() => gateway.targets.get(row(1), "failures") === 1);
  client.destroy();
  await eventually(() => gateway.log.some(({ fields }) => fields["status"] === 499));
  expect(ports.map((_, index) => gateway.targets.active(row(index)))).toEqual(Array(6).fill(0));
  expect(gateway.targets.get(row(5), "failures")).toBe(0);
});

test("the handshake gets the sticky cookie, and a refusal too", async () => {
  const setting = await setUp({ sticky: { enabled: true } });
  const client = await knock(setting.gateway);
  const origin = await setting.first.connection();
  origin.write(switching(await origin.head()));
  const cookie = field(await client.head(), "set-cookie") ?? "";
  expect(cookie).toMatch(/^sluice_sticky=[\w-]{16}; Path=\/; HttpOnly; SameSite=Lax$/);
  for (const lines of ["", `Cookie: ${cookie.split(";")[0]}\r\n`]) {
    const again = await knock(setting.gateway, lines);
    const next = await setting.first.connection();
    next.write("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
    expect(field(await again.head(), "set-cookie")).toBe(lines === "" ? cookie : null);
  }
});

test("an open WebSocket is a request in flight on its target until it ends", async () => {
  const setting = await setUp({ max_connections_per_target: 1 });
  for (let round = 0; round < 3; round++) {
    const open: Peer[] = [];
    for (const target of [setting.first, setting.second]) {
      const client = await knock(setting.gateway);
      const origin = await target.connection();
      origin.write(switching(await origin.head()));
      expect(await client.head()).toStartWith("HTTP/1.1 101 ");
      open.push(client);
    }
    expect(active(setting)).toEqual([1, 1]);
    const late = await knock(setting.gateway);
    expect(await late.head()).toStartWith("HTTP/1.1 503 ");
    for (const client of open) client.destroy();
    await eventually(() => active(setting).every((count) => count === 0));
  }
});

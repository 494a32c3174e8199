// Open gRPC streams while everything around them changes: configuration, certificates, targets, the process itself.
import { expect } from "bun:test";
import { GrpcServer } from "../support/grpc-peers.ts";
import { GrpcScene } from "../support/grpc-scene.ts";
import { runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { freePort } from "../support/data-plane.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterEach, beforeEach, test } = needs("executable", "node");

const STREAMS = 50;
const CHANGES = 500;

let scene: GrpcScene;
const successors: number[] = [];

beforeEach(async () => {
  scene = await GrpcScene.start({ listeners: ["full-https"] });
});
afterEach(async () => {
  for (const pid of successors.splice(0)) endNow(pid);
  await scene?.stop();
});

function endNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

async function hold(): Promise<void> {
  const channel = scene.channel("full-https");
  await scene.client.hold({ channel, streams: STREAMS, channels: 5 });
  await eventually(async () => (await scene.client.held()).fewest >= 3);
}

/** What the streams must be after all that happened: unbroken, and every message is back. */
async function expectUnbroken(): Promise<void> {
  await scene.client.release();
  await eventually(async () => (await scene.client.held()).ended === STREAMS);
  expect(await scene.client.held()).toMatchObject({ streams: STREAMS, broken: [], lost: 0 });
}

/** The change with this number: each kind in turn. */
async function change(number: number): Promise<void> {
  const { gateway } = scene;
  const name = `other-${Math.floor(number / 10)}`;
  const targets = [{ host: "127.0.0.1", port: scene.plain.port }];
  switch (number % 10) {
    case 0:
      return await gateway.ok("POST", "/api/v1/services", { name, protocol: "grpc", targets });
    case 1:
      return await gateway.ok("POST", "/api/v1/routes", {
        name,
        service_id: name,
        hosts: [`${name}.test`],
        listener_ids: ["full-https"],
      });
    case 2:
      return await gateway.ok("PATCH", "/api/v1/services/plain", {
        tags: [`t${number}`],
        response_timeout: 60_000 + number,
      });
    case 3:
      return await gateway.ok("PATCH", "/api/v1/routes/plain", { tags: [`t${number}`] });
    case 4:
      if (number % 20 !== 4) return await gateway.ok("DELETE", "/api/v1/plugins/on-plain");
      return await gateway.ok("POST", "/api/v1/plugins", {
        name: "request-id",
        label: "on-plain",
        route_id: "plain",
      });
    case 5: {
      const certificate = scene.certificate(await scene.issue());
      return await gateway.ok("PATCH", "/api/v1/certificates/names", certificate);
    }
    case 6:
      return await gateway.ok("POST", "/api/v1/listeners", {
        name,
        address: "127.0.0.1",
        port: freePort(),
        protocol: "http",
        engine: number % 20 === 6 ? "sluice" : "bun",
      });
    case 7:
      return await gateway.ok("PATCH", "/api/v1/listeners/full-https", {
        max_in_flight_requests: 10_000 + number,
      });
    case 8:
      return await gateway.ok("DELETE", `/api/v1/routes/${name}`);
    default:
      return await gateway.ok("DELETE", `/api/v1/listeners/${name}`);
  }
}

test(`${CHANGES} changes under ${STREAMS} open streams: none breaks, no message is lost`, async () => {
  await hold();
  for (let number = 0; number < CHANGES; number++) await change(number);
  const { exchanged } = await scene.client.held();
  await eventually(async () => (await scene.client.held()).exchanged > exchanged + STREAMS);
  await expectUnbroken();
});

test("a target killed under load: calls succeed elsewhere or end with UNAVAILABLE, none hangs", async () => {
  const second = await GrpcServer.start();
  try {
    const host = "127.0.0.1";
    await scene.gateway.ok("POST", "/api/v1/services/plain/targets", { host, port: second.port });
    const channel = scene.channel("full-https");
    const load = {
      channel,
      method: "/test.Echo/Unary",
      kind: "unary",
      deadlineMs: 15_000,
    } as const;
    await scene.client.startLoad(20, load);
    await eventually(async () => (await served(second)) > 50);
    await second.kill();
    const before = await served(scene.plain);
    await eventually(async () => (await served(scene.plain)) > before + 200);
    const { codes } = await scene.client.stopLoad();
    expect(Object.keys(codes).filter((code) => code !== "0" && code !== "14")).toEqual([]);
    expect(codes["0"]).toBeGreaterThan(250);
    expect(codes["14"] ?? 0).toBeLessThan(100);
  } finally {
    await second.kill();
  }
});

/** Calls that a server has seen, asked directly. */
async function served({ port }: GrpcServer): Promise<number> {
  const method = "/test.Echo/Seen";
  const { messages } = await scene.client.call({ channel: { port }, method, kind: "unary" });
  return (JSON.parse(messages[0] ?? "{}") as { calls: number }).calls;
}

test("an upgrade: open streams go on over the old process, and end there without loss", async () => {
  await hold();
  const first = scene.gateway.pid;
  const words = ["upgrade", "--data-dir", scene.gateway.dataDir];
  const { code, stdout } = await runCommand(words, { binary: executable });
  expect(code).toBe(0);
  successors.push(Number(/Process (\d+)/.exec(stdout)?.[1]));
  const { exchanged } = await scene.client.held();
  await eventually(async () => (await scene.client.held()).exchanged > exchanged + STREAMS);
  // New calls go to the new process, over connections of their own.
  const channel = scene.channel("full-https");
  const { code: status } = await scene.client.call({
    channel,
    method: "/test.Echo/Unary",
    kind: "unary",
  });
  expect(status).toBe(0);
  await expectUnbroken();
  await eventually(() => hasEnded(first));
});

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

test("a stop: streams get GOAWAY and finish within the grace period", async () => {
  await hold();
  const { pid } = scene.gateway;
  scene.gateway.signal("SIGTERM");
  const { exchanged } = await scene.client.held();
  await eventually(async () => (await scene.client.held()).exchanged > exchanged + STREAMS);
  expect(hasEnded(pid)).toBe(false);
  await expectUnbroken();
  expect(await scene.gateway.exited()).toBe(0);
});

test("a stop whose grace period ends: streams that are still open end with UNAVAILABLE", async () => {
  await scene.gateway.ok("PATCH", "/api/v1/settings", { limits: { shutdown_timeout: 500 } });
  await hold();
  scene.gateway.signal("SIGTERM");
  expect(await scene.gateway.exited()).toBe(0);
  await eventually(async () => (await scene.client.held()).ended === STREAMS);
  const { broken } = await scene.client.held();
  expect(broken.length).toBe(STREAMS);
  expect(broken.filter((reason) => !reason.startsWith("14 "))).toEqual([]);
});

// What lasts longer than a listener's idle time-out is served, and the connection is closed when it is idle afterwards.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createSelfSigned } from "../../../src/crypto/x509.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import {
  closesIdle,
  type IdleScene,
  isUsedAndThenClosed,
  listensFor,
  startSlowOrigin,
  uploadsFor,
  waitsFor,
} from "./idle-times.ts";
import { type SlowClient, slowClients } from "./slow-clients.ts";

/** Shorter than Bun can measure: it looks at its connections every four seconds. */
const IDLE_S = 4;
/** Longer than Bun takes to find a connection idle. */
const QUIET_MS = 11_000;
const DEADLINE_MS = 40_000;

const scenes = new Map<SlowClient, IdleScene>();
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  const origin = startSlowOrigin();
  cleanups.push(() => origin.stop());
  const names = { names: ["localhost"], addresses: ["127.0.0.1"] };
  const tls = await createSelfSigned({ ...names, now: Date.now(), validDays: 2 });
  for (const client of slowClients) {
    const plane = await startDataPlane({
      services: [{ name: "slow", targets: [{ port: origin.port }] }],
      routes: [{ name: "slow", service_id: "slow" }],
      listener: { idle_timeout: IDLE_S },
      ...(client.tls ? { tls } : {}),
    });
    cleanups.push(() => plane.stop());
    scenes.set(client, { client, port: plane.port, idleMs: IDLE_S * 1000 });
  }
});
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** All at once: they mostly wait. */
function each(what: string, run: (scene: IdleScene) => Promise<void>): void {
  for (const client of slowClients)
    test.concurrent(`${client.name}: ${what}`, () => run(scenes.get(client)!), DEADLINE_MS);
}

each("an upload that lasts longer", async (scene) => {
  const connection = await uploadsFor(scene, { forMs: QUIET_MS, bytesEachSecond: 4000 });
  await isUsedAndThenClosed(scene, connection);
});

each("an answer that begins later", async (scene) => {
  await isUsedAndThenClosed(scene, await waitsFor(scene, QUIET_MS));
});

each("an event stream that is silent for longer", async (scene) => {
  await isUsedAndThenClosed(scene, await listensFor(scene, QUIET_MS));
});

each("answers that come soon enough, whenever they were asked for", async (scene) => {
  const asking = Array.from({ length: 40 }, async (_, index) => {
    await Bun.sleep(index * 200);
    (await waitsFor(scene, 900)).close();
  });
  await Promise.all(asking);
});

each("a connection that asked once and then nothing more", async (scene) => {
  const connection = scene.client.open(scene.port);
  expect((await connection.ask({ path: "/late?ms=0" })).status).toBe(200);
  await closesIdle(connection, scene.idleMs);
});

test.concurrent(
  "HTTP/2: a response that begins later, beside others on its connection",
  async () => {
    const [, client] = slowClients;
    const { port } = scenes.get(client!)!;
    const connection = client!.open(port);
    const ask = async (afterMs: number, pauseMs: number) => {
      await Bun.sleep(afterMs);
      expect((await connection.ask({ path: `/late?ms=${pauseMs}` })).status).toBe(200);
    };
    await Promise.all([ask(0, QUIET_MS), ask(500, 2000), ask(3000, 10), ask(4000, 10)]);
    connection.close();
  },
  DEADLINE_MS,
);

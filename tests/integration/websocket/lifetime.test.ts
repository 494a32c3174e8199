// What closes a WebSocket besides its two sides: not a configuration change, but the shutdown of the gateway.
import { afterEach, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { closePayload, handshake, opcodes, Peer, switching } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

let scene: Scene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
});

async function expectAlive(client: Peer, origin: Peer): Promise<void> {
  client.send(opcodes.text, "to the target");
  expect((await origin.frame()).payload.toString()).toBe("to the target");
  origin.send(opcodes.text, "to the client");
  expect((await client.frame()).payload.toString()).toBe("to the client");
}

test("open WebSockets are counted", async () => {
  scene = await startScene();
  const { openCount } = scene;
  const first = await scene.open();
  const second = await scene.open();
  await eventually(() => openCount() === 2);
  first.client.destroy();
  await eventually(() => openCount() === 1);
  second.origin.destroy();
  await eventually(() => openCount() === 0);
});

test("unrelated changes, and those of the service, the route and settings, leave them open", async () => {
  scene = await startScene();
  const { gateway, target } = scene;
  const { client, origin } = await scene.open();
  await gateway.apply({
    services: [{ name: "other", targets: [{ port: target.port }] }],
    routes: [{ name: "other", service_id: "other", paths: ["/other"] }],
  });
  await expectAlive(client, origin);
  await gateway.apply({ removedRoutes: ["other"], removedServices: ["other"] });
  await expectAlive(client, origin);
  await gateway.apply({
    services: [{ name: "app", targets: [{ port: target.port }], connect_timeout: 1000 }],
    routes: [{ name: "all", service_id: "app", priority: 5 }],
    settings: { debug_headers: true },
  });
  await expectAlive(client, origin);
  // Bound anew.
  await gateway.apply({ listener: { idle_timeout: 30 } });
  await expectAlive(client, origin);
  expect(scene.openCount()).toBe(1);
});

test.each([
  ["its route", { removedRoutes: ["all"] }],
  ["its service", { removedServices: ["app"] }],
  ["its target", { services: [{ name: "app", targets: [] }] }],
])("a change that removes %s closes them with 1001", async (_, change) => {
  scene = await startScene();
  const { gateway, target } = scene;
  await gateway.apply({
    services: [{ name: "other", targets: [{ port: target.port }] }],
    routes: [{ name: "other", service_id: "other", paths: ["/other"] }],
  });
  const { client, origin } = await scene.open();
  const bystander = await scene.knock(handshake("", "/other"));
  bystander.origin.write(switching(bystander.head));
  await bystander.client.head();
  await gateway.apply(change);
  expect((await client.closeFrame())[0]).toBe(1001);
  expect((await origin.closeFrame())[0]).toBe(1001);
  await expectAlive(bystander.client, bystander.origin);
});

test("the shutdown closes both sides with 1001, after all earlier messages", async () => {
  scene = await startScene();
  const { client, origin } = await scene.open();
  await expectAlive(client, origin);
  client.send(opcodes.text, "last words");
  expect((await origin.frame()).payload.toString()).toBe("last words");
  const drained = scene.gateway.drain(10_000);
  expect((await client.closeFrame())[0]).toBe(1001);
  expect((await origin.closeFrame())[0]).toBe(1001);
  origin.send(opcodes.close, closePayload(1001));
  await origin.ended();
  expect(await drained).toBe(0);
});

test("one that does not close in time is terminated and counted", async () => {
  scene = await startScene();
  const { client, origin } = await scene.open();
  // Neither answers: the target sends no Close, and the client ends nothing.
  const drained = scene.gateway.drain(200);
  expect((await origin.closeFrame())[0]).toBe(1001);
  expect(await drained).toBe(1);
  await origin.ended();
  await client.ended();
  expect(scene.openCount()).toBe(0);
});

test("one that opens while the gateway stops is closed at once", async () => {
  scene = await startScene();
  const { client, origin, head } = await scene.knock();
  const drained = scene.gateway.drain(10_000);
  origin.write(switching(head));
  expect(await client.head()).toStartWith("HTTP/1.1 101 ");
  expect((await client.closeFrame())[0]).toBe(1001);
  expect((await origin.closeFrame())[0]).toBe(1001);
  origin.socket.end();
  expect(await drained).toBe(0);
});

test("many aborted WebSockets leave nothing behind", async () => {
  scene = await startScene();
  const { gateway, openCount, target } = scene;
  for (let round = 0; round < 60; round++) {
    const client = await Peer.client(gateway.port);
    client.write(handshake());
    const origin = await target.connection();
    const kind = round % 4;
    if (kind === 0) {
      client.destroy();
      continue;
    }
    origin.write(switching(await origin.head()));
    if (kind === 1) client.socket.resetAndDestroy();
    else {
      await client.head();
      client.send(opcodes.text, "half", { isFinal: false });
      if (kind === 2) client.socket.resetAndDestroy();
      else origin.socket.resetAndDestroy();
    }
  }
  await eventually(() => openCount() === 0);
  expect(await gateway.drain(5000)).toBe(0);
});

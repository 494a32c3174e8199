// Heads that repeat byte for byte: what the target gets is of this client, this listener and this version, not of an earlier one.
import { afterEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { cleanupsOf } from "../../support/cleanups.ts";
import { reply } from "../../support/origin.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

const cleanups = cleanupsOf(afterEach);

const HEAD = "GET /same HTTP/1.1\r\nHost: h\r\nX-Request-Id: theirs\r\nX-Real-IP: 6.6.6.6\r\n\r\n";

async function start(
  options: Parameters<typeof startScriptedScene>[0] = {},
): Promise<ScriptedScene> {
  const scene = await startScriptedScene({
    ...options,
    listener: { engine: "sluice", ...options.listener },
  });
  scene.origin.answer = reply("ok");
  cleanups.push(() => scene.stop());
  return scene;
}

/** The fields of the target's last request, after `times` equal ones on one connection from this address. */
async function seen(scene: ScriptedScene, { from = "127.0.0.1", times = 4 } = {}) {
  const socket = connect({ host: "127.0.0.1", port: scene.port, localAddress: from });
  let received = "";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
    const count = received.split("HTTP/1.1 200").length - 1;
    if (count === times) resolve();
    else if (received.endsWith("ok")) socket.write(HEAD);
  });
  socket.on("error", reject);
  socket.write(HEAD);
  await promise;
  socket.destroy();
  const all = scene.origin.connections.map((each) => each.received).join("");
  const last = all.slice(all.lastIndexOf("GET /same"));
  return (name: string) =>
    [...last.matchAll(new RegExp(`^${name}: (.*)\r$`, "gim"))].map(([, value]) => value);
}

test("each client's address is its own", async () => {
  const scene = await start();
  for (const from of ["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.3"]) {
    const field = await seen(scene, { from });
    expect(field("x-forwarded-for")).toEqual([from]);
    expect(field("x-real-ip")).toEqual([from]);
  }
});

test("each request's id is its own", async () => {
  const scene = await start();
  const ids = new Set<string | undefined>();
  for (let round = 0; round < 4; round++) ids.add((await seen(scene))("x-request-id")[0]);
  expect(ids.size).toBe(4);
  expect(ids.has("theirs")).toBe(false);
});

test("a change of the version is in the next request", async () => {
  const scene = await start();
  await seen(scene);
  await scene.gateway.apply({ listener: { trusted_proxies: ["127.0.0.0/8"] } });
  const trusted = await seen(scene);
  expect(trusted("x-request-id")).toEqual(["theirs"]);
  await scene.gateway.apply({ listener: { trusted_proxies: [] } });
  expect((await seen(scene))("x-request-id")).not.toEqual(["theirs"]);
  await scene.gateway.apply({
    plugins: [
      { name: "transform", config: { request: { headers: { set: { "X-Extra": "plugin" } } } } },
    ],
  });
  expect((await seen(scene))("x-extra")).toEqual(["plugin"]);
  await scene.gateway.apply({ removedPlugins: ["transform"] });
  expect((await seen(scene))("x-extra")).toEqual([]);
});

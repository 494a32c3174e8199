// A listener of our own engine that changes: open connections keep what they have begun, and the next request has the new limits.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { reply } from "../../support/origin.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

const limit = (max_header_bytes: number) => ({ engine: "sluice" as const, max_header_bytes });
let scene: ScriptedScene;
beforeAll(async () => {
  scene = await startScriptedScene({ listener: limit(16_384) });
});
afterAll(() => scene.stop());

const get = (target: string, fields = "") => `GET ${target} HTTP/1.1\r\nHost: h\r\n${fields}\r\n`;
const outcomeOf = (received: string) => read(received, false).outcome;

test("an idle connection, half a head, half a body and a response in progress outlive a change", async () => {
  const gate = Promise.withResolvers<string>();
  scene.origin.answer = ({ target }) => (target === "/waits" ? gate.promise : reply(target));
  const open = async (bytes: string) => {
    const client = await connectRaw({ port: scene.port });
    client.write(bytes);
    return client;
  };
  const before = scene.origin.requests.length;
  const idle = await open(get("/idle"));
  await idle.until("\r\n\r\n/idle");
  const head = await open("GET /head HTTP/1.1\r\nHost: h\r\nX: ");
  const body = await open("POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nha");
  const waiting = await open(get("/waits"));
  await scene.origin.untilRequests(before + 2);
  await scene.gateway.apply({ listener: limit(1024) });
  head.write("y\r\n\r\n");
  await head.until("\r\n\r\n/head");
  body.write("lf");
  await body.until("\r\n\r\n/body");
  gate.resolve(reply("at last"));
  await waiting.until("\r\n\r\nat last");
  // The new limit holds on the old connection.
  idle.write(get("/long", `X: ${"v".repeat(1024)}\r\n`));
  expect(outcomeOf(await idle.untilClosed())).toBe("200 431");
  for (const client of [head, body, waiting]) client.close();
  expect(scene.origin.requests.at(-1)?.body).not.toBe("ha");
});

test("a connection that was opened before a change counts after it", async () => {
  scene.origin.answer = reply();
  const kept = await connectRaw({ port: scene.port });
  kept.write(get("/"));
  await kept.until("ok");
  await scene.gateway.apply({ listener: { ...limit(16_384), max_connections: 1 } });
  const refused = await connectRaw({ port: scene.port });
  refused.write(get("/"));
  expect(await refused.untilClosed()).toBe("");
  kept.write(get("/again"));
  await kept.until((received) => outcomeOf(received) === "200 200");
  kept.close();
  await scene.gateway.apply({ listener: limit(16_384) });
});

// Names of a request's fields as an HTTP/1.1 target gets them: small devices compare them by bytes.
import { expect, test } from "bun:test";
import { connect } from "node:http2";
import { engines } from "../../support/engines.ts";
import { reply } from "../../support/origin.ts";
import { startScriptedScene } from "../../support/scripted-scene.ts";

const plugins = [
  {
    name: "transform",
    config: { request: { headers: { set: { "X-MiXed": "1" }, add: { "x-lower": "2" } } } },
  },
];
const OWN = ["X-Forwarded-For", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto"];
const MORE = ["X-Forwarded-Port", "Via", "CDN-Loop", "X-MiXed", "x-lower"];

const namesOf = (received: string) =>
  received
    .slice(0, received.indexOf("\r\n\r\n"))
    .split("\r\n")
    .slice(1)
    .map((line) => line.slice(0, line.indexOf(":")));

test("of HTTP/1.1 are the client's, and the gateway's in their usual case", async () => {
  const scene = await startScriptedScene({ plugins });
  await scene.ask(
    reply("ok"),
    "POST / HTTP/1.1\r\nHost: h\r\ncontent-TYPE: text/plain\r\nX-aPi-KEY: 1\r\ncontent-length: 2\r\n\r\nab",
  );
  const names = namesOf(scene.origin.connections[0]?.received ?? "");
  expect(names).toEqual(
    expect.arrayContaining([
      "Host",
      "content-TYPE",
      "X-aPi-KEY",
      "Content-Length",
      ...OWN,
      ...MORE,
    ]),
  );
  await scene.stop();
});

test.each(engines)("of HTTP/2 get their usual case on engine %s", async (engine) => {
  const scene = await startScriptedScene({ plugins, listener: { engine } });
  scene.origin.answer = reply("ok");
  const session = connect(scene.gateway.url);
  const stream = session.request({
    ":method": "POST",
    ":path": "/",
    "content-type": "text/plain",
    "x-api-key": "1",
    "sec-websocket-key": "k",
    etag: "e",
    "sec-ch-ua": "browser",
    cookie: "a=1",
  });
  stream.end("ab");
  stream.resume();
  await new Promise((resolve) => stream.on("close", resolve));
  session.destroy();
  const names = namesOf(scene.origin.connections[0]?.received ?? "");
  const sent = ["Content-Type", "X-Api-Key", "Sec-WebSocket-Key", "ETag", "sec-ch-ua", "Cookie"];
  expect(names).toEqual(expect.arrayContaining(["Host", ...sent, ...OWN, ...MORE]));
  await scene.stop();
});

// A client that reads a response long after the gateway has sent it and closed the connection: it gets all of it.
import { describe, expect, test } from "bun:test";
import { connectionsKey } from "../../../src/shared-memory/series-key.ts";
import { selfSigned } from "../../support/certificate.ts";
import { engines } from "../../support/engines.ts";
import { reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, parseResponse } from "../../support/raw-http.ts";
import { startScriptedScene } from "../../support/scripted-scene.ts";

/** More than a client that does not read has in its own buffer. */
const BODY = "a".repeat(1_500_000);

describe.each(engines)("%s engine:", (engine) => {
  test.concurrent.each([
    ["HTTP/1.0 in cleartext", "1.0", false, ""],
    ["Connection: close in cleartext", "1.1", false, "Connection: close\r\n"],
    ["Connection: close over TLS", "1.1", true, "Connection: close\r\n"],
  ] as const)("%s", async (_, version, isTls, fields) => {
    const scene = await startScriptedScene({
      // With a limit connections are counted on each engine.
      listener: { engine, max_connections: 10 },
      ...(isTls ? { tls: await selfSigned() } : {}),
    });
    try {
      const { targets } = scene.gateway;
      const open = () => targets.active(targets.rowOf(connectionsKey("listener")));
      scene.origin.answer = reply(BODY);
      const client = await connectRaw({ port: scene.port, tls: isTls });
      client.write(`GET / HTTP/${version}\r\nHost: h\r\n${fields}\r\n`);
      await client.until("HTTP/1.1 200 ");
      client.pause();
      await eventually(() => open() === 0);
      client.resume();
      const { body } = parseResponse(await client.untilClosed());
      expect(body.replaceAll(/(?:^|\r\n)[\da-f]+\r\n(?:\r\n$)?/g, "").length).toBe(BODY.length);
    } finally {
      await scene.stop();
    }
  });
});

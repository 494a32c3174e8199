// A client that leaves ends its exchange with the target, in every phase: HTTP/1.1 and WebSockets on both engines, HTTP/2.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import { H2Client } from "../../support/h2-client.ts";
import { reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { GET, type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";
import { acceptOf } from "../websocket/peer.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

/** What the target has sent of its response when the client leaves. */
const phases = [
  ["before the response", ""],
  ["in the head", "HTTP/1.1 200"],
  ["in a body of known length", `${OK}Content-Length: 9999\r\n\r\nxxx`],
  ["in a chunked body", `${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n`],
  ["in a body without end", `${OK}\r\nxxx`],
  ["in events", `${OK}Content-Type: text/event-stream\r\n\r\ndata: xxx\n\n`],
  ["in a large body that it does not read", `${OK}Content-Length: 90000000\r\n\r\n`],
] as const;

const requests = [
  ["GET", GET],
  ["POST", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"],
  ["an upload", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\nab"],
] as const;

describe.each(engines)("%s engine:", (engine) => {
  let scene: ScriptedScene;
  beforeAll(async () => {
    scene = await startScriptedScene({ listener: { engine }, early: true });
  });
  afterAll(() => scene.stop());

  /** Of the request that was sent by now: whether its connection to the target has closed. */
  async function reached(before: number, begin: string): Promise<() => boolean> {
    const { origin } = scene;
    await origin.untilRequests(before + 1);
    const { connection } = origin.requests.at(-1) ?? { connection: -1 };
    if (begin.includes("90000000")) origin.connections[connection]?.write("x".repeat(20_000_000));
    return () => origin.connections[connection]?.isClosed === true;
  }

  const script = (begin: string) => {
    scene.origin.answer = (_request, connection) => {
      if (begin !== "") connection.write(begin);
      return null;
    };
    return scene.origin.requests.length;
  };

  test.each(
    phases.flatMap(([phase, begin]) =>
      requests.map(([name, bytes]) => [phase, name, begin, bytes] as const),
    ),
  )("%s, of %s", async (_, __, begin, bytes) => {
    for (const way of ["close", "reset"] as const) {
      const before = script(begin);
      const client = await connectRaw({ port: scene.port });
      client.write(bytes);
      const isClosed = await reached(before, begin);
      if (begin.includes("xxx") && !bytes.includes("200000")) await client.until("xxx");
      client[way]();
      await eventually(isClosed);
    }
    expect((await scene.ask(reply())).outcome).toBe("200");
  });

  test.each(["close", "reset"] as const)("an open WebSocket, by %s", async (way) => {
    const { origin } = scene;
    const before = origin.requests.length;
    origin.answer = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptOf(KEY)}\r\n\r\n`;
    const client = await connectRaw({ port: scene.port });
    client.write(
      `GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n\r\n`,
    );
    await client.until(" 101 ");
    const isClosed = await reached(before, "");
    client[way]();
    await eventually(isClosed);
  });

  if (engine === "sluice")
    describe("over HTTP/2", () => {
      test.each(
        phases.flatMap(([phase, begin]) =>
          ["stream", "connection"].map((what) => [phase, what, begin] as const),
        ),
      )("%s, by the end of its %s", async (_, what, begin) => {
        const before = script(begin);
        const client = await H2Client.connect({ port: scene.port });
        const stream = client.headers([
          [":method", "GET"],
          [":scheme", "http"],
          [":authority", "h"],
          [":path", "/"],
        ]);
        const isClosed = await reached(before, begin);
        if (begin.includes("xxx")) await client.untilBody(stream, "xxx");
        if (what === "stream") client.resetStream(stream);
        else client.close();
        await eventually(isClosed);
        client.close();
      });
    });
});

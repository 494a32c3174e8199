// Clients that go away at any moment while plugins are at work: nothing breaks, nothing stays counted, the next client is served.
import { describe, expect, test } from "bun:test";
import { plugins } from "../../support/plugins.ts";
import { pluginScene } from "../../support/plugin-scene.ts";

const BODY = JSON.stringify({ apikey: "x", text: "y".repeat(600) });
const REQUEST = [
  "POST /a/b?q=1 HTTP/1.1",
  "Host: app.example",
  "Authorization: Basic YTpi",
  "X-API-Key: some-key",
  "Origin: https://other.example",
  "Accept-Encoding: gzip",
  "Content-Type: application/json",
  `Content-Length: ${BODY.length}`,
  "",
  BODY,
].join("\r\n");

/** Sends the first `bytes` of the request and resets the connection, at once or when something has come back. */
async function abandon(port: number, bytes: number, waitsForAnswer: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(own) {
        own.terminate();
        resolve();
      },
      close: () => resolve(),
      error: () => resolve(),
    },
  });
  socket.write(REQUEST.slice(0, bytes));
  socket.flush();
  if (!waitsForAnswer) socket.terminate();
  await promise;
}

/** Pieces that come one after the other, so that there is an answer to break off. */
function slowAnswer(): Response {
  let left = 20;
  return new Response(
    new ReadableStream({
      async pull(controller) {
        await Bun.sleep(1);
        if (left-- > 0) controller.enqueue(Buffer.alloc(2000, "z"));
        else controller.close();
      },
    }),
    { headers: { "Content-Type": "text/plain" } },
  );
}

describe.each(plugins.map((plugin) => [plugin.name, plugin] as const))("%s", (name, plugin) => {
  test("survives clients that disconnect at every stage", async () => {
    const scene = await pluginScene({
      answer: slowAnswer,
      consumers: [{ username: "alice" }, { username: "guest" }],
    });
    try {
      await scene.apply({
        services: [
          { name: "web", targets: [{ port: scene.originPort }] },
          { name: "canary", targets: [{ port: scene.originPort }] },
        ],
        plugins: [{ name, config: plugin.example }],
      });
      const { port } = scene.plane;
      const head = REQUEST.indexOf("\r\n\r\n") + 4;
      const cuts = [
        1,
        30,
        head - 2,
        head,
        head + 1,
        head + 300,
        REQUEST.length - 1,
        REQUEST.length,
      ];
      await Promise.all(cuts.map((bytes) => abandon(port, bytes, false)));
      await Promise.all(Array.from({ length: 4 }, () => abandon(port, REQUEST.length, true)));
      const after = await fetch(`${scene.plane.url}/after`, { redirect: "manual" });
      await after.arrayBuffer();
      expect(scene.plane.log.filter(({ message }) => message === "a plugin failed")).toEqual([]);
      // Everything has ended by itself: nothing has to be cut.
      expect(await scene.plane.drain(10_000)).toBe(0);
    } finally {
      await scene.stop();
    }
  });

  test("needs no header field that a client may omit", async () => {
    const scene = await pluginScene({ consumers: [{ username: "alice" }, { username: "guest" }] });
    try {
      await scene.apply({ plugins: [{ name, config: plugin.example }] });
      for (const text of [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: null\r\n\r\n",
      ]) {
        const answer = Promise.withResolvers<string>();
        const socket = await Bun.connect({
          hostname: "127.0.0.1",
          port: scene.plane.port,
          socket: {
            data: (_, chunk) => answer.resolve(chunk.toString("latin1")),
            close: () => answer.resolve(""),
          },
        });
        socket.write(text);
        const line = (await answer.promise).split("\r\n")[0] ?? "";
        socket.end();
        if (line !== "") expect(line).not.toContain(" 500 ");
      }
      expect(scene.plane.log.filter(({ message }) => message === "a plugin failed")).toEqual([]);
    } finally {
      await scene.stop();
    }
  });
});

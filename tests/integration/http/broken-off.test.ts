// Responses that the gateway ends because of their target: one line in the log, and no abort of the client.
import { expect, test } from "bun:test";
import { connect } from "node:http2";
import { connectRaw } from "../../support/raw-http.ts";
import { eventually } from "../../support/poll.ts";
import { GET, startScriptedScene } from "../../support/scripted-scene.ts";

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

test.each([
  ["stops within a length", `${HEAD}Content-Length: 9999\r\n\r\nxxx`, 504],
  ["stops between chunks", `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n`, 504],
  ["sends no chunk", `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\nzz\r\n`, 502],
] as const)("a target that %s", async (_, script, status) => {
  for (const protocol of ["http/1.1", "h2c"] as const) {
    const { gateway, origin, port, stop } = await startScriptedScene({
      service: { read_timeout: 300, retries: { count: 0 } },
    });
    origin.answer = (_request, connection) => {
      connection.write(script);
      return null;
    };
    const lines = () => gateway.log.filter(({ message }) => message === "request failed");
    if (protocol === "http/1.1") {
      const client = await connectRaw({ port });
      client.write(GET);
      await client.untilClosed();
    } else {
      const session = connect(gateway.url);
      session.on("error", () => undefined);
      const stream = session.request({ ":path": "/" });
      stream.on("error", () => undefined);
      stream.resume();
      await new Promise((resolve) => stream.on("close", resolve));
      session.destroy();
    }
    await eventually(() => lines().length > 0);
    expect(lines().map(({ fields }) => fields["status"])).toEqual([status]);
    expect(gateway.board.get(0, "aborted_requests")).toBe(0);
    await stop();
  }
});

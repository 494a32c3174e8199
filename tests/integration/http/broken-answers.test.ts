// Responses that break off: the client gets 502 or an aborted response, never one that looks complete.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { GET, type ScriptedScene, startScriptedScenes } from "../../support/scripted-scene.ts";

describe.each(engines)("%s engine:", (engine) => {
  let scene: ScriptedScene;
  let streaming: ScriptedScene;
  beforeAll(async () => {
    ({ scene, streaming } = await startScriptedScenes(engine));
  });
  afterAll(() => Promise.all([scene.stop(), streaming.stop()]));

  const OK = "HTTP/1.1 200 OK\r\n";

  describe("a truncated response never looks complete", () => {
    const long = "x".repeat(5000);
    const rows: [answer: string, why: string][] = [
      [`${OK}Content-Length: 10000\r\n\r\n${long}`, "shorter than its length"],
      [
        `${OK}Content-Type: text/plain\r\nContent-Length: 10000\r\n\r\n${long}`,
        "the same with a type",
      ],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n1388\r\n${long}\r\n`, "no last chunk"],
      [`${OK}Transfer-Encoding: chunked\r\n\r\n2710\r\n${long}`, "in the middle of a chunk"],
      // RFC 9112 section 8: it is complete behind the last chunk, see lenient-responses.test.ts.
      [`${OK}Transfer-Encoding: chunked\r\n\r\n1388\r\n${long}\r\n0`, "in the last chunk"],
      [
        `${OK}Transfer-Encoding: chunked\r\n\r\n1388\r\n${long}\r\n0\r\nX: y\r\n`,
        "in the trailers",
      ],
    ];
    const ways = ["end", "reset"] as const;
    test.each(rows.flatMap(([answer, why]) => ways.map((way) => [why, way, answer] as const)))(
      "%s, by %s, while it is streamed",
      async (_, way, answer) => {
        const client = await connectRaw({ port: streaming.port });
        streaming.origin.answer = (_request, connection) => {
          connection.write(answer);
          return null;
        };
        client.write(GET);
        await client.until("xxx");
        streaming.origin.connections.at(-1)?.[way]();
        const { answers, received } = read(await client.untilClosed(), true);
        expect(answers[0]).toMatchObject({ status: 200, isComplete: false });
        expect(received).not.toEndWith("0\r\n\r\n");
      },
    );

    test.each(rows.map(([answer, why]) => [why, answer] as const))(
      "%s, in one piece with the close: 502 or aborted",
      async (_, answer) => {
        for (const each of [scene, streaming]) {
          const { answers, received } = await each.ask((_request, connection) => {
            connection.write(answer);
            connection.end();
            return null;
          });
          if (answers[0]?.status !== 502) expect(answers[0]?.isComplete ?? false).toBe(false);
          expect(received).not.toEndWith("0\r\n\r\n");
        }
      },
    );

    test("a bad chunk during streaming aborts the response", async () => {
      const client = await connectRaw({ port: streaming.port });
      streaming.origin.answer = `${OK}Transfer-Encoding: chunked\r\n\r\n1388\r\n${long}\r\n`;
      client.write(GET);
      await client.until("xxx");
      streaming.origin.connections.at(-1)?.write("zz\r\n");
      const { answers } = read(await client.untilClosed(), true);
      expect(answers[0]).toMatchObject({ status: 200, isComplete: false });
    });

    test.each([
      ["", "without a byte"],
      ["HTTP/1.1 200", "in the status line"],
      [`${OK}Content-Le`, "in the head"],
      [`HTTP/1.1 100 Continue\r\n\r\n`, "after an interim answer"],
    ])("closed with %j: 502 (%s)", async (answer) => {
      const { outcome, answers } = await scene.ask((_request, connection) => {
        connection.write(answer);
        connection.end();
        return null;
      }, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
      expect(outcome).toBe("502");
      expect(answers[0]?.header("proxy-status")).toMatch(
        /connection_terminated|http_response_incomplete/,
      );
    });

    test("ended by a reset instead of a close: aborted", async () => {
      const client = await connectRaw({ port: scene.port });
      scene.origin.answer = (_request, connection) => {
        connection.write(`${OK}\r\n${"x".repeat(5000)}`);
        return null;
      };
      client.write(GET);
      await client.until("xxx");
      scene.origin.connections.at(-1)?.reset();
      const { answers } = read(await client.untilClosed(), true);
      expect(answers[0]?.isComplete ?? false).toBe(false);
    });
  });
});

// Responses of devices and scripts that are not strictly valid: what they mean passes in valid form, and no other request gets
// anything of their connections. With `response_parsing: "strict"` they are 502: ../http/response-framing.test.ts.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { engines } from "../../support/engines.ts";
import { H2Client } from "../../support/h2-client.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";

interface Scene {
  readonly origin: Origin;
  readonly gateway: RunningDataPlane;
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const EVIL = `${OK}Content-Length: 4\r\n\r\nevil`;

/** The response to a request without a special one: its own path. */
const plain = (target: string) => reply(target);

const rows: [response: string, body: string, why: string][] = [
  ["HTTP/1.1 200 OK\nX: y\nContent-Length: 2\n\nok", "ok", "lines end in LF"],
  ["HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\n\nok", "ok", "the fields of a script end in LF"],
  [`${OK}X: y\nContent-Length: 2\r\n\r\nok`, "ok", "one line ends in LF"],
  [`${OK}X: y\r\nContent-Length: 2\n\r\nok`, "ok", "the last line ends in LF"],
  [`HTTP/1.1 200 OK\nX: y\nContent-Length: 4\n\n\r\n\r\n`, "\r\n\r\n", "LF, and the body is CRLF"],
  [`${OK}X: y\r\r\nContent-Length: 2\r\r\n\r\r\nok`, "ok", "a program that writes CRLF as text"],
  [`\r\n${OK}X: y\r\nContent-Length: 2\r\n\r\nok`, "ok", "an empty line before"],
  [`\r\n\r\n${OK}X: y\r\nContent-Length: 2\r\n\r\nok`, "ok", "two of them"],
  [`\n\nHTTP/1.1 200 OK\nX: y\nContent-Length: 2\n\nok`, "ok", "two of LF"],
  [
    "HTTP/1.1  200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\nok",
    "ok",
    "two blanks in the status line",
  ],
  ["HTTP/1.2 200 OK\r\nX: y\r\nContent-Length: 2\r\n\r\nok", "ok", "a minor version"],
  [`${OK}X:\r\n y\r\nContent-Length: 2\r\n\r\nok`, "ok", "a folded line"],
  [`${OK}Content-Length:\r\n\t2\r\nX: y\r\n\r\nok`, "ok", "a folded length"],
  [`${OK}X : y\r\nContent-Length \t: 2\r\n\r\nok`, "ok", "blanks before the colon"],
  [
    `${OK}Server\r\n goes on\r\nX: y\r\nContent-Length: 2\r\n\r\nok`,
    "ok",
    "a line without a colon",
  ],
  [`${OK}${OK}X: y\r\nContent-Length: 2\r\n\r\nok`, "ok", "the status line twice"],
  [`${OK}X: y\r\nContent-Length: 2, 2\r\n\r\nok`, "ok", "a list of one length"],
  [`${OK}X: y\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok`, "ok", "identity"],
  [`${OK}X: y\r\nTransfer-Encoding:\r\nContent-Length: 2\r\n\r\nok`, "ok", "no coding"],
  [`${OK}X: y\r\nContent-Length: 2\r\n\r\nokXX`, "ok", "bytes beyond the length"],
  [`${OK}X: y\r\nContent-Length: 2\r\n\r\nok${EVIL}`, "ok", "a second response"],
  [`${OK}X: y\r\nContent-Length: 0\r\n\r\n${EVIL}`, "", "a second response behind none"],
  [`${CHUNKED}2\r\nok\r\n0\r\n\r\n${EVIL}`, "ok", "a second response behind chunks"],
  [`${CHUNKED}2  \r\nok\r\n0\t\r\n\r\n`, "ok", "blanks behind a size"],
  [`${CHUNKED} 2\r\nok\r\n 0 \r\n\r\n`, "ok", "blanks around a size"],
  [`${CHUNKED}2 ;a=b\r\nok\r\n0\r\n\r\n`, "ok", "a blank before an extension"],
  [`${CHUNKED}2\nok\n0\n\n`, "ok", "chunks with LF"],
  [`${CHUNKED}2;a=b\nok\r\n0\r\nT: 1\n\n`, "ok", "an extension and a trailer with LF"],
  [`${CHUNKED}2\r\nok\r\n0\r\nno trailer\r\n\r\n`, "ok", "a trailer that is none"],
  [
    `${OK}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    "ok",
    "both framings: the coding counts (RFC 9112 section 6.3)",
  ],
  [
    `${OK}Content-Length: 2\r\nContent-Length: 3\r\nTransfer-Encoding : chunked\r\n\r\n`,
    "502",
    "two lengths",
  ],
  [
    `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    "ok",
    "chunked named twice",
  ],
  [
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "ok",
    "chunked in HTTP/1.0",
  ],
  ["HTTP/1.1 204 No Content\r\n\r\nok", "", "a body behind 204"],
  ["HTTP/1.1 204 No Content\nContent-Length: 2\n\nok", "", "a body behind 204, with LF"],
  ["HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", "", "a body behind 304"],
  [
    `HTTP/1.1 103 Early Hints\nX: 1\n\n${OK}Content-Length: 2\r\n\r\nok`,
    "ok",
    "an interim response",
  ],
  [`${OK} X: y\r\nContent-Length: 2\r\n\r\nok`, "502", "a folded status line"],
  [`${OK}X: y\rZ: y\nContent-Length: 2\r\n\r\nok`, "502", "CR within a line"],
  [`${OK}X Y: z\nContent-Length: 2\r\n\r\nok`, "502", "a name with a blank"],
  [`${OK}X: y\nContent-Length: 2\nContent-Length: 3\n\nok!`, "502", "two lengths with LF"],
  [`${OK}X: y\nContent-Length: 2, 3\n\nok!`, "502", "a list of two lengths"],
  [`${OK}X: y\nTransfer-Encoding: gzip, chunked\n\n2\nok\n0\n\n`, "502", "another coding"],
  [`${CHUNKED}2 0\r\nok\r\n0\r\n\r\n`, "502", "a blank within a size"],
  [`${CHUNKED} \r\nok\r\n0\r\n\r\n`, "502", "no size but a blank"],
  [`${CHUNKED}2\r\nok\r0\r\n\r\n`, "502", "CR alone behind a chunk"],
];

const responses = new Map(rows.map(([response], at) => [`/${at}`, response]));

describe.each(engines.flatMap((engine) => [true, false].map((isTls) => [engine, isTls] as const)))(
  "%s engine, targets with TLS: %p:",
  (engine, isTls) => {
    let scene: Scene;
    let streaming: Scene;

    async function startScene(responseBufferBytes: number): Promise<Scene> {
      const tls = isTls ? { tls: await selfSigned("localhost") } : {};
      const origin = startOrigin({
        ...tls,
        answer: ({ target }) => responses.get(target) ?? plain(target),
      });
      const gateway = await startDataPlane({
        listener: { engine },
        services: [
          {
            name: "device",
            protocol: isTls ? "https" : "http",
            tls: { verify: false },
            targets: [{ port: origin.port }],
            response_buffer_bytes: responseBufferBytes,
          },
        ],
        routes: [{ name: "all", service_id: "device" }],
      });
      return { origin, gateway };
    }

    beforeAll(async () => {
      [scene, streaming] = await Promise.all([startScene(1_048_576), startScene(0)]);
    });
    afterAll(async () => {
      for (const { origin, gateway } of [scene, streaming]) {
        expect(await gateway.drain(3000)).toBe(0);
        origin.stop();
      }
    });

    const ask = ({ gateway: { port } }: Scene, target: string, method = "GET", answers = 1) =>
      exchange(`${method} ${target} HTTP/1.1\r\nHost: h\r\n\r\n`, {
        port,
        methods: [method],
        answers,
      });

    test.each(rows.map(([response, body, why], at) => [why, at, response, body] as const))(
      "%s (%d)",
      async (_, at, response, body) => {
        for (const each of [scene, streaming]) {
          await ask(each, "/before");
          const { answers, rest, outcome } = await ask(each, `/${at}`);
          const { connection } = each.origin.requests.at(-1) ?? { connection: -1 };
          await eventually(() => each.origin.connections[connection]?.isClosed);
          expect((await ask(each, "/after")).answers[0]).toMatchObject({ body: "/after" });
          const [answer] = answers;
          // A failure within a body that is streamed aborts it.
          if (body === "502") {
            if (answer?.status === 200) expect(answer.isComplete).toBe(false);
            else expect(outcome).toBe("502");
            continue;
          }
          expect(answer).toMatchObject({ body, isComplete: true });
          expect(answer?.status).toBe(Number(/(204|304|200)/.exec(response)?.[1]));
          expect(rest).toBe("");
          const lengths = /^content-length: .*$/gim.exec(answer?.raw ?? "") ?? [];
          const codings = /^transfer-encoding: .*$/gim.exec(answer?.raw ?? "") ?? [];
          expect(lengths.length + codings.length).toBeLessThanOrEqual(1);
          if (/\bX:? ?:(\r\n)? ?y/.test(response)) expect(answer?.header("x")).toBe("y");
        }
      },
    );

    test("a body behind the head for HEAD is nobody's, at once or a moment later", async () => {
      const { origin } = scene;
      for (const isLater of [false, true]) {
        const usual = origin.answer;
        origin.answer = ({ target, method }, connection) => {
          if (method !== "HEAD") return plain(target);
          const head = `${OK}Content-Length: ${EVIL.length}\r\n\r\n`;
          if (!isLater) return `${head}${EVIL}`;
          connection.write(head);
          setTimeout(() => connection.write(EVIL), 20);
          return null;
        };
        const { answers, rest } = await ask(scene, "/head", "HEAD");
        const { connection } = origin.requests.at(-1) ?? { connection: -1 };
        expect(answers[0]?.header("content-length")).toBe(String(EVIL.length));
        expect(rest).toBe("");
        for (let at = 0; at < 20; at++)
          expect((await ask(scene, `/next${at}`)).answers[0]?.body).toBe(`/next${at}`);
        await eventually(() => origin.connections[connection]?.isClosed);
        origin.answer = usual;
      }
    });

    test.each([
      ["0\r\n", true],
      ["0\n", true],
      ["0\r\n\r", true],
      ["0\r\nT: 1\r\n", false],
      ["0\r\nT", false],
      ["0\r", false],
      ["0", false],
      ["", false],
    ])("a connection that ends behind %j ends a body of chunks: %p", async (end, isWhole) => {
      for (const each of [scene, streaming]) {
        const usual = each.origin.answer;
        each.origin.answer = (_, connection) => {
          connection.write(`${CHUNKED}2\r\nok\r\n${end}`);
          connection.end();
          return null;
        };
        const { answers } = await ask(each, "/ends");
        each.origin.answer = usual;
        const [answer] = answers;
        if (isWhole) expect(answer).toMatchObject({ status: 200, body: "ok", isComplete: true });
        else expect(answer?.status === 200 && answer.isComplete).toBe(false);
        expect((await ask(each, "/after")).answers[0]).toMatchObject({ body: "/after" });
      }
    });

    test("of a large body with bytes behind it all arrives, and they do not", async () => {
      const bytes = 5_000_000;
      const usual = scene.origin.answer;
      for (const each of [scene, streaming]) {
        each.origin.answer = ({ target }) =>
          target === "/large"
            ? `${OK}Content-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}${EVIL}`
            : plain(target);
        const { answers, rest } = await ask(each, "/large");
        expect(answers[0]).toMatchObject({ status: 200, isComplete: true });
        expect(answers[0]?.body.length).toBe(bytes);
        expect(answers[0]?.body.indexOf("e")).toBe(-1);
        expect(rest).toBe("");
        expect((await ask(each, "/after")).answers[0]?.body).toBe("/after");
        each.origin.answer = usual;
      }
    });

    test("an empty Content-Type stays the only one, and empty", async () => {
      const usual = scene.origin.answer;
      for (const each of [scene, streaming])
        for (const framing of [
          "Content-Length: 2\r\n\r\nok",
          "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ]) {
          each.origin.answer = `${OK}Content-Type:\r\n${framing}`;
          const { answers } = await ask(each, "/");
          const types = answers[0]?.raw.match(/^content-type:.*$/gim) ?? [];
          expect(types.map((line) => line.trimEnd().toLowerCase())).toEqual(["content-type:"]);
          each.origin.answer = usual;
        }
    });

    test("clients between each other get their own responses and nothing else", async () => {
      const targets = rows.map(([, body], at) => ({ target: `/${at}`, body }));
      const wrong: string[] = [];
      const client = async (from: number) => {
        for (let at = 0; at < 3 * targets.length; at++) {
          const own = `/own-${from}-${at}`;
          const { target, body } = targets[(from * 7 + at) % targets.length] ?? targets[0]!;
          const [odd, usual] = await Promise.all([ask(streaming, target), ask(streaming, own)]);
          if (usual.answers[0]?.body !== own || usual.rest !== "") wrong.push(usual.received);
          if (odd.received.includes("evil")) wrong.push(odd.received);
          if (body !== "502" && odd.answers[0]?.body !== body) wrong.push(odd.received);
        }
      };
      await Promise.all(Array.from({ length: 6 }, (_, from) => client(from)));
      expect(wrong).toEqual([]);
    });

    if (engine === "sluice")
      test("the same over HTTP/2", async () => {
        const client = await H2Client.connect({ port: scene.gateway.port });
        const get = async (target: string) => {
          const stream = client.headers([
            [":method", "GET"],
            [":scheme", "http"],
            [":authority", "h"],
            [":path", target],
          ]);
          return client.result(stream);
        };
        for (const [at, [response, body]] of rows.entries()) {
          const own = `/own-${at}`;
          const [odd, usual] = await Promise.all([get(`/${at}`), get(own)]);
          expect(usual).toMatchObject({ status: 200, body: own });
          if (body === "502") expect(odd.outcome).toMatch(/^(502|reset)$/);
          else expect([response, odd.body, odd.isComplete]).toEqual([response, body, true]);
        }
        client.close();
      });
  },
);

// RFC 9112 sections 2 to 9 as rows, over raw sockets: what each requirement of a server and gateway means on the wire.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import { type Answer, type OriginConnection, reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { read } from "../../support/raw-exchange.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";
import { bodyRules } from "./rfc9112-bodies.ts";
import { connectionRules } from "./rfc9112-connections.ts";
import { messageRules } from "./rfc9112-messages.ts";
import type { Expected, Rule } from "./rfc9112-rule.ts";

const rules = [...messageRules, ...bodyRules, ...connectionRules].map(
  (rule) => [rule.section, rule.rule, rule] as const,
);

test("each rule has a name of its own", () => {
  expect(new Set(rules.map(([, name]) => name)).size).toBe(rules.length);
});

describe.each(engines)("%s engine:", (engine) => {
  let scene: ScriptedScene;
  beforeAll(async () => {
    scene = await startScriptedScene({ listener: { engine } });
    await scene.gateway.apply({
      services: [
        {
          name: "streaming",
          targets: [{ port: scene.origin.port }],
          response_buffer_bytes: 0,
        },
      ],
      routes: [{ name: "streams", service_id: "streaming", paths: ["/stream"] }],
    });
  });
  afterAll(() => scene.stop());

  /** What both ends see of the bytes, with the fields that are expected. */
  async function serve({ send, script = reply() }: Rule, expected: Expected) {
    const { origin } = scene;
    await scene.ask(reply("before"));
    const requests = origin.requests.length;
    const lengths = origin.connections.map(({ received }) => received.length);
    const count = expected.outcome === "closed" ? 0 : expected.outcome.split(" ").length;
    // One response more than is expected comes with the end of the connection.
    const answers = count + (expected.isClosed === true ? 1 : 0);
    const method = send.slice(0, send.indexOf(" "));
    const seen = await scene.ask(script, send, { answers, methods: [method, "GET", "GET"] });
    const last = origin.requests.at(-1)?.connection ?? 0;
    const canary = await scene.ask(reply("canary"));
    if (expected.isKept === false) await eventually(() => origin.connections[last]?.isClosed);
    const ofCanary = origin.requests.at(-1)?.connection;
    const request = origin.connections
      .map((connection, at) => {
        const text = connection.received.slice(lengths[at] ?? 0);
        return at === ofCanary ? text.slice(0, text.lastIndexOf("GET / HTTP/1.1\r\n")) : text;
      })
      .join("");
    return {
      outcome: seen.outcome,
      target: origin.requests
        .slice(requests, -1)
        .map((request) => `${request.method} ${request.target}`),
      isClosed: seen.isClosed,
      isComplete: seen.answers.at(-1)?.isComplete ?? true,
      isKept: origin.connections[last]?.isClosed === false,
      canary: canary.answers[0]?.body,
      response: seen.received,
      request,
    };
  }

  test.each(rules)("%s: %s", async (_, __, rule) => {
    const expected: Expected = { isComplete: true, ...rule, ...rule.limits?.[engine] };
    const { outcome, target, isComplete, isClosed, isKept } = expected;
    const { response, request, ...seen } = await serve(rule, expected);
    expect(seen).toMatchObject({
      outcome,
      target: [...target],
      isComplete,
      canary: "canary",
      ...(isClosed === undefined ? {} : { isClosed }),
      ...(isKept === undefined ? {} : { isKept }),
    });
    expect(response).toMatch(expected.response ?? /^/);
    expect(response).not.toMatch(expected.noResponse ?? /(?!)/);
    expect(request).toMatch(expected.request ?? /^/);
    expect(request).not.toMatch(expected.noRequest ?? /(?!)/);
  });

  test("8: a reset ends no response without length and coding: it is not complete", async () => {
    const opened = Promise.withResolvers<OriginConnection>();
    scene.origin.answer = (_, connection) => {
      connection.write("HTTP/1.1 200 OK\r\n\r\npart");
      opened.resolve(connection);
      return null;
    };
    const client = await connectRaw({ port: scene.port });
    client.write("GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    await client.until("part");
    (await opened.promise).reset();
    const { answers } = read(await client.untilClosed(), true);
    expect(answers[0]).toMatchObject({ status: 200, isComplete: false });
  });

  test("8: half a request is none, whatever ends it", async () => {
    const before = scene.origin.requests.length;
    for (const [head, body] of [
      ["Content-Length: 5", "half"],
      ["Transfer-Encoding: chunked", "4\r\nhalf\r\n"],
    ] as const)
      for (const way of ["end", "close", "reset"] as const) {
        const client = await connectRaw({ port: scene.port });
        client.write(`POST / HTTP/1.1\r\nHost: h\r\n${head}\r\n\r\n${body}`);
        client[way]();
        if (way === "end") await client.untilClosed();
      }
    expect((await scene.ask(reply("canary"))).answers[0]?.body).toBe("canary");
    expect(scene.origin.requests.length).toBe(before + 1);
  });

  test("9.2: bytes without a request are no response, and end the connection to the target", async () => {
    await scene.ask(reply());
    const kept = scene.origin.connections.filter(({ isClosed }) => !isClosed);
    for (const connection of kept) connection.write(reply("evil"));
    await eventually(() => kept.every(({ isClosed }) => isClosed));
    expect(kept.length).toBeGreaterThan(0);
    expect((await scene.ask(reply("own"))).answers[0]?.body).toBe("own");
  });

  test("9.3.1: a GET on a connection that the target has closed is sent again, a POST that reached it is not", async () => {
    // The target of the others has sent surplus bytes, so that its connections are not used again at once.
    const own = await startScriptedScene({ listener: { engine } });
    for (const [method, outcome] of [
      ["GET", "200"],
      ["POST", "502"],
    ] as const) {
      await own.ask(reply());
      const before = own.origin.requests.length;
      let isFirst = true;
      const seen = await own.ask((): Answer => {
        const answer = isFirst ? "close" : reply();
        isFirst = false;
        return answer;
      }, `${method} / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`);
      expect([method, seen.outcome]).toEqual([method, outcome]);
      expect(own.origin.requests.length - before).toBe(outcome === "200" ? 2 : 1);
    }
    await own.stop();
  });

  test("9.5: a response that comes before the end of a request ends it", async () => {
    const early = await startScriptedScene({ listener: { engine }, early: true });
    early.origin.answer = reply("no", { status: "413 Too Large" });
    const client = await connectRaw({ port: early.port });
    client.write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\nbegin");
    await client.until("HTTP/1.1 413 ");
    client.close();
    await early.stop();
  });
});

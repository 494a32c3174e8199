// Misbehaving targets: what the client sees, what the log says, what counts against the target, and that no connection leaks.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type FullQueue, startFullQueue } from "../../support/full-queue.ts";
import { type Answer, type Answerer, type OriginConnection, reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { request, startTargetScene, type TargetScene } from "../../support/target-scene.ts";

const GET = request("GET");
const lastReply = reply("last", { headers: "Connection: close\r\n" });
const HEAD = "HTTP/1.1 200 OK\r\n";
const INVALID = "the response was not valid HTTP";

interface Row {
  readonly why: string;
  /** What the origin does with a request. */
  readonly does: Answer | Answerer;
  readonly request?: string;
  /** Status of the response; `closed`: none that is complete. */
  readonly outcome: string;
  /** `error` in the log; null: the gateway logs no failure. */
  readonly error: string | null;
  /** What counts against the target; null: nothing. */
  readonly held: string | null;
  /** Whether the connection is kept for another request. */
  readonly isKept: boolean;
}

/** Writes the pieces one after another and then does `end`. */
const script =
  (
    pieces: readonly (string | Uint8Array)[],
    end: (connection: OriginConnection) => void = () => {},
  ) =>
  (_: unknown, connection: OriginConnection) => {
    for (const piece of pieces) connection.write(piece);
    end(connection);
    return null;
  };
const close = (connection: OriginConnection) => connection.end();
const reset = (connection: OriginConnection) => connection.reset();

const broken = { isKept: false, outcome: "502" };
const invalid = { ...broken, error: "http_protocol_error", held: INVALID };
const noAnswer = {
  ...broken,
  error: "connection_terminated",
  held: "the target closed the connection without a response",
};
const half = {
  ...broken,
  error: "http_response_incomplete",
  held: "the target closed the connection in the middle of the response",
};
const good = { outcome: "200", error: null, held: null };
const late = {
  isKept: false,
  outcome: "504",
  error: "http_response_timeout",
  held: "the target did not respond in time",
};

const rows: readonly Row[] = [
  { why: "accepts and never answers", does: null, ...late },
  { why: "sends half a head and no more", does: script([`${HEAD}X-Half: `]), ...late },
  {
    why: "sends an interim response and no other",
    does: script(["HTTP/1.1 102 Processing\r\n\r\n"]),
    ...late,
  },
  {
    why: "sends interim responses for ever",
    does: script(["HTTP/1.1 102 Processing\r\n\r\n".repeat(9)]),
    ...invalid,
  },
  {
    why: "sends interim responses of more than 64 KB",
    does: script([`HTTP/1.1 103 Early Hints\r\nLink: ${"x".repeat(33_000)}\r\n\r\n`.repeat(2)]),
    ...invalid,
  },
  { why: "closes without a byte", does: "close", ...noAnswer },
  { why: "resets after it has read the request", does: script([], reset), ...noAnswer },
  { why: "closes in the head", does: script([`${HEAD}X-Ha`], close), ...half },
  { why: "resets in the head", does: script([`${HEAD}X-Ha`], reset), ...half },
  {
    why: "closes after an interim answer",
    does: script(["HTTP/1.1 100 Continue\r\n\r\n"], close),
    ...noAnswer,
  },
  {
    why: "closes in a body with a length",
    does: script([`${HEAD}Content-Length: 9\r\n\r\nhalf`], close),
    ...half,
  },
  {
    why: "closes in a chunk",
    does: script([`${HEAD}Transfer-Encoding: chunked\r\n\r\n9\r\nhalf`], close),
    ...half,
    outcome: "closed",
  },
  { why: "sends garbage", does: "\x16\x03\x01\x02\x00 no HTTP\r\n\r\n", ...invalid },
  { why: "speaks another protocol first", does: "SSH-2.0-OpenSSH_9.2\r\n\r\n", ...invalid },
  { why: "sends HTTP/2", does: "HTTP/2 200\r\n\r\n", ...invalid },
  {
    why: "sends more than its length",
    does: `${HEAD}Content-Length: 2\r\n\r\nok and more`,
    ...invalid,
  },
  {
    why: "sends two lengths",
    does: `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`,
    ...invalid,
  },
  {
    why: "sends a chunk size that is none",
    does: `${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\nok`,
    ...invalid,
  },
  {
    why: "sends a chunk longer than it says",
    does: `${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nok too\r\n0\r\n\r\n`,
    ...invalid,
  },
  {
    why: "sends bytes after the last chunk",
    does: `${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n`,
    ...invalid,
  },
  {
    why: "sends a head of 100 MB",
    // Piece by piece: creating all of it at once takes longer than the response timeout.
    does: async (_, connection) => {
      const field = `X-Long: ${"x".repeat(1_048_576)}\r\n`;
      connection.write(HEAD);
      for (let at = 0; at < 100; at++) {
        connection.write(field);
        await new Promise((next) => setImmediate(next));
      }
      return null;
    },
    ...invalid,
    error: "http_response_header_section_size",
  },
  {
    why: "is overloaded",
    does: reply("busy", { status: "503 Busy", headers: "Retry-After: 7\r\n" }),
    outcome: "503",
    error: null,
    held: "the target responded with status 503",
    isKept: true,
  },
  {
    why: "answers with an error of its own",
    does: reply("x", { status: "500 Oops" }),
    ...good,
    outcome: "500",
    isKept: true,
  },
  {
    why: "says first that it has begun",
    does: script(["HTTP/1.1 102 Processing\r\n\r\n", reply()]),
    ...good,
    isKept: true,
  },
  {
    why: "answers slowly, piece by piece",
    does: async (_, connection) => {
      for (const piece of [HEAD, "Content-Length: 2\r\n", "\r\n", "o", "k"]) {
        await Bun.sleep(30);
        connection.write(piece);
      }
      return null;
    },
    ...good,
    isKept: true,
  },
];

describe("a target that", () => {
  let scene: TargetScene;
  beforeAll(async () => {
    scene = await startTargetScene({
      targets: 1,
      service: {
        response_timeout: 1500,
        response_parsing: "strict",
        health: { passive: { consecutive_failures: 1000 } },
      },
    });
  });
  afterAll(() => scene.stop());

  test.each(rows.map((row) => [row.why, row] as const))("%s", async (_, row) => {
    const [origin] = scene.origins as [TargetScene["origins"][0]];
    origin.answer = lastReply;
    await scene.send(GET);
    await eventually(() => scene.open(0) === 0);
    const failures = () =>
      scene.gateway.targets.get(scene.gateway.targets.rowOf("app-0"), "failures");
    const [asked, logged, connections] = [
      origin.requests.length,
      scene.gateway.log.length,
      origin.connections.length,
    ];
    expect(failures()).toBe(0);
    origin.answer = row.does;
    const { answers, outcome } = await scene.send(GET);
    expect(answers[0]?.isComplete === true ? outcome : "closed").toBe(row.outcome);
    expect(origin.requests.length - asked).toBe(1);
    const { error } = scene.lastFailure();
    expect(scene.gateway.log.length > logged ? error : null).toBe(row.error);
    if (row.error !== null && answers[0]?.isComplete)
      expect(answers[0].header("proxy-status")).toContain(row.error);
    expect(failures()).toBe(row.held === null ? 0 : 1);
    if (row.held !== null) expect(scene.health(0).lastError).toBe(row.held);
    expect(scene.active(0)).toBe(0);
    await eventually(() => scene.open(0) === (row.isKept ? 1 : 0));
    // And the next request is not touched by it.
    origin.answer = reply("after");
    expect((await scene.send(GET)).answers[0]?.body).toBe("after");
    expect(origin.connections.length - connections).toBe(row.isKept ? 1 : 2);
    expect(failures()).toBe(0);
  });
});

describe("a target that cannot be reached", () => {
  let queue: FullQueue;
  beforeAll(async () => {
    queue = await startFullQueue();
  });
  afterAll(() => queue.stop());

  test.each([
    ["refuses", "502", "connection_refused", "the target refused the connection"],
    [
      "does not accept",
      "504",
      "connection_timeout",
      "the target did not accept the connection in time",
    ],
  ] as const)("%s", async (why, outcome, error, held) => {
    const scene = await startTargetScene({ targets: 1, service: { connect_timeout: 200 } });
    if (why === "refuses") scene.origins[0]!.stop();
    else
      await scene.gateway.apply({
        services: [{ ...scene.service, connect_timeout: 200, targets: [{ port: queue.port }] }],
      });
    expect((await scene.send(GET)).outcome).toBe(outcome);
    expect(scene.lastFailure().error).toBe(error);
    expect(scene.health(0).lastError).toBe(held);
    expect(scene.active(0)).toBe(0);
    await scene.stop();
  });
});

describe("failures in a row", () => {
  /** Two targets with the default policy; the first misbehaves all the time. */
  async function misbehaving(does: Answer | Answerer, requests: number, bytes = GET) {
    const scene = await startTargetScene({
      service: { response_buffer_bytes: 0, retries: { count: 0 } },
    });
    scene.origins[0]!.answer = does;
    for (let count = 0; count < requests; count++) await scene.send(bytes);
    return scene;
  }

  test.each([
    ["closes", "close" as Answer],
    [
      "breaks every body off",
      script([`${HEAD}Content-Length: 9000\r\n\r\n${"x".repeat(5000)}`], close),
    ],
    [
      "breaks every chunked body off",
      script([`${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`], reset),
    ],
    ["sends garbage", "garbage\r\n\r\n"],
    ["is overloaded", reply("busy", { status: "503 Busy" })],
  ])("a target that %s is ejected after five", async (_, does) => {
    const scene = await misbehaving(does, 5);
    expect(scene.health(0)).toMatchObject({ state: "unhealthy", by: "passive" });
    for (let count = 0; count < 3; count++) expect((await scene.send(GET)).outcome).toBe("200");
    expect(scene.counts()).toEqual([5, 3]);
    await scene.stop();
  });

  test("one good response among them, and it stays", async () => {
    let count = 0;
    const scene = await misbehaving(() => (++count % 5 === 0 ? lastReply : "close"), 14);
    expect(scene.counts()).toEqual([14, 0]);
    expect(scene.health(0).state).not.toBe("unhealthy");
    await scene.stop();
  });

  test("closing an idle connection does not count against it, but one more failure does", async () => {
    const scene = await startTargetScene({ targets: 1 });
    await scene.send(GET);
    scene.origins[0]!.answer = "close";
    expect((await scene.send(request("POST", "Content-Length: 0\r\n"))).outcome).toBe("502");
    expect(scene.health(0).lastError).toBeNull();
    scene.origins[0]!.answer = reply();
    await scene.send(GET);
    scene.origins[0]!.answer = "close";
    expect((await scene.send(GET)).outcome).toBe("502");
    expect(scene.health(0).lastError).toBe(noAnswer.held);
    await scene.stop();
  });

  test("a connection that it closes after an interim response was not idle", async () => {
    const scene = await startTargetScene({ targets: 1 });
    await scene.send(GET);
    scene.origins[0]!.answer = script(["HTTP/1.1 102 Processing\r\n\r\n"], close);
    expect((await scene.send(GET)).outcome).toBe("502");
    expect(scene.counts()).toEqual([2]);
    expect(scene.health(0).lastError).toBe(noAnswer.held);
    await scene.stop();
  });

  test("clients that disconnect before or during the response do not count against it", async () => {
    const scene = await startTargetScene({ service: { retries: { count: 0 } } });
    for (const begun of ["", `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nxxx\r\n`]) {
      scene.origins[0]!.answer = script([begun]);
      for (let round = 0; round < 6; round++) {
        const before = scene.counts()[0]!;
        const client = await connectRaw({ port: scene.gateway.port });
        client.write(GET);
        await scene.origins[0]!.untilRequests(before + 1);
        if (begun !== "") await client.until("xxx");
        client.reset();
        await eventually(() => scene.active(0) === 0 && scene.open(0) === 0);
      }
    }
    expect(scene.health(0)).toMatchObject({ state: "healthy", lastError: null });
    await scene.stop();
  });

  test("the head of an event stream counts as a success", async () => {
    const scene = await startTargetScene({ targets: 1 });
    scene.origins[0]!.answer = script([
      `${HEAD}Content-Type: text/event-stream\r\n\r\ndata: 1\n\n`,
    ]);
    const client = await connectRaw({ port: scene.gateway.port });
    client.write(GET);
    await client.until("data: 1");
    expect(scene.health(0).state).toBe("healthy");
    client.close();
    await scene.stop();
  });
});

describe("an early response during the upload", () => {
  const upload = request("POST", "Content-Length: 3000000\r\n", "x".repeat(1000));

  test.each([
    ["a success", reply("early"), "200", null],
    ["a refusal", reply("early", { status: "413 Too Much" }), "413", null],
    [
      "an overload",
      reply("early", { status: "503 Busy" }),
      "503",
      "the target responded with status 503",
    ],
  ])(
    "%s is forwarded, nothing is retried, and the connection is not reused",
    async (_, answer, outcome, held) => {
      const scene = await startTargetScene({ early: true });
      scene.origins[0]!.answer = answer;
      const client = await connectRaw({ port: scene.gateway.port });
      client.write(upload);
      await client.until("early");
      expect(client.received).toStartWith(`HTTP/1.1 ${outcome} `);
      await eventually(() => scene.open(0) === 0 && scene.active(0) === 0);
      expect(scene.counts()).toEqual([1, 0]);
      expect(scene.health(0).lastError).toBe(held);
      client.close();
      await scene.stop();
    },
  );
});

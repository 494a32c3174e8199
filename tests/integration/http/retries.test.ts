// Which failures are retried on another target, which are not, and what both sides see.
import { afterAll, describe, expect, test } from "bun:test";
import { type Answer, reply } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";
import {
  request,
  startTargetScene,
  type TargetScene,
  type TargetSceneOptions,
} from "../../support/target-scene.ts";

type Retries = NonNullable<NonNullable<TargetSceneOptions["service"]>["retries"]>;

const scenes: TargetScene[] = [];
async function start(options: TargetSceneOptions = {}): Promise<TargetScene> {
  const scene = await startTargetScene(options);
  scenes.push(scene);
  return scene;
}
afterAll(() => Promise.all(scenes.map((scene) => scene.stop())));

const withRetries = (retries: Retries, more: TargetSceneOptions = {}) =>
  start({ ...more, service: { ...more.service, retries: { backoff_ms: 1, ...retries } } });

const GET = request("GET");
const POST = request("POST", "Content-Length: 2\r\n", "ab");
const status = (code: number) => reply(`no ${code}`, { status: `${code} No` });
const on = ["connect", "reset", "timeout", "500", "502", "503", "504", "429"] as const;

describe("each condition of retries.on", () => {
  /** What the first target does, and the status without a retry. */
  const rows: Record<(typeof on)[number], { answer: Answer; stands: number }> = {
    connect: { answer: null, stands: 502 },
    reset: { answer: "close", stands: 502 },
    timeout: { answer: null, stands: 504 },
    500: { answer: status(500), stands: 500 },
    502: { answer: status(502), stands: 502 },
    503: { answer: status(503), stands: 503 },
    504: { answer: status(504), stands: 504 },
    429: { answer: status(429), stands: 429 },
  };

  test.each(on.map((word) => [word, rows[word]] as const))(
    "%s alone: another target responds; without it: the failure stands",
    async (word, { answer, stands }) => {
      for (const isOn of [true, false]) {
        const words = isOn ? [word] : on.filter((other) => other !== word);
        const scene = await withRetries({ on: words }, { service: { response_timeout: 150 } });
        scene.origins[0]!.answer = answer;
        if (word === "connect") scene.origins[0]!.stop();
        const { outcome, answers } = await scene.send(GET);
        expect(outcome).toBe(isOn ? "200" : String(stands));
        if (!isOn && stands < 500) expect(answers[0]?.body).toBe(`no ${stands}`);
        expect(scene.origins[1]!.requests.length).toBe(isOn ? 1 : 0);
      }
    },
  );

  test("none at all: nothing is retried", async () => {
    const scene = await withRetries({ on: [] });
    scene.origins[0]!.answer = status(503);
    expect((await scene.send(GET)).outcome).toBe("503");
    expect(scene.counts()).toEqual([1, 0]);
  });

  test("a non-HTTP response is never retried", async () => {
    const scene = await withRetries({ on: [...on], methods: "all" });
    scene.origins[0]!.answer = "garbage\r\n\r\n";
    expect((await scene.send(GET)).outcome).toBe("502");
    expect(scene.counts()).toEqual([1, 0]);
  });
});

describe("methods", () => {
  const idempotent = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];
  const others = ["POST", "PATCH"];
  const failing: [why: string, answer: Answer][] = [
    ["a reset after it was read", "close"],
    ["a status", status(503)],
  ];
  const matrix = [...idempotent, ...others].flatMap((method) =>
    failing.map(([why, answer]) => [method, why, answer] as const),
  );

  test.each(matrix)(
    "%s after %s: retried if idempotent or if all methods are allowed",
    async (method, _, answer) => {
      for (const methods of ["idempotent", "all"] as const) {
        const scene = await withRetries({ methods });
        scene.origins[0]!.answer = answer;
        const isRetried = methods === "all" || idempotent.includes(method);
        const ok = method === "HEAD" ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" : reply();
        scene.origins[1]!.answer = ok;
        const { outcome } = await scene.send(request(method, "Content-Length: 0\r\n"));
        expect(scene.counts()).toEqual([1, isRetried ? 1 : 0]);
        expect(outcome).toBe(isRetried ? "200" : answer === "close" ? "502" : "503");
      }
    },
  );

  test("a POST of which nothing was sent goes to the next target", async () => {
    const scene = await withRetries({});
    scene.origins[0]!.stop();
    for (const bytes of [
      POST,
      request("POST", "Transfer-Encoding: chunked\r\n", "2\r\nab\r\n0\r\n\r\n"),
    ])
      expect((await scene.send(bytes)).outcome).toBe("200");
    expect(scene.origins[1]!.requests.map(({ body }) => body)).toEqual([
      "ab",
      "2\r\nab\r\n0\r\n\r\n",
    ]);
  });
});

describe("the body", () => {
  test.each([0, 1, 1000, 16_384])("of %i bytes is resent byte for byte", async (size) => {
    for (const answer of ["close", status(503)] as const) {
      const scene = await withRetries({});
      scene.origins[0]!.answer = answer;
      const body = Buffer.from(Array.from({ length: size }, (_, at) => (at * 7) & 255)).toString(
        "latin1",
      );
      expect((await scene.send(request("PUT", `Content-Length: ${size}\r\n`, body))).outcome).toBe(
        "200",
      );
      for (const { requests } of scene.origins)
        expect(requests.map((each) => each.body)).toEqual([body]);
    }
  });

  const gone: [why: string, bytes: string][] = [
    ["longer than 16 KiB", request("PUT", "Content-Length: 16385\r\n", "x".repeat(16_385))],
    ["chunked", request("PUT", "Transfer-Encoding: chunked\r\n", "2\r\nab\r\n0\r\n\r\n")],
  ];
  test.each(gone)("%s is not resent, and the response says so", async (_, bytes) => {
    const scene = await withRetries({});
    scene.origins[0]!.answer = "close";
    const { outcome, answers } = await scene.send(bytes);
    expect(outcome).toBe("502");
    expect(answers[0]?.header("proxy-status")).toMatch(/connection_terminated.*not retried/);
    expect(scene.counts()).toEqual([1, 0]);
    expect([scene.active(0), scene.active(1)]).toEqual([0, 0]);
    scene.origins[0]!.answer = status(503);
    const second = await scene.send(bytes);
    expect([second.outcome, second.answers[0]?.body]).toEqual(["503", "no 503"]);
  });

  test.each([
    ["a POST", request("POST", "Content-Length: 16385\r\n", "x".repeat(16_385)), {}],
    ["no retries", gone[0]![1], { count: 0 }],
    ["no word for it", gone[0]![1], { on: ["503"] }],
  ] as const)("%s: the body is not the reason", async (_, bytes, retries) => {
    const scene = await withRetries(retries as Retries);
    scene.origins[0]!.answer = "close";
    const { outcome, answers } = await scene.send(bytes);
    expect(outcome).toBe("502");
    expect(answers[0]?.header("proxy-status")).not.toContain("not retried");
  });
});

describe("how often", () => {
  test.each([
    [0, [1, 0, 0, 0]],
    [1, [1, 1, 0, 0]],
    [3, [1, 1, 1, 1]],
    [10, [1, 1, 1, 1]],
  ] as const)("count %i: each target at most once", async (count, expected) => {
    const scene = await withRetries({ count }, { targets: 4 });
    for (const origin of scene.origins) origin.answer = status(503);
    expect((await scene.send(GET)).outcome).toBe("503");
    expect(scene.counts()).toEqual([...expected]);
  });

  test("a route's object replaces the whole of the service's", async () => {
    const scene = await withRetries(
      { count: 3, on: ["500"], methods: "all" },
      { targets: 4, route: { retries: { count: 1, backoff_ms: 1 } } },
    );
    for (const origin of scene.origins) origin.answer = status(500);
    await scene.send(GET);
    expect(scene.counts()).toEqual([1, 0, 0, 0]);
    for (const origin of scene.origins) origin.answer = status(503);
    await scene.send(GET);
    expect(scene.counts()).toEqual([2, 1, 0, 0]);
    await scene.send(POST);
    expect(scene.counts()).toEqual([3, 1, 0, 0]);
  });

  test("the client gets the last target's own response", async () => {
    const scene = await withRetries({ count: 2 }, { targets: 3 });
    for (const [index, origin] of scene.origins.entries())
      origin.answer = reply(`target ${index}`, {
        status: "503 Busy",
        headers: `Retry-After: ${index + 7}\r\n`,
      });
    const { answers } = await scene.send(GET);
    expect(answers[0]).toMatchObject({ status: 503, body: "target 2" });
    expect(answers[0]?.header("retry-after")).toBe("9");
    expect(answers[0]?.header("proxy-status")).toBeNull();
  });

  test("a response is not dropped when no other target is available", async () => {
    const scene = await withRetries({}, { targets: 2, service: { max_connections_per_target: 1 } });
    const release: (() => void)[] = [];
    scene.origins[0]!.answer = (_, connection) => {
      release.push(() => connection.write(reply("slow")));
      return null;
    };
    scene.origins[1]!.answer = reply("own words", { status: "503 Busy" });
    const slow = scene.send(GET);
    await scene.origins[0]!.untilRequests(1);
    const { answers } = await scene.send(GET);
    expect(answers[0]).toMatchObject({ status: 503, body: "own words" });
    release[0]?.();
    expect((await slow).answers[0]?.body).toBe("slow");
  });

  test("an ejected target is tried when all others have failed", async () => {
    const scene = await withRetries(
      {},
      { service: { health: { passive: { consecutive_failures: 1 } } } },
    );
    scene.origins[0]!.answer = status(503);
    expect((await scene.send(GET)).outcome).toBe("200");
    expect(scene.health(0)).toMatchObject({ state: "unhealthy", by: "passive" });
    scene.origins[0]!.answer = reply("back");
    scene.origins[1]!.answer = "close";
    expect((await scene.send(GET)).answers[0]?.body).toBe("back");
  });
});

describe("connections", () => {
  test("that of an abandoned response is closed and not reused", async () => {
    const scene = await withRetries({});
    const bodies = [
      status(503),
      "HTTP/1.1 503 No\r\nContent-Length: 100000\r\n\r\nhalf",
      "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
      "HTTP/1.1 503 No\r\n\r\nuntil the end",
    ];
    for (const [index, answer] of bodies.entries()) {
      scene.origins[0]!.answer = answer;
      expect((await scene.send(GET)).answers[0]?.body).toBe("ok");
      await eventually(() => scene.open(0) === 0);
      expect(scene.origins[0]!.requests.at(-1)).toMatchObject({ connection: index, index: 0 });
    }
    // The other target's is kept all the time.
    expect(scene.origins[1]!.connections.length).toBe(1);
    expect([scene.active(0), scene.active(1)]).toEqual([0, 0]);
  });

  test("a stale idle one is replaced once, outside the budget and on the same target", async () => {
    const scene = await withRetries({ count: 0, budget_percent: 0, on: [] }, { targets: 1 });
    await scene.send(GET);
    scene.origins[0]!.answer = ({ index }) => (index === 0 ? reply("fresh") : "close");
    expect((await scene.send(GET)).answers[0]?.body).toBe("fresh");
    expect(scene.origins[0]!.requests.map(({ connection, index }) => [connection, index])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
    ]);
    expect(scene.health(0).lastError).toBeNull();
  });
});

describe("time", () => {
  test("per_try_timeout: the next target responds when the first does not", async () => {
    const scene = await withRetries({ per_try_timeout: 150, on: ["timeout"] });
    scene.origins[0]!.answer = null;
    expect((await scene.send(GET)).outcome).toBe("200");
    expect(scene.health(0).lastError).toBe("the target did not respond in time");
    await eventually(() => scene.open(0) === 0);
  });

  test("per_try_timeout is over with the head: a body may take longer", async () => {
    const scene = await withRetries({ per_try_timeout: 100, on: ["timeout"] });
    scene.origins[0]!.answer = (_, connection) => {
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsl");
      setTimeout(() => connection.write("ow"), 350);
      return null;
    };
    expect((await scene.send(GET)).answers[0]?.body).toBe("slow");
  });

  test("per_try_timeout waits for a client that is still sending", async () => {
    const scene = await withRetries({ per_try_timeout: 100, on: ["timeout"] });
    const client = await connectRaw({ port: scene.gateway.port });
    client.write(request("PUT", "Content-Length: 4\r\n", "sl"));
    setTimeout(() => client.write("ow"), 350);
    await client.until("\r\n\r\nok");
    client.close();
    expect(scene.counts()).toEqual([1, 0]);
    expect(scene.health(0).lastError).toBeNull();
  });

  test("request_timeout ends all attempts together, and counts against the pending target", async () => {
    const scene = await withRetries(
      { per_try_timeout: 200, on: ["timeout"], count: 10 },
      { targets: 4, service: { request_timeout: 500 } },
    );
    for (const origin of scene.origins) origin.answer = null;
    const { outcome, answers } = await scene.send(GET);
    expect(outcome).toBe("504");
    expect(answers[0]?.header("proxy-status")).toContain("the exchange took too long");
    // Four tries would take 800 ms and more.
    expect(scene.counts()[3]).toBe(0);
    expect(scene.health(0).lastError).toBe("the target did not respond in time");
    expect(scene.origins.map((_, index) => scene.active(index))).toEqual([0, 0, 0, 0]);
  });

  test("request_timeout ends the backoff before an attempt too", async () => {
    // A backoff of at most 2 s, which is rarely shorter than the timeout.
    const scene = await withRetries(
      { backoff_ms: 86_400_000, count: 10 },
      { targets: 8, service: { request_timeout: 200 } },
    );
    for (const origin of scene.origins) origin.answer = status(503);
    const { outcome } = await scene.send(GET);
    expect(outcome).toBe("504");
    expect(scene.origins.map((_, index) => scene.active(index))).toEqual(Array(8).fill(0));
    expect(scene.counts()[7]).toBe(0);
  });

  test("a client that disconnects during the backoff ends the request", async () => {
    const scene = await withRetries({ backoff_ms: 86_400_000, count: 10 }, { targets: 8 });
    for (const origin of scene.origins) origin.answer = status(503);
    const client = await connectRaw({ port: scene.gateway.port });
    client.write(GET);
    await scene.origins[0]!.untilRequests(1);
    client.reset();
    await eventually(() => scene.gateway.log.some(({ fields }) => fields["status"] === 499));
    expect(scene.origins.map((_, index) => scene.active(index))).toEqual(Array(8).fill(0));
    expect(scene.counts()[7]).toBe(0);
  });
});

describe("the budget", () => {
  test("connection failures cost none of it", async () => {
    const scene = await withRetries(
      { backoff_ms: 0 },
      { targets: 2, service: { health: { passive: { enabled: false } } } },
    );
    scene.origins[0]!.stop();
    for (let round = 0; round < 20; round++) {
      const all = await Promise.all(Array.from({ length: 20 }, () => scene.send(GET)));
      expect(all.every(({ outcome }) => outcome === "200")).toBe(true);
    }
  });

  test("0 percent: no retries at all", async () => {
    const scene = await withRetries({ budget_percent: 0 });
    scene.origins[0]!.answer = status(503);
    expect((await scene.send(GET)).outcome).toBe("503");
    scene.origins[0]!.stop();
    expect((await scene.send(GET)).outcome).toBe("502");
    expect(scene.counts()).toEqual([1, 0]);
  });
});

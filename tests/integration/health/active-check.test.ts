// Active checks: their requests, expected responses and effects; one worker, real sockets.
import { afterAll, describe, expect, test } from "bun:test";
import { readHealth } from "../../../src/shared-memory/target-health.ts";
import { selfSigned } from "../../support/certificate.ts";
import {
  freePort,
  type RunningDataPlane,
  type ServiceSketch,
  startDataPlane,
} from "../../support/data-plane.ts";
import {
  type Answer,
  type Answerer,
  type Origin,
  reply,
  startOrigin,
} from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

/** Tests run at the same time, because they mostly wait: each has a gateway and origins of its own. */
const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

type Active = NonNullable<NonNullable<ServiceSketch["health"]>["active"]>;

/** The shortest interval that the model allows; the first result decides. */
const quick = {
  enabled: true,
  interval: 1,
  unhealthy_interval: 1,
  timeout: 1,
  healthy_threshold: 1,
  unhealthy_threshold: 1,
} as const;

function origin(options: Parameters<typeof startOrigin>[0] = {}): Origin {
  const started = startOrigin(options);
  cleanups.push(() => started.stop());
  return started;
}

const serviceOf = (
  ports: readonly number[],
  active: Active,
  rest: Partial<ServiceSketch> = {},
) => ({
  name: "s",
  ...rest,
  health: { ...rest.health, active: { ...quick, ...active } },
  targets: ports.map((port) => ({ port })),
});

async function checked(service: ServiceSketch): Promise<RunningDataPlane> {
  const gateway = await startDataPlane({
    services: [service],
    routes: [{ name: "r", service_id: "s" }],
  });
  cleanups.push(() => gateway.stop());
  return gateway;
}

function healthOf(gateway: RunningDataPlane, target = "s-0") {
  const row = gateway.targets.findRow(target);
  if (row === null) throw new Error(`no row for ${target}`);
  return readHealth(gateway.targets, row, Date.now());
}

const becomes = (gateway: RunningDataPlane, state: string, target?: string) =>
  eventually(() => healthOf(gateway, target).state === state);

describe.concurrent("a verdict", () => {
  const slow: Answerer = () => null;
  const long = `${"x".repeat(70_000)}needle`;
  const chunked = (...pieces: string[]) =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join("")}0\r\n\r\n`;
  const cases: readonly {
    readonly why: string;
    readonly answer: Answer | Answerer;
    readonly active?: Active;
    readonly error?: string;
  }[] = [
    { why: "200", answer: reply() },
    { why: "a redirect, by default", answer: reply("", { status: "302 Found" }) },
    { why: "204 without a body", answer: "HTTP/1.1 204 No Content\r\n\r\n" },
    {
      why: "a hint before the answer",
      answer: `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${reply()}`,
    },
    {
      why: "a status that is in the list",
      answer: reply("", { status: "401 Unauthorized" }),
      active: { expect_statuses: ["200-204", 401] },
    },
    {
      why: "the head of an answer that never ends",
      answer: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
    },
    { why: "the text in the body", answer: reply("all is well"), active: { expect_body: "is we" } },
    {
      why: "the text across two pieces, before the body has ended",
      answer: chunked("all is w", "ell").replace("0\r\n\r\n", ""),
      active: { expect_body: "well" },
    },
    {
      why: "an answer to HEAD",
      answer: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
      active: { method: "HEAD" },
    },
    {
      why: "500",
      answer: reply("", { status: "500 Oops" }),
      error: "the target responded with status 500",
    },
    {
      why: "200 where something else is expected",
      answer: reply(),
      active: { expect_statuses: ["300-399", 418] },
      error: "the target responded with status 200",
    },
    {
      why: "another text",
      answer: reply("all is well"),
      active: { expect_body: "IS WELL" },
      error: "the response lacks the expected text",
    },
    {
      why: "the text after more than is looked at",
      answer: reply(long),
      active: { expect_body: "needle" },
      error: "the response lacks the expected text",
    },
    {
      why: "a body that breaks off",
      answer: (_request, connection) => {
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        connection.end();
        return null;
      },
      active: { expect_body: "whole" },
      error: "the target closed the connection in the middle of the response",
    },
    { why: "silence", answer: slow, error: "the target did not respond in time" },
    {
      why: "a close without an answer",
      answer: "close",
      error: "the target closed the connection without a response",
    },
    { why: "no HTTP", answer: "220 smtp ready\r\n\r\n", error: "the response was not valid HTTP" },
  ];
  test.each(cases)("over HTTP on $why", async ({ answer, active, error }) => {
    const target = origin({ answer });
    const gateway = await checked(serviceOf([target.port], active ?? {}));
    const state = error === undefined ? "healthy" : "unhealthy";
    await becomes(gateway, state);
    expect(healthOf(gateway)).toMatchObject({ state, by: "active", lastError: error ?? null });
    // Every check has its own connection, and it is closed.
    await eventually(() => target.connections[0]?.isClosed === true);
  });

  test("on a closed port, by each type of check", async () => {
    for (const type of ["http", "tcp", "https"] as const) {
      const gateway = await checked(serviceOf([freePort()], { type }));
      await becomes(gateway, "unhealthy");
      expect(healthOf(gateway).lastError).toBe("the target refused the connection");
    }
  });

  test("over TCP on an accepted connection, whatever it carries", async () => {
    const target = origin({ answer: "close" });
    const gateway = await checked(serviceOf([target.port], { type: "tcp" }));
    await becomes(gateway, "healthy");
    expect(target.requests).toBeEmpty();
  });
});

describe.concurrent("a check over TLS", () => {
  test("verifies the certificate as the traffic does", async () => {
    const certificate = await selfSigned();
    const target = origin({ tls: certificate });
    const check = (tls: NonNullable<ServiceSketch["tls"]>, rest: Partial<ServiceSketch> = {}) =>
      checked(serviceOf([target.port], { type: "https" }, { tls, ...rest }));
    const strict = await check({});
    await becomes(strict, "unhealthy");
    expect(healthOf(strict).lastError).toStartWith("the target's certificate is ");
    await becomes(await check({ verify: false }), "healthy");
    await becomes(
      await check({ ca_certificates: certificate.cert, server_name: "localhost" }),
      "healthy",
    );
  });

  test("is also one of type http on the port of an https service", async () => {
    const target = origin({ tls: await selfSigned() });
    const service = { protocol: "https", tls: { verify: false } } as const;
    await becomes(await checked(serviceOf([target.port], { type: "http" }, service)), "healthy");
    const plain = origin();
    const other = serviceOf([target.port], { type: "http", port: plain.port }, service);
    await becomes(await checked(other), "healthy");
    expect(plain.requests).toHaveLength(1);
  });

  test("fails on a port without TLS, and with invalid trusted certificates", async () => {
    const target = origin({ answer: reply() });
    const plain = await checked(serviceOf([target.port], { type: "https" }));
    await becomes(plain, "unhealthy");
    const broken = await checked(
      serviceOf([target.port], { type: "https" }, { tls: { ca_certificates: "no PEM" } }),
    );
    await becomes(broken, "unhealthy");
  });
});

describe.concurrent("the request of a check", () => {
  const cases: readonly {
    readonly why: string;
    readonly active?: Active;
    readonly rest?: Partial<ServiceSketch>;
    readonly head: (port: number) => string;
  }[] = [
    {
      why: "is as plain as possible",
      head: (port) =>
        `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nuser-agent: sluice-health-check\r\naccept: */*\r\nconnection: close`,
    },
    {
      why: "has the method, the path and the headers of its own, and not the service's path",
      active: { method: "POST", path: "/up?a=1", headers: { "User-Agent": "me", "X-Key": "1" } },
      rest: { path: "/app" },
      head: (port) =>
        `POST /up?a=1 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nuser-agent: me\r\naccept: */*\r\nx-key: 1\r\ncontent-length: 0\r\nconnection: close`,
    },
    {
      why: "has the Host that the service sends upstream",
      rest: { host_header: "app.example" },
      head: () =>
        "GET / HTTP/1.1\r\nHost: app.example\r\nuser-agent: sluice-health-check\r\naccept: */*\r\nconnection: close",
    },
    {
      why: "has the Host among its headers before that",
      active: { headers: { Host: "check.example" } },
      rest: { host_header: "app.example" },
      head: () =>
        "GET / HTTP/1.1\r\nHost: check.example\r\nuser-agent: sluice-health-check\r\naccept: */*\r\nconnection: close",
    },
  ];
  test.each(cases)("$why", async ({ active, rest, head }) => {
    const target = origin();
    await checked(serviceOf([target.port], active ?? {}, rest ?? {}));
    const [request] = await target.untilRequests(1);
    expect(request?.head).toBe(head(target.port));
  });

  test("goes to a port of its own, while the traffic goes to the target's", async () => {
    const [traffic, checks] = [origin({ answer: reply("traffic") }), origin()];
    const gateway = await checked(serviceOf([traffic.port], { port: checks.port }));
    await becomes(gateway, "healthy");
    expect(traffic.requests).toBeEmpty();
    expect(await (await fetch(gateway.url)).text()).toBe("traffic");
  });
});

describe.concurrent("thresholds", () => {
  test("set how many failures and successes in a row change the verdict", async () => {
    const target = origin();
    const gateway = await checked(
      serviceOf([target.port], { healthy_threshold: 2, unhealthy_threshold: 2 }),
    );
    const row = gateway.targets.rowOf("s-0");
    const streak = () => gateway.targets.get(row, "check_streak");
    await becomes(gateway, "healthy");
    target.answer = reply("", { status: "503 Busy" });
    await eventually(() => streak() === -1);
    expect(healthOf(gateway).state).toBe("healthy");
    await becomes(gateway, "unhealthy");
    expect(streak()).toBe(-2);
    target.answer = reply();
    await eventually(() => streak() === 1);
    expect(healthOf(gateway).state).toBe("unhealthy");
    await becomes(gateway, "healthy");
    expect(streak()).toBe(2);
    // It starts slowly from then on.
    expect(gateway.targets.get(row, "started_at")).toBe(gateway.targets.get(row, "since"));
  });

  test("decide where the traffic goes", async () => {
    const [good, bad] = [origin({ answer: reply("good") }), origin({ answer: reply("bad") })];
    const isCheck = (target: string) => target === "/up";
    bad.answer = ({ target }) => (isCheck(target) ? reply("", { status: "500 No" }) : reply("bad"));
    const gateway = await checked(serviceOf([good.port, bad.port], { path: "/up" }));
    await becomes(gateway, "unhealthy", "s-1");
    await becomes(gateway, "healthy", "s-0");
    for (let request = 0; request < 10; request++)
      expect(await (await fetch(gateway.url)).text()).toBe("good");
    bad.answer = reply("bad");
    await becomes(gateway, "healthy", "s-1");
    const seen = new Set<string>();
    for (let request = 0; request < 4; request++) seen.add(await (await fetch(gateway.url)).text());
    expect([...seen].sort()).toEqual(["bad", "good"]);
  });
});

describe.concurrent("an ejection by the traffic", () => {
  const passive = { consecutive_failures: 1, ejection_seconds: 300 };
  const answering: Answerer = ({ target }) =>
    target === "/up" ? reply() : reply("", { status: "503 Busy" });

  test("ends after healthy_threshold successes in a row from then on", async () => {
    const [first, second] = [origin({ answer: answering }), origin()];
    const gateway = await checked({
      ...serviceOf([first.port, second.port], { path: "/up", healthy_threshold: 2 }),
      health: { active: { ...quick, path: "/up", healthy_threshold: 2 }, passive },
      retries: { count: 0 },
    });
    const row = gateway.targets.rowOf("s-0");
    // More successes than needed, from before the ejection.
    await eventually(() => gateway.targets.get(row, "check_streak") >= 2);
    while (healthOf(gateway).state !== "unhealthy") await (await fetch(gateway.url)).text();
    expect(healthOf(gateway).by).toBe("passive");
    const streak = gateway.targets.get(row, "check_streak");
    await eventually(() => gateway.targets.get(row, "check_streak") === streak + 1);
    expect(healthOf(gateway).by).toBe("passive");
    await becomes(gateway, "healthy");
    expect(gateway.targets.get(row, "check_streak")).toBe(streak + 2);
    // How often it was ejected is remembered: the next one is longer.
    expect(gateway.targets.get(row, "ejections")).toBe(1);
  });
});

describe("the only target that fails its traffic and passes its checks", () => {
  const answering: Answerer = ({ target }) =>
    target === "/up" ? reply() : reply("", { status: "503 Busy" });

  test("is failing until healthy_threshold checks pass without a failed request", async () => {
    const only = origin({ answer: answering });
    const gateway = await checked({
      ...serviceOf([only.port], {}),
      health: {
        active: { ...quick, path: "/up", healthy_threshold: 2 },
        passive: { consecutive_failures: 2 },
      },
      retries: { count: 0 },
    });
    await becomes(gateway, "healthy");
    const ask = async () => await (await fetch(gateway.url)).text();
    await ask();
    expect(healthOf(gateway)).toMatchObject({ state: "healthy", by: "active" });
    await ask();
    expect(healthOf(gateway)).toMatchObject({ state: "failing", by: "passive" });
    const row = gateway.targets.rowOf("s-0");
    const streak = () => gateway.targets.get(row, "check_streak");
    // Requests that fail between the checks outweigh them.
    const end = streak() + 4;
    while (streak() < end) await ask();
    expect(healthOf(gateway).state).toBe("failing");
    await becomes(gateway, "healthy");
    expect(healthOf(gateway).by).toBe("active");
  });
});

describe.concurrent("a change", () => {
  test("of something else leaves checks and their results alone", async () => {
    const target = origin();
    const service = serviceOf([target.port], { interval: 3600 });
    const gateway = await checked(service);
    await becomes(gateway, "healthy");
    for (let change = 0; change < 5; change++) {
      await gateway.apply({ services: [{ ...service, description: `${change}` }] });
      await gateway.apply({ services: [{ name: `other ${change}`, targets: [] }] });
    }
    expect(healthOf(gateway).state).toBe("healthy");
    expect(target.requests).toHaveLength(1);
  });

  test("of the check restarts it at once", async () => {
    const target = origin();
    const gateway = await checked(serviceOf([target.port], { interval: 3600 }));
    await target.untilRequests(1);
    await gateway.apply({ services: [serviceOf([target.port], { interval: 3600, path: "/new" })] });
    const [, request] = await target.untilRequests(2);
    expect(request?.target).toBe("/new");
  });

  test("that ends checks reverts their results", async () => {
    const target = origin({ answer: reply("", { status: "500 No" }) });
    const gateway = await checked(serviceOf([target.port], {}));
    await becomes(gateway, "unhealthy");
    await gateway.apply({ services: [serviceOf([target.port], { enabled: false })] });
    expect(healthOf(gateway)).toMatchObject({ state: "unknown", by: null });
    // The lease is free when there is nothing to check.
    expect(gateway.targets.lease[0]).toBe(0n);
  });

  test("that removes a target ends its checks", async () => {
    const [kept, gone] = [origin(), origin()];
    const gateway = await checked(serviceOf([kept.port, gone.port], {}));
    await Promise.all([kept.untilRequests(1), gone.untilRequests(1)]);
    await gateway.apply({ services: [serviceOf([kept.port], {})] });
    const before = gone.requests.length;
    await kept.untilRequests(kept.requests.length + 2);
    expect(gone.requests.length).toBe(before);
  });
});

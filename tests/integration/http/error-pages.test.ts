// The gateway's error responses: negotiated media type, common headers, no internals.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Answer, exchange } from "../../support/raw-exchange.ts";
import { type ScriptedScene, startScriptedScene } from "../../support/scripted-scene.ts";

let scene: ScriptedScene;
beforeAll(async () => {
  const gone = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  gone.stop(true);
  scene = await startScriptedScene({
    listener: { max_body_bytes: 10 },
    service: { response_timeout: 100 },
    route: { hosts: ["h"] },
  });
  await scene.gateway.apply({
    services: [
      { name: "none", targets: [] },
      { name: "refusing", targets: [{ port: gone.port }], retries: { count: 0 } },
    ],
    routes: [
      { name: "none", service_id: "none", hosts: ["none"] },
      { name: "refusing", service_id: "refusing", hosts: ["refusing"] },
      { name: "gone", service_id: "deleted", hosts: ["gone"] },
    ],
  });
});
afterAll(() => scene.stop());

interface Failure {
  readonly status: number;
  readonly token: string;
  readonly request: string;
  readonly script?: string | null;
}

const line = (target: string, host = "h", method = "GET", fields = "") =>
  `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${fields}`;

const failures: readonly Failure[] = [
  { status: 400, token: "http_request_error", request: line("/", "a b") },
  { status: 400, token: "http_request_error", request: line("/#f") },
  { status: 404, token: "destination_not_found", request: line("/", "unknown") },
  {
    status: 413,
    token: "http_request_denied",
    request: line("/", "h", "POST", "Content-Length: 11\r\n"),
  },
  { status: 414, token: "http_request_denied", request: line(`/${"a".repeat(9000)}`) },
  {
    status: 431,
    token: "http_request_error",
    request: line("/", "h", "GET", Array.from({ length: 101 }, (_, i) => `X-${i}: v\r\n`).join("")),
  },
  { status: 502, token: "http_protocol_error", request: line("/"), script: "nonsense\r\n\r\n" },
  { status: 502, token: "connection_refused", request: line("/", "refusing") },
  { status: 503, token: "destination_unavailable", request: line("/", "none") },
  { status: 503, token: "destination_unavailable", request: line("/", "gone") },
  { status: 504, token: "http_response_timeout", request: line("/"), script: null },
  {
    status: 508,
    token: "proxy_loop_detected",
    request: line("/", "h", "GET", "CDN-Loop: sluice-test\r\n"),
  },
];

async function fail(failure: Failure, fields = ""): Promise<Answer> {
  scene.origin.answer = failure.script ?? null;
  const bytes = `${failure.request}${fields}\r\n`;
  const { answers } = await exchange(bytes, {
    port: scene.port,
    methods: [bytes.slice(0, bytes.indexOf(" "))],
  });
  expect(answers[0]?.status).toBe(failure.status);
  return answers[0]!;
}

const named = failures.map((failure) => [failure.status, failure.token, failure] as const);

describe("every error page", () => {
  test.each(named)(
    "%d %s carries what a client needs, and no internals",
    async (status, token, failure) => {
      const answer = await fail(failure);
      expect(answer.header("proxy-status")).toMatch(
        new RegExp(`^sluice; error=${token}; details="[ -~]+"$`),
      );
      expect(answer.header("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.header("cache-control")).toBe("no-store");
      expect(answer.body).toContain(answer.header("x-request-id")!);
      expect(answer.body).toContain(String(status));
      expect(answer.header("content-length")).toBe(String(answer.body.length));
      for (const secret of [
        "127.0.0.1",
        String(scene.origin.port),
        "refusing",
        "node_modules",
        "src/",
        "Error:",
      ])
        expect(answer.raw).not.toContain(secret);
    },
  );

  test("has an id of its own each time, which the log names too", async () => {
    const [first, second] = [await fail(failures[6]!), await fail(failures[6]!)];
    expect(first.header("x-request-id")).not.toBe(second.header("x-request-id"));
    const logged = scene.gateway.log.map(({ fields }) => fields["request_id"]);
    expect(logged).toContain(first.header("x-request-id"));
  });

  test("to HEAD has no body, and the length that GET would have", async () => {
    for (const failure of failures.filter(({ request }) => request.startsWith("GET"))) {
      const get = await fail(failure);
      const head = await fail({ ...failure, request: failure.request.replace("GET", "HEAD") });
      expect(head.body).toBe("");
      expect(head.header("content-length")).toBe(get.header("content-length"));
    }
  });
});

describe("its form follows Accept (RFC 9110 section 12.5.1)", () => {
  const html = "text/html; charset=utf-8";
  const json = "application/problem+json";
  const text = "text/plain; charset=utf-8";
  const rows: [accept: string | null, type: string, why: string][] = [
    [null, text, "no wish: curl and scripts"],
    ["*/*", text, "any"],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", html, "a browser"],
    ["TEXT/HTML", html, "types have no case"],
    ["application/json", json, "an API client"],
    ["application/problem+json", json, "one that knows RFC 9457"],
    ["application/json, text/html;q=0.5", json, "weights count"],
    ["application/json;q=0.1, text/html;q=0.5", html, "weights count"],
    ["text/html;q=0, application/json", json, "q=0 refuses"],
    ["text/*;q=0.5, application/json;q=0.4", text, "a range covers types"],
    ["image/png", text, "none of ours: text rather than 406"],
    ["text/html;q=nonsense", text, "a malformed weight"],
    ["<script>", text, "rubbish"],
  ];
  test.each(rows)("%j: %s (%s)", async (accept, type) => {
    const answer = await fail(failures[2]!, accept === null ? "" : `Accept: ${accept}\r\n`);
    expect(answer.header("content-type")).toBe(type);
    if (type === json) {
      expect(JSON.parse(answer.body)).toEqual({
        type: "about:blank",
        status: 404,
        title: "Not Found",
        detail: "no route matches this request",
        instance: `urn:uuid:${answer.header("x-request-id")}`,
      });
    } else if (type === html) expect(answer.body).toStartWith("<!doctype html>");
    else expect(answer.body).toStartWith("404 Not Found: ");
  });

  test.each(named)("%d %s exists in all three forms", async (status, _, failure) => {
    for (const type of ["text/html", "application/json", "text/plain"]) {
      const answer = await fail(failure, `Accept: ${type}\r\n`);
      if (type === "application/json") expect(JSON.parse(answer.body).status).toBe(status);
      else expect(answer.body).toContain(String(status));
    }
  });

  test.each(named)(
    "%d %s: browsers retry automatically when that may help",
    async (status, _, failure) => {
      const { body } = await fail(failure, "Accept: text/html\r\n");
      const isSafe = failure.request.startsWith("GET");
      const mayHelp = isSafe && [502, 503, 504].includes(status);
      expect(body.includes('<meta http-equiv="refresh" content="5">')).toBe(mayHelp);
    },
  );

  test("no browser repeats a POST as a GET", async () => {
    const { answers } = await exchange(
      "POST / HTTP/1.1\r\nHost: none\r\nContent-Length: 0\r\nAccept: text/html\r\n\r\n",
      { port: scene.port, methods: ["POST"] },
    );
    expect(answers[0]?.status).toBe(503);
    expect(answers[0]?.body).not.toContain("refresh");
  });

  test("no part of the request is repeated in it", async () => {
    const canary = "<img/src=x>canary";
    const bytes = `GET /${encodeURIComponent(canary)}?canary HTTP/1.1\r\nHost: canary.unknown\r\nUser-Agent: ${canary}\r\nAccept: text/html\r\n\r\n`;
    const { answers } = await exchange(bytes, { port: scene.port });
    expect(answers[0]?.raw).not.toContain("canary");
  });
});

// docs/limits-of-bun.md lists them: Bun sends them before any code of the gateway runs.
describe("responses of Bun itself have no page", () => {
  let ofBun: ScriptedScene;
  beforeAll(async () => {
    ofBun = await startScriptedScene({ listener: { engine: "bun" } });
  });
  afterAll(() => ofBun.stop());

  test.each([
    [400, "GET / HTTP/1.1\r\n\r\n", "no Host"],
    [400, "GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n", "a malformed field"],
    [
      400,
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "two framings",
    ],
    [400, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS *"],
    [
      413,
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999\r\n\r\n",
      "a length over 2^53",
    ],
    [431, `GET /${"a".repeat(17_000)} HTTP/1.1\r\nHost: h\r\n\r\n`, "a head over 16 KB"],
    [505, "GET / HTTP/3.0\r\nHost: h\r\n\r\n", "another version"],
  ])("%d: %j (%s)", async (status, bytes) => {
    const { answers, isClosed } = await exchange(bytes, { port: ofBun.port, answers: 2 });
    expect(answers.map((answer) => answer.status)).toEqual([status]);
    expect(answers[0]?.header("x-request-id")).toBeNull();
    expect(answers[0]?.body).toBe("");
    expect(isClosed).toBe(true);
  });
});

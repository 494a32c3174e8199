// Alerts of the running product, sent to receivers on real sockets: events, frequency, receivers, secrets.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { selfSigned } from "../../support/certificate.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { type SmtpServer, startSmtpServer } from "../../support/smtp-server.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();
const KEY = "canary-key-of-signatures";
const TOKEN = "canary-token-in-a-header";
const PASSWORD = "canary-password-of-a-mailbox";
const secrets = [KEY, TOKEN, PASSWORD, "canary-path"];

interface Received {
  readonly path: string;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
  readonly json: any;
}

let received: Received[] = [];
/** By path; default 200. */
const answers = new Map<string, () => Response | Promise<Response>>();
let hook: ReturnType<typeof Bun.serve>;
let origin: Origin;
let mail: SmtpServer;

const at = (path: string) => received.filter((each) => each.path === path);
const url = (path: string) => `http://127.0.0.1:${hook.port}${path}`;
/** What a path received: `target_down firing`. */
const told = (path: string) => at(path).map(({ json }) => `${json.event} ${json.status}`);

async function alert(name: string, fields: object, config: object = { url: url(`/${name}`) }) {
  return await api.create("/alerts", { name, type: "webhook", ...fields, config });
}
const testOf = async (name: string) => (await api.call(`POST /alerts/${name}/test`)).body;
const send = (host: string) =>
  fetch(`http://127.0.0.1:${api.gateway.httpPort}/`, { headers: { host } });

beforeAll(async () => {
  hook = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const { pathname: path } = new URL(request.url);
      const text = await request.text();
      const isJson = request.headers.get("content-type") === "application/json";
      received.push({
        path,
        headers: request.headers,
        text,
        json: isJson ? JSON.parse(text) : null,
      });
      return (await answers.get(path)?.()) ?? new Response("thanks");
    },
  });
  mail = await startSmtpServer({
    tls: await selfSigned("127.0.0.1"),
    login: { username: "ops", password: PASSWORD },
  });
});
afterAll(async () => {
  mail.stop();
  await hook.stop(true);
  origin?.stop();
});

describe("a target that dies and comes back", () => {
  test("sends one down and one up alert to the matching receivers", async () => {
    origin = startOrigin();
    const { port } = origin;
    const active = {
      enabled: true,
      type: "tcp",
      interval: 1,
      unhealthy_interval: 1,
      timeout: 1,
      healthy_threshold: 1,
      unhealthy_threshold: 1,
    };
    await api.create("/services", {
      name: "web",
      health: { active },
      targets: [{ host: "127.0.0.1", port }],
    });
    await api.create("/services", { name: "other", targets: [{ host: "127.0.0.1", port: 9 }] });
    await api.create("/routes", { name: "shop", service_id: "web", hosts: ["shop.test"] });
    const events = ["target_down", "target_up"];
    await alert("everything", { events });
    await alert("of-service", { events: ["target_down"], service_ids: ["web"] });
    await alert("of-route", { events: ["target_up"], route_ids: ["shop"] });
    await alert("down-only", { events: ["target_down"], resolved: false });
    await alert("elsewhere", { events, service_ids: ["other"] });
    await alert("off", { events, enabled: false });
    await eventually(async () => {
      const { body } = await api.call("GET /targets?service_id=web");
      return body[0].health.state === "healthy";
    });
    origin.stop();
    await eventually(() => told("/everything").length === 1);
    expect(at("/everything")[0]?.json).toMatchObject({
      program: "sluice",
      alert: "everything",
      event: "target_down",
      status: "firing",
      object: { kind: "target", name: `127.0.0.1:${port}` },
      title: `Target 127.0.0.1:${port} of service "web" is down`,
    });
    origin = startOrigin({ port });
    await eventually(() => told("/everything").length > 1 && told("/of-route").length > 0);
    const both = ["target_down firing", "target_up resolved"];
    expect(told("/everything")).toEqual(both);
    expect(told("/of-service")).toEqual(both);
    expect(told("/of-route")).toEqual(["target_up resolved"]);
    expect(told("/down-only")).toEqual(["target_down firing"]);
    expect([...told("/elsewhere"), ...told("/off")]).toEqual([]);
    // The notifications can be read, newest first, with their outcome.
    const messages = () => api.call("GET /alerts/everything/messages");
    await eventually(async () => (await messages()).body[0].delivery === "delivered");
    expect((await messages()).body).toEqual([
      expect.objectContaining({ event: "target_up", status: "resolved", delivery: "delivered" }),
      expect.objectContaining({ event: "target_down", status: "firing", detail: null }),
    ]);
    expect((await api.call("GET /alerts/off/messages")).body).toEqual([]);
  });

  test("fires once also as the only target of a service, which stays in use", async () => {
    const only = startOrigin({ answer: "close" });
    const targets = [{ host: "127.0.0.1", port: only.port }];
    await api.create("/services", { name: "only", targets, retries: { count: 0 } });
    await api.create("/routes", { name: "only", service_id: "only", hosts: ["only.test"] });
    await alert("of-only", { events: ["target_down"], service_ids: ["only"], quiet_seconds: 0 });
    for (let count = 0; count < 20; count++) expect((await send("only.test")).status).toBe(502);
    await eventually(() => told("/of-only").length === 1);
    expect(at("/of-only")[0]?.json).toMatchObject({
      title: `Target 127.0.0.1:${only.port} of service "only" is down`,
      message: "The target closed the connection without a response.",
    });
    only.answer = reply();
    expect((await send("only.test")).status).toBe(200);
    await eventually(() => told("/of-only").length === 2);
    expect(told("/of-only")).toEqual(["target_down firing", "target_up resolved"]);
    only.stop();
  });

  test("repeatedly does not alert each time, nor disturb other alerts", async () => {
    await alert("patient", { events: ["target_down"], quiet_seconds: 300 });
    await alert("curious", { events: ["target_down"], quiet_seconds: 0 });
    const [target] = (await api.call("GET /targets?service_id=other")).body;
    const set = async (state: string) => {
      const before = told("/curious").length;
      await api.call(`PUT /targets/${target.id}/health`, { body: { state } });
      await eventually(() => told("/curious").length > before);
    };
    for (let turn = 0; turn < 3; turn++)
      for (const state of ["unhealthy", "auto"]) await set(state);
    expect(told("/curious")).toHaveLength(6);
    expect(told("/patient")).toEqual(["target_down firing", "target_up resolved"]);
  });

  test("and is deleted while down resolves as no longer watched", async () => {
    const events = ["target_down"];
    await alert("deleted", { events });
    const service = await api.create("/services", {
      name: "gone",
      targets: [{ host: "127.0.0.1", port: 11 }],
    });
    const [target] = (await api.call("GET /targets?service_id=gone")).body;
    await api.call(`PUT /targets/${target.id}/health`, { body: { state: "unhealthy" } });
    await eventually(() => told("/deleted").length === 1);
    await api.call(`DELETE /services/${service.id}`);
    await eventually(() => told("/deleted").length === 2);
    expect(at("/deleted")[1]?.json.title).toBe("Target 127.0.0.1:11 is no longer watched");
  });
});

describe("a share of errors over the threshold", () => {
  test("alerts once, and once when it resolves", async () => {
    const threshold = { percent: 50, window_seconds: 10, min_requests: 10 };
    await alert("errors", { events: ["error_share"], threshold, route_ids: ["shop"] });
    await eventually(async () => (await send("shop.test")).status === 200);
    let isBroken = true;
    origin.answer = () =>
      isBroken
        ? "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
        : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    await eventually(async () => {
      for (let n = 0; n < 20; n++) await (await send("shop.test")).text();
      return told("/errors").length > 0;
    });
    expect(at("/errors")[0]?.json).toMatchObject({
      event: "error_share",
      status: "firing",
      object: { kind: "route", name: "shop" },
    });
    expect(at("/errors")[0]?.json.title).toMatch(/^Too many errors: [\d.]+ % of the responses/);
    isBroken = false;
    await eventually(async () => {
      for (let n = 0; n < 20; n++) await (await send("shop.test")).text();
      return told("/errors").length > 1;
    });
    expect(told("/errors")).toEqual(["error_share firing", "error_share resolved"]);
  });
});

describe("a sink", () => {
  const broken = async (target: string, state: "unhealthy" | "auto") => {
    await api.call(`PUT /targets/${target}/health`, { body: { state } });
  };

  test("that never responds delays nothing, not even the stop", async () => {
    answers.set("/hanging", () => new Promise(() => undefined));
    const events = ["target_down"];
    await alert("hanging", { events });
    await alert("prompt", { events });
    const [target] = (await api.call("GET /targets?service_id=other")).body;
    await broken(target.id, "unhealthy");
    await eventually(() => told("/prompt").length === 1 && told("/hanging").length === 1);
    const { body } = await api.call("GET /alerts/hanging");
    expect(body.delivery).toMatchObject({ waiting: 1, lost: 0, last_sent_at: null });
    expect((await send("shop.test")).status).toBe(200);
    await api.gateway.restart();
    answers.delete("/hanging");
  });

  test("that fails is retried until it works, with one message", async () => {
    let failures = 1;
    answers.set("/flaky", () => new Response("", { status: failures-- > 0 ? 503 : 200 }));
    await alert("flaky", { events: ["target_down"] });
    const [target] = (await api.call("GET /targets?service_id=other")).body;
    await broken(target.id, "auto");
    await broken(target.id, "unhealthy");
    await eventually(async () => {
      const { delivery } = (await api.call("GET /alerts/flaky")).body;
      return delivery.last_sent_at !== null && delivery.waiting === 0;
    });
    expect(new Set(at("/flaky").map(({ json }) => json.id)).size).toBe(1);
    expect(at("/flaky")).toHaveLength(2);
  });
});

describe("the test of an alert", () => {
  test("by webhook is marked, signed and has the configured headers and body", async () => {
    const config = {
      url: url("/signed/canary-path"),
      secret: KEY,
      headers: [{ name: "Authorization", value: `Bearer ${TOKEN}` }],
      template: '{"text": "${title} (${status}): \\"${message}\\""}',
    };
    const made = await alert("signed", { events: ["worker_died"] }, config);
    expect(made).toMatchObject({
      destination: `127.0.0.1:${hook.port}`,
      config: { headers: [{ name: "Authorization" }], template: config.template },
    });
    expect(await testOf("signed")).toMatchObject({
      ok: true,
      message: "127.0.0.1 returned 200",
    });
    const [last] = at("/signed/canary-path");
    expect(JSON.parse(last?.text ?? "").text).toStartWith("This is a test (test): ");
    expect(last?.headers.get("authorization")).toBe(`Bearer ${TOKEN}`);
    const timestamp = last?.headers.get("x-sluice-timestamp");
    const wanted = createHmac("sha256", KEY).update(`${timestamp}.${last?.text}`).digest("hex");
    expect(last?.headers.get("x-sluice-signature")).toBe(`sha256=${wanted}`);
  });

  test("by webhook reports the failure, and follows no redirect", async () => {
    answers.set("/moved", () => Response.redirect(url("/target-of-redirect"), 307));
    answers.set("/refused", () => new Response("no", { status: 404 }));
    for (const [name, message] of [
      ["moved", "127.0.0.1 returns a redirect (307), which is not followed"],
      ["refused", "127.0.0.1 rejects the message (404)"],
    ] as const) {
      await alert(name, { events: ["worker_died"] });
      expect(await testOf(name)).toMatchObject({ ok: false, message });
    }
    await alert("nobody", { events: ["worker_died"] }, { url: "http://127.0.0.1:1/x" });
    expect(await testOf("nobody")).toMatchObject({
      ok: false,
      message: "127.0.0.1 refused the connection",
    });
    expect(at("/target-of-redirect")).toEqual([]);
  });

  test("by mail is encrypted, signed in and one message for all", async () => {
    const { cert } = await selfSigned("127.0.0.1");
    const base = { host: "127.0.0.1", port: mail.port, from: "sluice@a.example" };
    const to = ["one@b.example", "two@b.example"];
    const login = { username: "ops", password: PASSWORD };
    const smtp = (name: string, config: object) =>
      api.create("/alerts", {
        name,
        type: "smtp",
        events: ["worker_died"],
        config: { ...base, to, ...config },
      });
    // The certificate is self-signed, so it is not trusted.
    await smtp("untrusted", { ...login, ca_certificates: cert });
    const untrusted = await testOf("untrusted");
    expect(untrusted.ok).toBe(false);
    expect(untrusted.message).toContain("certificate that is not trusted");
    expect(mail.mails).toEqual([]);
    // A password may go in the clear to this machine.
    await smtp("plain", { ...login, tls: "none" });
    expect(await testOf("plain")).toMatchObject({
      ok: true,
      destination: `one@b.example, two@b.example by 127.0.0.1:${mail.port}`,
      message: "127.0.0.1 accepted it for 2 of 2 recipients",
    });
    expect(mail.mails).toMatchObject([{ from: "sluice@a.example", to, user: "ops" }]);
    expect(mail.mails[0]?.text).toContain("Subject: [Sluice] This is a test");
    await smtp("wrong", { tls: "none", username: "ops", password: `${PASSWORD}-not` });
    const wrong = await testOf("wrong");
    expect(wrong.message).toStartWith("127.0.0.1 rejects the user name and password");
    expect(wrong.message).not.toContain(PASSWORD);
  });

  test("with STARTTLS goes to a server whose CA is configured", async () => {
    const own = await selfSigned("localhost");
    const server = await startSmtpServer({ tls: own });
    try {
      const config = {
        host: "localhost",
        port: server.port,
        from: "a@b.example",
        to: ["c@d.example"],
      };
      const fields = { type: "smtp", events: ["worker_died"] };
      await api.create("/alerts", {
        name: "starttls",
        ...fields,
        config: { ...config, ca_certificates: own.cert },
      });
      expect(await testOf("starttls")).toMatchObject({ ok: true });
      expect(server.mails).toMatchObject([{ isEncrypted: true }]);
    } finally {
      server.stop();
    }
  });

  test("to a silent mail server times out with a message", async () => {
    const server = await startSmtpServer({ isSilent: true });
    try {
      const base = { host: "127.0.0.1", from: "a@b.example", to: ["c@d.example"] };
      const config = { ...base, port: server.port, timeout: 300 };
      const made = await api.create("/alerts", {
        name: "silent",
        type: "smtp",
        events: ["worker_died"],
        config,
      });
      expect(made.config.timeout).toBe(300);
      const began = performance.now();
      const [one, other] = await Promise.all(["silent", "silent"].map((name) => testOf(name)));
      expect(performance.now() - began).toBeGreaterThanOrEqual(300);
      expect([one, other].map(({ error, message }) => error ?? message).toSorted()).toEqual([
        expect.stringContaining("127.0.0.1 did not respond in time"),
        'a test of alert "silent" is in progress',
      ]);
      const body = { config: { timeout: 99 } };
      expect((await api.call("PATCH /alerts/silent", { body })).body.error).toContain(
        "config.timeout",
      );
      expect((await api.call("GET /alerts/plain")).body.config.timeout).toBe(10_000);
    } finally {
      server.stop();
    }
  });

  test("to a slow mail server has one timeout for all steps", async () => {
    const server = await startSmtpServer({ pauseMs: 250 });
    try {
      const config = {
        host: "127.0.0.1",
        port: server.port,
        tls: "none",
        timeout: 400,
        from: "a@b.example",
        to: ["c@d.example", "e@f.example"],
      };
      const fields = { name: "slow", type: "smtp", events: ["worker_died"], config };
      await api.create("/alerts", fields);
      expect(await testOf("slow")).toMatchObject({
        ok: false,
        message: "127.0.0.1 did not respond within 1.2 s",
      });
    } finally {
      server.stop();
    }
  });
});

describe("an alert", () => {
  test.each([
    ["of nothing", { events: [] }, {}, "events: "],
    ["of something unknown", { events: ["party"] }, {}, "events[0]"],
    ["without an address", {}, { url: undefined }, "config.url"],
    ["to a file", {}, { url: "file:///etc/passwd" }, "config.url: must be an http"],
    [
      "with a user in the address",
      {},
      { url: "http://a:b@x/" },
      "config.url: must not hold user information",
    ],
    [
      "with a field of ours",
      {},
      { headers: [{ name: "Host", value: "x" }] },
      "config.headers[0].name",
    ],
    [
      "with two lines in a field",
      {},
      { headers: [{ name: "A", value: "b\r\nC: d" }] },
      "config.headers[0].value",
    ],
    [
      "with an unknown variable",
      {},
      { template: '{"a": "${secret}"}' },
      "config.template: ${secret} is unknown",
    ],
    [
      "with a body that is no JSON",
      {},
      { template: '{"a": ${title}}' },
      "config.template: must be JSON",
    ],
    [
      "of a service that is not there",
      { service_ids: ["none"] },
      {},
      'service_ids[0]: service "none"',
    ],
    ["with a secret that is not there", {}, { url: { $secret: "none" } }, "config.url: "],
  ])("%s is rejected", async (_, fields, config, message) => {
    const body = {
      name: "refused-one",
      type: "webhook",
      events: ["target_down"],
      ...fields,
      config: { url: url("/x"), ...config },
    };
    const answer = await api.call("POST /alerts", { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(message);
  });

  test.each(["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433"])(
    "cannot reach the management API as %s",
    async (host) => {
      const config = { url: `http://${host}:${api.port}/api/v1/services` };
      const body = { name: "loop", type: "webhook", events: ["target_down"], config };
      const answer = await api.call("POST /alerts", { body });
      expect([answer.status, answer.body.error]).toEqual([
        400,
        "config.url: is the management API itself, which must not be proxied or called",
      ]);
    },
  );

  test("with a password for a mail server elsewhere must be encrypted", async () => {
    const config = {
      host: "mail.example.com",
      tls: "none",
      username: "a",
      password: "b",
      from: "a@b.example",
      to: ["c@d.example"],
    };
    const body = { name: "clear", type: "smtp", events: ["target_down"], config };
    const answer = await api.call("POST /alerts", { body });
    expect(answer.body.error).toBe("config.tls: must not be none when there is a password");
  });

  test("prevents the deletion of what it refers to", async () => {
    const answer = await api.call("DELETE /routes/shop");
    expect(answer.status).toBe(409);
    expect(answer.body.error).toContain('alert "of-route"');
  });

  test("keeps omitted secrets, removes them with null, and never shows them", async () => {
    const path = "PATCH /alerts/signed";
    await api.call(path, { body: { config: { template: null } } });
    received = [];
    expect((await testOf("signed")).ok).toBe(true);
    const [last] = at("/signed/canary-path");
    expect(last?.headers.get("authorization")).toBe(`Bearer ${TOKEN}`);
    expect(last?.json).toMatchObject({ event: "test", status: "test", alert: "signed" });
    await api.call(path, { body: { config: { secret: null } } });
    received = [];
    await testOf("signed");
    expect(at("/signed/canary-path")[0]?.headers.has("x-sluice-signature")).toBe(false);
    const places = [
      "/alerts",
      "/alerts/signed",
      "/alerts/plain",
      "/audit",
      "/export",
      "/revisions",
    ];
    for (const place of places) {
      const { status, body } = await api.call(`GET ${place}`);
      expect(status).toBe(200);
      for (const secret of secrets) expect(JSON.stringify(body)).not.toContain(secret);
    }
    for (const secret of secrets) expect(api.gateway.stderr).not.toContain(secret);
    expect(
      (await api.call("GET /audit")).body.some(
        ({ action }: { action: string }) => action === "test",
      ),
    ).toBe(true);
  });

  test("survives export and import, and masked secrets are kept", async () => {
    const document = (await api.call("GET /export")).body;
    const changed = JSON.parse(
      JSON.stringify(document).replaceAll('"events":["worker_died"]', '"events":["target_up"]'),
    );
    const answer = await api.call("POST /import?mode=merge", { body: changed });
    expect([answer.status, answer.body.error]).toEqual([200, undefined]);
    expect((await api.call("GET /alerts/plain")).body.events).toEqual(["target_up"]);
    expect((await testOf("plain")).ok).toBe(true);
    const { body } = await api.call("GET /alerts/types");
    expect(body.map(({ type }: { type: string }) => type)).toEqual(["webhook", "smtp"]);
  });
});

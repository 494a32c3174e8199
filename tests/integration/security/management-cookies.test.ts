// The cookies of the management API on their way past it: browsers send them to every port of the host, and no target, mirror,
// plugin or log may see one, nor may a target set one.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { H2Client } from "../../support/h2-client.ts";
import { type Origin, type OriginRequest, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { connectRaw, parseResponse } from "../../support/raw-http.ts";

const PASSWORD = "correct horse battery";
const OTHER = "sluice_session_12345678=of-another-gateway";
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = createHash("sha1")
  .update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest("base64");

let gateway: Gateway;
let origin: Origin;
let copies: Origin;
let decider: Origin;
/** `name=value` of the admin's session. */
let session = "";
let name = "";
let value = "";
/** Response headers of targets. */
let answered = "";

const answer = ({ target }: OriginRequest) => {
  if (target.startsWith("/switch"))
    return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${ACCEPT}\r\n${answered}\r\n`;
  return target.startsWith("/refuse")
    ? reply("no", { status: "403 Forbidden", headers: answered })
    : reply("ok", { headers: answered });
};

async function signIn(): Promise<string> {
  const body = { email: "root@a.example", password: PASSWORD };
  const response = await gateway.api("POST", "/api/v1/auth/login", body);
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

/** Calls the API as the admin. */
async function admin(method: string, path: string, body?: unknown) {
  const response = await gateway.api(method, `/api/v1${path}`, body, { cookie: session });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const echo = `export function onRequest(request) {
  if (request.path === "/script")
    request.reply(200, { body: JSON.stringify([request.headers.cookie ?? null, request.header("cookie"), request.cookie("NAME")]) });
}`;

async function configure() {
  const at = (port: number) => [{ host: "127.0.0.1", port }];
  await admin("POST", "/services", { name: "web", targets: at(origin.port) });
  await admin("POST", "/services", { name: "copies", targets: at(copies.port) });
  await admin("POST", "/routes", { name: "all", service_id: "web" });
  await admin("POST", "/routes", { name: "asked", service_id: "web", paths: ["/asked"] });
  await admin("POST", "/routes", { name: "cached", service_id: "web", paths: ["/cached"] });
  const byCookie = { name, op: "present" };
  await admin("POST", "/routes", {
    name: "by cookie",
    service_id: "copies",
    priority: 9,
    cookies: [byCookie],
  });
  const decide = { url: `http://127.0.0.1:${decider.port}/decide` };
  const copyTo = { url: `http://127.0.0.1:${copies.port}/url` };
  const template = `\${request.header.cookie} \${request.cookie.${name}} \${response.header.set-cookie}`;
  for (const plugin of [
    { name: "forward-auth", route_id: "asked", config: decide },
    { name: "mirror", route_id: "all", config: { service_id: "copies" } },
    { name: "mirror", route_id: "asked", config: copyTo },
    { name: "response-cache", route_id: "cached", config: { ttl_default: 60 } },
    { name: "script", config: { source: echo.replace("NAME", name) } },
    {
      name: "access-log",
      config: {
        sinks: [{ file: { format: "template", template } }],
        redact: { headers: [] },
        queue: { max_coalescing_delay: 0.05 },
      },
    },
  ])
    await admin("POST", "/plugins", plugin);
}

beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
  [origin, copies, decider] = [startOrigin(), startOrigin(), startOrigin()];
  origin.answer = answer;
  decider.answer = () => reply("", { headers: answered });
  const root = { email: "root@a.example", name: "Root", role: "admin", password: PASSWORD };
  await gateway.ok("POST", "/api/v1/users", root);
  session = await signIn();
  [name = "", value = ""] = session.split("=");
  await configure();
});
afterAll(async () => {
  for (const one of [origin, copies, decider]) one?.stop();
  await gateway?.stop();
});

/** Sends one request with these lines and returns what reached the origin, if anything did. */
async function send(path: string, lines: string) {
  const before = origin.requests.length;
  const conversation = await exchange(
    `GET ${path} HTTP/1.1\r\nHost: a.test\r\n${lines}Connection: close\r\n\r\n`,
    { port: gateway.httpPort },
  );
  return { ...conversation, seen: origin.requests[before] };
}

/** Asks for a WebSocket and returns the head of the answer. */
async function shakeHands(path: string, lines = "") {
  const connection = await connectRaw({ port: gateway.httpPort });
  connection.write(
    `GET ${path} HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n${lines}\r\n`,
  );
  const received = await connection.until("\r\n\r\n");
  connection.close();
  return parseResponse(received);
}

const setBy = (head: { readonly fields: readonly (readonly [string, string])[] } | undefined) =>
  (head?.fields ?? []).filter(([field]) => field === "set-cookie").map(([, set]) => set);

test("the name holds eight digits of the id of the installation", () => {
  expect(session).toMatch(/^sluice_session_[0-9a-f]{8}=[\w-]{43}$/);
});

test("a compromised application learns nothing that opens the management API", async () => {
  const { seen, outcome } = await send("/", `Cookie: app=1; ${session}; theme=dark\r\n`);
  expect(outcome).toBe("200");
  expect(seen?.head).not.toContain(value);
  const replayed = { cookie: seen?.header("cookie") ?? "" };
  const me = await gateway.api("GET", "/api/v1/auth/me", undefined, replayed);
  expect([me.status, replayed.cookie]).toEqual([401, "app=1; theme=dark"]);
});

describe("a target does not receive it", () => {
  const cases = [
    { why: "alone", cookies: ["%"], left: null },
    { why: "in the middle", cookies: ["a=1; %; b=2"], left: "a=1; b=2" },
    { why: "without spaces", cookies: ["a=1;%;b=2"], left: "a=1; b=2" },
    { why: "in several fields", cookies: ["a=1", "%", "b=2"], left: "a=1; b=2" },
    { why: "in a field of its own", cookies: ["%"], left: null },
    { why: "twice", cookies: ["%; a=1; %"], left: "a=1" },
    { why: "behind a quote that is not closed", cookies: ['a="; %; b="'], left: 'a="; b="' },
    { why: "beside one of another gateway", cookies: [`${OTHER}; %`], left: OTHER },
    {
      why: "beside those of plugins and sticky sessions",
      cookies: ["sluice_sticky=s; %; sluice_split=t; __Host-sluice_app=u; csrf_token=v"],
      left: "sluice_sticky=s; sluice_split=t; __Host-sluice_app=u; csrf_token=v",
    },
  ];
  const spellings = [
    { how: "as it is sent", spell: (pair: string) => pair },
    { how: "with the prefix of HTTPS", spell: (pair: string) => `__Host-${pair}` },
    { how: "that of a sign-in", spell: (pair: string) => pair.replace("=", "_sso=") },
    {
      how: "under the former name",
      spell: (pair: string) => pair.replace(/_[0-9a-f]{8}=/, "="),
    },
    { how: "in quotes", spell: (pair: string) => pair.replace(/=(.*)/, '="$1"') },
    { how: "with white space", spell: (pair: string) => ` \t${pair.replace("=", " =\t")} ` },
    {
      how: "with a value that opens nothing",
      spell: (pair: string) => pair.replace(/=.*/, "=x"),
    },
  ];
  describe.each(spellings)("$how", ({ spell }) => {
    test.each(cases)("$why", async ({ cookies, left }) => {
      const lines = cookies.map((text) => `Cookie: ${text.replaceAll("%", spell(session))}\r\n`);
      const { seen, outcome } = await send("/", lines.join(""));
      expect([outcome, seen?.header("cookie") ?? null]).toEqual(["200", left]);
      expect(seen?.head).not.toContain(value);
    });
  });

  test("over HTTP/2, where browsers send a field for each cookie", async () => {
    const client = await H2Client.connect({ port: gateway.httpsPort, tls: true });
    const before = origin.requests.length;
    const stream = client.headers([
      ...([
        [":method", "GET"],
        [":scheme", "https"],
        [":authority", "a.test"],
        [":path", "/"],
      ] as const),
      ...["a=1", session, `__Host-${session}`, "b=2", `${name}_sso=x`].map(
        (text) => ["cookie", text] as const,
      ),
    ]);
    expect((await client.result(stream)).outcome).toBe("200");
    client.close();
    expect(origin.requests[before]?.header("cookie")).toBe("a=1; b=2");
  });

  test("with a WebSocket", async () => {
    for (const [path, expected] of [
      ["/switch", 101],
      ["/refuse", 403],
    ] as const) {
      const before = origin.requests.length;
      const { status } = await shakeHands(path, `Cookie: ${session}; a=1\r\n`);
      const seen = origin.requests[before];
      expect([status, seen?.target, seen?.header("cookie")]).toEqual([expected, path, "a=1"]);
    }
  });

  test("while the former name with an invalid value, such as that of a gateway behind this one, passes", async () => {
    const theirs = `sluice_session=${"A".repeat(43)}`;
    const { seen } = await send("/", `Cookie: ${theirs}; a=1\r\n`);
    expect(seen?.header("cookie")).toBe(`${theirs}; a=1`);
  });
});

describe("neither does", () => {
  test.each(["/copied", "/asked/copied"])("a mirror of %s", async (path) => {
    await send(path, `Cookie: ${session}; a=1\r\n`);
    const find = () => copies.requests.find(({ target }) => target.endsWith(path));
    await eventually(() => find() !== undefined);
    const copy = find();
    expect(copy?.header("cookie")).toBe("a=1");
    expect(copy?.header("x-mirrored")).toBe("1");
  });

  test("an authorization server", async () => {
    decider.requests.length = 0;
    await send("/asked", `Cookie: ${session}; a=1\r\n`);
    expect(decider.requests.map((request) => request.header("cookie"))).toEqual(["a=1"]);
    await send("/asked", `Cookie: ${session}\r\n`);
    expect(decider.requests[1]?.header("cookie")).toBeNull();
  });

  test("a plugin", async () => {
    const { answers } = await send("/script", `Cookie: a=1; ${session}\r\n`);
    expect(JSON.parse(answers[0]?.body ?? "")).toEqual(["a=1", "a=1", null]);
    const alone = await send("/script", `Cookie: ${session}\r\n`);
    expect(JSON.parse(alone.answers[0]?.body ?? "")).toEqual([null, null, null]);
  });

  test("a route that would match it", async () => {
    const { seen } = await send("/asked/by-cookie", `Cookie: ${session}\r\n`);
    expect(seen?.target).toBe("/asked/by-cookie");
    const explained = await admin("POST", "/routes/explain", {
      url: "http://a.test/",
      headers: { cookie: session },
    });
    expect(explained).toMatchObject({ route: { name: "all" } });
  });

  test("an access log, the list of requests, or the log of the gateway", async () => {
    answered = `Set-Cookie: ${session}\r\nSet-Cookie: app=logged\r\n`;
    await send("/logged", `Cookie: ${session}; a=logged\r\n`);
    answered = "";
    const path = join(gateway.dataDir, "logs", "access.log");
    await eventually(
      () => existsSync(path) && readFileSync(path, "latin1").includes("a=logged - app=logged"),
    );
    const requests = await admin("GET", "/requests?limit=500");
    for (const text of [readFileSync(path, "latin1"), JSON.stringify(requests), gateway.stderr])
      expect(text).not.toContain(value);
  });
});

describe("a Set-Cookie of a target", () => {
  const forged = () => [
    `${name}=stolen`,
    `${name}=; Max-Age=0`,
    `__Host-${name}=stolen; Secure; Path=/`,
    `${name}_sso=stolen; Path=/api/v1/auth/sso`,
    ` ${name} =stolen; Domain=a.test`,
    `=${name}=stolen`,
    `sluice_session=${value}`,
  ];
  const passed = () => ["app=1; Path=/", "sluice_session=x", OTHER, `x=${name}`, `${name}x=1`];
  const lines = (fields: readonly string[]) =>
    fields.map((text) => `Set-Cookie: ${text}\r\n`).join("");

  test.each(["/", "/cached", "/asked", "/refuse", "/switch", "/refuse?http"])(
    "reaches the client through %s without the cookies of the management API",
    async (path) => {
      answered = lines([...forged().slice(0, 4), ...passed(), ...forged().slice(4)]);
      const isUpgrade = path === "/switch" || path === "/refuse";
      for (let turn = 0; turn < 2; turn++) {
        const head = isUpgrade ? await shakeHands(path) : (await send(path, "")).answers[0];
        const twice = path === "/asked" ? [...passed(), ...passed()] : passed();
        expect(setBy(head)).toEqual(twice);
      }
      answered = "";
    },
  );

  test("is dropped in any spelling of the field, alone as well", async () => {
    for (const field of ["Set-Cookie", "set-cookie", "SET-COOKIE", "sEt-cOOkie"]) {
      answered = `${field}: ${session}\r\n`;
      const { answers } = await send("/", "");
      expect([answers[0]?.status, answers[0]?.header("set-cookie")]).toEqual([200, null]);
    }
    answered = "";
  });

  test("is dropped from the response of a server that refuses requests", async () => {
    answered = lines([...forged(), ...passed()]);
    decider.answer = () => reply("no", { status: "401 Unauthorized", headers: answered });
    const { answers } = await send("/asked", "");
    answered = "";
    decider.answer = () => reply("", { headers: answered });
    expect(answers[0]?.status).toBe(401);
    expect(setBy(answers[0])).toEqual(passed());
  });
});

describe("a session under the former name", () => {
  test("is hidden in every worker from its beginning to its end, and valid for the API meanwhile", async () => {
    const [, fresh = ""] = (await signIn()).split("=");
    const former = `sluice_session=${fresh}`;
    const seenByTargets = async () => {
      const seen = await Promise.all(
        Array.from({ length: 16 }, () => send("/", `Cookie: ${former}\r\n`)),
      );
      return new Set(seen.map((one) => one.seen?.header("cookie") ?? null));
    };
    expect(await seenByTargets()).toEqual(new Set([null]));
    const headers = { cookie: former };
    const me = await gateway.api("GET", "/api/v1/auth/me", undefined, headers);
    expect(me.status).toBe(200);
    const out = await gateway.api("POST", "/api/v1/auth/logout", undefined, headers);
    expect(out.headers.getSetCookie()).toEqual(
      [name, "sluice_session"].map((one) => `${one}=; HttpOnly; Max-Age=0; Path=/; SameSite=Lax`),
    );
    await eventually(async () => (await seenByTargets()).has(former));
  });

  test("is known to workers that start later", async () => {
    await gateway.restart();
    const former = `sluice_session=${value}`;
    const { seen } = await send("/", `Cookie: ${former}; a=1\r\n`);
    expect(seen?.header("cookie")).toBe("a=1");
    expect((await admin("GET", "/auth/me")).user.email).toBe("root@a.example");
  });
});

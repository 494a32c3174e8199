// Every text that the management API takes, filled with what other programs execute, expand, cut or misread.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { lackOf, needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";
import {
  type Description,
  examples,
  type Json,
  textAt,
  withText,
  writablesOf,
} from "./string-fields.ts";

const ID = "01a1fd00-0000-7000-8000-000000000001";
const marker = join(tmpdir(), `sluice-executed-${process.pid}`);

const hostile = [
  [`$(touch ${marker})`, "a shell would run it"],
  [`\`touch ${marker}\``, "a shell would run it"],
  [`; touch ${marker} #`, "a shell would run it"],
  [`|touch ${marker}`, "Perl's open and others would run it"],
  ["a\r\nX-Injected: 1\r\n\r\n<html>", "a second header, or a second response"],
  ["a\nX-Injected: 1", "some take a lone line feed for a line's end"],
  ["../../../../../../etc/passwd", "another file"],
  ["a\u0000b", "ends a text in C"],
  ["\u001b]0;title\u0007\u001b[31m", "drives a terminal"],
  ["__proto__", "changes what every object inherits"],
  ["$".concat("{process.exit(1)}{{constructor}}"), "template languages would run it"],
  ["'; DROP TABLE users; --", "SQL"],
  ["<script>alert(1)</script>", "a page would run it"],
  ["\u202e\ufeff\u2028", "invisible or reordering characters"],
] as const;

let gateway: Gateway;
let token: Record<string, string>;
let files: string[];
/** What reaches a target. */
let received = "";
const target = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    data(socket, chunk) {
      received += chunk.toString("latin1");
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    },
  },
});

beforeAll(async () => {
  gateway = await startGateway({ workers: 1, args: ["--log-level", "debug"] });
  const targets = [{ host: "127.0.0.1", port: target.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "base", targets });
  await gateway.ok("POST", "/api/v1/consumers", { username: "base" });
  const admin = { email: "admin@example.org", name: "Admin", role: "admin" };
  await gateway.ok("POST", "/api/v1/users", { ...admin, password: "correct horse battery staple" });
  const { stdout } = await runCommand(["token", "--data-dir", gateway.dataDir]);
  token = { "x-admin-token": stdout.trim() };
  files = readdirSync(gateway.dataDir).sort();
});
afterAll(async () => {
  await gateway.stop();
  target.stop(true);
  rmSync(marker, { force: true });
});

const call = (method: string, path: string, body?: unknown) =>
  gateway.api(method, path, body, token);

/** Whatever is wrong with an answer by itself. */
async function judged(response: Response): Promise<{ status: number; body: Json }> {
  expect(response.headers.get("x-injected")).toBeNull();
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  const body = (await response.json()) as Json;
  if (response.status !== 200) {
    expect([400, 409]).toContain(response.status);
    expect(Object.keys(body)).toEqual(["error"]);
  }
  return { status: response.status, body };
}

/** Health of targets changes by itself. */
const withoutRunTime = (body: unknown) =>
  JSON.parse(
    JSON.stringify(body, (key, value) => (key === "health" && value.since ? undefined : value)),
  );

/** What a client of the gateway sees, as it is on the wire. */
async function visit(host: string, path: string): Promise<string> {
  const head = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nX-A: 1\r\nCookie: X-A=1\r\nConnection: close\r\n\r\n`;
  return (await exchange(head, { port: gateway.httpPort })).received;
}

describe("text that is executed, expanded or truncated elsewhere", () => {
  let tracer: Bun.Subprocess<"ignore", "ignore", "pipe"> | null = null;
  const trace = () => join(gateway.dataDir, "..", `sluice-trace-${process.pid}`);

  beforeAll(async () => {
    if (lackOf("strace") !== null) return;
    const words = ["strace", "-f", "-e", "trace=execve,execveat", "-o", trace()];
    tracer = Bun.spawn([...words, "-p", String(gateway.pid)], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const reader = tracer.stderr.getReader();
    const { value } = await reader.read();
    reader.releaseLock();
    const said = new TextDecoder().decode(value);
    if (said.includes("attached")) return;
    // Containers and machines with Yama may forbid it.
    console.log(`not looked at which programs are started, because strace said: ${said}`);
    tracer = null;
  });
  afterAll(() => {
    tracer?.kill("SIGINT");
    rmSync(trace(), { force: true });
  });

  test("is stored as it is or refused, in every field", async () => {
    const description = (await (await fetch(`${gateway.admin}/docs/json`)).json()) as Description;
    const writables = writablesOf(description);
    const paths = writables.map(({ path }) => path);
    for (const path of Object.keys(examples))
      if (path !== "/api/v1/tokens/{id}") expect(paths).toContain(path);
    let stored = 0;
    for (const { path, places, isReadable } of writables) {
      const url = path.replace(/\{\w+\}/, ID);
      const example = examples[path];
      if (example !== undefined)
        expect((await judged(await call("PUT", url, example))).status).toBe(200);
      for (const place of places)
        for (const [text] of hostile) {
          const { status, body } = await judged(
            await call("PUT", url, withText(example, place, text)),
          );
          if (status !== 200) continue;
          stored++;
          const found = textAt(body, place);
          // What is write-only is not shown, and a path may be written in short.
          if (typeof found === "string" && found !== text)
            throw new Error(
              `${path} ${place.join(".")}: ${JSON.stringify(text)} became ${JSON.stringify(found)}`,
            );
          if (!isReadable) continue;
          const read = await judged(await call("GET", url));
          expect(withoutRunTime(read.body)).toEqual(withoutRunTime(body));
          if (!/routes|settings|services/.test(path)) continue;
          const host = path.includes("settings") ? "unknown.example.org" : "a.example.org";
          const seen = await visit(host, "/x?X-A=1");
          if (/^x-injected/im.test(seen)) throw new Error(`${path} ${place.join(".")}: ${seen}`);
          expect(seen).toMatch(/^HTTP\/1\.1 (?!500)/);
        }
      if (example !== undefined)
        expect((await judged(await call("PUT", url, example))).status).toBe(200);
    }
    expect(stored).toBeGreaterThan(200);
    expect(received).toContain("GET /y?X-A=1 HTTP/1.1\r\n");
    expect(received).not.toMatch(/^x-injected/im);
    expect(received).not.toMatch(/[\u0000-\u0009\u000b\u000c\u000e-\u001f]/);
  });

  test("is the same after a restart", async () => {
    const text = hostile.map(([each]) => each).join(" ");
    const service = { name: "kept", description: text, tags: hostile.map(([each]) => each) };
    expect((await call("POST", "/api/v1/services", service)).status).toBe(200);
    const lists = async () =>
      Promise.all(
        ["services", "routes", "consumers", "credentials", "plugins"]
          .concat(["users", "secrets", "settings", "sso"])
          .map(async (name) => withoutRunTime(await (await call("GET", `/api/v1/${name}`)).json())),
      );
    const before = await lists();
    tracer?.kill("SIGINT");
    await tracer?.exited;
    await gateway.restart();
    expect(await lists()).toEqual(before);
  });

  test("made no file", () => {
    expect(existsSync(marker)).toBe(false);
    expect(readdirSync(gateway.dataDir).sort()).toEqual(files);
  });

  needs("strace").test("started no program", () => {
    if (tracer === null) return;
    expect(
      readFileSync(trace(), "utf8")
        .split("\n")
        .filter((line) => line.includes("exec")),
    ).toEqual([]);
  });

  test("forged no line of the log", () => {
    const lines = gateway.stderr.split("\n").filter((line) => line !== "");
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty("level");
    expect(gateway.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
    expect(gateway.log.filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("JSON that parsers read differently", () => {
  const service = '"name":"a"';
  test.each([
    ["POST", "/services", `{${service},"name":"b"}`, "name: is given twice"],
    ["POST", "/services", `{${service},"n\\u0061me":"b"}`, "name: is given twice"],
    [
      "POST",
      "/services",
      `{${service},"targets":[{"port":1,"host":"a","port":2}]}`,
      "targets[0].port: is given twice",
    ],
    ["PUT", "/settings", '{"limits":{},"limits":{"shutdown_timeout":1}}', "limits: is given twice"],
    [
      "PATCH",
      "/settings",
      '{"public_url":null,"public_url":"http://x"}',
      "public_url: is given twice",
    ],
    [
      "POST",
      "/users",
      '{"role":"viewer","role":"admin","email":"x@example.org","name":"x"}',
      "role: is given twice",
    ],
    ["POST", "/secrets", '{"name":"x","value":"1","value":"2"}', "value: is given twice"],
    [
      "PATCH",
      "/sso",
      '{"client_secret":{"$secret":"a","$secret":"b"}}',
      "client_secret.$secret: is given twice",
    ],
    [
      "PATCH",
      "/settings",
      '{"limits":{"shutdown_timeout":9007199254740993}}',
      "limits.shutdown_timeout: is a number beyond",
    ],
    [
      "PATCH",
      "/settings",
      '{"limits":{"shutdown_timeout":1e400}}',
      "limits.shutdown_timeout: is a number beyond",
    ],
    [
      "POST",
      "/services",
      `{${service},"description":"\\ud800"}`,
      "description: holds a lone surrogate",
    ],
    [
      "POST",
      "/services",
      `{${service},"__proto__":{"enabled":false}}`,
      "__proto__: is not a known field",
    ],
    [
      "POST",
      "/services",
      `{${service},"constructor":{"prototype":{}}}`,
      "constructor: is not a known field",
    ],
    ["POST", "/services", `\ufeff\ufeff{${service}}`, "the body is not valid JSON"],
    ["POST", "/services", `{${service}}{}`, "the body is not valid JSON"],
    ["POST", "/services", `{${service},}`, "the body is not valid JSON"],
    ["POST", "/services", `{${service}/**/}`, "the body is not valid JSON"],
    ["POST", "/services", `{${service},"port":NaN}`, "the body is not valid JSON"],
    ["POST", "/services", `{${service},"enabled":"true"}`, "enabled: must be true or false"],
    [
      "POST",
      "/services",
      `{${service},"connect_timeout":"5"}`,
      "connect_timeout: must be an integer",
    ],
    [
      "POST",
      "/services",
      `${"[".repeat(65)}${"]".repeat(65)}`,
      "the body is nested deeper than 64 levels",
    ],
  ])("is refused: %s %s %s", async (method, path, body, message) => {
    const response = await call(method, `/api/v1${path}`, body);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toStartWith(message);
  });

  test("in another encoding is refused", async () => {
    for (const bytes of [
      Buffer.from('\ufeff{"name":"a"}', "utf16le"),
      Buffer.from([0x7b, 0xff, 0x7d]),
    ]) {
      const response = await fetch(`${gateway.admin}/api/v1/services`, {
        method: "POST",
        headers: { ...token, "content-type": "application/json" },
        body: new Uint8Array(bytes),
      });
      expect(response.status).toBe(400);
    }
  });

  test("after one byte order mark is accepted without it", async () => {
    const response = await call("POST", "/api/v1/services?dry_run=1", '\ufeff{"name":"marked"}');
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ name: "marked" });
  });
});

describe("the management API", () => {
  test.each(["127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0", "127.9.9.9"])(
    "is refused as the target %s",
    async (host) => {
      const port = Number(new URL(gateway.admin).port);
      const body = { service_id: "base", host, port };
      const { status, body: answer } = await judged(await call("POST", "/api/v1/targets", body));
      expect(status).toBe(400);
      expect(answer.error).toBe(
        "host: is the management API itself, which must not be proxied or called",
      );
    },
  );

  test("never responds to requests that the gateway itself sends, under any target name", async () => {
    // A name that the gateway cannot recognise, here because the first hop is another proxy that leads back.
    const admin = Number(new URL(gateway.admin).port);
    const hop = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        async data(socket, chunk) {
          const { received } = await exchange(chunk.toString("latin1"), { port: admin });
          socket.end(received);
        },
      },
    });
    try {
      const target = { host: "127.0.0.1", port: hop.port };
      const hosts = ["loop.example.org"];
      await judged(
        await call("POST", "/api/v1/services", {
          name: "loop",
          host_header: "localhost",
          targets: [target],
        }),
      );
      await judged(
        await call("POST", "/api/v1/routes", { name: "loop", service_id: "loop", hosts }),
      );
      const answer = await visit("loop.example.org", "/api/v1/admin/status");
      expect(answer).toStartWith("HTTP/1.1 403 ");
      expect(answer).toContain("requests that the gateway itself proxies are not accepted");
    } finally {
      hop.stop(true);
    }
  });

  test("still works after all that", async () => {
    await eventually(async () => (await fetch(`${gateway.admin}/readyz`)).status === 200);
  });
});

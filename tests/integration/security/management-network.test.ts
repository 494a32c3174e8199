// The management listener as the network sees it: where it listens, which addresses, names and pages may use it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { decodeOptions } from "../../../src/cli/serve.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { listeningAddresses } from "../../support/listening.ts";
import { needs } from "../../support/needs.ts";
import { parseResponse, sendRaw } from "../../support/raw-http.ts";

const PASSWORD = "correct horse battery";
const ROOT = { email: "root@a.example", name: "Root", role: "admin", password: PASSWORD };

let gateway: Gateway;
let bearer: Record<string, string> = {};

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
});
afterAll(() => gateway?.stop());

const port = () => Number(new URL(gateway.admin).port);
const ask = (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) =>
  gateway.api(method, path, body, { ...bearer, ...headers });

/** Sends bytes as they are and says what status came back. */
async function status(...lines: string[]): Promise<number> {
  const text = await sendRaw(`${lines.join("\r\n")}\r\n`, { port: port() });
  return parseResponse(text).status;
}

describe("a fresh installation", () => {
  test("puts the management API on this machine's own address", () => {
    const { admin, adminTls } = decodeOptions({
      get: () => undefined,
      all: () => [],
      has: () => false,
    });
    expect([admin, adminTls]).toEqual([{ hostname: "127.0.0.1", port: 9080 }, null]);
  });

  needs("linux").test("listens nowhere else with it", () => {
    const ports = [port(), gateway.httpPort, gateway.httpsPort];
    expect(listeningAddresses(gateway.pid)).toEqual(
      ports.map((each) => `127.0.0.1:${each}`).sort(),
    );
  });

  test("has no default token or password", async () => {
    const { exists } = await gateway.ok("GET", "/api/v1/admin/token");
    expect(exists).toBe(false);
    expect(await gateway.ok("GET", "/api/v1/users")).toEqual([]);
  });
});

describe.each([{ mode: "while there are no users" }, { mode: "with a token of an admin" }])(
  "$mode",
  ({ mode }) => {
    beforeAll(async () => {
      if (mode.startsWith("while")) return;
      await gateway.ok("POST", "/api/v1/users", ROOT);
      const login = { email: ROOT.email, password: PASSWORD };
      const response = await gateway.api("POST", "/api/v1/auth/login", login);
      const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
      const made = await gateway.api("POST", "/api/v1/admin/token", undefined, { cookie });
      bearer = { authorization: `Bearer ${((await made.json()) as { token: string }).token}` };
    });

    const authorization = () =>
      Object.entries(bearer)
        .map(([name, value]) => `${name}: ${value}`.concat("\r\n"))
        .join("");

    const post = (head: string[], body: string) =>
      status(
        "POST /api/v1/services HTTP/1.1",
        ...head,
        `Content-Length: ${body.length}`,
        `${authorization()}Connection: close`,
        "",
        body,
      );
    const foreign = [
      {
        why: "a form's text/plain",
        head: ["Origin: http://evil.example", "Content-Type: text/plain"],
      },
      {
        why: "no type, as a beacon may have it",
        head: ["Origin: http://evil.example"],
      },
      {
        why: "JSON after a preflight that nobody allowed",
        head: ["Origin: http://evil.example", "Content-Type: application/json"],
      },
      { why: "an opaque origin", head: ["Origin: null", "Content-Type: application/json"] },
      {
        why: "an origin that begins like ours",
        head: ["Origin: http://localhost.evil.example", "Content-Type: application/json"],
      },
      {
        why: "our name on another port",
        head: ["Origin: http://localhost:1", "Content-Type: application/json"],
      },
      {
        why: "two origins, one of them ours",
        head: [
          "Origin: http://localhost",
          "Origin: http://evil.example",
          "Content-Type: application/json",
        ],
      },
      {
        why: "no origin, but a browser that tells",
        head: ["Sec-Fetch-Site: cross-site", "Content-Type: application/json"],
      },
      {
        why: "a browser that tells in other letters",
        head: ["Sec-Fetch-Site: Cross-Site", "Content-Type: application/json"],
      },
      {
        why: "a sister of our site",
        head: ["Sec-Fetch-Site: same-site", "Content-Type: application/json"],
      },
    ];
    test.each(foreign)("a page of another site changes nothing: $why", async ({ head }) => {
      expect(await post(["Host: localhost", ...head], '{"name":"evil"}')).toBe(403);
      expect((await ask("GET", "/api/v1/services/evil")).status).toBe(404);
    });

    test("a page cannot read responses: none names an origin", async () => {
      for (const path of ["/api/v1/services", "/api/v1/admin/status", "/openapi.yaml"]) {
        const { headers } = await ask("GET", path, { origin: "http://evil.example" });
        expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
      }
    });

    test.each([
      { why: "a name of somebody else", lines: ["Host: evil.example"] },
      { why: "that name with our port", lines: ["Host: evil.example:9080"] },
      { why: "a name that holds our address", lines: ["Host: 127.0.0.1.evil.example"] },
      { why: "a name that ends like ours", lines: ["Host: evillocalhost"] },
      { why: "two names", lines: ["Host: localhost", "Host: evil.example"] },
      { why: "a name with another one before it", lines: ["Host: localhost@evil.example"] },
      { why: "nothing", lines: ["Host: "] },
    ])("a name that resolves to this machine is refused: $why", async ({ lines }) => {
      for (const method of ["GET", "DELETE"]) {
        const path = "/api/v1/services/x";
        const seen = await status(
          `${method} ${path} HTTP/1.1`,
          ...lines,
          `${authorization()}X-Forwarded-Host: localhost`,
          "Connection: close",
          "",
        );
        expect([400, 403]).toContain(seen);
      }
    });

    test("only the address of the socket counts", async () => {
      const settings = "/api/v1/settings";
      const claims = ["127.0.0.1", "192.0.2.1", "::1"].flatMap((address) => [
        { "x-forwarded-for": address },
        { "x-real-ip": address },
        { forwarded: `for="${address}"` },
        { "cf-connecting-ip": address, "true-client-ip": address, "x-client-ip": address },
      ]);
      const trusting = { trusted_proxies: ["0.0.0.0/0", "::/0"] };
      const bounded = { ...trusting, admin_allowed_cidrs: ["127.0.0.0/8"] };
      expect((await ask("PATCH", settings, {}, bounded)).status).toBe(200);
      for (const claim of claims)
        expect((await ask("GET", settings, claim as Record<string, string>)).status).toBe(200);
      const shut = { admin_allowed_cidrs: ["192.0.2.0/24"] };
      // From here on no client can return over the network; the tests after this one start anew.
      const response = await ask("PATCH", `${settings}?dry_run=1&force=1`, {}, shut);
      expect(response.status).toBe(200);
      const other = await startGateway({ workers: 1 });
      try {
        await other.ok("PATCH", `${settings}?force=1`, { ...trusting, ...shut });
        for (const claim of [{}, ...claims]) {
          const { status: seen } = await other.api(
            "GET",
            settings,
            undefined,
            claim as Record<string, string>,
          );
          expect([claim, seen]).toEqual([claim, 403]);
        }
        expect((await other.api("GET", "/healthz")).status).toBe(200);
      } finally {
        await other.stop();
      }
    });
  },
);

// Self-hosted DNS providers: webhook, acme-dns, exec; and Duck DNS, which stores only one record.
import type { Fetch } from "../../../../src/dialer/dialer.ts";
import { testDialer } from "../../../support/dialer.ts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DnsProviderType } from "../../../../src/model/dns-provider.ts";
import { decode } from "../../../../src/model/decode.ts";
import { dnsProviders } from "../../../../src/acme/dns/index.ts";
import { eventually } from "../../../support/poll.ts";

interface Seen {
  readonly path: string;
  readonly authorization: string | null;
  readonly user: string | null;
  readonly key: string | null;
  readonly body: unknown;
}

let seen: Seen[] = [];
let status = 200;
let server: ReturnType<typeof Bun.serve>;
let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "sluice-dns-exec-"));
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { headers } = request;
      const url = new URL(headers.get("x-meant-url") ?? request.url);
      const text = await request.text();
      seen.push({
        path: `${url.pathname}${url.search}`,
        authorization: headers.get("authorization"),
        user: headers.get("x-api-user"),
        key: headers.get("x-api-key"),
        body: text === "" ? null : JSON.parse(text),
      });
      if (url.hostname === "www.duckdns.org")
        return new Response(url.searchParams.get("token") === "right" ? "OK" : "KO");
      return new Response("as-secret-as-it-gets", { status });
    },
  });
});
afterAll(async () => {
  await server.stop(true);
  rmSync(dir, { recursive: true, force: true });
});
afterEach(() => {
  seen = [];
  status = 200;
});

const bring = ((input: string, init: RequestInit) => {
  const headers = new Headers(init.headers);
  headers.set("x-meant-url", input);
  return fetch(server.url, { ...init, headers });
}) as unknown as typeof fetch;

const remembered = new Map<string, string>();

const open = (
  type: DnsProviderType,
  config: object,
  {
    fetch,
    ...more
  }: { programs?: string[]; fetch?: typeof globalThis.fetch; signal?: AbortSignal } = {},
) => {
  const definition = dnsProviders[type];
  return definition.create(decode(definition.config, config), {
    dialer:
      fetch === undefined
        ? testDialer
        : { fetch: fetch as Fetch, addressesOf: (server) => testDialer.addressesOf(server) },
    zones: [],
    programs: [],
    remembered,
    inTurn: (_: string, run) => run(),
    ...more,
  });
};

const messageOf = (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error: Error) => error.message,
  );

const record = { fqdn: "_acme-challenge.www.example.com", value: "a-text" };

describe("webhook", () => {
  const url = () => `http://127.0.0.1:${server.port}/hook/`;

  test("posts what lego's httpreq posts, with a bearer secret", async () => {
    const client = open("webhook", { url: url(), token: "as-secret-as-it-gets" });
    await client.present(record);
    await client.cleanUp(record);
    const body = { fqdn: "_acme-challenge.www.example.com.", value: "a-text" };
    const authorization = "Bearer as-secret-as-it-gets";
    expect(seen).toMatchObject([
      { path: "/hook/present", authorization, body },
      { path: "/hook/cleanup", authorization, body },
    ]);
  });

  test("posts with a user name and a password instead", async () => {
    await open("webhook", { url: url(), username: "me", password: "pass" }).present(record);
    expect(seen[0]?.authorization).toBe(`Basic ${btoa("me:pass")}`);
  });

  test("reports the status, and masks the secret where the service repeats it", async () => {
    status = 403;
    const client = open("webhook", { url: url(), token: "as-secret-as-it-gets" });
    const message = await messageOf(client.present(record));
    expect(message).toBe(
      "the webhook does not allow this with these credentials (status 403: ***)",
    );
  });

  test("reports an unreachable server without its address", async () => {
    const client = open("webhook", { url: "http://127.0.0.1:1/secret-path" });
    const message = await messageOf(client.present(record));
    expect(message).toContain("127.0.0.1:1 refused the connection");
    expect(message).not.toContain("secret-path");
  });
});

test("acme-dns receives the text of its one name", async () => {
  const client = open("acme-dns", {
    url: `http://127.0.0.1:${server.port}`,
    username: "user",
    password: "pass",
    fulldomain: "abc.auth.example.org",
  });
  await client.present({ fqdn: "abc.auth.example.org", value: "a-text" });
  expect(seen).toMatchObject([
    { path: "/update", user: "user", key: "pass", body: { subdomain: "abc", txt: "a-text" } },
  ]);
  expect(await messageOf(client.present(record))).toContain(
    "must be a CNAME to abc.auth.example.org",
  );
});

describe("Duck DNS", () => {
  const fqdn = "_acme-challenge.www.home.duckdns.org";

  test("stores one text per name, and reports a second one", async () => {
    const client = open("duckdns", { token: "right" }, { fetch: bring });
    await client.present({ fqdn, value: "one" });
    expect(await messageOf(client.present({ fqdn, value: "two" }))).toContain("has one TXT record");
    await client.cleanUp({ fqdn, value: "two" });
    await client.cleanUp({ fqdn, value: "one" });
    await client.present({ fqdn, value: "two" });
    expect(seen.map(({ path }) => path)).toEqual([
      "/update?domains=home&token=right&txt=one",
      "/update?domains=home&token=right&txt=one&clear=true",
      "/update?domains=home&token=right&txt=two",
    ]);
  });

  test("reports a wrong token without showing it", async () => {
    const client = open("duckdns", { token: "wr0ng" }, { fetch: bring });
    const message = await messageOf(
      client.present({ fqdn: "_acme-challenge.b.duckdns.org", value: "x" }),
    );
    expect(message).toContain("the token or the name b is wrong");
    expect(message).not.toContain("wr0ng");
  });
});

describe("exec", () => {
  const script = (name: string, text: string) => {
    const path = join(dir, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const run = (program: string, more: object = {}) =>
    open("exec", { program, ...more }, { programs: [program] });

  test("runs the program with arguments, without a shell or environment", async () => {
    process.env["SLUICE_CANARY"] = "canary";
    const out = join(dir, "out");
    const program = script(
      "write",
      `printf '%s\\n' "$@" "env=$SLUICE_CANARY$HOME" "$PWD" > ${out}`,
    );
    const value = "$(touch /tmp/never); `id` ' \" *";
    await run(program, { arguments: ["--zone", "a b"] }).present({ ...record, value });
    delete process.env["SLUICE_CANARY"];
    expect(readFileSync(out, "utf8").split("\n")).toEqual([
      ...["--zone", "a b", "present", "_acme-challenge.www.example.com.", value, "env=", "/", ""],
    ]);
  });

  test("runs only programs that the command line allows", async () => {
    const marker = join(dir, "marker");
    const program = script("other", `touch ${marker}`);
    for (const programs of [[], [`${dir}/../${dir.split("/").at(-1)}/other`], [dir]]) {
      const client = open("exec", { program }, { programs });
      expect(await messageOf(client.present(record))).toContain(
        "start the gateway with --dns-exec",
      );
    }
    expect(existsSync(marker)).toBe(false);
  });

  test("reports the exit status and none of the output", async () => {
    const program = script("fail", "echo a-secret; echo a-secret >&2; exit 3");
    expect(await messageOf(run(program).cleanUp(record))).toBe(`${program} exited with code 3`);
    const missing = join(dir, "missing");
    expect(await messageOf(run(missing).present(record))).toContain("cannot be run (ENOENT)");
  });

  test("handles a program that writes endlessly", async () => {
    const program = script("chatty", "head -c 5000000 /dev/zero; exit 0");
    await run(program).present(record);
  });

  test("kills a program that times out, and its children", async () => {
    const pidFile = join(dir, "pid");
    const program = script("slow", `sleep 600 & echo $! > ${pidFile}; wait`);
    const message = await messageOf(run(program, { timeout: 1 }).present(record));
    expect(message).toBe(`${program} did not exit within 1 s and was killed`);
    const pid = Number(readFileSync(pidFile, "utf8"));
    await eventually(() => !isRunning(pid));
  });
});

/** An unreaped zombie does not run. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

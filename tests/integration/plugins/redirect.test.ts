// redirect on a real data plane: where clients are sent, and that they can never choose the host.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import redirect from "../../../src/plugins/redirect.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { exchange } from "../../support/raw-exchange.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "redirect" }],
    settings: { trusted_proxies: ["127.0.0.1"] },
  });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "redirect", config }] });

/** Status and Location for a target as it is sent, dots and slashes included. */
async function ask(target: string, headers: Record<string, string> = {}) {
  const lines = Object.entries({ Host: "old.example", ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
  const { answers } = await exchange(`GET ${target} HTTP/1.1\r\n${lines}\r\n`, {
    port: scene.plane.port,
  });
  return { status: answers[0]?.status, location: answers[0]?.header("location") ?? null };
}

test("without settings, the same address under https", async () => {
  await configure({});
  expect(await ask("/a?b=1", { Host: "old.example:8080" })).toEqual({
    status: 308,
    location: "https://old.example/a?b=1",
  });
  expect((await ask("/a", { "X-Forwarded-Proto": "https" })).status).toBe(200);
});

test.each([
  [{ scheme: "https", keep_path: false, keep_query: false }, "/a?b=1", "https://old.example/"],
  [{ to: "https://new.example" }, "/a/b?c=d", "https://new.example/a/b?c=d"],
  [{ to: "https://new.example/base/" }, "/a", "https://new.example/base/a"],
  [{ to: "https://new.example/?x=1#top" }, "/a?b=2", "https://new.example/a?x=1&b=2#top"],
  [{ to: "https://new.example/x", keep_path: false }, "/a?b=1", "https://new.example/x?b=1"],
  [
    { to: "https://new.example/x", keep_path: false, keep_query: false },
    "/a?b=1",
    "https://new.example/x",
  ],
  [{ to: "https://new.example/${request.path}" }, "/a?b=1", "https://new.example//a?b=1"],
  [{ to: "https://new.example${request.target}" }, "/a?b=1", "https://new.example/a?b=1"],
  [{ to: "${request.scheme}://new.example" }, "/a", "http://new.example/a"],
  [{ to: "https://www.${request.host}" }, "/a", "https://www.old.example/a"],
  [{ to: "/new" }, "/a?b=1", "/new/a?b=1"],
  [{ prefix: "/old", to: "/new" }, "/old/a?b=1", "/new/a?b=1"],
  [{ prefix: "/old", to: "/new" }, "/old", "/new"],
  [{ prefix: "/old", to: "/new" }, "/old/", "/new/"],
  [{ prefix: "/old/", to: "/new/" }, "/old/a", "/new/a"],
  [{ prefix: "/old", to: "/" }, "/old/a", "/a"],
  [{ prefix: "/old", to: "/" }, "/old//evil.example", "/evil.example"],
  [{ prefix: "/old", to: "/?from=old#top" }, "/old/a?b=1", "/a?from=old&b=1#top"],
  [{ prefix: "/old", to: "https://new.example" }, "/old", "https://new.example/"],
  [{ prefix: "/old", to: "https://new.example" }, "/old/@evil", "https://new.example/@evil"],
  [
    { prefix: "/old", to: "https://new.example/base", keep_query: false },
    "/old/a?b=1",
    "https://new.example/base/a",
  ],
  [{ prefix: "/", to: "/all" }, "/a", "/all/a"],
  [
    { regex: "^/p/(\\d+)$", to: "https://new.example/post?id=$1" },
    "/p/7?b=1",
    "https://new.example/post?id=7&b=1",
  ],
  [{ regex: "^/(?<lang>de|en)/", to: "/$<lang>.html", keep_query: false }, "/de/x?b=1", "/de.html"],
  [
    { regex: "^/t/([^/]+)", to: "https://$1.example.com/" },
    "/t/alice",
    "https://alice.example.com/",
  ],
])("%j sends %s to %s", async (config, target, location) => {
  await configure(config);
  expect(await ask(target)).toEqual({ status: 308, location });
});

test.each([301, 302, 303, 307, 308])("the status may be %d", async (status) => {
  await configure({ to: "https://new.example", status });
  expect((await ask("/")).status).toBe(status);
});

test("paths that do not match the expression, and requests for the destination, continue", async () => {
  await configure({ regex: "^/old$", to: "/new" });
  expect((await ask("/other")).status).toBe(200);
  expect((await ask("/old")).status).toBe(308);
  await configure({ to: "http://old.example" });
  expect((await ask("/a?b=1")).status).toBe(200);
  expect((await ask("/a", { Host: "www.old.example" })).location).toBe("http://old.example/a");
});

describe("a client cannot choose the host", () => {
  const targets = [
    "//evil.example",
    "///evil.example/x",
    "/%5Cevil.example",
    "/%2Fevil.example",
    "/\\evil.example",
    "/@evil.example",
    "/.evil.example",
    "/:1@evil.example",
    "/%0d%0aSet-Cookie:x=1",
    "/a?x=%0d%0aLocation:%20https://evil.example",
    "/?next=//evil.example",
    "/?next=%09//evil.example",
    "/?next=%5C%5Cevil.example",
    "/?next=https://evil.example",
    "/?next=%0d%0aX:y",
    "/?next=.evil.example",
    "/?next=@evil.example",
  ];
  test.each([
    [{ to: "https://new.example" }, /^new\.example$/],
    [{ to: "https://new.example", keep_path: false }, /^new\.example$/],
    [{ to: "/" }, /^old\.example$/],
    [{ to: "/", keep_path: false }, /^old\.example$/],
    [{ to: "/${path.1}/${path.2}" }, /^old\.example$/],
    [{ to: "/${request.query.next}" }, /^old\.example$/],
    [{ regex: "^/(.*)$", to: "/$1" }, /^old\.example$/],
    [{ regex: "^(.*)$", to: "https://new.example/$1" }, /^new\.example$/],
    [{ to: "https://${request.query.next}.example.com" }, /^[a-z0-9.-]+\.example\.com$/],
    [{ to: "https://new.example/${request.query.next}" }, /^new\.example$/],
  ])("with %j", async (config, host) => {
    await configure(config);
    for (const target of targets) {
      const { status, location } = await ask(target);
      expect([200, 308, 400]).toContain(status as number);
      if (location === null) continue;
      expect(location).toMatch(/^[\x21-\x7e]+$/);
      expect(new URL(location, "http://old.example/dir/").hostname).toMatch(host);
    }
  });
});

test.each([
  [{ to: "evil" }, "to"],
  [{ to: "//evil.example" }, "to"],
  [{ to: "/\\evil.example" }, "to"],
  [{ to: "ftp://x" }, "to"],
  [{ to: "https://" }, "to"],
  [{ to: "https://user@host" }, "to"],
  [{ to: "https://${request.query.next}" }, "to"],
  [{ to: "https://new.example${path.1}" }, "to"],
  [{ to: "${request.query.next}" }, "to"],
  [{ to: "https://new.example/a b" }, "to"],
  [{ to: "https://new.example/$1" }, "to"],
  [{ to: "https://$1/", regex: "x" }, "to"],
  [{ regex: "x" }, "to"],
])("%j is refused when it is written", (config, path) => {
  const problems = redirect.check?.({ to: null, regex: null, prefix: null, ...config } as never);
  expect(problems?.map((problem) => problem.path)).toEqual([path]);
});

test.each(["/older", "/", "/new/old", "/Old"])(
  "with a prefix, %s passes to the service",
  async (path) => {
    await configure({ prefix: "/old", to: "/new" });
    expect((await ask(path)).status).toBe(200);
  },
);

test("a prefix that leads to itself does not loop", async () => {
  await configure({ prefix: "/old", to: "/old" });
  expect((await ask("/old/a")).status).toBe(200);
});

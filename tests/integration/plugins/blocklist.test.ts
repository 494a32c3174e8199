// blocklist on a real data plane with a server of lists: what is asked, who is denied, and what happens when a list fails.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

const endings = cleanupsOf(afterEach);

/** A server with lists by their paths, and the requests for them. */
function listServer(lists: Record<string, string>) {
  const asked: { readonly path: string; readonly headers: Headers }[] = [];
  const served = {
    lists,
    asked,
    url: "",
    answer: null as ((request: Request) => Response | Promise<Response>) | null,
    count: (path: string) => asked.filter((each) => each.path === path).length,
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { pathname: path } = new URL(request.url);
      asked.push({ path, headers: request.headers });
      if (served.answer !== null) return served.answer(request);
      const list = served.lists[path];
      if (list === undefined) return new Response("gone", { status: 404 });
      const etag = `"${Bun.hash(list).toString(36)}"`;
      const headers = { etag, "last-modified": "Fri, 01 Jan 2027 00:00:00 GMT" };
      if (request.headers.get("if-none-match") === etag)
        return new Response(null, { status: 304, headers });
      return new Response(list, { headers });
    },
  });
  served.url = `http://127.0.0.1:${server.port}`;
  endings.push(() => server.stop(true));
  return served;
}

type ListServer = ReturnType<typeof listServer>;

const instance = ({ url, lists }: ListServer, config: Record<string, unknown> = {}) => ({
  name: "blocklist",
  config: {
    lists: Object.keys(lists).map((path) => ({ name: path.slice(1), url: url + path })),
    refresh_interval: 0.1,
    ...config,
  },
});

async function scene(server: ListServer, config: Record<string, unknown> = {}) {
  const started = await pluginScene({
    settings: { trusted_proxies: ["127.0.0.1"] },
    plugins: [instance(server, config)],
  });
  endings.push(() => started.stop());
  return started;
}

const status = async ({ get }: PluginScene, address: string) =>
  (await get("/", { "X-Forwarded-For": address })).status;
const until = (running: PluginScene, address: string, wanted: number) =>
  eventually(async () => (await status(running, address)) === wanted);

test("addresses in any of the lists are denied, those of private networks and of `allow` are not", async () => {
  const server = listServer({
    "/one": "# one\n192.0.2.0/24\n10.0.0.0/8\n",
    "/two": "; two\n2001:db8::/32 ; SBL1\n198.51.100.7\n",
  });
  const running = await scene(server);
  for (const [address, expected] of [
    ["192.0.2.200", 403],
    ["198.51.100.7", 403],
    ["2001:db8::9", 403],
    ["198.51.100.8", 200],
    ["10.1.2.3", 200],
  ] as const)
    expect([address, await status(running, address)]).toEqual([address, expected]);
  await running.apply({ plugins: [instance(server, { allow: ["192.0.2.200"] })] });
  await until(running, "10.1.2.3", 403);
  expect(await status(running, "192.0.2.200")).toBe(200);
});

test("a list that has changed is loaded, one that has not is not sent again", async () => {
  const server = listServer({ "/one": "192.0.2.7\n" });
  const running = await scene(server);
  expect(await status(running, "192.0.2.7")).toBe(403);
  await eventually(() => server.count("/one") > 2);
  const later = server.asked.at(-1)?.headers;
  expect(later?.get("if-none-match")).toStartWith('"');
  expect(later?.get("if-modified-since")).toBe("Fri, 01 Jan 2027 00:00:00 GMT");
  expect(await status(running, "192.0.2.7")).toBe(403);
  server.lists["/one"] = "192.0.2.8\n";
  await until(running, "192.0.2.8", 403);
  expect(await status(running, "192.0.2.7")).toBe(200);
});

test.each([
  ["is gone", () => new Response("192.0.2.9\n", { status: 404 }), "responded 404"],
  ["redirects", () => Response.redirect("http://127.0.0.1:1/", 301), "responded 301"],
  ["hangs", () => new Promise<Response>(() => {}), "no response in time"],
  ["is a page", () => new Response("<html>\n192.0.2.9 is fine\n</html>"), "no list"],
  ["is empty", () => new Response(""), "the list is empty"],
  ["is too large", () => new Response("192.0.2.9\n".repeat(200)), "the response is too large"],
  ["has too many networks", () => new Response("1.1.1.1\n1.1.1.2\n1.1.1.3\n"), "max_entries"],
  ["is unchanged, though never loaded", () => new Response(null, { status: 304 }), "304"],
])(
  "when the list %s, the last one stays, and before it others get 503 or pass",
  async (_, answer, why) => {
    const server = listServer({ "/one": "192.0.2.7\n" });
    const limits = { max_bytes: 1024, max_entries: 2, timeout: 200 };
    const running = await scene(server, limits);
    // On a busy machine the first request may take longer than its timeout.
    await until(running, "192.0.2.7", 403);
    server.answer = answer;
    const isKnown = why === "304";
    const { length } = server.asked;
    await eventually(() => server.asked.length > length + 1);
    if (!isKnown)
      await eventually(() =>
        running.plane.log.some(({ fields }) => String(fields["why"]).includes(why)),
      );
    expect(await status(running, "192.0.2.7")).toBe(403);
    expect(await status(running, "8.8.8.8")).toBe(200);
    // Another key is another feed, which knows nothing yet.
    const fresh = { ...limits, refresh_interval: 0.2 };
    await running.apply({ plugins: [instance(server, fresh)] });
    expect(await status(running, "192.0.2.7")).toBe(503);
    await running.apply({ plugins: [instance(server, { ...fresh, fail_open: true })] });
    expect(await status(running, "192.0.2.7")).toBe(200);
  },
);

test("one list that was never loaded makes all unavailable, but what is known is denied", async () => {
  const server = listServer({ "/one": "192.0.2.7\n", "/two": "no list" });
  const running = await scene(server);
  await until(running, "8.8.8.8", 503);
  expect(await status(running, "192.0.2.7")).toBe(403);
  server.lists["/two"] = "# nothing\n";
  await until(running, "8.8.8.8", 200);
});

test("a list of the largest size and number of networks is used", async () => {
  const line = "192.0.2.7\n";
  const list = `${"192.0.2.8\n"}${line}${"#".repeat(1024 - 2 * line.length)}`;
  expect(list.length).toBe(1024);
  const server = listServer({ "/one": list });
  const running = await scene(server, { max_bytes: 1024, max_entries: 2 });
  expect(await status(running, "192.0.2.7")).toBe(403);
});

test("the reason names the list, and headers go to the list's own server only", async () => {
  const [one, two] = [listServer({ "/one": "192.0.2.7\n" }), listServer({ "/two": "192.0.2.8\n" })];
  const lists = [
    { name: "one", url: `${one.url}/one`, headers: { Key: "secret-of-one" } },
    { name: "two", url: `${two.url}/two` },
  ];
  const running = await scene(one, { lists });
  const response = await running.get("/", { "X-Forwarded-For": "192.0.2.8" });
  expect(response.status).toBe(403);
  expect(one.asked[0]?.headers.get("key")).toBe("secret-of-one");
  expect(JSON.stringify([...(two.asked[0]?.headers ?? [])])).not.toContain("secret-of-one");
});

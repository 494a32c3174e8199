// crowdsec on a real data plane with a scripted local API: what is asked, who is denied, and what happens when the API fails.
import { afterEach, describe, expect, test } from "bun:test";
import { connect, createServer } from "node:net";
import { decode } from "../../../src/model/decode.ts";
import { streamRouteInput } from "../../../src/model/stream-route.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { freePort } from "../../support/data-plane.ts";
import { LocalApi } from "../../support/local-api.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

/** So short that tests do not wait for it. */
const POLL = 0.1;

const endings = cleanupsOf(afterEach);

function localApi(): LocalApi {
  const api = new LocalApi();
  endings.push(() => api.stop());
  return api;
}

const instance = (api: LocalApi, config: Record<string, unknown> = {}) => ({
  name: "crowdsec",
  config: { url: api.url, api_key: "bouncer-key", poll_interval: POLL, ...config },
});

async function scene(
  api: LocalApi,
  config: Record<string, unknown> = {},
  more: Parameters<typeof pluginScene>[0] = {},
): Promise<PluginScene> {
  const started = await pluginScene({
    settings: { trusted_proxies: ["127.0.0.1"] },
    plugins: [instance(api, config)],
    ...more,
  });
  endings.push(() => started.stop());
  return started;
}

const status = async ({ get }: PluginScene, address: string) =>
  (await get("/", { "X-Forwarded-For": address })).status;

/** The next polls have ended. */
async function polled(api: LocalApi, count = 2): Promise<void> {
  const wanted = api.asked.length + count;
  await eventually(() => api.asked.length >= wanted);
}

const until = (running: PluginScene, address: string, wanted: number) =>
  eventually(async () => (await status(running, address)) === wanted);

test("asks for all decisions first, then for changes, with the key and without duplicates hidden", async () => {
  const api = localApi();
  await scene(api);
  await polled(api, 3);
  expect(api.asked.map(({ startup }) => startup).slice(0, 3)).toEqual([true, false, false]);
  expect(new Set(api.asked.map(({ key }) => key))).toEqual(new Set(["bouncer-key"]));
  expect(api.asked[0]?.query).toBe("?startup=true&scopes=ip,range&dedup=false");
});

describe("an address in a decision", () => {
  const decisions = [
    { id: 1, value: "192.0.2.7" },
    { id: 2, scope: "range", value: "198.51.100.0/24", type: "captcha" },
    { id: 3, scope: "Range", value: "2001:db8:1::/48" },
    { id: 4, value: "2001:db8:2::5" },
    { id: 5, value: "::ffff:203.0.113.9" },
    { id: 6, value: "192.0.2.8", duration: "-5m" },
    { id: 7, value: "192.0.2.9", simulated: true },
    { id: 8, value: "192.0.2.10", type: "throttle" },
    { id: 9, scope: "Country", value: "DE" },
    { id: 10, value: "not an address" },
    { id: 11, value: "192.0.2.11", duration: "forever" },
    { id: 12, scope: "AS", value: "64496" },
  ];
  test.each([
    ["192.0.2.7", 403],
    ["::ffff:192.0.2.7", 403],
    ["198.51.100.0", 403],
    ["198.51.100.255", 403],
    ["198.51.101.0", 200],
    ["2001:db8:1:ffff::1", 403],
    ["2001:db8:0:ffff::1", 200],
    ["2001:DB8:2:0:0:0:0:5", 403],
    ["2001:db8:2::6", 200],
    ["203.0.113.9", 403],
    ["192.0.2.8", 200],
    ["192.0.2.9", 200],
    ["192.0.2.10", 200],
    ["192.0.2.11", 200],
    ["", 200],
  ])("%p gets %d", async (address, expected) => {
    const api = localApi();
    api.decisions = decisions;
    const running = await scene(api);
    // The first request waits for the list.
    expect(await status(running, address)).toBe(expected);
  });

  test("is the client's only where the proxy is trusted", async () => {
    const api = localApi();
    api.decisions = decisions;
    const running = await scene(api, {}, { settings: { trusted_proxies: [] } });
    expect(await status(running, "192.0.2.7")).toBe(200);
    api.changes = { added: [{ id: 20, value: "127.0.0.1" }] };
    await until(running, "8.8.8.8", 403);
  });

  test("is not denied when `allow` has it, and gets the given status otherwise", async () => {
    const api = localApi();
    api.decisions = decisions;
    const running = await scene(api, { allow: ["198.51.100.128/25"], status: 429 });
    expect(await status(running, "198.51.100.200")).toBe(200);
    expect(await status(running, "198.51.100.2")).toBe(429);
  });
});

test("changes of decisions arrive at the next poll, and overlapping ones end one by one", async () => {
  const api = localApi();
  const running = await scene(api);
  expect(await status(running, "10.1.2.3")).toBe(200);
  const [range, address, again] = [
    { id: 1, scope: "Range", value: "10.1.0.0/16" },
    { id: 2, value: "10.1.2.3" },
    { id: 3, value: "10.1.2.3", duration: "10h" },
  ];
  api.changes = { added: [range, address, again] };
  await until(running, "10.1.2.3", 403);
  expect(await status(running, "10.1.2.4")).toBe(403);
  api.changes = { deleted: [range] };
  await until(running, "10.1.2.4", 200);
  expect(await status(running, "10.1.2.3")).toBe(403);
  api.changes = { deleted: [again] };
  await polled(api);
  // The shorter one is still in force.
  expect(await status(running, "10.1.2.3")).toBe(403);
  api.changes = { deleted: [address] };
  await until(running, "10.1.2.3", 200);
});

test("a decision ends by itself while the local API is away", async () => {
  const api = localApi();
  api.decisions = [
    { id: 1, value: "192.0.2.7", duration: "1s" },
    { id: 2, value: "192.0.2.8" },
  ];
  const running = await scene(api);
  expect(await status(running, "192.0.2.8")).toBe(403);
  api.answer = () => new Response(null, { status: 500 });
  await until(running, "192.0.2.7", 200);
  expect(await status(running, "192.0.2.8")).toBe(403);
});

describe("while the local API was never reached", () => {
  const hung = () => new Promise<Response>(() => {});
  test.each([
    [
      "refuses the key",
      () => Response.json({ message: "access forbidden for bouncer-key" }, { status: 403 }),
      "refused the key (403): access forbidden for ***",
    ],
    ["fails", () => new Response("no bouncer-key", { status: 500 }), "responded 500: no ***"],
    ["sends no JSON", () => new Response('{"new":[{"secret'), "the response is not JSON"],
    ["sends other JSON", () => Response.json({ new: "all" }), "no stream of decisions"],
    ["sends a list", () => Response.json([{ value: "1.2.3.4" }]), "no stream of decisions"],
    ["sends nothing", () => new Response(""), "the response is not JSON"],
    ["hangs", hung, "no response in time"],
    ["redirects", () => Response.redirect("http://127.0.0.1:1/", 302), "responded 302"],
    [
      "sends more than fits",
      () => new Response(`[${"1,".repeat(200_000)}1]`),
      "the response is too large",
    ],
  ])("because it %s, others get 503, and pass with fail_open", async (_, answer, why) => {
    const api = localApi();
    api.answer = answer;
    const limits = { timeout: 200, max_decisions: 1 };
    const running = await scene(api, { ...limits, status_on_error: 503 });
    expect(await status(running, "8.8.8.8")).toBe(503);
    const line = await eventually(() =>
      running.plane.log.find(({ fields }) => String(fields["why"]).includes(why)),
    );
    expect(JSON.stringify(line)).not.toContain("bouncer-key");
    await running.apply({ plugins: [instance(api, { ...limits, fail_open: true })] });
    expect(await status(running, "8.8.8.8")).toBe(200);
    // And recovers, with all decisions.
    api.decisions = [{ value: "192.0.2.7" }];
    api.answer = null;
    await until(running, "192.0.2.7", 403);
    expect(await status(running, "8.8.8.8")).toBe(200);
  });

  test("an address in `allow` passes", async () => {
    const api = localApi();
    api.answer = () => new Response(null, { status: 500 });
    const running = await scene(api, { allow: ["10.0.0.0/8"] });
    expect(await status(running, "10.0.0.1")).toBe(200);
    expect(await status(running, "11.0.0.1")).toBe(503);
  });
});

test("after a failure the gateway asks for all decisions, because changes may be lost", async () => {
  const api = localApi();
  const running = await scene(api);
  await polled(api);
  api.answer = () => new Response("{", { status: 200 });
  await polled(api);
  api.decisions = [{ id: 7, value: "192.0.2.7" }];
  api.answer = null;
  await until(running, "192.0.2.7", 403);
});

test("after resync_interval decisions that the local API no longer has are gone", async () => {
  const api = localApi();
  api.decisions = [{ id: 1, value: "192.0.2.7" }];
  const running = await scene(api, { resync_interval: 0 });
  expect(await status(running, "192.0.2.7")).toBe(403);
  api.decisions = [];
  await until(running, "192.0.2.7", 200);
  expect(api.asked.every(({ startup }) => startup)).toBe(true);
});

test("with max_age the list is unavailable when the local API was away for so long, and known addresses stay denied", async () => {
  const api = localApi();
  api.decisions = [{ id: 1, value: "192.0.2.7" }];
  const running = await scene(api, { max_age: 1 });
  await until(running, "8.8.8.8", 200);
  api.answer = () => new Response(null, { status: 500 });
  await until(running, "8.8.8.8", 503);
  expect(await status(running, "192.0.2.7")).toBe(403);
  api.answer = null;
  await until(running, "8.8.8.8", 200);
});

test("decisions up to max_decisions count, and the log says when there are more", async () => {
  const api = localApi();
  const many = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ id: at + 1, value: `10.0.0.${at + 1}` }));
  const isFull = ({ message }: { readonly message: string }) =>
    message === "there are more decisions than max_decisions";
  api.decisions = many(3);
  const running = await scene(api, { max_decisions: 3 });
  expect(await status(running, "10.0.0.3")).toBe(403);
  expect(running.plane.log.some(isFull)).toBe(false);
  api.decisions = many(4);
  await running.apply({ plugins: [instance(api, { max_decisions: 3, status: 418 })] });
  await eventually(() => running.plane.log.some(isFull));
  expect(await status(running, "10.0.0.3")).toBe(418);
  expect(await status(running, "10.0.0.4")).toBe(200);
});

test("50,000 decisions arrive, and are found", async () => {
  const api = localApi();
  api.decisions = Array.from({ length: 50_000 }, (_, at) => ({
    id: at + 1,
    value:
      at % 2 === 0
        ? `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`
        : `2001:db8::${at.toString(16)}`,
  }));
  const running = await scene(api);
  await until(running, "10.0.1.0", 403);
  expect(await status(running, "10.0.0.1")).toBe(200);
  expect(await status(running, `2001:db8::${(49_999).toString(16)}`)).toBe(403);
  expect(await status(running, "2001:db8::2")).toBe(200);
});

test("instances with the same URL and key share one feed, which ends with the last of them", async () => {
  const api = localApi();
  api.decisions = [{ id: 1, value: "192.0.2.7" }];
  const running = await scene(api, { poll_interval: 3600 });
  await running.apply({
    plugins: [{ ...instance(api, { status: 418 }), label: "of the route", routeId: "all" }],
  });
  await until(running, "192.0.2.7", 418);
  // The shorter interval holds for both; the change of the instances was the second request for all.
  await polled(api, 3);
  expect(api.asked.filter(({ startup }) => startup).length).toBeLessThanOrEqual(2);
  await running.apply({ removedPlugins: ["crowdsec", "of the route"] });
  const { length } = api.asked;
  expect(await status(running, "192.0.2.7")).toBe(200);
  const other = localApi();
  await running.apply({ plugins: [instance(other)] });
  await polled(other, 3);
  // One request may have been on its way.
  expect(api.asked.length).toBeLessThanOrEqual(length + 1);
});

test("a discarded version asks for nothing", async () => {
  const api = localApi();
  const other = localApi();
  const running = await scene(api);
  await running.plane.discard({ plugins: [instance(other)] }, () => polled(api));
  expect(other.asked).toEqual([]);
  expect(await status(running, "8.8.8.8")).toBe(200);
});

test("metrics have entries, the last contact and the number of requests", async () => {
  const api = localApi();
  api.decisions = [
    { id: 1, value: "192.0.2.7" },
    { id: 2, value: "192.0.2.8" },
  ];
  const counters = CounterTable.create({ keys: 64, workers: 1 });
  const running = await scene(api, {}, { counters });
  await until(running, "192.0.2.7", 403);
  const value = (key: string) => counters.forInstance(0, "crowdsec").value(key);
  await eventually(() => value("requests") > 1);
  expect([value("entries"), value("up")]).toEqual([2, 1]);
  expect(Math.abs(value("contact_timestamp_seconds") - Date.now() / 1000)).toBeLessThan(60);
  api.answer = () => new Response(null, { status: 500 });
  await eventually(() => value("up") === 0);
  expect(value("entries")).toBe(2);
});

test("connections of denied clients on stream routes are closed, also behind a PROXY header", async () => {
  const api = localApi();
  const echo = createServer((socket) => void socket.on("error", () => {}).pipe(socket));
  await new Promise<void>((ready) => echo.listen(0, "127.0.0.1", ready));
  endings.push(() => echo.close());
  const { port: target } = echo.address() as { port: number };
  const running = await scene(
    api,
    {},
    { services: [{ name: "tcp", protocol: "tcp", targets: [{ port: target }] }], routes: [] },
  );
  const port = freePort();
  const route = decode(streamRouteInput, {
    name: "t",
    listen_address: "127.0.0.1",
    listen_port: port,
    service_id: "tcp",
    proxy_protocol_in: true,
    proxy_protocol_trusted: ["127.0.0.1"],
  });
  const at = "2026-01-01T00:00:00.000Z";
  await running.apply({
    streamRoutes: [
      {
        id: "t",
        ports: [port],
        tls: null,
        route: { ...route, id: "t", created_at: at, updated_at: at },
      },
    ],
  });
  const hello = (from: string) =>
    new Promise<string>((resolve) => {
      let text = "";
      const socket = connect(port, "127.0.0.1");
      socket.on("data", (data) => {
        text += data.toString();
        socket.end();
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
      socket.write(`PROXY TCP4 ${from} 127.0.0.1 1 2\r\nhello`);
    });
  await eventually(async () => (await hello("192.0.2.7")) === "hello");
  api.changes = { added: [{ id: 1, value: "192.0.2.7" }] };
  await eventually(async () => (await hello("192.0.2.7")) === "");
  expect(await hello("192.0.2.8")).toBe("hello");
});

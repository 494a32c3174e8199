// request-id on a real data plane: who names a request, who learns the name, and what becomes of traces.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import requestId from "../../../src/plugins/request-id.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { exchange } from "../../support/raw-exchange.ts";

const V7 = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const V4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const ID = "x-request-id";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({ plugins: [{ name: "request-id" }] });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>, trusted: string[] = []) =>
  scene.apply({
    plugins: [{ name: "request-id", config }],
    settings: { trusted_proxies: trusted },
  });

describe("the id", () => {
  test("is new for every request, the same upstream and back", async () => {
    const [one, other] = [await scene.get("/"), await scene.get("/")];
    expect(one.headers.get(ID)).toMatch(V7);
    expect(one.seen?.headers[ID]).toBe(one.headers.get(ID) as string);
    expect(other.headers.get(ID)).not.toBe(one.headers.get(ID));
  });

  test("of a client is accepted only from a trusted proxy", async () => {
    await configure({});
    const stranger = await scene.get("/", { "X-Request-Id": "mine" });
    expect(stranger.seen?.headers[ID]).toMatch(V7);
    await configure({}, ["127.0.0.1"]);
    const proxy = await scene.get("/", { "X-Request-Id": "mine" });
    expect(proxy.seen?.headers[ID]).toBe("mine");
    expect(proxy.headers.get(ID)).toBe("mine");
    await configure({ trust_incoming: "never" }, ["127.0.0.1"]);
    expect((await scene.get("/", { "X-Request-Id": "mine" })).seen?.headers[ID]).toMatch(V7);
  });

  test.each(["a b", "", "<script>", "a,b", "é", "a".repeat(129), 'a"b'])(
    "%p is invalid",
    async (id) => {
      await configure({ trust_incoming: "always" });
      expect((await scene.get("/", { "X-Request-Id": id })).seen?.headers[ID]).toMatch(V7);
    },
  );

  test("may be 128 characters long", async () => {
    await configure({ trust_incoming: "always" });
    const id = "a".repeat(128);
    expect((await scene.get("/", { "X-Request-Id": id })).seen?.headers[ID]).toBe(id);
  });

  test("can use another header and format, and be hidden from the client", async () => {
    await configure({ header: "X-Trace", generator: "uuidv4", echo: false });
    const { headers, seen } = await scene.get("/", { "X-Request-Id": "left alone" });
    expect(seen?.headers["x-trace"]).toMatch(V4);
    expect(seen?.headers[ID]).toBe("left alone");
    expect(headers.has("x-trace")).toBe(false);
  });

  test("is on error pages of every format", async () => {
    await configure({ trust_incoming: "always" });
    await scene.apply({ plugins: [{ name: "key-auth" }] });
    const answer = await scene.get("/", { "X-Request-Id": "a/b=c", Accept: "application/json" });
    expect(answer.status).toBe(401);
    expect(answer.headers.get(ID)).toBe("a/b=c");
    expect(JSON.parse(answer.body).instance).toBe("a%2Fb%3Dc");
    await scene.apply({ removedPlugins: ["key-auth"] });
  });
});

describe("traceparent", () => {
  const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  const created = /^00-[\da-f]{32}-[\da-f]{16}-01$/;
  const ask = async (headers: Record<string, string>) =>
    (await scene.get("/", headers)).seen?.headers;

  test("that is valid passes unchanged, with its tracestate", async () => {
    await configure({});
    const seen = await ask({ traceparent: valid, tracestate: "a=1" });
    expect(seen).toMatchObject({ traceparent: valid, tracestate: "a=1" });
    const later = `cc${valid.slice(2)}-what-comes`;
    expect((await ask({ traceparent: later }))?.["traceparent"]).toBe(later);
  });

  test.each([
    ["none", ""],
    ["of zeros", `00-${"0".repeat(32)}-00f067aa0ba902b7-01`],
    ["without a parent", `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`],
    ["in upper case", valid.toUpperCase()],
    ["of the version ff", `ff${valid.slice(2)}`],
    ["that is too long", `${valid}-01`],
    ["twice", `${valid}, ${valid}`],
  ])("%s starts a new trace without the old state", async (_, traceparent) => {
    await configure({});
    const seen = await ask({ ...(traceparent === "" ? {} : { traceparent }), tracestate: "a=1" });
    expect(seen?.["traceparent"]).toMatch(created);
    expect(seen).not.toHaveProperty("tracestate");
  });

  test("can start unsampled, be only passed on, and be disabled", async () => {
    await configure({ trace_sampled: false });
    expect((await ask({}))?.["traceparent"]).toEndWith("-00");
    await configure({ traceparent: "propagate" });
    expect(await ask({})).not.toHaveProperty("traceparent");
    expect(await ask({ traceparent: "bad" })).not.toHaveProperty("traceparent");
    expect((await ask({ traceparent: valid }))?.["traceparent"]).toBe(valid);
    await configure({ traceparent: "off" });
    expect((await ask({ traceparent: "bad" }))?.["traceparent"]).toBe("bad");
  });
});

test("a client can neither remove the id nor add another one", async () => {
  await configure({});
  for (const name of ["X-Request-Id", "X_Request_Id", "x-request_id"]) {
    const { answers } = await exchange(
      `GET / HTTP/1.1\r\nHost: h\r\nConnection: x-request-id, traceparent\r\n${name}: forged\r\n\r\n`,
      { port: scene.plane.port },
    );
    const seen = scene.requests.at(-1)?.headers ?? {};
    expect(seen[ID]).toMatch(V7);
    expect(answers[0]?.header(ID)).toBe(seen[ID] as string);
    expect(seen["traceparent"]).toMatch(/^00-/);
    expect(JSON.stringify(seen)).not.toContain("forged");
  }
});

test("the header cannot be one of the gateway's own", () => {
  expect(requestId.check?.({ header: "Via" } as never)).toHaveLength(1);
  expect(requestId.check?.({ header: "X-Id" } as never)).toEqual([]);
});

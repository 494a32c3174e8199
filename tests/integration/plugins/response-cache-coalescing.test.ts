// response-cache and many requests at once: one fetch for all of them, whatever becomes of it.
import { afterEach, expect, test } from "bun:test";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";

const running: { plane?: RunningDataPlane; origin?: Origin } = {};

afterEach(async () => {
  await running.plane?.stop();
  running.origin?.stop();
});

interface Scene {
  readonly origin: Origin;
  readonly plane: RunningDataPlane;
  get(path: string, init?: RequestInit): Promise<Response>;
}

/** With an origin whose responses the test releases. */
async function start(config: Record<string, unknown> = {}): Promise<Scene> {
  const origin = startOrigin({ answer: null });
  const plane = await startDataPlane({
    services: [{ name: "web", targets: [{ port: origin.port }], retries: { count: 0 } }],
    routes: [{ name: "all", service_id: "web" }],
    plugins: [{ name: "response-cache", config }],
  });
  Object.assign(running, { plane, origin });
  const get: Scene["get"] = (path, init = {}) => {
    const answer = fetch(plane.url + path, init);
    // Some are still waited for when a test ends.
    answer.catch(() => undefined);
    return answer;
  };
  return { origin, plane, get };
}

const cached = (body: string) => reply(body, { headers: "Cache-Control: max-age=60\r\n" });
const words = (answers: readonly Response[]) =>
  answers.map(({ headers }) => headers.get("x-cache-status"));

/** So many requests of which the first has reached the origin and the others wait, as far as can be seen from outside. */
async function crowd(
  { get, origin }: Scene,
  path: string,
  count = 10,
): Promise<Promise<Response>[]> {
  const first = get(path);
  await origin.untilRequests(1);
  const others = Array.from({ length: count - 1 }, () => get(path));
  // A request for something else goes the same way after them: when it has arrived, they have been looked at.
  void get("/after").catch(() => undefined);
  await eventually(() => origin.requests.some(({ target }) => target === "/after"));
  return [first, ...others];
}

const fetchesOf = ({ origin }: Scene, path: string) =>
  origin.requests.filter(({ target }) => target === path).length;

test("one fetch serves all waiting clients", async () => {
  const scene = await start();
  const waiting = await crowd(scene, "/one");
  expect(fetchesOf(scene, "/one")).toBe(1);
  scene.origin.connections[0]?.write(cached("for all"));
  const answers = await Promise.all(waiting);
  expect(await Promise.all(answers.map((each) => each.text()))).toEqual(Array(10).fill("for all"));
  expect(words(answers)).toEqual(["MISS", ...Array(9).fill("HIT")]);
  expect(answers[1]?.headers.get("cache-status")).toMatch(
    /^sluice; fwd=uri-miss; collapsed; ttl=\d+$/,
  );
  expect(fetchesOf(scene, "/one")).toBe(1);
});

test("all requests fetch separately when coalesce is off", async () => {
  const scene = await start({ coalesce: false });
  scene.origin.answer = (request) => (request.target === "/after" ? cached("x") : null);
  const waiting = await crowd(scene, "/each");
  await eventually(() => fetchesOf(scene, "/each") === 10);
  for (const connection of scene.origin.connections)
    if (!connection.isClosed) connection.write(cached("own"));
  expect((await Promise.all(waiting)).length).toBe(10);
});

test("when the response cannot be stored, all requests fetch at once, and none waits the next time", async () => {
  const scene = await start();
  const waiting = await crowd(scene, "/private");
  expect(fetchesOf(scene, "/private")).toBe(1);
  // The head is enough to know.
  scene.origin.connections[0]?.write(
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: private\r\n\r\n",
  );
  await eventually(() => fetchesOf(scene, "/private") === 10);
  scene.origin.connections[0]?.write("one");
  scene.origin.answer = reply("own", { headers: "Cache-Control: private\r\n" });
  const later = await Promise.all([scene.get("/private"), scene.get("/private")]);
  expect(words(later)).toEqual(["MISS", "MISS"]);
  expect(await (await waiting[0])?.text()).toBe("one");
});

test("when the leader's response breaks off, another request takes its place", async () => {
  const scene = await start();
  const waiting = await crowd(scene, "/half", 5);
  scene.origin.answer = cached("whole");
  scene.origin.connections[0]?.write(
    "HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\nCache-Control: max-age=60\r\n\r\nhalf",
  );
  scene.origin.connections[0]?.reset();
  const bodies = await Promise.all(
    waiting.map((each) => each.then((answer) => answer.text()).catch(() => "broken")),
  );
  expect(bodies.slice(1)).toEqual(Array(4).fill("whole"));
  expect(bodies[0]).not.toBe("half");
  expect(fetchesOf(scene, "/half")).toBe(2);
});

test("when the leader's client disconnects, another one takes its place", async () => {
  const scene = await start();
  const leaving = new AbortController();
  const leader = scene.get("/left", { signal: leaving.signal }).catch(() => null);
  await scene.origin.untilRequests(1);
  const others = Array.from({ length: 5 }, () => scene.get("/left"));
  void scene.get("/after").catch(() => undefined);
  await eventually(() => scene.origin.requests.some(({ target }) => target === "/after"));
  scene.origin.answer = cached("for the rest");
  leaving.abort();
  expect(await leader).toBeNull();
  const answers = await Promise.all(others);
  expect(await Promise.all(answers.map((each) => each.text()))).toEqual(
    Array(5).fill("for the rest"),
  );
  expect(fetchesOf(scene, "/left")).toBe(2);
});

test("when the leader fails, the others fetch separately", async () => {
  const scene = await start();
  const waiting = await crowd(scene, "/down", 5);
  scene.origin.answer = cached("up again");
  scene.origin.connections[0]?.reset();
  const answers = await Promise.all(waiting);
  expect(answers[0]?.status).toBe(502);
  expect(answers.slice(1).map(({ status }) => status)).toEqual(Array(4).fill(200));
});

test("a waiting client that disconnects affects no other", async () => {
  const scene = await start();
  const leaving = new AbortController();
  const first = scene.get("/w");
  await scene.origin.untilRequests(1);
  const gone = scene.get("/w", { signal: leaving.signal }).catch(() => null);
  const stays = scene.get("/w");
  void scene.get("/after").catch(() => undefined);
  await eventually(() => scene.origin.requests.some(({ target }) => target === "/after"));
  leaving.abort();
  expect(await gone).toBeNull();
  scene.origin.connections[0]?.write(cached("x"));
  expect(words(await Promise.all([first, stays]))).toEqual(["MISS", "HIT"]);
});

test("clients with different variants all get the right response", async () => {
  const scene = await start();
  const ask = (language: string) => scene.get("/v", { headers: { "Accept-Language": language } });
  const first = ask("de");
  await scene.origin.untilRequests(1);
  const others = [ask("fr"), ask("de"), ask("fr"), ask("it")];
  scene.origin.answer = (request) =>
    reply(request.header("accept-language") ?? "", {
      headers: "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
    });
  scene.origin.connections[0]?.write(
    reply("de", { headers: "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n" }),
  );
  const bodies = await Promise.all(
    [first, ...others].map(async (each) => await (await each).text()),
  );
  expect(bodies).toEqual(["de", "fr", "de", "fr", "it"]);
});

test("waiting clients are released when the instance ends", async () => {
  const scene = await start();
  const waiting = await crowd(scene, "/end", 3);
  scene.origin.answer = reply("fetched");
  await scene.plane.apply({ removedPlugins: ["response-cache"] });
  expect(await (await waiting[1])?.text()).toBe("fetched");
  scene.origin.connections[0]?.write(reply("first"));
  expect(await (await waiting[0])?.text()).toBe("first");
});

test("requests without storable responses neither delay others nor deprive them", async () => {
  const scene = await start({ ttl_default: 60 });
  const cookie = { headers: { Cookie: "s=1" } };
  const slow = scene.get("/kinds", cookie);
  await scene.origin.untilRequests(1);
  scene.origin.answer = reply("for all");
  expect(await (await scene.get("/kinds")).text()).toBe("for all");
  scene.origin.connections[0]?.write(reply("of one"));
  expect(await (await slow).text()).toBe("of one");
  const noStore = await scene.get("/kinds?x", { headers: { "Cache-Control": "no-store" } });
  expect(await noStore.text()).toBe("for all");
  expect(words([await scene.get("/kinds"), await scene.get("/kinds?x")])).toEqual(["HIT", "MISS"]);
  expect(words([await scene.get("/kinds?x")])).toEqual(["HIT"]);
});

test.each(["text/event-stream", "multipart/x-mixed-replace; boundary=x"])(
  "no request waits for an endless response: %s",
  async (type) => {
    const scene = await start({ ttl_default: 60 });
    const waiting = await crowd(scene, "/events", 3);
    const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    scene.origin.answer = `${head}5\r\nother\r\n`;
    scene.origin.connections[0]?.write(`${head}5\r\nfirst\r\n`);
    const beginnings = waiting.map(async (each) => {
      const chunk = await (await each).body?.getReader().read();
      return new TextDecoder().decode(chunk?.value);
    });
    expect(await Promise.all(beginnings)).toEqual(["first", "other", "other"]);
    expect(fetchesOf(scene, "/events")).toBe(3);
  },
);

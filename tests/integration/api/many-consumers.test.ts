// More consumers than stay uncompressed: import, lookup, conflicts, changes, deletion, restore, restart.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";

const COUNT = 1_500;
const key = (index: number) => `key-of-consumer-${index}`;

let [gateway, origin]: [Gateway | null, Origin | null] = [null, null];

const running = (): Gateway => {
  if (gateway === null) throw new Error("not started");
  return gateway;
};

async function call(line: string, body?: unknown, expected = 200) {
  const [method = "", path = ""] = line.split(" ");
  const response = await running().api(method, `/api/v1${path}`, body);
  const text = await response.text();
  expect([line, response.status, text]).toEqual([line, expected, text]);
  return JSON.parse(text);
}

async function statusOf(shown: string): Promise<number> {
  const url = `http://127.0.0.1:${running().httpPort}/`;
  return (await fetch(url, { headers: { "x-api-key": shown } })).status;
}

const usernames = async () =>
  (await call("GET /consumers")).map(({ username }: { username: string }) => username);

beforeAll(async () => {
  origin = startOrigin();
  gateway = await startGateway();
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await call("POST /services", { name: "origin", protocol: "http", targets });
  await call("POST /routes", { name: "all", service_id: "origin", paths: ["/"] });
  await call("POST /plugins", { name: "key-auth" });
  const numbers = Array.from({ length: COUNT }, (_, index) => index);
  await call("POST /import?mode=merge", {
    format: 1,
    consumers: numbers.map((index) => ({ username: `c${index}`, custom_id: `id ${index}` })),
  });
  for (const index of [3, 700])
    await call(`POST /consumers/c${index}/credentials`, { type: "key", secret: key(index) });
});

afterAll(async () => {
  await gateway?.stop();
  origin?.stop();
});

test("each is found by name and id, and its credentials by it", async () => {
  const found = await call("GET /consumers/c700");
  expect(found).toMatchObject({ username: "c700", custom_id: "id 700", groups: [], tags: [] });
  expect(await call(`GET /consumers/${found.id}`)).toEqual(found);
  expect(await call("GET /consumers/c700/credentials")).toMatchObject([{ consumer_id: found.id }]);
  expect(await call("GET /consumers/c701/credentials")).toEqual([]);
  expect(await call("GET /credentials?consumer_id=c3")).toHaveLength(1);
  expect(await call("GET /consumers?name=c1499")).toHaveLength(1);
  await call("GET /consumers/nobody", undefined, 404);
  expect([await statusOf(key(3)), await statusOf(key(4))]).toEqual([200, 401]);
});

test("names, ids and keys stay unique", async () => {
  const refusals = [
    await call("POST /consumers", { username: "c5" }, 409),
    await call("PATCH /consumers/c6", { custom_id: "id 5" }, 409),
    await call("POST /consumers/c6/credentials", { type: "key", secret: key(3) }, 409),
    await call(
      "POST /import?mode=merge",
      { format: 1, consumers: [{ username: "new" }, { username: "new" }] },
      409,
    ),
  ];
  expect(refusals.map(({ error }) => error)).toEqual([
    'username: consumer "c5" exists already',
    "custom_id: belongs to another consumer already",
    "secret: is in use already",
    'consumers[1].username: consumer "new" exists already (line 1, column 46)',
  ]);
});

test("a deletion includes the credentials, and a restore keeps the order", async () => {
  const before = await usernames();
  const { number } = (await call("GET /revisions")).at(-1);
  await call("DELETE /consumers/c700");
  expect(await usernames()).toEqual(before.filter((name: string) => name !== "c700"));
  expect(await statusOf(key(700))).toBe(401);
  await call("POST /consumers", { username: "c700", custom_id: "id 700" });
  await call("DELETE /consumers/c700");
  await call(`POST /revisions/${number}/restore`);
  expect(await usernames()).toEqual(before);
  expect(await statusOf(key(700))).toBe(200);
});

test("the ETag and everything else is the same after a restart", async () => {
  await call("PATCH /consumers/c8", { groups: ["gold"], tags: ["x"], enabled: false });
  await call("POST /consumers", { username: "youngest" });
  const read = async () => {
    const answers = await Promise.all(
      ["/consumers", "/consumers/c8", "/credentials"].map((path) =>
        running().api("GET", `/api/v1${path}`),
      ),
    );
    return await Promise.all(
      answers.map(async (answer) => {
        const objects = [await answer.json()].flat();
        // Stored a moment after the request, which may be after the first read.
        for (const object of objects) delete object.last_used_at;
        return [answer.headers.get("etag"), objects];
      }),
    );
  };
  const before = await read();
  await running().restart();
  expect(await read()).toEqual(before);
  expect([await statusOf(key(3)), await statusOf(key(4))]).toEqual([200, 401]);
});

// Consumers over the API: usernames, uniqueness, search, and deletion with their credentials.
import { describe, expect, test } from "bun:test";
import { useGateway } from "./client.ts";

const api = useGateway();

test("a consumer is found by id and username, changed, and its groups are deduplicated", async () => {
  const body = { username: "alice", custom_id: "42", groups: ["gold", "gold", "beta"] };
  const created = await api.call("POST /consumers", { body });
  const { id, created_at, updated_at } = created.body;
  const rest = { enabled: true, tags: [], description: "" };
  const expected = { id, ...body, groups: ["gold", "beta"], ...rest, created_at, updated_at };
  expect([created.status, created.body]).toEqual([200, expected]);
  for (const line of ["GET /consumers/alice", `GET /consumers/${id}`])
    expect((await api.call(line)).body).toEqual(expected);
  const patched = await api.call("PATCH /consumers/alice", { body: { groups: null, tags: ["x"] } });
  expect(patched.body).toMatchObject({ groups: [], tags: ["x"], custom_id: "42" });
  const replaced = await api.call("PUT /consumers/alice", { body: { username: "alice2" } });
  expect(replaced.body).toMatchObject({ id, username: "alice2", custom_id: null, tags: [] });
  const stale = { "if-match": created.headers.get("etag") ?? "" };
  expect((await api.call("DELETE /consumers/alice2", { headers: stale })).status).toBe(412);
  expect((await api.call("GET /consumers/alice")).status).toBe(404);
});

test("usernames and custom ids are unique", async () => {
  await api.create("/consumers", { username: "only", custom_id: "only-1" });
  const twice = await api.call("POST /consumers", { body: { username: "only" } });
  expect([twice.status, twice.body.error]).toEqual([
    409,
    'username: consumer "only" exists already',
  ]);
  const body = { username: "other", custom_id: "only-1" };
  const same = await api.call("POST /consumers", { body });
  expect([same.status, same.body.error]).toEqual([
    409,
    "custom_id: belongs to another consumer already",
  ]);
});

test.each([
  [{}, "username: is required"],
  [{ username: " x" }, "username: must be printable ASCII"],
  [{ username: "a\r\nb" }, "username: must be printable ASCII"],
  [{ username: crypto.randomUUID() }, "username: must not look like an id"],
  [{ username: "x", groups: ["a,b"] }, "groups[0]: must be printable ASCII"],
  [{ username: "x", name: "x" }, "name: is not a known field"],
])("%j is rejected", async (body, message) => {
  const answer = await api.call("POST /consumers", { body });
  expect(answer.status).toBe(400);
  expect(answer.body.error).toStartWith(message);
});

test("lists are filtered by username, text and tag", async () => {
  await api.create("/consumers", { username: "list-a", tags: ["red"], custom_id: "Blue-7" });
  await api.create("/consumers", { username: "list-b", tags: ["red"] });
  const names = async (query: string) =>
    (await api.call(`GET /consumers?${query}`)).body.map(
      (consumer: { username: string }) => consumer.username,
    );
  expect(await names("tag=red")).toEqual(["list-a", "list-b"]);
  expect(await names("name=list-b")).toEqual(["list-b"]);
  expect(await names("q=blue")).toEqual(["list-a"]);
});

describe("a deleted consumer", () => {
  test("loses its credentials and plugins, and the response counts them", async () => {
    await api.create("/consumers", { username: "gone" });
    const credential = await api.create("/consumers/gone/credentials", {
      type: "key",
      name: "phone",
    });
    const dry = await api.call("DELETE /consumers/gone?dry_run=1");
    expect(dry.headers.get("x-deleted")).toBe('credential "phone"');
    expect((await api.call(`GET /credentials/${credential.id}`)).status).toBe(200);
    const deleted = await api.call("DELETE /consumers/gone");
    expect([deleted.body, deleted.headers.get("x-deleted")]).toEqual([
      { deleted: true },
      'credential "phone"',
    ]);
    expect((await api.call(`GET /credentials/${credential.id}`)).status).toBe(404);
  });

  test("is protected by a plugin whose configuration names it, unless cascaded", async () => {
    await api.create("/consumers", { username: "anonymous" });
    const body = {
      name: "key-auth",
      label: "names-it",
      config: { anonymous_consumer: "anonymous" },
    };
    await api.create("/plugins", body);
    const refused = await api.call("DELETE /consumers/anonymous");
    expect([refused.status, refused.body.error]).toEqual([
      409,
      'consumer "anonymous" is used by plugin "names-it"',
    ]);
    const deleted = await api.call("DELETE /consumers/anonymous?cascade=1");
    expect(deleted.headers.get("x-deleted")).toBe('plugin "names-it"');
    expect((await api.call("GET /plugins/names-it")).status).toBe(404);
  });
});

test("limit returns the first consumers, with filters and without", async () => {
  for (const username of ["few-1", "few-2", "few-3"]) await api.create("/consumers", { username });
  const names = async (query: string) => {
    const { body } = await api.call(`GET /consumers?${query}`);
    // biome-ignore lint/suspicious/noExplicitAny: a response
    return body.map((consumer: any) => consumer.username);
  };
  expect(await names("q=few-&limit=2")).toEqual(["few-1", "few-2"]);
  expect(await names("limit=9&name=few-3")).toEqual(["few-3"]);
  expect(await names("limit=1")).toHaveLength(1);
  for (const query of ["limit=0", "limit=-1", "limit=some", "limit="]) {
    const { status, body } = await api.call(`GET /consumers?${query}`);
    expect([query, status, body]).toEqual([
      query,
      400,
      { error: "limit: must be a number from 1" },
    ]);
  }
});

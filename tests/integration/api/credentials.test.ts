// Credentials over the API: nested and top-level paths, shown once, rotated, in no file and no log.
import { describe, expect, test } from "bun:test";
import { openEvents } from "../../support/event-client.ts";
import { eventually } from "../../support/poll.ts";
import { Canaries, filesIn } from "../security/canaries.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

describe("credentials", () => {
  test("are created and listed below their consumer", async () => {
    const consumer = await api.create("/consumers", { username: "alice" });
    await api.create("/consumers", { username: "bob" });
    const { secret, ...key } = await api.create("/consumers/alice/credentials", {
      type: "key",
      name: "phone",
      tags: ["x"],
      expires_at: "2030-01-01T01:00:00+01:00",
    });
    expect(secret).toStartWith(key.prefix);
    expect(key).toEqual({
      id: key.id,
      consumer_id: consumer.id,
      type: "key",
      name: "phone",
      tags: ["x"],
      identifier: null,
      algorithm: null,
      public_key: null,
      enabled: true,
      description: "",
      expires_at: "2030-01-01T00:00:00.000Z",
      previous_until: null,
      last_used_at: null,
      prefix: secret.slice(0, 8),
      created_at: key.created_at,
      updated_at: key.updated_at,
    });
    const basic = await api.create("/credentials", {
      consumer_id: "bob",
      type: "basic",
      secret: "x",
    });
    expect(basic.identifier).toBe("bob");
    const list = async (path: string) => (await api.call(`GET ${path}`)).body;
    expect(await list("/consumers/alice/credentials")).toEqual([key]);
    expect(await list(`/consumers/${consumer.id}/credentials?type=basic`)).toEqual([]);
    expect(await list("/credentials?consumer_id=bob&type=basic")).toEqual([basic]);
    expect(await list("/credentials?q=bob")).toEqual([basic]);
    expect(await list(`/credentials/${key.id}`)).toEqual(key);
    expect((await api.call("GET /consumers/nobody/credentials")).status).toBe(404);
    const body = { type: "key", consumer_id: "bob" };
    const wrong = await api.call("POST /consumers/alice/credentials", { body });
    expect([wrong.status, wrong.body.error]).toEqual([
      400,
      "consumer_id: must be the consumer in the path, or absent",
    ]);
  });

  test("are created by PUT under a free id, with a generated secret", async () => {
    await api.create("/consumers", { username: "put" });
    const id = "0198c0de-0000-7000-8000-0000000000c1";
    const body = { consumer_id: "put", type: "hmac" };
    const first = await api.call(`PUT /credentials/${id}`, { body });
    expect([first.status, first.body.id, typeof first.body.secret]).toEqual([200, id, "string"]);
    const again = await api.call(`PUT /credentials/${id}`, { body });
    expect(again.body).not.toHaveProperty("secret");
    expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
  });

  test("are rotated, with conditions and as a dry run", async () => {
    await api.create("/consumers", { username: "turns" });
    const made = await api.create("/consumers/turns/credentials", { type: "key" });
    const path = `/credentials/${made.id}`;
    const rotate = (query: string, options: object = {}) =>
      api.call(`POST ${path}/rotate${query}`, options);
    expect((await rotate("?dry_run=1")).body).not.toHaveProperty("secret");
    expect((await rotate("", { headers: { "if-match": '"other"' } })).status).toBe(412);
    const rotated = await rotate("", { body: { overlap_seconds: 3600 } });
    expect(rotated.status).toBe(200);
    expect(rotated.body.secret).not.toBe(made.secret);
    expect(rotated.body.previous_until).not.toBeNull();
    const { secret: _, ...read } = rotated.body;
    const now = await api.call(`GET ${path}`);
    expect(now.body).toEqual(read);
    expect(now.headers.get("etag")).toBe(rotated.headers.get("etag"));
    expect((await rotate("")).body.previous_until).toBeNull();
    const wrong = await rotate("", { body: { overlap: 1 } });
    expect([wrong.status, wrong.body.error]).toEqual([
      400,
      'overlap: is not a known field; did you mean "overlap_seconds"?',
    ]);
  });

  test("are the same after a restart", async () => {
    const before = (await api.call("GET /credentials")).body;
    expect(before.length).toBeGreaterThan(0);
    await api.gateway.restart();
    expect((await api.call("GET /credentials")).body).toEqual(before);
  });
});

test("have no secret in any file, log line, event or later response", async () => {
  const canaries = new Canaries();
  const events = await openEvents(`${api.url}/api/v1/events`);
  await api.create("/consumers", { username: "quiet" });
  let answers = "";
  const keep = async (line: string, body?: unknown) => {
    const answer = await api.call(line, body === undefined ? {} : { body });
    const { secret, ...rest } = answer.body;
    answers += JSON.stringify([rest, answer.headers.toJSON()]);
    return { ...answer, secret };
  };
  for (const type of ["key", "basic", "jwt", "hmac"]) {
    const made = await keep("POST /consumers/quiet/credentials", { type });
    const path = `/credentials/${made.body.id}`;
    canaries.keep(`${type} that was made`, made.secret);
    const rotated = await keep(`POST ${path}/rotate`, { overlap_seconds: 60 });
    canaries.keep(`${type} after rotation`, rotated.secret);
    const own = canaries.make(`${type} that was given`);
    expect((await keep(`PATCH ${path}`, { secret: own })).status).toBe(200);
    expect((await keep(`PATCH ${path}`, { secret: [own] })).status).toBe(400);
    expect((await keep(`PUT ${path}`, { secret: own, type, nope: own })).status).toBe(400);
    expect((await keep(`GET ${path}`)).secret).toBeUndefined();
  }
  // The prefix is public, so the search excludes it.
  answers += JSON.stringify((await api.call("GET /audit")).body);
  expect(canaries.traces("an answer", answers)).toEqual([]);
  expect(canaries.traces("an event", events.text)).toEqual([]);
  events.close();
  expect(canaries.traces("the log", api.gateway.stdout + api.gateway.stderr)).toEqual([]);
  for (const [name, content] of filesIn(api.gateway.dataDir))
    expect(canaries.traces(name, content)).toEqual([]);
  expect(answers).not.toMatch(/\$argon2id|sealed:1:/);
});

test("show their last use, at once and after a restart", async () => {
  using origin = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await api.create("/services", { name: "used", targets });
  await api.create("/routes", { name: "used", service_id: "used", hosts: ["used.example"] });
  await api.create("/plugins", { name: "key-auth", route_id: "used" });
  await api.create("/consumers", { username: "user" });
  const { id, secret } = await api.create("/consumers/user/credentials", { type: "key" });
  const started = Date.now();
  const headers = { host: "used.example", "x-api-key": secret };
  const visit = () => fetch(`http://127.0.0.1:${api.gateway.httpPort}/`, { headers });
  expect((await visit()).status).toBe(200);
  const lastUse = async () => (await api.call(`GET /credentials/${id}`)).body.last_used_at;
  const at = await eventually(lastUse);
  expect(Date.parse(at)).toBeGreaterThanOrEqual(started);
  await api.gateway.restart();
  expect(await lastUse()).toBe(at);
});

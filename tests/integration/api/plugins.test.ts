// Plugin instances over the API: scopes, configuration, labels, schemas, deletion with their scope.
import { beforeAll, describe, expect, test } from "bun:test";
import { hashPassword } from "../../../src/crypto/password.ts";
import { Canaries, filesIn } from "../security/canaries.ts";
import { expectOk, usePeople } from "./people.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
const people = usePeople();

beforeAll(async () => {
  for (const name of ["s", "t"]) await api.create("/services", { name });
  await api.create("/routes", { name: "r", service_id: "s" });
  await api.create("/consumers", { username: "c" });
});

const named = (path: string, name: string) =>
  api.call(`GET ${path}/${name}`).then(({ body }) => body.id as string);

test("an instance is stored with all defaults, found by id and label, replaced and patched", async () => {
  const body = { name: "key-auth", label: "keys", service_id: "s", config: { realm: "shop" } };
  const created = await api.call("POST /plugins", { body });
  expect(created.status).toBe(200);
  expect(created.body).toMatchObject({
    name: "key-auth",
    label: "keys",
    service_id: await named("/services", "s"),
    route_id: null,
    enabled: true,
    config: { realm: "shop", header_names: ["X-API-Key", "apikey"], hide_credentials: true },
  });
  for (const key of ["keys", created.body.id])
    expect((await api.call(`GET /plugins/${key}`)).body).toEqual(created.body);
  expect((await api.call("GET /plugins/key-auth")).status).toBe(404);
  const same = await api.call("PUT /plugins/keys", { body: created.body });
  expect(same.headers.get("etag")).toBe(created.headers.get("etag"));
  const patch = { config: { realm: null, query_names: ["key"] } };
  const patched = await api.call("PATCH /plugins/keys", { body: patch });
  expect(patched.body.config).toMatchObject({ realm: "sluice", query_names: ["key"] });
  const replaced = await api.call("PUT /plugins/keys", {
    body: { name: "key-auth", label: "keys" },
  });
  expect(replaced.body).toMatchObject({ service_id: null, config: { query_names: [] } });
  expect((await api.call("DELETE /plugins/keys")).body).toEqual({ deleted: true });
});

test.each([
  [{ name: "no-such" }, 400, 'name: plugin "no-such" does not exist'],
  [{ name: "key-auth", config: { nope: 1 } }, 400, "config.nope: is not a known field"],
  [{ name: "key-auth", config: [] }, 400, "config: must be an object"],
  [{ name: "key-auth", config: { header_names: ["a b"] } }, 400, "config.header_names[0]: must be"],
  [{ name: "key-auth", service_id: "x" }, 400, 'service_id: service "x" does not exist'],
  [{ name: "key-auth", consumer_id: "c" }, 400, "key-auth cannot be applied to a consumer"],
  [{ name: "key-auth", service_id: "s", route_id: "r" }, 400, "service_id, route_id, consumer_id"],
  [
    { name: "key-auth", config: { anonymous_consumer: "x" } },
    400,
    'config.anonymous_consumer: consumer "x" does not exist',
  ],
])("%j is rejected", async (body, status, message) => {
  const answer = await api.call("POST /plugins", { body });
  expect(answer.status).toBe(status);
  expect(answer.body.error).toStartWith(message);
});

test("two of one plugin in one scope conflict", async () => {
  const body = { name: "key-auth", service_id: "t" };
  const { id } = await api.create("/plugins", { ...body, label: "first" });
  const clash = await api.call("POST /plugins", { body });
  expect([clash.status, clash.body.error]).toEqual([
    409,
    'name: key-auth exists already in this scope: plugin "first"',
  ]);
  await api.create("/plugins", { ...body, enabled: false });
  const list = await api.call("GET /plugins?service_id=t");
  expect(list.body).toHaveLength(2);
  expect((await api.call("GET /plugins?service_id=t&name=first")).body[0].id).toBe(id);
});

test("deleting a scope deletes its instances", async () => {
  await api.create("/services", { name: "gone" });
  await api.create("/routes", { name: "gone", service_id: "gone" });
  await api.create("/plugins", { name: "key-auth", label: "of-service", service_id: "gone" });
  await api.create("/plugins", { name: "key-auth", label: "of-route", route_id: "gone" });
  expect((await api.call("DELETE /services/gone")).status).toBe(409);
  const deleted = await api.call("DELETE /services/gone?cascade=1");
  expect(deleted.headers.get("x-deleted")?.split(", ").toSorted()).toEqual([
    'plugin "of-route"',
    'plugin "of-service"',
    'route "gone"',
  ]);
  expect((await api.call("GET /plugins?q=of-")).body).toEqual([]);
});

describe("schemas", () => {
  test("list the plugins and their configuration", async () => {
    const { status, body } = await api.call("GET /plugins/schemas");
    expect(status).toBe(200);
    const names = body.map((plugin: { name: string }) => plugin.name);
    expect(names).toContain("key-auth");
    expect(names).toEqual(names.toSorted());
    const one = await api.call("GET /plugins/schemas/key-auth");
    expect(body).toContainEqual(one.body);
    expect(one.body).toMatchObject({
      group: "authentication",
      phases: ["auth"],
      scopes: ["global", "service", "route"],
      on_error: "closed",
      needs_admin: false,
      schema: {
        type: "object",
        additionalProperties: false,
        properties: { header_names: { items: { "x-kind": "header_name" } } },
      },
      defaults: { header_names: ["X-API-Key", "apikey"], query_names: [] },
    });
    const none = await api.call("GET /plugins/schemas/none");
    expect([none.status, none.body.error]).toEqual([404, 'plugin "none" does not exist']);
  });

  test("are read only, and an instance with that label is found by its id", async () => {
    expect((await api.call("PUT /plugins/schemas", { body: {} })).status).toBe(405);
    const { id } = await api.create("/plugins", {
      name: "key-auth",
      label: "schemas",
      route_id: "r",
    });
    expect((await api.call(`GET /plugins/${id}`)).body.label).toBe("schemas");
  });

  test("have examples that a dry run accepts", async () => {
    const { body } = await api.call("GET /plugins/schemas");
    for (const { name, example, scopes } of body) {
      if (!scopes.includes("global")) continue;
      const write = { name, config: example, enabled: false };
      const answer = await api.call("POST /plugins?dry_run=1", { body: write });
      // A service or consumer that an example names does not exist.
      if (!/does not exist|there is no secret/.test(answer.body.error ?? ""))
        expect([name, answer.body.error, answer.status]).toEqual([name, undefined, 200]);
    }
  });
});

test("viewers read, editors write, and both are in the audit log", async () => {
  for (const role of ["viewer", "editor"]) await people.create(`a-${role}`, role);
  const viewer = await people.signIn("a-viewer@a.example");
  const editor = await people.signIn("a-editor@a.example");
  const body = { name: "key-auth", label: "audited" };
  expect((await viewer("POST /plugins", body)).status).toBe(403);
  await expectOk(editor("POST /plugins", body));
  expect((await viewer("GET /plugins/audited")).status).toBe(200);
  const script = { name: "script", config: { source: "export const onLog = () => {};" } };
  expect((await editor("POST /plugins", script)).status).toBe(403);
  await expectOk(editor("PATCH /plugins/audited", { config: { realm: "other" } }));
  const { body: audit } = await people.root("GET /audit?actor=a-editor@a.example");
  const entry = audit.find(({ action }: { action: string }) => action === "update");
  expect(entry).toMatchObject({ kind: "plugin", object_name: "audited", result: "ok" });
  expect(entry.detail.diff).toEqual([{ path: "config.realm", before: "sluice", after: "other" }]);
});

test("configuration secrets are in no response, file, log line or audit entry, and work when omitted", async () => {
  const canaries = new Canaries();
  const [first, second] = await Promise.all(["one", "two"].map(hashPassword));
  for (const hash of [first, second]) canaries.keep(`hash ${canaries.size}`, hash ?? "");
  using origin = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await api.create("/services", { name: "guarded", targets });
  await api.create("/routes", {
    name: "guarded",
    service_id: "guarded",
    hosts: ["guarded.example"],
  });
  const visit = async (name: string, password: string) => {
    const authorization = `Basic ${btoa(`${name}:${password}`)}`;
    const headers = { host: "guarded.example", authorization };
    return (await fetch(`http://127.0.0.1:${api.gateway.httpPort}/`, { headers })).status;
  };
  let answers = "";
  const keep = async (line: string, body?: unknown) => {
    const answer = await api.call(line, body === undefined ? {} : { body });
    answers += JSON.stringify([answer.body, answer.headers.toJSON()]);
    return answer;
  };
  const users = [
    { username: "a", password_hash: first },
    { username: "b", password_hash: second },
  ];
  const body = { name: "basic-auth", label: "guard", route_id: "guarded", config: { users } };
  const made = await keep("POST /plugins", body);
  expect([made.status, made.body.config.users]).toEqual([
    200,
    [{ username: "a" }, { username: "b" }],
  ]);
  expect([await visit("a", "one"), await visit("b", "two"), await visit("a", "two")]).toEqual([
    200, 200, 401,
  ]);
  const same = await keep("PUT /plugins/guard", made.body);
  expect(same.headers.get("etag")).toBe(made.headers.get("etag"));
  const turned = { users: [{ username: "b" }, { username: "a" }] };
  expect((await keep("PATCH /plugins/guard", { config: turned })).status).toBe(200);
  await api.gateway.restart();
  expect([await visit("a", "one"), await visit("b", "two"), await visit("b", "one")]).toEqual([
    200, 200, 401,
  ]);
  for (const config of [
    { users: [{ username: "a", password_hash: `${first}:` }] },
    { users: [{ username: "a", password_hash: { sealed: first } }] },
    { users, nope: first },
  ])
    expect((await keep("PATCH /plugins/guard", { config })).status).toBe(400);
  await keep("GET /plugins");
  await keep("DELETE /plugins/guard");
  await keep("GET /audit");
  expect(answers).not.toMatch(/sealed:1:/);
  expect(canaries.traces("an answer", answers)).toEqual([]);
  expect(canaries.traces("the log", api.gateway.stdout + api.gateway.stderr)).toEqual([]);
  for (const [name, content] of filesIn(api.gateway.dataDir))
    expect(canaries.traces(name, content)).toEqual([]);
});

// Services and their targets over the API: every verb, inline targets, names and ids.
import { describe, expect, test } from "bun:test";
import { useGateway } from "./client.ts";

const api = useGateway();
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe("POST /services", () => {
  test("returns 200 with the whole object, defaults filled in", async () => {
    const { status, body, headers } = await api.call("POST /services", {
      body: { name: "web", protocol: "http" },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ name: "web", protocol: "http", retries: { count: 2 }, tags: [] });
    expect(body.targets).toEqual([]);
    expect(body.id).toMatch(UUID);
    expect(body.created_at).toBe(body.updated_at);
    expect(new Date(body.created_at).toISOString()).toBe(body.created_at);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("etag")).toMatch(/^"[^"]+"$/);
    expect((await api.call("GET /services/web")).body).toEqual(body);
    expect((await api.call(`GET /services/${body.id.toUpperCase()}`)).body).toEqual(body);
  });

  test("creates the targets inside the body", async () => {
    const body = await api.create("/services", {
      name: "with-targets",
      targets: [
        { host: "10.0.0.1", port: 80 },
        { host: "10.0.0.2", port: 80, weight: 0 },
        { host: "10.0.0.3", port: 80, enabled: false },
      ],
    });
    expect(body.targets).toHaveLength(3);
    const [first] = body.targets;
    expect(first).toMatchObject({ service_id: body.id, host: "10.0.0.1", weight: 100 });
    expect(first.active_requests).toBe(0);
    expect(first.health).toEqual({
      state: "unknown",
      since: expect.any(String),
      last_error: null,
    });
    // biome-ignore lint/suspicious/noExplicitAny: a response
    const states = body.targets.map((target: any) => target.health.state);
    expect(states).toEqual(["unknown", "draining", "disabled"]);
  });

  const refused = [
    { why: "no name", body: {}, status: 400, error: "name: is required" },
    {
      why: "a name that is taken",
      body: { name: "web" },
      status: 409,
      error: 'name: service "web" exists already',
    },
    {
      why: "an id of the client's choice",
      body: { name: "x", id: "01a1fc40-e7a0-70e9-b0cd-2502aa065ff2" },
      status: 400,
      error: "id: is set by the gateway and cannot be chosen",
    },
    {
      why: "an unknown field",
      body: { name: "x", adress: 1 },
      status: 400,
      error: "adress: is not a known field",
    },
    {
      why: "an invalid target inside",
      body: {
        name: "x",
        targets: [
          { host: "a", port: 80 },
          { host: "b", port: 0 },
        ],
      },
      status: 400,
      error: "targets[1].port: must be an integer from 1 to 65535",
    },
    {
      why: "a host inside that only the compiler can judge",
      body: {
        name: "x",
        targets: [
          { host: "a", port: 80 },
          { host: "http://b", port: 80 },
        ],
      },
      status: 400,
      error: "targets[1].host: must be a name or an IP address, without scheme, port and brackets",
    },
    {
      why: "one target twice",
      body: {
        name: "x",
        targets: [
          { host: "a", port: 80 },
          { host: "A", port: 80 },
        ],
      },
      status: 409,
      error: "targets[1].host: target a:80 exists already in this service",
    },
    {
      why: "a unix socket that is no path",
      body: { name: "x", targets: [{ host: "unix:a" }] },
      status: 400,
      error: "targets[0].host: must be unix: and an absolute path",
    },
    {
      why: "a name like an id",
      body: { name: "01a1fc40-e7a0-70e9-b0cd-2502aa065ff2" },
      status: 400,
      error: "name: must not look like an id",
    },
    { why: "a list", body: [], status: 400, error: "body must be a JSON object" },
  ];
  test.each(refused)("rejects $why", async ({ body, status, error }) => {
    const answer = await api.call("POST /services", { body });
    expect({ status: answer.status, body: answer.body }).toEqual({ status, body: { error } });
  });

  test("rejects the management API as a target", async () => {
    const body = { name: "loop", targets: [{ host: "localhost", port: api.port }] };
    const answer = await api.call("POST /services", { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toBe(
      "targets[0].host: is the management API itself, which must not be proxied or called",
    );
  });
});

describe("PUT /services/:id", () => {
  test("replaces: absent fields return to their defaults, id and created_at stay", async () => {
    const old = await api.create("/services", { name: "put", connect_timeout: 1, tags: ["a"] });
    const { body } = await api.call("PUT /services/put", { body: { name: "put-2" } });
    expect(body).toMatchObject({ name: "put-2", connect_timeout: 5000, tags: [], id: old.id });
    expect(body.created_at).toBe(old.created_at);
    expect(body.updated_at > old.updated_at).toBe(true);
    expect((await api.call("GET /services/put")).status).toBe(404);
  });

  test("with what was read changes nothing", async () => {
    const targets = [{ host: "10.1.0.1", port: 80 }];
    const read = await api.create("/services", { name: "echo", targets });
    const before = (await api.call("GET /admin/status")).body.revision;
    const { body, headers } = await api.call("PUT /services/echo", { body: read });
    expect(body).toEqual(read);
    expect(headers.get("x-config-revision")).toBe(String(before));
  });

  test("creates under a free id", async () => {
    const id = "0198c0de-0000-7000-8000-00000000ABCD";
    const { status, body } = await api.call(`PUT /services/${id}`, { body: { name: "chosen" } });
    expect(status).toBe(200);
    expect(body.id).toBe(id.toLowerCase());
    expect((await api.call("GET /services/chosen")).body.id).toBe(body.id);
  });

  test("does not create under a name", async () => {
    const { status, body } = await api.call("PUT /services/nobody", { body: { name: "nobody" } });
    expect(status).toBe(404);
    expect(body).toEqual({ error: 'service "nobody" does not exist' });
  });

  test("rejects the id of another object", async () => {
    const { status, body } = await api.call("PUT /services/echo", {
      body: { name: "echo", id: "0198c0de-0000-7000-8000-00000000ffff" },
    });
    expect(status).toBe(400);
    expect(body.error).toBe("id: must be the id in the path, or absent");
  });

  const threeOf = (name: string) =>
    api.create("/services", {
      name,
      targets: [1, 2, 3].map((host) => ({ host: `10.9.0.${host}`, port: 80 })),
    });

  test("without targets resets them like every other field, and reports how many it removed", async () => {
    const old = await threeOf("reset");
    const trial = await api.call("PUT /services/reset?dry_run=1", { body: { name: "reset" } });
    expect(trial.body.targets).toEqual([]);
    expect(trial.headers.get("x-warning")).toBe(
      "3 targets were removed: targets is missing in the body",
    );
    expect((await api.call("GET /services/reset")).body).toEqual(old);

    const { status, body, headers } = await api.call("PUT /services/reset", {
      body: { name: "reset", description: "d" },
    });
    expect([status, body.description, body.targets]).toEqual([200, "d", []]);
    expect(headers.get("x-warning")).toBe("3 targets were removed: targets is missing in the body");
    for (const { id } of old.targets)
      expect((await api.call(`GET /targets/${id}`)).status).toBe(404);
    const again = await api.call("PUT /services/reset", {
      body: { name: "reset", description: "d" },
    });
    expect([again.status, again.headers.get("x-warning")]).toEqual([200, null]);
  });

  test("warns of one target in the singular, and not of a list that is sent as empty", async () => {
    const targets = [{ host: "10.9.1.1", port: 80 }];
    await api.create("/services", { name: "single", targets });
    const put = (body: object) => api.call("PUT /services/single", { body });
    expect((await put({ name: "single" })).headers.get("x-warning")).toBe(
      "1 target was removed: targets is missing in the body",
    );
    await put({ name: "single", targets });
    const { body, headers } = await put({ name: "single", targets: [] });
    expect([body.targets, headers.get("x-warning")]).toEqual([[], null]);
  });

  test.each(["merge", "replace"])(
    "is not what an import with %s does: a service without a list of targets keeps its own",
    async (mode) => {
      const old = await threeOf(`imported-${mode}`);
      const services = (await api.call("GET /services")).body.map(
        // biome-ignore lint/suspicious/noExplicitAny: a response
        ({ targets: _, ...service }: any) => ({ ...service, description: mode }),
      );
      const answer = await api.call(`POST /import?mode=${mode}`, { body: { format: 1, services } });
      expect([answer.status, answer.headers.get("x-warning")]).toEqual([200, null]);
      const { body } = await api.call(`GET /services/imported-${mode}`);
      expect([body.description, body.targets]).toEqual([mode, old.targets]);
    },
  );

  test("with targets replaces them, keeping ids", async () => {
    const old = await api.create("/services", {
      name: "reconcile",
      targets: [
        { host: "10.2.0.1", port: 80, weight: 7 },
        { host: "10.2.0.2", port: 80 },
      ],
    });
    const [one, two] = old.targets;
    const { status, body } = await api.call("PUT /services/reconcile", {
      body: {
        name: "reconcile",
        targets: [
          { host: "10.2.0.3", port: 80 },
          { ...two, host: "10.2.0.4" },
          { host: "10.2.0.1", port: 80 },
        ],
      },
    });
    expect({ status, error: body.error }).toEqual({ status: 200, error: undefined });
    // biome-ignore lint/suspicious/noExplicitAny: a response
    const byHost = new Map(body.targets.map((target: any) => [target.host, target]));
    expect([...byHost.keys()].sort()).toEqual(["10.2.0.1", "10.2.0.3", "10.2.0.4"]);
    expect(byHost.get("10.2.0.1")).toMatchObject({ id: one.id, weight: 100 });
    expect(byHost.get("10.2.0.4")).toMatchObject({ id: two.id });

    const none = await api.call("PUT /services/reconcile", {
      body: { name: "reconcile", targets: [] },
    });
    expect(none.body.targets).toEqual([]);
  });
});

describe("PATCH /services/:id", () => {
  test("merges as RFC 7396 says: objects deep, lists whole, null restores the default", async () => {
    await api.create("/services", {
      name: "patch",
      tags: ["a", "b"],
      connect_timeout: 1,
      retries: { count: 5, backoff_ms: 1 },
    });
    const { status, body } = await api.call("PATCH /services/patch", {
      body: { tags: ["c"], connect_timeout: null, retries: { count: 9 } },
      headers: { "content-type": "application/merge-patch+json" },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      tags: ["c"],
      connect_timeout: 5000,
      retries: { count: 9, backoff_ms: 1 },
    });
  });

  test("leaves omitted targets alone, and resets them with null, with a warning", async () => {
    const targets = [1, 2].map((host) => ({ host: `10.9.2.${host}`, port: 80, weight: host }));
    const old = await api.create("/services", { name: "partly", targets });
    const patch = (body: object) => api.call("PATCH /services/partly", { body });
    const kept = await patch({ description: "d" });
    expect(kept.body.targets).toEqual(old.targets);
    expect(kept.headers.get("x-warning")).toBeNull();
    const one = await patch({ targets: [{ host: "10.9.2.2", port: 80 }] });
    expect(one.body.targets).toMatchObject([{ id: old.targets[1].id, weight: 100 }]);
    expect(one.headers.get("x-warning")).toBeNull();
    const none = await patch({ targets: null });
    expect(none.body.targets).toEqual([]);
    expect(none.headers.get("x-warning")).toStartWith("1 target was removed");
  });

  test("of a service with more targets than one body may hold leaves them alone", async () => {
    const list = Array.from({ length: 1000 }, (_, at) => ({
      host: `10.8.0.${at % 250}`,
      port: at + 1,
    }));
    await api.create("/services", { name: "wide", targets: list });
    await api.create("/services/wide/targets", { host: "10.8.1.1", port: 80 });
    const { status, body } = await api.call("PATCH /services/wide", { body: { description: "d" } });
    expect([status, body.description, body.targets.length]).toEqual([200, "d", 1001]);
    expect((await api.call("DELETE /services/wide")).status).toBe(200);
  });

  test("cannot remove what is required", async () => {
    const { status, body } = await api.call("PATCH /services/patch", { body: { name: null } });
    expect(status).toBe(400);
    expect(body.error).toBe("name: is required");
  });

  test("of an unknown service is 404, under an id too", async () => {
    for (const key of ["nobody", "0198c0de-0000-7000-8000-000000000000"]) {
      const { status } = await api.call(`PATCH /services/${key}`, { body: {} });
      expect(status).toBe(404);
    }
  });
});

describe("DELETE /services/:id", () => {
  test("returns deleted, and deletes the service's own targets", async () => {
    const targets = [{ host: "10.3.0.1", port: 80 }];
    const old = await api.create("/services", { name: "gone", targets });
    const { status, body } = await api.call("DELETE /services/gone");
    expect({ status, body }).toEqual({ status: 200, body: { deleted: true } });
    expect((await api.call("GET /services/gone")).status).toBe(404);
    expect((await api.call(`GET /targets/${old.targets[0].id}`)).status).toBe(404);
    expect((await api.call("DELETE /services/gone")).status).toBe(404);
  });

  test("is refused while routes use it, by their names; cascade deletes them too", async () => {
    await api.create("/services", { name: "used" });
    const first = await api.create("/routes", { name: "shop", service_id: "used", paths: ["/s"] });
    const second = await api.create("/routes", { service_id: "used", paths: ["/t"] });
    const refused = await api.call("DELETE /services/used");
    expect(refused.status).toBe(409);
    expect(refused.body.error).toBe(`service "used" is used by route "shop", route "${second.id}"`);
    const { status, headers } = await api.call("DELETE /services/used?cascade=1");
    expect(status).toBe(200);
    expect(headers.get("x-deleted")).toBe(`route "shop", route "${second.id}"`);
    expect((await api.call(`GET /routes/${first.id}`)).status).toBe(404);
  });

  test("as a dry run deletes nothing", async () => {
    await api.create("/services", { name: "stays" });
    const { status, headers } = await api.call("DELETE /services/stays?dry_run=1");
    expect(status).toBe(200);
    expect(headers.get("x-dry-run")).toBe("true");
    expect((await api.call("GET /services/stays")).status).toBe(200);
  });
});

describe("targets", () => {
  test("are created, read, changed and deleted on their own", async () => {
    const service = await api.create("/services", { name: "own" });
    const target = await api.create("/targets", { service_id: "own", host: "10.4.0.1", port: 80 });
    expect(target.service_id).toBe(service.id);
    expect((await api.call("GET /services/own")).body.targets).toEqual([target]);
    const { body } = await api.call(`PATCH /targets/${target.id}`, { body: { weight: 0 } });
    expect(body).toMatchObject({ weight: 0, health: { state: "draining" } });
    const put = await api.call(`PUT /targets/${target.id}`, { body: { ...body, weight: 3 } });
    expect(put.body).toMatchObject({ weight: 3, id: target.id });
    expect((await api.call(`DELETE /targets/${target.id}`)).body).toEqual({ deleted: true });
    expect((await api.call("GET /services/own")).body.targets).toEqual([]);
  });

  test("are listed and created below their service", async () => {
    await api.create("/services", { name: "parent" });
    const target = await api.create("/services/parent/targets", { host: "10.5.0.1", port: 80 });
    expect((await api.call("GET /services/parent/targets")).body).toEqual([target]);
    expect((await api.call("GET /targets?service_id=parent")).body).toEqual([target]);
    expect((await api.call("GET /targets?service_id=nobody")).body).toEqual([]);
    expect((await api.call("GET /services/nobody/targets")).status).toBe(404);
    const lost = { host: "a", port: 80 };
    expect((await api.call("POST /services/nobody/targets", { body: lost })).status).toBe(404);
    const wrong = await api.call("POST /services/parent/targets", {
      body: { host: "a", port: 80, service_id: "other" },
    });
    expect(wrong.body.error).toBe("service_id: must be the service in the path, or absent");
  });

  test("of an unknown service are rejected", async () => {
    const body = { service_id: "nobody", host: "a", port: 80 };
    const answer = await api.call("POST /targets", { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toBe('service_id: service "nobody" does not exist');
  });

  test("have a unique address within a service", async () => {
    await api.create("/services", { name: "once", targets: [{ host: "a.example", port: 80 }] });
    const body = { service_id: "once", host: "a.example", port: 80 };
    const answer = await api.call("POST /targets", { body });
    expect(answer.status).toBe(409);
    expect(answer.body.error).toBe("host: target a.example:80 exists already in this service");
  });
});

// Parts of applications changed or deleted by hand, or already present: drift, conflicts, adopt and force.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { useGateway } from "./client.ts";
import { usePeople } from "./people.ts";

const api = useGateway();
const people = usePeople();

let origin: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("served") });
});
afterAll(() => origin.stop(true));

const upstream = () => `http://127.0.0.1:${origin.port}`;
const make = (name: string, fields: object = {}) =>
  api.create("/applications", {
    name,
    domains: [`${name}.test`],
    upstream: upstream(),
    ...fields,
  });
const read = async (name: string) => (await api.call(`GET /applications/${name}`)).body;
const visit = async (host: string) =>
  (await fetch(`http://127.0.0.1:${api.gateway.httpPort}/`, { headers: { host } })).status;
async function ok(line: string, body?: unknown) {
  const answer = await api.call(line, body === undefined ? {} : { body });
  if (answer.status !== 200) throw new Error(`${line}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

describe("the Host header", () => {
  test("is the client's in a new service, the target's, or a name", async () => {
    const seen = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ headers }) => new Response(headers.get("host")),
    });
    try {
      const target = `127.0.0.1:${seen.port}`;
      await make("hosted", { upstream: `http://${target}` });
      const get = async () => {
        const headers = { host: "hosted.test" };
        const answer = await fetch(`http://127.0.0.1:${api.gateway.httpPort}/`, { headers });
        return await answer.text();
      };
      const set = (value: string | null) =>
        ok("PATCH /applications/hosted", { host_header: value });
      expect([(await read("hosted")).host_header, await get()]).toEqual([null, "hosted.test"]);
      const made = await set("target");
      expect([made.host_header, made.service.host_header]).toEqual(["target", "target"]);
      expect(await get()).toBe(target);
      await set("app.internal");
      expect(await get()).toBe("app.internal");
      // Null leaves the service as it is.
      await set(null);
      expect([await get(), (await read("hosted")).drift]).toEqual(["app.internal", []]);
    } finally {
      await seen.stop(true);
    }
  });

  test("that is no name is refused at its field", async () => {
    const answer = await api.call("PATCH /applications/hosted", {
      body: { host_header: "no name" },
    });
    expect([answer.status, answer.body.error]).toEqual([
      400,
      expect.stringMatching(/^host_header: /),
    ]);
  });
});

describe("a change by hand", () => {
  test("is reported per object and field", async () => {
    const { targets, routes } = await make("drifting");
    await ok("PATCH /services/drifting", { connect_timeout: 777, tls: { verify: false } });
    await ok("PATCH /routes/drifting", { hosts: ["drifting.test", "more.test"] });
    await ok(`PATCH /targets/${targets[0].id}`, { weight: 5 });
    await ok("POST /services/drifting/targets", { host: "127.0.0.2", port: 81 });
    const { drift } = await read("drifting");
    const service = { kind: "service", name: "drifting" };
    expect(drift).toMatchObject([
      { ...service, field: "connect_timeout", expected: 5000, found: 777 },
      { ...service, field: "tls.verify", expected: true, found: false },
      { kind: "target", field: "weight", expected: 100, found: 5 },
      {
        kind: "route",
        id: routes[0].id,
        name: "drifting",
        field: "hosts",
        expected: ["drifting.test"],
        found: ["drifting.test", "more.test"],
      },
      { kind: "target", name: "127.0.0.2:81", field: null, expected: null },
    ]);
  });

  test("persists when the application changes something else", async () => {
    const patched = await ok("PATCH /applications/drifting", { maintenance: true });
    expect(patched.drift).toHaveLength(5);
    expect(patched.routes[0]).toMatchObject({ maintenance: { retry_after: 300 } });
    expect(patched.routes[0].hosts).toContain("more.test");
    await ok("PATCH /applications/drifting", { maintenance: false });
  });

  test("is reverted by force, after a dry run that reports it", async () => {
    const trial = await ok("PATCH /applications/drifting?force=1&dry_run=1", {});
    const touched = trial.changes.map((one: { action: string; kind: string }) => [
      one.action,
      one.kind,
    ]);
    expect(touched.toSorted()).toEqual([
      ["delete", "target"],
      ["update", "route"],
      ["update", "service"],
      ["update", "target"],
    ]);
    expect((await read("drifting")).drift).toHaveLength(5);
    const forced = await ok("PATCH /applications/drifting?force=1", {});
    expect(forced).toMatchObject({
      drift: [],
      service: { connect_timeout: 5000, tls: { verify: true } },
      routes: [{ hosts: ["drifting.test"] }],
    });
    expect(forced.targets).toHaveLength(1);
  });

  test("is accepted by adopt, unless the application sets the field", async () => {
    await ok("PATCH /services/drifting", { connect_timeout: 777, path: "/hand" });
    const accepted = await ok("PATCH /applications/drifting?adopt=1", {});
    expect(accepted.drift).toMatchObject([{ field: "path", expected: "", found: "/hand" }]);
    const { service } = await ok("PUT /applications/drifting?reset_drift=1", {
      name: "drifting",
      domains: ["drifting.test"],
      upstream: upstream(),
    });
    expect(service).toMatchObject({ path: "", connect_timeout: 777 });
  });

  test("a field that the application's own change affects is written", async () => {
    await ok("PATCH /routes/drifting", { hosts: ["hand.test"] });
    const { routes, drift } = await ok("PATCH /applications/drifting", {
      domains: ["drifting.test", "two.test"],
    });
    expect(routes[0].hosts).toEqual(["drifting.test", "two.test"]);
    expect(drift).toEqual([]);
  });

  test("secrets in it are not shown", async () => {
    const { plugins } = await make("guarded", { access: "private" });
    await ok(`PATCH /plugins/${plugins[0].id}`, { config: { message: "go away" } });
    expect((await read("guarded")).drift).toMatchObject([
      { kind: "plugin", name: "guarded access", field: "config.message", found: "go away" },
    ]);
  });
});

describe("a part that was deleted by hand", () => {
  test("is reported as drift, and force creates it again", async () => {
    await make("holed");
    await ok("DELETE /services/holed?cascade=1");
    const left = await read("holed");
    expect(left).toMatchObject({ service: null, targets: [], routes: [] });
    expect(left.drift).toMatchObject([
      { kind: "service", name: "holed", field: null, found: null },
      { kind: "target", name: `127.0.0.1:${origin.port}`, field: null, found: null },
      { kind: "route", name: "holed", field: null, found: null },
    ]);
    expect(await visit("holed.test")).toBe(404);
    const patched = await ok("PATCH /applications/holed", {
      domains: ["holed.test", "holed2.test"],
      access: "private",
      targets: [
        { host: "127.0.0.1", port: origin.port },
        { host: "127.0.0.1", port: 9 },
      ],
    });
    expect(patched.service).toBeNull();
    expect(patched.drift).toHaveLength(5);
    await ok("PATCH /applications/holed", { upstream: upstream() });
    const forced = await ok("PATCH /applications/holed?force=1", {});
    expect(forced.drift).toEqual([]);
    expect(forced.plugins).toHaveLength(1);
    expect(await visit("holed2.test")).toBe(200);
  });

  test("does not prevent the application's deletion", async () => {
    await make("gone");
    await ok("DELETE /routes/gone");
    await ok("DELETE /certificates/gone%20local");
    await ok("DELETE /applications/gone");
    expect((await api.call("GET /services/gone")).status).toBe(404);
  });
});

describe("deleting an application", () => {
  test("removes only what it created, and lists it", async () => {
    await api.create("/services", { name: "bystander" });
    await make("whole", { access: "private" });
    const answer = await api.call("DELETE /applications/whole");
    expect(answer.body).toEqual({ deleted: true });
    expect(answer.headers.get("x-deleted")).toBe(
      [
        'service "whole"',
        `target "127.0.0.1:${origin.port}"`,
        'route "whole"',
        'certificate "whole local"',
        'plugin "whole access"',
      ].join(", "),
    );
    for (const path of ["services/whole", "routes/whole", "certificates/whole%20local"])
      expect((await api.call(`GET /${path}`)).status).toBe(404);
    expect((await api.call("GET /services/bystander")).status).toBe(200);
  });

  test("is refused while another object refers to a part, unless cascaded", async () => {
    await make("shared");
    await api.create("/routes", { name: "extra", service_id: "shared", hosts: ["extra.test"] });
    expect(await api.call("DELETE /applications/shared")).toMatchObject({
      status: 409,
      body: { error: 'service "shared" is used by route "extra"' },
    });
    expect(await visit("shared.test")).toBe(200);
    await ok("DELETE /applications/shared?cascade=1");
    expect((await api.call("GET /routes/extra")).status).toBe(404);
  });
});

describe("an existing object", () => {
  const body = (name: string, fields: object = {}) => ({
    name,
    domains: [`${name}.test`],
    upstream: upstream(),
    ...fields,
  });

  test("is a conflict by name: service, route, host, certificate", async () => {
    await api.create("/services", { name: "old" });
    await api.create("/routes", { name: "old-route", hosts: ["Old2.test"] });
    await api.create("/certificates", {
      name: "old3 local",
      source: "local_ca",
      domains: ["x.test"],
    });
    const refusal = async (name: string) =>
      (await api.call("POST /applications", { body: body(name) })).body.error;
    const tail = "?adopt=1 adopts it";
    expect(await refusal("old")).toBe(`service "old" exists already; ${tail}`);
    expect(await refusal("old2")).toBe(`route "old-route" serves old2.test already; ${tail}`);
    expect(await refusal("old3")).toBe(`certificate "old3 local" exists already; ${tail}`);
    expect(await refusal("old-route")).toBe(`route "old-route" exists already; ${tail}`);
  });

  test("is adopted after a dry run with the changes, and keeps its ids and settings", async () => {
    const service = await api.create("/services", {
      name: "legacy-backend",
      connect_timeout: 1234,
      targets: [
        { host: "127.0.0.1", port: origin.port, weight: 9 },
        { host: "127.0.0.9", port: 1 },
      ],
    });
    const route = await api.create("/routes", {
      name: "by-hand",
      hosts: ["legacy.test"],
      service_id: "legacy-backend",
      priority: 5,
    });
    const asked = { body: body("legacy") };
    const trial = await api.call("POST /applications?adopt=1&dry_run=1", asked);
    const changed = trial.body.changes.map((one: { action: string; kind: string }) =>
      [one.action, one.kind].join(" "),
    );
    expect(changed.toSorted()).toEqual([
      "create application",
      "create certificate",
      "delete target",
      "update route",
      "update service",
    ]);
    const { body: made } = await api.call("POST /applications?adopt=1", asked);
    expect(made).toMatchObject({
      drift: [],
      service: { id: service.id, name: "legacy", connect_timeout: 1234 },
      targets: [{ id: service.targets[0].id, weight: 9 }],
      routes: [{ id: route.id, name: "legacy", priority: 5 }],
    });
    expect(await visit("legacy.test")).toBe(200);
  });

  test("a route for some requests of the name stays beside the application", async () => {
    await api.create("/routes", { name: "api", hosts: ["beside.test"], paths: ["/api"] });
    expect((await api.call("POST /applications", { body: body("beside") })).status).toBe(409);
    const { status } = await api.call("POST /applications?adopt=1", { body: body("beside") });
    expect(status).toBe(200);
    expect((await ok("GET /routes/api")).paths).toEqual([{ type: "prefix", value: "/api" }]);
  });

  test("two routes for its names cannot both become its route", async () => {
    for (const name of ["one", "two"])
      await api.create("/routes", { name: `${name}-route`, hosts: [`${name}.dup.test`] });
    const domains = ["one.dup.test", "two.dup.test"];
    const answer = await api.call("POST /applications?adopt=1", { body: body("dup", { domains }) });
    expect(answer).toMatchObject({
      status: 409,
      body: {
        error:
          'route "one-route" and route "two-route" serve names of the application: only one of them can become its route',
      },
    });
  });

  test("of another application is never adopted", async () => {
    await make("first");
    const same = body("second", { domains: ["first.test"] });
    expect(await api.call("POST /applications?adopt=1", { body: same })).toMatchObject({
      status: 409,
      body: { error: 'route "first" belongs to application "first"' },
    });
    await make("third");
    expect(
      await api.call("PATCH /applications/third?adopt=1", {
        body: { domains: ["third.test", "first.test"] },
      }),
    ).toMatchObject({
      status: 409,
      body: { error: 'route "first" of application "first" serves first.test already' },
    });
  });

  test("adding a domain that another route serves is refused", async () => {
    await make("growing");
    await api.create("/routes", { name: "taken", hosts: ["taken.test"] });
    const patch = { body: { domains: ["growing.test", "taken.test"] } };
    expect(await api.call("PATCH /applications/growing", patch)).toMatchObject({
      status: 409,
      body: { error: 'route "taken" serves taken.test already' },
    });
  });
});

describe("roles", () => {
  const body = { name: "by-role", domains: ["by-role.test"], upstream: "http://127.0.0.1:9" };
  test.each([
    ["viewer", 403, 200],
    ["editor", 200, 200],
    ["admin", 200, 200],
  ])("%s", async (role, write, see) => {
    await people.create(role, role);
    const call = await people.signIn(`${role}@a.example`);
    expect((await call("POST /applications?dry_run=1", body)).status).toBe(write);
    expect((await call("GET /applications")).status).toBe(see);
    expect((await people.nobody("GET /applications")).status).toBe(401);
  });

  test("a unix socket as target needs an admin", async () => {
    const call = await people.signIn("editor@a.example");
    const targets = [{ host: "unix:/run/x.sock", port: null }];
    const answer = await call("POST /applications", { ...body, upstream: null, targets });
    expect(answer.status).toBe(403);
    const admin = await people.signIn("admin@a.example");
    const made = await admin("POST /applications", { ...body, upstream: null, targets });
    expect(made.status).toBe(200);
    expect((await call("DELETE /applications/by-role")).status).toBe(200);
  });
});

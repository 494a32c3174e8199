// Policies of applications: what clients get, how they are refused, and what a change by hand of their plugins is.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { useGateway } from "./client.ts";

const api = useGateway();

let origin: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const body = await request.text();
      const { headers } = request;
      return Response.json(
        { length: body.length, authorization: headers.get("authorization") },
        { headers: { server: "origin" } },
      );
    },
  });
});
afterAll(() => origin.stop(true));

const make = (name: string, fields: object = {}) =>
  api.create("/applications", {
    name,
    domains: [`${name}.test`],
    upstream: `http://127.0.0.1:${origin.port}`,
    ...fields,
  });
async function ok(line: string, body?: unknown) {
  const answer = await api.call(line, body === undefined ? {} : { body });
  if (answer.status !== 200) throw new Error(`${line}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}
const set = (name: string, policies: object) => ok(`PATCH /applications/${name}`, { policies });
const errorOf = async (line: string, body: unknown) => {
  const { status, body: found } = await api.call(line, { body });
  return [status, found.error];
};
const visit = (name: string, init: RequestInit = {}, path = "/") =>
  fetch(`http://127.0.0.1:${api.gateway.httpPort}${path}`, {
    ...init,
    redirect: "manual",
    headers: { host: `${name}.test`, ...init.headers },
  });
const login = (user: string, password: string) => ({
  headers: { authorization: `Basic ${btoa(`${user}:${password}`)}` },
});
async function addUser(username: string, groups: readonly string[], secret = "open sesame") {
  await api.create("/consumers", { username, groups });
  await api.create(`/consumers/${username}/credentials`, { type: "basic", secret });
}

describe("a password", () => {
  test("lets in the users of its list, at every application with that list", async () => {
    await addUser("anna", ["family"]);
    await addUser("guest", ["others"]);
    await make("photos", { policies: { login: { group: "family" } } });
    await make("films", { policies: { login: { group: "family" } } });
    for (const name of ["photos", "films"]) {
      expect((await visit(name)).status).toBe(401);
      expect((await visit(name, login("anna", "wrong"))).status).toBe(401);
      expect((await visit(name, login("guest", "open sesame"))).status).toBe(403);
      const answer = await visit(name, login("anna", "open sesame"));
      expect([answer.status, await answer.json()]).toEqual([
        200,
        { length: 0, authorization: null },
      ]);
    }
    await set("films", { login: null });
    expect((await visit("films")).status).toBe(200);
    expect((await visit("photos")).status).toBe(401);
  });

  test("nobody has is a warning, which names the list", async () => {
    const { warnings } = await make("lonely", { policies: { login: {} } });
    expect(warnings).toEqual([
      expect.stringContaining(
        'application "lonely" rejects every login: no consumer of the group "users" has a credential of the type basic',
      ),
    ]);
    expect((await visit("lonely")).status).toBe(401);
    await addUser("ben", ["users"]);
    expect((await ok("GET /applications/lonely")).warnings).toEqual([]);
  });

  test("without HTTPS is a warning", async () => {
    const plain = await ok("PATCH /applications/lonely", { https: { mode: "off" } });
    expect(plain.warnings).toEqual([expect.stringContaining("has no HTTPS")]);
  });

  test("stays on a route that is added to the service later", async () => {
    const { service } = await ok("GET /applications/photos");
    const paths = [{ type: "prefix", value: "/raw" }];
    const route = { name: "raw", hosts: ["photos.test"], paths, service_id: service.id };
    await api.create("/routes", route);
    expect((await visit("photos", {}, "/raw")).status).toBe(401);
  });

  test("cannot be combined with single sign-on", async () => {
    const policies = { login: {}, sso: { provider: "authelia", url: "http://127.0.0.1:9091" } };
    expect(await errorOf("PATCH /applications/lonely", { policies })).toEqual([
      400,
      expect.stringMatching(/^policies\.sso: cannot be combined with policies\.login/),
    ]);
  });
});

describe("policies", () => {
  test("single sign-on asks the server of the provider", async () => {
    const asked: string[] = [];
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url, headers }) => {
        asked.push(new URL(url).pathname);
        return headers.get("cookie") === "in=1"
          ? new Response("")
          : new Response("", { status: 302, headers: { location: "https://auth.test/" } });
      },
    });
    try {
      const url = `http://127.0.0.1:${server.port}`;
      await make("sso", { policies: { sso: { provider: "authelia", url } } });
      const answer = await visit("sso");
      expect([answer.status, answer.headers.get("location")]).toEqual([302, "https://auth.test/"]);
      expect((await visit("sso", { headers: { cookie: "in=1" } })).status).toBe(200);
      expect(new Set(asked)).toEqual(new Set(["/api/authz/forward-auth"]));
      for (const [provider, path] of [
        ["authentik", "/outpost.goauthentik.io/auth/traefik"],
        ["pocket_id", "/"],
        ["oauth2_proxy", "/"],
      ]) {
        await set("sso", { sso: { provider } });
        await visit("sso");
        expect(asked.at(-1)).toBe(path);
      }
    } finally {
      await server.stop(true);
    }
  });

  test("a rate limit counts each client", async () => {
    await make("slow", { policies: { rate_limit: { requests: 2, window: 3600 } } });
    const statuses: number[] = [];
    for (let at = 0; at < 3; at++) statuses.push((await visit("slow")).status);
    expect(statuses).toEqual([200, 200, 429]);
  });

  test("headers set those of the response, and hide the server's", async () => {
    await make("heads", { policies: { headers: { set: { "X-Robots-Tag": "noindex" } } } });
    const { headers } = await visit("heads");
    expect([
      headers.get("x-robots-tag"),
      headers.get("x-frame-options"),
      headers.get("server"),
      headers.get("strict-transport-security"),
    ]).toEqual(["noindex", "SAMEORIGIN", null, null]);
    await set("heads", { headers: { security: false, set: null } });
    const plain = (await visit("heads")).headers;
    expect([plain.get("x-robots-tag"), plain.get("x-frame-options")]).toEqual([null, null]);
  });

  test("a redirect replaces a path, or leads away", async () => {
    await make("moved", { policies: { redirect: { from: "/old", to: "/new" } } });
    const answer = await visit("moved", {}, "/old/a?b=1");
    expect([answer.status, answer.headers.get("location")]).toEqual([
      307,
      expect.stringMatching(/\/new\/a\?b=1$/),
    ]);
    expect((await visit("moved")).status).toBe(200);
    await set("moved", { redirect: { from: "/", to: "https://www.example.com" } });
    expect((await visit("moved", {}, "/x")).headers.get("location")).toBe(
      "https://www.example.com/x",
    );
  });

  test("a redirect of all paths needs no upstream", async () => {
    const away = { from: "/", to: "https://example.com" };
    await make("www", { upstream: null, policies: { redirect: away } });
    const { headers } = await visit("www", {}, "/x?y=1");
    expect(headers.get("location")).toBe("https://example.com/x?y=1");
    const part = { redirect: { ...away, from: "/old" } };
    expect(await errorOf("PATCH /applications/www", { policies: part })).toEqual([
      400,
      "upstream: is required, or targets, or a redirect of the path /",
    ]);
  });

  test("uploads have a size", async () => {
    await make("upload", { policies: { upload: { max_body_bytes: 10 } } });
    const send = (length: number) => visit("upload", { method: "POST", body: "x".repeat(length) });
    expect([(await send(10)).status, (await send(11)).status]).toEqual([200, 413]);
  });

  test("networks replace or extend the private ones", async () => {
    const clientsOf = async (name: string) => {
      const { plugins } = await ok(`GET /applications/${name}`);
      return plugins[0]?.config.allow;
    };
    await make("nets", { access: "networks", networks: ["203.0.113.0/24"] });
    expect(await clientsOf("nets")).toEqual(["203.0.113.0/24"]);
    expect((await visit("nets")).status).toBe(403);
    await ok("PATCH /applications/nets", { access: "private" });
    expect(await clientsOf("nets")).toContain("203.0.113.0/24");
    expect((await visit("nets")).status).toBe(200);
    await ok("PATCH /applications/nets", { access: "public" });
    expect(await clientsOf("nets")).toBeUndefined();
    expect(await errorOf("PATCH /applications/nets", { access: "networks" })).toEqual([
      400,
      expect.stringMatching(/^networks: must name a network/),
    ]);
    const wrong = { access: "networks", networks: ["10.0.0.0/8", "10.0.0.0/99"] };
    expect(await errorOf("PATCH /applications/nets", wrong)).toEqual([
      400,
      expect.stringMatching(/^networks\[1\]: must be an IP address/),
    ]);
  });

  test.each([
    [{ rate_limit: { requests: 0 } }, "policies.rate_limit.requests"],
    [{ sso: { provider: "authelia", url: "nothing" } }, "policies.sso.url"],
    [{ sso: { provider: "keycloak", url: "http://127.0.0.1" } }, "policies.sso.provider"],
    [{ redirect: { from: "old", to: "/new" } }, "policies.redirect.from"],
    [{ redirect: { from: "/old" } }, "policies.redirect.to"],
    [{ login: { group: "two words" } }, "policies.login.group"],
    [{ headers: { set: { "a b": "c" } } }, "policies.headers.set.a b"],
    [{ lock: {} }, "policies.lock"],
  ])("%j is refused at its field", async (policies, field) => {
    const [status, error] = await errorOf("PATCH /applications/heads", { policies });
    expect([status, String(error).split(":")[0]]).toEqual([400, field]);
  });

  test("sent back as they were read change nothing", async () => {
    const read = await ok("GET /applications/photos");
    const before = (await ok("GET /admin/status")).revision;
    await ok("PUT /applications/photos", read);
    expect((await ok("GET /admin/status")).revision).toBe(before);
  });
});

describe("a plugin of a policy that a person changes", () => {
  test("is drift at the changed setting only, and force reverts it", async () => {
    const { plugins } = await ok("GET /applications/slow");
    const [{ id, config }] = plugins;
    const limits = [{ ...config.limits[0], requests: 7 }];
    await ok(`PATCH /plugins/${id}`, { config: { limits } });
    const { drift } = await ok("GET /applications/slow");
    expect(drift).toMatchObject([
      { kind: "plugin", field: "config.limits", name: "slow rate limit" },
    ]);
    expect((await ok("PATCH /applications/slow?force=1", {})).drift).toEqual([]);
    expect((await ok(`GET /plugins/${id}`)).config.limits[0].requests).toBe(2);
  });

  test("that is saved without a change is no drift", async () => {
    const { plugins } = await ok("GET /applications/slow");
    const [{ id, config }] = plugins;
    await ok(`PATCH /plugins/${id}`, { config: { ...config, headers: "both" } });
    expect((await ok("GET /applications/slow")).drift).toEqual([]);
  });

  test("that exists before is a conflict, and adopted on request", async () => {
    const { service } = await make("adopting");
    const config = { users: [] };
    const own = await api.create("/plugins", {
      name: "basic-auth",
      service_id: service.id,
      config,
    });
    const policies = { login: {} };
    expect(await errorOf("PATCH /applications/adopting", { policies })).toEqual([
      409,
      expect.stringContaining("?adopt=1 adopts it"),
    ]);
    const { plugins } = await ok("PATCH /applications/adopting?adopt=1", { policies });
    expect(plugins.map(({ id }: { id: string }) => id)).toContain(own.id);
  });

  test("undo of the change that set the policy removes its plugins", async () => {
    await make("undone");
    await set("undone", { rate_limit: { requests: 1 } });
    const { revision } = await ok("GET /admin/status");
    await ok(`POST /revisions/${revision}/undo`);
    const { plugins, policies, drift } = await ok("GET /applications/undone");
    expect([plugins, policies.rate_limit, drift]).toEqual([[], null, []]);
  });
});

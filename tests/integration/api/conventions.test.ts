// Conventions of all resources: conditions, dry runs, filters, revisions, settings, warnings, concurrent changes.
import { describe, expect, test } from "bun:test";
import { useGateway } from "./client.ts";

const api = useGateway();

describe("conditions", () => {
  test("a change applies only to the version that was read", async () => {
    await api.create("/services", { name: "etag" });
    const read = await api.call("GET /services/etag");
    const etag = read.headers.get("etag") ?? "";
    const patch = (ifMatch: string, description: string) =>
      api.call("PATCH /services/etag", { body: { description }, headers: { "if-match": ifMatch } });
    expect((await patch('"other"', "a")).status).toBe(412);
    expect((await patch(`W/${etag}`, "a")).status).toBe(412);
    const changed = await patch(`"other", ${etag}`, "a");
    expect(changed.status).toBe(200);
    expect(changed.headers.get("etag")).not.toBe(etag);
    const late = await patch(etag, "b");
    expect(late.status).toBe(412);
    expect(late.body.error).toBe("was changed since it was read; read it again and retry");
    expect((await patch("*", "c")).status).toBe(200);
    const remove = await api.call("DELETE /services/etag", { headers: { "if-match": etag } });
    expect(remove.status).toBe(412);
  });

  test("a service's version changes with its targets", async () => {
    await api.create("/services", { name: "etag-targets" });
    const before = (await api.call("GET /services/etag-targets")).headers.get("etag");
    await api.create("/services/etag-targets/targets", { host: "a.example", port: 80 });
    const after = (await api.call("GET /services/etag-targets")).headers.get("etag");
    expect(after).not.toBe(before);
  });

  test("a list has a version, which changes with the list", async () => {
    const before = await api.call("GET /services");
    expect((await api.call("GET /services")).headers.get("etag")).toBe(before.headers.get("etag"));
    await api.create("/services", { name: "one-more" });
    const after = await api.call("GET /services");
    expect(after.headers.get("etag")).not.toBe(before.headers.get("etag"));
  });

  test("If-None-Match: * creates and never replaces", async () => {
    const id = "0198c0de-0000-7000-8000-000000000001";
    const put = (name: string) =>
      api.call(`PUT /services/${id}`, { body: { name }, headers: { "if-none-match": "*" } });
    expect((await put("only-once")).status).toBe(200);
    const again = await put("twice");
    expect(again.status).toBe(412);
    expect(again.body.error).toBe("exists already");
  });

  test("If-Match on a free id is 412: there is nothing to match", async () => {
    const answer = await api.call("PUT /services/0198c0de-0000-7000-8000-000000000002", {
      body: { name: "x" },
      headers: { "if-match": "*" },
    });
    expect(answer.status).toBe(412);
  });
});

describe("dry_run", () => {
  test("returns the object that would be, and changes nothing", async () => {
    const before = (await api.call("GET /admin/status")).body.revision;
    const { status, body, headers } = await api.call("POST /services?dry_run=1", {
      body: { name: "dry", targets: [{ host: "a.example", port: 1 }] },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ name: "dry", targets: [{ host: "a.example" }] });
    expect(headers.get("x-dry-run")).toBe("true");
    expect(headers.get("x-config-revision")).toBe(String(before));
    expect((await api.call("GET /services/dry")).status).toBe(404);
  });

  test("finds errors", async () => {
    const { status } = await api.call("POST /routes?dry_run=true", { body: { paths: ["x"] } });
    expect(status).toBe(400);
  });

  test.each(["dry_run=2", "dryrun=1"])(
    "misspelt as ?%s is rejected, not ignored",
    async (query) => {
      const { status } = await api.call(`POST /services?${query}`, { body: { name: "typo" } });
      expect(status).toBe(400);
      expect((await api.call("GET /services/typo")).status).toBe(404);
    },
  );
});

describe("lists", () => {
  test("are bare arrays, whole, oldest first, and filters narrow them", async () => {
    for (const [name, fields] of Object.entries({
      "list-b": { tags: ["red"], description: "The Blue one" },
      "list-a": { tags: ["red", "big"] },
      "list-c": {},
    }))
      await api.create("/services", { name, ...fields });
    const names = async (query: string) => {
      const { body } = await api.call(`GET /services?${query}`);
      // biome-ignore lint/suspicious/noExplicitAny: a response
      return body.map((service: any) => service.name);
    };
    expect(await names("q=LIST-")).toEqual(["list-b", "list-a", "list-c"]);
    expect(await names("tag=red")).toEqual(["list-b", "list-a"]);
    expect(await names("tag=red&tag=big")).toEqual(["list-a"]);
    expect(await names("name=list-c")).toEqual(["list-c"]);
    expect(await names("name=list")).toEqual([]);
    expect(await names("q=blue")).toEqual(["list-b"]);
    // PUT does not move an object to the end.
    await api.call("PUT /services/list-b", { body: { name: "list-b" } });
    expect(await names("q=list-")).toEqual(["list-b", "list-a", "list-c"]);
  });

  test("search hosts, and routes by service and listener", async () => {
    await api.create("/services", { name: "searched" });
    const fields = { name: "found", hosts: ["shop.example"], listener_ids: ["http"] };
    const route = await api.create("/routes", { ...fields, service_id: "searched" });
    await api.create("/routes", { name: "other", hosts: ["news.example"] });
    for (const query of ["q=SHOP.ex", "service_id=searched", "listener_id=http"])
      expect((await api.call(`GET /routes?${query}`)).body).toEqual([route]);
  });

  test.each(["limit=1", "service_id=x", "__proto__=x", "constructor=x"])(
    "reject the unknown filter %s",
    async (query) => {
      const { status, body } = await api.call(`GET /services?${query}`);
      expect(status).toBe(400);
      expect(body).toEqual({ error: `unknown query parameter "${query.split("=")[0]}"` });
    },
  );
});

describe("revisions", () => {
  test("every mutation returns the revision that all workers serve", async () => {
    const first = await api.call("POST /services", { body: { name: "rev" } });
    const revision = Number(first.headers.get("x-config-revision"));
    const second = await api.call("PATCH /services/rev", { body: { tags: ["x"] } });
    expect(second.headers.get("x-config-revision")).toBe(String(revision + 1));
    const refused = await api.call("POST /services", { body: { name: "rev" } });
    expect(refused.status).toBe(409);
    expect(refused.headers.get("x-config-revision")).toBe(String(revision + 1));
    const last = await api.call("DELETE /services/rev");
    expect(last.headers.get("x-config-revision")).toBe(String(revision + 2));
    const status = await api.call("GET /admin/status");
    expect(status.body).toMatchObject({ revision: revision + 2, workers: 2, workers_ready: 2 });
    expect(status.headers.get("x-config-revision")).toBeNull();
  });

  test("acknowledged changes survive a restart", async () => {
    await api.create("/services", { name: "kept", targets: [{ host: "a.example", port: 80 }] });
    await api.create("/routes", {
      name: "kept",
      service_id: "kept",
      paths: ["/kept", "=/x", "~^/y"],
    });
    await api.call("PATCH /settings", { body: { debug_headers: true } });
    const read = async () => [
      (await api.call("GET /services")).body,
      (await api.call("GET /routes")).body,
      (await api.call("GET /settings")).body,
      (await api.call("GET /listeners")).body,
      (await api.call("GET /admin/status")).body.revision,
    ];
    const before = await read();
    await api.gateway.restart();
    expect(await read()).toEqual(before);
  });
});

describe("routes", () => {
  test("accept short paths and return long ones; names become ids", async () => {
    const service = await api.create("/services", { name: "short" });
    const route = await api.create("/routes", {
      service_id: "short",
      paths: ["/a", "=/b", "~^/c", { type: "exact", value: "/d" }],
      listener_ids: ["https", "https"],
    });
    expect(route.service_id).toBe(service.id);
    expect(route.paths).toEqual([
      { type: "prefix", value: "/a" },
      { type: "exact", value: "/b" },
      { type: "regex", value: "^/c" },
      { type: "exact", value: "/d" },
    ]);
    expect(route.listener_ids).toHaveLength(1);
  });

  const refused = [
    {
      why: "a listener that does not exist",
      body: { listener_ids: ["x"] },
      error: 'listener_ids[0]: listener "x" does not exist',
    },
    {
      why: "a path that is none",
      body: { paths: ["/ok", "no"] },
      error: 'paths[1].value: must start with "/"',
    },
    {
      why: "a host with a port",
      body: { hosts: ["a.example:80"] },
      error: "hosts[0]: must be a host name without a port",
    },
    {
      why: "a network that is none",
      body: { client_cidrs: ["1.2.3.4/33"] },
      error: "client_cidrs[0]: must be an IP address",
    },
    {
      why: "an expression that can run for ever",
      body: { headers: [{ name: "x", op: "regex", value: "^(a|a)*$" }] },
      error: "headers[0].value:",
    },
  ];
  test.each(refused)("reject $why", async ({ body, error }) => {
    const answer = await api.call("POST /routes", { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toStartWith(error);
  });

  test("that another one always shadows are accepted with a warning, also in the status", async () => {
    await api.create("/routes", { name: "wide", hosts: ["hidden.example"] });
    const { status, headers } = await api.call("POST /routes", {
      body: { name: "hidden", hosts: ["hidden.example"] },
    });
    const warning =
      'route "hidden" matches no request: route "wide" has the same hosts and paths and is tried first';
    expect(status).toBe(200);
    expect(headers.get("x-warning")).toBe(warning);
    expect((await api.call("GET /admin/status")).body.warnings).toContain(warning);
    await api.call("DELETE /routes/wide");
    expect((await api.call("GET /admin/status")).body.warnings).not.toContain(warning);
  });
});

describe("settings", () => {
  test("are read, replaced and patched", async () => {
    const patched = await api.call("PATCH /settings", {
      body: { trusted_proxies: ["10.0.0.0/8"], limits: { max_header_fields: 50 } },
    });
    expect(patched.status).toBe(200);
    expect(patched.body).toMatchObject({
      trusted_proxies: ["10.0.0.0/8"],
      limits: { max_header_fields: 50, max_target_bytes: 8192 },
    });
    const { body } = await api.call("GET /settings");
    expect(body).toEqual(patched.body);
    const replaced = await api.call("PUT /settings", { body: { updated_at: "ignored" } });
    expect(replaced.body).toMatchObject({
      trusted_proxies: [],
      limits: { max_header_fields: 100 },
    });
    expect(replaced.body.updated_at > body.updated_at).toBe(true);
  });

  test("reject errors and respect conditions", async () => {
    const wrong = await api.call("PATCH /settings", { body: { admin_allowed_cidrs: ["x"] } });
    expect(wrong.body.error).toStartWith("admin_allowed_cidrs[0]: must be an IP address");
    const late = await api.call("PUT /settings", { body: {}, headers: { "if-match": '"x"' } });
    expect(late.status).toBe(412);
    const dry = await api.call("PATCH /settings?dry_run=1", { body: { debug_headers: true } });
    expect(dry.body.debug_headers).toBe(true);
    expect((await api.call("GET /settings")).body.debug_headers).toBe(false);
  });
});

describe("concurrent changes", () => {
  test("ten creations of one name: exactly one gets 200, the others 409", async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api.call("POST /services", { body: { name: "race" } })),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 409)]);
  });

  test("ten changes with one If-Match: exactly one gets 200, the others 412", async () => {
    await api.create("/services", { name: "race-patch" });
    const etag = (await api.call("GET /services/race-patch")).headers.get("etag") ?? "";
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        api.call("PATCH /services/race-patch", {
          body: { description: String(index) },
          headers: { "if-match": etag },
        }),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 412)]);
  });
});

// GET /api/v1/audit against the running product: entries, filters, and invalid queries.
import { describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { eventually } from "../../support/poll.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

async function audit(query = "") {
  const answer = await api.call(`GET /audit${query}`);
  expect(answer.status).toBe(200);
  return answer;
}

describe("the audit log", () => {
  test("has one entry for each object that a change touched, oldest first", async () => {
    const service = await api.create("/services", {
      name: "web",
      targets: [{ host: "10.0.0.1", port: 80 }],
    });
    await api.call("PATCH /services/web", { body: { path: "/x" } });
    await api.call("DELETE /services/web");
    const { body } = await audit("?actor=anonymous");
    const lines = body.map(
      // biome-ignore lint/suspicious/noExplicitAny: entries of every kind
      (entry: any) =>
        `${entry.revision} ${entry.action} ${entry.kind} ${entry.object_name} ${entry.result}`,
    );
    expect(lines).toEqual([
      "2 create service web ok",
      "2 create target 10.0.0.1:80 ok",
      "3 update service web ok",
      "4 delete service web ok",
      "4 delete target 10.0.0.1:80 ok",
    ]);
    expect(body[0]).toEqual({
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      actor: "anonymous",
      method: "disabled",
      address: "127.0.0.1",
      action: "create",
      kind: "service",
      object_id: service.id,
      object_name: "web",
      result: "ok",
      revision: 2,
      detail: { before: null, after: expect.objectContaining({ name: "web", path: "" }) },
    });
    expect(body[2].detail).toEqual({
      before: { path: "" },
      after: { path: "/x" },
      diff: [{ path: "path", before: "", after: "/x" }],
    });
    expect(body[3].detail).toMatchObject({ before: { name: "web" }, after: null });
  });

  test("is JSON with an ETag that changes with the next entry", async () => {
    const first = await audit();
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(first.headers.get("etag")).toMatch(/^"[\w-]{22}"$/);
    expect((await audit()).headers.get("etag")).toBe(first.headers.get("etag"));
    await api.create("/services", { name: "version" });
    expect((await audit()).headers.get("etag")).not.toBe(first.headers.get("etag"));
    expect((await audit("?actor=nobody")).body).toEqual([]);
  });

  test("omits dry runs, reads, and paths that do not exist", async () => {
    const before = (await audit()).body.length;
    await api.call("POST /services?dry_run=1", { body: { name: "dry" } });
    await api.call("POST /services?dry_run=1", { body: { nope: 1 } });
    await api.call("GET /services/nope");
    await api.call("POST /nope", { body: {} });
    await api.call("DELETE /services");
    expect((await audit()).body.length).toBe(before);
  });

  const refused = [
    {
      why: "an invalid body",
      line: "POST /services",
      body: { name: "" },
      entry: { action: "create", kind: "service", object_name: null },
      detail: { method: "POST", path: "/api/v1/services", status: 400 },
    },
    {
      why: "a name that is taken",
      line: "PUT /services/taken",
      body: { name: "version" },
      entry: { action: "update", kind: "service", object_name: "taken" },
      detail: { status: 404 },
    },
    {
      why: "an id that does not exist",
      line: "DELETE /routes/01890000-0000-7000-8000-000000000000",
      entry: {
        action: "delete",
        kind: "route",
        object_id: "01890000-0000-7000-8000-000000000000",
        object_name: null,
      },
      detail: { status: 404, error: expect.stringContaining("does not exist") },
    },
    {
      why: "settings that are wrong",
      line: "PATCH /settings",
      body: { retention: { audit_days: 0 } },
      entry: { action: "update", kind: "settings" },
      detail: { status: 400 },
    },
    {
      why: "a target of a service that does not exist",
      line: "POST /services/none/targets",
      body: {},
      entry: { action: "create", kind: "target" },
      detail: { status: 404 },
    },
  ];
  test.each(refused)("records a change refused for $why", async ({ line, body, entry, detail }) => {
    expect((await api.call(line, { body })).status).toBe(detail.status);
    const { body: entries } = await audit("?result=refused");
    expect(entries.at(-1)).toMatchObject({
      ...entry,
      detail,
      actor: "anonymous",
      revision: null,
      result: "refused",
    });
  });

  test("records a rejected cross-site request", async () => {
    const answer = await api.call("POST /services", {
      body: { name: "evil" },
      headers: { origin: "https://evil.example" },
    });
    expect(answer.status).toBe(403);
    const { body } = await audit("?result=refused");
    expect(body.at(-1)).toMatchObject({ method: "none", detail: { status: 403 } });
  });

  test("cannot be changed, not even in the database", async () => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE"])
      expect((await api.call(`${method} /audit`, { body: {} })).status).toBe(405);
    using database = new Database(join(api.gateway.dataDir, "sluice.db"));
    expect(() => database.run("UPDATE audit SET result = 'ok'")).toThrow("never changed");
  });
});

describe("a query", () => {
  const wrong = [
    { query: "?since=yesterday", error: "since: must be a time such as" },
    { query: "?since=", error: "since: must be" },
    { query: "?until=2026-13-01", error: "until: must be" },
    { query: "?until=2026-02-30", error: "until: must be" },
    { query: "?since=1700000000", error: "since: must be" },
    { query: "?since=2026-01-01T00:00:00", error: "since: must be" },
    { query: "?actor=", error: "actor: must have 1 to 320 characters" },
    { query: `?q=${"x".repeat(321)}`, error: "q: must have" },
    { query: "?newest=0", error: "newest: must be a number from 1 to 1000" },
    { query: "?newest=1001", error: "newest: must be" },
    { query: "?newest=10&before=x", error: "before: must be" },
    { query: "?before=5", error: "before: is only valid with newest" },
    { query: "?limit=5", error: 'unknown query parameter "limit"' },
  ];
  test.each(wrong)("$query is 400", async ({ query, error }) => {
    const answer = await api.call(`GET /audit${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toStartWith(error);
  });

  const times = ["2020-01-01", "2020-01-01T00:00Z", "2020-01-01T02:00:00%2B02:00"];
  test.each([...times, "2020-01-01T02:00:00+02:00", "2020-01-01t00:00:00.123456z"])(
    "since %s is accepted",
    async (time) => {
      const all = (await audit()).body;
      expect(all.length).toBeGreaterThan(5);
      expect((await audit(`?since=${time}`)).body.length).toBe(all.length);
      expect((await audit(`?until=${time}`)).body).toEqual([]);
    },
  );

  test("for a time span excludes its end", async () => {
    const { body } = await audit();
    const { at } = body[3];
    const span = (await audit(`?since=${at}&until=${body[5].at}`)).body;
    expect(span.length).toBeGreaterThan(0);
    for (const entry of span) expect(entry.at >= at && entry.at < body[5].at).toBe(true);
  });
});

test("pages from the newest to the oldest hold what the whole list does", async () => {
  for (const name of ["page-a", "page-b", "page-c"]) await api.create("/services", { name });
  const query = "?kind=service&result=ok";
  const whole = (await audit(query)).body.toReversed();
  const paged: unknown[] = [];
  for (let before: string | null = ""; before !== null;) {
    const cursor: string = before === "" ? "" : `&before=${before}`;
    const page = await audit(`${query}&newest=2${cursor}`);
    expect(page.body.length).toBeLessThanOrEqual(2);
    paged.push(...page.body);
    before = page.headers.get("x-next");
  }
  expect(paged).toEqual(whole);
  expect((await audit(`${query}&newest=1000`)).headers.get("x-next")).toBeNull();
});

test("a flood of anonymous requests cannot fill the log", async () => {
  const before = (await audit()).body.length;
  const post =
    "POST /api/v1/services HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n" +
    "Content-Length: 0\r\nConnection: close\r\n\r\n";
  for (let round = 0; round < 20; round++)
    await Promise.all(Array.from({ length: 50 }, () => sendRaw(post, { port: api.port })));
  expect((await audit()).body.length - before).toBeLessThanOrEqual(20);
});

test("suppressed entries are counted when the gateway stops", async () => {
  await eventually(async () => (await api.call("POST /services", { body: {} })).status === 400);
  await api.gateway.restart();
  const { body } = await audit("?result=refused");
  expect(body.at(-1).detail.repeated).toBeGreaterThan(500);
});

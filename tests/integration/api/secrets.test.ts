// Secrets over the API: write-only, referred to by name, protected while in use.
import { describe, expect, test } from "bun:test";
import { useGateway } from "./client.ts";

const api = useGateway();

const sso = (client_secret: unknown) => ({
  body: { issuer: "https://id.example.org", client_id: "sluice", client_secret },
});

describe("a secret", () => {
  test("is shown with everything but its value, by id and by name", async () => {
    const body = { name: "shown", value: "v-shown-value", tags: ["a"], description: "what for" };
    const created = await api.call("POST /secrets", { body });
    expect(created.status).toBe(200);
    const { id, created_at, updated_at } = created.body;
    const { value, ...rest } = body;
    expect(created.body).toEqual({ id, ...rest, created_at, updated_at });
    for (const line of ["GET /secrets/shown", `GET /secrets/${id}`])
      expect((await api.call(line)).body).toEqual(created.body);
    const list = await api.call("GET /secrets?tag=a");
    expect(list.body).toEqual([created.body]);
    expect(JSON.stringify([list.body, created.headers.toJSON()])).not.toContain(value);
  });

  test("needs a value on creation, and keeps it when replaced or changed without one", async () => {
    const refused = await api.call("POST /secrets", { body: { name: "kept" } });
    expect([refused.status, refused.body.error]).toEqual([400, "value: is required"]);
    const created = await api.call("POST /secrets", { body: { name: "kept", value: "one" } });
    const tag = created.headers.get("etag") ?? "";
    const replaced = await api.call("PUT /secrets/kept", { body: { name: "kept", tags: ["new"] } });
    expect([replaced.status, replaced.body.tags]).toEqual([200, ["new"]]);
    const patched = await api.call("PATCH /secrets/kept", { body: { tags: null, value: null } });
    expect(patched.body).toEqual({ ...created.body, updated_at: patched.body.updated_at });
    expect(patched.headers.get("etag")).not.toBe(tag);
  });

  test("written again changes nothing; another value makes a new version", async () => {
    const created = await api.call("POST /secrets", { body: { name: "same", value: "one" } });
    const revision = created.headers.get("x-config-revision");
    const same = await api.call("PUT /secrets/same", { body: { name: "same", value: "one" } });
    expect(same.headers.get("x-config-revision")).toBe(revision);
    const other = await api.call("PATCH /secrets/same", { body: { value: "two" } });
    expect(Number(other.headers.get("x-config-revision"))).toBe(Number(revision) + 1);
    expect(other.headers.get("etag")).not.toBe(created.headers.get("etag"));
    const late = { "if-match": created.headers.get("etag") ?? "" };
    const refused = await api.call("DELETE /secrets/same", { headers: late });
    expect(refused.status).toBe(412);
  });

  test.each([
    ["without a value", { name: "x", value: "" }, "value: must not be empty"],
    ["with a number", { name: "x", value: 5 }, "value: must be a string"],
    [
      "with too long a value",
      { name: "x", value: "x".repeat(65_537) },
      "value: must have at most 65536 characters",
    ],
    [
      "sealed already",
      { name: "x", value: "y", sealed_value: "z" },
      "sealed_value: is not a known field",
    ],
    ["with a slash in its name", { name: "a/b", value: "y" }, "name: must start and end with"],
    [
      "called like an id",
      { name: crypto.randomUUID(), value: "y" },
      "name: must not look like an id",
    ],
    ["without a name", { value: "y" }, "name: is required"],
  ])("is rejected %s", async (_, body, message) => {
    const { status, body: answer } = await api.call("POST /secrets", { body });
    expect(status).toBe(400);
    expect(answer.error).toStartWith(message);
  });

  test("has a unique name", async () => {
    await api.create("/secrets", { name: "taken", value: "1" });
    const twice = await api.call("POST /secrets", { body: { name: "taken", value: "2" } });
    expect([twice.status, twice.body.error]).toEqual([409, 'name: secret "taken" exists already']);
  });

  test("in a dry run is checked and not stored", async () => {
    const body = { name: "trial", value: "1" };
    expect((await api.call("POST /secrets?dry_run=1", { body })).status).toBe(200);
    expect((await api.call("GET /secrets/trial")).status).toBe(404);
  });
});

describe("a secret that single sign-on refers to", () => {
  test("can be replaced, but neither renamed nor deleted", async () => {
    await api.create("/secrets", { name: "used", value: "1" });
    expect((await api.call("PUT /sso", sso({ $secret: "used" }))).status).toBe(200);

    const renamed = await api.call("PATCH /secrets/used", { body: { name: "other" } });
    expect(renamed.status).toBe(409);
    expect(renamed.body.error).toStartWith('name: secret "used" is used by single sign-on');
    for (const query of ["", "?cascade=1"]) {
      const deleted = await api.call(`DELETE /secrets/used${query}`);
      expect(deleted.status).toBe(409);
      expect(deleted.body.error).toBe('secret "used" is used by single sign-on');
    }
    expect((await api.call("PATCH /secrets/used", { body: { value: "2" } })).status).toBe(200);

    expect((await api.call("PUT /sso", sso("in place"))).status).toBe(200);
    expect((await api.call("PATCH /secrets/used", { body: { name: "free" } })).status).toBe(200);
    expect((await api.call("DELETE /secrets/free")).body).toEqual({ deleted: true });
  });

  test("must exist", async () => {
    const { status, body } = await api.call("PUT /sso", sso({ $secret: "nowhere" }));
    expect([status, body.error]).toEqual([400, 'client_secret: there is no secret "nowhere"']);
  });
});

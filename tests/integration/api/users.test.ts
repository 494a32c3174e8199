// Users over the API: every method, rejected input, and no hash or password in any response.
import { describe, expect, test } from "bun:test";
import { startGateway } from "../../support/gateway.ts";
import { PASSWORD, ROOT, usePeople } from "./people.ts";

const people = usePeople();
const { root } = people;
const OTHER = "another horse battery";

describe("the first user", () => {
  test("must be an admin who can sign in; from then on credentials are needed", async () => {
    const gateway = await startGateway({ workers: 1 });
    try {
      const post = async (fields: object) => {
        const response = await gateway.api("POST", "/api/v1/users", { ...ROOT, ...fields });
        return { status: response.status, body: await response.json() };
      };
      const first = (error: string) => ({ status: 400, body: { error } });
      expect(await post({ role: "viewer" })).toEqual(
        first("role: must be admin for the first user"),
      );
      expect(await post({ role: "editor" })).toEqual(
        first("role: must be admin for the first user"),
      );
      expect(await post({ password: undefined })).toEqual(
        first("password: is required for the first user"),
      );
      expect((await post({ enabled: false })).status).toBe(400);
      expect((await gateway.api("GET", "/api/v1/services")).status).toBe(200);
      const { status, body } = await post({});
      expect(status).toBe(200);
      expect(body).toEqual({
        id: expect.any(String),
        email: ROOT.email,
        name: "Root",
        role: "admin",
        enabled: true,
        tags: [],
        description: "",
        created_at: expect.any(String),
        updated_at: body.created_at,
        has_password: true,
        totp_enabled: false,
        sso_linked: false,
      });
      expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
      expect((await post({ email: "b@a.example" })).status).toBe(401);
    } finally {
      await gateway.stop();
    }
  });
});

describe("POST /users", () => {
  const valid = { email: "new@a.example", name: "New", role: "viewer", password: PASSWORD };
  const cases = [
    { why: "no e-mail address", fields: { email: undefined }, error: "email: is required" },
    { why: "what is no e-mail address", fields: { email: "x" }, error: "email: must be an e-mail" },
    { why: "no role", fields: { role: undefined }, error: "role: is required" },
    { why: "an unknown role", fields: { role: "owner" }, error: "role: must be one of" },
    { why: "no name", fields: { name: "" }, error: "name: must not be empty" },
    { why: "null as a password", fields: { password: null }, error: "password: must be a string" },
    {
      why: "a short password",
      fields: { password: "kx7!pQ2zv" },
      error: "password: must have at least 10 characters",
    },
    {
      why: "a long password",
      fields: { password: "kx7!p".repeat(205) },
      error: "password: must have at most 1024 characters",
    },
    {
      why: "a common password",
      fields: { password: "Password123!" },
      error: "password: is too common",
    },
    {
      why: "the e-mail address as the password",
      fields: { password: "NEW@a.example" },
      error: "password: must not be the e-mail address",
    },
    {
      why: "a hash",
      fields: { password_hash: "$argon2id$v=19$x" },
      error: "password_hash: is not a known field",
    },
    { why: "a link to SSO", fields: { sso: { issuer: "a", subject: "b" } }, error: "sso: is not" },
    { why: "a read-only field", fields: { totp_enabled: true }, error: "totp_enabled: is set by" },
    { why: "an id", fields: { id: Bun.randomUUIDv7() }, error: "id: is set by the gateway" },
  ];
  test.each(cases)("rejects $why", async ({ fields, error }) => {
    const { status, body } = await root("POST /users", { ...valid, ...fields });
    expect(status).toBe(400);
    expect(body).toEqual({ error: expect.stringContaining(error) });
    const given = (fields as { password?: unknown }).password;
    if (typeof given === "string") expect(body.error).not.toContain(given);
  });

  test("rejects an e-mail address in use, in any case", async () => {
    const { status, body } = await root("POST /users", { ...valid, email: "ROOT@A.example" });
    expect(status).toBe(409);
    expect(body).toEqual({ error: "email: belongs to another user already" });
  });

  test("accepts a user without a password, who cannot sign in with one", async () => {
    const user = await people.create("federated", "viewer", { password: undefined });
    expect(user.has_password).toBe(false);
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(401);
  });

  test("with dry_run changes nothing", async () => {
    const dry = await root("POST /users?dry_run=1", { ...valid, email: "dry@a.example" });
    expect(dry.status).toBe(200);
    expect(dry.body.has_password).toBe(true);
    expect((await root("GET /users/dry@a.example")).status).toBe(404);
  });
});

describe("/users/:id", () => {
  test("accepts the id or the e-mail address, and never the display name", async () => {
    const user = await people.create("keys");
    for (const key of [user.id, user.id.toUpperCase(), "keys@a.example", "KEYS%40A.example"])
      expect((await root(`GET /users/${key}`)).body).toEqual(user);
    expect((await root("GET /users/keys")).status).toBe(404);
    expect((await root("DELETE /users/keys")).status).toBe(404);
    await people.create("other", "viewer", { name: "keys@a.example" });
    expect((await root("GET /users/keys@a.example")).body.id).toBe(user.id);
  });

  test("PUT replaces; without a password the old one stays", async () => {
    const user = await people.create("put", "editor", { tags: ["a"], description: "text" });
    const body = { email: "put@a.example", name: "Put", role: "viewer" };
    const put = await root(`PUT /users/${user.id}`, body);
    expect(put.body).toMatchObject({ ...body, tags: [], description: "", has_password: true });
    expect(put.body.created_at).toBe(user.created_at);
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(200);
    await root(`PUT /users/${user.id}`, { ...body, password: OTHER });
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(401);
    expect(await people.signInStatus(user.email, OTHER)).toBe(200);
  });

  test("PUT with what was read changes nothing", async () => {
    const user = await people.create("echo");
    const before = await root("GET /users/echo@a.example");
    const { body, headers } = await root(`PUT /users/${user.id}`, user);
    expect(body).toEqual(user);
    expect(headers.get("etag")).toBe(before.headers.get("etag"));
    const pretended = { ...user, has_password: false, totp_enabled: true, sso_linked: true };
    expect((await root(`PUT /users/${user.id}`, pretended)).body).toEqual(user);
  });

  test("PUT on a free id creates the user", async () => {
    const id = Bun.randomUUIDv7();
    const body = { email: "made@a.example", name: "M", role: "viewer", password: PASSWORD };
    const made = await root(`PUT /users/${id}`, body);
    expect(made).toMatchObject({ status: 200, body: { id, has_password: true } });
    expect(await people.signInStatus(body.email, PASSWORD)).toBe(200);
  });

  test("PATCH changes what it names, a password among it", async () => {
    const user = await people.create("patch");
    const patched = await root(`PATCH /users/${user.email}`, { name: "Patched" });
    expect(patched.body).toMatchObject({ name: "Patched", role: "viewer", has_password: true });
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(200);
    expect((await root(`PATCH /users/${user.id}`, { password: OTHER })).status).toBe(200);
    expect(await people.signInStatus(user.email, OTHER)).toBe(200);
  });

  test.each([
    { body: { password: null }, error: "password: must be a string" },
    { body: { password: "short" }, error: "password: must have at least 10 characters" },
    { body: { password: "refused@a.example" }, error: "password: must not be the e-mail address" },
    { body: { password_hash: null }, error: "password_hash: is not a known field" },
    { body: { password_hash: "x" }, error: "password_hash: is not a known field" },
    { body: { sso: {} }, error: "sso: is not a known field" },
    { body: { email: "root@A.EXAMPLE" }, error: "email: belongs to another user already" },
  ])("PATCH rejects %j", async ({ body, error }) => {
    if ((await root("GET /users/refused@a.example")).status === 404) await people.create("refused");
    const answer = await root("PATCH /users/refused@a.example", body);
    expect(answer.status).toBe("email" in body ? 409 : 400);
    expect(answer.body.error).toContain(error);
    expect(await people.signInStatus("refused@a.example", PASSWORD)).toBe(200);
  });

  test("DELETE deletes, and the user can no longer sign in", async () => {
    const user = await people.create("gone");
    const gone = await root(`DELETE /users/${user.email}`);
    expect(gone).toMatchObject({ status: 200, body: { deleted: true } });
    expect((await root(`GET /users/${user.id}`)).status).toBe(404);
    expect(await people.signInStatus(user.email, PASSWORD)).toBe(401);
    await people.create("gone");
  });

  test("lists are found by a part of the address, oldest first", async () => {
    await people.create("list-1");
    await people.create("list-2");
    const { body } = await root("GET /users?q=LIST-");
    expect(body.map(({ email }: { email: string }) => email)).toEqual([
      "list-1@a.example",
      "list-2@a.example",
    ]);
    expect((await root("GET /users")).body[0].email).toBe(ROOT.email);
  });
});

test("viewers, editors and anonymous callers neither see nor change users", async () => {
  const user = await people.create("seen");
  const lines = ["GET /users", `GET /users/${user.id}`, `DELETE /users/${user.id}`];
  const writes = [
    { line: "POST /users", body: { ...ROOT, email: "x@a.example" } },
    { line: `PUT /users/${user.id}`, body: { ...ROOT, email: user.email } },
    { line: `PATCH /users/${user.id}`, body: { role: "admin" } },
  ];
  for (const role of ["viewer", "editor"]) {
    const { email, id } = await people.create(`as-${role}`, role);
    const call = await people.signIn(email);
    for (const line of lines) expect((await call(line)).status).toBe(403);
    for (const { line, body } of writes) expect((await call(line, body)).status).toBe(403);
    expect((await call(`PATCH /users/${id}`, { role: "admin" })).status).toBe(403);
    expect((await call(`GET /users/${id}`)).status).toBe(403);
  }
  for (const line of lines) expect((await people.nobody(line)).status).toBe(401);
  for (const { line, body } of writes) expect((await people.nobody(line, body)).status).toBe(401);
  expect((await root(`GET /users/${user.id}`)).body).toEqual(user);
});

describe("an address equal to another only by Unicode rules", () => {
  const KELVIN = encodeURIComponent("\u212aate@a.example");

  test("is that of another user: in sign-in, lookup and creation", async () => {
    const kate = await people.create("kate", "admin");
    for (const email of ["kate@a.example", "KATE@A.EXAMPLE", " Kate@a.example "])
      expect(await people.signInStatus(email, PASSWORD)).toBe(200);
    expect(await people.signInStatus("\u212aate@a.example", PASSWORD)).toBe(401);
    expect((await root(`GET /users/${KELVIN}`)).status).toBe(404);
    expect((await root("GET /users/KATE@a.example")).body.id).toBe(kate.id);
    expect((await root(`GET /auth/sessions?user_id=${KELVIN}`)).body).toEqual([]);
    expect((await root("GET /auth/sessions?user_id=KATE@a.example")).body).toHaveLength(3);

    const other = { email: "\u212aate@a.example", name: "Other", role: "viewer", password: OTHER };
    const made = await root("POST /users", other);
    expect([made.status, made.body.email]).toEqual([200, other.email]);
    expect(await people.signInStatus(other.email, OTHER)).toBe(200);
    expect(await people.signInStatus("kate@a.example", OTHER)).toBe(401);
    const twice = await root("POST /users", { ...other, email: "\u212aATE@a.example" });
    expect(twice.status).toBe(409);
    expect((await root(`GET /users/${KELVIN}`)).body.id).toBe(made.body.id);
    expect((await root(`DELETE /users/${KELVIN}`)).status).toBe(200);
    expect((await root("GET /users/kate@a.example")).body.id).toBe(kate.id);
  });

  test("is that of another user in an import", async () => {
    const kay = await people.create("kay", "admin");
    const document = {
      format: 1,
      users: [{ email: "\u212aay@a.example", name: "Import", role: "viewer" }],
    };
    const { status, body } = await root("POST /import?mode=merge&dry_run=1", document);
    expect([status, body.changes]).toEqual([
      200,
      [expect.objectContaining({ action: "create", kind: "user" })],
    ]);
    const same = { format: 1, users: [{ ...document.users[0], email: "KAY@a.example" }] };
    const found = await root("POST /import?mode=merge&dry_run=1", same);
    expect(found.body.changes).toEqual([
      expect.objectContaining({ action: "update", kind: "user", id: kay.id }),
    ]);
  });
});

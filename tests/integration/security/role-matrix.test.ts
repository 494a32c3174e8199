// Every operation of the description with every kind of caller: the table alone decides who is allowed.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { accessTable } from "../../../src/api/access.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";

const PASSWORD = "correct horse battery";
const roles = ["viewer", "editor", "admin"] as const;
type Role = (typeof roles)[number];

interface Operation {
  readonly method: string;
  /** As in the table: `/api/v1/services/:id`. */
  readonly path: string;
  readonly needed: Role | "open";
  readonly takesBody: boolean;
}

/** How a caller proves who it is, and as what it is to be recognised. */
interface Caller {
  readonly name: string;
  readonly role: Role | null;
  readonly headers: Record<string, string>;
}

let gateway: Gateway;
let operations: Operation[] = [];
/** The responses to every caller while there were no users. */
const whileDisabled: { line: string; status: number; error: string }[] = [];
const callers: Caller[] = [];

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  operations = await readOperations();
  for (const operation of operations) whileDisabled.push(await ask(operation, {}));
  callers.push(...(await makeCallers()));
});
afterAll(() => gateway?.stop());

async function readOperations(): Promise<Operation[]> {
  const text = await (await gateway.api("GET", "/openapi.yaml")).text();
  const { paths } = Bun.YAML.parse(text) as {
    paths: Record<string, Record<string, { "x-required-role"?: Role; requestBody?: object }>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/\{(\w+)\}/g, ":$1"),
      needed: operation["x-required-role"] ?? ("open" as const),
      takesBody: operation.requestBody !== undefined,
    })),
  );
}

/** Calls an operation so that an allowed caller changes nothing: nothing has this id, and no parameter has this name. */
async function ask({ method, path, takesBody }: Operation, headers: Record<string, string>) {
  const target = path.replaceAll(/:\w+/g, "00000000-0000-7000-8000-000000000000");
  const query =
    method === "GET" && !/\/(?:events|stream)$/.test(path) ? "" : "?no_such_parameter=1";
  const response = await fetch(`${gateway.admin}${target}${query}`, {
    method,
    redirect: "manual",
    headers: { ...headers, ...(takesBody ? { "content-type": "application/json" } : {}) },
    ...(takesBody ? { body: "{}" } : {}),
  });
  const text = await response.text();
  const { error = "" } = response.status < 400 ? {} : (JSON.parse(text) as { error?: string });
  return { line: `${method} ${path}`, status: response.status, error };
}

/** Whether the guard has let the call pass; what the endpoint then says of it is another matter. */
function isLetIn({ status, error }: { status: number; error: string }): boolean {
  return status !== 401 && !(status === 403 && /^the role \w+ is required$/.test(error));
}

async function makeCallers(): Promise<Caller[]> {
  const made: Caller[] = [];
  const root = { email: "root@a.example", name: "Root", role: "admin", password: PASSWORD };
  await gateway.ok("POST", "/api/v1/users", root);
  const asRoot = { cookie: await signIn(root.email) };
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await gateway.api(method, `/api/v1${path}`, body, asRoot);
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    return (await response.json()) as { id: string; token: string };
  };
  for (const role of roles) {
    const email = `${role}@a.example`;
    await call("POST", "/users", { email, name: role, role, password: PASSWORD });
    made.push({ name: `${role}, session`, role, headers: { cookie: await signIn(email) } });
    const { token } = await call("POST", "/tokens", { name: role, role });
    made.push(
      { name: `${role}, bearer token`, role, headers: { authorization: `Bearer ${token}` } },
      { name: `${role}, X-Admin-Token`, role, headers: { "x-admin-token": token } },
    );
  }
  const { token: old } = await call("POST", "/admin/token");
  const { token: adminToken } = await call("POST", "/admin/token");
  made.push(
    ...bothWays("the admin token", "admin", adminToken),
    ...bothWays("the admin token before it was rotated", null, old),
    ...bothWays("a token that never was", null, `slt_${"A".repeat(43)}`),
    { name: "nobody", role: null, headers: {} },
    { name: "a wrong cookie", role: null, headers: { cookie: `sluice_session=${"A".repeat(43)}` } },
  );
  const bad = [
    { name: "expired", expires_at: "2020-01-01T00:00:00Z" },
    { name: "disabled", enabled: false },
    { name: "elsewhere", allowed_cidrs: ["192.0.2.0/24"] },
  ];
  for (const fields of bad) {
    const { token } = await call("POST", "/tokens", { role: "admin", ...fields });
    made.push(...bothWays(`a token that is ${fields.name}`, null, token));
  }
  const [one, two] = [await signIn("admin@a.example"), await signIn("viewer@a.example")];
  made.push({ name: "sessions of two users", role: null, headers: { cookie: `${one}; ${two}` } });
  const deleted = await call("POST", "/tokens", { name: "deleted", role: "admin" });
  await call("DELETE", `/tokens/${deleted.id}`);
  made.push(...bothWays("a token that was deleted", null, deleted.token));
  return [...made, ...(await makeFormerUsers(call)), ...contradictions(made, adminToken)];
}

type CallAsRoot = (method: string, path: string, body?: unknown) => Promise<{ id: string }>;

/** Sessions that were good until their users were not. */
async function makeFormerUsers(call: CallAsRoot): Promise<Caller[]> {
  const ends = {
    deleted: (id: string) => call("DELETE", `/users/${id}`),
    disabled: (id: string) => call("PATCH", `/users/${id}`, { enabled: false }),
    demoted: (id: string) => call("PATCH", `/users/${id}`, { role: "editor" }),
    "given another password": (id: string) =>
      call("PUT", `/users/${id}/password`, { password: "another horse battery" }),
  };
  const made: Caller[] = [];
  for (const [name, end] of Object.entries(ends)) {
    const email = `${name.replaceAll(" ", "-")}@a.example`;
    const user = { email, name, role: "admin", password: PASSWORD };
    const { id } = await call("POST", "/users", user);
    const cookie = await signIn(email);
    await end(id);
    made.push({ name: `a session of somebody ${name}`, role: null, headers: { cookie } });
  }
  return made;
}

function contradictions(made: readonly Caller[], adminToken: string): Caller[] {
  const cookie = made.find(({ name }) => name === "admin, session")?.headers["cookie"] ?? "";
  const good = `Bearer ${adminToken}`;
  const wrong = `slt_${"B".repeat(43)}`;
  return [
    { name: "a wrong bearer token beside a right cookie", headers: { authorization: "Bearer x" } },
    { name: "another scheme beside a right cookie", headers: { authorization: "Basic eDp5" } },
    { name: "an empty header beside a right cookie", headers: { "x-admin-token": " " } },
    { name: "two headers that differ", headers: { authorization: good, "x-admin-token": wrong } },
    { name: "two tokens in one header", headers: { authorization: `${good}, ${good}` } },
  ].map(({ name, headers }) => ({ name, role: null, headers: { cookie, ...headers } as never }));
}

const bothWays = (name: string, role: Role | null, token: string): Caller[] => [
  { name: `${name}, as bearer`, role, headers: { authorization: `Bearer ${token}` } },
  { name: `${name}, in X-Admin-Token`, role, headers: { "x-admin-token": token } },
];

async function signIn(email: string): Promise<string> {
  const body = { email, password: PASSWORD };
  const response = await gateway.api("POST", "/api/v1/auth/login", body);
  if (response.status !== 200) throw new Error(`${email}: ${response.status}`);
  return response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

/** What the table lets a caller of this role do. */
const mayDo = ({ needed }: Operation, role: Role | null) =>
  needed === "open" || (role !== null && roles.indexOf(role) >= roles.indexOf(needed));

describe("the description", () => {
  test("names the role of every row of the table that is not hidden", () => {
    const described = operations.map(({ method, path, needed }) => `${method} ${path} ${needed}`);
    const hidden = [
      ...["/", "/docs", "/docs/json", "/docs/scalar.js", "/assets/:name"],
      ...["/ui", "/ui/*"],
    ];
    const rows = accessTable
      .filter(({ path }) => !hidden.includes(path))
      .flatMap(({ path, methods }) =>
        Object.entries(methods).map(([method, role]) => `${method} ${path} ${role}`),
      );
    expect(described.toSorted()).toEqual(rows.toSorted());
  });
});

describe("while there are no users", () => {
  test("all requests are allowed", () => {
    expect(whileDisabled.length).toBeGreaterThan(50);
    expect(whileDisabled.filter((answer) => !isLetIn(answer))).toEqual([]);
  });
});

describe("from the first user on", () => {
  const names = [
    ...roles.flatMap((role) =>
      ["session", "bearer token", "X-Admin-Token"].map((way) => `${role}, ${way}`),
    ),
    ...["the admin token", "the admin token before it was rotated", "a token that never was"]
      .concat(["expired", "disabled", "elsewhere"].map((word) => `a token that is ${word}`))
      .concat("a token that was deleted")
      .flatMap((name) => [`${name}, as bearer`, `${name}, in X-Admin-Token`]),
    ...["nobody", "a wrong cookie"],
    ...["deleted", "disabled", "demoted", "given another password"].map(
      (word) => `a session of somebody ${word}`,
    ),
    ...["a wrong bearer token beside a right cookie", "another scheme beside a right cookie"],
    ...["an empty header beside a right cookie", "two headers that differ"],
    ...["two tokens in one header", "sessions of two users"],
  ];

  test("all of these are tested", () => {
    expect(callers.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  });

  test.each(names)("%s", async (name) => {
    const caller = callers.find((one) => one.name === name)!;
    const wrong: object[] = [];
    for (const operation of operations) {
      const answer = await ask(operation, caller.headers);
      const isAllowed = mayDo(operation, caller.role);
      if (isLetIn(answer) !== isAllowed) wrong.push({ ...answer, isAllowed });
      // An unauthenticated caller gets 401; an authenticated one learns what is missing.
      if (!isAllowed) expect([answer.line, answer.status]).toEqual([answer.line, expected(caller)]);
    }
    expect(wrong).toEqual([]);
  });

  const expected = ({ role }: Caller) => (role === null ? 401 : 403);

  test("HEAD needs the role of GET", async () => {
    for (const operation of operations.filter(({ method }) => method === "GET")) {
      const target = operation.path.replaceAll(/:\w+/g, "x");
      const { status } = await fetch(`${gateway.admin}${target}`, {
        method: "HEAD",
        redirect: "manual",
      });
      expect([operation.path, status === 401]).toEqual([
        operation.path,
        operation.needed !== "open",
      ]);
    }
  });
});

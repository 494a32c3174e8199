// ldap-auth on a real data plane with a directory on a real socket: who is authenticated, and what the directory receives.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { decode } from "../../../src/model/decode.ts";
import ldapAuth from "../../../src/plugins/ldap-auth.ts";
import { freePort } from "../../support/data-plane.ts";
import { ber, type Entry, result, TestDirectory } from "../../support/directory.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const PEOPLE = "ou=people,dc=x";
const person = (uid: string, password: string): Entry => ({
  dn: `uid=${uid},${PEOPLE}`,
  password,
  attributes: { uid: [uid] },
});
const entries: readonly Entry[] = [
  person("ann", "right"),
  person("bob", "bob's"),
  { ...person("twin", "right"), dn: `uid=twin,ou=a,${PEOPLE}` },
  { ...person("twin", "right"), dn: `uid=twin,ou=b,${PEOPLE}` },
  { dn: "cn=reader,dc=x", password: "reads" },
  { dn: "cn=staff,dc=x", attributes: { cn: ["staff"], member: [`uid=ann,${PEOPLE}`] } },
  { dn: "cn=ops,dc=x", attributes: { cn: ["ops", "operators"], memberUid: ["ann"] } },
  { dn: "cn=others,dc=x", attributes: { cn: ["others"], member: [`uid=bob,${PEOPLE}`] } },
];
const direct = { bind_dn: `uid=\${username},${PEOPLE}` };
const searching = { bind_dn: "cn=reader,dc=x", bind_password: "reads", base_dn: PEOPLE };

let scene: PluginScene;
let directory: TestDirectory;
let instance = 0;

/** Each one has a label, and so counts of its own. */
async function configure(config: Record<string, unknown> = {}): Promise<void> {
  const url = `ldap://127.0.0.1:${directory.port}`;
  const removedPlugins = [`ldap ${instance++}`];
  await scene.apply({
    removedPlugins,
    plugins: [
      { name: "ldap-auth", label: `ldap ${instance}`, config: { url, ...direct, ...config } },
    ],
  });
}
const basic = (username: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
});
const as = (username: string, password = "right") => scene.get("/", basic(username, password));

beforeAll(async () => {
  directory = await TestDirectory.start();
  scene = await pluginScene({
    consumers: [
      { username: "ann", groups: ["members"] },
      { username: "guest" },
      { username: "other", customId: "bob" },
    ],
  });
});
afterAll(async () => {
  await scene.stop();
  directory.stop();
});
beforeEach(() => {
  directory.entries = entries;
  directory.asked.length = 0;
  directory.bend = (_, answer) => answer;
});

describe("a password", () => {
  test("that the directory accepts is accepted, and does not go upstream", async () => {
    await configure();
    const { status, seen } = await as("ann");
    expect(status).toBe(200);
    expect(seen?.headers["x-credential-identifier"]).toBe("ann");
    expect(seen?.headers).not.toHaveProperty("authorization");
    expect(seen?.headers).not.toHaveProperty("x-consumer-id");
    expect(directory.asked).toEqual([`bind uid=ann,${PEOPLE}`]);
    await configure({ hide_credentials: false });
    expect((await as("ann")).seen?.headers["authorization"]).toStartWith("Basic ");
  });

  test.each([
    ["none", {}],
    ["a wrong one", basic("ann", "wrong")],
    ["an unknown user's", basic("nobody", "right")],
    ["an empty one, which no directory refuses", basic("ann", "")],
    ["one without a name", basic("", "right")],
    ["one of a name with blanks", basic(" ann", "right")],
    ["one of a name with a blank of no width", basic("ann\ufeff", "right")],
    ["one with a control character", basic("ann\0", "right")],
    ["one that is too long", basic("ann", "x".repeat(1025))],
    ["no Basic", { Authorization: "Bearer x" }],
    ["no base64", { Authorization: "Basic %%%" }],
    ["no colon", { Authorization: `Basic ${btoa("ann")}` }],
    ["no UTF-8", { Authorization: `Basic ${btoa("ann:\xff")}` }],
  ])("is required: %s is refused with 401", async (_, headers) => {
    await configure();
    const answer = await scene.get("/", headers as Record<string, string>);
    expect(answer).toMatchObject({ status: 401, seen: null });
    expect(answer.headers.get("www-authenticate")).toBe('Basic realm="sluice", charset="UTF-8"');
  });

  test("that is empty never reaches the directory", async () => {
    for (const config of [direct, searching]) {
      await configure(config);
      await as("ann", "");
    }
    expect(directory.asked).toEqual([]);
  });

  test("that was correct is cached for a while, unless disabled", async () => {
    await configure();
    for (let i = 0; i < 3; i++) expect((await as("ann")).status).toBe(200);
    expect(directory.asked).toHaveLength(1);
    expect((await as("ann", "wrong")).status).toBe(401);
    expect(directory.asked).toHaveLength(2);
    directory.asked.length = 0;
    await configure({ cache_ttl: 0 });
    for (let i = 0; i < 3; i++) await as("ann");
    expect(directory.asked).toHaveLength(3);
  });

  test("of many simultaneous requests is verified once", async () => {
    await configure();
    const all = await Promise.all(Array.from({ length: 20 }, () => as("ann")));
    expect(all.every(({ status }) => status === 200)).toBe(true);
    expect(directory.asked).toHaveLength(1);
  });

  test("has a limit on guesses", async () => {
    await configure();
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push((await as("ann", `guess ${i}`)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429, 429]);
    expect(directory.asked).toHaveLength(10);
    const { status, headers } = await as("ann");
    expect(status).toBe(429);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

describe("a name", () => {
  const hostile = [
    "ann,ou=admins",
    "ann)(uid=*",
    "*",
    "ann*",
    "*)(|(uid=*",
    "ann\\",
    "\\2a",
    'ann"',
    "ann+cn=reader",
    "ann=x",
    "ann;dc=x",
    "#ann",
    "<ann>",
    "ann/../bob",
    "${username}",
    "${dn}",
    "\u202eann",
    "x),(uid=ann",
  ];

  test.each(hostile)("such as %s injects nothing into a bind", async (name) => {
    await configure();
    expect((await as(name)).status).toBe(401);
    const [bind = ""] = directory.asked;
    expect(bind).toStartWith("bind uid=");
    // Nothing but the template has a meaning.
    const inner = bind.slice("bind uid=".length, -`,${PEOPLE}`.length);
    expect(bind).toEndWith(`,${PEOPLE}`);
    expect(inner).toMatch(/^(?:[A-Za-z0-9.@_\u0080-\u{10ffff}-]|\\[0-9a-f]{2})*$/u);
  });

  test.each(hostile)("such as %s injects nothing into a search", async (name) => {
    await configure(searching);
    expect((await as(name)).status).toBe(401);
    expect(directory.asked).toEqual(["bind cn=reader,dc=x", `search ${PEOPLE} (uid=${name})`]);
  });

  test.each(["j\u00f6rg", "O'Brien, Ann (x)", "a\\b", "日本"])(
    "such as %s is found",
    async (name) => {
      directory.entries = [
        ...entries,
        { dn: `cn=1,${PEOPLE}`, password: "right", attributes: { uid: [name] } },
      ];
      await configure(searching);
      expect((await as(name)).status).toBe(200);
    },
  );

  test("is sent in lower case, so that no user has several", async () => {
    directory.entries = [...entries, person("Ann", "right")];
    await configure({ consumer_by: "username" });
    const { seen } = await as("Ann");
    expect(seen?.headers).toMatchObject({
      "x-credential-identifier": "ann",
      "x-consumer-username": "ann",
    });
  });

  test("may be that of a consumer", async () => {
    await configure({ consumer_by: "custom_id" });
    expect((await as("bob", "bob's")).seen?.headers["x-consumer-username"]).toBe("other");
    expect((await as("ann")).seen?.headers).not.toHaveProperty("x-consumer-username");
  });
});

describe("search with an account", () => {
  test("one matching entry is authenticated", async () => {
    await configure(searching);
    expect((await as("ann")).status).toBe(200);
    expect(directory.asked).toEqual([
      "bind cn=reader,dc=x",
      `search ${PEOPLE} (uid=ann)`,
      `bind uid=ann,${PEOPLE}`,
    ]);
    expect((await as("ann", "reads")).status).toBe(401);
  });

  test("two matching entries fail", async () => {
    await configure(searching);
    expect((await as("twin")).status).toBe(401);
    expect(directory.asked).not.toContainEqual(expect.stringContaining("bind uid=twin"));
  });

  test("an entry without a name is rejected, because it would bind anonymously", async () => {
    directory.entries = [...entries, { dn: "", attributes: { uid: ["eve"] } }];
    await configure(searching);
    expect((await as("eve", "anything")).status).toBe(401);
  });

  test("the filter also applies to direct binds", async () => {
    await configure({ base_dn: PEOPLE, filter: "(&(uid=${username})(!(uid=ann)))" });
    expect((await as("ann")).status).toBe(401);
    expect((await as("bob", "bob's")).status).toBe(200);
  });

  test("a search account that cannot bind is an error, and no failed attempt", async () => {
    await configure({ ...searching, bind_password: "no" });
    const { status, body } = await as("ann");
    expect(status).toBe(503);
    expect(body).not.toContain("reader");
  });
});

test("groups are read when configured, and add to those of the consumer", async () => {
  const groups = { group_base_dn: "dc=x", consumer_by: "username" };
  const acl = { name: "acl", config: { allow: ["staff"], hide_groups_header: false } };
  for (const config of [direct, searching]) {
    await configure({ ...config, ...groups });
    await scene.apply({ plugins: [acl] });
    const { status, seen } = await as("ann");
    expect(status).toBe(200);
    expect(seen?.headers["x-consumer-groups"]?.split(/, ?/)).toEqual(
      expect.arrayContaining(["members", "staff", "ops", "operators"]),
    );
    expect((await as("bob", "bob's")).status).toBe(403);
    await configure({ ...config, ...groups, group_filter: "(memberUid=${username})" });
    expect((await as("ann")).status).toBe(403);
    await configure({ ...config, ...groups, group_attribute: "memberUid" });
    expect((await as("ann")).status).toBe(403);
  }
  await scene.apply({ removedPlugins: ["acl"] });
});

test("anonymous consumer and preflights work as with other authentication", async () => {
  await configure({ anonymous_consumer: "guest" });
  expect((await scene.get("/")).seen?.headers["x-consumer-username"]).toBe("guest");
  await configure();
  const headers = { Origin: "https://a.example", "Access-Control-Request-Method": "PUT" };
  expect((await scene.send("OPTIONS", "/", { headers })).status).toBe(200);
});

describe("a directory", () => {
  test("that is unreachable is an error, and does not count as wrong passwords", async () => {
    await configure({ url: `ldap://127.0.0.1:${freePort()}` });
    for (let i = 0; i < 12; i++) expect((await as("ann", `${i}`)).status).toBe(503);
  });

  test.each<[string, (operation: string, answer: Buffer) => Buffer | null]>([
    ["says nothing", () => null],
    ["says half of it", (_, answer) => answer.subarray(0, 3)],
    ["says something else", () => Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["answers another question", () => ber(0x30, ber(0x02, "\x09"), result(0x61, 0))],
    ["is busy", () => ber(0x30, ber(0x02, "\x01"), result(0x61, 51))],
    ["refers to another one", () => ber(0x30, ber(0x02, "\x01"), result(0x61, 10))],
    ["answers a bind with a search", () => ber(0x30, ber(0x02, "\x01"), result(0x65, 0))],
    ["says a number that is none", () => Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x02])],
  ])("that %s authenticates no client", async (_, bend) => {
    await configure({ timeout: 200 });
    directory.bend = bend;
    const { status, seen } = await as("ann");
    expect({ status, seen }).toEqual({ status: 503, seen: null });
    directory.bend = (__, answer) => answer;
    expect((await as("ann")).status).toBe(200);
  });

  test("that sends garbage authenticates no client and causes no crash", async () => {
    await configure({ timeout: 100 });
    directory.entries = [];
    for (let i = 0; i < 24; i++) {
      const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(1 + (i % 40))));
      directory.bend = () =>
        i % 2 === 0 ? noise : Buffer.concat([Buffer.from([0x30, noise.length]), noise]);
      const { status } = await as("ann", `${i}`);
      expect([401, 429, 503]).toContain(status);
    }
  });
});

describe("invalid settings", () => {
  const check = (config: Record<string, unknown>) => {
    const own = decode(ldapAuth.config, { url: "ldap://a", ...direct, ...config });
    return (ldapAuth.check?.(own as never) ?? []).map((problem) => problem.path);
  };

  test.each([
    ["base_dn", { bind_dn: "cn=reader", bind_password: "x" }],
    ["bind_password", { bind_dn: "cn=reader", base_dn: "dc=x" }],
    ["filter", { ...searching, filter: "(uid=*)" }],
    ["filter", { filter: "uid=${username}" }],
    ["filter", { filter: "(&(uid=${username})" }],
    ["filter", { filter: "(uid=${name})" }],
    ["group_filter", { group_filter: "(member=${uid})" }],
    ["bind_dn", { bind_dn: "${username}" }],
    ["bind_dn", { bind_dn: "uid=${user}" }],
    ["start_tls", { url: "ldaps://a", start_tls: true }],
  ])("%s", (path, config) => {
    expect(check(config)).toContain(path);
  });

  test("those of the page are valid", () => {
    expect(check({})).toEqual([]);
    expect(check(searching)).toEqual([]);
    expect(check({ bind_dn: "${username}@corp.example" })).toEqual([]);
    expect(ldapAuth.check?.(decode(ldapAuth.config, ldapAuth.example) as never)).toEqual([]);
  });

  test.each(["http://a", "ldap://", "ldap://u:p@a", "ldap://a/dc=x", "ldapi:///x"])("%s", (url) => {
    expect(() => decode(ldapAuth.config, { url, ...direct })).toThrow();
  });
});

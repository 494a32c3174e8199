// oidc against a lying provider, browser and other attackers: no client gets another user's session.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { exchange } from "../../support/raw-exchange.ts";
import {
  clientSecret,
  type Lie,
  signNothing,
  signWithClientSecret,
  signWithForeignKey,
  signWithPublicKey,
} from "../sso/lying-provider.ts";
import { otherForms, otherTypes, signInForm } from "../sso/token-forms.ts";
import { CALLBACK, Jar, World } from "./oidc-world.ts";

let world: World;
const now = () => Math.floor(Date.now() / 1000);

beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());
beforeEach(() => world.reset());

describe("an id token is refused", () => {
  test.each<[string, Lie]>([
    ["nonce of another login", { claims: { nonce: "x".repeat(43) } }],
    ["no nonce", { claims: { nonce: undefined } }],
    ["audience of another client", { claims: { aud: "another" } }],
    ["no audience", { claims: { aud: undefined } }],
    ["several audiences and no azp", { claims: { aud: ["sluice", "another"] } }],
    ["azp of another client", { claims: { azp: "another" } }],
    ["another issuer", { claims: { iss: "https://evil.example" } }],
    ["expired", { claims: { exp: now() - 60 } }],
    ["no end", { claims: { exp: undefined } }],
    ["not valid yet", { claims: { nbf: now() + 600 } }],
    ["issued in time to come", { claims: { iat: now() + 600 } }],
    ["without a subject", { claims: { sub: undefined } }],
    ["with an empty subject", { claims: { sub: "" } }],
    ["subject that is no text", { claims: { sub: 1 } }],
    ["alg none", { sign: signNothing }],
    ["signed with the public key", { sign: signWithPublicKey }],
    ["signed with the client's secret", { sign: signWithClientSecret }],
    ["signed by an attacker", { sign: signWithForeignKey() }],
    ["signed by an attacker under a new key id", { sign: signWithForeignKey("new") }],
    ["no token at all", { sign: () => "" }],
    ["no JWT", { sign: () => "a.b.c" }],
    ...otherTypes.map((typ): [string, Lie] => [
      `of the type ${JSON.stringify(typ)}`,
      { sign: signInForm({ header: { typ } }) },
    ]),
    ...otherForms.map(({ why, sign }): [string, Lie] => [why, { sign }]),
  ])("%s", async (_, lie) => {
    world.provider.lie = lie;
    const jar = new Jar();
    const { status, headers, body } = await world.signIn(jar);
    expect(status).toBe(403);
    expect(headers.has("location")).toBe(false);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(jar.cookies.size).toBe(0);
    expect(body).not.toContain("canary");
  });
});

test.each<[string, Lie]>([
  ["a few seconds apart", { claims: { iat: now() + 10, nbf: now() + 10 } }],
  ["of the type JWT", { sign: signInForm({ header: { typ: "JWT" } }) }],
  ["of the type jwt", { sign: signInForm({ header: { typ: "jwt" } }) }],
])("an id token %s is accepted", async (_, lie) => {
  world.provider.lie = lie;
  const jar = new Jar();
  expect((await world.signIn(jar)).status).toBe(302);
  expect(jar.cookies.size).toBeGreaterThan(0);
});

describe("the callback is refused", () => {
  const refused = async (answer: Promise<{ status: number; headers: Headers }>, status = 400) => {
    const { status: given, headers } = await answer;
    expect(given).toBe(status);
    expect(headers.has("location")).toBe(false);
    expect(headers.getSetCookie().join()).not.toContain("sluice_app=");
  };

  test("to a browser without a login (login CSRF)", async () => {
    const attacker = new Jar();
    const back = world.provider.agree(await world.begin("/", attacker));
    await refused(world.get(`${CALLBACK}?${back}`, new Jar()));
  });

  test("to a browser that has started another login", async () => {
    const [attacker, victim] = [new Jar(), new Jar()];
    const back = world.provider.agree(await world.begin("/", attacker));
    // Enough to fill all slots for logins.
    for (let i = 0; i < 30; i++) await world.begin("/", victim);
    await refused(world.get(`${CALLBACK}?${back}`, victim));
  });

  test("a second time, with code, state and cookie of the first", async () => {
    const jar = new Jar();
    const back = world.provider.agree(await world.begin("/", jar));
    const before = jar.header;
    expect((await world.get(`${CALLBACK}?${back}`, jar)).status).toBe(302);
    await refused(world.scene.get(`${CALLBACK}?${back}`, before));
    const other = world.provider.agree(await world.begin("/", new Jar()));
    other.set("state", back.get("state") ?? "");
    await refused(world.scene.get(`${CALLBACK}?${other}`, before));
  });

  test("with the code of another user", async () => {
    const [attacker, victim] = [new Jar(), new Jar()];
    const stolen = world.provider.agree(await world.begin("/", victim));
    const own = world.provider.agree(await world.begin("/", attacker));
    own.set("code", stolen.get("code") ?? "");
    await refused(world.get(`${CALLBACK}?${own}`, attacker), 403);
  });

  test.each([
    ["nothing", ""],
    ["no state", "code=x"],
    ["an empty state", "code=x&state="],
    ["a state that is none", "code=x&state=%00"],
    ["a long state", `code=x&state=${"a".repeat(4000)}`],
    ["a broken encoding", "code=%ff&state=%zz"],
  ])("with %s", async (_, query) => {
    const jar = new Jar();
    await world.begin("/", jar);
    await refused(world.get(`${CALLBACK}?${query}`, jar));
  });

  test.each<[string, (back: URLSearchParams) => void, number]>([
    ["two states", (back) => back.append("state", "x"), 400],
    ["two codes", (back) => back.append("code", "x"), 403],
    ["no code", (back) => back.delete("code"), 403],
    ["another state", (back) => back.set("state", "a".repeat(43)), 400],
    ["the issuer of another provider", (back) => back.set("iss", "https://evil.example"), 403],
    ["an error beside the code", (back) => back.set("error", "access_denied"), 403],
    ["an error of the provider's", (back) => back.set("error", "server_error"), 503],
    ["an error that is a page", (back) => back.set("error", "<script>alert(1)</script>"), 403],
  ])("with %s", async (_, bend, status) => {
    const jar = new Jar();
    const back = world.provider.agree(await world.begin("/", jar));
    bend(back);
    const asked = world.provider.tokenRequests.length;
    const answer = world.get(`${CALLBACK}?${back}`, jar);
    await refused(answer, status);
    expect((await answer).body).not.toContain("<script>");
    expect(world.provider.tokenRequests).toHaveLength(asked);
  });

  test("without the issuer when the provider always names it", async () => {
    world.provider.document = { authorization_response_iss_parameter_supported: true };
    await world.configure();
    await refused(world.signIn(new Jar()), 403);
    const jar = new Jar();
    const back = world.provider.agree(await world.begin("/", jar));
    back.set("iss", world.provider.issuer);
    expect((await world.get(`${CALLBACK}?${back}`, jar)).status).toBe(302);
  });

  test("under another host than that of the start", async () => {
    const jar = new Jar();
    const back = world.provider.agree(await world.begin("/", jar, { Host: "a.example" }));
    await refused(world.get(`${CALLBACK}?${back}`, jar, { Host: "b.example" }), 403);
  });

  test("when the provider refuses the code or is down", async () => {
    world.provider.intercept = (path) =>
      path === "/token" ? Response.json({ error: "invalid_grant" }, { status: 400 }) : null;
    await refused(world.signIn(new Jar()), 403);
    world.provider.intercept = (path) =>
      path === "/token" ? new Response("", { status: 500 }) : null;
    await refused(world.signIn(new Jar()), 503);
  });

  test("by POST", async () => {
    const jar = new Jar();
    const back = world.provider.agree(await world.begin("/", jar));
    const { status } = await world.scene.send("POST", CALLBACK, {
      headers: { ...jar.header, "Content-Type": "application/x-www-form-urlencoded" },
      body: back.toString(),
    });
    expect(status).toBe(401);
  });
});

describe("open redirects are rejected", () => {
  test.each([
    "//evil.example/",
    "/\\evil.example",
    "/%5cevil.example",
    "/.//evil.example",
    "/..//evil.example",
    "///evil.example",
    "/\t/evil.example",
    "https://evil.example/",
    `${CALLBACK}`,
    `/${"a".repeat(2000)}`,
  ])("%s", async (target) => {
    const { port } = world.scene.plane;
    const { answers } = await exchange(
      `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`,
      { port },
    );
    const [answer] = answers;
    if (answer?.status !== 302) return;
    const field = (name: string) =>
      new RegExp(`^${name}: (.*)$`, "im").exec(answer.raw)?.[1]?.trim() ?? "";
    const address = field("location");
    expect(address).toStartWith(world.provider.issuer);
    const [cookie = ""] = field("set-cookie").split(";");
    const back = world.provider.agree(address);
    // A request that names another host begins a login of that host.
    const { host } = URL.parse(target) ?? {};
    const headers = { Cookie: cookie, ...(host === undefined ? {} : { Host: host }) };
    const done = await world.scene.get(`${CALLBACK}?${back}`, headers);
    expect(done.status).toBe(302);
    expect(done.headers.get("location")).toMatch(/^\/(?![/\\])/);
  });
});

test("logins in several tabs do not interfere", async () => {
  const jar = new Jar();
  // A place that is needed twice belongs to the later one.
  const begun = new Map<number, { readonly address: string; readonly path: string }>();
  for (let at = 0; begun.size < 3; at++) {
    const path = `/tab${at}`;
    const address = await world.begin(path, jar);
    const state = new URL(address).searchParams.get("state") ?? "";
    begun.set(state.charCodeAt(0) % 4, { address, path });
  }
  for (const { address, path } of begun.values()) {
    const back = world.provider.agree(address);
    const done = await world.get(`${CALLBACK}?${back}`, jar);
    expect(done.headers.get("location")).toBe(path);
  }
});

test("the client authenticates, and its secrets are in no log and no response", async () => {
  const before = world.provider.tokenRequests.length;
  const done = await world.signIn(new Jar());
  expect(done.status).toBe(302);
  const asked = world.provider.tokenRequests[before];
  expect(asked?.authorization).toStartWith("Basic ");
  expect(asked?.form.get("code_verifier")).toHaveLength(43);
  world.provider.document = { token_endpoint_auth_methods_supported: ["client_secret_post"] };
  await world.configure({ realm: "other" });
  expect((await world.signIn(new Jar())).status).toBe(302);
  expect(world.provider.tokenRequests.at(-1)?.form.get("client_secret")).toBe(clientSecret);
  const log = JSON.stringify(world.scene.plane.log);
  for (const canary of [clientSecret, "canary-code", "canary-access-token", "canary-refresh"])
    expect(log).not.toContain(canary);
});

test("malformed cookies cause no error", async () => {
  const random = (length: number) =>
    Array.from(crypto.getRandomValues(new Uint8Array(length)), (byte) =>
      String.fromCharCode(33 + (byte % 94)).replace(/[;,"\\]/, "x"),
    ).join("");
  for (let i = 0; i < 100; i++) {
    const cookie = `sluice_app=${(i % 4) + 1}.${random(i * 7)}; sluice_app.1=${random(i)}; sluice_app.2=${random(5)}; sluice_app.p${i % 5}=1.${random(50)}`;
    expect((await world.scene.get("/", { Cookie: cookie })).status).toBe(302);
  }
});

// hmac-auth on a real data plane: accepted signatures, rejections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { decode } from "../../../src/model/decode.ts";
import plugin from "../../../src/plugins/hmac-auth.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { digestOf, seconds, type Signing, signed } from "./signer.ts";

const SECRET = "a secret of the client — forty characters";
const pair = generateKeyPairSync("ed25519");
let scene: PluginScene;

const use = (own: Record<string, unknown> = {}) =>
  scene.apply({ plugins: [{ name: "hmac-auth", config: own }] });

const uri = (path = "/x?a=1") => `${scene.plane.url}${path}`;
const basics = (method = "GET", path = "/x?a=1") =>
  [
    ['"@method"', method],
    ['"@target-uri"', uri(path)],
  ] as const;

/** A GET of /x?a=1 with a signature, good but for what differs. */
const get = (differing: Partial<Signing> = {}, more: Record<string, string> = {}) =>
  scene.get("/x?a=1", {
    ...more,
    ...signed({ components: basics(), key: SECRET, keyId: "k1", ...differing }),
  });

beforeAll(async () => {
  const ofAlice = { type: "hmac" as const, consumerId: "alice" };
  const symmetric = { ...ofAlice, algorithm: "hmac-sha256" as const, secret: SECRET };
  scene = await pluginScene({
    consumers: [{ username: "alice" }, { username: "guest" }],
    credentials: [
      { ...symmetric, identifier: "k1" },
      {
        ...ofAlice,
        identifier: "k2",
        algorithm: "ed25519",
        publicKey: pair.publicKey.export({ type: "spki", format: "pem" }).toString(),
      },
      { ...symmetric, identifier: "expired", expiresAt: Date.now() - 1 },
      {
        ...symmetric,
        identifier: "rotated",
        secret: "another secret",
        previous: { hash: null, secret: SECRET, until: Date.now() + 3_600_000 },
      },
      { ...symmetric, identifier: "off", consumerId: "nobody" },
    ],
  });
});
afterAll(() => scene.stop());

describe("a signature", () => {
  beforeAll(() => use());

  test.each([
    ["with a shared secret", () => ({})],
    ["with a key pair", () => ({ key: pair.privateKey, keyId: "k2" })],
    ["that names its algorithm", () => ({ parameters: { alg: "hmac-sha256" } })],
    ["that expires later", () => ({ parameters: { expires: seconds() + 5 } })],
    ["with the secret before the last rotation", () => ({ keyId: "rotated" })],
    [
      "with the present secret after a rotation",
      () => ({ keyId: "rotated", key: "another secret" }),
    ],
    ["with a nonce and a tag", () => ({ parameters: { nonce: 'a"b\\', tag: "app" } })],
    ["made as long ago as allowed", () => ({ parameters: { created: seconds() - 298 } })],
    ["made as far ahead as allowed", () => ({ parameters: { created: seconds() + 298 } })],
  ])("%s authenticates its consumer", async (_, differing) => {
    const { status, seen } = await get(differing());
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({ "x-consumer-username": "alice" });
    expect(seen?.headers).not.toHaveProperty("signature");
    expect(seen?.headers).not.toHaveProperty("signature-input");
  });

  test("may cover every part of a request", async () => {
    const authority = `127.0.0.1:${scene.plane.port}`;
    const query = "b=with+plus%20and%20%C3%A7&a=1&a=2&e=&t=~!";
    const components = [
      ...basics("POST", `/some/%7Epath?${query}`.replace("%7E", "~")),
      ['"@authority"', authority],
      ['"@scheme"', "http"],
      ['"@request-target"', `/some/~path?${query}`],
      ['"@path"', "/some/~path"],
      ['"@query"', `?${query}`],
      ['"@query-param";name="b"', "with%20plus%20and%20%C3%A7"],
      ['"@query-param";name="e"', ""],
      ['"@query-param";name="t"', "%7E%21"],
      ['"x-list"', "a, b"],
      ['"x-dict";key="a"', "1"],
      ['"x-dict";key="b"', "2;x=1;y=2"],
      ['"x-dict";key="c"', "(a b c)"],
      ['"x-dict";key="d"', "?1"],
      ['"content-digest";sf', digestOf("body")],
    ] as const;
    const { status } = await scene.send("POST", `/some/~path?${query}`, {
      headers: {
        "X-List": "a, b",
        "X-Dict": "a=1,    b=2;x=1;y=2, c=(a   b   c), d",
        "Content-Digest": ` ${digestOf("body")} `,
        ...signed({ components, key: SECRET, keyId: "k1" }),
      },
      body: "body",
    });
    expect(status).toBe(200);
  });

  test("may appear beside other signatures", async () => {
    const other = signed({ components: basics(), key: "x", keyId: "unknown", label: "proxy" });
    const own = signed({ components: basics(), key: SECRET, keyId: "k1" });
    const { status } = await scene.get("/x?a=1", {
      "Signature-Input": `${other["Signature-Input"]}, ${own["Signature-Input"]}`,
      Signature: `${own.Signature}, ${other.Signature}`,
    });
    expect(status).toBe(200);
  });

  test("covers only the question mark of an empty query", async () => {
    const components = [...basics("GET", "/"), ['"@query"', "?"]] as const;
    const headers = signed({ components, key: SECRET, keyId: "k1" });
    expect((await scene.get("/", headers)).status).toBe(200);
  });
});

describe("refused with 401 is", () => {
  beforeAll(() => use());
  const more = (identifier: string, value: string) => ({
    components: [...basics(), [identifier, value] as const],
  });

  const refusals: [string, () => Partial<Signing>][] = [
    ["another key", () => ({ key: "another" })],
    ["an unknown key", () => ({ keyId: "k9" })],
    ["an expired key", () => ({ keyId: "expired" })],
    ["the key of a consumer that is off", () => ({ keyId: "off" })],
    ["no name of a key", () => ({ parameters: { keyid: undefined } })],
    ["a name of a key that is no text", () => ({ parameters: { keyid: 1 } })],
    ["another algorithm than the key's", () => ({ parameters: { alg: "ed25519" } })],
    ["a shared secret in the place of a key pair", () => ({ keyId: "k2" })],
    [
      "a public key as a secret",
      () => ({
        keyId: "k2",
        key: pair.publicKey.export({ type: "spki", format: "pem" }).toString(),
        parameters: { alg: "hmac-sha256" },
      }),
    ],
    ["no time", () => ({ parameters: { created: undefined } })],
    ["a time that is a text", () => ({ parameters: { created: "now" } })],
    ["an old one", () => ({ parameters: { created: seconds() - 302 } })],
    ["one of the future", () => ({ parameters: { created: seconds() + 310 } })],
    ["one that has expired", () => ({ parameters: { expires: seconds() - 1 } })],
    ["one of another method", () => ({ components: basics("POST") })],
    ["one of another path", () => ({ components: basics("GET", "/y?a=1") })],
    ["one of another query", () => ({ components: basics("GET", "/x?a=2") })],
    [
      "one of another host",
      () => ({ components: [basics()[0], ['"@target-uri"', "http://other.test/x?a=1"]] }),
    ],
    ["one that covers too little", () => ({ components: [basics()[0]] })],
    ["one that covers nothing", () => ({ components: [] })],
    ["one of a field that is not there", () => more('"x-none"', "")],
    ["one of the response", () => more('"@status"', "200")],
    ["one of something unknown", () => more('"@nothing"', "")],
    ["one of another request", () => more('"@method";req', "GET")],
    ["one of a trailer", () => more('"x-list";tr', "a")],
    ["one of single lines", () => more('"x-list";bs', ":YQ==:")],
    ["one of a field whose form is not known", () => more('"x-list";sf', "a")],
    ["one with a name in capitals", () => more('"X-List"', "a")],
    ["one that covers something twice", () => more('"@method"', "GET")],
    ["one of a parameter that is there twice", () => more('"@query-param";name="b"', "1")],
    ["one of a name with a line end", () => more('"x-list\\n"', "a")],
  ];
  test.each(refusals)("%s", async (_, differing) => {
    const answer = await get(differing(), { "X-List": "a" });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe('Signature realm="sluice"');
    expect(answer.seen).toBeNull();
  });

  test.each([
    ["nothing", {}],
    ["one field without the other", { Signature: "sig=:AAAA:" }],
    ["no dictionary", { "Signature-Input": "sig=(", Signature: "sig=:AAAA:" }],
    ["no list of components", { "Signature-Input": "sig=1", Signature: "sig=:AAAA:" }],
    ["no bytes", { "Signature-Input": "sig=()", Signature: "sig=1" }],
    ["bytes of another name", { "Signature-Input": "sig=()", Signature: "gis=:AAAA:" }],
    ["an inner list of bytes", { "Signature-Input": "sig=()", Signature: "sig=(:AAAA:)" }],
    [
      "six signatures",
      Object.fromEntries(
        [
          ["Signature-Input", "()"],
          ["Signature", ":AAAA:"],
        ].map(([name, value]) => [
          name,
          [..."abcdef"].map((label) => `${label}=${value}`).join(", "),
        ]),
      ),
    ],
  ])("%s", async (_, headers) => {
    const answer = await scene.get("/", headers as Record<string, string>);
    expect(answer.status).toBe(401);
    expect(answer.seen).toBeNull();
  });

  test("any mutation of a valid one, and none causes an error", async () => {
    const good = signed({ components: basics(), key: SECRET, keyId: "k1" });
    const letters = 'A9(;"=:, %';
    for (const field of ["Signature-Input", "Signature"] as const)
      for (let at = 0; at < good[field].length; at++) {
        const letter = letters[at % letters.length] ?? "";
        const mutant = good[field].slice(0, at) + letter + good[field].slice(at + 1);
        if (mutant === good[field]) continue;
        const { status } = await scene.get("/x?a=1", { ...good, [field]: mutant });
        expect([mutant, status]).toEqual([mutant, 401]);
      }
    expect(scene.plane.log.filter(({ message }) => message === "a plugin failed")).toEqual([]);
  });
});

describe("required components", () => {
  test("are configurable", async () => {
    await use({ required_components: ["@path", "x-list"] });
    const components = [['"@path"', "/x"]] as const;
    const list = [...components, ['"x-list"', "a"]] as const;
    expect((await get({ components: list }, { "X-List": "a" })).status).toBe(200);
    expect((await get({ components }, { "X-List": "a" })).status).toBe(401);
    expect((await get({ components: list }, { "X-List": "b" })).status).toBe(401);
    const member = [...components, ['"x-list";key="a"', "?1"]] as const;
    expect((await get({ components: member }, { "X-List": "a" })).status).toBe(401);
  });

  test("and other settings are, too", async () => {
    await use({ algorithms: ["ed25519"], clock_skew: 10, realm: "shop", hide_credentials: false });
    expect((await get()).headers.get("www-authenticate")).toBe('Signature realm="shop"');
    const own = { key: pair.privateKey, keyId: "k2" };
    const { seen } = await get(own);
    expect(seen?.headers["signature"]).toStartWith("sig=:");
    expect((await get({ ...own, parameters: { created: seconds() - 15 } })).status).toBe(401);
    await use({ anonymous_consumer: "guest" });
    expect((await get({ key: "wrong" })).seen?.headers).toMatchObject({
      "x-consumer-username": "guest",
      "x-anonymous-consumer": "true",
    });
  });
});

describe("a body", () => {
  beforeAll(() => use({ validate_body: true, max_body: 20 }));
  const post = (body: string | null, digest: string | null, isSigned = digest !== null) => {
    const components = isSigned
      ? [...basics("POST"), ['"content-digest"', digest ?? ""] as const]
      : basics("POST");
    return scene.send("POST", "/x?a=1", {
      headers: {
        ...(digest === null ? {} : { "Content-Digest": digest }),
        ...signed({ components, key: SECRET, keyId: "k1" }),
      },
      body,
    });
  };

  test.each([
    ["sha256", digestOf("the body")],
    ["sha512", digestOf("the body", "sha512")],
    ["both", `${digestOf("the body")}, ${digestOf("the body", "sha512")}`],
    ["an unknown one beside it", `md5=:AAAA:, ${digestOf("the body")}`],
  ])("with a digest (%s) passes unchanged", async (_, digest) => {
    const { status, seen } = await post("the body", digest);
    expect(status).toBe(200);
    expect(seen?.body).toBe("the body");
  });

  test.each([
    ["no digest", "the body", null, false],
    ["a digest that is not signed", "the body", digestOf("the body"), false],
    ["the digest of another one", "the body", digestOf("the bodi"), true],
    [
      "one right digest of two",
      "the body",
      `${digestOf("the body")}, ${digestOf("x", "sha512")}`,
      true,
    ],
    ["only an unknown digest", "the body", "md5=:AAAA:", true],
    ["a digest that is too short", "the body", "sha-256=:AAAA:", true],
    ["a digest that is no bytes", "the body", "sha-256=1", true],
    ["a digest that is nothing", "the body", "((", true],
    ["the digest of what was taken away", null, digestOf("the body"), true],
  ] as const)("with %s is refused", async (_, body, digest, isSigned) => {
    const answer = await post(body, digest, isSigned);
    expect(answer.status).toBe(401);
    expect(answer.seen).toBeNull();
  });

  test("that is empty needs no digest", async () => {
    expect((await post(null, null)).status).toBe(200);
    expect((await post(null, digestOf(""))).status).toBe(200);
  });

  test("that is too long to check is refused with 413", async () => {
    const most = "x".repeat(20);
    expect((await post(most, digestOf(most))).status).toBe(200);
    expect((await post(`${most}x`, digestOf(`${most}x`))).status).toBe(413);
  });

  test("is not checked unless configured", async () => {
    await use();
    expect((await post("another body", digestOf("the body"))).status).toBe(200);
  });
});

describe("a nonce", () => {
  const withNonce = (nonce: string | number | undefined) => ({ parameters: { nonce } });

  test("is valid for one request, however many arrive at once", async () => {
    await use({ nonce_cache: true });
    const headers = signed({
      components: basics(),
      key: SECRET,
      keyId: "k1",
      ...withNonce("once"),
    });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => scene.get("/x?a=1", headers)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(9);
    expect((await get(withNonce("twice"))).status).toBe(200);
    // Signed anew it is still the same nonce; that of another key is another one.
    expect((await get({ parameters: { nonce: "twice", created: seconds() - 5 } })).status).toBe(
      401,
    );
    expect((await get({ ...withNonce("twice"), key: pair.privateKey, keyId: "k2" })).status).toBe(
      200,
    );
  });

  test("is required then, and not used up by another client", async () => {
    for (const nonce of [undefined, "", 7, "n".repeat(257)])
      expect((await get(withNonce(nonce))).status).toBe(401);
    expect((await get({ ...withNonce("mine"), key: "wrong" })).status).toBe(401);
    expect((await get(withNonce("mine"))).status).toBe(200);
  });
});

test.each([
  [{ required_components: ["@status"] }],
  [{ required_components: ["Content-Type"] }],
  [{ required_components: ['@query-param;name="a"'] }],
  [{ algorithms: ["rsa-pss-sha512"] }],
  [{ algorithms: [] }],
  [{ clock_skew: 0 }],
])("%j is invalid", (own) => {
  expect(() => decode(plugin.config, own)).toThrow();
});

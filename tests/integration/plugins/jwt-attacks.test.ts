// Tokens that attackers make, on a real data plane with the plugin jwt: none is accepted, and none causes a side effect or a leak.
import { beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { signToken } from "./issuer.ts";
import { otherText, withOtherSignature } from "../sso/token-forms.ts";
import { bearer, seconds, SECRET, useJwt } from "./jwt-scene.ts";

const ISSUER = "https://issuer.test";
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

const jwt = useJwt();

describe("an attack", () => {
  const forged = (header: object, claims: object, sign: (input: string) => string) => {
    const input = `${encode(header)}.${encode(claims)}`;
    return `${input}.${sign(input)}`;
  };
  const claims = () => ({ iss: ISSUER, sub: "user-1", exp: seconds() + 300 });
  const hmac = (key: string) => (input: string) =>
    createHmac("sha256", key).update(input).digest("base64url");

  const ofAlice = () => ({ ...claims(), iss: "alice-hs" });
  /** JSON whose base64url leaves bits over. */
  const spaced = (value: object) => {
    let text = JSON.stringify(value);
    while (Buffer.byteLength(text) % 3 === 0) text += " ";
    return Buffer.from(text).toString("base64url");
  };

  const attacks: [string, () => string | Promise<string>][] = [
    ["no algorithm and no signature", () => forged({ alg: "none" }, claims(), () => "")],
    ["no algorithm in other letters", () => forged({ alg: "NoNe" }, claims(), () => "AA")],
    ["no algorithm with a signature", () => forged({ alg: "none" }, claims(), () => "AA")],
    [
      "a public key as a secret",
      () => forged({ alg: "HS256", kid: "r1" }, claims(), hmac(jwt.rsaPem)),
    ],
    [
      "a consumer's public key as a secret",
      () => forged({ alg: "HS256" }, { ...claims(), iss: "alice-rs" }, hmac(jwt.rsaPem)),
    ],
    [
      "a consumer's public key as a secret, trimmed",
      () => forged({ alg: "HS256" }, { ...claims(), iss: "alice-rs" }, hmac(jwt.rsaPem.trim())),
    ],
    ["an empty secret", () => forged({ alg: "HS256", kid: "r1" }, claims(), () => "AA")],
    ["a foreign key under our key id", () => signToken(jwt.foreign)],
    [
      "a key that the token brings",
      () => signToken(jwt.foreign, { header: { jwk: jwt.foreign.jwk } }),
    ],
    [
      "a key at an address",
      () => signToken(jwt.foreign, { header: { jku: "http://127.0.0.1:1/keys" } }),
    ],
    [
      "a certificate at an address",
      () => signToken(jwt.foreign, { header: { x5u: "http://127.0.0.1:1/" } }),
    ],
    [
      "a name of a key that is a path",
      () => signToken(jwt.foreign, { header: { kid: "../../dev/null" } }),
    ],
    [
      "a name of a key that is a query",
      () => signToken(jwt.foreign, { header: { kid: "' OR 1=1 --" } }),
    ],
    [
      "a name of a key that objects have",
      () => signToken(jwt.foreign, { header: { kid: "__proto__" } }),
    ],
    ["a name of a key that is no text", () => signToken(jwt.foreign, { header: { kid: ["r1"] } })],
    [
      "an unknown extension",
      () => forged({ alg: "RS256", kid: "r1", crit: ["x"], x: 1 }, claims(), () => "AAAA"),
    ],
    [
      "another algorithm of the same key",
      () =>
        signToken({ ...jwt.rsa, algorithm: "RS384" }).catch(() =>
          forged({ alg: "RS384", kid: "r1" }, claims(), () => "AAAA"),
        ),
    ],
    ["a header that is no object", () => forged([], claims(), () => "AAAA")],
    ["claims that are no object", () => forged({ alg: "RS256", kid: "r1" }, [], () => "AAAA")],
    ["an encrypted token", () => "a.b.c.d.e"],
    ["a token of nothing", () => ".."],
    ["a huge token", () => `${"A".repeat(12_000)}.AA.AA`],
    ["two tokens", async () => `${await signToken(jwt.rsa)}, Bearer ${await signToken(jwt.rsa)}`],
    ["a signature with something behind it", async () => `${await signToken(jwt.rsa)}A=`],
    [
      "claims that were changed",
      async () => {
        const [header = "", , signature = ""] = (await signToken(jwt.rsa)).split(".");
        return `${header}.${encode({ ...claims(), sub: "root" })}.${signature}`;
      },
    ],
    [
      "another text of the same signature",
      async () => withOtherSignature(await signToken(jwt.rsa)),
    ],
    [
      "another text of the same signature with a curve",
      async () => withOtherSignature(await signToken(jwt.ec)),
    ],
    [
      "another text of the same signature with a secret",
      () => withOtherSignature(forged({ alg: "HS256" }, ofAlice(), hmac(SECRET))),
    ],
    [
      "another text of the same claims, signed",
      () => {
        const input = `${encode({ alg: "HS256" })}.${otherText(spaced(ofAlice()))}`;
        return `${input}.${hmac(SECRET)(input)}`;
      },
    ],
    [
      "another text of the same header, signed",
      () => {
        const input = `${otherText(spaced({ alg: "HS256" }))}.${encode(ofAlice())}`;
        return `${input}.${hmac(SECRET)(input)}`;
      },
    ],
    ["a signature that was left out", async () => (await signToken(jwt.rsa)).replace(/[^.]*$/, "")],
  ];

  beforeAll(() =>
    jwt.use({ algorithms: ["RS256", "ES256", "EdDSA", "HS256", "HS384", "HS512"], issuer: [] }),
  );
  test.each(attacks)("with %s is refused", async (_, token) => {
    const answer = await jwt.scene.get("/", bearer(await token()));
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toMatch(
      /^Bearer realm="sluice", error="invalid_token", error_description="[a-z ]+"$/,
    );
    expect(answer.seen).toBeNull();
  });

  test("differs from the canonical token", async () => {
    const token = forged({ alg: "HS256" }, ofAlice(), hmac(SECRET));
    for (const good of [token, await signToken(jwt.rsa), await signToken(jwt.ec)])
      expect((await jwt.scene.get("/", bearer(good))).status).toBe(200);
  });

  test("does not make the gateway fetch anything", async () => {
    const asked: string[] = [];
    const trap = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => {
        asked.push(url);
        return Response.json({ keys: [jwt.foreign.jwk] });
      },
    });
    const address = `http://127.0.0.1:${trap.port}/keys`;
    for (const header of [{ jku: address }, { x5u: address }, { jku: address, kid: "new" }])
      expect((await jwt.get({ header }, jwt.foreign)).status).toBe(401);
    expect((await jwt.get({ claims: { iss: address } }, jwt.foreign)).status).toBe(401);
    expect(asked).toEqual([]);
    await trap.stop(true);
  });

  test("that mutates a valid token is refused or is the same token, and causes no error", async () => {
    const good = await signToken(jwt.ed);
    const letters = "Az0-_.%, ";
    for (let at = 0; at < good.length; at += 3) {
      const letter = letters[at % letters.length] ?? "";
      const mutant = good.slice(0, at) + letter + good.slice(at + 1);
      const { status } = await jwt.scene.get("/", bearer(mutant));
      if (mutant !== good) expect([200, 401]).toContain(status);
      // Only the last letter has unused bits.
      if (mutant !== good && at < good.length - 1) expect(status).toBe(401);
    }
    expect(jwt.scene.plane.log.filter(({ message }) => message === "a plugin failed")).toEqual([]);
  });
});

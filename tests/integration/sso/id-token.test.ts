// Id tokens of a provider that lies in each field: none of them opens a session.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  clientId,
  type Lie,
  signNothing,
  signProperly,
  signWithClientSecret,
  signWithForeignKey,
  signWithPublicKey,
} from "./lying-provider.ts";
import { otherForms, otherTypes, signInForm } from "./token-forms.ts";
import { createWorld, user, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld({ users: [user("ann@example.com")] });
});
afterAll(() => world.stop());
beforeEach(() => {
  world.provider.lie = {};
  world.now = Date.now();
});

const now = () => Math.floor(world.now / 1000);
const hour = 3600;

interface Refused {
  why: string;
  lie: () => Lie;
  /** Part of what the log says. */
  says: string;
}

const claims = (changed: Record<string, unknown>) => () => ({ claims: changed });
const signed = (sign: Lie["sign"]) => () => ({ sign: sign! });

const refused: Refused[] = [
  { why: "another nonce", lie: claims({ nonce: "other" }), says: "nonce" },
  { why: "no nonce", lie: claims({ nonce: undefined }), says: "nonce" },
  { why: "another audience", lie: claims({ aud: "other" }), says: "aud" },
  { why: "no audience", lie: claims({ aud: undefined }), says: "aud" },
  {
    why: "several audiences and no authorised party",
    lie: claims({ aud: [clientId, "other"] }),
    says: "azp",
  },
  {
    why: "several audiences and another authorised party",
    lie: claims({ aud: [clientId, "other"], azp: "other" }),
    says: "azp",
  },
  { why: "another authorised party", lie: claims({ azp: "other" }), says: "azp" },
  { why: "another issuer", lie: claims({ iss: "https://other.example" }), says: "iss" },
  {
    why: "an issuer with a slash more",
    lie: () => ({ claims: { iss: `${world.provider.issuer}/` } }),
    says: "iss",
  },
  { why: "no issuer", lie: claims({ iss: undefined }), says: "iss" },
  { why: "its time is over", lie: () => ({ claims: { exp: now() - hour } }), says: "exp" },
  { why: "no end", lie: claims({ exp: undefined }), says: "exp" },
  { why: "an end that is no number", lie: claims({ exp: "never" }), says: "exp" },
  { why: "its time is to come", lie: () => ({ claims: { nbf: now() + hour } }), says: "nbf" },
  { why: "no time of issue", lie: claims({ iat: undefined }), says: "iat" },
  { why: "a time of issue to come", lie: () => ({ claims: { iat: now() + 31 } }), says: "iat" },
  { why: "a far time of issue", lie: () => ({ claims: { iat: now() + hour } }), says: "iat" },
  { why: "a time of issue in words", lie: claims({ iat: "now" }), says: "iat" },
  { why: "no subject", lie: claims({ sub: undefined }), says: "sub" },
  { why: "an empty subject", lie: claims({ sub: "" }), says: "sub" },
  { why: "a subject that is a number", lie: claims({ sub: 1 }), says: "sub" },
  { why: "algorithm none", lie: signed(signNothing), says: "rejected" },
  { why: "HS256 with the public key", lie: signed(signWithPublicKey), says: "alg" },
  { why: "HS256 with the client secret", lie: signed(signWithClientSecret), says: "alg" },
  {
    why: "a foreign key under the provider's id",
    lie: signed(signWithForeignKey()),
    says: "signature",
  },
  { why: "an unknown key", lie: signed(signWithForeignKey("unknown")), says: "key" },
  { why: "no token at all", lie: signed(() => "not a token"), says: "rejected" },
  {
    why: "a changed claim",
    lie: signed(async (all, provider) => {
      const [header, , signature] = (await signProperly(all, provider)).split(".");
      const body = Buffer.from(JSON.stringify({ ...all, sub: "other" })).toString("base64url");
      return `${header}.${body}.${signature}`;
    }),
    says: "signature",
  },
  ...otherTypes.map((typ) => ({
    why: `the type ${JSON.stringify(typ)}`,
    lie: signed(signInForm({ header: { typ } })),
    says: "typ",
  })),
  ...otherForms.map(({ why, sign }) => ({ why, lie: signed(sign), says: "base64url" })),
];

describe("an id token is refused", () => {
  test.each(refused)("with $why", async ({ lie, says }) => {
    const before = world.sessions.list().length;
    expect(await world.outcome(lie())).toBe("invalid_token");
    expect(world.sessions.list()).toHaveLength(before);
    expect(world.audit.at(-1)).toMatchObject({
      action: "login",
      result: "refused",
      detail: { reason: "invalid_token", message: expect.stringContaining(says) },
    });
  });
});

describe("an id token is accepted", () => {
  const accepted: { why: string; lie: () => Lie }[] = [
    { why: "as it should be", lie: () => ({}) },
    {
      why: "with several audiences and us as the authorised party",
      lie: claims({ aud: [clientId, "other"], azp: clientId }),
    },
    {
      why: "when the clocks are a few seconds apart",
      lie: () => ({ claims: { exp: now() - 5, nbf: now() + 5, iat: now() + 5 } }),
    },
    { why: "issued 30 seconds from now", lie: () => ({ claims: { iat: now() + 30 } }) },
    { why: "with the type JWT", lie: signed(signInForm({ header: { typ: "JWT" } })) },
    // RFC 7515 section 4.1.9: a media type, in which case does not count.
    { why: "with the type jwt", lie: signed(signInForm({ header: { typ: "jwt" } })) },
  ];
  test.each(accepted)("$why", async ({ lie }) => {
    expect(await world.outcome(lie())).toBe("ok");
  });

  test("without a key id, signed with any of the published ones", async () => {
    const own = await createWorld({ users: [user("ann@example.com")] });
    await own.provider.publishWithoutIds();
    expect(await own.outcome()).toBe("ok");
    expect(await own.outcome({ sign: signWithForeignKey() })).toBe("invalid_token");
    await own.stop();
  });
});

describe("keys", () => {
  test("that the provider has changed are fetched once more, but not for every forged token", async () => {
    const own = await createWorld({ users: [user("ann@example.com")] });
    const asked = () => own.provider.asked.filter((path) => path === "/keys").length;
    expect(await own.outcome()).toBe("ok");
    expect(asked()).toBe(1);
    own.now += 60_000;
    await own.provider.rotateKeys("second");
    expect(await own.outcome()).toBe("ok");
    expect(asked()).toBe(2);
    const forged = { sign: signWithForeignKey("made up") };
    for (let round = 0; round < 3; round++) expect(await own.outcome(forged)).toBe("invalid_token");
    expect(asked()).toBe(2);
    own.now += 31_000;
    expect(await own.outcome(forged)).toBe("invalid_token");
    expect(asked()).toBe(3);
    await own.stop();
  });

  test("and the document are cached for a while", async () => {
    const own = await createWorld({ users: [user("ann@example.com")] });
    for (let round = 0; round < 3; round++) expect(await own.outcome()).toBe("ok");
    expect(own.provider.asked.filter((path) => path !== "/token")).toEqual([
      "/.well-known/openid-configuration",
      "/keys",
    ]);
    await own.stop();
  });
});

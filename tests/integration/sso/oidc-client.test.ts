// The client that single sign-on and the plugin share, where a provider responds as most do not.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { OidcClient } from "../../../src/oidc/client.ts";
import { OidcError } from "../../../src/oidc/failure.ts";
import { OidcProvider } from "../../../src/oidc/provider.ts";
import { clientId, clientSecret, LyingProvider } from "./lying-provider.ts";

let provider: LyingProvider;
let now = Date.now();
const sent: { url: string; headers: Readonly<Record<string, string>> }[] = [];

beforeAll(async () => {
  provider = await LyingProvider.start();
});
afterAll(() => provider.stop());
beforeEach(() => {
  provider.lie = {};
  provider.intercept = () => null;
  provider.document = {};
  sent.length = 0;
  now = Date.now();
});

const open = (secret = clientSecret, retryAfterMs = 0) =>
  OidcClient.open({
    provider: new OidcProvider({
      issuer: provider.issuer,
      clock: { now: () => now },
      retryAfterMs,
      send: (url, { method, headers, body }) => {
        sent.push({ url, headers });
        const form = body instanceof URLSearchParams ? { body } : {};
        return fetch(url, { method, headers, redirect: "manual", ...form });
      },
    }),
    clientId,
    clientSecret: secret,
    clientAuth: "basic",
  });

const grant = {
  code: "canary-code",
  redirectUri: "http://127.0.0.1/callback",
  codeVerifier: "canary-verifier",
  nonce: "n",
};
const failureOf = (promise: Promise<unknown>): Promise<OidcError> =>
  promise.then(
    () => new OidcError("refused", "it was accepted"),
    (error: OidcError) => error,
  );

test("the reason in the body counts although the head has a challenge", async () => {
  provider.intercept = (path) =>
    path === "/token"
      ? Response.json(
          { error: "invalid_client", error_description: "canary-verifier is of no use" },
          { status: 401, headers: { "www-authenticate": 'Basic realm="id"' } },
        )
      : null;
  const failure = await failureOf((await open()).exchange(grant));
  expect(failure).toMatchObject({
    kind: "refused",
    message: "the token endpoint responded with 401, invalid_client: *** is of no use",
    details: { status: 401, error: "invalid_client" },
  });
});

test("hyphens and underscores of a secret are sent as they are", async () => {
  await failureOf((await open("a-b_c.d:é")).exchange(grant));
  const { headers } = sent.findLast(({ url }) => url.endsWith("/token"))!;
  const [, credentials = ""] = headers["authorization"]!.split(" ");
  expect(Buffer.from(credentials, "base64").toString()).toBe(`${clientId}:a-b_c.d%3A%C3%A9`);
});

test.each([
  ["a signed document, whose signature the gateway does not check", "application/jwt", "a.b.c"],
  ["a page", "text/html", "<html>"],
  ["a list", "application/json", "[]"],
])("userinfo that is %s is rejected", async (_, type, body) => {
  provider.intercept = (path) =>
    path === "/userinfo" ? new Response(body, { headers: { "content-type": type } }) : null;
  expect(await failureOf((await open()).userinfo("token", "subject-1"))).toMatchObject({
    kind: "refused",
    message: "the userinfo endpoint responded with 200 and no claims",
  });
});

test.each([
  ["two issuers", "code=x&iss=ISSUER&iss=https://other.example", "refused"],
  ["another issuer", "code=x&iss=https://other.example", "refused"],
  ["two codes", "code=x&code=y", "refused"],
  ["an id token of the hybrid flow", "code=x&id_token=a.b.c", "refused"],
  ["a refusal beside a code", "code=x&error=access_denied", "denied"],
  ["an outage", "error=temporarily_unavailable", "unusable"],
])("a callback with %s is rejected", async (_, query, kind) => {
  const parameters = new URLSearchParams(query.replace("ISSUER", provider.issuer));
  expect(await failureOf((await open()).codeOf(parameters))).toMatchObject({ kind });
});

test("a failure is remembered for a while, but not when the clock is set back", async () => {
  provider.intercept = () => new Response("", { status: 500 });
  const { provider: openProvider } = await open(clientSecret, 2000);
  const asked = async () => {
    await failureOf(openProvider.metadata());
    return sent.length;
  };
  expect([await asked(), await asked()]).toEqual([1, 1]);
  now += 2000;
  expect(await asked()).toBe(2);
  now -= 3_600_000;
  expect(await asked()).toBe(3);
});

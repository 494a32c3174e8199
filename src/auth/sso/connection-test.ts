// Tests the settings of single sign-on against the provider without a sign-in, and describes problems.
import { isDocument } from "../../control/body.ts";
import { isLoopbackHost, quote, type RequestLimits } from "../../control/outgoing-request.ts";
import type { Sso } from "../../model/sso.ts";
import { type Client, requestTokens } from "./code-exchange.ts";
import { SsoError } from "./failure.ts";
import { fetchDocument, type Metadata, parseMetadata, Provider } from "./provider.ts";
import type { Clock } from "../../clock.ts";

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Text for the user. */
  readonly message: string;
}

export interface TestReport {
  /** Whether every check passed. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
}

export interface TestInput {
  readonly sso: Sso;
  /** Throws an SsoError when the secret cannot be read. */
  readonly client: () => Client;
  readonly publicUrl: string | null;
  readonly redirectUri: string;
  readonly limits: RequestLimits;
  readonly clock: Clock;
}

/** Reports problems at the provider instead of throwing. */
export async function testConnection(input: TestInput): Promise<TestReport> {
  const checks = [checkSettings(input.sso), ...(await checkProvider(input)), checkPublicUrl(input)];
  return { ok: checks.every(({ ok }) => ok), checks };
}

function checkSettings({ issuer, client_id, enabled }: Sso): Check {
  const missing = [issuer === "" ? "issuer" : "", client_id === "" ? "client_id" : ""];
  const names = missing.filter((name) => name !== "").join(" and ");
  if (names !== "") return bad("settings", `${names} must be set`);
  return good("settings", enabled ? "Single sign-on is on" : "Complete, but enabled is false");
}

/** Each step needs the previous one, so the first failure ends the list. */
async function checkProvider({ sso, client, redirectUri, limits, clock }: TestInput) {
  const checks: Check[] = [];
  if (sso.issuer === "" || sso.client_id === "") return checks;
  const step = async <T>(
    name: string,
    run: () => Promise<T> | T,
    message: (value: T) => string,
  ) => {
    try {
      const value = await run();
      checks.push(good(name, message(value)));
      return value;
    } catch (error) {
      if (!(error instanceof SsoError)) throw error;
      checks.push(bad(name, error.message));
      return null;
    }
  };
  const document = await step(
    "discovery",
    () => fetchDocument(sso.issuer, limits),
    () => "The issuer serves its discovery document",
  );
  if (document === null || !isDocument(document)) return checks;
  const named = quote(document["issuer"], []);
  if (document["issuer"] !== sso.issuer) {
    const message = `The provider calls itself "${named}"; issuer must be identical, including a trailing slash`;
    return [...checks, bad("issuer", message)];
  }
  checks.push(good("issuer", "The provider names itself as configured"));
  const metadata = await step(
    "endpoints",
    () => parseMetadata(document, sso.issuer),
    () => "The provider has authorization, token and key endpoints",
  );
  if (metadata === null) return checks;
  const provider = new Provider(sso.issuer, { clock, limits });
  await step(
    "keys",
    () => provider.keys(),
    (keys) => `${keys.jwks().keys.length} keys were loaded`,
  );
  checks.push(checkChallenge(metadata));
  const credentials = await step(
    "client",
    () => tryCredentials({ metadata, client: client(), redirectUri, limits }),
    (message) => message,
  );
  if (credentials !== null) checks.push(checkTokenAuth(metadata, sso));
  return checks;
}

function checkChallenge({ challengeMethods }: Metadata): Check {
  if (challengeMethods === null)
    return good("pkce", "The provider does not say whether it supports PKCE with S256");
  return challengeMethods.includes("S256")
    ? good("pkce", "The provider supports PKCE with S256")
    : bad("pkce", "The provider does not support PKCE with S256");
}

function checkTokenAuth({ tokenAuthMethods }: Metadata, { client_secret, token_auth }: Sso): Check {
  const wanted = client_secret === null ? "none" : `client_secret_${token_auth}`;
  // Without the list, the default is basic (OpenID Connect Discovery 1.0, section 3), but not every provider complies.
  if (tokenAuthMethods === null || tokenAuthMethods.includes(wanted))
    return good("token_auth", `${wanted} is used`);
  const offered = tokenAuthMethods.map((method) => quote(method, [])).join(", ");
  return bad("token_auth", `${wanted} is used, but the provider offers ${offered}`);
}

/** Sends an invalid code: a provider that rejects the code instead of the client has accepted the client. */
async function tryCredentials(target: {
  readonly metadata: Metadata;
  readonly client: Client;
  readonly redirectUri: string;
  readonly limits: RequestLimits;
}): Promise<string> {
  const grant = {
    code: `connection-test-${crypto.randomUUID()}`,
    codeVerifier: "connection-test-connection-test-connection-test",
    redirectUri: target.redirectUri,
  };
  const { status, body } = await requestTokens(grant, target);
  const error = isDocument(body) ? quote(body["error"], [target.client.secret]) : "";
  if (error === "invalid_grant") return "The provider accepts the client id and secret";
  if (["invalid_client", "unauthorized_client"].includes(error) || status === 401)
    throw new SsoError(
      "provider_error",
      `The provider rejects the client id, the secret or the way it is sent (${error || status})`,
    );
  return `The client id and secret cannot be verified without a sign-in (${error || status})`;
}

function checkPublicUrl({ publicUrl, redirectUri }: TestInput): Check {
  const register = `register ${redirectUri} at the provider`;
  if (publicUrl !== null) return good("public_url", `public_url is set: ${register}`);
  const isLocal = isLoopbackHost(URL.parse(redirectUri)?.hostname ?? "");
  return isLocal
    ? good("public_url", `public_url is not needed on localhost: ${register}`)
    : bad(
        "public_url",
        `public_url is not set, so the redirect URL depends on each request: ${register}`,
      );
}

const good = (name: string, message: string): Check => ({ name, ok: true, message });
const bad = (name: string, message: string): Check => ({ name, ok: false, message });

// Tests the settings of single sign-on against the provider without a sign-in, and describes problems.
import type { Sso } from "../../model/sso.ts";
import { isLoopbackHost } from "../../net/loopback.ts";
import { quote } from "../../net/quote.ts";
import type { OidcClient } from "../../oidc/client.ts";
import { OidcError } from "../../oidc/failure.ts";
import {
  fetchDiscovery,
  type Metadata,
  metadataOf,
  type OidcProvider,
} from "../../oidc/provider.ts";
import { SsoError, toSsoError } from "./failure.ts";

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
  readonly provider: OidcProvider;
  /** Throws an SsoError when the secret cannot be read. */
  readonly client: (provider: OidcProvider) => Promise<OidcClient>;
  readonly publicUrl: string | null;
  readonly redirectUri: string;
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
async function checkProvider({ sso, provider, client, redirectUri }: TestInput) {
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
      checks.push(...problemOf(name, error));
      return null;
    }
  };
  const document = await step(
    "discovery",
    () => fetchDiscovery(provider),
    () => "The issuer serves its discovery document",
  );
  if (document === null) return checks;
  checks.push(good("issuer", "The provider names itself as configured"));
  const metadata = await step(
    "endpoints",
    () => metadataOf(document, sso.issuer),
    () => "The provider has authorization, token and key endpoints",
  );
  if (metadata === null) return checks;
  await step(
    "keys",
    () => provider.keys(),
    (keys) => `${keys.jwks().keys.length} keys were loaded`,
  );
  checks.push(checkChallenge(metadata));
  const credentials = await step(
    "client",
    async () => await tryCredentials(await client(provider), redirectUri),
    (message) => message,
  );
  if (credentials !== null) checks.push(checkTokenAuth(metadata, sso));
  return checks;
}

function problemOf(name: string, error: unknown): Check[] {
  const named = error instanceof OidcError ? error.details.namedIssuer : undefined;
  if (named === undefined) {
    const known = toSsoError(error);
    if (known === null) throw error;
    return [bad(name, known.message)];
  }
  const message = `The provider calls itself "${quote(named, [])}"; issuer must be identical, including a trailing slash`;
  return [good(name, "The issuer serves its discovery document"), bad("issuer", message)];
}

function checkChallenge({ code_challenge_methods_supported: methods }: Metadata): Check {
  if (methods === undefined)
    return good("pkce", "The provider does not say whether it supports PKCE with S256");
  return methods.includes("S256")
    ? good("pkce", "The provider supports PKCE with S256")
    : bad("pkce", "The provider does not support PKCE with S256");
}

function checkTokenAuth(
  { token_endpoint_auth_methods_supported: methods }: Metadata,
  { client_secret, token_auth }: Sso,
): Check {
  const wanted = client_secret === null ? "none" : `client_secret_${token_auth}`;
  // Without the list, the default is basic (OpenID Connect Discovery 1.0, section 3), but not every provider complies.
  if (methods === undefined || methods.includes(wanted))
    return good("token_auth", `${wanted} is used`);
  const offered = methods.map((method) => quote(method, [])).join(", ");
  return bad("token_auth", `${wanted} is used, but the provider offers ${offered}`);
}

/** Sends an invalid code: a provider that rejects the code instead of the client has accepted the client. */
async function tryCredentials(client: OidcClient, redirectUri: string): Promise<string> {
  const failure = await client
    .exchange({
      code: `connection-test-${crypto.randomUUID()}`,
      codeVerifier: "connection-test-connection-test-connection-test",
      redirectUri,
      nonce: "connection-test",
    })
    .then(
      () => null,
      (error: unknown) => error,
    );
  const details = failure instanceof OidcError ? failure.details : {};
  if (failure !== null && details.status === undefined) throw failure;
  const said = quote(details.error, []) || details.status;
  if (said === "invalid_grant") return "The provider accepts the client id and secret";
  if (said === "invalid_client" || said === "unauthorized_client" || details.status === 401)
    throw new SsoError(
      "provider_error",
      `The provider rejects the client id, the secret or the way it is sent (${said})`,
    );
  return `The client id and secret cannot be verified without a sign-in (${said})`;
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

// Exchanges the code for tokens at the provider's token endpoint; knows no claim.
import { isDocument } from "../../control/body.ts";
import { quote, type RequestLimits } from "../../control/outgoing-request.ts";
import { SsoError } from "./failure.ts";
import type { Metadata } from "./provider.ts";
import { askProvider, type ProviderResponse } from "./provider-request.ts";

/** How the gateway authenticates to the provider. */
export interface Client {
  readonly id: string;
  /** Null: a public client without a secret. */
  readonly secret: string | null;
  readonly auth: "basic" | "post";
}

export interface Grant {
  readonly code: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
}

export interface ExchangeTarget {
  readonly metadata: Metadata;
  readonly client: Client;
  readonly limits: RequestLimits;
}

/** The id token and the access token; throws an SsoError when one is missing. */
export async function exchangeCode(
  grant: Grant,
  target: ExchangeTarget,
): Promise<{ readonly idToken: string; readonly accessToken: string }> {
  const { status, body } = await requestTokens(grant, target);
  if (status !== 200 || !isDocument(body))
    throw new SsoError("provider_error", refusalOf({ status, body }, grant, target));
  // Loaded on first use, which keeps the start fast.
  const { OAuth2Tokens } = await import("arctic");
  const tokens = new OAuth2Tokens(body);
  try {
    return { idToken: tokens.idToken(), accessToken: tokens.accessToken() };
  } catch {
    throw new SsoError(
      "provider_error",
      "the response of the token endpoint has no id token or no access token",
    );
  }
}

/** The response of the token endpoint. Not through arctic, whose requests have no limits and follow redirects. */
export function requestTokens(
  grant: Grant,
  { metadata, client, limits }: ExchangeTarget,
): Promise<ProviderResponse> {
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code: grant.code,
    redirect_uri: grant.redirectUri,
    code_verifier: grant.codeVerifier,
  });
  const isBasic = client.secret !== null && client.auth === "basic";
  if (!isBasic) form.set("client_id", client.id);
  if (client.secret !== null && !isBasic) form.set("client_secret", client.secret);
  const headers = isBasic ? { authorization: basic(client.id, client.secret ?? "") } : {};
  return askProvider({ url: metadata.tokenEndpoint, form, headers }, limits);
}

/** RFC 6749 2.3.1: id and secret are form-encoded first, so that a colon in one of them is safe. */
function basic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ x: text }).toString().slice(2);
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString("base64")}`;
}

function refusalOf(response: ProviderResponse, grant: Grant, { client }: ExchangeTarget): string {
  const body = isDocument(response.body) ? response.body : {};
  const secrets = [grant.code, grant.codeVerifier, client.secret];
  const words = [quote(body["error"], secrets), quote(body["error_description"], secrets)];
  const reason = words.filter((word) => word !== "").join(": ");
  return `the token endpoint responded with ${response.status}${reason === "" ? "" : `, ${reason}`}`;
}

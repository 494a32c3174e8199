// Asks the provider for claims that it leaves out of the id token; knows nothing of what they are for.
import { isDocument } from "../../body.ts";
import { SsoError } from "./failure.ts";
import type { Claims } from "./id-token.ts";
import { askProvider, type RequestLimits } from "./provider-request.ts";

interface Question {
  readonly endpoint: string;
  readonly accessToken: string;
  readonly limits: RequestLimits;
}

/** The claims and those that the provider adds; what the signed token says is never replaced. */
export async function withUserinfo(claims: Claims, question: Question): Promise<Claims> {
  const { endpoint, accessToken, limits } = question;
  const headers = { authorization: `Bearer ${accessToken}` };
  const { status, body } = await askProvider({ url: endpoint, headers }, limits);
  if (status !== 200 || !isDocument(body))
    throw new SsoError("provider_error", `the userinfo endpoint answered ${status} and no claims`);
  // The answer is about whoever the access token belongs to, which an attacker may have exchanged (OIDC Core 5.3.2).
  if (body["sub"] !== claims.sub)
    throw new SsoError("invalid_token", "the userinfo endpoint told about somebody else");
  const { email, email_verified, ...rest } = body;
  const known = { ...rest, ...claims };
  // Address and proof belong together: half of a pair must not be completed from the other place.
  return claims["email"] === undefined ? { ...known, email, email_verified } : known;
}

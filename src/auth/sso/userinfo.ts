// Requests claims from the userinfo endpoint; knows no use of them.
import { isDocument } from "../../control/body.ts";
import type { RequestLimits } from "../../control/outgoing-request.ts";
import { SsoError } from "./failure.ts";
import type { Claims } from "./id-token.ts";
import { askProvider } from "./provider-request.ts";

interface Question {
  readonly endpoint: string;
  readonly accessToken: string;
  readonly limits: RequestLimits;
}

/** The claims of the signed token, which always win, with those of the userinfo endpoint. */
export async function withUserinfo(claims: Claims, question: Question): Promise<Claims> {
  const { endpoint, accessToken, limits } = question;
  const headers = { authorization: `Bearer ${accessToken}` };
  const { status, body } = await askProvider({ url: endpoint, headers }, limits);
  if (status !== 200 || !isDocument(body))
    throw new SsoError(
      "provider_error",
      `the userinfo endpoint responded with ${status} and no claims`,
    );
  // An attacker may have swapped the access token for that of another subject (OIDC Core 5.3.2).
  if (body["sub"] !== claims.sub)
    throw new SsoError("invalid_token", "the userinfo endpoint returned claims of another subject");
  const { email, email_verified, ...rest } = body;
  const known = { ...rest, ...claims };
  // email and email_verified must come from the same source.
  return claims["email"] === undefined ? { ...known, email, email_verified } : known;
}

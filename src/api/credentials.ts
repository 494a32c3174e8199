// What a request brings to prove who sent it; takes tokens out of addresses before anybody sees them. Judges nothing.
import type { Credentials } from "../control/auth/authenticator.ts";
import type { AccessRow } from "./access.ts";

const PARAMETER = "access_token";

export class CredentialReader {
  readonly #accessTokens = new WeakMap<Request, string>();

  /** The same request without `access_token` in its address: nothing behind this can log it or hand it on. */
  receive(request: Request): Request {
    if (!request.url.includes(PARAMETER) && !request.url.includes("%")) return request;
    const url = URL.parse(request.url);
    const tokens = url?.searchParams.getAll(PARAMETER) ?? [];
    if (url === null || tokens.length === 0) return request;
    url.searchParams.delete(PARAMETER);
    const clean = new Request(url, request);
    // Of several none is the right one; a token holds no space.
    this.#accessTokens.set(clean, new Set(tokens).size === 1 ? (tokens[0] ?? "") : " ");
    return clean;
  }

  /** The token from the query counts only where browsers can set no headers. */
  read(request: Request, row: AccessRow): Credentials {
    const { headers } = request;
    return {
      authorization: headers.get("authorization"),
      adminToken: headers.get("x-admin-token"),
      cookie: headers.get("cookie"),
      accessToken: row.stream === true ? (this.#accessTokens.get(request) ?? null) : null,
    };
  }
}

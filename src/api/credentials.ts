// Reads the credentials of a management request and removes tokens from its URL before anything logs it. Verifies nothing.
import type { Credentials } from "../auth/authenticator.ts";
import type { AccessRow } from "./access.ts";

const PARAMETER = "access_token";

export class CredentialReader {
  readonly #accessTokens = new WeakMap<Request, string>();

  /** The same request without `access_token` in its URL, so that no later step can log or forward it. */
  receive(request: Request): Request {
    if (!request.url.includes(PARAMETER) && !request.url.includes("%")) return request;
    const url = URL.parse(request.url);
    const tokens = url?.searchParams.getAll(PARAMETER) ?? [];
    if (url === null || tokens.length === 0) return request;
    url.searchParams.delete(PARAMETER);
    const clean = new Request(url, request);
    // Several tokens are ambiguous; a token holds no space.
    this.#accessTokens.set(clean, new Set(tokens).size === 1 ? (tokens[0] ?? "") : " ");
    return clean;
  }

  /** A token in the query is valid only on event streams, where browsers cannot set headers. */
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

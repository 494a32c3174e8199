// Failures of exchanges with an OpenID provider; knows neither library nor caller.

/**
 * `unreachable`: no complete response; `unusable`: the provider fails, or its document or keys are not valid; `denied`: the
 * user or the provider denied the sign-in; `refused`: the provider rejects what was sent, or its response lacks something;
 * `invalid`: a token or its claims cannot be trusted.
 */
export type OidcFailure = "unreachable" | "unusable" | "denied" | "refused" | "invalid";

export interface OidcErrorDetails {
  /** Status of the response. */
  readonly status?: number;
  /** Error code of OAuth 2.0, as the provider wrote it. */
  readonly error?: string | undefined;
  /** The issuer that another provider's discovery document names. */
  readonly namedIssuer?: unknown;
}

/** The message is for the log: it has no secrets. */
export class OidcError extends Error {
  readonly kind: OidcFailure;
  readonly details: OidcErrorDetails;

  constructor(kind: OidcFailure, message: string, details: OidcErrorDetails = {}) {
    super(message);
    this.kind = kind;
    this.details = details;
  }

  /** Whether the next attempt may succeed without a change. */
  get isOutage(): boolean {
    return this.kind === "unreachable" || this.kind === "unusable";
  }
}

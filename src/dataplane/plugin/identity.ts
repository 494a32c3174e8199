// Who has sent a request, as far as plugins know; knows no request.
import type { ConsumerView, CredentialView } from "../../pdk/context.ts";

/** Who the client is. */
export interface Identity {
  readonly consumer: ConsumerView | null;
  readonly credential: CredentialView | null;
  readonly credentialId: string | null;
  readonly isAnonymous: boolean;
  readonly isAuthenticated: boolean;
  readonly groups: readonly string[];
}

/** Of everybody before authentication. */
export const NOBODY: Identity = {
  consumer: null,
  credential: null,
  credentialId: null,
  isAnonymous: false,
  isAuthenticated: false,
  groups: [],
};

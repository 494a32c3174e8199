// Who has sent a request, as far as plugins know; knows no request.
import type { RequestContext } from "../../pdk/context.ts";

/** Who the client is, as plugins see it. */
export type Identity = Pick<
  RequestContext,
  "consumer" | "credential" | "credentialId" | "isAnonymous" | "isAuthenticated" | "groups"
>;

/** Of everybody before authentication. */
export const NOBODY: Identity = {
  consumer: null,
  credential: null,
  credentialId: null,
  isAnonymous: false,
  isAuthenticated: false,
  groups: [],
};

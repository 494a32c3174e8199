// The control plane over the tables of one store; knows nothing of their content.
import {
  type ControlPlane,
  type ControlPlaneOptions,
  createControlPlane,
} from "../control-plane.ts";
import { CredentialUseTable } from "../store/credentials.ts";
import { HealthOverrideRow } from "../store/health-overrides.ts";
import { DiscoveryClaimTable } from "../store/discovery-claims.ts";
import { LocalCaRow } from "../store/local-ca.ts";
import { LoginFailureTable } from "../store/login-failures.ts";
import { RevisionTable } from "../store/revisions.ts";
import { RollupTable } from "../store/rollups.ts";
import { SessionTable } from "../store/sessions.ts";
import type { Store } from "../store/store.ts";
import { TokenTable } from "../store/tokens.ts";
import { TotpTable } from "../store/totp.ts";

/** The differences between a running gateway and an offline repair. Changes go to the store itself by default. */
export type ControlParts = Omit<
  ControlPlaneOptions,
  | "instanceId"
  | "store"
  | "auditStore"
  | "totpStore"
  | "sessionStore"
  | "tokenStore"
  | "revisionStore"
  | "credentialUseStore"
  | "loginFailureStore"
  | "overrideStore"
  | "localCaStore"
  | "claimStore"
  | "rollupStore"
> &
  Partial<Pick<ControlPlaneOptions, "instanceId" | "store">>;

export function createControl(store: Store, parts: ControlParts): ControlPlane {
  return createControlPlane({
    store,
    instanceId: store.instanceId,
    ...parts,
    notices: store.notices,
    auditStore: store.audit,
    totpStore: store.with((context) => new TotpTable(context)),
    sessionStore: store.with((context) => new SessionTable(context)),
    tokenStore: store.with((context) => new TokenTable(context)),
    revisionStore: store.with((context) => new RevisionTable(context)),
    overrideStore: store.with((context) => new HealthOverrideRow(context)),
    localCaStore: store.with((context) => new LocalCaRow(context)),
    loginFailureStore: store.with((context) => new LoginFailureTable(context)),
    claimStore: store.with((context) => new DiscoveryClaimTable(context)),
    credentialUseStore: store.with((context) => new CredentialUseTable(context)),
    rollupStore: store.with((context) => new RollupTable(context)),
  });
}

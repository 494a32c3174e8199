// What the control plane of a node has for its fleet, and of a gateway without one: nothing.
import type { Log } from "../log.ts";
import type { AuditLog } from "./audit.ts";
import type { Auth } from "../auth/auth.ts";
import type { LoginThrottle } from "../auth/throttle.ts";
import type { Changes } from "./change.ts";
import type { CredentialUse } from "./credential-use.ts";
import type { CutOff } from "./cut-off.ts";
import { FleetActivity } from "./fleet-activity.ts";
import type { FleetView } from "./fleet-view.ts";
import { NodeStreams } from "./node-streams.ts";
import { Nodes } from "./nodes.ts";

export interface FleetParts {
  /** The nodes with this configuration; null: there is only this one. */
  readonly fleet: FleetView | null;
  /** Sends the other nodes what happens here beside changes; null: there are none. */
  readonly fleetActivity: FleetActivity | null;
  readonly nodes: Nodes;
  /** Event streams of several nodes; null: there is only this one. */
  readonly nodeStreams: NodeStreams | null;
}

interface Access {
  readonly changes: Changes;
  readonly audit: AuditLog;
  readonly auth: Auth;
  readonly cutOff: CutOff;
  readonly throttle: LoginThrottle;
  readonly credentialUse: CredentialUse;
}

export function createFleetParts(
  {
    fleet = null,
    log,
  }: {
    readonly fleet?: FleetView | null;
    readonly log: Log;
  },
  access: Access,
): FleetParts {
  return {
    fleet,
    fleetActivity: fleet === null ? null : createActivity(fleet, log, access),
    nodeStreams: fleet === null ? null : new NodeStreams(fleet),
    nodes: new Nodes({ fleet, changes: access.changes, audit: access.audit }),
  };
}

function createActivity(
  fleet: FleetView,
  log: Log,
  { auth, cutOff, credentialUse, changes, audit, throttle }: Access,
): FleetActivity {
  return new FleetActivity({
    changes,
    audit,
    throttle,
    log,
    node: fleet.id,
    tokenUse: auth.tokenUse,
    credentialUse: credentialUse.times,
    onBeat: () => {
      if (cutOff.hasTurned()) auth.authenticator.recheck();
    },
  });
}

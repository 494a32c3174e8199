// What the control plane of a node has for its fleet, and of a gateway without one: nothing.
import type { Log } from "../log.ts";
import type { AuditLog } from "./audit.ts";
import type { Changes } from "./change.ts";
import type { CredentialUse } from "./credential-use.ts";
import type { CutOff } from "./cut-off.ts";
import { FleetActivity, type SharedFailures } from "./fleet-activity.ts";
import type { LastUse } from "./last-use.ts";
import type { FleetView } from "./fleet-view.ts";
import type { NodePlugins } from "./node-plugins.ts";
import { NodeStreams } from "./node-streams.ts";
import { Nodes } from "./nodes.ts";

export interface FleetOptions {
  /** The other nodes with this configuration; absent: there are none. */
  readonly fleet?: FleetView;
  /** What the nodes serve from their directories of plugins; absent: nodes report nothing. */
  readonly nodePlugins?: NodePlugins;
}

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
  readonly auth: {
    readonly tokenUse: LastUse;
    /** Asks again whether each open session is still valid. */
    readonly authenticator: { recheck(): void };
  };
  readonly cutOff: CutOff;
  readonly throttle: SharedFailures;
  readonly credentialUse: CredentialUse;
}

export function createFleetParts(
  { fleet: given, nodePlugins, log }: FleetOptions & { readonly log: Log },
  access: Access,
): FleetParts {
  const fleet = given ?? null;
  const { changes, audit } = access;
  return {
    fleet,
    fleetActivity: fleet === null ? null : createActivity(fleet, log, access),
    nodeStreams: fleet === null ? null : new NodeStreams(fleet),
    nodes: new Nodes({ fleet, plugins: nodePlugins ?? null, changes, audit }),
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

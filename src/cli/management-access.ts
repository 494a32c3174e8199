// Where the management API listens and who may reach it there, decided at the start; opens no socket and reads no file.
import type { AdminAccess, AdminNetworks } from "../control/admin-network.ts";
import type { Settings } from "../model/settings.ts";
import { isLoopbackHost } from "../net/loopback.ts";
import type { Log } from "../log.ts";
import { NETWORK_WORDS } from "./admin-networks.ts";
import { type Address, formatAddress } from "./flags.ts";
import type { ServeOptions } from "./serve.ts";
import { StartError } from "./start-error.ts";

export interface ManagementPlace {
  /** Not that of the options when what it needs is missing. */
  readonly hostname: Address["hostname"];
  readonly access: AdminAccess;
}

/** What there is already. */
export interface Known {
  /** Whether nothing has been served from the data directory yet. */
  readonly isNew: boolean;
  readonly users: number;
  /** `settings.admin_allowed_cidrs`, as it will be. */
  readonly networks: readonly string[];
}

type Given = Pick<ServeOptions, "admin" | "adminAllow" | "allowUnauthenticatedRemote">;

/**
 * An address that other machines reach needs networks that may use it, and users or the consent to have none. Without them a
 * new start throws a StartError. What was served before is served on in any case, with the management API on loopback.
 */
export function placeManagement(given: Given, known: Known): ManagementPlace {
  const { admin, adminAllow: allowed, allowUnauthenticatedRemote } = given;
  const wantsRemote = !isLoopbackHost(admin.hostname);
  const lacksNetworks = wantsRemote && allowed === null && known.networks.length === 0;
  const lacksUsers = wantsRemote && known.users === 0 && !allowUnauthenticatedRemote;
  if (!lacksNetworks && !lacksUsers)
    return { hostname: admin.hostname, access: { allowed, wantsRemote, heldBack: null } };
  if (known.isNew) throw new StartError(refusalOf(admin, { lacksNetworks, lacksUsers }));
  return {
    hostname: admin.hostname.includes(":") ? "::1" : "127.0.0.1",
    access: { allowed, wantsRemote, heldBack: reasonOf({ lacksNetworks, lacksUsers }) },
  };
}

interface Lacks {
  readonly lacksNetworks: boolean;
  readonly lacksUsers: boolean;
}

function refusalOf(admin: Address, { lacksNetworks, lacksUsers }: Lacks): string {
  const wanted = [
    lacksNetworks
      ? `give --admin-allow NETWORKS with the networks that may use the management API (${NETWORK_WORDS})`
      : null,
    lacksUsers
      ? "give --allow-unauthenticated-remote, because no user exists yet and every client in these networks could change the configuration"
      : null,
  ].filter((text) => text !== null);
  return `--admin ${formatAddress(admin)} can be reached from other machines: ${wanted.join(", and ")}; or listen on 127.0.0.1`;
}

/** Names no address: the status is open to all clients. */
function reasonOf({ lacksNetworks, lacksUsers }: Lacks): string {
  const wanted = [
    lacksNetworks
      ? "no networks are named that may use it: start with --admin-allow NETWORKS, or set settings.admin_allowed_cidrs and restart"
      : null,
    lacksUsers
      ? "no user exists: create one and restart, or start with --allow-unauthenticated-remote"
      : null,
  ].filter((text) => text !== null);
  return `the management API listens on loopback only and not on the address of --admin, because ${wanted.join("; and because ")}`;
}

/** Logs what the operator should know about who may use the management API. */
export function warnAboutAccess(networks: AdminNetworks, settings: Settings, log: Log): void {
  for (const warning of networks.warnings()) log.warn(warning);
  const { admin_allowed_cidrs: stored } = settings;
  const { allowed, wantsRemote } = networks.access;
  if (allowed === null || !wantsRemote || stored.length === 0) return;
  if (!Bun.deepEquals(new Set(stored), new Set(allowed)))
    log.warn("--admin-allow is not in force, because settings.admin_allowed_cidrs names networks", {
      in_force: stored,
    });
}

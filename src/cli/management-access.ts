// Decides at the start where the management API listens and which networks may reach it; opens no socket and reads no file.
import type { AdminAccess, AdminNetworks } from "../control/admin-network.ts";
import type { Settings } from "../model/settings.ts";
import { isLoopbackHost } from "../net/loopback.ts";
import type { Log } from "../log.ts";
import { NETWORK_WORDS } from "./admin-networks.ts";
import { type Address, formatAddress } from "./flags.ts";
import type { ServeOptions } from "./serve.ts";
import { StartError } from "./start-error.ts";

export interface ManagementPlace {
  /** Loopback instead of the option when its requirements are missing. */
  readonly hostname: Address["hostname"];
  readonly access: AdminAccess;
}

/** The stored state. */
export interface Known {
  /** Whether the data directory is new. */
  readonly isNew: boolean;
  readonly users: number;
  /** The new `settings.admin_allowed_cidrs`. */
  readonly networks: readonly string[];
}

type Given = Pick<ServeOptions, "admin" | "adminAllow" | "allowUnauthenticatedRemote">;

/**
 * An address that other machines reach requires allowed networks, and users or --allow-unauthenticated-remote. Without them
 * a first start throws a StartError. Later starts serve in any case, with the management API on loopback.
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

interface Missing {
  readonly lacksNetworks: boolean;
  readonly lacksUsers: boolean;
}

function refusalOf(admin: Address, { lacksNetworks, lacksUsers }: Missing): string {
  const wanted = [
    lacksNetworks
      ? `give --admin-allow NETWORKS with the networks that may use the management API (${NETWORK_WORDS})`
      : null,
    lacksUsers
      ? "give --admin-email (or --allow-unauthenticated-remote), because no user exists yet and every client in these networks could change the configuration"
      : null,
  ].filter((text) => text !== null);
  return `--admin ${formatAddress(admin)} can be reached from other machines: ${wanted.join(", and ")}; or listen on 127.0.0.1`;
}

/** Names no address: the status endpoint is public. */
function reasonOf({ lacksNetworks, lacksUsers }: Missing): string {
  const wanted = [
    lacksNetworks
      ? "no networks are allowed to use it: start with --admin-allow NETWORKS, or set settings.admin_allowed_cidrs and restart"
      : null,
    lacksUsers
      ? "no user exists: start with --admin-email, or create one and restart, or start with --allow-unauthenticated-remote"
      : null,
  ].filter((text) => text !== null);
  return `the management API listens on loopback only and not on the address of --admin, because ${wanted.join("; and because ")}`;
}

/** Warns about the access to the management API. */
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

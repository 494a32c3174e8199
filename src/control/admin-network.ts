// Which networks may use the management API, and which changes of them are rejected; knows no HTTP and no socket.
import { ApiError } from "../model/error.ts";
import type { Settings } from "../model/settings.ts";
import { compileCidrs, coversAllAddresses } from "../net/cidr.ts";
import { isLoopbackAddress } from "../net/loopback.ts";
import type { Draft } from "./draft.ts";
import type { Actor } from "./principal.ts";
import { describeProblem } from "./reference.ts";

/** RFC 1918, unique local addresses (RFC 4193) and loopback. */
export const privateNetworks: readonly string[] = [
  ...["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"],
  ...["fc00::/7", "127.0.0.0/8", "::1/128"],
];
export const allNetworks: readonly string[] = ["0.0.0.0/0", "::/0"];

/** The access to the management API, as decided at the start. */
export interface AdminAccess {
  /** Networks of --admin-allow; null: the flag is absent. */
  readonly allowed: readonly string[] | null;
  /** Whether other machines reach the configured address. */
  readonly wantsRemote: boolean;
  /** Why the management API listens on loopback instead of that address; null: it listens there. */
  readonly heldBack: string | null;
}

/** For a management API that only this machine can reach. */
export const localAccess: AdminAccess = { allowed: null, wantsRemote: false, heldBack: null };

/** local: it listens on loopback; held_back: the same, although another address is configured. */
export type AdminAccessState = "local" | "held_back" | "restricted" | "any";

const ANY =
  "every address may use the management API: set networks in settings.admin_allowed_cidrs or --admin-allow";

export class AdminNetworks {
  readonly access: AdminAccess;
  readonly #settings: () => Settings;
  #compiledFor: readonly string[] = [];
  #isListed: (address: string) => boolean = () => false;

  /** `settings`: the current ones. */
  constructor(access: AdminAccess, settings: () => Settings) {
    this.access = access;
    this.#settings = settings;
  }

  /** Whether a client with this socket address may use the management API. */
  isAllowed(address: string): boolean {
    const networks = this.inForce();
    // Fails closed: an address that other machines reach requires configured networks.
    if (networks.length === 0) return !this.#isRemote || isLoopbackAddress(address);
    if (networks !== this.#compiledFor) {
      this.#compiledFor = networks;
      this.#isListed = compileCidrs(networks);
    }
    return this.#isListed(address);
  }

  isOwnMachine(address: string): boolean {
    return isLoopbackAddress(address);
  }

  /** Those of the settings, or else of the start; empty: none. A listener on loopback needs none. */
  inForce({ admin_allowed_cidrs: stored } = this.#settings()): readonly string[] {
    if (stored.length > 0) return stored;
    return this.#isRemote ? (this.access.allowed ?? []) : [];
  }

  state(): AdminAccessState {
    if (this.access.heldBack !== null) return "held_back";
    if (!this.access.wantsRemote) return "local";
    return coversAllAddresses(this.inForce()) ? "any" : "restricted";
  }

  /** One sentence each, without addresses: the status is open to all clients. */
  warnings(): readonly string[] {
    const { heldBack } = this.access;
    if (heldBack !== null) return [heldBack];
    return this.state() === "any" ? [ANY] : [];
  }

  /** Throws a 403 for a client whose network was removed from the list since the request was admitted. */
  requireAllowed(by: Actor): void {
    if (by.address === "" || this.isAllowed(by.address)) return;
    throw new ApiError(403, "this address may not use the management API");
  }

  /**
   * Throws a 409 for a change that leaves a remote address without a restriction, or that locks out its own client, unless
   * it is forced.
   */
  checkChange(draft: Draft, { by, force }: { readonly by: Actor; readonly force: boolean }): void {
    const before = this.inForce(draft.base.settings);
    const after = this.inForce(draft.config.settings);
    if (draft.base.settings === draft.config.settings || Bun.deepEquals(before, after)) return;
    if (after.length === 0) {
      if (this.#isRemote) throw refusal(draft, MUST_NAME);
      return;
    }
    if (!force && by.address !== "" && !compileCidrs(after)(by.address))
      throw refusal(
        draft,
        `would lock out ${by.address}, the client of this request; ?force=1 makes the change anyway`,
      );
    if (this.#isRemote && coversAllAddresses(after) && !coversAllAddresses(before)) draft.warn(ANY);
  }

  /** Whether other machines reach its address. */
  get #isRemote(): boolean {
    return this.access.wantsRemote && this.access.heldBack === null;
  }
}

const MUST_NAME =
  "must hold a network, because the management API listens on an address that other machines reach and the gateway was started without --admin-allow; 0.0.0.0/0 and ::/0 allow all";

function refusal(draft: Draft, message: string): ApiError {
  const at = { collection: "settings", id: "", path: "admin_allowed_cidrs" } as const;
  return new ApiError(409, describeProblem({ ...at, message, status: 409 }, draft));
}

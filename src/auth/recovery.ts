// Recovery for the owner of the data directory without credentials: passwords, the admin token, allowed networks; knows no HTTP.
import type { ControlPlane } from "../control-plane.ts";
import { hashPassword } from "../crypto/password.ts";
import { ApiError } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Listener } from "../model/listener.ts";
import type { User } from "../model/user.ts";
import { cidrProblem } from "../net/cidr.ts";
import { checkPassword, createPassword } from "./password.ts";
import { privateNetworks } from "../control/admin-network.ts";
import { findUser } from "./users.ts";
import type { KeyRequest, KeyRotated, KeyRotation } from "../control/key-rotation.ts";
import type { Actor, Role } from "../control/principal.ts";
import { unboundSentence } from "../model/unbound-port.ts";
import { labelOf } from "../control/reference.ts";

/** A person on the machine itself. */
const person: Actor = { actor: "local", method: "local", address: "", sessionId: null };

export interface PasswordReset {
  readonly email: string;
  /** Null: generate one. */
  readonly password: string | null;
  /** Null: the role does not change. */
  readonly role: Role | null;
}

export interface ResetResult {
  readonly email: string;
  readonly role: Role;
  /** The generated password, returned only here; null when it was given. */
  readonly password: string | null;
  /** Whether the user had a second factor, which was removed. */
  readonly had_second_factor: boolean;
}

export interface IssuedToken {
  readonly token: string;
  readonly fingerprint: string;
  /** Whether it replaced another one, which is invalid now. */
  readonly replaced: boolean;
}

export interface NetworksReset {
  /** Networks to add to the allowed ones; empty: those of the start apply. */
  readonly allow: readonly string[];
}

export interface NetworksResult {
  /** The allowed networks from now on; empty: all. */
  readonly networks: readonly string[];
  /** The allowed networks before; empty: all. */
  readonly before: readonly string[];
  /** Whether the gateway listens on loopback until it is restarted. */
  readonly restart_needed: boolean;
}

export interface ListenerChange {
  /** Null: only list them. */
  readonly name: string | null;
  /** Null: delete it. */
  readonly change: Partial<Pick<Listener, "address" | "port" | "enabled">> | null;
}

export interface ListenerLine extends Pick<Listener, "name" | "protocol" | "address" | "port"> {
  /** `listens`, `disabled`, or why it does not listen. */
  readonly state: string;
}

const MAX_NAMES = 10;

export class Recovery {
  readonly #control: ControlPlane;
  readonly #keyRotation: KeyRotation;

  constructor(control: ControlPlane, keyRotation: KeyRotation) {
    this.#control = control;
    this.#keyRotation = keyRotation;
  }

  /** Encrypts all secrets with another key. */
  rotateKey(request: KeyRequest): Promise<KeyRotated> {
    return this.#keyRotation.rotate(request, person);
  }

  /** The root of the local CA, PEM, which is created when there is none. */
  async readLocalCa(
    _: Readonly<Record<string, never>> = {},
  ): Promise<{ readonly certificate: string }> {
    return { certificate: await this.#control.acme.localCa.ensureRoot() };
  }

  /** Restores the access of a user: new password, enabled, no second factor, no sessions. */
  async resetPassword({ email, password, role }: PasswordReset): Promise<ResetResult> {
    const { changes, secondFactors, sessions, audit } = this.#control;
    const { id, name } = findIn(changes.config, email);
    if (password !== null) checkPassword(password, [email, name]);
    const chosen = password ?? createPassword();
    const password_hash = await hashPassword(chosen);
    const { value: user } = await changes.run({
      by: person,
      dryRun: false,
      mutate: (draft): User => {
        const old = findIn(draft.config, email);
        const enabled = { password_hash, enabled: true, role: role ?? old.role };
        const next = { ...old, ...enabled, updated_at: draft.stamp() };
        draft.put("users", next);
        draft.setPath(id, "");
        const label = labelOf(draft.config, { collection: "users", id });
        draft.summary = `reset the password of ${label} on the machine itself`;
        return next;
      },
    });
    const hadSecondFactor = await changes.record(() => secondFactors.remove(user.id));
    sessions.endOfUser(user.id);
    audit.record({
      ...person,
      action: "reset_password",
      kind: "user",
      result: "ok",
      revision: null,
      object_id: user.id,
      object_name: user.email,
      detail: { role: user.role, second_factor_removed: hadSecondFactor },
    });
    return {
      email: user.email,
      role: user.role,
      password: password === null ? chosen : null,
      had_second_factor: hadSecondFactor,
    };
  }

  /** Creates the admin token; replaces an existing one only if requested. */
  async issueToken({ rotate }: { readonly rotate: boolean }): Promise<IssuedToken> {
    const { auth } = this.#control;
    const { exists, fingerprint } = auth.adminTokenStatus();
    if (exists && !rotate)
      throw new ApiError(
        409,
        `an admin token exists (fingerprint ${fingerprint}) and cannot be shown again; --rotate replaces it`,
      );
    const made = await auth.rotateAdminToken(person);
    return { token: made.token, fingerprint: made.fingerprint, replaced: exists };
  }

  /** Allows every network to use the management API again, or adds some, after a lockout. */
  async resetNetworks({ allow }: NetworksReset): Promise<NetworksResult> {
    const { changes, adminNetworks } = this.#control;
    if (changes.isReadOnly)
      throw new ApiError(
        409,
        "the configuration comes from a file: change admin_allowed_cidrs in its settings; the gateway applies it within a second",
      );
    const wrong = allow.find((cidr) => cidrProblem(cidr) !== null);
    if (wrong !== undefined) throw new ApiError(400, `"${wrong}" ${cidrProblem(wrong)}`);
    const { value } = await changes.run({
      by: person,
      dryRun: false,
      mutate: (draft): NetworksResult => {
        const old = draft.config.settings;
        const before = adminNetworks.inForce(old);
        const next = { ...old, admin_allowed_cidrs: this.#moreNetworks(before, allow) };
        if (!Bun.deepEquals(next, old)) {
          draft.putSingleton("settings", { ...next, updated_at: draft.stamp() });
          draft.summary = "allow more networks to use the management API, on the machine itself";
        }
        const { heldBack } = adminNetworks.access;
        return {
          networks: adminNetworks.inForce(next),
          before,
          restart_needed: heldBack !== null,
        };
      },
    });
    return value;
  }

  /** All listeners, after the change of one. */
  async changeListener({ name, change }: ListenerChange): Promise<{
    readonly listeners: readonly ListenerLine[];
    readonly revision: number;
  }> {
    const { changes, resources } = this.#control;
    if (name !== null && changes.isReadOnly)
      throw new ApiError(
        409,
        "the configuration comes from a file: change its listeners; the gateway applies it within a second",
      );
    const options = {
      by: person,
      dryRun: false,
      cascade: false,
      conditions: { match: null, onlyIfAbsent: false },
    };
    if (name !== null && change === null) await resources.listeners.remove(name, options);
    else if (name !== null) await resources.listeners.patch(name, change, options);
    const { workers, unbound = [] } = this.#control.rolloutStatus();
    const stateOf = ({ id, enabled }: Listener) => {
      if (!enabled) return "disabled";
      if (workers === 0) return "the gateway is stopped";
      const problems = unbound.filter((port) => port.id === id).map(unboundSentence);
      return problems.length === 0 ? "listens" : problems.join("; ");
    };
    const listeners = [...changes.config.listeners.values()].map((listener) => {
      const { name: own, protocol, address, port } = listener;
      return { name: own, protocol, address, port, state: stateOf(listener) };
    });
    return { listeners, revision: changes.revision };
  }

  /** The new list of the settings. */
  #moreNetworks(inForce: readonly string[], allow: readonly string[]): string[] {
    const { allowed, wantsRemote } = this.#control.adminNetworks.access;
    const needsNetworks = wantsRemote && allowed === null;
    if (allow.length === 0 && !needsNetworks) return [];
    // On loopback an empty list allows all clients: an added network would exclude all others.
    if (inForce.length === 0 && !wantsRemote) return [];
    return [...new Set([...inForce, ...(allow.length === 0 ? privateNetworks : allow)])];
  }
}

function findIn({ users }: GatewayConfig, email: string): User {
  const user = findUser(users, email);
  if (user !== null) return user;
  if (users.size === 0)
    throw new ApiError(
      404,
      "no user exists, so no password is required: create the first one with the management API",
    );
  const names = [...users.values()].slice(0, MAX_NAMES).map((known) => known.email);
  const more = users.size > MAX_NAMES ? ` and ${users.size - MAX_NAMES} more` : "";
  throw new ApiError(404, `user "${email}" does not exist; users: ${names.join(", ")}${more}`);
}

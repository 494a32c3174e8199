// An entry of the fleet's log: one change with its data, signed; knows no database and no node's state.
import { createHmac, timingSafeEqual } from "node:crypto";
import type { ChangeEvent } from "../control/change-contract.ts";
import { ApiError } from "../model/error.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import {
  type CollectionName,
  type ConfigChange,
  mapCollections,
  type ResourceChange,
  singletonNames,
} from "../model/gateway-config.ts";
import {
  type ChangedParts,
  ENTRY_FORMAT,
  type FormatNeed,
  formatNeed,
  withNewer,
  withoutNewer,
} from "./entry-format.ts";

/** What nodes need of a change to make it their own. */
export type EntryChange = Pick<
  ChangeEvent,
  "revision" | "at" | "actor" | "summary" | "change" | "by" | "audit"
>;

export interface EntryContent {
  /** Null: facts without a change of the configuration. */
  readonly changed: EntryChange | null;
  readonly facts: readonly Fact[];
  /**
   * Id of the entry before it; null: none. Signed: entries of another history of the fleet, as before the restore of a backup,
   * must not follow.
   */
  readonly previous: string | null;
  /** Of a whole entry: nodes of another history take it as well. Absent: false. */
  readonly isDecided?: boolean;
}

/** `change`: one change; `whole`: all that a node stores after the change at its position, for nodes that join. */
export type EntryKind = "change" | "whole";

/** An entry as it lies in the log. */
export interface Entry extends EntryMark {
  readonly kind: EntryKind;
  /** The node that wrote it. */
  readonly node: string;
  /** The format of `body`. */
  readonly format: number;
  /** zstd of the JSON of the content. */
  readonly body: Uint8Array;
  /** HMAC-SHA-256 over fleet, kind, position, id, node, format and body. */
  readonly mac: Uint8Array;
}

/** Signs and verifies entries: who can write to the database must not be an admin of every gateway. */
export class EntryCodec {
  readonly fleetId: string;
  /** The newest first; entries from a position on are signed with it. */
  #keys: readonly { readonly from: number; readonly key: string }[];

  /** `key`: derived from the secret key that all nodes share. */
  constructor(fleetId: string, key: string) {
    this.fleetId = fleetId;
    this.#keys = [{ from: 0, key }];
  }

  /** Entries after `position` are signed with this key, and what is stored at it. */
  rotate(position: number, key: string): void {
    this.#keys = [{ from: position + 1, key }, ...this.#keys];
  }

  encode(
    mark: EntryMark,
    node: string,
    {
      changed,
      facts,
      previous,
      isDecided = false,
      kind = "change",
    }: EntryContent & { readonly kind?: EntryKind },
  ): Entry {
    const { format } = needOf({ changed, facts });
    const parts = changed === null ? {} : withoutNewer(partsOf(changed.change), format);
    const document = {
      changed: changed === null ? null : { ...changed, change: parts },
      facts,
      previous,
      ...(isDecided ? { decided: true } : {}),
    };
    const body = Bun.zstdCompressSync(JSON.stringify(document));
    const unsigned = { ...mark, kind, node, format, body };
    return { ...unsigned, mac: this.#signEntry(unsigned) };
  }

  /** Throws an ApiError when the entry was not signed with the key of this fleet, or is of a newer version. */
  decode(entry: Entry): EntryContent {
    if (!isEqual(entry.mac, this.#signEntry(entry)))
      throw new Unfollowable(
        "refused",
        `entry ${entry.position} of the fleet's log is not signed with the secret key of this fleet, or was changed or moved; it is not applied`,
      );
    if (entry.format > ENTRY_FORMAT)
      throw new Unfollowable(
        "outdated",
        `entry ${entry.position} of the fleet's log was written by a newer version of Sluice; upgrade this node`,
      );
    const text = new TextDecoder().decode(Bun.zstdDecompressSync(entry.body));
    const { changed, facts, previous, decided = false } = JSON.parse(text) as Document;
    const parts = changed === null ? {} : withNewer(changed.change, entry.format);
    return {
      changed: changed === null ? null : { ...changed, change: restoredFrom(parts) },
      facts,
      previous,
      ...(decided ? { isDecided: true } : {}),
    };
  }

  /** Signs what a node says about itself, which has stored the entries up to a position. */
  signNode(fields: readonly (string | number)[], stored: number): Uint8Array {
    return this.#sign(["node", ...fields], new Uint8Array(), stored + 1);
  }

  isSignedNode(fields: readonly (string | number)[], stored: number, mac: Uint8Array): boolean {
    return isEqual(mac, this.signNode(fields, stored));
  }

  /** Signs what a node has counted. With the present key alone: who has a former one must not be able to speak for a node. */
  signRollup(fields: readonly (string | number)[], document: Uint8Array): Uint8Array {
    return this.#sign(["rollup", ...fields], document, Number.MAX_SAFE_INTEGER);
  }

  isSignedRollup(
    fields: readonly (string | number)[],
    document: Uint8Array,
    mac: Uint8Array,
  ): boolean {
    return isEqual(mac, this.signRollup(fields, document));
  }

  /** Signs which plugins a node serves, with the present key alone as well. */
  signPlugins(fields: readonly string[], document: Uint8Array): Uint8Array {
    return this.#sign(["plugins", ...fields], document, Number.MAX_SAFE_INTEGER);
  }

  isSignedPlugins(fields: readonly string[], document: Uint8Array, mac: Uint8Array): boolean {
    return isEqual(mac, this.signPlugins(fields, document));
  }

  #signEntry({ kind, position, id, node, format, body }: Omit<Entry, "mac">): Buffer {
    // What is stored at the position of a new key is sealed under it.
    const at = kind === "whole" ? position + 1 : position;
    return this.#sign([kind, position, id, node, format], body, at);
  }

  #sign(fields: readonly (string | number)[], body: Uint8Array, position: number): Buffer {
    const key = this.#keys.find(({ from }) => from <= position)?.key ?? "";
    // JSON, so that no two lists of fields give the same text.
    const head = JSON.stringify([this.fleetId, ...fields]);
    return createHmac("sha256", key).update(head).update("\n").update(body).digest();
  }
}

const isEqual = (mac: Uint8Array, expected: Uint8Array) =>
  mac.byteLength === expected.byteLength && timingSafeEqual(mac, expected);

/**
 * Why a node cannot follow the log. `refused`: cannot serve the next change; `outdated`: the next change is of a newer version;
 * `diverged`: the log lacks changes that this node has.
 */
export type ObstacleState = "refused" | "outdated" | "diverged";

/** The message says what to do; shown to users. */
export class Unfollowable extends ApiError {
  readonly state: ObstacleState;

  constructor(state: ObstacleState, message: string) {
    super(503, message);
    this.state = state;
  }
}

interface Document {
  readonly changed: (Omit<EntryChange, "change"> & { readonly change: ChangedParts }) | null;
  readonly facts: readonly Fact[];
  readonly previous: string | null;
  readonly decided?: boolean;
}

/** What nodes must know to read an entry with this content. */
export const needOf = ({ changed, facts }: Omit<EntryContent, "previous">): FormatNeed =>
  formatNeed({ change: changed === null ? {} : partsOf(changed.change), facts });

/** Most changes affect only one collection. */
function partsOf(change: ConfigChange): ChangedParts {
  const isChanged = (part: ConfigChange[keyof ConfigChange]) =>
    part !== null && !("upserts" in part && part.upserts.length + part.removals.length === 0);
  return Object.fromEntries(Object.entries(change).filter(([, part]) => isChanged(part)));
}

export const isEmptyChange = (change: ConfigChange): boolean =>
  Object.keys(partsOf(change)).length === 0;

function restoredFrom(parts: ChangedParts): ConfigChange {
  const collections = mapCollections(
    (name): ResourceChange<unknown> => parts[name] ?? { upserts: [], removals: [] },
  );
  const singletons = singletonNames.map((name) => [name, parts[name] ?? null]);
  return {
    ...(collections as Pick<ConfigChange, CollectionName>),
    ...(Object.fromEntries(singletons) as Pick<ConfigChange, (typeof singletonNames)[number]>),
  };
}

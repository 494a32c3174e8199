// What a node's row says: signed, because who can write to the database must not be able to speak for a node; sends no query.
import type { EntryCodec } from "./entry.ts";
import type { FleetNode, Heartbeat } from "./source.ts";

/** Completes "n2: …", and is the error of the node. */
export const forgedRow = "its row in the database is not signed with the secret key of this fleet";

type Signed = Omit<Heartbeat, "mac">;

export const signNode = (codec: EntryCodec, row: Signed): Uint8Array =>
  codec.signNode(fields(row), row.stored);

export const isSigned = (codec: EntryCodec, row: FleetNode): boolean =>
  codec.isSignedNode(fields(row), row.stored, row.mac);

/**
 * Whether a node lacks a format of entries, and limits what the others may write: not when it has stopped before such an entry already,
 * or was away for longer than `absentMs`.
 */
export const isOlder = (
  { formatMax, state, seenMsAgo }: Pick<FleetNode, "formatMax" | "state" | "seenMsAgo">,
  { format, absentMs }: { readonly format: number; readonly absentMs: number },
): boolean => formatMax < format && state !== "outdated" && seenMsAgo <= absentMs;

/** Never changed: older versions verify the same fields. A column that is added needs a signature of its own. */
function fields(row: Signed): readonly (string | number)[] {
  const { id, name, url, version, formatMax, stored, served, state, error } = row;
  const { draining, clockOffsetMs } = row;
  return [
    ...[id, name, url, version, formatMax, stored, served, state, error],
    ...[draining ? 1 : 0, clockOffsetMs],
  ];
}

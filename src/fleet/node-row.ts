// The signature of a node's row: who can write to the database must not be able to speak for a node.
import type { EntryCodec } from "./entry.ts";
import type { FleetNode, Heartbeat } from "./source.ts";

/** Completes "n2: …", and is the error of the node. */
export const forgedRow = "its row in the database is not signed with the secret key of this fleet";

type Signed = Omit<Heartbeat, "mac">;

export const signNode = (codec: EntryCodec, row: Signed): Uint8Array => codec.signNode(fields(row));

export const isSigned = (codec: EntryCodec, row: FleetNode): boolean =>
  codec.isSignedNode(fields(row), row.mac);

function fields(row: Signed): readonly (string | number)[] {
  const { id, name, url, version, formatMax, stored, served, state, error } = row;
  const { draining, clockOffsetMs } = row;
  return [
    ...[id, name, url, version, formatMax, stored, served, state, error],
    ...[draining ? 1 : 0, clockOffsetMs],
  ];
}

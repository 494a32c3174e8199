// Reads from several nodes of a fleet at once: who was read, and who is missing and why; sends nothing itself.
import { ApiError } from "../model/error.ts";
import type { FleetView } from "./fleet-view.ts";
import type { Role } from "./principal.ts";

/** The header of the token of a node that reads from another. */
export const NODE_TOKEN_HEADER = "sluice-node-token";

/** A node that reads from this one for a user. */
export interface NodeReader {
  /** Id of the node. */
  readonly id: string;
  /** Role of the user there. */
  readonly role: Role;
}

/** What one node reads from another. */
export interface NodeRead {
  /** Path with query of this management API. */
  readonly path: string;
  /** Role of the user that asks. */
  readonly role: Role;
}

/** A node as far as reads need it. */
export interface ReadableNode {
  readonly id: string;
  readonly name: string;
}

/** Access to the management APIs of the other nodes. */
export interface NodeReads {
  /** All nodes, this one included, by name. Throws a 503 when this node has not seen them since its start. */
  nodes(): readonly ReadableNode[];
  /** The response, parsed. Rejects with an UnreadNode within a second. */
  read(id: string, read: NodeRead): Promise<unknown>;
  /** Calls `onEvent` for each event of a stream until it ends, which it always does as an UnreadNode. */
  follow(id: string, read: NodeRead, stream: NodeStream): Promise<never>;
  /** Who sends this token with a GET of this path and query; null: the token is not valid for it, or was used before. */
  verify(token: string, path: string): NodeReader | null;
}

export interface NodeStream {
  readonly onOpen: () => void;
  /** `data` is the text of a JSON object. */
  readonly onEvent: (kind: string, data: string) => void;
  readonly signal: AbortSignal;
}

/** Why a node cannot be read. The message completes "n2: …" and holds no address. */
export class UnreadNode extends Error {}

/** A node without an answer in a view of several ones. */
export interface MissingNode {
  readonly name: string;
  readonly why: string;
}

/** Whose answers a view holds. */
export interface Completeness {
  /** Whether a node is missing. */
  readonly partial: boolean;
  readonly missing: readonly MissingNode[];
}

export interface Collected<T> extends Completeness {
  /** By name of the node. */
  readonly found: readonly { readonly id: string; readonly node: string; readonly value: T }[];
}

export interface Collection<T> extends NodeRead {
  /** The value of this node. */
  readonly own: () => T | Promise<T>;
  /** The value in the response of another node; throws for what is none. */
  readonly decode: (response: unknown) => T;
}

export const ALL_NODES = "all";

/** The nodes of `asked`: `all`, or the id or name of one. Throws a 404 for a node that does not exist. */
export function nodesOf(reads: NodeReads, asked: string): readonly ReadableNode[] {
  const nodes = reads.nodes();
  if (asked === ALL_NODES) return nodes;
  const one = nodes.find(({ id }) => id === asked) ?? nodes.find(({ name }) => name === asked);
  if (one === undefined) throw new ApiError(404, `node: node "${asked}" does not exist`);
  return [one];
}

/** Reads from the nodes of `asked` at the same time. Rejects only with what `own` rejects with. */
export async function collect<T>(
  fleet: Pick<FleetView, "id" | "reads">,
  asked: string,
  { own, decode, ...read }: Collection<T>,
): Promise<Collected<T>> {
  const missing: MissingNode[] = [];
  const one = async ({ id, name }: ReadableNode) => {
    if (id === fleet.id) return [{ id, node: name, value: await own() }];
    try {
      return [{ id, node: name, value: decodeOr(decode, await fleet.reads.read(id, read)) }];
    } catch (error) {
      if (!(error instanceof UnreadNode)) throw error;
      missing.push({ name, why: error.message });
      return [];
    }
  };
  const found = (await Promise.all(nodesOf(fleet.reads, asked).map(one))).flat();
  missing.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { found, partial: missing.length > 0, missing };
}

function decodeOr<T>(decode: (response: unknown) => T, response: unknown): T {
  try {
    return decode(response);
  } catch {
    throw new UnreadNode("its response cannot be read");
  }
}

// Admits the reads of other nodes of the fleet by their tokens: these GET requests only, each once; reads nothing itself.
import { NODE_TOKEN_HEADER, type NodeReads } from "../control/node-reads.ts";
import { ApiError } from "../model/error.ts";
import { type AccessRow, createAccessMatcher } from "./access.ts";
import type { GuardOptions } from "./guard.ts";

/** The parameter that reads from other nodes. Not for nodes: a read would go round. */
export const NODE_PARAMETER = "node";

/** Until a stream to another node ends, which then asks again. Milliseconds. */
const STREAM_MS = 15 * 60_000;

export function createNodeReader(
  reads: Pick<NodeReads, "verify">,
  { table, now }: { readonly table: readonly AccessRow[]; readonly now: () => number },
): NonNullable<GuardOptions["nodeReader"]> {
  const match = createAccessMatcher(table);
  return (request, peer) => {
    const token = request.headers.get(NODE_TOKEN_HEADER);
    if (token === null) return null;
    const { pathname, search, searchParams } = new URL(request.url);
    const isRead =
      request.method === "GET" &&
      match(pathname)?.row.nodes === true &&
      !searchParams.has(NODE_PARAMETER);
    const node = isRead ? reads.verify(token, `${pathname}${search}`) : null;
    // Without a reason: it would help only to forge one.
    if (node === null) throw new ApiError(401, "authentication is required");
    return {
      role: node.role,
      address: peer,
      method: "node",
      actor: `node ${node.id}`,
      userId: null,
      sessionId: null,
      tokenId: null,
      expiresAt: new Date(now() + STREAM_MS).toISOString(),
    };
  };
}

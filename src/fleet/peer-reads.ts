// Reads from the management APIs of the other nodes, at the addresses in their signed rows; knows no content.
import {
  NODE_TOKEN_HEADER,
  type NodeRead,
  type NodeReader,
  type NodeReads,
  type NodeStream,
  type ReadableNode,
  UnreadNode,
} from "../control/node-reads.ts";
import { reasonOf, readText } from "../control/outgoing-request.ts";
import { ApiError } from "../model/error.ts";
import type { NodeTokens } from "./node-token.ts";
import { forgedRow } from "./node-row.ts";
import { readEvents } from "./peer-events.ts";

/** A node of the last look. */
export interface Peer extends ReadableNode {
  /** As in its row; empty: unknown. */
  readonly url: string;
  /** Whether the row is signed. */
  readonly isSigned: boolean;
}

export interface PeerReadsOptions {
  /** Id of this node. */
  readonly id: string;
  /** The last look at all nodes; null: none yet. */
  readonly peers: () => readonly Peer[] | null;
  readonly tokens: NodeTokens;
}

/** Until the whole response is there; of a stream, its head. */
const DEADLINE_MS = 1000;
const MAX_BYTES = 8 * 1_048_576;

export class PeerReads implements NodeReads {
  readonly #options: PeerReadsOptions;

  constructor(options: PeerReadsOptions) {
    this.#options = options;
  }

  nodes(): readonly ReadableNode[] {
    const peers = this.#options.peers();
    if (peers === null)
      throw new ApiError(503, "this node has not seen the nodes of its fleet since its start", {
        headers: { "retry-after": "1" },
      });
    return peers;
  }

  verify(token: string, path: string): NodeReader | null {
    return this.#options.tokens.verify(token, path);
  }

  async read(id: string, read: NodeRead): Promise<unknown> {
    try {
      const response = await this.#send(id, read, AbortSignal.timeout(DEADLINE_MS));
      const text = await readText(response, MAX_BYTES);
      if (text === null) throw new UnreadNode("its response is larger than 8 MiB");
      return JSON.parse(text);
    } catch (error) {
      throw unread(error);
    }
  }

  async follow(id: string, read: NodeRead, stream: NodeStream): Promise<never> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(timedOut()), DEADLINE_MS);
    try {
      const response = await this.#send(id, read, AbortSignal.any([stream.signal, late.signal]));
      clearTimeout(timer);
      stream.onOpen();
      await readEvents(response, stream);
    } catch (error) {
      throw unread(error);
    } finally {
      clearTimeout(timer);
    }
    throw new UnreadNode("its stream has ended");
  }

  async #send(id: string, { path, role }: NodeRead, signal: AbortSignal): Promise<Response> {
    const base = this.#addressOf(id);
    const url = new URL(path, base);
    const token = this.#options.tokens.sign({
      node: id,
      path: `${url.pathname}${url.search}`,
      role,
    });
    const response = await fetch(url.href, {
      // Without an encoding, so that a small response does not become a large one here.
      headers: { [NODE_TOKEN_HEADER]: token, "accept-encoding": "identity" },
      decompress: false,
      redirect: "manual",
      signal,
      ...tlsOf(base),
    });
    if (response.status === 200) return response;
    void response.body?.cancel().catch(() => undefined);
    throw new UnreadNode(
      response.status === 401
        ? "it refused the token of this node: it may be an older version, or another gateway"
        : `it responded with status ${response.status}`,
    );
  }

  #addressOf(id: string): URL {
    const peer = this.#options.peers()?.find((known) => known.id === id);
    if (peer === undefined) throw new UnreadNode("it has left the fleet");
    if (!peer.isSigned) throw new UnreadNode(forgedRow);
    const url = URL.parse(peer.url);
    if (url === null)
      throw new UnreadNode("its address is not known: start it with --advertise and its URL");
    return url;
  }
}

const timedOut = () => new DOMException("", "TimeoutError");

/** A self-signed certificate of the node is part of its signed row; others are verified as usual. */
function tlsOf({ protocol, hash }: URL) {
  if (protocol !== "https:" || hash === "") return {};
  const lines = Buffer.from(hash.slice(1), "base64url")
    .toString("base64")
    .replace(/.{64}/g, "$&\n");
  const ca = `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
  // It need not name the address.
  return { tls: { ca, checkServerIdentity: () => undefined } };
}

function unread(error: unknown): UnreadNode {
  if (error instanceof UnreadNode) return error;
  if (error instanceof SyntaxError) return new UnreadNode("its response cannot be read");
  return new UnreadNode(`it ${reasonOf(error, { timeoutMs: DEADLINE_MS })}`);
}

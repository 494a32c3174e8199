// Tokens with which a node reads from another one: for one request, one node, once, and for half a minute; knows no HTTP.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { NodeReader } from "../control/node-reads.ts";
import { type Role, roles } from "../model/user.ts";

export interface NodeTokensOptions {
  /** Derived from the secret key that all nodes share, for this purpose alone. */
  readonly key: () => string;
  /** Id of this node. */
  readonly id: string;
  /** The time of the database, as far as this node knows: milliseconds since 1970. */
  readonly now: () => number;
}

/** What a token is for. */
export interface TokenScope {
  /** Id of the node that is to accept it. */
  readonly node: string;
  /** Path with query, as the node receives it. */
  readonly path: string;
  /** Role of the user that asks. */
  readonly role: Role;
}

/** A token that differs from the time of the database by more is refused. Milliseconds. */
export const TOKEN_MS = 30_000;

/** Id of the node that asks, milliseconds, role, nonce, MAC. */
const TOKEN = /^([\w-]{1,64})\.(\d{1,15})\.([a-z]+)\.([\w-]{16})\.([\w-]{43})$/;

export class NodeTokens {
  readonly #options: NodeTokensOptions;
  /** The tokens that were accepted, oldest first: each is accepted once. */
  readonly #used = new Map<string, number>();

  constructor(options: NodeTokensOptions) {
    this.#options = options;
  }

  sign(scope: TokenScope): string {
    const { id, now } = this.#options;
    const nonce = randomBytes(12).toString("base64url");
    const head = `${id}.${Math.round(now())}.${scope.role}.${nonce}`;
    return `${head}.${this.#mac(head, scope).toString("base64url")}`;
  }

  /** Null for everything but an unused token for this node, this path and this time. */
  verify(token: string, path: string): NodeReader | null {
    const { id, now } = this.#options;
    const [, node = "", time = "", word = "", nonce = "", mac = ""] = TOKEN.exec(token) ?? [];
    const role = roles.find((known) => known === word);
    if (role === undefined) return null;
    const head = `${node}.${time}.${word}.${nonce}`;
    const expected = this.#mac(head, { node: id, path, role });
    const isSigned = timingSafeEqual(Buffer.from(mac, "base64url"), expected);
    if (!isSigned || Math.abs(now() - Number(time)) > TOKEN_MS) return null;
    return this.#use(nonce) ? { id: node, role } : null;
  }

  /** Only tokens that another node has signed get here, so the map stays small. */
  #use(nonce: string): boolean {
    const now = performance.now();
    for (const [used, at] of this.#used) {
      if (now - at < 2 * TOKEN_MS) break;
      this.#used.delete(used);
    }
    if (this.#used.has(nonce)) return false;
    this.#used.set(nonce, now);
    return true;
  }

  #mac(head: string, { node, path }: TokenScope): Buffer {
    // JSON, so that no two lists of fields give the same text.
    const text = JSON.stringify(["GET", path, node, head]);
    return createHmac("sha256", this.#options.key()).update(text).digest();
  }
}

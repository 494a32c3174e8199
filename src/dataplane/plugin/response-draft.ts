// The response that plugins may change before it goes to the client; knows no plugin and no connection.
import type { BodyTransform, ResponseDraft as DraftForPlugins } from "../../pdk/context.ts";
import type { BodySource } from "../../pdk/response.ts";
import type { ProxyError } from "../error.ts";
import {
  applyEdits,
  type EditedFields,
  editedFields,
  type EditHolder,
  type Edits,
} from "./edited-fields.ts";

export interface DraftParts {
  readonly source: DraftForPlugins["source"];
  readonly status: number;
  /** May be changed unless shared. */
  readonly headers: Headers;
  /** The object that shares these headers with other responses, and caches edits of them; absent: not shared. */
  readonly sharedBy?: EditHolder | null;
  readonly error?: ProxyError | null;
  readonly bodyLength?: number | null;
  readonly wholeBody?: Uint8Array | null;
  readonly isHead: boolean;
}

export interface Replacement {
  readonly body: Uint8Array | BodySource | null;
}

export const isSource = (body: Uint8Array | BodySource | null | undefined): body is BodySource =>
  body != null && !(body instanceof Uint8Array);

/** Closes a body that is not sent, if it is a source. */
export function closeSource(body: Uint8Array | BodySource | null | undefined): void {
  if (isSource(body)) body.close();
}

const NONE: readonly BodyTransform[] = [];
const NO_EDITS: readonly never[] = [];

export class ResponseDraft implements DraftForPlugins {
  readonly source: DraftForPlugins["source"];
  status: number;
  readonly error: DraftForPlugins["error"];
  readonly bodyLength: number | null;
  readonly wholeBody: Uint8Array | null;
  /** Whether bytes are counted after the transforms of plugins instead of before. */
  isPiped = false;
  readonly #isHead: boolean;
  #headers: Headers;
  /** Null once the headers are this response's own. */
  #sharedBy: EditHolder | null;
  /** Edits to apply to the headers while they are shared. */
  #names: readonly string[] = NO_EDITS;
  #values: readonly (string | null)[] = NO_EDITS;
  /** The same arrays while this response alone holds them. */
  #own: { readonly names: string[]; readonly values: (string | null)[] } | null = null;
  #id: string | null = null;
  #replacement: Replacement | null = null;
  #transforms: readonly BodyTransform[] = NONE;

  constructor(parts: DraftParts) {
    this.source = parts.source;
    this.status = parts.status;
    this.#headers = parts.headers;
    this.#sharedBy = parts.sharedBy ?? null;
    const { error = null } = parts;
    this.error =
      error === null ? null : { status: error.status, token: error.token, detail: error.detail };
    this.bodyLength = parts.bodyLength ?? null;
    this.wholeBody = parts.wholeBody ?? null;
    this.#isHead = parts.isHead;
  }

  get headers(): Headers {
    if (this.#sharedBy !== null) {
      this.#headers = new Headers(this.#headers);
      this.#sharedBy = null;
      applyEdits(this.#headers, this.#edits);
    }
    return this.#headers;
  }

  get #edits(): Edits {
    return { names: this.#names, values: this.#values, id: this.#id };
  }

  setHeader(name: string, value: string): void {
    this.#edit(name, value);
  }

  removeHeader(name: string): void {
    this.#edit(name, null);
  }

  setHeaders(names: readonly string[], values: readonly string[]): void {
    if (this.#sharedBy !== null && this.#names.length === 0) {
      this.#names = names;
      this.#values = values;
      return;
    }
    for (let at = 0; at < names.length; at++) this.#edit(names[at] ?? "", values[at] ?? "");
  }

  /** The request id that the client gets, whatever plugins have set. */
  setId(id: string): void {
    if (this.#sharedBy === null) this.#edit("X-Request-Id", id);
    else this.#id = id;
  }

  #edit(name: string, value: string | null): void {
    if (this.#sharedBy !== null) {
      this.#own ??= { names: [...this.#names], values: [...this.#values] };
      this.#own.names.push(name);
      this.#own.values.push(value);
      this.#names = this.#own.names;
      this.#values = this.#own.values;
    } else if (value === null) this.#headers.delete(name);
    else this.#headers.set(name, value);
  }

  /** Null: a plugin has read `headers`, which made a copy. The object is reused for other responses afterwards. */
  get editedFields(): EditedFields | null {
    if (this.#sharedBy === null) return null;
    // The shared object keeps the arrays.
    this.#own = null;
    return editedFields(this.#sharedBy, this.#headers, this.#edits);
  }

  /** The headers for immediate reading, without a copy. */
  get sentHeaders(): Headers {
    const isUnchanged = this.#names.length === 0 && this.#id === null;
    return isUnchanged ? this.#headers : (this.editedFields?.headers ?? this.#headers);
  }

  get hasBody(): boolean {
    return !this.#isHead && this.status !== 204 && this.status !== 304;
  }

  replaceBody(body: Uint8Array | BodySource | null): void {
    closeSource(this.#replacement?.body);
    this.#replacement = { body };
    // Transforms that were added before belong to the replaced body.
    for (const transform of this.#transforms) transform.abort?.();
    this.#transforms = NONE;
  }

  transformBody(transform: BodyTransform): void {
    this.#transforms = [...this.#transforms, transform];
  }

  /** Whether no plugin has read the headers or changed the body. */
  get isPlain(): boolean {
    return this.#sharedBy !== null && this.#replacement === null && this.#transforms.length === 0;
  }

  /** The body that replaces the original one; null: not replaced. */
  get replacement(): Replacement | null {
    return this.#replacement;
  }

  /** Whether a transform delays the body. */
  get isSlow(): boolean {
    return this.hasBody && this.#transforms.some((transform) => transform.isSlow === true);
  }

  /** The transforms of the body; null: none. */
  get pipe(): TransformPipe | null {
    return this.#transforms.length === 0 ? null : new TransformPipe(this.#transforms);
  }
}

type Bytes = Uint8Array | null;

const EMPTY_AS_NULL = (bytes: Bytes): Bytes =>
  bytes === null || bytes.byteLength === 0 ? null : bytes;

/** Transforms in sequence. Calls must not overlap: await a promise before the next call. */
export class TransformPipe {
  readonly #transforms: readonly BodyTransform[];
  /** Whether all of them leave the bytes unchanged. */
  readonly isObserver: boolean;
  /** Most bytes of one `push`. */
  readonly pieceBytes: number;

  constructor(transforms: readonly BodyTransform[]) {
    this.#transforms = transforms;
    this.isObserver = transforms.every((transform) => transform.isObserver === true);
    this.pieceBytes = transforms.reduce(
      (least, { pieceBytes = Infinity }) => Math.min(least, Math.max(1, pieceBytes)),
      Infinity,
    );
  }

  push(chunk: Uint8Array): Bytes | Promise<Bytes> {
    return this.#pass(chunk, 0);
  }

  /** The rest of all of them, in order. */
  end(): Bytes | Promise<Bytes> {
    return this.#endFrom(0, null);
  }

  abort(): void {
    for (const transform of this.#transforms) transform.abort?.();
  }

  /** Transforms a complete body, given in chunks. */
  whole(pieces: Pieces, from = 0): Pieces | Promise<Pieces> {
    let all = pieces;
    for (let at = from; at < this.#transforms.length; at++) {
      const transform = this.#transforms[at];
      if (transform === undefined) continue;
      const result = throughOne(transform, all);
      if (result instanceof Promise) return result.then((next) => this.whole(next, at + 1));
      all = result;
    }
    return all;
  }

  #pass(chunk: Bytes, from: number): Bytes | Promise<Bytes> {
    let bytes = EMPTY_AS_NULL(chunk);
    for (let at = from; at < this.#transforms.length; at++) {
      if (bytes === null) return null;
      const result = this.#transforms[at]?.push(bytes) ?? null;
      if (result instanceof Promise) return result.then((next) => this.#pass(next, at + 1));
      bytes = EMPTY_AS_NULL(result);
    }
    return bytes;
  }

  #endFrom(at: number, before: Bytes): Bytes | Promise<Bytes> {
    const transform = this.#transforms[at];
    if (transform === undefined) return before;
    const rest = transform.end();
    const passTail = (tail: Bytes): Bytes | Promise<Bytes> => {
      const passed = this.#pass(tail, at + 1);
      if (passed instanceof Promise)
        return passed.then((out) => this.#endFrom(at + 1, joined(before, out)));
      return this.#endFrom(at + 1, joined(before, passed));
    };
    return rest instanceof Promise ? rest.then(passTail) : passTail(rest);
  }
}

function joined(one: Bytes, other: Bytes): Bytes {
  if (one === null) return other;
  return other === null ? one : Buffer.concat([one, other]);
}

type Pieces = readonly Uint8Array[];

/** Passes a complete body through one transform. */
function throughOne(transform: BodyTransform, pieces: Pieces): Pieces | Promise<Pieces> {
  if (transform.whole !== undefined) return transform.whole(pieces);
  const out: Uint8Array[] = [];
  const keep = (bytes: Bytes) => {
    if (bytes !== null && bytes.byteLength > 0) out.push(bytes);
  };
  const step = (at: number): Pieces | Promise<Pieces> => {
    for (let index = at; index <= pieces.length; index++) {
      const piece = pieces[index];
      const result = piece === undefined ? transform.end() : transform.push(piece);
      if (result instanceof Promise)
        return result.then((bytes) => {
          keep(bytes);
          return step(index + 1);
        });
      keep(result);
    }
    return out;
  };
  return step(0);
}

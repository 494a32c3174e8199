// A response on its way to the client while plugins look at it; knows no plugin and no connection.
import type { BodyTransform, ResponseDraft as DraftForPlugins } from "../../pdk/context.ts";
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
  /** May be changed, unless they are shared. */
  readonly headers: Headers;
  /** Who else has them, and keeps what is made of them; absent: nobody. */
  readonly sharedBy?: EditHolder | null;
  readonly error?: ProxyError | null;
  readonly bodyLength?: number | null;
  readonly wholeBody?: Uint8Array | null;
  readonly isHead: boolean;
}

const NONE: readonly BodyTransform[] = [];
const NO_EDITS: readonly never[] = [];

export class ResponseDraft implements DraftForPlugins {
  readonly source: DraftForPlugins["source"];
  status: number;
  readonly error: DraftForPlugins["error"];
  readonly bodyLength: number | null;
  readonly wholeBody: Uint8Array | null;
  /** Whether bytes are counted as they come out of plugins, and not as they come from the target. */
  isPiped = false;
  readonly #isHead: boolean;
  #headers: Headers;
  /** Null once the headers are this answer's own. */
  #sharedBy: EditHolder | null;
  /** What is still to be done to the headers while they are shared. */
  #names: readonly string[] = NO_EDITS;
  #values: readonly (string | null)[] = NO_EDITS;
  /** The same arrays, as long as nobody else has them. */
  #own: { readonly names: string[]; readonly values: (string | null)[] } | null = null;
  #id: string | null = null;
  #replacement: { readonly body: Uint8Array | null } | null = null;
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

  /** The id that the client gets, whatever plugins have set. */
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

  /** Null: somebody has looked at the headers, so that they are this answer's own. The object serves others afterwards. */
  get editedFields(): EditedFields | null {
    if (this.#sharedBy === null) return null;
    // Whoever serves others keeps the arrays.
    this.#own = null;
    return editedFields(this.#sharedBy, this.#headers, this.#edits);
  }

  /** The headers to be read at once, which needs no copy. */
  get sentHeaders(): Headers {
    const isAsItWas = this.#names.length === 0 && this.#id === null;
    return isAsItWas ? this.#headers : (this.editedFields?.headers ?? this.#headers);
  }

  get hasBody(): boolean {
    return !this.#isHead && this.status !== 204 && this.status !== 304;
  }

  replaceBody(body: Uint8Array | null): void {
    this.#replacement = { body };
    // Those that were asked for before have seen to the body that is gone.
    for (const transform of this.#transforms) transform.abort?.();
    this.#transforms = NONE;
  }

  transformBody(transform: BodyTransform): void {
    this.#transforms = [...this.#transforms, transform];
  }

  /** Whether nobody has looked at the headers or asked for another body. */
  get isPlain(): boolean {
    return this.#sharedBy !== null && this.#replacement === null && this.#transforms.length === 0;
  }

  /** Another body in the place of the one that there was; null: that one stays. */
  get replacement(): { readonly body: Uint8Array | null } | null {
    return this.#replacement;
  }

  /** Whether the body has to wait on its way. */
  get isSlow(): boolean {
    return this.hasBody && this.#transforms.some((transform) => transform.isSlow === true);
  }

  /** What the body passes through; null: nothing. */
  get pipe(): TransformPipe | null {
    return this.#transforms.length === 0 ? null : new TransformPipe(this.#transforms);
  }
}

type Bytes = Uint8Array | null;

const EMPTY_AS_NULL = (bytes: Bytes): Bytes =>
  bytes === null || bytes.byteLength === 0 ? null : bytes;

/** Transforms one behind the other. Calls must not overlap: wait for a promise before the next one. */
export class TransformPipe {
  readonly #transforms: readonly BodyTransform[];
  /** Whether every one of them leaves the bytes as they are. */
  readonly isObserver: boolean;
  /** Of the bytes that are pushed at a time. */
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

  /** What is left of all of them, in order. */
  end(): Bytes | Promise<Bytes> {
    return this.#endFrom(0, null);
  }

  abort(): void {
    for (const transform of this.#transforms) transform.abort?.();
  }

  /** A body that is there in pieces. */
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
    const goOn = (tail: Bytes): Bytes | Promise<Bytes> => {
      const passed = this.#pass(tail, at + 1);
      if (passed instanceof Promise)
        return passed.then((out) => this.#endFrom(at + 1, joined(before, out)));
      return this.#endFrom(at + 1, joined(before, passed));
    };
    return rest instanceof Promise ? rest.then(goOn) : goOn(rest);
  }
}

function joined(one: Bytes, other: Bytes): Bytes {
  if (one === null) return other;
  return other === null ? one : Buffer.concat([one, other]);
}

type Pieces = readonly Uint8Array[];

/** Passes a body that is there in pieces through one transform. */
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

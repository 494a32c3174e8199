// The response that plugins may change before it goes to the client; knows no plugin and no connection.
import type { BodyTransform, ResponseDraft as DraftForPlugins } from "../../pdk/context.ts";
import type { BodySource } from "../../pdk/response.ts";
import { type FieldPairs, isFieldValue, isToken } from "../../http/fields.ts";
import type { ProxyError } from "../error.ts";
import { FieldList } from "../../http/field-list.ts";
import { listOf, type SharedHead } from "../upstream/response-head.ts";
import { applyEdits, type Edits, ID_FIELD } from "./edited-fields.ts";
import { guardTransform } from "./running-plugin.ts";

export interface DraftParts {
  readonly source: DraftForPlugins["source"];
  /** Which other responses may have too. */
  readonly head: SharedHead;
  readonly error?: ProxyError | null;
  readonly bodyLength?: number | null;
  readonly wholeBody?: Uint8Array | null;
  readonly isHead: boolean;
  /** Whether it belongs to a gRPC call, whose messages plugins must not change; default false. */
  readonly isGrpc?: boolean;
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

interface TrailerReceiver {
  setTrailers(trailers: FieldPairs): void;
}

type TrailerChange = (trailers: Headers) => void;

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
  readonly #isGrpc: boolean;
  /** As it was before plugins. */
  readonly head: SharedHead;
  /** Null while the fields are those of the head with the edits below. */
  #fields: FieldList | null = null;
  #names: readonly string[] = NO_EDITS;
  #values: readonly (string | null)[] = NO_EDITS;
  /** The same arrays while this response alone holds them. */
  #own: { readonly names: string[]; readonly values: (string | null)[] } | null = null;
  #id: string | null = null;
  #replacement: Replacement | null = null;
  #transforms: readonly BodyTransform[] = NONE;
  #trailerChanges: readonly TrailerChange[] = NO_EDITS;
  #trailers: Headers | null = null;

  constructor(parts: DraftParts) {
    this.source = parts.source;
    this.status = parts.head.status;
    this.head = parts.head;
    const { error = null } = parts;
    this.error =
      error === null
        ? null
        : {
            status: error.status,
            token: error.token,
            detail: error.detail,
            grpcStatus: error.grpcStatus ?? null,
          };
    this.bodyLength = parts.bodyLength ?? null;
    this.wholeBody = parts.wholeBody ?? null;
    this.#isHead = parts.isHead;
    this.#isGrpc = parts.isGrpc === true;
  }

  get headers(): Headers {
    if (this.#fields === null) {
      const own = new Headers(this.head.headers);
      applyEdits(own, { names: this.#names, values: this.#values, id: this.#id });
      this.#fields = FieldList.ofHeaders(own, this.head.lines);
    }
    return this.#fields.headers;
  }

  /** This response's own, after which it is not `isPlain`. */
  get fields(): FieldList {
    this.#fields ??= this.#editedList();
    return this.#fields;
  }

  #editedList(): FieldList {
    const list = listOf(this.head);
    applyEdits(list, { names: this.#names, values: this.#values, id: this.#id });
    return list;
  }

  /** What plugins have set and removed; null: the fields are this response's own, and hold it. */
  get edits(): Edits | null {
    if (this.#fields !== null) return null;
    // Other responses are compared with the arrays.
    this.#own = null;
    return { names: this.#names, values: this.#values, id: this.#id };
  }

  setHeader(name: string, value: string): void {
    this.#edit(name, value);
  }

  removeHeader(name: string): void {
    this.#edit(name, null);
  }

  setHeaders(names: readonly string[], values: readonly string[]): void {
    if (this.#fields === null && this.#names.length === 0) {
      this.#names = names;
      this.#values = values;
      return;
    }
    for (let at = 0; at < names.length; at++) this.#edit(names[at] ?? "", values[at] ?? "");
  }

  /** The request id that the client gets, whatever plugins have set. */
  setId(id: string): void {
    if (this.#fields === null) this.#id = id;
    else this.#fields.set(ID_FIELD, id);
  }

  #edit(name: string, value: string | null): void {
    if (this.#fields === null) {
      this.#own ??= { names: [...this.#names], values: [...this.#values] };
      this.#own.names.push(name);
      this.#own.values.push(value);
      this.#names = this.#own.names;
      this.#values = this.#own.values;
    } else if (value === null) this.#fields.delete(name);
    else this.#fields.set(name, value);
  }

  get hasBody(): boolean {
    return !this.#isHead && this.status !== 204 && this.status !== 304;
  }

  replaceBody(body: Uint8Array | BodySource | null): void {
    if (this.#isGrpc) {
      closeSource(body);
      return;
    }
    closeSource(this.#replacement?.body);
    this.#replacement = { body };
    // Transforms that were added before belong to the replaced body.
    for (const transform of this.#transforms) transform.abort?.();
    this.#transforms = NONE;
  }

  transformBody(transform: BodyTransform): void {
    // A client could not decode messages that were changed.
    if (this.#isGrpc && transform.isObserver !== true) {
      transform.abort?.();
      return;
    }
    this.#transforms = [...this.#transforms, guardTransform(transform)];
  }

  changeTrailers(change: TrailerChange): void {
    this.#trailerChanges = [...this.#trailerChanges, change];
  }

  /** Whether plugins see the trailers before they go to the client. */
  get seesTrailers(): boolean {
    return this.#transforms.length > 0 || this.#trailerChanges.length > 0;
  }

  /** The target's trailers have arrived. */
  addTrailers(fields: FieldPairs): void {
    this.#trailers ??= new Headers();
    for (const [name, value] of fields)
      // An invalid field must not fail the response, whose body has been sent.
      if (isToken(name) && isFieldValue(value)) this.#trailers.append(name, value);
  }

  /** Sends the trailers that plugins see, after their changes. */
  sendTrailers(client: TrailerReceiver): void {
    if (!this.seesTrailers || !this.hasBody) return;
    const trailers = [...this.changedTrailers()];
    if (trailers.length > 0) client.setTrailers(trailers);
  }

  /** The trailers for the client; call it at the end of the body. */
  changedTrailers(): Headers {
    this.#trailers ??= new Headers();
    const trailers = this.#trailers;
    const changes = this.#trailerChanges;
    this.#trailerChanges = NO_EDITS;
    for (const change of changes) change(trailers);
    return trailers;
  }

  /** Whether no plugin has read the headers or changed the body. */
  get isPlain(): boolean {
    return this.#fields === null && this.#replacement === null && this.#transforms.length === 0;
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
    return this.#transforms.length === 0 ? null : new TransformPipe(this.#transforms, this);
  }
}

/** Sends trailers to the client as they arrive, or later with the changes of plugins. */
export function passTrailers(
  trailers: FieldPairs,
  draft: ResponseDraft | null,
  client: TrailerReceiver,
): void {
  if (draft?.seesTrailers === true) draft.addTrailers(trailers);
  else client.setTrailers(trailers);
}

type Bytes = Uint8Array | null;

const EMPTY_AS_NULL = (bytes: Bytes): Bytes =>
  bytes === null || bytes.byteLength === 0 ? null : bytes;

/** The response of a body. */
interface TrailerSource {
  changedTrailers(): Headers;
}

/** Transforms in sequence. Calls must not overlap: await a promise before the next call. */
export class TransformPipe {
  readonly #transforms: readonly BodyTransform[];
  readonly #response: TrailerSource;
  /** Whether all of them leave the bytes unchanged. */
  readonly isObserver: boolean;
  /** Most bytes of one `push`. */
  readonly pieceBytes: number;

  constructor(transforms: readonly BodyTransform[], response: TrailerSource) {
    this.#transforms = transforms;
    this.#response = response;
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
      const result = throughOne(transform, all, this.#response);
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
    const rest = transform.end(this.#response.changedTrailers());
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
function throughOne(
  transform: BodyTransform,
  pieces: Pieces,
  response: TrailerSource,
): Pieces | Promise<Pieces> {
  if (transform.whole !== undefined) return transform.whole(pieces, response.changedTrailers());
  const out: Uint8Array[] = [];
  const keep = (bytes: Bytes) => {
    if (bytes !== null && bytes.byteLength > 0) out.push(bytes);
  };
  const step = (at: number): Pieces | Promise<Pieces> => {
    for (let index = at; index <= pieces.length; index++) {
      const piece = pieces[index];
      const result =
        piece === undefined ? transform.end(response.changedTrailers()) : transform.push(piece);
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

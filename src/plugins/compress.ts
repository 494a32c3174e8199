// compress: compresses response bodies for clients that accept it.
import { Type as t } from "@sinclair/typebox";
import type { BodyTransform, RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, flag, integer, listOf, oneOf } from "../pdk/fields.ts";
import { addVary } from "../pdk/http.ts";
import {
  atOnceBytes,
  type Coding,
  CODINGS,
  createNegotiator,
  encode,
  type Levels,
  StreamEncoder,
} from "./compress/coding.ts";

const TYPE = "^[a-z0-9!#$&^_.+-]+/(?:\\*|[a-z0-9!#$&^_.+-]+)$";

const schema = config({
  encodings: t.Array(oneOf(CODINGS, { description: "A content coding" }), {
    default: [...CODINGS],
    minItems: 1,
    maxItems: CODINGS.length,
    description: "Content codings in order of preference, for clients that accept several equally",
  }),
  min_bytes: integer(1024, {
    minimum: 0,
    maximum: 1_073_741_824,
    description: "Minimum body size in bytes",
  }),
  types: listOf(
    t.String({
      maxLength: 256,
      pattern: TYPE,
      errorMessage: "must be a media type in lower case, such as text/html or text/*",
      description: "Media type",
    }),
    {
      default: [
        "text/*",
        "application/json",
        "application/javascript",
        "application/xml",
        "image/svg+xml",
        "application/wasm",
      ],
      maxItems: 200,
      description: "Media types to compress: `text/html`, or `text/*` for all of a kind",
    },
  ),
  br_level: integer(4, { minimum: 0, maximum: 11, description: "Compression level of br" }),
  gzip_level: integer(5, { minimum: 1, maximum: 9, description: "Compression level of gzip" }),
  zstd_level: integer(3, { minimum: 1, maximum: 19, description: "Compression level of zstd" }),
  flush: flag(
    false,
    "Also compress event streams, and flush every chunk at once, which compresses less",
  ),
});

type Config = (typeof schema)["static"];

/** Chunks of a stream shorter than this are flushed: the client may be waiting for them. */
const FLUSH_BELOW_BYTES = 8192;

/** Headers with a digest or a range of the uncompressed body. */
const ABOUT_THE_BODY = [
  ...["content-range", "content-digest", "repr-digest", "digest", "content-md5"],
] as const;

interface Prepared {
  readonly own: Config;
  readonly levels: Levels;
  readonly negotiate: (accept: string | null) => Coding | null;
  readonly isWanted: (type: string) => boolean;
  /** Compressed bodies of plugins that respond with the same body repeatedly. */
  readonly known: WeakMap<Uint8Array, Map<Coding, Uint8Array>>;
}

function prepare(own: Config): Prepared {
  const exact = new Set(own.types);
  const kinds = own.types.filter((type) => type.endsWith("/*")).map((type) => type.slice(0, -1));
  const { br_level: br, gzip_level: gzip, zstd_level: zstd } = own;
  return {
    own,
    levels: { br, gzip, zstd },
    negotiate: createNegotiator(own.encodings),
    isWanted: (type) => exact.has(type) || kinds.some((kind) => type.startsWith(kind)),
    known: new WeakMap(),
  };
}

/** Whether the response would be compressed for a client that accepts it. */
function isCompressible(draft: ResponseDraft, { own, isWanted }: Prepared): boolean {
  const { status, headers } = draft;
  if (status < 200 || status === 204 || status === 206 || status === 304) return false;
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  const media = type.trim().toLowerCase();
  if (!isWanted(media) || (media === "text/event-stream" && !own.flush)) return false;
  const coding = headers.get("content-encoding");
  if (coding !== null && coding.trim().toLowerCase() !== "identity") return false;
  if (/(?:^|[\s,])no-transform\b/i.test(headers.get("cache-control") ?? "")) return false;
  if (ABOUT_THE_BODY.some((name) => headers.has(name))) return false;
  const length = lengthOf(draft);
  return length === null || length >= own.min_bytes;
}

/** Length of the body of a GET response; null: unknown. */
function lengthOf({ bodyLength, hasBody, headers }: ResponseDraft): number | null {
  if (hasBody) return bodyLength;
  const length = headers.get("content-length");
  return length === null ? null : Number(length);
}

/**
 * BREACH: a page of another site makes the browser send requests with its cookies, and guesses the content from the length of
 * the responses.
 */
const isExposed = (context: RequestContext): boolean =>
  context.header("sec-fetch-site") === "cross-site" && context.header("cookie") !== null;

function respond(context: RequestContext, draft: ResponseDraft, prepared: Prepared): void {
  const { headers } = draft;
  if (draft.status === 304) {
    weaken(context, headers);
    return;
  }
  // gRPC compresses each message itself.
  if (context.isGrpc || !isCompressible(draft, prepared)) return;
  addVary(headers, ["Accept-Encoding"]);
  const coding = prepared.negotiate(context.header("accept-encoding"));
  if (coding === null || context.header("range") !== null || isExposed(context)) return;
  headers.set("Content-Encoding", coding);
  headers.delete("content-length");
  headers.delete("accept-ranges");
  const tag = headers.get("etag");
  // RFC 9110 section 8.8.1: the same in meaning, not in bytes.
  if (tag !== null && !tag.startsWith("W/")) headers.set("ETag", `W/${tag}`);
  if (draft.hasBody) draft.transformBody(new Compression(coding, draft, prepared));
}

/** A client that sends the weak tag gets it back. */
function weaken(context: RequestContext, headers: Headers): void {
  const tag = headers.get("etag");
  if (tag === null || tag.startsWith("W/")) return;
  if (context.header("if-none-match")?.includes(`W/${tag}`) !== true) return;
  headers.set("ETag", `W/${tag}`);
  // RFC 9110 section 15.4.5: a 304 has the headers of the response with that tag, because caches update theirs from it.
  addVary(headers, ["Accept-Encoding"]);
}

class Compression implements BodyTransform {
  readonly #coding: Coding;
  readonly #prepared: Prepared;
  readonly #isOfPlugin: boolean;
  readonly #isOfUnknownLength: boolean;
  #encoder: StreamEncoder | null = null;

  constructor(coding: Coding, draft: ResponseDraft, prepared: Prepared) {
    this.#coding = coding;
    this.#prepared = prepared;
    this.#isOfPlugin = draft.source === "plugin";
    this.#isOfUnknownLength = draft.bodyLength === null;
  }

  whole(pieces: readonly Uint8Array[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    const [only] = pieces;
    const isOne = pieces.length === 1 && only !== undefined;
    const body = isOne ? only : Buffer.concat(pieces);
    const coding = this.#coding;
    const { levels } = this.#prepared;
    const isRemembered = this.#isOfPlugin && isOne;
    const known = isRemembered ? this.#prepared.known.get(body)?.get(coding) : undefined;
    if (known !== undefined) return [known];
    if (body.byteLength > atOnceBytes(coding, levels))
      return this.#inAnotherThread(body, isRemembered);
    const coded = encode(coding, levels, body);
    if (isRemembered) this.#remember(body, coded);
    return [coded];
  }

  /** A cache responds with the same bytes each time: they are compressed once, and cached as long as they exist. */
  #remember(body: Uint8Array, coded: Uint8Array): void {
    const { known } = this.#prepared;
    const all = known.get(body) ?? new Map<Coding, Uint8Array>();
    all.set(this.#coding, coded);
    known.set(body, all);
  }

  async #inAnotherThread(body: Uint8Array, isRemembered: boolean): Promise<readonly Uint8Array[]> {
    const encoder = new StreamEncoder(this.#coding, this.#prepared.levels);
    const first = await encoder.push(body, false);
    const rest = await encoder.end();
    const pieces = [first, rest].filter((piece) => piece !== null);
    if (isRemembered) this.#remember(body, Buffer.concat(pieces));
    return pieces;
  }

  push(chunk: Uint8Array): Promise<Uint8Array | null> {
    this.#encoder ??= new StreamEncoder(this.#coding, this.#prepared.levels);
    const isFlushed =
      this.#prepared.own.flush || (this.#isOfUnknownLength && chunk.byteLength < FLUSH_BELOW_BYTES);
    return this.#encoder.push(chunk, isFlushed);
  }

  end(): Promise<Uint8Array | null> {
    this.#encoder ??= new StreamEncoder(this.#coding, this.#prepared.levels);
    return this.#encoder.end();
  }

  abort(): void {
    this.#encoder?.abort();
  }
}

export default definePlugin({
  name: "compress",
  summary: "Compresses response bodies for clients that accept it",
  description: `The client's highest weight in \`Accept-Encoding\` selects the coding, and the order of \`encodings\` breaks ties. Compressible
responses have \`Vary: Accept-Encoding\` for every client; a compressed one has a weak \`ETag\`, no \`Accept-Ranges\` and no length, and
HEAD gets the same head.

Not compressed: responses that have a coding already, \`Cache-Control: no-transform\`, partial responses (206) and range requests,
bodies known to be shorter than \`min_bytes\`, types that are not listed, responses with a digest of their body, and event streams
unless \`flush\` is set. Bodies that are available as a whole are compressed at once, up to a quarter of a megabyte (or 32 KiB from
\`br_level\` 7, \`gzip_level\` 8 and \`zstd_level\` 11 on); longer ones, streams, and everything from \`br_level\` 10 and \`zstd_level\` 15
on are compressed in another thread. Short chunks of a stream of unknown length are flushed at once, because the client may be
waiting for them.

A client that sends a weak tag in \`If-Match\` gets 412 from services that compare strongly, as with every compressing proxy.

**BREACH.** When a secret (such as a CSRF token) and data chosen by an attacker are in the same compressed body, the length of the
response reveals the secret letter by letter to an attacker who can see that length and make a browser send requests. No setting
can detect such pages. Responses to cross-site requests with cookies (\`Sec-Fetch-Site: cross-site\`) are therefore never
compressed, which removes the attacker's requests; beyond that, mask secrets in each response, set cookies with \`SameSite\`, or
exclude such pages with \`when\`.

With \`response-cache\`, responses are stored uncompressed, and the compressed form of a stored response is cached with it, outside
of its \`max_total\`. With a \`priority\` below 2500 this plugin runs inside of the cache, which then stores each coding.`,
  group: "content",
  order: 9500,
  phases: ["response", "body"],
  scopes: httpScopes,
  config: schema,
  example: { encodings: ["zstd", "br", "gzip"], min_bytes: 1024 },
  onError: "open",
  ignoresPath: true,
  create(own) {
    const prepared = prepare(own);
    return { response: (context, draft) => respond(context, draft, prepared) };
  },
});

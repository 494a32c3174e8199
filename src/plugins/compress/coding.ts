// Content codings: negotiation, and the encoding of whole bodies and of streams; knows no response.
import zlib from "node:zlib";

export const CODINGS = ["zstd", "br", "gzip"] as const;
export type Coding = (typeof CODINGS)[number];
export type Levels = Readonly<Record<Coding, number>>;

/** Bound of the cache, because clients choose the value. */
const MAX_KNOWN = 500;

/**
 * Negotiates by Accept-Encoding (RFC 9110 section 12.5.3): the highest weight, and among equals the first of `offers`. Null:
 * identity.
 */
export function createNegotiator(
  offers: readonly Coding[],
): (accept: string | null) => Coding | null {
  const known = new Map<string, Coding | null>();
  return (accept) => {
    if (accept === null || accept === "") return null;
    const before = known.get(accept);
    if (before !== undefined) return before;
    const chosen = choose(accept, offers);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(accept, chosen);
    return chosen;
  };
}

function choose(accept: string, offers: readonly Coding[]): Coding | null {
  const weights = new Map<string, number>();
  for (const part of accept.toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((each) => each.trim());
    if (name === "") continue;
    const weight = parameters.find((each) => /^q\s*=/.test(each));
    weights.set(name === "x-gzip" ? "gzip" : name, weight === undefined ? 1 : weightOf(weight));
  }
  const rest = weights.get("*") ?? 0;
  let best: Coding | null = null;
  // A client may prefer identity.
  let highest = weights.get("identity") ?? 0;
  for (const offer of offers) {
    const weight = weights.get(offer) ?? rest;
    if (weight > 0 && (best === null ? weight >= highest : weight > highest)) {
      best = offer;
      highest = weight;
    }
  }
  return best;
}

/** Malformed weights count as 0. */
function weightOf(parameter: string): number {
  const [, text = ""] = /^q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.exec(parameter) ?? [];
  return text === "" ? 0 : Number(text);
}

type GzipLevel = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;

/** Below this, and at low levels, the streaming library is faster; above, the other one is faster and compresses better. */
const LIBDEFLATE_FROM_BYTES = 4096;
const LIBDEFLATE_FROM_LEVEL = 4;

/**
 * Levels from which a coding is slow, and from which it is too slow for the worker's thread: at its highest level br takes half a
 * second for a quarter of a megabyte, and zstd even longer.
 */
const SLOW_FROM: Readonly<Record<Coding, readonly [slow: number, slowest: number]>> = {
  br: [7, 10],
  gzip: [8, 10],
  zstd: [11, 15],
};

/** Longest body to encode synchronously, which blocks the thread for some milliseconds. */
export function atOnceBytes(coding: Coding, levels: Levels): number {
  const [slow, slowest] = SLOW_FROM[coding];
  if (levels[coding] >= slowest) return 0;
  return levels[coding] >= slow ? 32_768 : 262_144;
}

/** Encodes a whole body synchronously. */
export function encode(coding: Coding, levels: Levels, body: Uint8Array): Uint8Array {
  const bytes = body as Uint8Array<ArrayBuffer>;
  const level = levels[coding];
  switch (coding) {
    case "gzip": {
      const isLong = bytes.byteLength >= LIBDEFLATE_FROM_BYTES && level >= LIBDEFLATE_FROM_LEVEL;
      const library = isLong ? "libdeflate" : "zlib";
      return Bun.gzipSync(bytes, { level: level as GzipLevel, library });
    }
    case "br":
      return zlib.brotliCompressSync(bytes, brotliOptions(level, bytes.byteLength));
    case "zstd":
      return Bun.zstdCompressSync(bytes, { level });
    default:
      return coding satisfies never;
  }
}

const { constants } = zlib;

const brotliOptions = (level: number, size: number) => ({
  params: {
    [constants.BROTLI_PARAM_QUALITY]: level,
    [constants.BROTLI_PARAM_SIZE_HINT]: size,
  },
});

const FLUSH = {
  gzip: constants.Z_SYNC_FLUSH,
  br: constants.BROTLI_OPERATION_FLUSH,
  zstd: constants.ZSTD_e_flush,
} as const satisfies Record<Coding, number>;

function createStream(coding: Coding, levels: Levels) {
  const level = levels[coding];
  switch (coding) {
    case "gzip":
      return zlib.createGzip({ level });
    case "br":
      return zlib.createBrotliCompress(brotliOptions(level, 0));
    case "zstd":
      return zlib.createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: level } });
    default:
      return coding satisfies never;
  }
}

/** Encodes a streamed body in another thread. One call at a time. */
export class StreamEncoder {
  readonly #coding: Coding;
  readonly #stream: ReturnType<typeof createStream>;
  #ready: Uint8Array[] = [];
  #fail: ((error: Error) => void) | null = null;

  constructor(coding: Coding, levels: Levels) {
    this.#coding = coding;
    this.#stream = createStream(coding, levels);
    // Without a reader the stream would stop accepting writes.
    this.#stream.on("readable", () => this.#read());
    this.#stream.on("error", (error: Error) => this.#fail?.(error));
  }

  /** Returns the output so far. `isFlushed`: for all of the input so far. */
  push(chunk: Uint8Array, isFlushed: boolean): Promise<Uint8Array | null> {
    return this.#run((done) =>
      this.#stream.write(chunk, () =>
        isFlushed ? this.#stream.flush(FLUSH[this.#coding], done) : done(),
      ),
    );
  }

  end(): Promise<Uint8Array | null> {
    return this.#run((done) => {
      this.#stream.once("end", done);
      this.#stream.end();
    });
  }

  abort(): void {
    this.#stream.destroy();
    this.#fail?.(new Error("the body is incomplete"));
  }

  #run(begin: (done: () => void) => void): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      begin(() => {
        this.#fail = null;
        this.#read();
        resolve(this.#take());
      });
    });
  }

  #read(): void {
    let chunk = this.#stream.read() as Uint8Array | null;
    while (chunk !== null) {
      this.#ready.push(chunk);
      chunk = this.#stream.read() as Uint8Array | null;
    }
  }

  #take(): Uint8Array | null {
    const pieces = this.#ready;
    this.#ready = [];
    const [only] = pieces;
    if (pieces.length <= 1) return only ?? null;
    return Buffer.concat(pieces);
  }
}

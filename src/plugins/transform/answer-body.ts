// Changes to whole bodies of answers, collected up to a limit; knows no configuration.
import type { BodyTransform, ResponseDraft } from "../../pdk/context.ts";
import { MAX_BODY_BYTES } from "./settings.ts";

/** Fields that describe the very bytes of a body. */
const OF_THE_BYTES = [
  ...["content-length", "content-md5", "digest", "content-digest", "repr-digest", "accept-ranges"],
];

/** Whether a text can be made of the body: nothing is compressed, a part of another one, or goes on for ever. */
export function canChangeBody({ status, headers }: ResponseDraft): boolean {
  const coding = headers.get("content-encoding");
  if (coding !== null && coding.trim().toLowerCase() !== "identity") return false;
  if (status === 206 || headers.has("content-range")) return false;
  const type = headers.get("content-type") ?? "";
  if (/^text\/event-stream/i.test(type)) return false;
  const [, charset = "utf-8"] = /;\s*charset="?([^\s;"]+)/i.exec(type) ?? [];
  return /^(?:utf-?8|us-ascii)$/i.test(charset);
}

/** The body will be another one: what is said of the old one would be wrong. */
export function forgetBytes(headers: Headers): void {
  for (const name of OF_THE_BYTES) headers.delete(name);
  const tag = headers.get("etag");
  // RFC 9110 section 8.8.1: the same to whoever does not compare bytes.
  if (tag !== null && !tag.startsWith("W/")) headers.set("etag", `W/${tag}`);
}

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/** What became of a text; null: it stays as it is. */
type TextChange = (text: string) => string | null;

export function changedBytes(bytes: Uint8Array, change: TextChange): Uint8Array {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return bytes;
  }
  const next = change(text);
  return next === null ? bytes : encoder.encode(next);
}

/** Collects a body and changes it at its end. One that turns out to be too long goes on as it is. */
export class WholeBody implements BodyTransform {
  readonly #change: TextChange;
  readonly #tooLong: () => void;
  #pieces: Uint8Array[] = [];
  #size = 0;
  #isTooLong = false;

  constructor(change: TextChange, tooLong: () => void) {
    this.#change = change;
    this.#tooLong = tooLong;
  }

  push(chunk: Uint8Array): Uint8Array | null {
    if (this.#isTooLong) return chunk;
    this.#size += chunk.byteLength;
    if (this.#size <= MAX_BODY_BYTES) {
      // The bytes belong to the gateway, which may use their memory again.
      this.#pieces.push(chunk.slice());
      return null;
    }
    this.#isTooLong = true;
    this.#tooLong();
    const all = Buffer.concat([...this.#pieces, chunk]);
    this.#pieces = [];
    return all;
  }

  end(): Uint8Array | null {
    if (this.#isTooLong) return null;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    return changedBytes(bytes, this.#change);
  }

  abort(): void {
    this.#pieces = [];
  }
}

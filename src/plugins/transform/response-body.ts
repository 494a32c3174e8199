// Changes complete response bodies, collected up to a limit; knows no configuration.
import type { BodyTransform, ResponseDraft } from "../../pdk/context.ts";
import { MAX_BODY_BYTES } from "./settings.ts";

/** Headers that describe the exact bytes of a body. */
const OF_THE_BYTES = [
  ...["content-length", "content-md5", "digest", "content-digest", "repr-digest", "accept-ranges"],
];

/** Whether the body can be changed: not compressed, not partial, not endless. */
export function canChangeBody({ status, headers }: ResponseDraft): boolean {
  const coding = headers.get("content-encoding");
  if (coding !== null && coding.trim().toLowerCase() !== "identity") return false;
  if (status === 206 || headers.has("content-range")) return false;
  const type = headers.get("content-type") ?? "";
  if (/^text\/event-stream/i.test(type)) return false;
  const [, charset = "utf-8"] = /;\s*charset="?([^\s;"]+)/i.exec(type) ?? [];
  return /^(?:utf-?8|us-ascii)$/i.test(charset);
}

/** Removes headers that describe the original body. */
export function forgetBytes(headers: Headers): void {
  for (const name of OF_THE_BYTES) headers.delete(name);
  const tag = headers.get("etag");
  // RFC 9110 section 8.8.1: weak, because the bytes differ.
  if (tag !== null && !tag.startsWith("W/")) headers.set("etag", `W/${tag}`);
}

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/** The changed text; null: unchanged. */
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

/** Collects a body and changes it at its end. One that is too long passes unchanged. */
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
      // Copies, because the gateway reuses the memory.
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

// Content codings of request bodies, RFC 9110 section 8.4; knows no format of a body.
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, type InputType, type ZlibOptions } from "node:zlib";
import { ApiError } from "../model/error.ts";

/** In threads of the runtime; fails as soon as the result is larger than `maxOutputLength`. */
type Decoder = (coded: InputType, options: ZlibOptions) => Promise<Uint8Array>;

const gzip: Decoder = promisify<InputType, ZlibOptions, Buffer>(gunzip);

/** Without zstd, whose decoder in Bun 1.4.5 takes a truncated body for a whole one. */
const decoders: Readonly<Record<string, Decoder>> = {
  gzip,
  "x-gzip": gzip,
  deflate: promisify<InputType, ZlibOptions, Buffer>(inflate),
  br: promisify<InputType, ZlibOptions, Buffer>(brotliDecompress),
};
const ACCEPTED = "gzip, deflate, br";

/**
 * Decodes a body to at most `maxBytes`; null: it is not coded. Throws a 415 that names the accepted codings (section 15.5.16)
 * before the body is read.
 */
export function decoderOf(
  { headers }: Pick<Request, "headers">,
  maxBytes: number,
): ((coded: Uint8Array) => Promise<Uint8Array>) | null {
  const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (coding === "" || coding === "identity") return null;
  const decoder = Object.hasOwn(decoders, coding) ? decoders[coding] : undefined;
  if (decoder === undefined)
    throw new ApiError(
      415,
      `Content-Encoding: the body must have no coding or one of ${ACCEPTED}`,
      // The body is not read, so the connection cannot be used again.
      { headers: { "accept-encoding": ACCEPTED, connection: "close" } },
    );
  return async (coded) => {
    if (coded.byteLength === 0) return coded;
    try {
      return await decoder(coded, { maxOutputLength: maxBytes });
    } catch (error) {
      const isTooLarge = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
      if (isTooLarge) throw new ApiError(413, `the decoded body is larger than ${maxBytes} bytes`);
      throw new ApiError(400, `the body is not valid ${coding}`, { cause: error });
    }
  };
}

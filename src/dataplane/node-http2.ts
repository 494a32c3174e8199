// Loads node:http2 on first use: gateways without HTTP/2 targets or full engines never pay for it; knows no session.
import type * as Http2 from "node:http2";

/** Synchronous, from source and in the executable. */
export function nodeHttp2(): typeof Http2 {
  return process.getBuiltinModule("node:http2");
}

// The traceparent field of W3C Trace Context; knows no span and no sampling.

/** A parsed traceparent. */
export interface TraceParent {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the span of the caller. */
  readonly spanId: string;
  readonly flags: number;
}

/** Section 3.2.2: version ff and ids of zeros are invalid; later versions may be longer, after another dash. */
const PATTERN =
  /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32})-((?!0{16})[\da-f]{16})-([\da-f]{2})(?:-.*)?$/;

/** Null when it is invalid. */
export function parseTraceParent(text: string | null): TraceParent | null {
  if (text === null || text.length < 55 || text.length > 512) return null;
  const [, version, traceId, spanId, flags] = PATTERN.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  if (version === "00" && text.length !== 55) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** Section 4.3: sends the known version and only known flags, whatever arrived. */
export function formatTraceParent(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

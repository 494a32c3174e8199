// The SETTINGS of both sides (RFC 9113 section 6.5); knows no stream.
import { CODE, ConnectionError, FRAME, type Frame, uint32At } from "./frames.ts";
import type { FrameOutput } from "./output.ts";

export const DEFAULT_WINDOW = 65_535;
export const MAX_WINDOW = 2 ** 31 - 1;
/** Of all streams: what one holds back must not stop the others. */
export const CONNECTION_WINDOW = 16_777_216;
/** The least that carries a whole frame. */
const LEAST_WINDOW = 16_384;

const SETTING = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  enableConnectProtocol: 8,
  noRfc7540Priorities: 9,
} as const;
const SETTING_BYTES = 6;
/** RFC 9113 section 6.5.2 counts so much more for each field than a head of HTTP/1.1 has. */
const MORE_PER_FIELD = 28;
const USUAL_FIELDS = 100;

/** The window of each of so many streams, so that all of them fit into that of the connection. */
export const windowOf = (streams: number): number =>
  Math.min(DEFAULT_WINDOW, Math.max(LEAST_WINDOW, Math.floor(CONNECTION_WINDOW / streams)));

/** Sends the gateway's own, with the window of the connection. */
export function sendSettings(
  output: FrameOutput,
  { maxStreams, maxHeadBytes }: { readonly maxStreams: number; readonly maxHeadBytes: number },
): void {
  const values: readonly (readonly [id: number, value: number])[] = [
    [SETTING.maxConcurrentStreams, maxStreams],
    [SETTING.initialWindowSize, windowOf(maxStreams)],
    [SETTING.maxHeaderListSize, maxHeadBytes + USUAL_FIELDS * MORE_PER_FIELD],
    [SETTING.enableConnectProtocol, 1],
    [SETTING.noRfc7540Priorities, 1],
  ];
  const payload = Buffer.alloc(values.length * SETTING_BYTES);
  for (const [at, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, at * SETTING_BYTES);
    payload.writeUInt32BE(value, at * SETTING_BYTES + 2);
  }
  output.copy(FRAME.settings, 0, { stream: 0, payload });
  output.uint32(FRAME.windowUpdate, 0, CONNECTION_WINDOW - DEFAULT_WINDOW);
}

/** The client's window of each stream, as a SETTINGS frame sets it last; null: it does not. Throws ConnectionError. */
export function readInitialWindow({ bytes, start, end }: Frame): number | null {
  let window: number | null = null;
  for (let at = start; at < end; at += SETTING_BYTES) {
    const id = bytes.readUInt16BE(at);
    const value = uint32At(bytes, at + 2);
    if (id === SETTING.enablePush && value > 1) throw notValid();
    if (id === SETTING.enableConnectProtocol && value > 1) throw notValid();
    if (id === SETTING.noRfc7540Priorities && value > 1) throw notValid();
    // The least frame size is the only one that the gateway sends.
    if (id === SETTING.maxFrameSize && (value < 16_384 || value > 16_777_215)) throw notValid();
    if (id !== SETTING.initialWindowSize) continue;
    if (value > MAX_WINDOW)
      throw new ConnectionError(CODE.flowControl, "a window of the HTTP/2 settings is too large");
    window = value;
  }
  return window;
}

const notValid = () => new ConnectionError(CODE.protocol, "an HTTP/2 setting is not valid");

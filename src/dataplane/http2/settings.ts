// SETTINGS of HTTP/2 (RFC 9113 section 6.5); knows neither side.
import { CODE, ConnectionError, FRAME, type Frame, uint32At } from "./frames.ts";
import type { FrameOutput } from "./output.ts";

export const DEFAULT_WINDOW = 65_535;
export const MAX_WINDOW = 2 ** 31 - 1;
/** Of all streams: what one holds back must not stop the others. */
export const CONNECTION_WINDOW = 16_777_216;

export const SETTING = {
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

/** Sends the gateway's own, with the window of the connection. */
export function sendSettings(
  output: FrameOutput,
  values: readonly (readonly [id: number, value: number])[],
): void {
  const payload = Buffer.alloc(values.length * SETTING_BYTES);
  for (const [at, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, at * SETTING_BYTES);
    payload.writeUInt32BE(value, at * SETTING_BYTES + 2);
  }
  output.copy(FRAME.settings, 0, { stream: 0, payload });
  output.uint32(FRAME.windowUpdate, 0, CONNECTION_WINDOW - DEFAULT_WINDOW);
}

/** What the peer sets that the gateway heeds; null: it does not. */
export interface PeerSettings {
  /** Of each stream. */
  readonly window: number | null;
  readonly maxStreams: number | null;
  readonly enablesPush: boolean;
}

/** Of a SETTINGS frame, in which the last value counts. Throws ConnectionError. */
export function readSettings({ bytes, start, end }: Frame): PeerSettings {
  let window: number | null = null;
  let maxStreams: number | null = null;
  let enablesPush = false;
  for (let at = start; at < end; at += SETTING_BYTES) {
    const id = bytes.readUInt16BE(at);
    const value = uint32At(bytes, at + 2);
    const isFlag =
      id === SETTING.enablePush ||
      id === SETTING.enableConnectProtocol ||
      id === SETTING.noRfc7540Priorities;
    if (isFlag && value > 1) throw notValid();
    // The least frame size is the only one that the gateway sends.
    if (id === SETTING.maxFrameSize && (value < 16_384 || value > 16_777_215)) throw notValid();
    if (id === SETTING.enablePush) enablesPush ||= value === 1;
    if (id === SETTING.maxConcurrentStreams) maxStreams = value;
    if (id !== SETTING.initialWindowSize) continue;
    if (value > MAX_WINDOW)
      throw new ConnectionError(CODE.flowControl, "a window of the HTTP/2 settings is too large");
    window = value;
  }
  return { window, maxStreams, enablesPush };
}

const notValid = () => new ConnectionError(CODE.protocol, "an HTTP/2 setting is not valid");

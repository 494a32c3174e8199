// The SETTINGS of the gateway to clients; knows no stream.
import { CONNECTION_WINDOW, DEFAULT_WINDOW, SETTING } from "../../http2/settings.ts";

/** The least that carries a whole frame. */
const LEAST_WINDOW = 16_384;
/** RFC 9113 section 6.5.2 counts so much more for each field than a head of HTTP/1.1 has. */
const MORE_PER_FIELD = 28;
const USUAL_FIELDS = 100;

/** The window of each of so many streams, so that all of them fit into that of the connection. */
export const windowOf = (streams: number): number =>
  Math.min(DEFAULT_WINDOW, Math.max(LEAST_WINDOW, Math.floor(CONNECTION_WINDOW / streams)));

export const settingsOf = ({
  maxStreams,
  maxHeadBytes,
}: {
  readonly maxStreams: number;
  readonly maxHeadBytes: number;
}): readonly (readonly [id: number, value: number])[] => [
  [SETTING.maxConcurrentStreams, maxStreams],
  [SETTING.initialWindowSize, windowOf(maxStreams)],
  [SETTING.maxHeaderListSize, maxHeadBytes + USUAL_FIELDS * MORE_PER_FIELD],
  [SETTING.enableConnectProtocol, 1],
  [SETTING.noRfc7540Priorities, 1],
];

// Reads a stream of server-sent events as a browser does, and records the events.
import { DEADLINE_MS, eventually } from "./poll.ts";

export interface ReceivedEvent {
  /** Last id that was seen, of this event or one before. */
  readonly id: string;
  readonly kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
  readonly data: any;
}

export interface EventClient {
  readonly status: number;
  readonly headers: Headers;
  readonly events: ReceivedEvent[];
  /** All received text, unchanged. */
  readonly text: string;
  /** What a browser would send as Last-Event-ID. */
  readonly lastId: string;
  readonly isEnded: boolean;
  /** Waits until there are as many events. */
  receives(count: number, deadlineMs?: number): Promise<ReceivedEvent[]>;
  /** Waits until the server has ended the stream. */
  ends(deadlineMs?: number): Promise<void>;
  close(): void;
}

/** Resolves with the head of the response; reads a response that is not a stream into `text`. */
export async function openEvents(
  url: string,
  headers: Record<string, string> = {},
): Promise<EventClient> {
  const abort = new AbortController();
  const response = await fetch(url, { headers, signal: abort.signal });
  const seen = { text: "", lastId: "", isEnded: false, events: [] as ReceivedEvent[] };
  const decoder = new TextDecoder();
  let rest = "";
  const read = async () => {
    for await (const chunk of response.body ?? []) {
      const text = decoder.decode(chunk, { stream: true });
      seen.text += text;
      const blocks = (rest + text).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) take(block, seen);
    }
  };
  // An aborted stream has ended as well.
  void read()
    .catch(() => undefined)
    .finally(() => (seen.isEnded = true));
  return {
    status: response.status,
    headers: response.headers,
    get events() {
      return seen.events;
    },
    get text() {
      return seen.text;
    },
    get lastId() {
      return seen.lastId;
    },
    get isEnded() {
      return seen.isEnded;
    },
    receives: (count, deadlineMs = DEADLINE_MS) =>
      eventually(() => (seen.events.length >= count ? seen.events : null), { deadlineMs }),
    async ends(deadlineMs = DEADLINE_MS) {
      await eventually(() => seen.isEnded, { deadlineMs });
    },
    close: () => abort.abort(),
  };
}

function take(block: string, seen: { lastId: string; events: ReceivedEvent[] }): void {
  let kind = "message";
  let data = "";
  for (const line of block.split("\n")) {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    if (name === "id") seen.lastId = value;
    if (name === "event") kind = value;
    if (name === "data") data += value;
  }
  if (data !== "") seen.events.push({ id: seen.lastId, kind, data: JSON.parse(data) });
}

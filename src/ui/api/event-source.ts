// A server-sent event stream that reconnects and resumes automatically; knows no event type.

export interface StreamHandlers {
  /** One event; `data` is its JSON. */
  readonly onEvent: (kind: string, data: unknown) => void;
  readonly onState?: (isOpen: boolean) => void;
  /** Whether the stream resumes after the last event with `last_event_id`. */
  readonly resumes?: boolean;
}

const RETRY_MS = 5000;
/** Browsers limit connections per host: a hidden page closes its stream after this time. */
const HIDDEN_MS = 30_000;

/** Follows `url` until the returned function is called. `kinds` are the names of the events to listen to. */
export function follow(
  url: string,
  kinds: readonly string[],
  handlers: StreamHandlers,
): () => void {
  const stream = new Stream(url, kinds, handlers);
  return () => stream.close();
}

class Stream {
  readonly #url: string;
  readonly #kinds: readonly string[];
  readonly #handlers: StreamHandlers;
  #source: EventSource | null = null;
  #lastId = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(url: string, kinds: readonly string[], handlers: StreamHandlers) {
    this.#url = url;
    this.#kinds = kinds;
    this.#handlers = handlers;
    document.addEventListener("visibilitychange", this.#onVisibility);
    this.#open();
  }

  close(): void {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    this.#drop();
  }

  #open(): void {
    const url = new URL(this.#url, location.origin);
    // A new EventSource does not send Last-Event-ID.
    if (this.#handlers.resumes === true && this.#lastId !== "")
      url.searchParams.set("last_event_id", this.#lastId);
    const source = new EventSource(url);
    this.#source = source;
    source.onopen = () => this.#handlers.onState?.(true);
    source.onerror = () => {
      this.#handlers.onState?.(false);
      // After a status such as 401 or 429, browsers do not reconnect.
      if (source.readyState === EventSource.CLOSED) this.#retry();
    };
    for (const kind of this.#kinds)
      source.addEventListener(kind, (event: MessageEvent<string>) => {
        this.#lastId = event.lastEventId;
        this.#handlers.onEvent(kind, JSON.parse(event.data) as unknown);
      });
  }

  #drop(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #retry(): void {
    this.#drop();
    this.#timer = setTimeout(() => this.#open(), RETRY_MS);
  }

  readonly #onVisibility = (): void => {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#drop(), HIDDEN_MS);
    else if (this.#source === null) this.#open();
  };
}

// A web server for scripted DNS provider APIs, with records in memory.

export interface StoredRecord {
  readonly id: string;
  readonly zone: string;
  /** Absolute. */
  readonly name: string;
  /** As it was sent. */
  readonly value: string;
}

/** A scripted response: a status and a body, JSON unless it is a string. */
export interface Answer {
  readonly status?: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export interface Asked {
  readonly method: string;
  /** With the base address of the real API, and without the query. */
  readonly url: string;
  /** Behind the base address. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
  readonly json: any;
  /** The whole URL as the client intended it. */
  readonly full: string;
}

export interface World {
  readonly zones: string[];
  records: StoredRecord[];
  /** Numbers for ids. */
  next(): string;
  /** Plain texts of the records of a name, sorted. */
  texts(name: string): string[];
}

/** How one API responds to authenticated requests. */
export interface Play {
  readonly base: string;
  /** Null: authenticated; otherwise the error response. */
  admit(asked: Asked): Answer | null;
  answer(asked: Asked, world: World): Answer;
}

export interface ScriptedApi {
  readonly world: World;
  /** Authenticated requests, as `METHOD /path`. */
  readonly asked: string[];
  /** Responses to send first, before any check. */
  readonly first: Answer[];
  /** Redirects requests for the real API to this server. */
  readonly fetch: typeof fetch;
  stop(): void;
}

export function startScriptedApi(play: Play): ScriptedApi {
  const world = createWorld();
  const asked: string[] = [];
  const first: Answer[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const full = request.headers.get("x-meant-url") ?? "";
      const url = new URL(full);
      const text = await request.text();
      const one: Asked = {
        method: request.method,
        full,
        url: `${url.origin}${url.pathname}`,
        path: decodeURIComponent(`${url.origin}${url.pathname}`.slice(play.base.length)),
        query: url.searchParams,
        headers: request.headers,
        text,
        json: parse(text),
      };
      const refused = first.shift() ?? play.admit(one);
      if (refused !== null) return toResponse(refused);
      asked.push(`${one.method} ${one.path}`);
      return toResponse(play.answer(one, world));
    },
  });
  const bring = (input: RequestInfo | URL, init?: RequestInit) => {
    const meant = new URL(String(input));
    const headers = new Headers(init?.headers);
    headers.set("x-meant-url", meant.href);
    const here = `http://127.0.0.1:${server.port}${meant.pathname}${meant.search}`;
    return fetch(here, { ...init, headers });
  };
  return {
    world,
    asked,
    first,
    fetch: bring as typeof fetch,
    stop: () => void server.stop(true),
  };
}

function createWorld(): World {
  let last = 100;
  const world: World = {
    zones: ["example.com", "sub.example.com"],
    records: [],
    next: () => String(++last),
    texts: (name) =>
      world.records
        .filter((record) => record.name === name)
        .map(({ value }) => value.replace(/^"|"$/g, ""))
        .sort(),
  };
  return world;
}

function toResponse({ status = 200, body, headers }: Answer): Response {
  const isText = typeof body === "string";
  return new Response(body === undefined || isText ? (body ?? null) : JSON.stringify(body), {
    status,
    headers: { ...(isText ? {} : { "content-type": "application/json" }), ...headers },
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

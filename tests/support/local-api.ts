// A scripted local API of CrowdSec, which records what it is asked.
export interface ScriptedDecision {
  readonly id?: number;
  readonly scope?: string;
  readonly type?: string;
  readonly value: string;
  readonly duration?: string;
  readonly simulated?: boolean;
}

export class LocalApi {
  /** Query and key of each request. */
  readonly asked: { readonly startup: boolean; readonly query: string; readonly key: string }[] =
    [];
  /** In force. */
  decisions: ScriptedDecision[] = [];
  /** What a request for changes gets next, once. */
  changes: { readonly added?: ScriptedDecision[]; readonly deleted?: ScriptedDecision[] } = {};
  /** Instead of decisions; null: decisions. */
  answer: ((request: Request) => Response | Promise<Response>) | null = null;
  readonly #server: Bun.Server<undefined>;

  constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: (request) => this.#respond(request),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  #respond(request: Request): Response | Promise<Response> {
    const { pathname, searchParams, search } = new URL(request.url);
    if (pathname !== "/v1/decisions/stream") return new Response(null, { status: 404 });
    const startup = searchParams.get("startup") === "true";
    const key = request.headers.get("x-api-key") ?? "";
    this.asked.push({ startup, query: search, key });
    if (this.answer !== null) return this.answer(request);
    if (startup) return Response.json({ new: filled(this.decisions), deleted: null });
    const { added = [], deleted = [] } = this.changes;
    this.changes = {};
    return Response.json({ new: filled(added), deleted: filled(deleted) });
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }
}

const filled = (decisions: readonly ScriptedDecision[]) =>
  decisions.map((decision) => ({
    id: 1,
    origin: "cscli",
    scenario: "manual",
    scope: "Ip",
    type: "ban",
    duration: "3h59m59.5s",
    ...decision,
  }));

// llm-token-budget: limits the tokens of language models that each consumer uses, as their responses count them.
import {
  type BodyTransform,
  config,
  definePlugin,
  flag,
  httpScopes,
  integer,
  keyReader,
  reject,
  requestKey,
} from "@sluice/plugin";

const MAX_EVENT = 65_536;

interface Usage {
  readonly total: number;
  readonly input: number;
  readonly output: number;
}

/** Of OpenAI's, Anthropic's and compatible APIs; null: the value has none. */
function usageIn(value: unknown): Usage | null {
  if (typeof value !== "object" || value === null) return null;
  const { usage, message } = value as { readonly usage?: unknown; readonly message?: unknown };
  if (typeof usage !== "object" || usage === null) return usageIn(message);
  const count = (name: string) => {
    const number = (usage as Readonly<Record<string, unknown>>)[name];
    return typeof number === "number" && number >= 0 && number < 1e9 ? Math.floor(number) : 0;
  };
  return {
    total: count("total_tokens"),
    input: count("prompt_tokens") + count("input_tokens"),
    output: count("completion_tokens") + count("output_tokens"),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Watches a body, and reports its tokens at its end. Events repeat what earlier ones counted, so the highest of each kind holds. */
class Meter implements BodyTransform {
  readonly isObserver = true;
  readonly #isEvents: boolean;
  readonly #report: (tokens: number) => void;
  readonly #maxBody: number;
  readonly #decoder = new TextDecoder();
  #text = "";
  #used: Usage = { total: 0, input: 0, output: 0 };

  constructor(
    isEvents: boolean,
    { maxBody, report }: { readonly maxBody: number; readonly report: (tokens: number) => void },
  ) {
    this.#isEvents = isEvents;
    this.#maxBody = maxBody;
    this.#report = report;
  }

  push(chunk: Uint8Array): Uint8Array {
    if (this.#text.length <= this.#maxBody)
      this.#text += this.#decoder.decode(chunk, { stream: true });
    if (this.#isEvents) this.#readEvents();
    return chunk;
  }

  end(): null {
    if (this.#isEvents) this.#readEvents(true);
    else this.#see(parsed(this.#text));
    this.#report(this.#tokens());
    return null;
  }

  /** A client that leaves early has used what was counted until then. */
  abort(): void {
    this.#report(this.#tokens());
  }

  #readEvents(isEnd = false): void {
    const lines = this.#text.split("\n");
    this.#text = isEnd ? "" : (lines.pop() ?? "").slice(0, MAX_EVENT);
    for (const line of lines) if (line.startsWith("data:")) this.#see(parsed(line.slice(5)));
  }

  #see(value: unknown): void {
    const seen = usageIn(value);
    if (seen === null) return;
    const { total, input, output } = this.#used;
    this.#used = {
      total: Math.max(total, seen.total),
      input: Math.max(input, seen.input),
      output: Math.max(output, seen.output),
    };
  }

  #tokens(): number {
    const { total, input, output } = this.#used;
    return Math.max(total, input + output);
  }
}

export default definePlugin({
  name: "llm-token-budget",
  summary: "Limits the tokens of language models per consumer and time window",
  description: `Counts \`usage\` of JSON responses and of event streams (OpenAI: with \`stream_options.include_usage\`; Anthropic: always). A
request is rejected with 429 once the budget is used; the response that crosses it is not cut off, because its length is not known
before.`,
  group: "traffic",
  order: 6490,
  phases: ["access", "request", "response", "body"],
  scopes: httpScopes,
  config: config({
    tokens: integer(100_000, {
      minimum: 1,
      maximum: 1_000_000_000,
      description: "Tokens per window",
    }),
    window: integer(3600, { minimum: 1, maximum: 31_536_000, description: "Seconds of a window" }),
    key: requestKey("consumer", "Who has a budget"),
    max_body: integer(4_194_304, {
      minimum: 1024,
      maximum: 67_108_864,
      description: "Longest JSON response in bytes that is counted",
    }),
    send_headers: flag(true, "Send X-RateLimit-Remaining-Tokens"),
  }),
  example: { tokens: 200_000, window: 86_400 },
  onError: "closed",
  create(own, kit) {
    const keyOf = keyReader(own.key);
    const windowMs = own.window * 1000;
    const spent = (key: string, tokens = 0) => kit.counters.add(key, tokens, windowMs);
    return {
      access(context) {
        const { current, elapsedMs } = spent(keyOf(context));
        if (current < own.tokens) return undefined;
        return reject(429, "llm.budget_used", {
          detail: "the budget of tokens is used",
          headers: { "Retry-After": String(Math.ceil((windowMs - elapsedMs) / 1000)) },
        });
      },
      request(context) {
        // A compressed response could not be read.
        context.upstream.setHeader("Accept-Encoding", "identity");
        return undefined;
      },
      response(context, response) {
        if (response.source !== "upstream" || response.status >= 400) return;
        const key = keyOf(context);
        const type = response.headers.get("content-type") ?? "";
        const isEvents = /^text\/event-stream\b/i.test(type);
        if (own.send_headers)
          response.setHeader(
            "X-RateLimit-Remaining-Tokens",
            String(Math.max(0, own.tokens - spent(key).current)),
          );
        if (!isEvents && !/^application\/(?:json|[a-z0-9.+-]+\+json)\b/i.test(type)) return;
        response.transformBody(
          new Meter(isEvents, {
            maxBody: own.max_body,
            report: (tokens) => {
              if (tokens === 0)
                kit.log("warn", "a response says no number of tokens", { request_id: context.id });
              else spent(key, tokens);
            },
          }),
        );
      },
    };
  },
});

// An OTLP/HTTP collector with scripted responses that records what it receives.
import { DEADLINE_MS, eventually } from "./poll.ts";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly kind: number;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code: number };
  /** Values by key. */
  readonly attributes: Readonly<Record<string, string | number>>;
}

export interface ReceivedBatch {
  readonly path: string;
  readonly headers: Headers;
  readonly resource: Readonly<Record<string, string | number>>;
  readonly spans: readonly ReceivedSpan[];
  readonly status: number;
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

const toRecord = (attributes: readonly Attribute[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
  );

/** `answer` returns the response to the n-th request, from 0; default: all are accepted. */
export function startCollector(
  answer: (index: number) => Response | Promise<Response> = () => Response.json({}),
) {
  const batches: ReceivedBatch[] = [];
  let count = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      // biome-ignore lint/suspicious/noExplicitAny: what it is is what is tested
      const body: any = await request.json();
      const response = await answer(count++);
      const [{ resource, scopeSpans }] = body.resourceSpans;
      batches.push({
        path: new URL(request.url).pathname,
        headers: request.headers,
        resource: toRecord(resource.attributes),
        // biome-ignore lint/suspicious/noExplicitAny: as above
        spans: scopeSpans[0].spans.map((span: any) => ({
          ...span,
          attributes: toRecord(span.attributes),
        })),
        status: response.status,
      });
      return response;
    },
  });
  const taken = () => batches.filter(({ status }) => status < 300).flatMap(({ spans }) => spans);
  return {
    url: `http://127.0.0.1:${server.port}`,
    batches,
    taken,
    /** Waits until it has accepted so many spans. */
    receives: (spans: number, deadlineMs = DEADLINE_MS) =>
      eventually(() => (taken().length >= spans ? taken() : null), { deadlineMs }),
    stop: () => server.stop(true),
  };
}

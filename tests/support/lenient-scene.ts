// A data plane in front of a lenient origin, and probes that report what both ends saw.
import { type DataPlaneSketch, type RunningDataPlane, startDataPlane } from "./data-plane.ts";
import { type ExecutedRequest, type LenientOrigin, startLenientOrigin } from "./lenient-origin.ts";
import { type Conversation, exchange, type ExchangeOptions } from "./raw-exchange.ts";

/** The result of a probe. */
export interface Seen extends Conversation {
  /** Requests that the origin executed because of the probe. */
  readonly executed: readonly ExecutedRequest[];
  /** Their methods and targets. */
  readonly lines: readonly string[];
  /** Connections to the origin with ambiguous bytes. */
  readonly ambiguous: readonly string[];
  /** Status and body of a plain request sent afterwards, which must be `200 /canary`. */
  readonly canary: string;
}

export interface LenientScene {
  readonly origin: LenientOrigin;
  readonly gateway: RunningDataPlane;
  /** Sends raw bytes, then a plain request, which a poisoned connection would spoil. */
  probe(bytes: string, options?: Partial<ExchangeOptions>): Promise<Seen>;
  /** Throws when a request is still in flight: nothing may leak. */
  stop(): Promise<void>;
}

const CANARY = "/canary";

/** Every request goes to the origin, unless the sketch says otherwise. */
export async function startLenientScene(
  sketch: Parameters<typeof startDataPlane>[0] & {
    readonly service?: Omit<NonNullable<DataPlaneSketch["services"]>[number], "name">;
    readonly answer?: (request: ExecutedRequest) => string;
  } = {},
): Promise<LenientScene> {
  const { service = {}, answer, ...rest } = sketch;
  const origin = startLenientOrigin(answer);
  const gateway = await startDataPlane({
    services: [{ name: "origin", targets: [{ port: origin.port }], ...service }],
    routes: [{ name: "all", service_id: "origin" }],
    ...rest,
  });
  const isTls = gateway.url.startsWith("https:");
  return {
    origin,
    gateway,
    async probe(bytes, options = {}) {
      origin.forget();
      const to = { port: gateway.port, tls: isTls };
      const conversation = await exchange(bytes, {
        ...to,
        methods: [bytes.slice(0, bytes.indexOf(" "))],
        ...options,
      });
      const plain = await exchange(`GET ${CANARY} HTTP/1.1\r\nHost: canary.test\r\n\r\n`, to);
      const isOwn = ({ target }: ExecutedRequest) => target !== CANARY;
      const executed = origin.executed.filter(isOwn);
      return {
        ...conversation,
        executed,
        lines: executed.map(({ method, target }) => `${method} ${target}`),
        ambiguous: origin.ambiguous,
        canary: plain.answers.map(({ status, body }) => `${status} ${body}`).join(),
      };
    },
    async stop() {
      const left = await gateway.drain(3000);
      origin.stop();
      if (left > 0) throw new Error(`${left} requests never ended`);
    },
  };
}

/** What a client and the origin must see of a rejected request. */
export const refused = (status: string) => ({
  outcome: status,
  lines: [],
  ambiguous: [],
  canary: "200 /canary",
});

/** What a client and the origin must see of requests that are served. */
export const served = (lines: readonly string[], outcome = lines.map(() => "200").join(" ")) => ({
  outcome,
  lines: [...lines],
  ambiguous: [],
  canary: "200 /canary",
});

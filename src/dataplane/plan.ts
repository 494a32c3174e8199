// How a request goes to a target, decided before the first attempt; knows no attempt.
import type { BodyPatience } from "./client-body.ts";
import type { RequestContext } from "./request-context.ts";
import type { RouteRuntime } from "./route-runtime.ts";
import type { ServiceRuntime } from "./service-runtime.ts";
import { RequestBody } from "./upstream/request-body.ts";
import type { ForwardedFields } from "./upstream/request-writer.ts";

/** How long the bodies of clients are waited for, whatever listener and route. */
export type BodyTimes = Omit<BodyPatience, "minRate">;

/** What a client is granted while its body is read. */
export const bodyPatience = (
  { readTimeout, rateGrace }: BodyTimes,
  { listener }: RequestContext,
  route: RouteRuntime | null,
): BodyPatience => ({
  readTimeout,
  rateGrace,
  minRate: route?.route.body_min_rate ?? listener.bodyMinRate,
});

/** Everything that was decided before the first attempt. */
export interface Plan {
  readonly context: RequestContext;
  readonly route: RouteRuntime;
  readonly service: ServiceRuntime;
  readonly fields: ForwardedFields;
  /** Path and query upstream. */
  readonly target: string;
  readonly maxHeadBytes: number;
  readonly bodyTimes: BodyTimes;
  /** Milliseconds that the client may take nothing of the answer. */
  readonly responseWriteTimeout: number;
  /** Fields for the response that say who answered; null unless asked for. */
  readonly debugFields: readonly (readonly [string, string])[] | null;
}

/** The body that goes with it; null: none. */
export function requestBodyOf(plan: Plan, now: () => number): RequestBody | null {
  const { context, bodyTimes, route, fields } = plan;
  const { bodyLength: length } = fields;
  if (length === null) return null;
  const bytes = context.edits?.body ?? context.bodyBytes;
  const client = bytes === null ? context.readBody(bodyPatience(bodyTimes, context, route)) : null;
  if (client === null && bytes === null) return null;
  const { bodyLimit } = context;
  const { maxBodyBytes } = context.listener;
  // 0 stands for no limit.
  const maxBytes =
    bodyLimit === 0 || maxBodyBytes === 0
      ? bodyLimit + maxBodyBytes
      : Math.min(bodyLimit, maxBodyBytes);
  const piped = context.bodyStream;
  return new RequestBody({ client, piped, bytes, length, maxBytes, now });
}

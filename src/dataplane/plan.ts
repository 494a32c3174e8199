// How a request goes to a target, decided before the first attempt; knows no attempt.
import type { RequestContext } from "./request-context.ts";
import type { RouteRuntime } from "./route-runtime.ts";
import type { ServiceRuntime } from "./service-runtime.ts";
import { RequestBody } from "./upstream/request-body.ts";
import type { ForwardedFields } from "./upstream/request-writer.ts";

/** Everything that was decided before the first attempt. */
export interface Plan {
  readonly context: RequestContext;
  readonly route: RouteRuntime;
  readonly service: ServiceRuntime;
  readonly fields: ForwardedFields;
  /** Path and query upstream. */
  readonly target: string;
  readonly maxHeadBytes: number;
  readonly bodyReadTimeout: number;
  /** Milliseconds that the client may take nothing of the answer. */
  readonly responseWriteTimeout: number;
  /** Fields for the response that say who answered; null unless asked for. */
  readonly debugFields: readonly (readonly [string, string])[] | null;
}

/** The body that goes with it; null: none. */
export function requestBodyOf(plan: Plan, now: () => number): RequestBody | null {
  const { context, bodyReadTimeout: readTimeout, fields } = plan;
  const { bodyLength: length } = fields;
  if (length === null) return null;
  const bytes = context.edits?.body ?? context.bodyBytes;
  const stream = bytes === null ? (context.bodyStream ?? context.request.body) : null;
  if (stream === null && bytes === null) return null;
  const { bodyLimit } = context;
  const { maxBodyBytes } = context.listener;
  // 0 stands for no limit.
  const maxBytes =
    bodyLimit === 0 || maxBodyBytes === 0
      ? bodyLimit + maxBodyBytes
      : Math.min(bodyLimit, maxBodyBytes);
  // Plugins may keep what they have passed on.
  const isShared = context.bodyStream !== null;
  return new RequestBody({ stream, isShared, bytes, length, maxBytes, readTimeout, now });
}

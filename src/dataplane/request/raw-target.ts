// Requests of routes that take the path as the client has sent it, and match by host alone; knows no engine.
import { readRawTarget, type RequestTarget } from "../../http/request-target.ts";
import { failures, type ProxyError } from "../error.ts";
import type { Generation } from "../generation.ts";
import type { ListenerRuntime } from "../listener/listener-runtime.ts";
import type { RouteSubject } from "../router/compiled-match.ts";
import type { ClientStream } from "../server/client-stream.ts";

/** What it reads of a request, and changes in it. */
type Arrived = RequestTarget &
  RouteSubject & {
    readonly stream: ClientStream;
    readonly listener: ListenerRuntime;
    readonly generation: Generation;
  };

/** Replaces the canonical path of the request by the one that the client has sent; an error when it cannot be served. */
export function readRawPath(request: Arrived): ProxyError | null {
  const { rawTarget } = request.stream;
  if (request.target === "*") return null;
  if (rawTarget === undefined) return failures.rawEngine;
  if (!readRawTarget(rawTarget, request))
    return failures.badRequest("the request target is not valid");
  return rawTarget.length > request.listener.maxTargetBytes ? failures.targetTooLong : null;
}

/** Whether a request whose path has no canonical form matches such a route; others respond with 400. */
export function isForRawRoute(request: Arrived): boolean {
  const { generation, listener } = request;
  if (listener.servesNoHost || readRawPath(request) !== null) return false;
  return generation.routes.match(request)?.isRaw === true;
}

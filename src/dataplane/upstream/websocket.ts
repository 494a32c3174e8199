// Carries WebSockets between clients and targets; knows no route matching.
import type { WebSocketHandler } from "bun";
import type { ProxyError } from "../error.ts";
import type { WebSocketProxy } from "../handler.ts";
import type { RequestContext } from "../request-context.ts";

export interface WebSocketProxyOptions {
  onCount(open: number): void;
  report(context: RequestContext, error: ProxyError): void;
  now(): number;
}

export function createWebSocketProxy(_options: WebSocketProxyOptions): {
  readonly proxy: WebSocketProxy;
  readonly handler: WebSocketHandler<never>;
  readonly size: number;
  goAway(): void;
  drained(timeoutMs: number): Promise<boolean>;
} {
  return {
    proxy: () => Promise.reject(new Error("being written")),
    handler: { message() {} },
    size: 0,
    goAway() {},
    drained: () => Promise.resolve(true),
  };
}

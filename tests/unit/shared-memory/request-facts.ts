// Requests as workers record them; independent of tests.
import type { RequestRecord } from "../../../src/shared-memory/request-ring.ts";

/** Every text and number identifies its thread and request, so that a mixture of two is detected. */
export function factsOf(worker: number, request: number): RequestRecord {
  const tag = `${worker}-${request}`;
  return {
    kind: "http",
    status: 200 + worker,
    attempts: request,
    cache: request,
    grpc: request % 18,
    started_at: request,
    queue: -1,
    plugins: -1,
    connect: worker,
    first_byte: -1,
    total: request,
    bytes_in: request,
    bytes_out: worker,
    id: tag,
    method: "GET",
    scheme: "http",
    host: `host-${tag}`,
    target: `/${tag}${"x".repeat(request % 200)}`,
    user_agent: `agent ${tag}`,
    client: tag,
    consumer: tag,
    reasons: tag,
    route: tag,
    service: tag,
    target_id: tag,
    tls_version: "",
    http_version: "",
  };
}

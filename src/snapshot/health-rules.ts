// Rules about the health checks of one service that a schema cannot express; knows no target.
import type { Service } from "../model/service.ts";
import type { Report } from "./problem.ts";
import { isGrpcProtocol, isHttp2Protocol } from "./upstream-protocol.ts";

/** RFC 9110 sections 5.1 and 5.5; values are sent as one byte per character. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;
/** A path that is valid in a request line without encoding. */
const PATH = /^[\x21-\x22\x24-\x7e]+$/;

/** Header fields that frame the request: the gateway writes those of a check itself. */
const FRAMING = ["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"];

export function checkHealth({ protocol, health }: Service, report: Report): void {
  const { active } = health;
  if (active.enabled && isGrpcProtocol(active.type) && !isHttp2Protocol(protocol))
    report(
      "health.active.type",
      `${active.type} needs a service with HTTP/2: its protocol must be h2, h2c, grpc or grpcs`,
    );
  if (!PATH.test(active.path))
    report("health.active.path", "must be percent-encoded and without a fragment");
  for (const [name, value] of Object.entries(active.headers)) {
    const problem = fieldProblem(name, value);
    if (problem !== null) report("health.active.headers", `${JSON.stringify(name)} ${problem}`);
  }
  for (const [index, entry] of active.expect_statuses.entries()) {
    const [from = 0, to = from] = String(entry).split("-").map(Number);
    if (from > to) report(`health.active.expect_statuses[${index}]`, "is an empty range");
  }
  if (active.expect_body !== null && active.method === "HEAD")
    report("health.active.expect_body", "cannot be found with the method HEAD, which has no body");
}

function fieldProblem(name: string, value: string): string | null {
  if (!FIELD_NAME.test(name)) return "is not the name of a header field";
  if (FRAMING.includes(name.toLowerCase())) return "is set by the gateway itself";
  return FIELD_VALUE.test(value) ? null : "has a value that cannot be sent";
}

// Rules about one service that a schema cannot express; knows no target.
import type { ObjectRules, Report } from "./object-rules.ts";
import type { Service } from "./service.ts";

/** RFC 9110 sections 5.1 and 5.5; values are sent as one byte per character. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const FIELD_VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;
/** A path that is valid in a request line without encoding. */
const PATH = /^[\x21-\x22\x24-\x7e]+$/;

/** Protocols of services whose targets speak HTTP/2. */
const HTTP2: readonly string[] = ["h2", "h2c", "grpc", "grpcs"];

/** Header fields that frame the request: the gateway writes those of a check itself. */
const FRAMING = ["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"];

export const serviceRules: ObjectRules<Service> = (service, checks, report) => {
  const { host_header: hostHeader, hash_on: hashOn } = service;
  if (hostHeader !== "preserve" && hostHeader !== "target") {
    const problem = checks.hostHeader(hostHeader);
    if (problem !== null) report("host_header", problem);
  }
  checkHealth(service, report);
  const { server_name: serverName, ca_certificates: authorities } = service.tls;
  const wrongName = serverName === "" ? null : checks.serverName(serverName);
  if (wrongName !== null) report("tls.server_name", wrongName);
  const wrongAuthorities = authorities === "" ? null : checks.authorities(authorities);
  if (wrongAuthorities !== null) report("tls.ca_certificates", wrongAuthorities);
  const needsName = ["header", "cookie", "query"].includes(hashOn.source);
  if (service.algorithm === "consistent_hash" && needsName && hashOn.name === "")
    report("hash_on.name", `is required for the source "${hashOn.source}"`);
};

function checkHealth({ protocol, health }: Service, report: Report): void {
  const { active } = health;
  const isGrpc = active.type === "grpc" || active.type === "grpcs";
  if (active.enabled && isGrpc && !HTTP2.includes(protocol))
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

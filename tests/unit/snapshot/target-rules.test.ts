// Which addresses a target may have with which settings of its service: sockets, SRV names, certificates.
import { describe, expect, test } from "bun:test";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { compile } from "../../../src/snapshot/compile.ts";
import { selfSigned } from "../../support/certificate.ts";
import { compiled, configOf, context, service, target } from "../control/fixture.ts";

function issuesOf(config: GatewayConfig, previous: GatewayConfig | null = null): string[] {
  const before = previous === null ? null : compiled(previous);
  const result = compile(config, before, { ...context, revision: 9 });
  if (!("issues" in result)) return [];
  return result.issues.map(({ status, path, message }) => `${status} ${path}: ${message}`);
}

const at = (host: string, port: number | null) => target("t", { service_id: "web", host, port });
const web = (fields: object = {}) => service("web", fields);

describe("a unix socket", () => {
  const longest = `/${"a".repeat(106)}`;
  test.each([
    ["unix:/run/app.sock", null, null, "a path"],
    ["unix:/run/With Space.sock", null, null, "a path with a space"],
    [`unix:${longest}`, null, null, "the longest path"],
    [`unix:${longest}a`, null, "host: must be a path of at most 107 bytes", "one byte too long"],
    [`unix:/${"é".repeat(54)}`, null, "host: must be a path of at most 107 bytes", "bytes count"],
    ["unix:run/app.sock", null, "host: must be unix: and an absolute path", "a relative path"],
    ["unix:", null, "host: must be unix: and an absolute path", "no path"],
    ["unix:/", null, "host: must be unix: and an absolute path", "only the root"],
    ["unix:/a\u0000b", null, "host: must be unix: and an absolute path", "a path with NUL"],
    ["unix:/run/../etc/x", null, "host: must be a path without ..", "a way up"],
    ["unix:/run/..", null, "host: must be a path without ..", "a way up at the end"],
    ["unix:/run/a..b", null, null, "dots inside a name"],
    ["unix:/run/app.sock", 80, "port: must be null for a unix socket", "a port"],
  ])("%j, port %p: %p (%s)", (host, port, issue) => {
    const issues = issuesOf(configOf({ services: [web()], targets: [at(host, port)] }));
    expect(issues).toEqual(issue === null ? [] : [`400 ${issue}`]);
  });

  test("is another one when its path has other letters", () => {
    const targets = ["unix:/run/a", "unix:/run/A"].map((host) =>
      target(host, { service_id: "web", host, port: null }),
    );
    expect(issuesOf(configOf({ services: [web()], targets }))).toEqual([]);
  });

  test("is the same one when it is named twice", () => {
    const targets = ["one", "two"].map((id) =>
      target(id, { service_id: "web", host: "unix:/run/a", port: null }),
    );
    const config = configOf({ services: [web()], targets });
    expect(issuesOf(config)[0]).toBe("409 host: target unix:/run/a exists already in this service");
  });
});

describe("a port", () => {
  const named = 'port: must be null with resolve "srv": the records name the port';
  test.each([
    ["dns", "a.example", null, "port: is required"],
    ["static", "a.example", null, "port: is required"],
    ["srv", "_http._tcp.a.example", null, null],
    ["srv", "_http._tcp.a.example", 80, named],
    ["srv", "10.0.0.1", 80, null],
    ["srv", "10.0.0.1", null, "port: is required"],
    ["srv", "2001:db8::1", 80, null],
    ["srv", "unix:/run/a", null, null],
  ])("with resolve %s, at %s: %p results in %p", (resolve, host, port, issue) => {
    const config = configOf({ services: [web({ resolve })], targets: [at(host, port)] });
    expect(issuesOf(config)).toEqual(issue === null ? [] : [`400 ${issue}`]);
  });

  test("is checked again when the service changes its resolve mode", () => {
    const targets = [at("a.example", 80)];
    const before = configOf({ services: [web()], targets });
    const after = { ...before, services: new Map([["web", web({ resolve: "srv" })]]) };
    expect(issuesOf(after, before)).toEqual([`400 ${named}`]);
    const fitting = { ...after, targets: new Map([["t", at("a.example", null)]]) };
    expect(issuesOf(fitting, before)).toEqual([]);
  });
});

describe("TLS to targets", () => {
  const issuesWith = (tls: object) => issuesOf(configOf({ services: [web({ tls })] }));

  test("accepts CA certificates only", async () => {
    const { cert, key } = await selfSigned();
    expect(issuesWith({ ca_certificates: cert })).toEqual([]);
    expect(issuesWith({ ca_certificates: `My CA\n${cert}\n${cert}` })).toEqual([]);
    const field = "400 tls.ca_certificates:";
    expect(issuesWith({ ca_certificates: "x" })).toEqual([`${field} must hold a PEM certificate`]);
    expect(issuesWith({ ca_certificates: cert + key })).toEqual([
      `${field} must hold certificates only`,
    ]);
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    expect(issuesWith({ ca_certificates: cert + broken })).toEqual([
      `${field} certificate 2 cannot be read`,
    ]);
  });

  test.each([
    ["a.example", true],
    ["10.0.0.1", true],
    ["2001:db8::1", true],
    ["a.example:443", false],
    ["https://a.example", false],
    ["*.example", false],
    ["a b", false],
  ])("server_name %j is accepted: %p", (server_name, isTaken) => {
    expect(issuesWith({ server_name })).toEqual(
      isTaken ? [] : ["400 tls.server_name: must be a name or an IP address"],
    );
  });

  test("a client certificate must exist", () => {
    expect(issuesWith({ client_certificate_id: "x" })).toEqual([
      '400 tls.client_certificate_id: certificate "x" does not exist',
    ]);
  });
});

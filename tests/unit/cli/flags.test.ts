// How command lines are parsed, and which error each mistake gets.
import { describe, expect, test } from "bun:test";
import { type Flag, parseAddress, parseFlags } from "../../../src/cli/flags.ts";
import { decodeOptions } from "../../../src/cli/serve.ts";
import { UsageError } from "../../../src/cli/usage-error.ts";
import { suggestion } from "../../../src/model/suggestion.ts";
import { isLoopbackHost } from "../../../src/net/loopback.ts";

const flags: Flag[] = [
  { name: "data-dir", value: "DIR", description: "" },
  { name: "force", value: null, description: "" },
];

describe("parseFlags", () => {
  test.each([
    { why: "a word of its own", argv: ["--data-dir", "/x"], env: {} },
    { why: "the same word", argv: ["--data-dir=/x"], env: {} },
    { why: "the environment", argv: [], env: { SLUICE_DATA_DIR: "/x" } },
    {
      why: "the command line before the environment",
      argv: ["--data-dir", "/x"],
      env: { SLUICE_DATA_DIR: "/y" },
    },
  ])("takes a value from $why", ({ argv, env }) => {
    expect(parseFlags(flags, argv, env).get("data-dir")).toBe("/x");
  });

  test("treats an empty variable as absent", () => {
    expect(parseFlags(flags, [], { SLUICE_DATA_DIR: "" }).get("data-dir")).toBeUndefined();
  });

  test.each([
    { argv: ["--force"], env: {}, given: true },
    { argv: [], env: { SLUICE_FORCE: "1" }, given: true },
    { argv: [], env: { SLUICE_FORCE: "false" }, given: false },
    { argv: [], env: {}, given: false },
  ])("reads a flag without value from $argv and $env", ({ argv, env, given }) => {
    expect(parseFlags(flags, argv, env).has("force")).toBe(given);
  });

  test.each([
    { argv: ["--data-dri", "x"], says: 'unknown flag --data-dri; did you mean "--data-dir"?' },
    { argv: ["--nothing-like-it"], says: "unknown flag --nothing-like-it" },
    { argv: ["here"], says: 'unexpected argument "here"' },
    { argv: ["-x"], says: 'unexpected argument "-x"' },
    { argv: ["--data-dir"], says: "--data-dir needs a value: DIR" },
    { argv: ["--data-dir=a", "--data-dir=b"], says: "--data-dir is given twice" },
    { argv: ["--force=yes"], says: "--force has no value" },
  ])("rejects $argv", ({ argv, says }) => {
    expect(() => parseFlags(flags, argv, {})).toThrow(new UsageError(says));
  });
});

describe("parseAddress", () => {
  test.each([
    { text: "127.0.0.1:9080", hostname: "127.0.0.1", port: 9080 },
    { text: "[::1]:80", hostname: "::1", port: 80 },
    { text: "localhost:0", hostname: "localhost", port: 0 },
  ])("reads $text", ({ text, ...address }) => {
    expect(parseAddress("admin", text)).toEqual(address);
  });

  test.each([
    "9080",
    ":9080",
    "127.0.0.1",
    "127.0.0.1:",
    "a:65536",
    "::1:80",
    "http://a:80",
    "a b:1",
  ])("rejects %s and names the flag", (text) => {
    expect(() => parseAddress("admin", text)).toThrow("--admin: must be an address and a port");
  });
});

describe("serve", () => {
  const decode = (...argv: string[]) => {
    const names = argv.filter((word) => word.startsWith("--")).map((word) => word.slice(2));
    const all = names
      .filter((name) => !name.startsWith("dns-exec"))
      .map((name) => ({ name, value: "X", description: "" }));
    const programs: Flag = { name: "dns-exec", value: "PATH", description: "", repeats: true };
    const known = [...all, programs, flag("allow-unauthenticated-remote")];
    return decodeOptions(parseFlags(known, argv, {}));
  };
  const flag = (name: string): Flag => ({ name, value: null, description: "" });

  test("listens on loopback for the management API by default", () => {
    const options = decode();
    expect(options.admin).toEqual({ hostname: "127.0.0.1", port: 9080 });
    expect([options.http, options.https, options.allowUnauthenticatedRemote]).toEqual([
      null,
      null,
      false,
    ]);
    expect(options.dataDir).toBe(`${process.cwd()}/data`);
    expect(options.workers).toBeGreaterThan(0);
  });

  test("accepts several name servers", () => {
    const servers = "10.0.0.53, 127.0.0.1:5353,2001:db8::53,[::1]:5353";
    expect(decode("--dns-servers", servers).dnsServers).toEqual(servers.split(/, ?/));
    expect(decode().dnsServers).toEqual([]);
  });

  test("accepts several programs, separated by commas in the environment", () => {
    const twice = ["--dns-exec", "/bin/true", "--dns-exec=/bin/sh"];
    expect(decode(...twice).dnsPrograms).toEqual(["/bin/true", "/bin/sh"]);
    expect(decode().dnsPrograms).toEqual([]);
    const known = [{ name: "dns-exec", value: "PATH", description: "", repeats: true }] as const;
    const flags = parseFlags(known, [], { SLUICE_DNS_EXEC: "/a, /b" });
    expect(flags.all("dns-exec")).toEqual(["/a", "/b"]);
  });

  test.each([
    { argv: ["--dns-exec", "true"], says: "--dns-exec: must be the absolute path of a program" },
    { argv: ["--dns-exec", "/etc"], says: "/etc is not an executable file" },
    { argv: ["--workers", "0"], says: "--workers: must be a whole number from 1 to 256" },
    { argv: ["--workers", "two"], says: "--workers: must be" },
    { argv: ["--workers", "1e2"], says: "--workers: must be" },
    {
      argv: ["--dns-servers", "dns.example"],
      says: '--dns-servers: must be IP addresses, each with a port if it is not 53, not "dns.example"',
    },
    { argv: ["--dns-servers", "1.1.1.1:0"], says: 'not "1.1.1.1:0"' },
    { argv: ["--dns-servers", "1.1.1.1,[1.1.1.1]:53"], says: 'not "[1.1.1.1]:53"' },
    { argv: ["--log-level", "loud"], says: "--log-level: must be one of debug, info, warn, error" },
    { argv: ["--http", "8080"], says: "--http: must be an address and a port" },
  ])("rejects $argv", ({ argv, says }) => {
    expect(() => decode(...argv)).toThrow(says);
  });
});

test.each([
  { hostname: "127.0.0.1", loopback: true },
  { hostname: "127.9.9.9", loopback: true },
  { hostname: "::1", loopback: true },
  { hostname: "localhost", loopback: true },
  { hostname: "::ffff:127.0.0.1", loopback: true },
  { hostname: "0:0:0:0:0:0:0:1", loopback: true },
  { hostname: "::ffff:10.0.0.1", loopback: false },
  { hostname: "localhost.", loopback: false },
  { hostname: "127.1", loopback: false },
  { hostname: "127.0.0.1.nip.io", loopback: false },
  { hostname: "0.0.0.0", loopback: false },
  { hostname: "::", loopback: false },
  { hostname: "127.0.0.1.example.com", loopback: false },
  { hostname: "192.168.1.2", loopback: false },
])("$hostname is reached from this machine only: $loopback", ({ hostname, loopback }) => {
  expect(isLoopbackHost(hostname)).toBe(loopback);
});

test.each([
  { typed: "sevre", says: '; did you mean "serve"?' },
  { typed: "vers", says: '; did you mean "version"?' },
  { typed: "frobnicate", says: "" },
])("$typed gets a hint: $says", ({ typed, says }) => {
  expect(suggestion(typed, ["serve", "check", "version", "help"])).toBe(says);
});

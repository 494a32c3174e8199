// Which Host values are valid, and the canonical form of each.
import { expect, test } from "bun:test";
import { normalizeHost, parseAuthority } from "../../../src/http/authority.ts";

test.each([
  ["app.example.com", "app.example.com", null],
  ["App.Example.COM", "app.example.com", null],
  ["app.example.com.", "app.example.com", null],
  ["App.example.com.:8080", "app.example.com", 8080],
  ["a:", "a", null],
  ["a:0", "a", 0],
  ["a:00080", "a", 80],
  ["a:65535", "a", 65535],
  ["localhost", "localhost", null],
  ["my_app", "my_app", null],
  ["xn--bcher-kva.example", "xn--bcher-kva.example", null],
  ["a.0xg", "a.0xg", null],
  ["4e1f", "4e1f", null],
  ["127.0.0.1", "127.0.0.1", null],
  ["127.0.0.1.:80", "127.0.0.1", 80],
  ["[::1]", "[::1]", null],
  ["[0:0::0001]:443", "[::1]", 443],
  ["[2001:DB8::1]:", "[2001:db8::1]", null],
])("%s is the host %s and the port %p", (raw, host, port) => {
  expect(parseAuthority(raw)).toEqual({ host, port });
  expect(normalizeHost(raw)).toBe(host);
});

test.each([
  ["", "empty"],
  [".", "only a dot"],
  [":80", "no host"],
  ["a..b", "an empty label"],
  [".a", "an empty first label"],
  ["a..", "two trailing dots"],
  ["user@a", "user information"],
  ["a/b", "a path"],
  ["a?b", "a query"],
  ["a#b", "a fragment"],
  ["a, b", "two Host fields joined"],
  ["a,b", "a comma"],
  ["a b", "a space"],
  ["a\\b", "a backslash"],
  ["%61", "an escape is another spelling of the same name"],
  ["caf\u00e9", "not ASCII"],
  ["*", "a wildcard"],
  ["a:x", "a port that is no number"],
  ["a:-1", "a signed port"],
  ["a:+80", "a signed port"],
  ["a:65536", "a port too large"],
  ["a:000080", "a port too long"],
  ["a:80:80", "two ports"],
  ["::1", "IPv6 without brackets"],
  ["[::1", "an open bracket"],
  ["[::1]x", "something after the bracket"],
  ["[::1]:x", "a bad port after the bracket"],
  ["[::1%25eth0]", "a zone"],
  ["[1.2.3.4]", "IPv4 in brackets"],
  ["[v1.x]", "a future address form that nobody serves"],
  ["[]", "nothing in brackets"],
  ["999.1.1.1", "ends in a number and is no address"],
  ["1.2.3", "a short form of an address"],
  ["01.2.3.4", "a part that some read as octal"],
  ["1", "an address as one number"],
  ["0x7f.1", "a hexadecimal address"],
  ["a.0x1f", "ends in a hexadecimal number"],
  ["a".repeat(254), "too long"],
])("%j is rejected: %s", (raw) => {
  expect(parseAuthority(raw)).toBeNull();
  expect(normalizeHost(raw)).toBeNull();
});

// Lenient input: pasted URLs and addresses without a scheme.
import { expect, test } from "bun:test";
import { hostOf, hostsOf, partsOfUrl, serverOf, toUrl } from "../../../src/ui/parts/lenient-url.ts";

test.each([
  ["https://shop.example.com/cart?x=1#top", ["https", "shop.example.com", null, "/cart"]],
  ["HTTP://Shop.example.com:8080/", ["http", "Shop.example.com", 8080, ""]],
  ["10.0.0.5:3000", [null, "10.0.0.5", 3000, ""]],
  ["[2001:db8::1]:80/a", [null, "2001:db8::1", 80, "/a"]],
  [" nas.lan ", [null, "nas.lan", null, ""]],
])("%s has parts", (text, parts) => expect(Object.values(partsOfUrl(text) ?? {})).toEqual(parts));

test.each(["", "a b", "https://", "user:secret@host", "http://user@host/", "::1", "ftp://host/"])(
  "%p is no URL",
  (text) => expect(partsOfUrl(text)).toBeNull(),
);

test.each([
  ["https://shop.example.com/cart", "shop.example.com", "a pasted URL"],
  ["shop.example.com/cart", "shop.example.com", "a path"],
  ["https://", "https://", "while it is typed"],
  ["shop.example.com:8443", "shop.example.com:8443", "a port is an error that the field shows"],
  ["*.example.com", "*.example.com", "a pattern"],
])("%s as a host is %s: %s", (text, host) => expect(hostOf(text)).toBe(host));

test.each([
  ["http://10.0.0.5:8080/app", "", { host: "10.0.0.5", port: 8080 }, "a pasted URL"],
  ["10.0.0.5:8080", "", { host: "10.0.0.5", port: 8080 }, "a pasted address"],
  ["10.0.0.5:8", "10.0.0.5:", { host: "10.0.0.5:8", port: null }, "typed, not yet complete"],
  ["unix:/run/app.sock", "", { host: "unix:/run/app.sock", port: null }, "a socket"],
])("%s as a server: %#", (text, before, server) =>
  expect(serverOf(text, before)).toMatchObject(server),
);

test.each([
  ["127.0.0.1:3000", "http://127.0.0.1:3000", "an address and a port"],
  ["localhost", "http://localhost", "a name"],
  ["nas.lan:443/x", "https://nas.lan:443/x", "the port of HTTPS"],
  ["[::1]:3000", "http://[::1]:3000", "IPv6"],
  ["https://api.example/?key=1", "https://api.example", "a query is no part of an upstream"],
  ["http://10.0.0.5:3000/app/", "http://10.0.0.5:3000/app/", "complete already"],
  ["3000", "3000", "a number alone names no host"],
  ["user@host", "user@host", "credentials are never accepted in silence"],
  ["", "", "nothing"],
])("%p as a URL is %p: %s", (text, url) => expect(toUrl(text)).toBe(url));

test.each<[string[], ReturnType<typeof hostsOf>]>([
  [["shop.example.com"], null],
  [["https://a.example.com/cart?x=1"], { hosts: ["a.example.com"], paths: ["/cart"] }],
  [["b.lan", "b.lan/", "http://c.lan/x"], { hosts: ["b.lan", "c.lan"], paths: ["/x"] }],
])("the hosts %p", (texts, expected) => expect(hostsOf(texts)).toEqual(expected));

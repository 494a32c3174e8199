// Reading and writing single header values and query strings.
import { expect, test } from "bun:test";
import { negotiate } from "../../../src/http/accept.ts";
import { cookieValue } from "../../../src/http/cookie.ts";
import { isFieldValue, isToken } from "../../../src/http/fields.ts";
import { forwardedHost, forwardedScheme } from "../../../src/http/forwarded.ts";
import { HOP_BY_HOP, connectionOptions } from "../../../src/http/hop-by-hop.ts";
import { proxyStatus } from "../../../src/http/proxy-status.ts";
import { queryValue } from "../../../src/http/query.ts";

test.each([
  ["X-Request-Id", true],
  ["!#$%&'*+-.^_`|~09", true],
  ["", false],
  ["a b", false],
  ["a:", false],
  ["a\n", false],
  ["caf\u00e9", false],
])("%j is a token: %p", (text, is) => {
  expect(isToken(text)).toBe(is);
});

test.each([
  ["", true, "empty is valid"],
  ["a\tb c", true, "tab and space inside"],
  ["\u00e9", true, "obs-text"],
  ["a\r\nX: y", false, "would start another field"],
  ["a\n", false, "a bare line feed"],
  ["a\0", false, "NUL"],
  ["\x7f", false, "DEL"],
  [" a", false, "leading space"],
  ["a\t", false, "trailing tab"],
  ["\u20ac", false, "not one byte"],
])("%j is a field value: %p (%s)", (text, is) => {
  expect(isFieldValue(text)).toBe(is);
});

test.each([
  [null, []],
  ["keep-alive", []],
  ["close", []],
  ["Keep-Alive, X-Foo ,, close,\tTE", ["x-foo", "te"]],
])("Connection: %p names %p", (value, names) => {
  expect(connectionOptions(value)).toEqual(names);
});

test("hop-by-hop field names are recognized in lower case", () => {
  expect([...HOP_BY_HOP].every((name) => name === name.toLowerCase())).toBe(true);
  expect(HOP_BY_HOP.has("transfer-encoding")).toBe(true);
});

test.each([
  [null, null],
  ["https", "https"],
  ["HTTP", "http"],
  ["http, https", "https"],
  ["wss", "https"],
  ["gopher", null],
])("X-Forwarded-Proto: %p means %p", (value, scheme) => {
  expect(forwardedScheme(value)).toBe(scheme as "http" | "https" | null);
});

test.each([
  [null, null],
  ["App.test:443", "app.test"],
  ["evil.test, app.test", "app.test"],
  ["a@b", null],
])("X-Forwarded-Host: %p means %p", (value, host) => {
  expect(forwardedHost(value)).toBe(host);
});

test.each([
  ["a=1; b=2", "b", "2"],
  ["a=1;b=2", "b", "2"],
  ["a=1; a=2", "a", "1"],
  ["ab=1; b=2", "b", "2"],
  ["b2=1; b=2", "b", "2"],
  ["a=b=2", "b", null],
  ['a="x y"; c', "a", "x y"],
  ["a=; b", "a", ""],
  ["a", "a", null],
  [" a = 1 ", "a", "1"],
  ["", "a", null],
  ["A=1", "a", null],
])("in the Cookie header %j, %s is %p", (header, name, value) => {
  expect(cookieValue(header, name)).toBe(value);
});

test("without a Cookie header there is no cookie", () => {
  expect(cookieValue(null, "a")).toBeNull();
});

test.each([
  ["a=1&b=2", "b", "2"],
  ["a=1&a=2", "a", "1"],
  ["aa=1&a=2", "a", "2"],
  ["a", "a", ""],
  ["a=", "a", ""],
  ["a=x=y", "a", "x=y"],
  ["a=%C3%A9+b%20c", "a", "é b c"],
  ["%61=1", "a", "1"],
  ["a+b=1", "a b", "1"],
  ["a=%zz", "a", "%zz"],
  ["b=a", "a", null],
  ["", "a", null],
  ["&&a=1", "a", "1"],
])("in the query %s %s is %p", (query, name, value) => {
  expect(queryValue(query, name)).toBe(value);
});

const OFFERS = ["text/html", "application/json", "text/plain"];
test.each([
  [null, "text/html", "no preference"],
  ["", "text/html", "an empty field"],
  ["*/*", "text/html", "the server's order decides"],
  ["application/json", "application/json", "one type"],
  ["text/html;q=0.5, application/json", "application/json", "by weight"],
  ["text/*, text/html;q=0.1", "text/plain", "the most specific range counts"],
  ["TEXT/HTML;Q=0.2, text/plain;q=0.3", "text/plain", "in any case"],
  ["text/html;level=1;q=0", null, "refused"],
  ["image/png", null, "nothing fits"],
  ["text/html;q=5, text/plain", "text/plain", "a malformed weight never wins"],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html", "a browser"],
])("Accept: %p chooses %p (%s)", (accept, chosen) => {
  expect(negotiate(accept, OFFERS)).toBe(chosen);
});

test("a Proxy-Status value holds no more than printable ASCII in a quoted string", () => {
  expect(proxyStatus("connection_timeout")).toBe("sluice; error=connection_timeout");
  expect(proxyStatus("dns_error", 'say "hi"\\\r\nX: y \u20ac')).toBe(
    'sluice; error=dns_error; details="say \\"hi\\"\\\\??X: y ?"',
  );
});

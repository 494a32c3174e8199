// The fields of responses on their way to clients: the same fields as Headers have, with names as written.
import { describe, expect, test } from "bun:test";
import { FieldList, spelledLines } from "../../../src/http/field-list.ts";
import { conventional } from "../../../src/http/usual-case.ts";
import { Random } from "../../support/random.ts";

const NAMES = ["X-A", "x-a", "Set-Cookie", "ETag", "Connection", "Content-Length"];
const VALUES = ["1", "two words", " spaces ", "caf\xe9"];

describe("a list of fields", () => {
  test("has the fields of Headers, whatever is set, added, removed and read", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed);
      let list = new FieldList({ "X-A": "0", Server: "s" });
      const model = new Headers({ "X-A": "0", Server: "s" });
      for (let step = random.between(1, 12); step > 0; step--) {
        const [name, value] = [random.pick(NAMES), random.pick(VALUES)];
        switch (random.between(0, 5)) {
          case 0:
            list.delete(name);
            model.delete(name);
            break;
          case 1:
            list.append(name, value);
            model.append(name, value);
            break;
          case 2:
            list = list.copy();
            break;
          case 3:
            if (random.chance(0.2)) expect([...list.headers]).toEqual([...model]);
            break;
          default:
            list.set(name, value);
            model.set(name, value);
        }
        const joins = name.toLowerCase() !== "set-cookie";
        if (joins) expect([seed, list.get(name)]).toEqual([seed, model.get(name)]);
        expect(list.has(name)).toBe(model.has(name));
      }
      model.delete("connection");
      expect([seed, [...FieldList.ofLines(list.lines).headers]]).toEqual([seed, [...model]]);
    }
  });

  test("keeps names as written, also those from before Headers were asked for", () => {
    const list = new FieldList({ "X-REQUEST-id": "1", "x-lower": "2" });
    expect(list.lines).toBe("X-REQUEST-id: 1\r\nx-lower: 2\r\n");
    list.headers.set("x-request-ID", "3");
    list.headers.set("X-New-One", "4");
    list.headers.set("ETAG", '"e"');
    expect(list.lines).toBe('X-REQUEST-id: 3\r\nx-lower: 2\r\nETag: "e"\r\nX-New-One: 4\r\n');
  });

  test("of Headers has names in their usual case", () => {
    const headers = new Headers({ "x-request-id": "1", "www-authenticate": "Basic", etag: "e" });
    const names = new FieldList(headers).pairs.map(([name]) => name);
    expect(names.sort()).toEqual(["ETag", "WWW-Authenticate", "X-Request-Id"]);
  });

  test("has no lines of the connection, but says that it ends", () => {
    const list = new FieldList({
      Connection: "close",
      "Keep-Alive": "1",
      "X-A": "1",
      Upgrade: "h",
    });
    expect([list.lines, list.closes]).toEqual(["X-A: 1\r\n", true]);
    expect(new FieldList({ Connection: "keep-alive" }).closes).toBe(false);
  });

  test.each([
    ["X-A", "1\r\nX-Injected: 1"],
    ["X-A", "1\nX"],
    ["X-A", "\0"],
    ["X-A", "\u0100"],
    ["X A", "1"],
    ["", "1"],
    ["X-A:", "1"],
  ])("refuses %p with %p, as Headers do", (name, value) => {
    const before = new FieldList({ "X-A": "0" });
    for (const change of ["set", "append"] as const)
      expect(() => before[change](name, value)).toThrow(TypeError);
    expect(before.lines).toBe("X-A: 0\r\n");
    expect(() => new FieldList([[name, value]])).toThrow(TypeError);
  });
});

test("lines of Headers have the order and the names of others, and repeated fields one by one", () => {
  const headers = new Headers({ b: "1", a: "2", connection: "close" });
  headers.append("set-cookie", "x=1");
  headers.append("set-cookie", "y=2");
  expect(
    spelledLines(headers, "SET-COOKIE: old\r\nA: old\r\ngone: 1\r\nset-cookie: more\r\n"),
  ).toBe("SET-COOKIE: x=1\r\nSET-COOKIE: y=2\r\nA: 2\r\nB: 1\r\n");
});

test.each([
  ["x-request-id", "X-Request-Id"],
  ["etag", "ETag"],
  ["www-authenticate", "WWW-Authenticate"],
  ["x-ratelimit-limit", "X-RateLimit-Limit"],
  ["strict-transport-security", "Strict-Transport-Security"],
  ["x_odd-name", "X_odd-Name"],
  ["1-a", "1-A"],
])("the usual case of %s is %s", (lower, name) => {
  expect(conventional(lower)).toBe(name);
});

// International names: stored as A-labels, never joined with names that only look alike, and shown in Unicode.
import { expect, test } from "bun:test";
import { storedName } from "../../../src/model/host-name.ts";
import { shownName } from "../../../src/ui/api/shown-names.ts";

test.each([
  ["müller.example", "xn--mller-kva.example"],
  ["MÜLLER.example", "xn--mller-kva.example"],
  ["mu\u0308ller.example", "xn--mller-kva.example"],
  ["XN--MLLER-KVA.Example", "xn--mller-kva.example"],
  ["*.müller.example", "*.xn--mller-kva.example"],
  ["straße.example", "xn--strae-oqa.example"],
  ["strasse.example", "strasse.example"],
  ["аpple.com", "xn--pple-43d.com"],
  ["日本語.jp", "xn--wgv71a119e.jp"],
  ["müller.example:8080", "xn--mller-kva.example:8080"],
  ["http://müller.example:8080/Über", "http://xn--mller-kva.example:8080/Über"],
  ["unix:/run/Ünix.sock", "unix:/run/Ünix.sock"],
  ["http://App.test/ü", "http://App.test/ü"],
  ["[2001:DB8::1]", "[2001:DB8::1]"],
])("%s is stored as %s", (text, name) => {
  expect(storedName(text)).toEqual({ name, problem: null });
});

test.each([
  ["ｅｘａｍｐｌｅ.com", "is the name example.com in other characters: enter that, if you mean it"],
  ["a。b", "is the name a.b in other characters: enter that, if you mean it"],
  ["ex\u00adämple.com", "is the name exämple.com in other characters"],
  ["a\u200db.com", "is not a valid host name"],
  ["xn--ü.de", "is not a valid host name"],
  ["ü b.de", "is not a valid host name"],
  [`${"ü".repeat(80)}.de`, "is too long"],
])("%s is refused", (text, problem) => {
  expect(storedName(text).problem).toStartWith(problem);
});

test.each([
  ["xn--mller-kva.example", "müller.example"],
  ["*.xn--strae-oqa.example", "*.straße.example"],
  ["http://xn--mller-kva.example:8080/x", "http://müller.example:8080/x"],
  ["xn--wgv71a119e.jp", "日本語.jp"],
  ["xn--e1afmkfd.xn--p1ai", "пример.рф"],
  ["xn--pple-43d.com", "xn--pple-43d.com"],
  ["xn--80ak6aa92e.com", "xn--80ak6aa92e.com"],
  ["xn--n3h.net", "xn--n3h.net"],
  ["xn--a.example", "xn--a.example"],
  ["shop.example", "shop.example"],
])("%s is shown as %s", (name, shown) => {
  expect(shownName(name)).toBe(shown);
});

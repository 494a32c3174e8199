// Fields that plugins set in responses that look the same: each response gets its own values, not those of the one before.
import { describe, expect, test } from "bun:test";
import { ResponseDraft } from "../../../src/dataplane/plugin/response-draft.ts";
import { editedFields, editedLines } from "../../../src/dataplane/plugin/edited-fields.ts";
import { FieldList } from "../../../src/http/field-list.ts";
import { EditedHead, ListHead } from "../../../src/dataplane/upstream/response-head.ts";
import { headOf } from "../../support/outgoing-head.ts";
import { Random } from "../../support/random.ts";

const FIELDS = { "Content-Type": "text/plain", Server: "origin" };
const base = () => new Headers(FIELDS);

const draftOf = (head: ListHead): ResponseDraft =>
  new ResponseDraft({ source: "upstream", head, isHead: false });

function headSent(draft: ResponseDraft): EditedHead | ListHead {
  const { edits, head, status } = draft;
  if (edits !== null) return new EditedHead(head, edits, status);
  return new ListHead(draft.fields, { status });
}

/** The fields as a Response copies them, which are those of the lines. */
function sent(draft: ResponseDraft): Record<string, string> {
  const head = headSent(draft);
  const fields = Object.fromEntries(new Headers(head.headers));
  expect(Object.fromEntries(FieldList.ofLines(head.lines).headers)).toEqual(fields);
  return fields;
}

describe("fields that plugins set", () => {
  test("change from response to response, and leave the shared ones alone", () => {
    const head = headOf(FIELDS);
    for (const left of ["2", "1", "1", "0"]) {
      const draft = draftOf(head);
      draft.removeHeader("server");
      draft.setHeader("X-Left", left);
      expect(sent(draft)).toEqual({ "content-type": "text/plain", "x-left": left });
    }
    const plain = draftOf(head);
    expect(sent(plain)).toEqual({ "content-type": "text/plain", server: "origin" });
    const other = draftOf(head);
    other.setHeader("X-Other", "1");
    expect(sent(other)).toEqual({
      "content-type": "text/plain",
      server: "origin",
      "x-other": "1",
    });
  });

  test("may be set in one response and removed in the next", () => {
    const head = headOf(FIELDS);
    const [first, second] = [draftOf(head), draftOf(head)];
    first.setHeader("Server", "sluice");
    expect(sent(first)["server"]).toBe("sluice");
    expect(headSent(first).hasContentType).toBe(true);
    second.removeHeader("Server");
    expect(sent(second)).toEqual({ "content-type": "text/plain" });
    const third = draftOf(head);
    third.removeHeader("Content-Type");
    expect(headSent(third).hasContentType).toBe(false);
  });

  test("of one name twice: the later edit counts, in every response", () => {
    const head = headOf(FIELDS);
    for (const value of ["a", "b", "c"]) {
      const draft = draftOf(head);
      draft.setHeader("X-Name", value);
      draft.setHeader("x-name", "last");
      expect(sent(draft)["x-name"]).toBe("last");
    }
  });

  test("are those of their own response, even after a response that fails", () => {
    const head = headOf(FIELDS);
    const names = ["X-A", "X-B"];
    const draft = (a: string, b: string) => {
      const made = draftOf(head);
      made.setHeaders(names, [a, b]);
      return made;
    };
    expect(sent(draft("1", "1"))).toMatchObject({ "x-a": "1", "x-b": "1" });
    expect(() => sent(draft("2", "no\nvalue"))).toThrow(TypeError);
    expect(sent(draft("1", "1"))).toMatchObject({ "x-a": "1", "x-b": "1" });
  });

  test("are visible in `headers`, which belongs to the response from then on", () => {
    const head = headOf(FIELDS);
    const draft = draftOf(head);
    draft.setHeader("X-Early", "1");
    expect(draft.isPlain).toBe(true);
    draft.headers.append("X-Early", "2");
    expect(draft.isPlain).toBe(false);
    draft.removeHeader("Server");
    expect(sent(draft)).toEqual({ "content-type": "text/plain", "x-early": "1, 2" });
    expect(draft.edits).toBeNull();
    expect(Object.fromEntries(head.headers)).toEqual({
      "content-type": "text/plain",
      server: "origin",
    });
  });

  test("equal those without sharing, whatever is set in which response", () => {
    const names = ["X-A", "X-B", "Server", "x-a", "X-Request-Id"];
    const together = [
      ["X-A", "X-B"],
      ["X-B", "X-C"],
    ] as const;
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed);
      const head = headOf(FIELDS);
      for (let answer = 0; answer < 20; answer++) {
        const draft = draftOf(head);
        const model = base();
        for (let step = random.between(0, 5); step > 0; step--) {
          const name = random.pick(names);
          const value = `v${random.between(0, 2)}`;
          const two = [`v${random.between(0, 2)}`, `v${random.between(0, 2)}`];
          switch (random.between(0, 8)) {
            case 0:
              draft.removeHeader(name);
              model.delete(name);
              break;
            case 1:
              // A plugin reads the headers, and continues.
              expect(sent(draft)).toEqual(Object.fromEntries(model));
              break;
            case 2:
              draft.headers.append(name, value);
              model.append(name, value);
              break;
            case 3:
            case 4:
              draft.setHeader(name, value);
              model.set(name, value);
              break;
            default: {
              const set = random.pick(together);
              draft.setHeaders(set, two);
              model.set(set[0], two[0]!);
              model.set(set[1], two[1]!);
            }
          }
        }
        if (random.chance(0.5)) {
          draft.setId(`id${answer}`);
          model.set("X-Request-Id", `id${answer}`);
        }
        expect(sent(draft)).toEqual(Object.fromEntries(model));
      }
      expect(together).toEqual([
        ["X-A", "X-B"],
        ["X-B", "X-C"],
      ]);
    }
  });
});

describe("the lines of a head that plugins have edited", () => {
  const LINES = "Server: origin\r\nSet-Cookie: a=1\r\nX-B: 1\r\nset-cookie: b=2\r\nDate: now\r\n";
  const asHeaders = (lines: string) =>
    new Headers(
      lines
        .split("\r\n")
        .filter((line) => line !== "")
        .map((line): [string, string] => [
          line.slice(0, line.indexOf(":")),
          line.slice(line.indexOf(":") + 1),
        ]),
    );
  const edits = (
    fields: readonly (readonly [string, string | null])[],
    id: string | null = null,
  ) => ({
    names: fields.map(([name]) => name),
    values: fields.map(([, value]) => value),
    id,
  });

  test("hold the same fields as the Headers, whatever is set and removed", () => {
    const names = ["server", "X-B", "X-New", "Set-Cookie", "date", "x-new"];
    for (let seed = 1; seed <= 300; seed++) {
      const random = new Random(seed);
      const fields = Array.from({ length: random.between(0, 6) }, () => {
        const value = random.pick(["1", "", "two words", null]);
        return [random.pick(names), value] as const;
      });
      const made = editedLines(LINES, edits(fields));
      const { headers } = editedFields({}, asHeaders(LINES), edits(fields));
      expect([seed, [...asHeaders(made?.lines ?? "none:")]]).toEqual([seed, [...headers]]);
      expect(made?.hasDate).toBe(headers.has("date"));
    }
  });

  test("keep their order, and the spelling of the edit", () => {
    const fields = [
      ["x-b", "2"],
      ["X-New", "3"],
      ["SERVER", null],
    ] as const;
    expect(editedLines(LINES, edits(fields))?.lines).toBe(
      "Set-Cookie: a=1\r\nx-b: 2\r\nset-cookie: b=2\r\nDate: now\r\nX-New: 3\r\n",
    );
  });

  test.each([
    ["X-A", "1\r\nX-Injected: 1"],
    ["X-A", "1\n"],
    ["X-A", " 1"],
    ["X-A", "\u0100"],
    ["X A", "1"],
    ["", "1"],
    ["X-A:", "1"],
    ["Connection", "close"],
    ["Transfer-Encoding", null],
    ["Content-Length", "1"],
    ["x-request-id", "1"],
  ])("are left to Headers where %p is %p", (name, value) => {
    expect(editedLines(LINES, edits([[name, value]], "id"))).toBeNull();
  });
});

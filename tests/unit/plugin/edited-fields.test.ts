// Fields that plugins set in answers that look the same: each answer gets its own values, whatever the one before had.
import { describe, expect, test } from "bun:test";
import { AnswerDraft } from "../../../src/dataplane/plugin/answer-draft.ts";
import type { EditHolder } from "../../../src/dataplane/plugin/edited-fields.ts";

const base = () => new Headers({ "Content-Type": "text/plain", Server: "origin" });

function draftOf(headers: Headers, sharedBy: EditHolder): AnswerDraft {
  return new AnswerDraft({ source: "upstream", status: 200, headers, sharedBy, isHead: false });
}

/** The fields as a Response copies them. */
const sent = (draft: AnswerDraft) => Object.fromEntries(new Headers(draft.sentHeaders));

describe("fields that plugins set", () => {
  test("change from answer to answer, and leave the shared ones alone", () => {
    const [headers, holder] = [base(), {}];
    for (const left of ["2", "1", "1", "0"]) {
      const draft = draftOf(headers, holder);
      draft.removeHeader("server");
      draft.setHeader("X-Left", left);
      expect(sent(draft)).toEqual({ "content-type": "text/plain", "x-left": left });
    }
    const plain = draftOf(headers, holder);
    expect(sent(plain)).toEqual({ "content-type": "text/plain", server: "origin" });
    const other = draftOf(headers, holder);
    other.setHeader("X-Other", "1");
    expect(sent(other)).toEqual({
      "content-type": "text/plain",
      server: "origin",
      "x-other": "1",
    });
  });

  test("may be set in one answer and taken away in the next", () => {
    const [headers, holder] = [base(), {}];
    const [first, second] = [draftOf(headers, holder), draftOf(headers, holder)];
    first.setHeader("Server", "sluice");
    expect(sent(first)["server"]).toBe("sluice");
    expect(first.editedFields?.hasContentType).toBe(true);
    second.removeHeader("Server");
    expect(sent(second)).toEqual({ "content-type": "text/plain" });
    const third = draftOf(headers, holder);
    third.removeHeader("Content-Type");
    expect(third.editedFields?.hasContentType).toBe(false);
  });

  test("of one name twice: the later edit counts, in every answer", () => {
    const [headers, holder] = [base(), {}];
    for (const value of ["a", "b", "c"]) {
      const draft = draftOf(headers, holder);
      draft.setHeader("X-Name", value);
      draft.setHeader("x-name", "last");
      expect(sent(draft)["x-name"]).toBe("last");
    }
  });

  test("are there for whoever looks at the headers, which are the answer's own from then on", () => {
    const [headers, holder] = [base(), {}];
    const draft = draftOf(headers, holder);
    draft.setHeader("X-Early", "1");
    expect(draft.isPlain).toBe(true);
    draft.headers.append("X-Early", "2");
    expect(draft.isPlain).toBe(false);
    draft.removeHeader("Server");
    expect(sent(draft)).toEqual({ "content-type": "text/plain", "x-early": "1, 2" });
    expect(draft.editedFields).toBeNull();
    expect(Object.fromEntries(headers)).toEqual({ "content-type": "text/plain", server: "origin" });
  });
});

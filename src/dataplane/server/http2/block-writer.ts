// Writes the header blocks of responses; knows no stream.
import { FieldWriter, literal, nameOf } from "../../http2/field-writer.ts";
import { STATIC_TABLE } from "../../http2/static-table.ts";
import { valueBetween } from "../../upstream/response-head.ts";
import type { OutgoingHead } from "../client-stream.ts";
import { dateValue } from "../response-date.ts";

const statuses = new Map(
  STATIC_TABLE.flatMap(({ name, value }, at) =>
    name === ":status" ? [[Number(value), 0x81 + at] as const] : [],
  ),
);

const STATUS = literal(":status");
const DATE = literal("date");
const LENGTH = literal("content-length");

/** One for each thread: a block is sent before the next one is written. */
export class BlockWriter extends FieldWriter {
  /**
   * A head with its fields. `length`: an additional Content-Length, -1: none. `altSvc`: a line in the place of what the target
   * announces; empty: there is none.
   */
  head(head: OutgoingHead, length: number, altSvc: string): void {
    const { status, lines = null } = head;
    this.status(status);
    const hasAltSvc = altSvc !== "";
    // RFC 9110 section 8.6: no length with 204.
    const hasDate =
      lines !== null && status !== 204
        ? this.#lines(lines, hasAltSvc)
        : this.#headers(head.headers, { hasAltSvc, dropsLength: status === 204 });
    if (hasAltSvc) this.#lines(altSvc, false);
    if (!hasDate) this.field(DATE, dateValue());
    if (length >= 0) this.field(LENGTH, String(length));
  }

  status(status: number): void {
    const known = statuses.get(status);
    if (known === undefined) this.field(STATUS, String(status));
    else this.indexed(known);
  }

  /** Of valid fields. Returns whether a Date was there. */
  #lines(lines: string, hasAltSvc: boolean): boolean {
    let hasDate = false;
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf("\r\n", at);
      const colon = lines.indexOf(":", at);
      const { prefix, kind } = nameOf(lines.slice(at, colon));
      if (kind === "date") hasDate = true;
      const isSent = prefix.length > 0 && !(hasAltSvc && kind === "alt-svc");
      if (isSent) this.field(prefix, valueBetween(lines, colon + 1, end));
      at = end + 2;
    }
    return hasDate;
  }

  #headers(
    headers: Headers,
    { hasAltSvc, dropsLength }: { readonly hasAltSvc: boolean; readonly dropsLength: boolean },
  ): boolean {
    let hasDate = false;
    for (const [name, value] of headers) {
      const { prefix, kind } = nameOf(name);
      if (kind === "date") hasDate = true;
      const isDropped =
        (dropsLength && kind === "content-length") || (hasAltSvc && kind === "alt-svc");
      if (prefix.length > 0 && !isDropped) this.field(prefix, value);
    }
    return hasDate;
  }
}

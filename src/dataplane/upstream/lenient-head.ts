// Heads that devices send and RFC 9112 lets a recipient read: rewritten as a strict parser expects them; knows no field.
import { valueBetween } from "../../http/whitespace.ts";

/** The first empty line behind others. */
const EMPTY_LINE = /\n\r*\n/g;

/** Where a head ends whose lines end in LF (RFC 9112 section 2.2), or that has empty lines before it; 0: not received yet. */
export function lenientHeadEnd(text: string): number {
  EMPTY_LINE.lastIndex = startOf(text);
  return EMPTY_LINE.test(text) ? EMPTY_LINE.lastIndex : 0;
}

/**
 * Nothing of a line but its name and value is left: lines end in CRLF, a folded one is part of the one before (section 5.2), no
 * blank is before a colon (section 5.1), and a line without a colon, such as a second status line of IIS, is left out. What else
 * is not valid stays so.
 */
export function strictForm(text: string): string {
  const [status = "", ...rest] = text.slice(startOf(text)).split("\n").map(withoutCr);
  const lines = [status.replace(VERSION, (_, minor) => `HTTP/1.${minor === "0" ? 0 : 1} `)];
  let isLeftOut = false;
  for (const line of rest) {
    if (line === "") break;
    const colon = line.indexOf(":");
    if (isBlank(line.charCodeAt(0))) {
      // Behind the status line it could be a field to some, and part of the reason to others.
      if (lines.length === 1 && !isLeftOut) return text;
      if (!isLeftOut) lines.push(`${lines.pop() ?? ""} ${valueBetween(line, 0, line.length)}`);
      continue;
    }
    isLeftOut = colon < 0;
    if (!isLeftOut) lines.push(`${valueBetween(line, 0, colon)}${line.slice(colon)}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A minor version above 1 is read as 1 (RFC 9110 section 2.5). */
const VERSION = /^HTTP\/1\.(\d) +/;

function startOf(text: string): number {
  let start = 0;
  while (text[start] === "\r" || text[start] === "\n") start++;
  return start;
}

function withoutCr(line: string): string {
  let end = line.length;
  while (line[end - 1] === "\r") end--;
  return line.slice(0, end);
}

const isBlank = (code: number) => code === 32 || code === 9;

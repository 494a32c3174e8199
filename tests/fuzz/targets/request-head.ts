// Valid and invalid heads of requests on our own engine: read as a slow and strict reader does, or refused as it does, in any pieces.
import fc from "fast-check";
import { CHUNKED, HeadReader } from "../../../src/dataplane/server/http1/request-parser.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly line: string;
  readonly fields: readonly string[];
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

const odd = fc.constantFrom(
  ...["\r", "\n", "\r\n", " ", "\t", ":", "\0", "\xe9", "\r\n\r\n", "Host: x\r\n", "HTTP/2"],
);
const long = "v".repeat(300);

export const target = defineTarget<Input>({
  name: "request-head",
  share: 90,
  inputs: fc.record({
    line: fc
      .tuple(
        fc.constantFrom("GET", "POST", "OPTIONS", "CONNECT", "X-Y~", "G T", "G(T", ""),
        fc.constantFrom(
          "/",
          "/a?b#c",
          "*",
          "http://h/x",
          "HTTPS://h?x",
          "http://a@h/",
          "a",
          "/\xe9",
          "",
        ),
        fc.constantFrom("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1"),
      )
      .map((parts) => parts.join(" ")),
    fields: fc.array(
      fc.constantFrom(
        ...["Host: h", "Host: h", "host:h2", "Content-Length: 3", "content-length: 0"],
        ...["Content-Length: +3", "Content-Length: 3, 3", "Transfer-Encoding: chunked"],
        ...["Transfer-Encoding: gzip, chunked", "Transfer-Encoding: CHUNKED", "Connection: close"],
        ...["Connection: keep-alive, x", "Cookie: a=b", "X: \t a b \t", "X:", "X-Y:a:b", "Y : z"],
        ...[" folded", "X\t: a", "TE: trailers", "Expect: 100-Continue", `Long: ${long}`],
      ),
      { maxLength: 6 },
    ),
    changes: edits(
      2,
      odd.map((text) => new Uint8Array(Buffer.from(text, "latin1"))),
    ),
    cuts,
  }),
  check({ line, fields, changes, cuts: at }) {
    const head = `${[line, ...fields].map((each) => `${each}\r\n`).join("")}\r\nbody`;
    const bytes = edited(Buffer.from(head, "latin1"), changes);
    const wanted = plainly(bytes.toString("latin1"));
    const whole = read([bytes]);
    mustEqual(typeof whole, typeof wanted, "whether it is served");
    if (typeof wanted === "object") mustEqual(whole, wanted, "in one piece");
    mustEqual(read(inPieces(bytes, at)), whole, "in pieces");
    mustEqual(read(Array.from(bytes, (byte) => Buffer.of(byte))), whole, "byte by byte");
    if (whole === null)
      must(
        !bytes.includes("\r\n\r\n") && bytes.length <= MAX_BYTES,
        "it waits for more of a whole head",
      );
  },
});

const MAX_BYTES = 500;

interface Read {
  readonly size: number;
  readonly method: string;
  readonly httpVersion: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly bodyLength: number;
  readonly keepsAlive: boolean;
}

/** A text: the reason of a refusal; null: it is not complete. */
function read(pieces: readonly Buffer[]): Read | string | null {
  const reader = new HeadReader();
  let arrived = Buffer.alloc(0);
  for (const piece of pieces) {
    arrived = Buffer.concat([arrived, piece]);
    const head = arrived.length === 0 ? null : reader.read(arrived, MAX_BYTES);
    if (head === null) continue;
    if ("status" in head) return `${head.status} ${head.detail}`;
    const { method, httpVersion, fields, bodyLength, keepsAlive } = head;
    const pairs = fields.names.map(({ sent }, index) => [sent, fields.valueAt(index)] as const);
    return { size: reader.size, method, httpVersion, fields: pairs, bodyLength, keepsAlive };
  }
  return null;
}

const HEAD =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) HTTP\/(1\.[01])\r\n((?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)*)\r\n/;

/** By regular expressions over the whole; a text: it is refused. */
function plainly(text: string): Read | string | null {
  const found = HEAD.exec(text);
  if (found === null) return isPrefix(text) ? null : "refused";
  const [all = "", method = "", path = "", httpVersion = "", lines = ""] = found;
  if (all.length > MAX_BYTES) return "too long";
  const fields = lines
    .split("\r\n")
    .slice(0, -1)
    .map((each) => {
      const colon = each.indexOf(":");
      return [
        each.slice(0, colon),
        each.slice(colon + 1).replaceAll(/^[\t ]+|[\t ]+$/g, ""),
      ] as const;
    });
  const valuesOf = (name: string) =>
    fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
  const [hosts, lengths, codings] = ["host", "content-length", "transfer-encoding"].map(valuesOf);
  if (hosts === undefined || lengths === undefined || codings === undefined) return null;
  if (hosts.length > 1 || (hosts.length === 0 && httpVersion === "1.1")) return "Host";
  if (lengths.length > 1 || lengths.some((value) => !/^\d{1,15}$/.test(value))) return "length";
  if (codings.length > 1 || codings.some((value) => value.toLowerCase() !== "chunked"))
    return "coding";
  if (codings.length > 0 && (lengths.length > 0 || httpVersion === "1.0")) return "both";
  const absolute = /^https?:\/\/([^/?#]*)(?:[/?].*)?$/i.exec(path);
  const isOrigin = path.startsWith("/");
  const isOther = method === "CONNECT" || (method === "OPTIONS" && path === "*");
  if (!isOrigin && absolute === null && !isOther) return "target";
  const authority = isOrigin ? null : (absolute?.[1] ?? null);
  if (authority !== null && (authority === "" || authority.includes("@"))) return "authority";
  const options = valuesOf("connection").flatMap((value) =>
    value.split(",").map((one) => one.trim().toLowerCase()),
  );
  return {
    size: all.length,
    method,
    httpVersion,
    fields: merged(fields, authority === hosts[0] ? null : authority),
    bodyLength: codings.length > 0 ? CHUNKED : Number(lengths[0] ?? 0),
    keepsAlive:
      !options.includes("close") && (httpVersion === "1.1" || options.includes("keep-alive")),
  };
}

/** With one Cookie, and the host of the target in the place of Host. */
function merged(
  fields: readonly (readonly [string, string])[],
  authority: string | null,
): readonly (readonly [string, string])[] {
  const cookies = fields.filter(([name]) => name.toLowerCase() === "cookie");
  let all = fields;
  if (cookies.length > 1)
    all = replaced(all, "cookie", cookies.map(([, value]) => value).join("; "));
  return authority === null ? all : replaced(all, "host", authority);
}

/** In the place of the first one, under its name. */
function replaced(
  fields: readonly (readonly [string, string])[],
  lower: string,
  value: string,
): readonly (readonly [string, string])[] {
  const isMeant = ([name]: readonly [string, string]) => name.toLowerCase() === lower;
  const first = fields.findIndex(isMeant);
  if (first < 0) return [...fields, [lower, value]];
  return fields.flatMap((field, at) =>
    !isMeant(field) ? [field] : at === first ? [[field[0], value] as const] : [],
  );
}

/** Whether more bytes could make it a head within the limit. */
function isPrefix(text: string): boolean {
  if (text.length > MAX_BYTES) return false;
  return (
    /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~\x80-\xff]+ HTTP\/1\.[01]\r\n)?[\t -~\x80-\xff\r\n]*$/.test(
      text,
    ) &&
    !/\r[^\n]|[^\r]\n|^\n|\r\n\r\n/.test(text) &&
    (!text.includes("\r\n") ||
      /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~\x80-\xff]+ HTTP\/1\.[01]\r\n/.test(text))
  );
}

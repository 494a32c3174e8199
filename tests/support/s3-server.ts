// A server of S3 in memory that checks signatures as MinIO does (cmd/signature-v4.go): over the Host, path and query that arrive.
import { createHash, createHmac } from "node:crypto";

export const ACCESS_KEY = "you";
export const SECRET_KEY = "a secret of yours";

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Uint8Array, data: string) =>
  createHmac("sha256", key).update(data).digest();
/** All but the unreserved characters of RFC 3986. */
const escaped = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );

interface Signature {
  readonly date: string;
  readonly scope: string;
  readonly signedFields: string;
  readonly signature: string;
  readonly payload: string;
}

function signatureOf({ headers }: Request, query: URLSearchParams): Signature | null {
  const field = (name: string) => headers.get(name) ?? "";
  const [, scope = "", signedFields = "", signature = ""] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/.exec(
      field("authorization"),
    ) ?? [];
  if (signature !== "") {
    const payload = field("x-amz-content-sha256");
    return { date: field("x-amz-date"), scope, signedFields, signature, payload };
  }
  const of = (name: string) => query.get(`X-Amz-${name}`) ?? "";
  if (of("Signature") === "") return null;
  return {
    date: of("Date"),
    scope: of("Credential").replace(/^[^/]+\//, ""),
    signedFields: of("SignedHeaders"),
    signature: of("Signature"),
    payload: "UNSIGNED-PAYLOAD",
  };
}

/** Signature Version 4, "Create a canonical request". */
function isSigned(request: Request, body: Uint8Array): boolean {
  const { pathname, searchParams } = new URL(request.url);
  const made = signatureOf(request, searchParams);
  if (made === null) return false;
  if (/^[0-9a-f]{64}$/.test(made.payload) && made.payload !== sha256(body)) return false;
  const names = made.signedFields.split(";");
  if (!names.includes("host")) return false;
  const canonical = [
    request.method,
    pathname
      .split("/")
      .map((part) => escaped(decodeURIComponent(part)))
      .join("/"),
    [...searchParams]
      .filter(([name]) => name !== "X-Amz-Signature")
      .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
      .toSorted()
      .join("&"),
    ...names.map((name) => `${name}:${(request.headers.get(name) ?? "").trim()}`),
    "",
    made.signedFields,
    made.payload,
  ].join("\n");
  const [day = "", region = "", service = "", end = ""] = made.scope.split("/");
  const key = [region, service, end].reduce<Uint8Array>(hmac, hmac(`AWS4${SECRET_KEY}`, day));
  const text = ["AWS4-HMAC-SHA256", made.date, made.scope, sha256(canonical)].join("\n");
  return hmac(key, text).toString("hex") === made.signature;
}

export interface S3Server {
  readonly url: string;
  /** By bucket and key, without the first slash. */
  readonly objects: Map<string, Uint8Array>;
  /** How many objects were joined of parts. */
  readonly joined: () => number;
  stop(): Promise<void>;
}

export function startS3(): S3Server {
  const objects = new Map<string, Uint8Array>();
  const parts = new Map<string, Map<number, Uint8Array>>();
  /** Times of the files, without which rclone copies each object onto itself. */
  const times = new Map<string, string>();
  let joined = 0;
  const xml = (text: string, status = 200) =>
    new Response(`<?xml version="1.0"?>${text}`, {
      status,
      headers: { "content-type": "application/xml" },
    });
  const etag = (body: Uint8Array) => ({
    etag: `"${createHash("md5").update(body).digest("hex")}"`,
  });

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    async fetch(request) {
      const body = await request.bytes();
      if (!isSigned(request, body))
        return xml("<Error><Code>SignatureDoesNotMatch</Code></Error>", 403);
      const { pathname, searchParams: query } = new URL(request.url);
      const key = decodeURIComponent(pathname).slice(1);
      const upload = query.get("uploadId");
      const time = request.headers.get("x-amz-meta-mtime");
      if (time !== null) times.set(key, time);
      if (query.has("uploads")) {
        parts.set(key, new Map());
        return xml(
          `<InitiateMultipartUploadResult><UploadId>1+/=</UploadId></InitiateMultipartUploadResult>`,
        );
      }
      if (upload !== null && request.method === "PUT") {
        parts.get(key)?.set(Number(query.get("partNumber")), body);
        return new Response(null, { headers: etag(body) });
      }
      if (upload !== null && request.method === "POST") {
        const sorted = [...(parts.get(key) ?? [])].toSorted(([one], [two]) => one - two);
        objects.set(key, Buffer.concat(sorted.map(([, part]) => part)));
        joined++;
        return xml(
          '<CompleteMultipartUploadResult><ETag>"joined-2"</ETag></CompleteMultipartUploadResult>',
        );
      }
      if (request.method === "PUT") {
        objects.set(key, body);
        return new Response(null, { headers: etag(body) });
      }
      if (query.has("prefix") || query.has("list-type"))
        return xml(listOf(key, query.get("prefix") ?? ""));
      const found = objects.get(key);
      if (found === undefined) return xml("<Error><Code>NoSuchKey</Code></Error>", 404);
      return new Response(found as Uint8Array<ArrayBuffer>, {
        headers: {
          ...etag(found),
          "last-modified": new Date(0).toUTCString(),
          "x-amz-meta-mtime": times.get(key) ?? "0",
        },
      });
    },
  });

  function listOf(bucket: string, prefix: string): string {
    const found = [...objects].filter(([key]) =>
      key.startsWith(`${bucket.replace(/\/$/, "")}/${prefix}`),
    );
    const contents = found.map(
      ([key, { length }]) =>
        `<Contents><Key>${escaped(key.slice(key.indexOf("/") + 1))}</Key><Size>${length}</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"0"</ETag></Contents>`,
    );
    return `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>${contents.join("")}</ListBucketResult>`;
  }

  return {
    url: `http://127.0.0.1:${server.port}`,
    objects,
    joined: () => joined,
    stop: () => server.stop(true),
  };
}

// aws-signing: signs upstream requests with AWS Signature Version 4, so that clients need no AWS credentials.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
import { createHash, createHmac } from "node:crypto";
import { config, definePlugin, destination, integer, reject, secret, t } from "@sluice/plugin";

const sha256 = (data: string | Uint8Array) => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Uint8Array, text: string) =>
  createHmac("sha256", key).update(text).digest();
/** RFC 3986 without exceptions, as the signature wants it. */
const encode = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Sorted by name, then by value, each encoded anew. */
function canonicalQuery(query: string): string {
  const pairs = [...new URLSearchParams(query)].map(
    ([name, value]) => `${encode(name)}=${encode(value)}`,
  );
  return pairs.sort().join("&");
}

export default definePlugin({
  name: "aws-signing",
  summary: "Signs upstream requests for AWS (SigV4)",
  description: `The service's target is the endpoint of AWS, or of a server with the same signatures, such as MinIO. The signature covers
method, path, query, host, date and the body, which the gateway reads into memory for it. Credentials of the client are not sent to AWS.
Everyone whom this scope admits acts with these credentials: put authentication before it.`,
  group: "traffic",
  order: 1000,
  phases: ["request"],
  scopes: ["route", "service"],
  needsAdmin: true,
  config: config({
    host: destination(
      t.String({
        minLength: 1,
        maxLength: 253,
        description: "Host of the endpoint, such as s3.eu-central-1.amazonaws.com",
      }),
    ),
    region: t.String({ minLength: 1, maxLength: 64, description: "Region, such as eu-central-1" }),
    service: t.String({
      minLength: 1,
      maxLength: 64,
      description: "Service in the signature, such as s3 or execute-api",
    }),
    access_key_id: t.String({ minLength: 1, maxLength: 128, description: "Id of the access key" }),
    secret_access_key: secret({ description: "Secret access key" }),
    max_body: integer(10_485_760, {
      minimum: 0,
      maximum: 67_108_864,
      description: "Longest body in bytes; longer ones get 413",
    }),
  }),
  example: {
    host: "s3.eu-central-1.amazonaws.com",
    region: "eu-central-1",
    service: "s3",
    access_key_id: "AKIAIOSFODNN7EXAMPLE",
    secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  },
  onError: "closed",
  create(own, kit) {
    const keyOf = (day: string) =>
      [day, own.region, own.service, "aws4_request"].reduce<string | Uint8Array>(
        hmac,
        `AWS4${own.secret_access_key}`,
      );
    /** S3 signs the path as it is, every other service encodes it once more. */
    const pathOf = (path: string) =>
      own.service === "s3" ? path : path.split("/").map(encode).join("/");
    return {
      async request(context) {
        const { upstream } = context;
        const body = context.hasBody ? await context.readBody(own.max_body) : new Uint8Array();
        if (body === null)
          return reject(413, "aws.body_too_long", { detail: "the body is too long to be signed" });
        const time = new Date(kit.counters.now()).toISOString().replace(/[-:]|\.\d+/g, "");
        const day = time.slice(0, 8);
        const hash = sha256(body);
        const signed = "host;x-amz-content-sha256;x-amz-date";
        const canonical = [
          upstream.method,
          pathOf(upstream.path),
          canonicalQuery(upstream.query),
          `host:${own.host}`,
          `x-amz-content-sha256:${hash}`,
          `x-amz-date:${time}`,
          "",
          signed,
          hash,
        ].join("\n");
        const scope = `${day}/${own.region}/${own.service}/aws4_request`;
        const text = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
        const signature = createHmac("sha256", keyOf(day)).update(text).digest("hex");
        // What is signed is what is sent: the route does not change the path any more.
        upstream.setPath(upstream.path);
        upstream.setHost(own.host);
        upstream.setHeader("X-Amz-Date", time);
        upstream.setHeader("X-Amz-Content-Sha256", hash);
        upstream.setHeader(
          "Authorization",
          `AWS4-HMAC-SHA256 Credential=${own.access_key_id}/${scope}, SignedHeaders=${signed}, Signature=${signature}`,
        );
        return undefined;
      },
    };
  },
});

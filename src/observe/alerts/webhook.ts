// The webhook sink: POST of JSON or a template, optionally signed; knows no alert.
import { createHmac } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { reasonOf } from "../../control/outgoing-request.ts";
import { destination } from "../../model/destination.ts";
import type { Sent } from "./notice.ts";
import { DeliveryError } from "./outbox.ts";
import { advanced, caCertificates, defineSink, secret, settings } from "./sink.ts";

const TIMEOUT_MS = 10_000;

const config = settings(
  {
    url: destination(
      secret(
        "http:// or https:// URL, a secret because URLs of chat services hold a token",
        {
          title: "URL",
          help: "Stored encrypted and never shown, because URLs of chat services hold a token",
          example: "https://example.com/hook",
          check: { pattern: "^https?://[^\\s/]+", message: "must start with http:// or https://" },
        },
        2048,
      ),
    ),
    headers: t.Array(
      settings({
        name: t.String({
          maxLength: 256,
          pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
          errorMessage: "must be the name of a header field",
          description: "Name",
        }),
        value: secret("Value"),
      }),
      {
        default: [],
        maxItems: 20,
        description: "Additional headers",
        form: { help: "", input: "row", group: "advanced" },
      },
    ),
    secret: t.Optional(
      secret(
        "Signs messages: X-Sluice-Signature is `sha256=` and the HMAC of timestamp, dot and body",
        {
          title: "Signing key",
          help: "Signs messages: X-Sluice-Signature is sha256= and the HMAC of X-Sluice-Timestamp, a dot and the body",
          group: "advanced",
        },
      ),
    ),
    content_type: t.String({
      default: "application/json",
      maxLength: 128,
      pattern: "^[a-z0-9.+-]+/[a-z0-9.+-]+(?:; ?[a-z0-9-]+=[A-Za-z0-9-]+)?$",
      errorMessage: "must be a media type",
      description: "Type of the body",
      form: { help: "", group: "advanced", order: -1 },
    }),
    template: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 16_384,
        description:
          "Body, with ${title}, ${message}, ${event}, ${status}, ${alert}, ${gateway}, ${object}, ${at}, ${since} and ${id} in it; absent: all of that as JSON",
        form: {
          title: "Body",
          help: "Empty: all fields as JSON. Variables: ${title}, ${message}, ${event}, ${status}, ${alert}, ${gateway}, ${object}, ${at}, ${since}, ${id}",
          input: "code",
          group: "advanced",
          order: -2,
        },
      }),
    ),
    ca_certificates: caCertificates,
  },
  advanced("Custom body and headers, signatures, trusted CAs."),
);

const PLACEHOLDER = /\$\{([^{}]*)\}/g;

const variables: Readonly<Record<string, (sent: Sent) => string>> = {
  title: ({ title }) => title,
  message: ({ message }) => message,
  event: ({ event }) => event,
  status: ({ status }) => status,
  alert: ({ alert }) => alert,
  gateway: ({ gateway }) => gateway,
  object: ({ object }) => object.name,
  at: ({ at }) => at,
  since: ({ since }) => since,
  id: ({ id }) => id,
};

/** Header fields of the framing and connection. */
const RESERVED =
  /^(?:host|content-length|content-type|transfer-encoding|connection|upgrade|te|trailer|expect|x-sluice-.*)$/i;

const isJson = (type: string) => /[/+]json\b/.test(type);

/** Fills in the template; escapes texts inside of JSON. */
function fill(template: string, contentType: string, of: (name: string) => string): string {
  const inside = isJson(contentType)
    ? (text: string) => JSON.stringify(text).slice(1, -1)
    : (text: string) => text;
  return template.replace(PLACEHOLDER, (_, name: string) => inside(of(name)));
}

export default defineSink({
  type: "webhook",
  title: "Webhook",
  config,
  example: {
    url: "https://hooks.example.com/services/T0/B0/xyz",
    template: '{"text": "${title}: ${message}"}',
  },
  destination: ({ url }) => URL.parse(url)?.host ?? "",
  address(own) {
    const url = URL.parse(own.url);
    if (url === null) return null;
    return { host: url.hostname, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) };
  },
  problem(own) {
    const url = URL.parse(own.url);
    // A dash is the placeholder of a missing secret, which a rule reports.
    if (own.url !== "-" && (url === null || !/^https?:$/.test(url.protocol)))
      return { path: "url", message: "must be an http:// or https:// address" };
    if (url !== null && (url.username !== "" || url.password !== ""))
      return {
        path: "url",
        message: "must not hold user information; use the header Authorization",
      };
    for (const [index, { name, value }] of own.headers.entries()) {
      if (RESERVED.test(name))
        return { path: `headers[${index}].name`, message: "is set by the gateway itself" };
      if (!/^[\t\x20-\x7e]*$/.test(value))
        return { path: `headers[${index}].value`, message: "must be printable ASCII" };
    }
    return own.template === undefined ? null : templateProblem(own.template, own.content_type);
  },
  async send(own, sent, { dialer, signal }) {
    const address = this.address(own);
    if (address === null) throw new DeliveryError("the URL is invalid");
    const { template, content_type: type } = own;
    const body =
      template === undefined
        ? JSON.stringify(sent)
        : fill(template, type, (name) => variables[name]?.(sent) ?? "");
    const headers = headersOf(own, body);
    const tls = own.ca_certificates === undefined ? {} : { tls: { ca: own.ca_certificates } };
    try {
      const response = await dialer.fetch(own.url, {
        ...tls,
        method: "POST",
        headers,
        body,
        // A redirect could send the notification, and its secrets, to another host.
        redirect: "manual",
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      // The body is not needed and may be endless.
      void response.body?.cancel().catch(() => undefined);
      if (response.ok) return `${address.host} returned ${response.status}`;
      throw new DeliveryError(`${address.host} ${meaningOf(response.status)}`);
    } catch (error) {
      if (error instanceof DeliveryError) throw error;
      throw new DeliveryError(`${address.host} ${reasonOf(error, { timeoutMs: TIMEOUT_MS })}`);
    }
  },
});

interface Signing {
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly content_type: string;
  readonly secret?: string;
}

function headersOf({ headers, content_type, secret: key }: Signing, body: string): Headers {
  const result = new Headers(headers.map(({ name, value }) => [name, value] as [string, string]));
  result.set("content-type", content_type);
  if (!result.has("user-agent")) result.set("user-agent", "sluice");
  if (key === undefined) return result;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", key).update(`${timestamp}.${body}`).digest("hex");
  result.set("x-sluice-timestamp", timestamp);
  result.set("x-sluice-signature", `sha256=${signature}`);
  return result;
}

function templateProblem(template: string, contentType: string) {
  for (const [, name = ""] of template.matchAll(PLACEHOLDER))
    if (!Object.hasOwn(variables, name))
      return {
        path: "template",
        message: `\${${name}} is unknown; known: ${Object.keys(variables).join(", ")}`,
      };
  if (!isJson(contentType)) return null;
  try {
    JSON.parse(fill(template, contentType, () => "x"));
    return null;
  } catch {
    return { path: "template", message: "must be JSON, as content_type says" };
  }
}

function meaningOf(status: number): string {
  if (status >= 300 && status < 400) return `returns a redirect (${status}), which is not followed`;
  if (status === 429) return "limits the rate of messages (429)";
  if (status >= 500) return `has an internal error (${status})`;
  return `rejects the message (${status})`;
}

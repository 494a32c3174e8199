// Sends messages by e-mail through one SMTP server; knows no alert.
import type { Socket } from "node:net";
import type { Dialer } from "../../dialer/dialer.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import { isLoopbackHost } from "../../net/loopback.ts";
import { quote } from "../../net/quote.ts";
import { destination } from "../../model/destination.ts";
import { type FieldForm, oneOf } from "../../model/fields.ts";
import { loadMailer } from "./mailer.ts";
import { oneLine, type Sent } from "./notice.ts";
import { DeliveryError } from "./outbox.ts";
import { advanced, caCertificates, defineSink, secret, settings } from "./sink.ts";

/** Total timeout, as a multiple of the timeout of a step. */
const MOST_STEPS = 3;

const mailbox = (description: string, form: FieldForm = {}) =>
  t.String({
    maxLength: 320,
    pattern: '^[^\\s@<>,;:"\\x00-\\x1f]+@[^\\s@<>,;:"\\x00-\\x1f]+$',
    errorMessage: "must be an e-mail address",
    description,
    form,
  });

const config = settings(
  {
    host: destination(
      t.String({
        minLength: 1,
        maxLength: 253,
        pattern: "^[A-Za-z0-9._:-]+$",
        errorMessage: "must be a host name or an address",
        description: "SMTP server",
        form: { title: "Mail server", help: "", example: "mail.example.com" },
      }),
    ),
    port: destination(
      t.Integer({
        minimum: 1,
        maximum: 65_535,
        default: 587,
        description: "Port of the server",
        form: { help: "", input: "plain-number" },
      }),
    ),
    tls: destination(
      oneOf(["starttls", "implicit", "none"], {
        default: "starttls",
        description:
          "starttls: upgrades to TLS, or fails (587); implicit: TLS from the start (465); none: unencrypted",
        form: {
          title: "Encryption",
          help: "",
          options: { starttls: "STARTTLS (587)", implicit: "TLS (465)", none: "None" },
        },
      }),
    ),
    username: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 320,
        description: "User for the authentication; absent: none",
        form: { title: "User name", help: "Empty: no authentication" },
      }),
    ),
    password: t.Optional(secret("Password of the user", { help: "Password of the user name" })),
    from: mailbox("Sender", { help: "", example: "gateway@example.com", order: -1 }),
    to: t.Array(mailbox("Recipient"), {
      minItems: 1,
      maxItems: 50,
      description: "Recipients",
      form: {
        help: "Mail addresses; press Enter after each",
        example: "ops@example.com",
        order: -2,
      },
    }),
    ca_certificates: caCertificates,
    timeout: t.Integer({
      minimum: 100,
      maximum: 60_000,
      default: 10_000,
      description:
        "Timeout of each SMTP step in milliseconds: connect, greeting, each reply. The whole delivery may take three times as long",
      form: {
        help: "Of each step: connecting, the greeting, each reply",
        unit: "ms",
        group: "advanced",
      },
    }),
  },
  advanced("Trusted CAs, SMTP timeout."),
);

export default defineSink({
  type: "smtp",
  title: "Mail",
  config,
  example: {
    host: "mail.example.com",
    username: "sluice@example.com",
    password: { $secret: "mail" },
    from: "sluice@example.com",
    to: ["ops@example.com"],
  },
  destination: ({ host, port, to }) => `${to.join(", ")} by ${host}:${port}`,
  address: ({ host, port }) => ({ host, port }),
  problem({ host, tls, username, password }) {
    if (password !== undefined && username === undefined)
      return { path: "username", message: "is required with a password" };
    if (username !== undefined && password === undefined)
      return { path: "password", message: "is required with a user name" };
    if (tls === "none" && password !== undefined && !isLoopbackHost(host))
      return { path: "tls", message: "must not be none when there is a password" };
    return null;
  },
  async send(own, sent, { dialer, signal }) {
    const { host, port, tls, username, password, ca_certificates: ca, timeout } = own;
    const mailer = await loadMailer();
    const transport = mailer.createTransport({
      host,
      port,
      secure: tls === "implicit",
      requireTLS: tls === "starttls",
      ignoreTLS: tls === "none",
      disableFileAccess: true,
      disableUrlAccess: true,
      connectionTimeout: timeout,
      greetingTimeout: timeout,
      socketTimeout: timeout,
      dnsTimeout: timeout,
      socketCloseTimeout: 0,
      getSocket: (_, done) =>
        void openSocket({ host, port, timeout }, dialer).then(
          (connection) => done(null, { connection }),
          (error: Error) => done(error, false),
        ),
      tls: { minVersion: "TLSv1.2", ...(ca === undefined ? {} : { ca }) },
      ...(username === undefined ? {} : { auth: { user: username, pass: password ?? "" } }),
    });
    const { promise: tooLate, reject } = Promise.withResolvers<never>();
    const wholeMs = timeout * MOST_STEPS;
    const timer = setTimeout(() => reject(new DeliveryError(tookTooLong(host, wholeMs))), wholeMs);
    signal.addEventListener("abort", () => reject(new DeliveryError("the gateway stops")), {
      once: true,
    });
    // The loser of the race must not become an unhandled rejection.
    tooLate.catch(() => undefined);
    try {
      const result = await Promise.race([transport.sendMail(mailOf(own, sent)), tooLate]);
      return `${host} accepted it for ${result.accepted.length} of ${own.to.length} recipients`;
    } catch (error) {
      if (error instanceof DeliveryError) throw error;
      throw new DeliveryError(describe(error, host, [password ?? null]));
    } finally {
      clearTimeout(timer);
      transport.close();
    }
  },
});

/** Connected, as the package expects it. */
async function openSocket(
  { host, port, timeout }: Pick<Static<typeof config>, "host" | "port" | "timeout">,
  dialer: Dialer,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = dialer.connect({ host, port });
  const late = setTimeout(
    () => socket.destroy(Object.assign(new Error("no connection in time"), { code: "ETIMEDOUT" })),
    timeout,
  );
  socket.once("connect", () => resolve(socket));
  socket.once("error", reject);
  socket.once("close", () =>
    reject(Object.assign(new Error("the connection was closed"), { code: "ECONNECTION" })),
  );
  try {
    return await promise;
  } finally {
    clearTimeout(late);
  }
}

const tookTooLong = (host: string, ms: number) => `${host} did not respond within ${ms / 1000} s`;

function mailOf({ from, to }: { readonly from: string; readonly to: string[] }, sent: Sent) {
  const { title, message, status, event, alert, gateway, object, at, since } = sent;
  return {
    from,
    to: [...to],
    subject: oneLine(`[Sluice] ${status === "resolved" ? "Over: " : ""}${title}`),
    text: [
      message,
      "",
      `Event:   ${event} (${status})`,
      `Object:  ${object.kind} ${object.name}`,
      `Since:   ${since}`,
      `Sent:    ${at}`,
      `Alert:   ${alert}`,
      `Gateway: ${gateway}`,
      "",
    ].join("\n"),
    // Suppresses automatic replies (RFC 3834).
    headers: { "Auto-Submitted": "auto-generated", "X-Sluice-Event": event },
    messageId: `<${sent.id}@${from.split("@")[1] ?? "sluice"}>`,
  };
}

/** Message for users, without secrets. */
function describe(error: unknown, host: string, secrets: readonly (string | null)[]): string {
  const { code, response, message } = error as {
    readonly code?: string;
    readonly response?: string;
    readonly message?: string;
  };
  const said = quote(response ?? message ?? "", secrets);
  const meaning: Readonly<Record<string, string>> = {
    EAUTH: "rejects the user name and password",
    ENOAUTH: "rejects the user name and password",
    ETIMEDOUT: "did not respond in time",
    EENVELOPE: "rejects the sender or the recipients",
    EMESSAGE: "rejects the message",
    EDNS: "is a name that cannot be resolved",
    ETLS: "does not support TLS, or presents a certificate that is not trusted",
    ECONNREFUSED: "refused the connection",
    ECONNECTION: "cannot be reached",
    ESOCKET: "cannot be reached, or presents a certificate that is not trusted",
  };
  return `${host} ${meaning[code ?? ""] ?? "failed"}${said === "" ? "" : ` (${said})`}`;
}

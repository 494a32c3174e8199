// The fields of the form of an alert, converted from and to the API's objects; renders nothing.
import type { Read, Write } from "../../api/resources.ts";

type Alert = Read<"alerts">;
export type AlertEvent = Alert["events"][number];

/** Values of a header are secrets: empty ones stay as they are stored. */
export interface HeaderValues {
  readonly name: string;
  readonly value: string;
}

export interface AlertValues extends Pick<
  Alert,
  | "name"
  | "type"
  | "events"
  | "service_ids"
  | "route_ids"
  | "threshold"
  | "quiet_seconds"
  | "repeat_after"
  | "resolved"
  | "enabled"
  | "tags"
  | "description"
> {
  readonly webhook: { readonly content_type: string; readonly template: string };
  readonly smtp: {
    readonly host: string;
    readonly port: number;
    /** Milliseconds. */
    readonly timeout: number;
    readonly tls: string;
    readonly username: string;
    readonly from: string;
    readonly to: readonly string[];
  };
  readonly ca_certificates: string;
  /** Entered secrets; an empty string keeps the stored value. */
  readonly secrets: {
    readonly url: string;
    readonly signing: string;
    readonly password: string;
    readonly headers: readonly HeaderValues[];
  };
  /** Turns signing off. */
  readonly is_unsigned: boolean;
  /** Whether a user name is stored, and with it a password. */
  readonly had_user: boolean;
}

const defaults = {
  name: "",
  type: "webhook",
  service_ids: [],
  route_ids: [],
  events: ["target_down", "target_up", "certificate_failing", "certificate_expiring"],
  threshold: { percent: 5, window_seconds: 300, min_requests: 20 },
  quiet_seconds: 300,
  repeat_after: 14_400,
  resolved: true,
  enabled: true,
  tags: [],
  description: "",
} as const;

export function toValues(alert: Partial<Alert>): AlertValues {
  const names = Object.keys(defaults) as (keyof typeof defaults)[];
  const own = names.filter((name) => alert[name] !== undefined);
  const config = alert.config ?? {};
  const text = (name: string, otherwise = "") => toText(config[name]) ?? otherwise;
  return {
    ...(structuredClone(defaults) as unknown as AlertValues),
    ...Object.fromEntries(own.map((name) => [name, alert[name]])),
    webhook: {
      content_type: text("content_type", "application/json"),
      template: text("template"),
    },
    smtp: {
      host: text("host"),
      tls: text("tls", "starttls"),
      username: text("username"),
      port: typeof config["port"] === "number" ? config["port"] : 587,
      timeout: typeof config["timeout"] === "number" ? config["timeout"] : 10_000,
      from: text("from"),
      to: (config["to"] as string[] | undefined) ?? [],
    },
    ca_certificates: text("ca_certificates"),
    secrets: {
      url: text("url"),
      signing: text("secret"),
      password: text("password"),
      headers: ((config["headers"] as { name: string; value?: unknown }[] | undefined) ?? []).map(
        ({ name, value }) => ({ name, value: toText(value) ?? "" }),
      ),
    },
    is_unsigned: false,
    had_user: alert.id !== undefined && text("username") !== "",
  };
}

export function toBody(values: AlertValues): Write<"alerts"> {
  const { webhook, smtp, secrets, ca_certificates, is_unsigned, had_user, ...rest } = values;
  const authorities = ca_certificates.trim() === "" ? {} : { ca_certificates };
  const config =
    values.type === "webhook"
      ? {
          ...optional("url", secrets.url),
          headers: secrets.headers
            .filter(({ name }) => name.trim() !== "")
            .map(({ name, value }) => ({ name: name.trim(), ...optional("value", value) })),
          ...(is_unsigned ? { secret: null } : optional("secret", secrets.signing)),
          content_type: webhook.content_type,
          ...optional("template", webhook.template),
        }
      : {
          host: smtp.host.trim(),
          port: smtp.port,
          tls: smtp.tls,
          ...optional("username", smtp.username.trim()),
          // A password without a user name is invalid: the stored one is removed.
          ...(smtp.username.trim() === "" && had_user
            ? { password: null }
            : optional("password", secrets.password)),
          from: smtp.from.trim(),
          to: [...smtp.to],
          timeout: smtp.timeout,
        };
  return { ...rest, config: { ...config, ...authorities } } as Write<"alerts">;
}

/** `$secret:NAME` refers to one of the secrets. */
const PREFIX = "$secret:";

const optional = (name: string, text: string): Record<string, unknown> =>
  text === ""
    ? {}
    : { [name]: text.startsWith(PREFIX) ? { $secret: text.slice(PREFIX.length).trim() } : text };

function toText(value: unknown): string | null {
  if (typeof value === "string") return value;
  const isReference = typeof value === "object" && value !== null && "$secret" in value;
  return isReference ? `${PREFIX}${String(value.$secret)}` : null;
}

const places: Readonly<Record<string, string>> = {
  url: "secrets.url",
  secret: "secrets.signing",
  password: "secrets.password",
  content_type: "webhook.content_type",
  template: "webhook.template",
  host: "smtp.host",
  port: "smtp.port",
  tls: "smtp.tls",
  username: "smtp.username",
  from: "smtp.from",
  to: "smtp.to",
  timeout: "smtp.timeout",
  ca_certificates: "ca_certificates",
};

/** Where in the form a field of the API is: `config.headers[0].value` is `secrets.headers[0].value`. */
export function fieldOf(field: string): string {
  const [, name = "", rest = ""] = /^config\.(\w+)(.*)$/.exec(field) ?? [];
  if (name === "headers") return `secrets.headers${rest}`;
  return places[name] ?? field.replace(/^((?:events|service_ids|route_ids)).*$/, "$1");
}

export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  events: (value: readonly string[]) => (value.length === 0 ? "Choose at least one" : null),
  secrets: {
    url: (value: string) =>
      value === "" || value.startsWith(PREFIX) || /^https?:\/\/[^\s/]+/.test(value)
        ? null
        : "Must start with http:// or https://",
  },
  smtp: {
    from: (value: string, values: AlertValues) =>
      values.type !== "smtp" || isMailbox(value) ? null : "A mail address is required",
    host: (value: string, values: AlertValues) =>
      values.type !== "smtp" || value.trim() !== "" ? null : "Mail server is required",
    to: (value: readonly string[], values: AlertValues) => {
      if (values.type !== "smtp") return null;
      const wrong = value.find((one) => !isMailbox(one));
      if (wrong !== undefined) return `${wrong} is not a mail address`;
      return value.length === 0 ? "At least one recipient is required" : null;
    },
  },
};

const isMailbox = (text: string): boolean => /^[^\s@<>,;:"]+@[^\s@<>,;:"]+$/.test(text.trim());

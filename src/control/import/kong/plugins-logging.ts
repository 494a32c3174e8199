// Plugins of Kong that write logs and numbers.
import type { Members } from "../members.ts";
import type { PluginConverter } from "./plugins.ts";

const sinkOf = (sink: Readonly<Record<string, unknown>>) => ({
  name: "access-log",
  config: { sinks: [sink] },
});

function leaveOutQueue(config: Members): void {
  config.leaveOut("custom_fields_by_lua", "there is no Lua");
  for (const name of [
    "queue",
    "retry_count",
    "queue_size",
    "flush_timeout",
    "keepalive",
    "timeout",
  ])
    config.leaveOut(name, "set the queue of the plugin access-log");
}

const fileLog: PluginConverter = (config) => {
  const path = config.text("path") ?? "kong.log";
  const name = path.split("/").at(-1) ?? path;
  leaveOutQueue(config);
  config.leaveOut("reopen", "files are rotated by the gateway", false);
  if (/^\/dev\/(stdout|stderr)$/.test(path)) return sinkOf({ stdout: { format: "json" } });
  if (name !== path) config.changed("path", `${path} became ${name} in the directory for logs`);
  return sinkOf({ file: { path: name, format: "json" } });
};

const httpLog: PluginConverter = (config) => {
  const url = config.text("http_endpoint") ?? "";
  const headers = config.raw("headers");
  leaveOutQueue(config);
  config.leaveOut("method", "lines are sent with POST", "POST");
  config.leaveOut("content_type", "lines are sent as JSON", "application/json");
  return sinkOf({ http: { url, ...(headers === null ? {} : { headers }) } });
};

const socketLog =
  (type: "tcp" | "udp"): PluginConverter =>
  (config) => {
    const host = config.text("host") ?? "";
    const port = config.number("port") ?? 0;
    leaveOutQueue(config);
    config.leaveOut("tls", "lines go out without TLS: the sinks http and syslog have it", false);
    config.leaveOut("tls_sni", "lines go out without TLS: the sinks http and syslog have it");
    const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    return sinkOf({ [type]: { address, format: "json" } });
  };

const syslog: PluginConverter = (config) => {
  config.drop("name a server for syslog in a sink of the plugin access-log");
  return null;
};

const prometheus: PluginConverter = (config) => {
  for (const name of config.names)
    config.leaveOut(name, "metrics have the labels that they have", false);
  config.report.carried(config.label, "metrics are built in: GET /metrics of the management API");
  return null;
};

export const logging: Readonly<Record<string, PluginConverter>> = {
  "file-log": fileLog,
  "http-log": httpLog,
  "tcp-log": socketLog("tcp"),
  "udp-log": socketLog("udp"),
  syslog,
  prometheus,
};

// Plugins of Kong for logs and metrics.
import type { Members } from "../members.ts";
import type { PluginConverter } from "./plugins.ts";

const sinkOf = (sink: Readonly<Record<string, unknown>>) => ({
  name: "access-log",
  config: { sinks: [sink] },
});

function omitQueue(config: Members): void {
  config.omit("custom_fields_by_lua", "the gateway does not run Lua");
  for (const name of [
    "queue",
    "retry_count",
    "queue_size",
    "flush_timeout",
    "keepalive",
    "timeout",
  ])
    config.omit(name, "set the queue of the plugin access-log");
}

const fileLog: PluginConverter = (config) => {
  const path = config.text("path") ?? "kong.log";
  const name = path.split("/").at(-1) ?? path;
  omitQueue(config);
  config.omit("reopen", "files are rotated by the gateway", false);
  if (/^\/dev\/(stdout|stderr)$/.test(path)) return sinkOf({ stdout: { format: "json" } });
  if (name !== path) config.changed("path", `${path} became ${name} in the directory for logs`);
  return sinkOf({ file: { path: name, format: "json" } });
};

const httpLog: PluginConverter = (config) => {
  const url = config.text("http_endpoint") ?? "";
  const headers = config.raw("headers");
  omitQueue(config);
  config.omit("method", "lines are sent with POST", "POST");
  config.omit("content_type", "lines are sent as JSON", "application/json");
  return sinkOf({ http: { url, ...(headers === null ? {} : { headers }) } });
};

const socketLog =
  (type: "tcp" | "udp"): PluginConverter =>
  (config) => {
    const host = config.text("host") ?? "";
    const port = config.number("port") ?? 0;
    omitQueue(config);
    config.omit("tls", "this sink has no TLS: use the sink http or syslog", false);
    config.omit("tls_sni", "this sink has no TLS: use the sink http or syslog");
    const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    return sinkOf({ [type]: { address, format: "json" } });
  };

const syslog: PluginConverter = (config) => {
  config.drop("add a syslog sink with a server to the plugin access-log");
  return null;
};

const prometheus: PluginConverter = (config) => {
  for (const name of config.names) config.omit(name, "labels of metrics are fixed", false);
  config.report.imported(config.label, "metrics are built in: GET /metrics of the management API");
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

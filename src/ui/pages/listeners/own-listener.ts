// Whether a change of a listener may disconnect the page that makes it; renders nothing.
import type { Read } from "../../api/resources.ts";

type Listener = Read<"listeners">;

/** Fields whose change may disconnect the browser. */
const ENDPOINT_FIELDS = [
  "address",
  "port",
  "protocol",
  "engine",
  "enabled",
  "client_auth",
  "proxy_protocol",
  "hosts",
] as const;

/** Whether saving could disconnect this page. */
export function mayDisconnect(
  listener: Pick<Listener, "port" | "protocol">,
  changed: Readonly<Record<string, boolean>>,
  { port, protocol }: Pick<Location, "port" | "protocol">,
): boolean {
  return (
    isOwnListener(listener, { port, protocol }) &&
    ENDPOINT_FIELDS.some((name) => changed[name] === true)
  );
}

/** Whether this page was probably reached through the listener: by its port and scheme. */
export function isOwnListener(
  listener: Pick<Listener, "port" | "protocol">,
  { port, protocol }: Pick<Location, "port" | "protocol">,
): boolean {
  const own = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  return own === listener.port && protocol === `${listener.protocol}:`;
}

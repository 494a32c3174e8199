// Reads where servers listen; knows no route.
import { isIP } from "node:net";
import { type Level, shownPlace } from "./tree.ts";
import type { Report } from "../report.ts";

export interface Listen {
  /** Null: all addresses. */
  readonly address: string | null;
  readonly port: number;
  readonly hasTls: boolean;
  readonly isDefault: boolean;
}

/** `http` and `https`: the gateway's own listeners; else one of its own. */
export const endpointOf = ({ address, port, hasTls }: Listen): string => {
  if (address === null && port === 80 && !hasTls) return "http";
  if (address === null && port === 443 && hasTls) return "https";
  return `${address ?? "*"} ${port}${hasTls ? " tls" : ""}`;
};

export interface Socket {
  readonly address: string | null;
  readonly port: number;
}

/** `80`, `*:80`, `127.0.0.1`, `[::]:443`; null: a Unix socket or a name. */
export function socketOf(text: string, defaultPort: number): Socket | null {
  if (/^\d{1,5}$/.test(text)) return { address: null, port: Number(text) };
  const [, bracketed, plain = "", port] =
    /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = (bracketed ?? plain) === "localhost" ? "127.0.0.1" : (bracketed ?? plain);
  const isEverywhere = /^(?:\*|0\.0\.0\.0|::)$/.test(host);
  if (!isEverywhere && isIP(host) === 0) return null;
  return { address: isEverywhere ? null : host, port: Number(port ?? defaultPort) };
}

/** Null: none of its addresses can be imported. */
export function listensOf(server: Level, report: Report): readonly Listen[] | null {
  const all = server.own("listen");
  if (all.length === 0) return [{ address: null, port: 80, hasTls: false, isDefault: false }];
  const hasTls = server.value("ssl") === "on";
  const found = all.flatMap(({ args, place }): Listen[] => {
    const [text = "", ...flags] = args;
    const label = `listen ${text} at ${shownPlace(place)}`;
    if (flags.includes("quic")) {
      report.omitted(label, "set http3 of the listener");
      return [];
    }
    const socket = socketOf(text, 80);
    if (socket === null) {
      report.omitted(label, "is not an address and a port");
      return [];
    }
    return [
      {
        ...socket,
        hasTls: hasTls || flags.includes("ssl"),
        isDefault: flags.includes("default_server") || flags.includes("default"),
      },
    ];
  });
  return found.length === 0 ? null : found;
}

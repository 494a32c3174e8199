// Reads the addresses on which a frontend of HAProxy listens; knows no rule.
import type { Section } from "./sections.ts";

export interface Bind {
  readonly port: number | null;
  /** Only clients inside of a network reach it: a loopback or private address, or a socket. */
  readonly isInside: boolean;
  readonly isTls: boolean;
  /** Whether clients need a certificate. */
  readonly asksForCertificate: boolean;
  readonly acceptsProxy: boolean;
  readonly files: readonly string[];
}

export function bindsOf({ kind, lines }: Section): readonly Bind[] {
  if (kind === "backend") return [];
  return lines.flatMap(({ words }) => {
    const [keyword, addresses = "", ...rest] = words;
    if (keyword !== "bind") return [];
    const verify = rest[rest.indexOf("verify") + 1];
    const isVerifying = rest.includes("verify") && verify !== "none";
    const files = rest.flatMap((word, at) =>
      (word === "crt" || word === "crt-list") && rest[at + 1] !== undefined
        ? [rest[at + 1] ?? ""]
        : [],
    );
    return addresses.split(",").map((address): Bind => {
      const [, host = "", port] = /^(?:ipv[46]@)?(.*?)(?::(\d+)(?:-\d+)?)?$/.exec(address) ?? [];
      return {
        port: port === undefined ? null : Number(port),
        isInside: port === undefined || isInside(host.replace(/^\[(.*)\]$/, "$1")),
        isTls: rest.includes("ssl"),
        asksForCertificate: isVerifying,
        acceptsProxy: rest.includes("accept-proxy"),
        files,
      };
    });
  });
}

const isInside = (host: string): boolean =>
  /^(?:127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|::1$|f[cd][0-9a-f]{2}:|fe80:|\/|unix@|abns@|fd@)/i.test(
    host,
  );

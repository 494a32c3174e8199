// Usual programs behind stream routes, with their ports; renders nothing.

export interface PortValues {
  readonly transport: "tcp" | "tls" | "udp";
  /** At the gateway. */
  readonly port: number | null;
  /** At the server. */
  readonly target_port: number | null;
}

interface Preset {
  readonly label: string;
  readonly ports: readonly PortValues[];
  /** Seconds without a datagram. */
  readonly udp_session_timeout?: number;
}

const one = (transport: PortValues["transport"], port: number, target = port): PortValues => ({
  transport,
  port,
  target_port: target,
});

export const newPort: PortValues = { transport: "tcp", port: null, target_port: null };

export const presets: Readonly<Record<string, Preset>> = {
  custom: { label: "Other", ports: [newPort] },
  minecraft: { label: "Minecraft (Java)", ports: [one("tcp", 25_565)] },
  valheim: { label: "Valheim", ports: [one("udp", 2456), one("udp", 2457)] },
  // Its keepalive comes every 25 s, if it is on; a session is renewed every 2 minutes.
  wireguard: { label: "WireGuard", ports: [one("udp", 51_820)], udp_session_timeout: 180 },
  mqtt: { label: "MQTT", ports: [one("tcp", 1883)] },
  // Port 22 is usually that of the machine itself.
  ssh: { label: "SSH", ports: [one("tcp", 2222, 22)] },
  postgres: { label: "PostgreSQL", ports: [one("tcp", 5432)] },
  dns: { label: "DNS", ports: [one("udp", 53), one("tcp", 53)] },
};
